"""OpenStack and an agent at each site of a lab, and the order in which they start.

  1. the template (template.py), if there is none yet
  2. at each site: configuration, the database from the template; database server, broker, network stub
  3. the agents, which join as an operator would have them join: from here on the usual ports answer
  4. Keystone, Glance, Placement; Nova's conductor and scheduler, which end if Keystone or Placement does not answer, so not
     before; then its API and its compute
  5. computes have registered, and are mapped to the cell; a flavor
"""
import http.client
import json
import shutil
import socket

from wanlib import agents, netns
from wanlib.errors import LabError

from . import configs, template
from .layout import API_PORT, BROKER_PORT, FRONTS, PASSWORD, PLACEHOLDER, Site

FLAVOR = {"id": "1", "name": "m1.tiny", "ram": 64, "disk": 1, "vcpus": 1}


def connect(site, address, port, timeout_s=5):
    made = netns.make_socket(site.netns) if site.netns else socket.socket()
    made.settimeout(timeout_s)
    made.connect((address, port))
    return made


def ask(site, port, target, method="GET", body=None, headers=None, inside=False, timeout_s=60):
    """(status, headers, body) of a request at a site, from that site. None: nobody answers."""
    address = site.inside if inside else site.address
    connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
    try:
        connection.sock = connect(site, address, port, timeout_s)
        connection.request(method, target, json.dumps(body) if body else None,
                           {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def listens(site, port):
    try:
        connect(site, site.inside, port).close()
        return True
    except OSError:
        return False


class Agents(agents.Agents):
    """As in the WAN lab, with other fronts, and perhaps without namespaces."""

    def __init__(self, sites, lab, carry):
        super().__init__(lab.options.cheops, None, lab.sites, lab)
        self.openstack = sites  # {name: Site}
        self.carry = carry

    def start(self):
        for name, site in self.openstack.items():
            configs.write(self.folder(name) / "agent.yaml", configs.agent(site, self.carry))
        self.start_mesh(*self.joined)

    def api(self, name, target):
        answer = ask(self.openstack[name], API_PORT, target, inside=True)
        return answer[2] if answer and answer[0] == 200 else None

    def wait_for_agent(self, site):
        self.wait(site, "agent", lambda: self.api(site, "/cheops/v1/health") is not None, "answer at its API")

    def present_count(self, site):
        answer = self.api(site, "/cheops/v1/sites")
        return sum(known["shown"] == "present" for known in json.loads(answer)["sites"]) if answer else 0

    def wait_for_view(self, site):
        self.wait(site, "agent", lambda: self.present_count(site) == len(self.joined), f"see all {len(self.joined)} sites")


class OpenStack:
    """Of one lab, whose supervisor lends start_part(), wait_part(), run_all() and say()."""

    def __init__(self, lab):
        self.lab = lab
        self.sites = {name: Site(name, number, lab.folder / name, about)
                      for number, (name, about) in enumerate(lab.sites.items(), 1)}

    def start(self):
        made = template.get(self.lab)
        self.each(lambda site: self.prepare(site, made))
        self.each(self.start_base)
        self.lab.say("database servers and brokers are started")
        Agents(self.sites, self.lab, self.lab.options.carry).start()
        self.lab.say("agents see each other")
        self.each(self.wait_for_database)
        self.each(self.adapt)
        self.start_services("identity", "keystone", "/v3")
        self.each(self.start_agent_token)
        self.start_services("image", "glance", "/")
        self.start_services("placement", "placement", "/")
        self.start_nova()
        self.each(self.make_flavor)
        self.lab.say("all is up")

    def each(self, step):
        for site in self.sites.values():
            self.lab.check()
            step(site)

    def prepare(self, site, made):
        site.folder.mkdir(mode=0o700)
        configs.services(site, self.lab.options.carry)
        shutil.copytree(made / "keys", site.folder / "keys")
        shutil.copytree(made / "mariadb", site.folder / "mariadb", ignore=shutil.ignore_patterns("sock", "pid"))

    def start_base(self, site):
        for name in ("mariadb", "epmd", "rabbitmq", "network-stub"):
            self.lab.start_part(site, name)

    def wait_for_database(self, site):
        self.lab.wait_part(site, "mariadb", lambda: template.sql(site, "SELECT 1") is not None, "answer on its socket")

    def adapt(self, site):
        """From the template to this site: its catalogue names its own agent."""
        if template.sql(site, f"UPDATE keystone.endpoint SET url = replace(url, '{PLACEHOLDER}', '{site.address}')") is None:
            raise LabError(f"the database server of {site.name} refuses to change the catalogue")

    def start_services(self, service, name, target):
        """At all sites; then until all answer, at the agents' fronts."""
        self.each(lambda site: self.lab.start_part(site, name))

        def answers(site):
            answer = ask(site, FRONTS[service], target)
            return answer is not None and answer[0] < 500

        self.each(lambda site: self.lab.wait_part(site, name, lambda: answers(site), f"answer on port {site.port(service)}"))
        self.lab.say(f"{name} answers everywhere")

    def start_agent_token(self, site):
        """What the agent itself is, at the services of its site: it stays, as tokens do not."""
        made = site.folder / "agent.token"
        before = made.read_text(encoding="utf-8")
        self.lab.start_part(site, "agent-token")
        self.lab.wait_part(site, "agent-token", lambda: made.read_text(encoding="utf-8") != before, "get a token")

    def start_nova(self):
        self.each(lambda site: self.lab.wait_part(site, "rabbitmq", lambda: listens(site, BROKER_PORT), "listen"))
        self.lab.say("brokers listen")
        for name in ("nova-conductor", "nova-scheduler", "nova-compute"):
            self.each(lambda site, name=name: self.lab.start_part(site, name))
        self.start_services("compute", "nova-api", "/")
        self.each(lambda site: self.lab.wait_part(
            site, "nova-compute", lambda: template.sql(site, "SELECT 1 FROM nova.compute_nodes") not in ("", None), "register"))
        self.each(lambda site: self.lab.run_all({"nova-hosts": [
            "/usr/bin/nova-manage", "--config-file", site.folder / "etc/nova/nova.conf", "cell_v2", "discover_hosts"]}, site,
            wait=False))
        self.lab.wait_all()
        self.lab.say("computes are mapped to their cells")

    def make_flavor(self, site):
        user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
        answer = ask(site, FRONTS["identity"], "/v3/auth/tokens", "POST", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}})
        if answer is None or answer[0] != 201:
            raise LabError(f"nobody can log in at {site.name}: Keystone answers {answer}")
        made = ask(site, FRONTS["compute"], "/v2.1/flavors", "POST", {"flavor": FLAVOR},
                   {"X-Auth-Token": answer[1]["X-Subject-Token"]})
        if made is None or made[0] != 200:
            raise LabError(f"no flavor can be made at {site.name}: Nova answers {made}")
