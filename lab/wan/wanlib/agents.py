"""An agent and the sample application at each site of a lab. All that the lab knows of Cheops is here.

Every site has a network of its own, so all use the same ports, as the demo's conventions have them:

    10.77.0.N:8070           agents among themselves, TCP and UDP
    127.0.0.1:8079           the agent's API
    127.0.0.1:8081 to 8083   its fronts for compute, image, network
    127.0.0.1:9081 to 9083   the services themselves

How a mesh comes about: `cheops site init` at the first site, and its agent; then for each other site `cheops site token`
at the first one, which prints the command that is to be run at the new one, and that one's agent. The lab is ready when
every site knows of every other one that it is there. Sites that are not to join have their services and their
configuration; the rest is up to who uses the lab.
"""
import http.client
import json
import os
import re
import shlex
import subprocess
import threading
import time

from . import netns, process
from .errors import LabError

SERVICES = ("compute", "image", "network")
PEER_PORT, API_PORT, FRONT_PORT, SERVICE_PORT = 8070, 8079, 8081, 9081
BOUND_S = 120  # of all that is waited for
TAIL_LINES = 10
# What must not come from the user's environment: it would move an agent, or send calls between services to a proxy.
NOT_OURS = re.compile(r"CHEOPS_.*|NOTIFY_SOCKET|FORWARD|(?:https?|all)_proxy|ALL_PROXY")


def front_port(service):
    return FRONT_PORT + SERVICES.index(service)


def service_port(service):
    return SERVICE_PORT + SERVICES.index(service)


def config_of(site, address, folder):
    lines = [f"site: {site}", f"state: {folder / 'state'}", f"api: 127.0.0.1:{API_PORT}", f"peer: {address}:{PEER_PORT}",
             "threads: 1", "application: sample", "timeouts: {stop: 3s}", "services:"]
    for service in SERVICES:
        # compute calls the others, which call nobody
        carry = "[header, baggage]" if service == "compute" else "[]"
        lines += [f"  {service}:", f"    front: 127.0.0.1:{front_port(service)}",
                  f"    instances: 127.0.0.1:{service_port(service)}", f"    carry: {carry}"]
    return "# Written by lab/wan/up.\n" + "\n".join(lines) + "\n"


def environment(site=None):
    """Services find each other as services do: by an address in the environment. It is that of the agent's front."""
    made = {name: value for name, value in os.environ.items() if not NOT_OURS.fullmatch(name)}
    if site is not None:
        made["SITE_NAME"] = site
        for service in SERVICES:
            made[f"{service.upper()}_URL"] = f"http://127.0.0.1:{front_port(service)}"
    return made


def fetch(namespace, port, path):
    """What is answered there, with 200; else None."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.sock = netns.make_socket(namespace)
    try:
        connection.sock.settimeout(5)
        connection.sock.connect(("127.0.0.1", port))
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read() if response.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def answers(namespace, port, path):
    return fetch(namespace, port, path) is not None


def present_count(namespace):
    """How many sites an agent sees as present, itself included."""
    answer = fetch(namespace, API_PORT, "/cheops/v1/sites")
    return sum(site["shown"] == "present" for site in json.loads(answer)["sites"]) if answer else 0


class Agents:
    """Of one lab, whose supervisor lends its folder, start_process(), children and check()."""

    def __init__(self, cheops, sample, sites, lab, join=None):
        self.cheops = cheops
        self.sample = sample
        self.sites = sites  # {name: {"netns": ..., "address": ...}}
        self.lab = lab
        self.joined = list(sites)[:join]  # those that have an agent

    def start(self):
        for site in self.sites:
            self.prepare(site)
            for service in SERVICES:
                self.start_service(site, service)
        for site in self.sites:
            for service in SERVICES:
                self.wait_for(site, service, service_port(service), "/healthz")
        if self.joined:
            self.start_mesh(*self.joined)

    def start_mesh(self, first, *others):
        self.run(first, "site", "init", "-c", self.config(first))
        self.start_agent(first)
        self.wait_for_agent(first)
        for site in others:
            self.lab.check()
            self.run_command(site, self.token_command(first, site))
            self.start_agent(site)
        for site in others:
            self.wait_for_agent(site)
        for site in self.joined:
            self.wait_for_view(site)

    # ---- files

    def folder(self, site):
        return self.lab.folder / site

    def config(self, site):
        return str(self.folder(site) / "agent.yaml")

    def prepare(self, site):
        folder = self.folder(site)
        folder.mkdir(mode=0o700)
        (folder / "agent.yaml").write_text(config_of(site, self.sites[site]["address"], folder), encoding="utf-8")

    # ---- processes

    def start_service(self, site, service):
        folder = self.folder(site)
        self.lab.start_process(f"{site}/{service}", [
            self.sample, service, "--listen", f"127.0.0.1:{service_port(service)}", "--data", folder / service,
            "--forward", "headers", "--access-log", folder / f"{service}.requests"],
            self.sites[site]["netns"], folder / f"{service}.log", environment(site), folder)

    def start_agent(self, site):
        self.lab.start_process(f"{site}/agent", [self.cheops, "agent", "-c", self.config(site)],
                               self.sites[site]["netns"], self.folder(site) / "agent.log", environment(), self.folder(site))

    def wait(self, site, part, condition, what):
        """Until the condition holds, as long as that process runs."""
        child = self.lab.children[f"{site}/{part}"]
        until = time.monotonic() + BOUND_S
        pause = threading.Event()
        while not condition():
            self.lab.check()
            if child.poll() is not None:
                raise LabError(f"{part} of {site} ended, with status {child.returncode}; {self.tail(site, part)}")
            if time.monotonic() > until:
                raise LabError(f"{part} of {site} does not {what} within {BOUND_S} s; {self.tail(site, part)}")
            pause.wait(0.02)

    def wait_for(self, site, part, port, path):
        self.wait(site, part, lambda: answers(self.sites[site]["netns"], port, path), f"answer on port {port}")

    def wait_for_agent(self, site):
        self.wait_for(site, "agent", API_PORT, "/cheops/v1/health")
        for service in SERVICES:
            self.wait_for(site, "agent", front_port(service), "/healthz")

    def wait_for_view(self, site):
        self.wait(site, "agent", lambda: present_count(self.sites[site]["netns"]) == len(self.joined),
                  f"see all {len(self.joined)} sites")

    def tail(self, site, part):
        path = self.folder(site) / f"{part}.log"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        return f"the end of {path}:\n  " + "\n  ".join(lines or ["(nothing)"])

    # ---- commands

    def run(self, site, *arguments):
        """Runs cheops at a site; what it prints."""
        command = [self.cheops, *arguments]
        child = process.start(command, self.sites[site]["netns"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment(), cwd=self.folder(site))
        try:
            out, err = child.communicate(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            err += f"(killed after {BOUND_S} s)"
        if child.returncode != 0:
            raise LabError(f"`{shlex.join(map(str, command))}` at {site} failed: {err.strip() or out.strip()}")
        return out

    def token_command(self, first, site):
        """The arguments of cheops that `cheops site token` says are to be given at the new site."""
        out = self.run(first, "site", "token", site, "-c", self.config(first))
        for line in out.splitlines():
            words = shlex.split(line, comments=True)
            if "join" in words and "site" in words:
                return words[words.index("site"):]
        raise LabError(f"`cheops site token` at {first} gave no command for {site} to join: {out.strip()}")

    def run_command(self, site, words):
        if "-c" in words:  # the command is as for any machine: there the configuration is in its usual place
            at = words.index("-c")
            words = words[:at] + words[at + 2:]
        self.run(site, *words, "-c", self.config(site))
