"""Sites of OpenStack for the tests: lab/openstack as a user starts it, in the namespaces of the WAN lab, and what tests want to do.

    lab.openstack("Site1", "server list", scope="{compute: Site2}").rows      the real client, with the plugin
    lab.ask("Site1", "compute", "/v2.1/servers")                              one request, at the agent's front
    lab.ask("Site1", "compute", "/v2.1/servers", direct=True)                 the same past the agent: OpenStack alone

One lab serves all tests of a run: it takes a minute to start, and more where the packages have to be installed first. So a test
cleans up what would be in the way of others, and gives its things names of its own.
"""
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import secrets
import select
import shlex
import socket
import subprocess
import sys
import tempfile

import yaml

for neighbour in ("tests/e2e", "tests/e2e/wan", "lab/openstack"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / neighbour))

import wan_lab  # noqa: E402
from oslib import configs, layout  # noqa: E402
from wan_lab import CHEOPS, ROOT, Answer  # noqa: E402, F401
from wanlib.control import Control  # noqa: E402

COMMANDS = ROOT / "lab" / "openstack"
START_S = 1500  # packages to fetch and unpack, schemas to make, on a busy machine
BOUND_S = 240  # of what services do, and of one command of the client: it may wait for a time-out of an agent
FRONTS = layout.FRONTS
NOVA = ("nova-conductor", "nova-scheduler", "nova-compute", "nova-api")  # its API at last: it is the one that is seen to be there
LOG_LINES = 25  # of each file that grew while a test failed
PORTS = {"keystone": 25000, "glance": 29292, "nova-api": 28774, "placement": 28778, "rabbitmq": 5672}  # of the services themselves
PASSWORD = "secret"


def wait_for(condition, what):
    """As in the WAN lab, but longer, and looking less often: services have to work for each answer."""
    return wan_lab.wait_for(condition, what, BOUND_S, 0.15)


class Run:
    """What a command of the client gave."""

    def __init__(self, run):
        self.status = run.returncode
        self.out = run.stdout
        self.err = run.stderr

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"

    @property
    def json(self):
        assert self.status == 0, self
        return json.loads(self.out)

    def refused(self, *texts):
        """It failed, and says these."""
        assert self.status != 0, self
        for text in texts:
            assert text in self.err, self
        return self


