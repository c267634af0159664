"""The lists of the sample's services at three sites, as one: real agents, real services."""
import uuid

import pytest

from demo_process import ask, wait_for

SITES = ("Site1", "Site2", "Site3")
ALL = " & ".join(SITES)


def make(demo, site, name, scope=None, path="/images", service="image"):
    headers = {"Scope": scope, "Prefer": "wait=60"} if scope else {}
    answer = ask(demo.url(site, service) + path, "POST", headers, json_body={"name": name})
    assert answer.status == 201, answer
    return answer.json["id"]


def listed(demo, site, scope=None, path="/images", service="image", **headers):
    answer = ask(demo.url(site, service) + path, "GET", {**({"Scope": scope} if scope else {}), **headers})
    assert answer.status == 200, answer
    return answer


@pytest.fixture(scope="module")
def filled(demo):
    """One image at each site, one at all of them, one at two. {name: id}"""
    ids = {site: make(demo, site, f"of {site}") for site in SITES}
    ids["everywhere"] = make(demo, "Site1", "everywhere", ALL)
    ids["at two"] = make(demo, "Site2", "at two", "Site2 & Site3")
    return ids


def names(answer):
    return [each["name"] for each in answer.json["images"]]


def test_a_replicated_image_is_shown_once(demo, filled):
    answer = listed(demo, "Site1", ALL)
    assert sorted(names(answer)) == sorted(["of Site1", "of Site2", "of Site3", "everywhere", "at two"])
    assert answer.header("Cheops-Partial") is None
    assert {each["id"] for each in answer.json["images"]} == set(filled.values())
    assert b"cheops-replica" not in answer.bytes


def test_the_shape_is_the_applications_own(demo, filled):
    alone, both = listed(demo, "Site1"), listed(demo, "Site1", "Site1 & Site2")
    assert list(alone.json) == list(both.json)
    assert both.bytes.startswith(alone.bytes[:alone.bytes.rindex(b"]")])  # byte by byte
    assert both.bytes.endswith(alone.bytes[alone.bytes.rindex(b"]"):])
    by_id = {each["id"]: each for each in both.json["images"]}
    for each in alone.json["images"]:
        assert by_id[each["id"]] == each


def test_the_order_is_that_of_the_scope(demo, filled):
    order = names(listed(demo, "Site1", "Site3 & Site1"))
    assert order.index("of Site3") < order.index("of Site1")
    order = names(listed(demo, "Site2", "Site1 & Site3"))  # a site that is not among them asks
    assert order.index("of Site1") < order.index("of Site3") and "of Site2" not in order


def test_every_site_gives_the_same_list(demo, filled):
    lists = [sorted(each["id"] for each in listed(demo, site, ALL).json["images"]) for site in SITES]
    assert lists[0] == lists[1] == lists[2] == sorted(filled.values())


def test_equal_local_ids_are_not_one(demo):
    """Only what is replicated is one. Names are equal here, and nothing is lost."""
    for site in SITES:
        make(demo, site, "same name", path="/pools", service="network")
    pools = listed(demo, "Site1", ALL, "/pools", "network").json["pools"]
    assert sum(pool["name"] == "same name" for pool in pools) == 3


def test_sites_are_shown_where_wanted(demo, filled):
    answer = listed(demo, "Site1", ALL, Prefer="cheops-sites")
    assert answer.header("Preference-Applied") == "cheops-sites"
    at = {each["name"]: each["cheops-site"] for each in answer.json["images"]}
    assert {name: at[name] for name in ("of Site1", "of Site2", "of Site3")} == {f"of {site}": site for site in SITES}
    assert at["everywhere"] == "Site1" and at["at two"] == "Site2"  # the first that has it
    assert "cheops-site" not in listed(demo, "Site1", ALL).json["images"][0]


def test_the_answer_says_who_was_asked(demo, filled):
    answer = listed(demo, "Site1", ALL)
    status, timing = answer.header("Proxy-Status"), answer.header("Server-Timing")
    for site in SITES:
        assert f'next-hop="{site}"; received-status=200' in status
        assert f"{site};dur=" in timing


def test_an_item_that_is_replicated_is_one(demo, filled):
    at_two = ask(demo.url("Site1", "image") + f"/images/{filled['at two']}", "GET", {"Scope": "Site2 & Site3"})
    assert at_two.status == 200 and at_two.json["id"] == filled["at two"], at_two
    assert at_two.header("Cheops-Gather") is None
    here = ask(demo.url("Site1", "image") + f"/images/{filled['everywhere']}", "GET", {"Scope": ALL})
    assert here.status == 200 and here.json["id"] == filled["everywhere"], here


