"""Requests of which only the body says what they do, under the description `openstack`: servers with actions, several networks at
once. The services are played: just enough of Nova and Neutron."""
import uuid

import pytest

from demo_process import ask, wait_for
from mesh_maker import wait_present
from played_service import PlayedService

SITES = ("Site1", "Site2")
ALL = " & ".join(SITES)
PROBLEMS = {"Accept": "application/json, application/problem+json"}


class Cloud(PlayedService):
    """The services of one site."""

    def __init__(self, site):
        self.site = site
        self.items = {}
        self.acted = []  # (id, the body's first member)
        super().__init__()

    def make(self, kind, members):
        made = {**members, "id": str(uuid.uuid4())}
        self.items[made["id"]] = made
        return made

    def handle(self, method, path, body):
        parts = path.split("/")[2:]
        if method == "POST" and len(parts) == 1 and parts[0] in body:
            return 201, {parts[0]: [self.make(parts[0], each) for each in body[parts[0]]]}
        if method == "POST" and len(parts) == 1:
            return (202 if parts[0] == "servers" else 201), {parts[0][:-1]: self.make(parts[0], body[parts[0][:-1]])}
        if len(parts) < 2 or parts[1] not in self.items:
            return 404, {"itemNotFound": {"code": 404}}
        if parts[-1] == "action":
            action = next(iter(body), None)
            self.acted.append((parts[1], action))
            return (200, {"output": f"console of {self.site}"}) if action == "os-getConsoleOutput" else (202, None)
        return 200, {parts[0][:-1]: self.items[parts[1]]}


class Clouds:
    def __init__(self, mesh):
        self.sites = {site: mesh.keep(Cloud(site)) for site in SITES}
        self.agents = {site: mesh.agent(site, {"compute": cloud.url, "network": cloud.url}, application="openstack")
                       for site, cloud in self.sites.items()}
        mesh.join(*self.agents.values())
        wait_present(list(self.agents.values()))

    def ask(self, site, path, body, scope=None, service="compute", headers=None):
        return ask(self.agents[site].url(service) + path, "POST", {**({"Scope": scope} if scope else {}), **(headers or {})},
                   json_body=body)

    def server(self):
        made = self.ask("Site1", "/v2.1/servers", {"server": {"name": "vm"}}, ALL, headers={"Prefer": "wait=30"})
        assert made.status == 202, made
        return made.json["server"]["id"]

    def acted(self, site):
        return [action for _, action in self.sites[site].acted]


@pytest.fixture
def clouds(mesh):
    return Clouds(mesh)


def test_an_action_that_reads_runs_once(clouds):
    server = clouds.server()
    read = clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"os-getConsoleOutput": {"length": 5}})
    assert read.status == 200 and read.json == {"output": "console of Site1"} and not read.header("Cheops-Operation"), read
    # In chunks, and by the local id; at the other replica.
    local = next(iter(clouds.sites["Site2"].items))
    body = (piece for piece in (b'{"os-getCons', b'oleOutput": {}}'))
    read = ask(clouds.agents["Site2"].url("compute") + f"/v2.1/servers/{local}/action", "POST",
               {"Content-Type": "application/json"}, body)
    assert read.status == 200 and read.json == {"output": "console of Site2"}, read
    # Where the scope says.
    read = clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"os-getConsoleOutput": {}}, "Site2")
    assert read.status == 200 and read.json == {"output": "console of Site2"}, read
    read = clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"os-getConsoleOutput": {}}, "Site2; Site1")
    assert read.status == 200 and read.json == {"output": "console of Site2"}, read
    read = clouds.ask("Site2", f"/v2.1/servers/{server}/action", {"os-getConsoleOutput": {}}, ALL)
    assert read.status == 200 and read.json == {"output": "console of Site2"}, read
    assert clouds.acted("Site1") == ["os-getConsoleOutput"] and clouds.acted("Site2") == ["os-getConsoleOutput"] * 4


def test_an_action_of_the_site_is_the_sites_own(clouds):
    server = clouds.server()
    assert clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"os-migrateLive": {"host": None}}).status == 202
    assert clouds.acted("Site1") == ["os-migrateLive"] and clouds.sites["Site1"].acted[0][0] in clouds.sites["Site1"].items
    # One that changes it is done by all, and after it: so the other one would have come by now.
    done = clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"reboot": {"type": "SOFT"}}, headers={"Prefer": "wait=30"})
    assert done.status == 202 and done.header("Cheops-Operation"), done
    wait_for(lambda: clouds.acted("Site2") == ["reboot"], "the reboot at Site2")
    assert clouds.acted("Site1") == ["os-migrateLive", "reboot"]


def test_expecting_to_go_on_is_answered_once(clouds):
    server = clouds.server()
    read = clouds.ask("Site1", f"/v2.1/servers/{server}/action", {"os-getConsoleOutput": {}},
                      headers={"Expect": "100-continue"})
    assert read.status == 200 and read.json == {"output": "console of Site1"}, read


def test_what_nobody_described_is_refused(clouds):
    server = clouds.server()
    refused = clouds.ask("Site1", f"/v2.1/servers/{server}/action", [], headers=PROBLEMS)
    assert refused.status == 400 and refused.problem["type"] == "not-described", refused
    # In the form of compute, for who knows no problem documents.
    refused = clouds.ask("Site1", f"/v2.1/servers/{server}/action", [])
    assert refused.status == 400 and refused.header("Cheops-Problem").startswith("not-described; "), refused
    assert refused.json["badRequest"]["code"] == 400, refused
    assert not clouds.acted("Site1") and not clouds.acted("Site2")


def test_several_at_once_are_not_one(clouds):
    """One of them is replicated; several, with `&`, are refused before anything is made."""
    made = clouds.ask("Site1", "/v2.0/networks", {"network": {"name": "one"}}, ALL, "network", {"Prefer": "wait=30"})
    assert made.status == 201 and made.header("Cheops-Operation")
    assert [len(cloud.items) for cloud in clouds.sites.values()] == [1, 1]
    refused = clouds.ask("Site1", "/v2.0/networks", {"networks": [{"name": "two"}, {"name": "three"}]}, ALL, "network", PROBLEMS)
    assert refused.status == 501 and "create-many" in refused.json["detail"] and "each item" in refused.json["detail"], refused
    assert [len(cloud.items) for cloud in clouds.sites.values()] == [1, 1]
    own = clouds.ask("Site1", "/v2.0/networks", {"networks": [{"name": "two"}, {"name": "three"}]}, None, "network")
    assert own.status == 201 and [len(cloud.items) for cloud in clouds.sites.values()] == [3, 1]
