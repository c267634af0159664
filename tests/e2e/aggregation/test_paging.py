"""Pages and orders: each site knows only its own, so they are refused; and a list that has more pages than one says so."""
import json

import pytest

import lists_lab

SITES = ("Site1", "Site2")


@pytest.fixture
def cloud(tmp_path):
    made = lists_lab.Lab(tmp_path, application="openstack", sites=SITES)
    yield made
    made.stop()


@pytest.mark.parametrize("query, member, what", [("limit=2", "limit", "a page"), ("name=a&marker=x", "marker", "a page"),
                                                 ("sort_key=name", "sort_key", "an order"), ("li%6dit=2", "limit", "a page")])
def test_they_are_refused_with_a_reason(cloud, query, member, what):
    answer = cloud.get("/v2/images?" + query, scope="Site1 & Site2", Accept="application/problem+json")
    assert answer.status == 400 and answer.problem["type"] == "urn:cheops:problem:not-aggregated"
    assert f"`{member}` asks for {what}" in answer.problem["detail"]
    assert all(service.paths == [] for service in cloud.sites.values())
    assert cloud.get("/v2/images?" + query, scope="Site1").status == 200  # at one site they are the site's affair


@pytest.mark.parametrize("query, sent", [("", "?limit=1000"), ("?name=in:a,b", "?name=in:a,b&limit=1000")])
def test_each_site_is_asked_for_as_much_as_it_gives_at_once(cloud, query, sent):
    assert cloud.get("/v2/images" + query, scope="Site1 & Site2").status == 200
    assert [service.paths for service in cloud.sites.values()] == [["/v2/images" + sent]] * 2
    assert cloud.get("/v2/images" + query, scope="Site2").status == 200  # at one site pages are its own affair
    assert cloud.sites["Site2"].paths[1:] == ["/v2/images" + query]


def test_a_site_with_more_pages_says_so(cloud):
    cloud.say(Site1=lists_lab.images("one"), Site2=json.dumps({"images": [{"name": "two"}], "next": "/v2/images?marker=x"}).encode())
    answer = cloud.get("/v2/images", scope="Site1 & Site2")
    assert answer.names == ["one", "two"] and answer.partial == '"Site2";reason=more-pages'


def test_the_next_page_of_one_is_none_of_both(cloud):
    """A client that follows it would ask both for a page, and be refused."""
    cloud.say(Site1=json.dumps({"next": "/v2/images?marker=x", "images": [{"name": "one"}]}).encode(), Site2=lists_lab.images("two"))
    answer = cloud.get("/v2/images", scope="Site1 & Site2")
    assert answer.names == ["one", "two"] and answer.partial == '"Site1";reason=more-pages'
    assert answer.json["next"] is None
    assert cloud.get("/v2/images", scope="Site1").json["next"] == "/v2/images?marker=x"  # of one site it is the site's affair


def test_a_link_to_the_next_page_counts(cloud):
    cloud.say(Site1=(200, {"Link": '</v2/images?page=2>; rel="next"'}, lists_lab.images("one")), Site2=lists_lab.images("two"))
    answer = cloud.get("/v2/images", scope="Site1 & Site2")
    assert answer.partial == '"Site1";reason=more-pages' and "link" not in answer.headers
    assert "link" in cloud.get("/v2/images", scope="Site1").headers
