"""Parts are never replicated themselves: each site's application makes those of its copy (docs/requirements.md, stacks of the sample)."""
import pytest
from api_description import check_answer

from demo_process import ask, wait_for
from test_with_requirements import api, create, image, members, named

BOTH = ("Site1", "Site2")
SITES = ("Site1", "Site2", "Site3")


@pytest.fixture(scope="module")
def base(demo):
    return image(demo, "of stacks", scope="Site1 & Site2 & Site3")


def stack(demo, base, name, scope="Site1 & Site2", servers=2):
    made = create(demo, scope, path="/stacks", name=name, image=base, servers=servers)
    assert made.status == 201, made
    assert api(demo, f"/operations/{made.header('Cheops-Operation')}?wait=all&timeout=60").json["reached"]
    return made.json["id"]


def parts(demo, site, name):
    """Behind the agent's back."""
    whole, = named(demo, site, "stacks", name)
    return whole["servers"]


def test_each_site_has_its_own(demo, base, cheops):
    meta_id = stack(demo, base, "web")
    theirs = {site: parts(demo, site, "web") for site in BOTH}
    assert len(theirs["Site1"]) == len(theirs["Site2"]) == 2 and not set(theirs["Site1"]) & set(theirs["Site2"])
    for site in BOTH:
        assert ask(demo.url(site, "compute") + f"/stacks/{meta_id}").json["servers"] == theirs[site]
        # No part is a replica.
        assert not [each for each in api(demo, "/replicants?type=server", site).json["replicants"]
                    if any(member["local_id"] in theirs[site] for member in each["members"])]
    assert api(demo, f"/replicants/{meta_id}/verify").json["verify"] == "same"
    # All of them, by site.
    shown = api(demo, f"/replicants/{meta_id}/parts")
    assert shown.status == 200, shown
    check_answer("GET", f"/cheops/v1/replicants/{meta_id}/parts", shown.status, dict(shown.headers), shown.bytes)
    assert {each["site"]: each["parts"] for each in shown.json["members"]} == {
        site: [{"service": "compute", "type": "compute.server", "id": part} for part in theirs[site]] for site in BOTH}
    address = demo.sites["Site2"]["api"].removeprefix("http://")
    table = cheops("get", "stack", meta_id, "--parts", "--api", address)
    assert table.status == 0, table
    assert {tuple(line.split()) for line in table.out.splitlines()[1:]} == {
        (site, "compute", "compute.server", part) for site in BOTH for part in theirs[site]}
    assert cheops("get", meta_id, "--parts", "-o", "json", "--api", address).json["type"] == "compute.stack"


def test_a_read_side_by_side(demo, base):
    meta_id = stack(demo, base, "side by side", servers=1)
    url = demo.url("Site1", "compute") + f"/stacks/{meta_id}"
    # One thing, as ever; or what each site has of it.
    assert ask(url, headers={"Scope": "Site1 & Site2"}).json["servers"] == parts(demo, "Site1", "side by side")
    apart = ask(url, headers={"Scope": "Site1 & Site2", "Prefer": "cheops-sites"})
    assert apart.status == 207, apart
    for site in BOTH:
        each = apart.json[site]
        assert each["status"] == 200 and each["body"]["id"] == meta_id, apart
        assert each["body"]["servers"] == parts(demo, site, "side by side"), apart


def test_growing_and_copying(demo, base):
    meta_id = stack(demo, base, "grows", servers=1)
    assert ask(demo.url("Site2", "compute") + f"/stacks/{meta_id}", "PATCH", json_body={"servers": 3}).status == 200
    for site in BOTH:
        wait_for(lambda site=site: len(parts(demo, site, "grows")) == 3, f"three servers at {site}")
    assert ask(demo.sites["Site1"]["api"] + f"/cheops/v1/replicants/{meta_id}/members/Site3", "PUT").status == 200
    wait_for(lambda: members(api(demo, f"/replicants/{meta_id}").json).get("Site3") == "settled"
             and named(demo, "Site3", "stacks", "grows"), "the stack at Site3")
    assert len(parts(demo, "Site3", "grows")) == 3
    # Somebody shrinks one behind its back. The application has no way to set a stack as a whole, so it is set in words.
    local, = named(demo, "Site2", "stacks", "grows")
    assert ask(demo.own_url("Site2", "compute") + f"/stacks/{local['id']}", "PATCH", json_body={"servers": 1}).status == 200
    assert api(demo, f"/replicants/{meta_id}/verify").json["verify"] == "differs"
    given = ask(demo.sites["Site1"]["api"] + f"/cheops/v1/replicants/{meta_id}/repair", "POST", json_body={"from": "Site1"})
    assert (given.status, given.problem["type"]) == (409, "cannot-repair"), given
    assert ask(demo.url("Site1", "compute") + f"/stacks/{meta_id}", "PATCH", json_body={"servers": 3}).status == 200
    wait_for(lambda: len(parts(demo, "Site2", "grows")) == 3, "three servers at Site2 again")
    wait_for(lambda: api(demo, f"/replicants/{meta_id}/verify").json["verify"] == "same", "all to be the same")
    seen = [set(parts(demo, site, "grows")) for site in SITES]
    assert len(set.union(*seen)) == 9


def test_a_part_is_of_its_site(demo, base):
    meta_id = stack(demo, base, "has parts", servers=2)
    part = parts(demo, "Site1", "has parts")[0]
    url = demo.url("Site1", "compute") + f"/servers/{part}"
    whole = ask(url).json["stack"]
    assert ask(demo.url("Site1", "compute") + f"/stacks/{whole}").json["id"] == meta_id
    done = ask(url + "/action", "POST", json_body={"stop": None})
    assert done.status < 300 and done.header("Cheops-Operation") is None, done
    assert ask(demo.url("Site2", "compute") + f"/servers/{part}").status == 404
    refused = ask(url, "DELETE")
    assert refused.status == 409 and "part of stack" in refused.json["error"]["message"]
    # `&` is for what is replicated.
    many = ask(url, "DELETE", {"Scope": "Site1 & Site2"})
    assert (many.status, many.problem["type"]) == (404, "not-replicated"), many
    assert ask(demo.url("Site2", "compute") + f"/stacks/{meta_id}", "DELETE").status in (200, 204)
    for site in BOTH:
        wait_for(lambda site=site: not [each for each in ask(demo.own_url(site, "compute") + "/servers").json["servers"]
                                        if each["name"].startswith("has parts")], f"no part at {site}")


def test_with_requirements(demo):
    """The image of a stack comes along as that of a server does."""
    mine = image(demo, "stack image")
    made = create(demo, "with_requirements(Site1 & Site2)", path="/stacks", name="brought", image=mine, servers=2)
    assert made.status == 201, made
    assert api(demo, f"/operations/{made.header('Cheops-Operation')}?wait=all&timeout=60").json["reached"]
    assert [len(parts(demo, site, "brought")) for site in BOTH] == [2, 2]
