"""Copies that were changed behind the agents' backs: cheops get --verify notices, cheops repair puts it right."""
import json
import re
import urllib.parse

import pytest
import yaml
from api_description import check_answer

from demo_process import ask, wait_for
from test_credentials import Guarded
from test_operations import NOWHERE, Paused, api, follow, make

JSON_TYPE = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def run(cheops, demo):
    def run_it(*arguments, site="Site1"):
        return cheops(*arguments, "--api", urllib.parse.urlsplit(demo.sites[site]["api"]).netloc)
    return run_it


class Copies:
    """A resource at several sites, as the services themselves have it."""

    def __init__(self, demo, name, scope="Site1 & Site2 & Site3", path="/pools", service="network", **members):
        self.demo, self.path, self.service = demo, path, service
        made = make(demo, name, scope, path, service, **members)
        self.id = made.json["id"]
        assert follow(demo, made.header("Cheops-Operation")).json["reached"]

    def local(self, site):
        members = api(self.demo, "Site1", f"/replicants/{self.id}").json["members"]
        return next(each["local_id"] for each in members if each["site"] == site)

    def behind(self, site, method="GET", body=None, part=""):
        url = f"{self.demo.own_url(site, self.service)}{self.path}/{self.local(site)}{part}"
        return ask(url, method, json_body=body) if body is not None else ask(url, method)

    def verify(self, site="Site1"):
        answer = api(self.demo, site, f"/replicants/{self.id}/verify")
        assert answer.status == 200, answer
        return answer.json

    def words(self, site="Site1"):
        return {each["site"]: each["verify"] for each in self.verify(site)["members"]}

    def repair(self, source, site="Site1"):
        target = f"/cheops/v1/replicants/{self.id}/repair"
        answer = ask(self.demo.sites[site]["api"] + target, "POST", JSON_TYPE, json_body={"from": source})
        check_answer("POST", target, answer.status, dict(answer.headers), answer.bytes)
        return answer


SAME = {"Site1": "same", "Site2": "same", "Site3": "same"}


def test_nobody_has_touched_them(demo, run):
    pool = Copies(demo, "untouched", size=1)
    shown = pool.verify()
    assert pool.words() == SAME and shown["verify"] == "same" and not shown["tie"]
    assert all(each["differences"] == [] for each in shown["members"])
    one = run("get", pool.id, "--verify")
    assert one.status == 0, one
    assert [line.split()[:2] for line in one.out.splitlines()[1:]] == [
        ["SITE", "VERIFY"], ["Site1", "same"], ["Site2", "same"], ["Site3", "same"]]


def test_a_changed_copy_is_noticed_and_repaired(demo, run):
    pool = Copies(demo, "changed", size=23)
    assert pool.behind("Site2", "PATCH", {"size": 99, "password": "hunter2"}).status == 200
    for site in SAME:
        assert pool.words(site) == {**SAME, "Site2": "differs"}
    shown = next(each for each in pool.verify()["members"] if each["site"] == "Site2")
    assert {"pointer": "/size", "here": "99", "elsewhere": "23"} in shown["differences"]
    assert {"pointer": "/password", "here": "(not shown)", "elsewhere": None} in shown["differences"]

    found = run("get", pool.id, "--verify")
    assert found.status == 3 and re.search("Site2  /size: 99, at Site[13] 23", found.out) and "hunter2" not in found.out, found
    listed = run("get", "pool", "--verify")
    row = next(line for line in listed.out.splitlines() if line.startswith(pool.id))
    assert listed.status == 3 and "Site1 same, Site2 differs, Site3 same" in row
    assert "compared" in listed.err
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = run("get", pool.id, "--verify", "-o", form)
        assert found.status == 3 and read(found.out)["verify"]["verify"] == "differs"

    fixed = run("repair", f"pool/{pool.id}", "--from", "Site3", "--wait", "all")
    assert fixed.status == 0 and "Site2 applied" in fixed.out, fixed
    assert pool.behind("Site2").json["size"] == 23
    assert pool.words() == SAME
    assert run("get", pool.id, "--verify").status == 0


