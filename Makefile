# The front door. The real build is meson.build; what each target does is in scripts/, which also works without make.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
MESON := $(firstword $(wildcard /usr/bin/meson) meson)
export FUZZ_SECONDS

.DEFAULT_GOAL := build
.PHONY: build help test e2e-openstack demo sim model fuzz bench tidy format coverage analyze install deb clean
.NOTPARALLEL:

build: ## build/cheops, after installing the Debian packages it needs (this is what plain `make` does)
	@scripts/deps build
	@scripts/build main cheops

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.* ## \(.*\)/\1\t\2/p' Makefile | expand -t 16

test: ## everything: tidy, unit tests, sanitizers, fuzzing corpora, end to end; OpenStack where it fits (CHEOPS_NO_OPENSTACK=1: not)
	@scripts/deps test
	@scripts/test

e2e-openstack: ## real sites of OpenStack behind agents; installs them first, as root (docs/openstack.md)
	@scripts/deps test
	@scripts/test e2e-openstack

demo: ## three sites on this machine, and what to try with them (docs/demo.md)
	@scripts/deps demo
	@scripts/build main cheops cheops-sample
	@build/cheops demo

sim: ## whole worlds of sites from one seed: ROOM=site|replica|cross SEED=N SITES=N STEPS=N OPTIONS='--help' (docs/simulator.md)
	@scripts/deps sim
	@scripts/sim $(if $(ROOM),$(ROOM)) $(if $(SEED),--seed $(SEED)) $(if $(SITES),--sites $(SITES)) $(if $(STEPS),--steps $(STEPS)) $(OPTIONS)

model: ## SPIN checks the order of operations, all interleavings (docs/models/order.pml)
	@scripts/deps model
	@scripts/model

fuzz: ## every fuzzer for FUZZ_SECONDS (60) each
	@scripts/deps fuzz
	@scripts/fuzz

bench: ## every benchmark but openstack; each ends with lines `ratio NAME VALUE`
	@scripts/deps bench
	@scripts/bench

tidy: ## formatting, order and purity of the rooms, dead links in the documentation
	@scripts/deps tidy
	@scripts/tidy

format: ## clang-format, in place
	@scripts/deps tidy
	@scripts/tidy --format

coverage: ## line coverage of each room
	@scripts/deps coverage
	@scripts/coverage

analyze: ## cppcheck, clang-tidy, gcc -fanalyzer
	@scripts/deps analyze
	@scripts/analyze

install: build ## into PREFIX (/usr/local), below DESTDIR if that is set
	@$(MESON) configure build -Dprefix=$(PREFIX)
	@$(MESON) install -C build

deb: ## build-deb/cheops_VERSION_ARCH.deb
	@scripts/deps deb
	@scripts/deb

clean: ## remove every build directory
	rm -rf build build-*/
