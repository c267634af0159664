"""Pools of the sample application (sample/README.md) at the sites of a lab, and what scenes want to do with them."""
import http.client
import itertools
import json
import socket
import time

from wan_lab import BOUND_S, CHEOPS, Answer, agents_of_lab, process, wait_for

SAMPLE = CHEOPS.parent / "cheops-sample"
JSON = {"Content-Type": "application/json"}
OWN = ("id", "created")  # what may differ from site to site


class Scene:
    def __init__(self, lab):
        self.lab = lab
        self.sites = lab.sites
        self.numbers = itertools.count()
        self.odd = set()  # sites whose service runs with options of the test

    # ---- as users do

    def ask(self, site, method, path, body=None, scope=None):
        headers = {**({"Scope": scope} if scope else {}), **(JSON if body is not None else {})}
        return self.lab.ask(site, "network", path, method, headers, None if body is None else json.dumps(body))

    def change(self, site, method, path, body=None, scope=None):
        """A change that succeeds; returns what it is answered with."""
        answer = self.ask(site, method, path, body, scope)
        assert answer.status in (200, 201, 204), f"{method} {path} at {site}: {answer}"
        return answer

    def make(self, name, sites=None, at=None, **members):
        """A pool over these sites; its path."""
        sites = sites or self.sites
        answer = self.change(at or sites[0], "POST", "/pools", {"name": name, **members}, " & ".join(sites))
        return f"/pools/{answer.json['id']}"

    def make_everywhere(self, name, sites=None, at=None, **members):
        """And it is there."""
        path = self.make(name, sites, at, **members)
        self.wait_equal(name, sites, **members)
        return path

    # ---- behind the agents' backs

    def behind(self, site, path="/pools"):
        connection = http.client.HTTPConnection("127.0.0.1", timeout=BOUND_S)
        connection.sock = self.lab.socket(site, socket.AF_INET)
        try:
            connection.sock.connect(("127.0.0.1", agents_of_lab.service_port("network")))
            connection.request("GET", path)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def pools(self, site):
        """{name: what the service itself has}, without what is its own."""
        pools = self.behind(site).json["pools"]
        found = {pool["name"]: {key: value for key, value in pool.items() if key not in OWN} for pool in pools}
        assert len(found) == len(pools), pools
        return found

    def pools_count(self, site):
        """Also while the service is stopped."""
        return len(list(self.lab.path(site, "network", "pools").glob("*.json")))

    def pool(self, site, name):
        return self.pools(site).get(name)

    # ---- what becomes of it

    def wait_equal(self, name, sites=None, **members):
        """Until the services of all these sites have the pool, with these members, and with nothing that differs."""
        def seen():
            return {site: self.pool(site, name) for site in sites or self.sites}

        def is_so():
            found = list(seen().values())
            return all(pool == found[0] for pool in found) and found[0] is not None and \
                all(found[0].get(key) == value for key, value in members.items())
        wait_for(is_so, lambda: f"{name} to be {members} everywhere; it is {seen()}")

    def wait_gone(self, name, sites=None):
        wait_for(lambda: all(self.pool(site, name) is None for site in sites or self.sites),
                 lambda: f"{name} to be gone; it is {[self.pool(site, name) for site in sites or self.sites]}")

    def stays(self, path, name, sites=None, **members):
        """It is so, and is still so when each site has made one more change that all have run: nothing more was to come."""
        sites = sites or self.sites
        self.wait_equal(name, sites, **members)
        number = next(self.numbers)
        marks = {f"mark-{site}": number for site in sites}
        for mark in marks:
            self.change(mark.removeprefix("mark-"), "PATCH", path, {mark: number})
        self.wait_equal(name, sites, **marks)
        self.wait_equal(name, sites, **members, **marks)

    def wait_member(self, at, answer, member, state):
        """Until the agent there knows that the operation of this answer is in that state at the member; what it says of it."""
        path = f"/cheops/v1/operations/{answer.header('Cheops-Operation')}"

        def found():
            shown = self.lab.ask(at, "api", path)
            return shown.status == 200 and next((each for each in shown.json["members"]
                                                 if each["site"] == member and each["state"] == state), None)
        return wait_for(found, lambda: f"{state} at {member}: {self.lab.ask(at, 'api', path)}")

    # ---- faults

    def stop_service(self, site):
        self.lab.kill(site, "network")

    def start_service(self, site, *options):
        """Again, with the same data."""
        (self.odd.add if options else self.odd.discard)(site)
        folder = self.lab.path(site)
        with open(folder / "network.log", "ab") as log:
            child = self.lab.popen(
                site, [SAMPLE, "network", "--listen", f"127.0.0.1:{agents_of_lab.service_port('network')}", "--data",
                       folder / "network", "--access-log", folder / "network.requests", *options],
                stdin=None, stdout=log, stderr=log, start_new_session=True, env=agents_of_lab.environment(site))
        self.lab.state["processes"][f"{site}/network"] = process.describe(child.pid)
        wait_for(lambda: child.poll() is None and agents_of_lab.answers(
            self.lab.netns(site), agents_of_lab.service_port("network"), "/healthz"), f"network at {site}")

    def mend(self):
        """All as in the beginning, but for what was made."""
        self.lab.set("*", "*", delay="5ms", loss="0")
        self.lab.heal()
        for site in self.sites:
            if site in self.odd:
                self.stop_service(site)
            if not process.is_alive(self.lab.state["processes"][f"{site}/network"]):
                self.start_service(site)
            if not process.is_alive(self.lab.state["processes"][f"{site}/agent"]):
                self.lab.start_agent(site)

    def requests(self, site, method, since=0):
        """Lines of the service's access log from there on."""
        lines = self.lab.path(site, "network.requests").read_text(encoding="utf-8").splitlines()[since:]
        return [line for line in map(json.loads, lines) if line["method"] == method]


def next_millisecond():
    """So that what is asked next has a later stamp, at whichever site: they are all on one machine, with one clock."""
    began = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= began + 1:
        pass
