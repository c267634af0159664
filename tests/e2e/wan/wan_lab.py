"""A lab for a test: lab/wan as a user starts it, and what tests want to do with it.

    with Lab("three") as lab:
        lab.cut("Site1", "Site2")
        answer = lab.ask("Site1", "compute", "/whoami", headers={"Scope": "Site3"})

It needs root, network namespaces and /dev/net/tun. Where these are missing a test fails, and says so: it is not skipped,
because what was not tested has not passed.

A lab ends with the process that made it, however that ends.
"""
import datetime
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMANDS = ROOT / "lab" / "wan"
CHEOPS = pathlib.Path(os.environ.get("CHEOPS", ROOT / "build" / "cheops")).resolve()
BOUND_S = 90  # of everything that is waited for; generous, because the sanitizers are slow
START_S = 300  # twenty agents under a sanitizer

sys.path.insert(0, str(COMMANDS))
from wanlib import agents as agents_of_lab  # noqa: E402
from wanlib import netns, process  # noqa: E402
from wanlib.control import Control  # noqa: E402
from wanlib.errors import LabError  # noqa: E402,F401

API_PORT, PEER_PORT = agents_of_lab.API_PORT, agents_of_lab.PEER_PORT


def environment():
    made = dict(os.environ)
    made["ASAN_OPTIONS"] = made.get("ASAN_OPTIONS", "") + ":exitcode=99"
    made["CHEOPS"] = str(CHEOPS)
    for name in ("CHEOPS_LAB", "CHEOPS_LAB_DIR"):
        made.pop(name, None)
    return made


def wait_for(condition, what, bound_s=BOUND_S, pause_s=0.01):
    """Looks again and again, for a bounded time, until the condition gives something that is true, and returns that.
    `what` may be a function, which is asked in the end."""
    until = time.monotonic() + bound_s
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < until, f"waited in vain for {what() if callable(what) else what}"
        pause.wait(pause_s)
    return found


def command(name, *arguments):
    """Runs one of the commands of lab/wan, as a user does."""
    return subprocess.run([COMMANDS / name, *map(str, arguments)], env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=BOUND_S, check=False)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.getheaders()
        self.bytes = response.read()

    def header(self, name):
        values = [value for known, value in self.headers if known.lower() == name.lower()]
        return ", ".join(values) if values else None

    @property
    def json(self):
        return json.loads(self.bytes)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.bytes[:800]!r}"