def test_the_odd_one_may_be_the_right_one(demo):
    pool = Copies(demo, "odd", size=1)
    assert pool.behind("Site2", "PATCH", {"size": 7}).status == 200
    answer = pool.repair("Site2")
    assert answer.status == 200, answer
    shown = follow(demo, answer.json["operation"], site="Site2")
    assert shown.json["reached"] and shown.json["issuer"] in ("Site2", None)
    assert pool.words() == SAME and pool.behind("Site1").json["size"] == 7


def test_a_repair_is_shown_as_such(demo):
    pool = Copies(demo, "shown", size=1)
    assert pool.behind("Site1", "PATCH", {"size": 2}).status == 200
    with Paused(demo, "Site3"):
        operation = pool.repair("Site1").json["operation"]
        shown = api(demo, "Site1", f"/operations/{operation}").json
        assert shown["repair"] and shown["effect"] == "replace" and shown["issuer"] == "Site1"
    assert follow(demo, operation).json["reached"]
    assert pool.words() == SAME and pool.behind("Site3").json["size"] == 2


def test_a_deleted_copy_is_made_anew(demo, run):
    pool = Copies(demo, "deleted behind", size=5)
    before = pool.local("Site2")
    assert pool.behind("Site2", "DELETE").status == 204
    assert pool.words() == {**SAME, "Site2": "missing"}
    assert run("get", pool.id, "--verify").status == 3
    assert pool.repair("Site2").status == 409
    fixed = run("repair", pool.id, "--from", "Site1", "--wait", "all")
    assert fixed.status == 0, fixed
    assert pool.words() == SAME
    assert pool.local("Site2") != before and pool.behind("Site2").json["size"] == 5
    # and it is used from now on
    answer = ask(demo.url("Site2", "network") + f"/pools/{pool.id}", "PATCH", json_body={"size": 6})
    assert answer.status == 200 and follow(demo, answer.header("Cheops-Operation"), site="Site2").json["reached"]
    assert pool.words() == SAME and pool.behind("Site1").json["size"] == 6


def test_references_are_compared_by_their_meta_ids(demo):
    image = Copies(demo, "image to refer to", path="/images", service="image")
    server = Copies(demo, "refers", "compute: Site1 & Site2", "/servers", "compute", image=image.id)
    assert server.words() == {"Site1": "same", "Site2": "same"}
    assert image.verify()["not_compared"] == []


def test_of_two_none_is_right(demo, run):
    pool = Copies(demo, "two", "Site1 & Site2", size=1)
    assert pool.behind("Site2", "PATCH", {"size": 2}).status == 200
    shown = pool.verify()
    assert shown["tie"] and pool.words() == {"Site1": "differs", "Site2": "differs"}
    assert "none is taken for right" in run("get", pool.id, "--verify").out


def test_a_site_that_does_not_answer_is_unknown(demo, run):
    pool = Copies(demo, "one is away", size=1)
    with Paused(demo, "Site3"):
        shown = next(each for each in pool.verify()["members"] if each["site"] == "Site3")
        assert shown["verify"] == "unknown" and shown["reason"]
        assert pool.words() == {**SAME, "Site3": "unknown"}
        found = run("get", pool.id, "--verify")
        assert found.status == 1 and "unknown" in found.out, found
        wait_for(lambda: pool.repair("Site3").status in (503, 504), "a refusal")
    wait_for(lambda: pool.words() == SAME, "all to be the same")


def test_what_is_pending_is_not_called_different(demo):
    pool = Copies(demo, "pending", size=1)
    with Paused(demo, "Site3"):
        assert ask(demo.url("Site1", "network") + f"/pools/{pool.id}", "PATCH", json_body={"size": 2}).status == 200
    wait_for(lambda: pool.words("Site3") == SAME or "differs" in pool.words("Site3").values(), "Site3 to have it")
    assert pool.words("Site3") == SAME


