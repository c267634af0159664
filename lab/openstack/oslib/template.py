"""What all sites begin with: the schemas of all services, Keystone's keys, users, projects, roles and catalogue.

It is made once for a version of the packages, and copied to each site; that is also why sites understand each other's tokens,
and why a project has the same id at all of them. An operator of real sites does the same once (docs/openstack.md): the keys are
copied, and users and projects come from one place. In the catalogue stands a placeholder for the address of the site.
"""
import hashlib
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import threading
import time

from wanlib import place
from wanlib.errors import LabError

from . import commands, configs
from .layout import AGENT, DATABASES, FRONTS, PASSWORD, PLACEHOLDER, REGION, Site

PACKAGES = ("keystone", "glance-api", "placement-api", "nova-api", "mariadb-server-core")
SOURCES = ("configs.py", "commands.py", "layout.py", "template.py")
LOCK_S = 600
USERS = ("glance", "nova", "placement", AGENT)
CELL = "{scheme}://{username}:{password}@{hostname}/%s?{query}"  # Nova fills this in from each site's configuration
CELL_BROKER = "{scheme}://{username}:{password}@{hostname}:{port}/"


def version():
    """Another one for other packages, and for another lab."""
    said = subprocess.run(["dpkg-query", "-W", *PACKAGES], capture_output=True, check=False).stdout
    here = pathlib.Path(__file__).parent
    return hashlib.sha256(said + b"".join((here / name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def get(lab):
    """The folder of the template; made, where there is none of this version."""
    folder = lab.options.dir.absolute() / "template"
    stamp = folder / "version"

    def is_there():
        return stamp.exists() and stamp.read_text(encoding="utf-8") == version()

    if is_there():
        return folder
    lock = take_lock(lab)
    try:
        if not is_there():  # another lab may have made it meanwhile
            shutil.rmtree(folder, ignore_errors=True)
            Template(lab, folder).make()
            stamp.write_text(version(), encoding="utf-8")
    finally:
        lock.release()
    return folder


def take_lock(lab):
    """One is made at a time."""
    until = time.monotonic() + LOCK_S
    pause = threading.Event()
    while (lock := place.take("osTemplate")) is None:
        lab.check()
        if time.monotonic() > until:
            raise LabError(f"another lab of OpenStack has been making its template for more than {LOCK_S} s")
        pause.wait(0.5)
    return lock


class Template:
    """One that is being made, as if it were a site without a network."""

    def __init__(self, lab, folder):
        self.lab = lab
        self.folder = folder
        self.site = Site("template", 0, folder, {"netns": None, "address": PLACEHOLDER, "inside": "127.0.0.1"})

    def make(self):
        configs.services(self.site)
        self.start_database()
        self.lab.say("template: the database server runs")
        self.make_schemas()
        self.lab.say("template: schemas are made")
        self.fill_keystone()
        self.lab.say("template: users and catalogue are there")
        self.lab.stop_part("template/keystone")
        self.lab.stop_part("template/mariadb")
        for part in ("etc", "images", "staging", "tasks", "nova", "run", "rabbitmq", "log"):
            shutil.rmtree(self.folder / part)

    def start_database(self):
        folder = self.folder / "mariadb"
        folder.mkdir()
        self.lab.run_all({"mariadb-install-db": ["/usr/bin/mariadb-install-db", "--no-defaults", "--user=root",
                                                 f"--datadir={folder}/data", "--auth-root-authentication-method=normal",
                                                 "--skip-test-db"]}, self.site)
        self.lab.start_part(self.site, "mariadb")
        self.lab.wait_part(self.site, "mariadb", lambda: sql(self.site, "SELECT 1") is not None, "answer on its socket")
        sql(self.site, "".join(f"CREATE DATABASE {name};" for name in DATABASES)
            + f"CREATE USER os@localhost IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO os@localhost;")

    def make_schemas(self):
        etc = self.folder / "etc"
        keystone = ["/usr/bin/keystone-manage", "--config-dir", etc / "keystone"]
        nova = ["/usr/bin/nova-manage", "--config-file", etc / "nova/nova.conf"]
        owner = ["--keystone-user", "root", "--keystone-group", "root"]
        for kind in ("fernet", "credential"):
            (self.folder / "keys" / kind).mkdir(parents=True)
        url = f"http://{PLACEHOLDER}:{FRONTS['identity']}/v3"
        self.lab.run_all({
            "keystone-db": [*keystone, "db_sync"],
            "nova-api-db": [*nova, "api_db", "sync"],
            "glance-db": ["/usr/bin/glance-manage", "--config-file", etc / "glance/glance-api.conf", "db_sync"],
            "placement-db": ["/usr/bin/placement-manage", "--config-file", etc / "placement/placement.conf", "db", "sync"],
            "keystone-fernet": [*keystone, "fernet_setup", *owner],
            "keystone-credential": [*keystone, "credential_setup", *owner]}, self.site)
        self.lab.run_all({
            "nova-cell0": [*nova, "cell_v2", "map_cell0", "--database_connection", CELL % "nova_cell0"],
            "keystone-bootstrap": [*keystone, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION,
                                   "--bootstrap-public-url", url, "--bootstrap-internal-url", url,
                                   "--bootstrap-admin-url", url]}, self.site)
        self.lab.run_all({"nova-cell1": [*nova, "cell_v2", "create_cell", "--name", "cell1", "--database_connection",
                                         CELL % "{path}", "--transport-url", CELL_BROKER]}, self.site)
        self.lab.run_all({"nova-db": [*nova, "db", "sync"]}, self.site)

    def fill_keystone(self):
        """Through Keystone's API, on a socket of the template's own."""
        listen = self.folder / "run" / "keystone"
        command, env = commands.of(self.site, "keystone")
        command[command.index("--http-socket") + 1] = listen
        self.lab.start_part(self.site, "keystone", command, env)
        self.lab.wait_part(self.site, "keystone", lambda: Keystone(listen).answers(), "answer on its socket")
        Keystone(listen).fill()


class Keystone:
    """The API of the template's, on a UNIX socket."""

    def __init__(self, path):
        self.path = path
        self.token = None

    def ask(self, method, target, body=None):
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(60)
            connection.sock.connect(str(self.path))
            headers = {"Content-Type": "application/json", **({"X-Auth-Token": self.token} if self.token else {})}
            connection.request(method, "/v3" + target, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            said = response.read()
            if response.status >= 300:
                raise LabError(f"Keystone answers {method} {target} with {response.status}: {said.decode(errors='replace')}")
            return response.headers, json.loads(said) if said else None
        finally:
            connection.close()

    def answers(self):
        try:
            return self.ask("GET", "") is not None
        except (OSError, http.client.HTTPException):
            return False

    def log_in(self):
        user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
        self.token = self.ask("POST", "/auth/tokens", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}})[0]["X-Subject-Token"]

    def make(self, kind, **members):
        return self.ask("POST", f"/{kind}s", {kind: members})[1][kind]["id"]

    def grant(self, project, user, role):
        self.ask("PUT", f"/projects/{project}/users/{user}/roles/{role}")

    def fill(self):
        self.log_in()
        roles = {role["name"]: role["id"] for role in self.ask("GET", "/roles")[1]["roles"]}
        roles["service"] = self.make("role", name="service")
        service = self.make("project", name="service", domain_id="default")
        demo = self.make("project", name="demo", domain_id="default")
        user = self.make("user", name="demo", password=PASSWORD, domain_id="default", default_project_id=demo)
        self.grant(demo, user, roles["member"])
        for name in USERS:
            user = self.make("user", name=name, password=PASSWORD, domain_id="default")
            for role in ("admin", "service"):
                self.grant(service, user, roles[role])
        for name, kind, path in (("glance", "image", ""), ("placement", "placement", ""), ("nova", "compute", "/v2.1")):
            made = self.make("service", name=name, type=kind)
            for interface in ("public", "internal", "admin"):
                self.make("endpoint", service_id=made, interface=interface, region_id=REGION,
                          url=f"http://{PLACEHOLDER}:{FRONTS[kind]}{path}")


def sql(site, statements):
    """What the database server of a site answers, as rows of tabs; None: it does not."""
    run = subprocess.run(["/usr/bin/mariadb", "--no-defaults", "-N", "-S", str(site.folder / "mariadb/sock"), "-e", statements],
                         capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return run.stdout if run.returncode == 0 else None
