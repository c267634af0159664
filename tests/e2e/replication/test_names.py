"""One name, made at several sites while they are apart: one resource in the end, under both meta-ids, and both users are told."""
import types

import pytest

from demo_process import ask, wait_for
from test_apart import ALL, SITES, Apart
from test_operations import Events


class Names(Apart):
    def make(self, site, size, name="x"):
        self.alone(site)
        made = self.ask(site, "POST", "/pools", {"name": name, "size": size}, ALL)
        assert made.status == 201, made
        return made

    def api(self, site):
        return "http://" + self.agents[site].config["api"]

    def operation(self, site, operation):
        return ask(self.api(site) + f"/cheops/v1/operations/{operation}")

    def listed(self, site):
        return ask(self.api(site) + "/cheops/v1/replicants").json["replicants"]

    def wait_settled(self, count=1):
        for site in SITES:
            wait_for(lambda site=site: [each["state"] for each in self.listed(site)] == ["settled"] * count,
                     f"{count} settled replicants at {site}: {self.listed(site)}")


@pytest.fixture
def names(mesh):
    return Names(mesh)


def test_two_become_one(names, cheops):
    first = names.make("Site1", 100)
    grown = names.ask("Site1", "POST", f"/pools/{first.json['id']}/grow", {"by": 1})
    second = names.make("Site2", 500)
    changed = names.ask("Site2", "POST", f"/pools/{second.json['id']}/grow", {"by": 20})
    assert (grown.status, changed.status) == (200, 200)
    winner, loser = first.json["id"], second.json["id"]
    assert winner != loser
    names.alone("Site1")
    events = Events(types.SimpleNamespace(sites={"Site1": {"api": names.api("Site1")}}), "Site1")
    names.together()
    # The one user is told of the other, where he is.
    merged = events.until(lambda event: event["event"] == "merged")[-1]["data"]
    assert (merged["replicant"], merged["into"]) == (loser, winner)
    events.close()
    names.wait("x", {"name": "x", "size": 121, "notes": []})
    names.wait_settled()
    for site in SITES:
        assert len(names.services[site].ask("GET", "/pools?name=x").json["pools"]) == 1
        # Both ids lead to it, and what is shown has the one that stays.
        for each in (winner, loser):
            assert names.ask(site, "GET", f"/pools/{each}").json["id"] == winner
        assert [pool["id"] for pool in names.ask(site, "GET", "/pools?name=x").json["pools"]] == [winner]
        assert [each["id"] for each in names.listed(site)] == [winner]
        # The other one hears that his create lost against which other one, and what became of his change.
        lost = names.operation(site, second.header("Cheops-Operation")).json
        assert lost["state"] == "superseded" and lost["superseded_by"] == first.header("Cheops-Operation")
        assert names.operation(site, changed.header("Cheops-Operation")).json["superseded_by"].startswith(winner)
    address = names.agents["Site3"].config["api"]
    shown = cheops("get", "pool", loser, "--api", address)
    assert shown.status == 0 and shown.out.startswith(f"network.pool {winner} (x)"), shown
    told = cheops("ops", "get", second.header("Cheops-Operation"), "--api", address)
    assert f"It was superseded by {first.header('Cheops-Operation')}" in told.out, told
    # By the old id it is changed, and deleted.
    assert names.ask("Site3", "PATCH", f"/pools/{loser}", {"size": 7}).status == 200
    names.wait("x", {"name": "x", "size": 7, "notes": []})
    assert names.ask("Site1", "DELETE", f"/pools/{loser}").status == 204
    names.wait("x", None)
    for each in (winner, loser):
        assert names.ask("Site2", "GET", f"/pools/{each}").status in (404, 410)


def test_three_become_one_and_agents_die(names):
    made = {site: names.make(site, size) for site, size in zip(SITES, (100, 200, 300))}
    for site in SITES:
        names.alone(site)
        assert names.ask(site, "POST", f"/pools/{made[site].json['id']}/notes", {"text": f"of {site}"}).status == 200
    names.together()
    # Whoever is killed in the middle goes on where it was.
    for site in ("Site2", "Site3", "Site2"):
        names.agents[site].kill()
        names.agents[site] = names.mesh.again(names.agents[site])
    names.wait_settled()
    winner = made["Site1"].json["id"]
    for site in SITES:
        pool = names.behind(site, "x")
        assert pool["size"] == 100 and sorted(pool["notes"]) == [f"of {each}" for each in SITES], pool
        for each in made.values():
            assert names.ask(site, "GET", f"/pools/{each.json['id']}").json["id"] == winner


def test_different_sites_stay_two(names):
    """They share some members only: as before, it is shown as rejected, and the others keep theirs."""
    first = names.make("Site1", 100)
    names.alone("Site2")
    second = names.ask("Site2", "POST", "/pools", {"name": "x", "size": 500}, "Site2 & Site3")
    assert second.status == 201
    names.together()
    wait_for(lambda: names.operation("Site1", first.header("Cheops-Operation")).json["state"] == "rejected",
             "the create of the first to be rejected at the second")
    members = names.operation("Site1", first.header("Cheops-Operation")).json["members"]
    assert {each["site"]: each.get("status") for each in members}["Site2"] == 409
    assert names.behind("Site1", "x")["size"] == 100 and names.behind("Site2", "x")["size"] == 500


def test_by_the_other_id_sites_are_dropped_too(names, cheops):
    first = names.make("Site1", 100)
    second = names.make("Site2", 500)
    names.together()
    names.wait("x", {"name": "x", "size": 100, "notes": []})
    names.wait_settled()
    dropped = cheops("replicant", "drop", second.json["id"], "Site3", "--wait", "--api", names.agents["Site1"].config["api"])
    assert dropped.status == 0, dropped
    wait_for(lambda: names.services["Site3"].ask("GET", "/pools?name=x").json["pools"] == [], "the copy at Site3 to be deleted")
    for site in ("Site1", "Site2"):
        wait_for(lambda site=site: [{each["site"] for each in one["members"]} for one in names.listed(site)] == [{"Site1", "Site2"}],
                 f"{site} to know of it")
        assert names.ask(site, "GET", f"/pools/{second.json['id']}").json["id"] == first.json["id"]