class Lab:
    """`what`: a number of sites, the name or path of a matrix, or a matrix as a dictionary. Ready once it is made."""

    def __init__(self, what, agents=True, seed=1, sites=None, join=None):
        """`sites`: only the first so many of a matrix. `join`: only the first so many have an agent, and join."""
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="cheops-lab-"))
        self.started = []
        if isinstance(what, dict):
            path = self.base / "matrix.yaml"
            path.write_text(yaml.safe_dump(what, sort_keys=False), encoding="utf-8")
            what = path
        arguments = [*([sites] if sites else []), what, "--attached", "--json", "--dir", self.base, "--seed", seed,
                     *([] if agents else ["--no-agents"]), *([] if join is None else ["--join", join])]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([COMMANDS / "up", *map(str, arguments)], env=environment(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.stdin.close()
            self.process.wait(BOUND_S)
            said = self.stderr()
            shutil.rmtree(self.base, ignore_errors=True)
            raise AssertionError(f"no lab: {said or 'it takes too long'}")
        self.state = json.loads(line)
        self.id = self.state["lab"]
        self.folder = pathlib.Path(self.state["folder"])
        self.sites = list(self.state["sites"])
        self.control = Control(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def stderr(self):
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode()

    def close(self):
        """Ends the lab, and sees that nothing is left of it, and that no sanitizer had a complaint."""
        logs = {path: path.read_text(encoding="utf-8", errors="replace") for path in self.folder.rglob("*.log")}
        self.control.close()
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait(BOUND_S)
        self.process.stdin.close()
        status = self.process.wait(BOUND_S)
        self.process.stdout.close()
        said = self.stderr()
        self.errors.close()
        shutil.rmtree(self.base, ignore_errors=True)
        assert status == 0 and said == "", said
        assert self.id not in netns.all_of_labs()
        for path, text in logs.items():
            assert "Sanitizer" not in text and "runtime error:" not in text, f"{path}: {text}"

    # ---- the network

    def cut(self, first, second, one_way=False):
        """Returns once it is done, as all of these do. "*" is every site."""
        self.control.run("cut", f"{first}{'>' if one_way else '<>'}{second}")

    def heal(self, first="*", second="*", one_way=False):
        self.control.run("heal", f"{first}{'>' if one_way else '<>'}{second}")

    def isolate(self, *sites):
        """Cuts these off from all others; among themselves they stay in touch."""
        for site in sites:
            for other in self.sites:
                if other not in sites:
                    self.cut(site, other)

    def set(self, first, second, one_way=False, **keys):
        """lab.set("Site1", "Site2", delay="10ms", loss="7%")"""
        self.control.set(f"{first}{'>' if one_way else '<>'}{second}", **keys)

    def rules(self, first, second):
        """{key: text} of the way from the first to the second."""
        return self.control.table("show", f"{first}>{second}")[f"{first}>{second}"]

    def delay_ms(self, first, second):
        return float(self.rules(first, second)["delay"].removesuffix("ms"))

    def rtt_ms(self, first, second):
        return self.delay_ms(first, second) + self.delay_ms(second, first)

    def stats(self, first, second):
        """{key: number} of the way from the first to the second."""
        return self.control.stats(f"{first}>{second}")[f"{first}>{second}"]

    # ---- sites

    def address(self, site):
        return self.state["sites"][site]["address"]

    def netns(self, site):
        return self.state["sites"][site]["netns"]

    def about(self, site):
        """What the matrix says of it: city, region..."""
        return self.state["sites"][site]["about"]

    def path(self, site, *parts):
        """Below the folder of a site: agent.yaml, agent.log, state/..."""
        return self.folder.joinpath(site, *parts)

    def socket(self, site, *kind):
        """A socket at a site, for the test itself; TCP unless told otherwise."""
        made = netns.make_socket(self.netns(site), *kind)
        made.settimeout(BOUND_S)
        return made

    def popen(self, site, arguments, **options):
        """A process at a site. It ends with the lab. From the main thread only: it ends with the thread as well."""
        assert threading.current_thread() is threading.main_thread()
        child = process.start(arguments, self.netns(site), **options)
        self.started.append(child)
        return child

    def run(self, site, arguments, **options):
        """Runs a command at a site to its end: status, stdout and stderr as text."""
        child = self.popen(site, arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, **options)
        out, err = child.communicate(timeout=BOUND_S)
        self.started.remove(child)
        return subprocess.CompletedProcess(arguments, child.returncode, out, err)

    # ---- Cheops at the sites

    def cheops(self, site, *arguments):
        """Runs cheops at a site: cheops("Site2", "sites", "--from", "Site3")."""
        return self.run(site, [str(CHEOPS), *arguments], env=agents_of_lab.environment())

    def pid(self, site, part="agent"):
        """`agent`, `compute`, `image` or `network`, as they were started with the lab."""
        return self.state["processes"][f"{site}/{part}"]["pid"]

    def kill(self, site, part="agent", number=signal.SIGKILL):
        """Ends it, and waits until it has ended."""
        described = self.state["processes"][f"{site}/{part}"]
        assert process.end(described, signals=(number,), patience_s=BOUND_S), f"{part} of {site} does not end"

    def stop(self, site):
        """Its agent stops in order, and all others know; not before it has talked with each of them, or its last word would
        not reach those, and might be late."""
        others = [other for other, about in self.view(site).items() if other != site and about["shown"] == "present"]
        wait_for(lambda: all(self.view(site)[other]["rtt_ms"] is not None for other in others), f"answers to {site}")
        self.kill(site, number=signal.SIGTERM)
        for other in others:
            wait_for(lambda other=other: self.shown(other)[site] == "absent", f"{other} to show {site} as absent")

    def start_agent(self, site, program=None, **variables):
        """Starts the agent, after kill() or for the first time; returns once it answers. `variables`: its environment."""
        with open(self.path(site, "agent.log"), "ab") as log:
            child = self.popen(site, [str(program or CHEOPS), "agent", "-c", self.path(site, "agent.yaml")], stdout=log,
                               stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd=self.path(site),
                               env={**agents_of_lab.environment(), **variables})
        self.state["processes"][f"{site}/agent"] = process.describe(child.pid)

        def is_there():
            assert child.poll() is None, self.path(site, "agent.log").read_text(encoding="utf-8")[-2000:]
            return agents_of_lab.answers(self.netns(site), API_PORT, "/cheops/v1/health")

        wait_for(is_there, f"the agent of {site}")
        return child

    def configure(self, site, **changes):
        """Changes its configuration; None takes a key out. An agent that runs is told."""
        path = self.path(site, "agent.yaml")
        config = {**yaml.safe_load(path.read_text(encoding="utf-8")), **changes}
        path.write_text(yaml.safe_dump({key: value for key, value in config.items() if value is not None}), encoding="utf-8")
        if agents_of_lab.answers(self.netns(site), API_PORT, "/cheops/v1/health"):
            answer = self.ask(site, "api", "/cheops/v1/reload", "POST")
            assert answer.status == 200, answer

    def site(self, at, *arguments, refused=None):
        """Runs `cheops site ...` there, with the configuration of that site; what it prints. `refused`: it fails, and says
        this."""
        run = self.cheops(at, "site", *arguments, "-c", str(self.path(at, "agent.yaml")))
        if refused is None:
            assert run.returncode == 0, f"cheops site {arguments}: {run.stdout}{run.stderr}"
            return run.stdout
        assert run.returncode == 1 and refused in run.stderr and run.stderr.count("\n") == 1, run
        return run.stderr

    def token(self, name=None, at=None, ttl="1h"):
        """A token of the site with the authority: the first, unless told."""
        printed = self.site(at or self.sites[0], "token", *([name] if name else []), "--ttl", ttl)
        return next(word for word in printed.split() if word.startswith("cheops1_"))

    def found(self, site, *options):
        """A mesh of its own, by a site that has no agent yet."""
        self.site(site, "init", *options)
        self.start_agent(site)

    def join(self, site, token=None, at=None):
        """A site that has no agent yet joins that of another one."""
        self.site(site, "join", token or self.token(site, at))
        self.start_agent(site)

    # ---- what an agent knows

    def view(self, site, start=None):
        """{name: what the agent says of it}; `start`: distances are from there."""
        answer = self.ask(site, "api", "/cheops/v1/sites" + (f"?from={start}" if start else ""))
        assert answer.status == 200, answer
        return {known["name"]: known for known in answer.json["sites"]}

    def shown(self, site):
        """{name: how it is shown}: present, unknown, absent; revoked ones as revoked."""
        return {name: "revoked" if known["state"] == "revoked" else known["shown"]
                for name, known in self.view(site).items()}

    def wait_shown(self, at, wanted):
        """Until each of the sites `at` shows all of `wanted` ({name: how}), and no other."""
        for site in at:
            wait_for(lambda site=site: self.shown(site) == wanted,
                     lambda site=site: f"{site} to show {wanted}; it shows {self.shown(site)}")

    def wait_present(self, *sites):
        """Until these (all, if none is named) see each other as present, and nobody else."""
        sites = sites or self.sites
        self.wait_shown(sites, {site: "present" for site in sites})

    def wait_calm(self, *sites):
        """Until these (all, if none is named) see each other as alive, and nobody as suspect. Returns a time since when that
        is so: who is lost afterwards is lost since then at the earliest."""
        sites = sites or self.sites

        def calm():
            began = datetime.datetime.now(datetime.timezone.utc)
            states = {about["state"] for site in sites for name, about in self.view(site).items() if name in sites}
            return states == {"alive"} and began

        return wait_for(calm, "nobody to be suspected")

    def wait_stored(self, site, *known):
        """Until the table on its disk has these; returns the bytes."""
        table = self.path(site, "state", "sites")
        return wait_for(lambda: table.exists() and all(name.encode() in table.read_bytes() for name in known) and
                        table.read_bytes(), f"the table of {site} on the disk")

    def log(self, site):
        return self.path(site, "agent.log").read_text(encoding="utf-8", errors="replace")

    def events(self, site, message, since=0):
        """Lines of its log with that message, from that byte on."""
        return [line for line in self.log(site)[since:].splitlines() if message in line]

    def metric(self, site, name):
        text = self.ask(site, "api", "/cheops/v1/metrics").bytes.decode()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def wait_metric(self, site, name, more_than):
        wait_for(lambda: self.metric(site, name) > more_than, f"{name} at {site} to be more than {more_than}")

    def port(self, service):
        """Of an agent's front for the service, or of its API: the same at every site."""
        return API_PORT if service == "api" else agents_of_lab.front_port(service)

    def ask(self, site, service, path, method="GET", headers=None, body=None, timeout_s=BOUND_S):
        """A request to the front of the agent at that site, from that site. `service` may be "api"."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port(service), timeout=timeout_s)
        connection.sock = self.socket(site, socket.AF_INET)
        try:
            connection.sock.settimeout(timeout_s)
            connection.sock.connect(("127.0.0.1", self.port(service)))
            connection.request(method, path, body, dict(headers or {}))
            return Answer(connection.getresponse())
        finally:
            connection.close()
