"""`with_requirements(…)`: what a create requires is brought to where it runs, in one request (docs/requirements.md)."""
import concurrent.futures
import hashlib
import json
import urllib.parse
import uuid

import pytest

import demo_process
from demo_process import ask, wait_for

SITES = ("Site1", "Site2", "Site3")
BOTH = "with_requirements(Site1 & Site2)"


def content(name, size=1 << 16):
    return hashlib.sha256(name.encode()).digest() * (size // 32)


def image(demo, name, at="Site1", size=1 << 16, scope=None, **members):
    """Made, with its file; without a scope Cheops knows nothing of it."""
    headers = {"Scope": scope} if scope else {}
    made = ask(demo.url(at, "image") + "/images", "POST", headers, json_body={"name": name, **members})
    assert made.status == 201, made
    done = ask(demo.url(at, "image") + f"/images/{made.json['id']}/file", "PUT", body=content(name, size))
    assert done.status == 200, done
    return made.json["id"]


def create(demo, scope, at="Site1", path="/servers", headers=None, **members):
    return ask(demo.url(at, "compute") + path, "POST", {"Scope": scope, **(headers or {})}, json_body=members)


def api(demo, path, at="Site1"):
    return ask(demo.sites[at]["api"] + "/cheops/v1" + path)


def named(demo, site, kind, name):
    """Behind the agent's back."""
    service = "image" if kind == "images" else "compute"
    return [each for each in ask(demo.own_url(site, service) + f"/{kind}").json[kind] if each["name"] == name]


def replicant(demo, name, kind="image", at="Site1"):
    listed = api(demo, f"/replicants?type={kind}&limit=200", at).json["replicants"]
    found = [each for each in listed if each["name"] == name] or \
        [each for each in listed if any(here["id"] in [m["local_id"] for m in each["members"]]
                                        for here in named(demo, at, kind + "s", name))]
    assert len(found) <= 1, found
    return found[0] if found else None


def members(shown):
    return {each["site"]: each["state"] for each in shown["members"]}


def wait_for_server(demo, answer, sites):
    op = answer.header("Cheops-Operation")
    done = api(demo, f"/operations/{op}?wait=all&timeout=60")
    assert done.json["reached"], done
    for site in sites:
        assert ask(demo.url(site, "compute") + f"/servers/{answer.json['id']}").status == 200


def test_the_image_comes_along(demo):
    mine = image(demo, "debian")
    refused = create(demo, "Site1 & Site2", name="vm", image=mine)
    assert (refused.status, refused.problem["type"]) == (409, "requirement-absent")
    assert "with_requirements" in refused.problem["detail"]
    made = create(demo, BOTH, name="vm", image=mine)
    assert made.status == 201, made
    wait_for_server(demo, made, ("Site1", "Site2"))
    shown = replicant(demo, "debian")
    assert members(shown) == {"Site1": "settled", "Site2": "settled"}
    # One image at each, with its bytes; each server booted from that of its site.
    for site in ("Site1", "Site2"):
        assert len(named(demo, site, "images", "debian")) == 1
        assert ask(demo.url(site, "image") + f"/images/{shown['id']}/file").bytes == content("debian")
        server, = named(demo, site, "servers", "vm")
        assert server["image_checksum"] == hashlib.sha256(content("debian")).hexdigest()
        assert ask(demo.url(site, "compute") + f"/servers/{made.json['id']}").json["image"] == shown["id"]
    assert named(demo, "Site3", "images", "debian") == []
    # Again: it is there already, and there is still one.
    again = create(demo, BOTH, name="vm2", image=shown["id"])
    assert again.status == 201, again
    wait_for_server(demo, again, ("Site1", "Site2"))
    third = create(demo, "with_requirements(Site1 & Site3)", name="vm3", image=mine)
    assert third.status == 201, third
    wait_for_server(demo, third, ("Site1", "Site3"))
    assert members(replicant(demo, "debian")) == dict.fromkeys(SITES, "settled")
    assert [len(named(demo, site, "images", "debian")) for site in SITES] == [1, 1, 1]


def test_a_replicated_image_is_extended(demo):
    meta_id = image(demo, "everywhere", scope="Site1 & Site2")
    made = create(demo, "compute: with_requirements(Site1 & Site3)", name="far", image=meta_id)
    assert made.status == 201, made
    wait_for_server(demo, made, ("Site1", "Site3"))
    assert members(api(demo, f"/replicants/{meta_id}").json) == dict.fromkeys(SITES, "settled")
    assert ask(demo.url("Site3", "image") + f"/images/{meta_id}/file").bytes == content("everywhere")


def test_where_it_is_is_known_at_once(demo):
    """Sites that were added count as soon as that was answered."""
    for n in range(5):
        made = ask(demo.url("Site1", "image") + "/images", "POST", {"Scope": "Site1 & Site2"}, json_body={"name": f"known {n}"})
        meta_id = made.json["id"]
        assert api(demo, f"/operations/{made.header('Cheops-Operation')}?wait=all&timeout=60").json["reached"]
        added = ask(demo.sites["Site1"]["api"] + f"/cheops/v1/replicants/{meta_id}/members/Site3", "PUT")
        assert added.status == 200, added
        assert create(demo, "Site1 & Site3", name=f"at once {n}", image=meta_id).status == 201


def test_at_one_other_site(demo):
    mine = image(demo, "travels")
    made = create(demo, "with_requirements(Site2)", name="there", image=mine)
    assert made.status == 201, made
    server, = named(demo, "Site2", "servers", "there")
    there, = named(demo, "Site2", "images", "travels")
    assert server["image"] == there["id"] != mine and named(demo, "Site1", "servers", "there") == []
    # It is no replica, only its image is.
    assert made.header("Cheops-Operation") is None
    assert members(replicant(demo, "travels")) == {"Site1": "settled", "Site2": "settled"}


def test_at_two_others(demo):
    mine = image(demo, "for others")
    made = create(demo, "with_requirements(Site2 & Site3)", name="elsewhere", image=mine)
    assert made.status == 201, made
    for site in ("Site2", "Site3"):
        wait_for(lambda site=site: len(named(demo, site, "servers", "elsewhere")) == 1, f"the server at {site}")
    assert named(demo, "Site1", "servers", "elsewhere") == []
    # That the image is there was used there before we have heard of it here.
    wait_for(lambda: members(replicant(demo, "for others")) == dict.fromkeys(SITES, "settled"), "Site1 to know of all")


def test_what_it_means_for_everything_else(demo):
    here = ask(demo.url("Site1", "compute") + "/servers", headers={"Scope": "with_requirements(Site1)"})
    assert here.status == 200 and here.json == ask(demo.url("Site1", "compute") + "/servers").json
    both = ask(demo.url("Site1", "compute") + "/whoami", headers={"Scope": "with_requirements(Site2)"})
    assert both.json["site"] == "Site2"
    pool = ask(demo.url("Site1", "network") + "/pools", "POST", {"Scope": BOTH}, json_body={"name": "needs nothing", "size": 1})
    assert pool.status == 201 and pool.header("Cheops-Operation"), pool


def test_what_is_shared_is_not_brought(demo):
    mine = image(demo, "shared")
    made = create(demo, "compute: with_requirements(Site1 & Site2), image: Site1", name="sharer", image=mine)
    assert made.status == 201, made
    wait_for_server(demo, made, ("Site1", "Site2"))
    assert named(demo, "Site2", "images", "shared") == [] and replicant(demo, "shared") is None


def test_what_is_not_here_cannot_be_brought(demo):
    theirs = image(demo, "theirs", at="Site3")
    answer = create(demo, BOTH, name="no", image=theirs)
    assert (answer.status, answer.problem["type"]) == (409, "requirement-absent"), answer
    assert "the service of this site has no such thing" in answer.problem["detail"]
    assert "the agent of the site that has it" in answer.problem["detail"]
    nowhere = create(demo, BOTH, name="no", image=str(uuid.uuid4()))
    assert (nowhere.status, nowhere.problem["type"]) == (409, "requirement-absent"), nowhere
    assert [named(demo, site, "servers", "no") for site in SITES] == [[], [], []]
    # Where it is, it works.
    made = create(demo, "with_requirements(Site3 & Site1)", at="Site3", name="yes", image=theirs)
    assert made.status == 201, made
    wait_for(lambda: len(named(demo, "Site1", "servers", "yes")) == 1, "the server at Site1")


def test_the_plan_says_what_would_be_brought(demo):
    mine = image(demo, "explained")
    plan = create(demo, BOTH, headers={"Cheops-Explain": "plan"}, name="vm", image=mine).json
    assert plan["plan"]["with_requirements"] is True
    assert plan["brings"] == [{"type": "image.image", "id": mine, "replicated": False, "to": ["Site2"]}]
    assert replicant(demo, "explained") is None
    assert create(demo, BOTH, name="explained vm", image=mine).status == 201
    third = create(demo, "with_requirements(Site1 & Site2 & Site3)", headers={"Cheops-Explain": "plan"}, name="vm", image=mine).json
    assert third["brings"] == [{"type": "image.image", "id": mine, "replicated": True, "to": ["Site3"]}]
    assert create(demo, BOTH, headers={"Cheops-Explain": "plan"}, name="vm", image=mine).json["brings"] == []


def test_many_at_once(demo):
    mine = image(demo, "popular")
    scopes = [BOTH, "with_requirements(Site1 & Site3)", "with_requirements(Site1 & Site2 & Site3)"]
    with concurrent.futures.ThreadPoolExecutor(12) as many:
        answers = list(many.map(lambda n: create(demo, scopes[n % 3], name=f"crowd {n}", image=mine), range(24)))
    assert {answer.status for answer in answers} == {201}, answers
    for answer in answers:
        assert api(demo, f"/operations/{answer.header('Cheops-Operation')}?wait=all&timeout=60").json["reached"]
    assert members(replicant(demo, "popular")) == dict.fromkeys(SITES, "settled")
    assert [len(named(demo, site, "images", "popular")) for site in SITES] == [1, 1, 1]


def test_what_the_service_refuses_leaves_no_server(demo):
    mine = image(demo, "unloved")
    refused = create(demo, BOTH, image=mine)  # it has no name
    assert 400 <= refused.status < 500, refused
    wait_for(lambda: replicant(demo, "unloved") and members(replicant(demo, "unloved")) == {"Site1": "settled", "Site2": "settled"},
             "the image, which is at both")
    made = create(demo, BOTH, name="loved", image=mine)
    assert made.status == 201
    wait_for_server(demo, made, ("Site1", "Site2"))
