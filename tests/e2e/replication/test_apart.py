"""Changes that were made apart, without a lab: only one agent runs at a time."""
import pytest

from demo_process import ask, wait_for

SITES = ("Site1", "Site2", "Site3")
ALL = " & ".join(SITES)


class Apart:
    def __init__(self, mesh):
        self.mesh = mesh
        self.services = {site: mesh.service("network", site) for site in SITES}
        self.agents = {site: mesh.agent(site, {"network": self.services[site].url}, application="sample") for site in SITES}
        mesh.join(*self.agents.values())
        for site in SITES:  # each knows all others when it starts again
            table = self.mesh.folder / f"{site}.state" / "sites"
            wait_for(lambda site=site, table=table: table.exists() and all(
                other.encode() in table.read_bytes() for other in SITES if other != site), "the table of sites on the disk")

    def ask(self, site, method, path, body=None, scope=None):
        return ask(self.agents[site].url("network") + path, method, {"Scope": scope} if scope else None, json_body=body)

    def everywhere(self, body):
        """A pool at all sites, which know that they have it. Who is stopped before has to find out when it starts."""
        made = ask(self.agents["Site1"].url("network") + "/pools", "POST", {"Scope": ALL, "Prefer": "wait=60"}, json_body=body)
        assert made.status == 201 and "pending" not in made.header("Cheops-Replicas"), made
        return f"/pools/{made.json['id']}"

    def behind(self, site, name):
        """The pool of that name, as the service itself has it; without what may differ."""
        found = self.services[site].ask("GET", f"/pools?name={name}").json["pools"]
        return {key: value for key, value in found[0].items() if key not in ("id", "created", "used", "status", "hosts")} if found else None

    def wait(self, name, wanted, sites=SITES):
        for site in sites:
            wait_for(lambda site=site: self.behind(site, name) == wanted, f"{name} at {site} to be {wanted}")

    def alone(self, site, *requests):
        """Only this agent runs while these are asked of it."""
        for other in SITES:
            if self.agents[other].process.poll() is None:
                self.agents[other].stop()
        self.agents[site] = self.mesh.again(self.agents[site])
        for request in requests:
            answer = self.ask(site, *request)
            assert answer.status in (200, 201, 204), answer

    def together(self):
        for site in SITES:
            if self.agents[site].process.poll() is not None:
                self.agents[site] = self.mesh.again(self.agents[site])


@pytest.fixture
def apart(mesh):
    return Apart(mesh)


def test_set_and_increments(apart):
    """DESIGN's example: 23; then 29, +13 and -12, each at a site of its own."""
    path = apart.everywhere({"name": "p", "size": 23})
    apart.wait("p", {"name": "p", "size": 23, "notes": []})
    apart.alone("Site2", ("POST", path + "/grow", {"by": 13}))
    apart.alone("Site1", ("PUT", path, {"name": "p", "size": 29}))
    apart.alone("Site3", ("POST", path + "/grow", {"by": -12}))
    apart.together()
    apart.wait("p", {"name": "p", "size": 30, "notes": []})


def test_what_one_site_refuses_stays_with_the_others(apart):
    """A repair comes from those who have accepted everything, and never from who has not."""
    path = apart.everywhere({"name": "before", "size": 23})
    apart.wait("before", {"name": "before", "size": 23, "notes": []})
    assert apart.services["Site3"].post("/pools", {"name": "after", "size": 1}).status == 201  # its own, under that name
    apart.alone("Site1", ("PATCH", path, {"name": "after", "size": 24}))
    apart.alone("Site2", ("POST", path + "/grow", {"by": 13}))
    apart.alone("Site3", ("POST", path + "/grow", {"by": -12}))
    apart.together()
    apart.wait("after", {"name": "after", "size": 25, "notes": []}, SITES[:2])
    apart.wait("before", {"name": "before", "size": 24, "notes": []}, SITES[2:])
    assert apart.behind("Site3", "after")["size"] == 1