def test_refusals(demo, run):
    pool = Copies(demo, "refusals", "Site1 & Site2", size=1)
    assert api(demo, "Site1", f"/replicants/{NOWHERE}/verify").status == 404
    assert api(demo, "Site1", "/replicants/nonsense/verify").status == 422
    assert api(demo, "Site3", f"/replicants/{pool.id}/verify").status == 404
    nobody = pool.repair("Site3")
    assert nobody.status == 409 and all(site in nobody.json["detail"] for site in ("Site1", "Site2")), nobody
    assert pool.repair("Nowhere").status == 422 and pool.repair("").status == 422
    assert api(demo, "Site1", f"/replicants/{pool.id}/repair", "POST").status == 422
    gone = ask(demo.url("Site1", "network") + f"/pools/{pool.id}", "DELETE")
    assert gone.status == 204
    assert api(demo, "Site1", f"/replicants/{pool.id}/verify").status == 404
    assert pool.repair("Site1").status == 404
    assert run("get", pool.id, "--verify").status == 1


def test_another_agent_is_no_member(demo):
    """The port for agents answers members only; the one for users does not know that path."""
    pool = Copies(demo, "members only", "Site1 & Site2")
    assert ask(demo.sites["Site1"]["api"] + f"/cheops/v1/copies/{pool.id}").status == 404


@pytest.mark.parametrize("arguments, said", [
    (("repair",), "the ID is missing"),
    (("repair", NOWHERE), "--from is missing"),
    (("repair", "pool", "x", "--from", "Site1"), "the meta-id of one resource"),
    (("repair", NOWHERE, "--from", "Site1", "--timeout", "3"), "without --wait"),
    (("repair", NOWHERE, "--from", "Site1", "--wait", "all", "--timeout", "0"), "from 1 to 600"),
    (("get", "--verify", "--watch"), "not with --watch"),
])
def test_wrong_usage(run, arguments, said):
    result = run(*arguments)
    assert result.status == 2 and said in result.err, result


@pytest.mark.parametrize("mode", ["forward", "agent"])
def test_with_the_agents_own_credential(mesh, mode):
    """Services that want a token: the copies are read, and repaired, with that of the agents."""
    guarded = Guarded(mesh, mode)
    made = guarded.make(guarded.token(), "guarded").json["id"]
    wait_for(lambda: guarded.behind("Site2", "guarded"), "the pool at Site2")
    base = "http://" + guarded.agents["Site1"].config["api"] + f"/cheops/v1/replicants/{made}"

    def words():
        return {each["site"]: each["verify"] for each in ask(base + "/verify").json["members"]}

    owner = {"owner": guarded.behind("Site1", "guarded")["owner"]}
    login = {"Authorization": f"Bearer {guarded.token()}"}
    own = guarded.behind("Site2", "guarded")
    assert guarded.services["Site2"].ask("PATCH", f"/pools/{own['id']}", json.dumps({"size": 9}).encode(),
                                         {**login, **JSON_TYPE}).status == 200, owner
    wait_for(lambda: "differs" in words().values(), "the difference")
    answer = ask(base + "/repair", "POST", JSON_TYPE, json_body={"from": "Site1"})
    assert answer.status == 200, answer
    wait_for(lambda: guarded.behind("Site2", "guarded").get("size") == guarded.behind("Site1", "guarded").get("size"),
             "the repair at Site2")


def test_what_cannot_be_set_as_a_whole(demo):
    """A server of the sample has no replace: it is compared, and not repaired."""
    image = Copies(demo, "image of a server", path="/images", service="image")
    server = Copies(demo, "no replace", "compute: Site1 & Site2", "/servers", "compute", image=image.id)
    assert server.words() == {"Site1": "same", "Site2": "same"}
    answer = server.repair("Site1")
    assert answer.status == 409 and "no way to set the whole" in answer.json["detail"], answer
    assert server.repair("Site2").status == 409
    assert server.words() == {"Site1": "same", "Site2": "same"}


def test_a_weak_one_is_compared_and_not_repaired(demo):
    made = make(demo, "weak one", "weak(Site1 & Site2)", size=1)
    url = demo.sites["Site1"]["api"] + f"/cheops/v1/replicants/{made.json['id']}"

    def words():
        return {each["verify"] for each in ask(url + "/verify").json["members"]}
    wait_for(lambda: words() == {"same"}, "the other copy")
    answer = ask(url + "/repair", "POST", JSON_TYPE, json_body={"from": "Site1"})
    assert answer.status == 409 and "weak" in answer.json["detail"], answer
