"""A namespace over two sites, under the description `kubernetes`: users choose the names, which are the ids."""
import concurrent.futures
import contextlib

import mesh as mesh_of_ours
import pytest
from files_lab import heard, wait_for
from test_objects import PODS, SITES, Cluster

MAPS = PODS.format("shop")


@pytest.fixture(name="cluster")
def make_cluster(tmp_path):
    with contextlib.ExitStack() as stops:
        mesh = mesh_of_ours.Mesh(tmp_path)
        stops.callback(mesh.stop)
        made = Cluster(mesh)
        answer = made.ask("Site1", "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}}, "Site1 % Site2",
                          {"Prefer": "wait=30"})
        assert answer.status == 201, answer
        yield made


def make(cluster, site, name, scope=None, data=None):
    return cluster.ask(site, "POST", MAPS, {"metadata": {"name": name}, "data": data or {"at": site}}, scope)


def names(cluster, site):
    answer = heard(lambda: cluster.ask(site, "GET", MAPS))
    assert answer.status == 200 and answer.header("Cheops-Partial") is None, answer
    return sorted(each["metadata"]["name"] for each in answer.json["items"])


def local(cluster, site):
    return cluster.servers[site].names(MAPS)


def test_what_is_in_a_namespace_is_one_set(cluster):
    assert make(cluster, "Site1", "one").status == 201
    assert make(cluster, "Site2", "two").status == 201
    assert make(cluster, "Site1", "three", scope="Site2").status == 201
    assert (local(cluster, "Site1"), local(cluster, "Site2")) == (["one"], ["three", "two"])
    for site in SITES:
        wait_for(lambda site=site: names(cluster, site) == ["one", "three", "two"], f"the union at {site}")
        for name in ("one", "two", "three"):
            answer = make(cluster, site, name)
            assert (answer.status, answer.problem["type"]) == (409, "name-taken"), answer
    # By its name, from where it is not.
    wait_for(lambda: cluster.ask("Site2", "GET", f"{MAPS}/one").status == 200, "Site2 to know of it")
    assert cluster.ask("Site2", "GET", f"{MAPS}/one").json["data"] == {"at": "Site1"}
    patched = cluster.ask("Site2", "PATCH", f"{MAPS}/one", {"data": {"at": "changed"}},
                          headers={"Content-Type": "application/merge-patch+json"})
    assert patched.status == 200, patched
    assert cluster.data("Site1", "shop", "one") == {"at": "changed"}
    assert cluster.ask("Site2", "DELETE", f"{MAPS}/one").status == 200
    wait_for(lambda: make(cluster, "Site2", "one").status == 201, "the name to be free")
    assert (local(cluster, "Site1"), local(cluster, "Site2")) == ([], ["one", "three", "two"])


def test_one_of_two_gets_the_name(cluster):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            answers = list(pool.map(lambda site, turn=turn: make(cluster, site, f"turn{turn}"), SITES * 2))
            assert sorted(answer.status for answer in answers) == [201, 409, 409, 409], answers
    assert sorted(local(cluster, "Site1") + local(cluster, "Site2")) == sorted(f"turn{turn}" for turn in range(10))


def test_a_watch_is_that_of_one_site(cluster):
    assert make(cluster, "Site1", "one").status == 201
    assert make(cluster, "Site2", "two").status == 201
    for site, name in (("Site1", "one"), ("Site2", "two")):
        watched = cluster.ask(site, "GET", f"{MAPS}?watch=true")
        assert [each["metadata"]["name"] for each in watched.json["items"]] == [name], watched
