"""Lists of applications that Cheops has a description of: the one of the first report, and objects whose names users choose."""
import json

import lists_lab
import mesh as mesh_of_ours
import pytest
from demo_process import ask
from mesh_maker import wait_present
from objects import Objects

SITES = ("Site1", "Site2")
BOTH = " & ".join(SITES)


def glance(site, *names):
    """As Glance has it."""
    return json.dumps({"images": [{"id": f"{site}-{name}", "name": name, "status": "active"} for name in names],
                       "first": "/v2/images", "schema": "/v2/schemas/images"}).encode()


@pytest.mark.parametrize("scope", ["image: Site1 & Site2", '{"image": "Site1 & Site2"}', "{image: Site1 & Site2}"])
def test_the_list_over_two_sites_of_rr_9336(tmp_path, scope):
    """`openstack image list` with the scope {image: Site1 and Site2}: the images of both, as one Glance would list them."""
    lab = lists_lab.Lab(tmp_path, application="openstack", sites=SITES)
    try:
        lab.say(Site1=glance("Site1", "debian", "fedora"), Site2=glance("Site2", "debian"))
        answer = lab.get("/v2/images", scope=scope)
        assert answer.status == 200 and answer.partial is None, answer
        assert [(each["id"], each["name"]) for each in answer.json["images"]] == [
            ("Site1-debian", "debian"), ("Site1-fedora", "fedora"), ("Site2-debian", "debian")]
        assert {name: answer.json[name] for name in ("first", "schema")} == {"first": "/v2/images",
                                                                            "schema": "/v2/schemas/images"}
    finally:
        lab.stop()


@pytest.fixture
def cluster(tmp_path):
    """{site: agent} of two sites, with a namespace each."""
    made = mesh_of_ours.Mesh(tmp_path)
    try:
        servers = {site: made.keep(Objects()) for site in SITES}
        agents = [made.agent(site, {"kubernetes": server.url}, application="kubernetes") for site, server in servers.items()]
        made.join(*agents)
        wait_present(agents)
        for server in servers.values():
            assert ask(server.url + "/api/v1/namespaces", "POST", json_body={"metadata": {"name": "red"}}).status == 201
        yield dict(zip(SITES, agents))
    finally:
        made.stop()


def test_objects_of_one_name_are_one_only_if_they_are_replicated(cluster):
    """Names are chosen by users: `own` is at both sites, and two things; `shared` is one."""
    path = "/api/v1/namespaces/red/configmaps"
    for site, agent in cluster.items():
        made = ask(agent.url("kubernetes") + path, "POST", json_body={"metadata": {"name": "own"}, "data": {"at": site}})
        assert made.status == 201, made
    made = ask(cluster["Site1"].url("kubernetes") + path, "POST", {"Scope": BOTH, "Prefer": "wait=60"},
               json_body={"metadata": {"name": "shared"}})
    assert made.status == 201, made
    for agent in cluster.values():
        answer = ask(agent.url("kubernetes") + path, "GET", {"Scope": BOTH, "Prefer": "cheops-sites"})
        assert answer.status == 200 and answer.header("Cheops-Partial") is None, answer
        assert answer.json["kind"] == "List" and b"cheops-replica" not in answer.bytes
        assert sorted((each["metadata"]["name"], each["cheops-site"]) for each in answer.json["items"]) == [
            ("own", "Site1"), ("own", "Site2"), ("shared", "Site1")]


def test_a_list_of_all_namespaces(cluster):
    """A name is one thing in each namespace: each element says in which it is."""
    api = {site: agent.url("kubernetes") + "/api/v1" for site, agent in cluster.items()}
    for site in SITES:
        assert ask(api[site] + "/namespaces", "POST", json_body={"metadata": {"name": "blue"}}).status == 201
    for namespace in ("red", "blue"):
        made = ask(f"{api['Site1']}/namespaces/{namespace}/configmaps", "POST", {"Scope": BOTH, "Prefer": "wait=60"},
                   json_body={"metadata": {"name": "shared"}, "data": {"in": namespace}})
        assert made.status == 201, made
    made = ask(f"{api['Site2']}/namespaces/blue/configmaps", "POST", json_body={"metadata": {"name": "own"}})
    assert made.status == 201, made
    for site in SITES:
        answer = ask(api[site] + "/configmaps", "GET", {"Scope": BOTH, "Prefer": "cheops-sites"})
        assert answer.status == 200 and answer.header("Cheops-Partial") is None, answer
        assert sorted((each["metadata"]["namespace"], each["metadata"]["name"], each["cheops-site"])
                      for each in answer.json["items"]) == [("blue", "own", "Site2"), ("blue", "shared", "Site1"),
                                                            ("red", "shared", "Site1")]
        assert b"cheops-replica" not in answer.bytes


def test_a_watch_is_for_one_site(cluster):
    answer = ask(cluster["Site1"].url("kubernetes") + "/api/v1/namespaces/red/configmaps?watch=1", "GET", {"Scope": BOTH})
    assert answer.status == 400 and answer.problem["type"] == "not-aggregated" and "stream" in answer.problem["detail"]
