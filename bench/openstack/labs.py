"""A lab of OpenStack for a benchmark: started, asked, its CPU counted by process, and always ended."""
import http.client
import json
import os
import pathlib
import secrets
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for beside in (HERE.parent / "proxy", ROOT / "lab" / "openstack", ROOT / "lab" / "wan"):
    sys.path.insert(0, str(beside))
from oslib import layout, sites   # noqa: E402
from stage import Failed, cpu_seconds_of   # noqa: E402
from wanlib import control, netns   # noqa: E402

START_S = 1500      # packages to fetch and unpack, schemas to make, on a busy machine
END_S = 120
REQUEST_S = 120
BOUND_S = 900       # of what is waited for, once it runs: a hundred servers, on a busy machine
VERSIONS = {"compute": "compute 2.90", "placement": "placement 1.36"}


def say(text):
    """How far it is, to the standard error: figures alone go to the standard output."""
    print(f"bench/openstack: {text}", file=sys.stderr, flush=True)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Asks the services of one site, from that site; connections are kept for as long as the other end keeps them. `inside`: past
    whatever is in front of the services."""

    def __init__(self, site, inside=False):
        self.site, self.inside, self.kept, self.token = site, inside, {}, None

    def ask(self, service, method, path, body=None, headers=None, expect=None):
        """The answer; `expect`: the status that it has to have."""
        fields = dict(headers or {})
        if self.token:
            fields.setdefault("X-Auth-Token", self.token)
        if service in VERSIONS:
            fields["OpenStack-API-Version"] = VERSIONS[service]
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        answer = self.send(service, method, path, body, fields)
        if expect is not None and answer.status != expect:
            raise Failed(f"{method} {path} of {service} at {self.site.name} is answered with {answer.status}, not {expect}: "
                         f"{answer.body[:500]!r}")
        return answer

    def send(self, service, method, path, body, fields):
        connection = self.kept.pop(service, None)
        again = connection is not None      # it may have been closed meanwhile; then a second try is due
        while True:
            connection = connection or self.connect(service)
            try:
                connection.request(method, path, body, fields)
                response = connection.getresponse()
                answer = Answer(response)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not again:
                    raise Failed(f"{method} {path} of {service} at {self.site.name}: {error!r}") from None
                connection, again = None, False
                continue
            if connection.sock is not None:     # http.client closes it itself if this was the last answer
                self.kept[service] = connection
            return answer

    def connect(self, service):
        address = self.site.inside if self.inside else self.site.address
        port = self.site.port(service) if self.inside else layout.FRONTS[service]
        connection = http.client.HTTPConnection(self.site.address, layout.FRONTS[service], timeout=REQUEST_S)
        connection.sock = sites.connect(self.site, address, port, REQUEST_S)
        connection.auto_open = 0
        return connection

    def log_in(self):
        who = {"name": "admin", "domain": {"id": "default"}, "password": layout.PASSWORD}
        self.token = None
        answer = self.ask("identity", "POST", "/v3/auth/tokens", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": who}},
            "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}}, expect=201)
        self.token = answer.headers["X-Subject-Token"]
        return self

    def close(self):
        for connection in self.kept.values():
            connection.close()
        self.kept = {}

    # ---- what both parts do

    def make_image(self, name, length=65536):
        """Its id."""
        made = self.ask("image", "POST", "/v2/images", {"name": name, "disk_format": "raw", "container_format": "bare",
                                                         "visibility": "public"}, expect=201).json["id"]
        self.ask("image", "PUT", f"/v2/images/{made}/file", secrets.token_bytes(length),
                 {"Content-Type": "application/octet-stream"}, expect=204)
        return made

    def servers(self, query=""):
        return self.ask("compute", "GET", f"/v2.1/servers{query}", expect=200).json["servers"]

    def delete_servers(self):
        """All, and until they are gone."""
        for server in self.servers():
            self.ask("compute", "DELETE", f"/v2.1/servers/{server['id']}")
        wait_until(lambda: not self.servers(), f"the servers of {self.site.name} to be gone")


def wait_until(condition, what, pause_s=0.5):
    until = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > until:
            raise Failed(f"waited {BOUND_S} s in vain for {what}")
        time.sleep(pause_s)


class Lab:
    """Of so many sites in namespaces, 10 ms from each other unless set_round_trip() says otherwise. Ready once it is made."""

    def __init__(self, count, cheops=None):
        name = "bench" + secrets.token_hex(3)
        command = [ROOT / "lab" / "openstack" / "up", str(count), "--wan", "flat", "--attached", "--json", "--lab", name]
        say(f"starts a lab of {count} site{'s'[:count - 1]}")
        began = time.monotonic()
        self.process = subprocess.Popen(command + (["--cheops", cheops] if cheops else []), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)
        try:
            ready, _, _ = select.select([self.process.stdout], [], [], START_S)
            line = self.process.stdout.readline() if ready else b""
            if not line:
                raise Failed("there is no lab; it says above why" if ready else f"no lab within {START_S} s")
        except BaseException:
            self.close()
            raise
        self.start_s = time.monotonic() - began
        self.state = json.loads(line)
        self.folder = pathlib.Path(self.state["folder"])
        self.sites = {site: layout.Site(site, number, self.folder / site, about)
                      for number, (site, about) in enumerate(self.state["sites"].items(), 1)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """It ends with its standard input."""
        self.process.stdin.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()     # the kernel then ends what it has started, and the next `up` removes what is left
            self.process.wait()
        self.process.stdout.close()

    def set_round_trip(self, milliseconds):
        with control.Control(self.folder) as switch:
            switch.set("*<>*", delay=f"{milliseconds / 2}ms")

    # ---- what it has done, and its CPU

    def passed(self, site):
        """How many requests its agent has had so far, from whomever."""
        answer = sites.ask(self.sites[site], layout.API_PORT, "/cheops/v1/metrics", inside=True)
        lines = answer[2].decode().splitlines() if answer else []
        found = next((line for line in lines if line.startswith("cheops_requests_total ")), None)
        if found is None:
            raise Failed(f"the agent of {site} does not say how many requests it had")
        return int(found.split()[1])

    def agent_cpu(self, site):
        return cpu_seconds_of(self.state["processes"][f"{site}/agent"]["pid"])

    def cpu(self):
        """{pid: seconds} of all processes at all sites."""
        spaces = {f"net:[{os.stat(netns.path_of(site.netns)).st_ino}]" for site in self.sites.values()}
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns" / "net") in spaces:
                    found[int(entry.name)] = cpu_seconds_of(int(entry.name))
            except OSError:
                continue    # it has ended meanwhile
        return found


def cpu_between(before, after):
    """Seconds that the processes spent meanwhile; of one that began meanwhile all, of one that ended nothing."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