def test_an_item_that_is_not_is_shown_side_by_side(demo, filled):
    answer = ask(demo.url("Site1", "image") + f"/images/{filled['Site2']}", "GET", {"Scope": ALL})
    assert answer.status == 207 and answer.header("Content-Type") == "application/json", answer
    assert list(answer.json) == list(SITES)
    assert {site: each["status"] for site, each in answer.json.items()} == {"Site1": 404, "Site2": 200, "Site3": 404}
    assert answer.json["Site2"]["body"]["name"] == "of Site2"


def test_an_item_that_nobody_has_is_not_found(demo, filled):
    answer = ask(demo.url("Site1", "image") + f"/images/{uuid.uuid4()}", "GET", {"Scope": ALL})
    own = ask(demo.own_url("Site1", "image") + f"/images/{uuid.uuid4()}")
    assert answer.status == own.status == 404
    assert answer.header("Content-Type") == own.header("Content-Type")


def test_paths_that_nobody_described_are_shown_side_by_side(demo):
    for path in ("/whoami", "/healthz"):
        answer = ask(demo.url("Site2", "image") + path, "GET", {"Scope": ALL})
        assert answer.status == 207, answer
        for site in SITES:
            own = ask(demo.own_url(site, "image") + path)
            assert answer.json[site]["status"] == own.status == 200
            assert answer.json[site]["body"] == (own.json if "json" in own.header("Content-Type") else own.bytes.decode())


def test_a_call_of_a_service_is_aggregated_too(demo):
    """The scope of another service goes along: what compute at each site asks image for runs at Site2."""
    answer = ask(demo.url("Site1", "compute") + "/whoami?via=image", "GET", {"Scope": f"compute: {ALL}, image: Site2"})
    assert answer.status == 207, answer
    for site in SITES:
        body = answer.json[site]["body"]
        assert body["site"] == site and body["via"]["site"] == "Site2"


def test_head(demo, filled):
    lists = ask(demo.url("Site1", "image") + "/images", "HEAD", {"Scope": ALL})
    assert lists.status == 200 and lists.bytes == b"" and "json" in lists.header("Content-Type")
    other = ask(demo.url("Site1", "image") + "/whoami", "HEAD", {"Scope": ALL})
    assert other.status == 207 and other.bytes == b""


def test_explain_shows_the_plan(demo):
    answer = ask(demo.url("Site1", "image") + "/images", "GET", {"Scope": ALL, "Cheops-Explain": "plan"})
    assert answer.status == 200 and answer.json["plan"]["op"] == "all"


@pytest.mark.parametrize("scope, says", [("Site1; (Site2 & Site3)", "inside of `;` or `|`"),
                                         ("Site1 & (Site2; Site3)", "not a choice"),
                                         ("strong(Site1 & Site2)", "`strong` is for a later version")])
def test_what_is_not_carried_out_says_why(demo, scope, says):
    answer = ask(demo.url("Site1", "image") + "/images", "GET", {"Scope": scope})
    assert answer.status == 501 and says in answer.problem["detail"], answer


def test_a_write_to_an_unknown_path_runs_nowhere(demo):
    answer = ask(demo.url("Site1", "image") + "/whoami", "POST", {"Scope": ALL}, json_body={})
    assert answer.status == 501 and "only reads" in answer.problem["detail"], answer


def test_writes_replicate_as_ever(demo):
    made = ask(demo.url("Site1", "image") + "/images", "POST", {"Scope": "Site1 & Site2", "Prefer": "wait=60"},
               json_body={"name": "written"})
    assert made.status == 201 and "Site2=applied" in made.header("Cheops-Replicas"), made
    gone = ask(demo.url("Site1", "image") + f"/images/{made.json['id']}", "DELETE", {"Prefer": "wait=60"})
    assert gone.status in (200, 204), gone
    wait_for(lambda: "written" not in names(listed(demo, "Site3", ALL)), "the image to be gone from the list")


def test_it_is_counted(demo, filled):
    before = demo.metric("Site3", "cheops_aggregated_requests_total")
    listed(demo, "Site3", ALL)
    assert demo.metric("Site3", "cheops_aggregated_requests_total") == before + 1