class Lab(wan_lab.Lab):
    """Of two sites, unless told otherwise. Ready once it is made."""

    def __init__(self, sites=2):
        self.id = "t" + secrets.token_hex(4)
        self.started = []
        self.tokens = {}
        self.marks = {}
        self.numbers = itertools.count(1)
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [COMMANDS / "up", str(sites), "--wan", "flat", "--attached", "--json", "--lab", self.id],
            env=wan_lab.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            start_new_session=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.stdin.close()
            self.process.wait(wan_lab.BOUND_S)
            raise AssertionError(f"no lab: {self.stderr() or 'it takes too long'}")
        self.state = json.loads(line)
        self.folder = pathlib.Path(self.state["folder"])
        self.base = self.folder / "tests"
        self.base.mkdir()
        self.sites = list(self.state["sites"])
        self.control = Control(self.folder)

    def close(self):
        """Ends the lab, and sees that nothing is left of it, and that no sanitizer had a complaint."""
        logs = {site: self.log(site) for site in self.sites}
        self.control.close()
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait(wan_lab.BOUND_S)
        self.process.stdin.close()
        status = self.process.wait(wan_lab.BOUND_S)
        self.process.stdout.close()
        said = self.stderr()
        self.errors.close()
        assert status == 0, said
        assert self.id not in wan_lab.netns.all_of_labs() and not self.folder.exists()
        for site, text in logs.items():
            assert "Sanitizer" not in text and "runtime error:" not in text, f"{site}: {text}"

    # ---- the client

    def command(self, site, words, scope=None, user="admin", plugin=True):
        """(command, environment) of the client at a site. `words`: as a user types them."""
        given = shlex.split(words) if isinstance(words, str) else list(map(str, words))
        option = ["--scope", scope] if scope else []
        env = {name: value for name, value in os.environ.items() if name != "OS_SCOPE"}
        program = ["env", "-u", "PYTHONPATH"] if not plugin else []
        return [str(COMMANDS / "run"), "--lab", self.id, "--user", user, site, *program, "openstack", *given, *option], env

    def openstack(self, site, words, scope=None, env=None, **options):
        command, plain = self.command(site, words, scope, **options)
        run = subprocess.run(command, env={**plain, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=BOUND_S, check=False)
        return Run(run)

    def all_at_once(self, wanted):
        """[(site, words, scope)]: all commands side by side; what each gave, in this order."""
        running = []
        for site, words, scope in wanted:
            command, env = self.command(site, words, scope)
            running.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True))
        given = []
        for child in running:
            out, err = child.communicate(timeout=BOUND_S)
            given.append(Run(subprocess.CompletedProcess([], child.returncode, out, err)))
        return given

    # ---- requests

    def token(self, site, user="admin"):
        """A token of that site's Keystone; one per site and user."""
        if (site, user) not in self.tokens:
            who = {"name": user, "domain": {"id": "default"}, "password": PASSWORD}
            answer = self.ask(site, "identity", "/v3/auth/tokens", "POST", body={"auth": {
                "identity": {"methods": ["password"], "password": {"user": who}},
                "scope": {"project": {"name": user, "domain": {"id": "default"}}}}}, token=None)
            assert answer.status == 201, answer
            self.tokens[site, user] = answer.header("X-Subject-Token")
        return self.tokens[site, user]

    def ask(self, site, service, path, method="GET", headers=None, body=None, scope=None, token="admin", direct=False,
            timeout_s=BOUND_S):
        """A request from that site, to the front of its agent; `direct`: past it, as if there were none. "api" is the agent's
        own. `token`: of which user; None: without."""
        front = (self.address(site), FRONTS[service]) if service != "api" else ("127.0.0.1", wan_lab.API_PORT)
        there = ("127.0.0.1", front[1] + 20000) if direct else front
        fields = {"Host": f"{front[0]}:{front[1]}", **({"Scope": scope} if scope else {}), **(headers or {})}
        if service != "api" and token:
            fields.setdefault("X-Auth-Token", self.token(site, token))
        if service == "compute":
            fields.setdefault("OpenStack-API-Version", "compute 2.90")
        if isinstance(body, dict):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(*there, timeout=timeout_s)
        connection.sock = self.socket(site, socket.AF_INET)
        try:
            connection.sock.settimeout(timeout_s)
            connection.sock.connect(there)
            connection.request(method, path, body, fields)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    @contextlib.contextmanager
    def tokens_for(self, site, life_s):
        """Tokens that this site's Keystone gives meanwhile are good for so long. How long stands in the token: it stays so."""
        path = self.path(site, "etc", "keystone", "keystone.conf")
        before = path.read_text(encoding="utf-8")
        assert "expiration = " in before
        try:
            path.write_text(re.sub(r"expiration = \d+", f"expiration = {life_s}", before), encoding="utf-8")
            self.restart_part(site, "keystone")
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            self.restart_part(site, "keystone")

    # ---- logs

    def logs(self):
        """What agents and services of all sites log (.log) and print (.out)."""
        return [path for site in self.sites for folder in (self.path(site), self.path(site, "log"))
                for path in sorted(folder.glob("*.log")) + sorted(folder.glob("*.out"))]

    def mark_logs(self):
        self.marks = {path: path.stat().st_size for path in self.logs()}

    def logged_since_mark(self):
        """[(title, the last lines)] of each that has grown."""
        grown = []
        for path in self.logs():
            with open(path, "rb") as log:
                log.seek(self.marks.get(path, 0))
                lines = log.read().decode(errors="replace").splitlines()
            if lines:
                grown.append((f"{path.relative_to(self.folder)}: {len(lines)} lines since the test began",
                              "\n".join(line[:500] for line in lines[-LOG_LINES:])))
        return grown

    # ---- OpenStack

    def name(self, what):
        """One that no other test has."""
        return f"{what}-{next(self.numbers)}"

    def file(self, length_bytes=65536):
        """A new file, with bytes that no other has."""
        path = self.base / self.name("file")
        path.write_bytes(secrets.token_bytes(length_bytes))
        return path

    def make_image(self, site, name=None, **members):
        """At that site alone; its id."""
        made = self.ask(site, "image", "/v2/images", "POST", body={
            "name": name or self.name("image"), "disk_format": "raw", "container_format": "bare", "visibility": "public",
            **members})
        assert made.status == 201, made
        stored = self.ask(site, "image", f"/v2/images/{made.json['id']}/file", "PUT", body=secrets.token_bytes(4096),
                          headers={"Content-Type": "application/octet-stream"})
        assert stored.status == 204, stored
        return made.json["id"]

    def boot(self, site, image, scope=None, name=None, **options):
        """Asks Nova for a server, without waiting for it."""
        return self.ask(site, "compute", "/v2.1/servers", "POST", scope=scope, body={"server": {
            "name": name or self.name("server"), "imageRef": image, "flavorRef": "1", "networks": "none"}}, **options)

    def servers(self, site):
        """{name: server} of that site's Nova, past the agent."""
        answer = self.ask(site, "compute", "/v2.1/servers/detail?all_tenants=1", direct=True)
        assert answer.status == 200, answer
        return {server["name"]: server for server in answer.json["servers"]}

    def wait_made(self, site, name):
        """One that comes from another site; and until it is active."""
        wait_for(lambda: name in self.servers(site), f"{name} at {site}")
        return self.wait_active(site, name)

    def wait_active(self, site, name):
        def settled():
            server = self.servers(site).get(name)
            assert server is not None and server["status"] in ("BUILD", "ACTIVE"), server
            return server if server["status"] == "ACTIVE" else None

        return wait_for(settled, f"{name} at {site} to be active")

    def delete_servers(self):
        """All, at all sites: what a test leaves behind is in nobody's way."""
        for site in self.sites:
            for server in self.servers(site).values():
                self.ask(site, "compute", f"/v2.1/servers/{server['id']}", "DELETE", direct=True)
            wait_for(lambda site=site: not self.servers(site), f"the servers of {site} to be gone")

    def delete_images(self):
        """All, at all sites: a list of them is one page then."""
        for site in self.sites:
            while images := self.ask(site, "image", "/v2/images", direct=True).json["images"]:
                for image in images:
                    self.ask(site, "image", f"/v2/images/{image['id']}", "DELETE", direct=True)

    @contextlib.contextmanager
    def carried(self, carry, *sites):
        """At these sites (all, if none is named) the scope follows Nova by this, as if `up --carry` had made them so."""
        self.carry_by(carry, sites or self.sites)
        try:
            yield
        finally:
            self.carry_by(self.state["carry"], sites or self.sites)

    def carry_by(self, carry, sites):
        for site in sites:
            made = layout.Site(site, self.sites.index(site) + 1, self.folder / site, self.state["sites"][site])
            self.configure(site, services=yaml.safe_load(configs.agent(made, carry))["services"])
            path, wanted = self.path(site, "etc", "nova", "nova.conf"), configs.nova(made, carry)
            if path.read_text(encoding="utf-8") != wanted:
                path.write_text(wanted, encoding="utf-8")
                for change in (self.kill_part, self.start_part):
                    for part in NOVA:
                        change(site, part)

    @contextlib.contextmanager
    def apart(self, *pair):
        """Two sites cannot reach each other, for as long as this lasts; then until they see each other again."""
        first, second = pair or self.sites[:2]
        self.cut(first, second)
        try:
            yield
        finally:
            self.heal()
            self.wait_present()

    # ---- processes

    def listens_on(self, site, part):
        """Does it accept connections? The database server has no port but a socket; some of Nova's services have neither."""
        if part in NOVA and part not in PORTS:
            return wan_lab.process.is_alive(self.state["processes"][f"{site}/{part}"])
        if part == "mariadb":
            made, where = socket.socket(socket.AF_UNIX), str(self.path(site, "mariadb", "sock"))
        else:
            made, where = self.socket(site, socket.AF_INET), ("127.0.0.1", PORTS[part])
        try:
            made.connect(where)
            return True
        except OSError:
            return False
        finally:
            made.close()

    def kill_part(self, site, part):
        """A service of a site, and until the processes that it had started have noticed: they have its port."""
        self.kill(site, part)
        wait_for(lambda: not self.listens_on(site, part), f"what {part} of {site} had started to end")

    def start_part(self, site, part):
        """After kill_part(); until it can be used again, at the agent's front where it has one."""
        how = self.state["started"][f"{site}/{part}"]
        with open(how["log"], "ab") as log:
            child = self.popen(site, how["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=how["env"],
                               cwd=how["folder"], start_new_session=True)
        self.state["processes"][f"{site}/{part}"] = wan_lab.process.describe(child.pid)
        service = next((name for name, port in FRONTS.items() if port + 20000 == PORTS.get(part)), None)

        def answers():
            assert child.poll() is None, pathlib.Path(how["log"]).read_text(encoding="utf-8", errors="replace")[-2000:]
            return self.listens_on(site, part) and (not service or self.ask(site, service, "/", token=None).status < 500)

        wait_for(answers, f"{part} of {site}")

    def restart_part(self, site, part):
        self.kill_part(site, part)
        self.start_part(site, part)

    @contextlib.contextmanager
    def without(self, site, part):
        """That is killed, for as long as this lasts; `agent`, too."""
        if part == "agent":
            self.kill(site)
        else:
            self.kill_part(site, part)
        try:
            yield
        finally:
            if part == "agent":
                self.start_agent(site)
            else:
                self.start_part(site, part)
            self.wait_present()
