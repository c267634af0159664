"""Objects whose names their users choose, under the description `kubernetes`."""
import pytest

from demo_process import ask, wait_for
from mesh_maker import wait_present
from objects import Objects

SITES = ("Site1", "Site2")
ALL = " & ".join(SITES)
PODS = "/api/v1/namespaces/{}/configmaps"


class Cluster:
    def __init__(self, mesh, **config):
        self.servers = {site: mesh.keep(Objects()) for site in SITES}
        self.agents = {site: mesh.agent(site, {"kubernetes": server.url}, application="kubernetes", **config.get(site, {}))
                       for site, server in self.servers.items()}
        mesh.join(*self.agents.values())
        wait_present(list(self.agents.values()))

    def ask(self, site, method, path, body=None, scope=None, headers=None):
        headers = {**({"Scope": scope} if scope else {}), **(headers or {})}
        return ask(self.agents[site].url("kubernetes") + path, method, headers, json_body=body)

    def namespace(self, name, at=SITES):
        for site in at:
            body = {"kind": "Namespace", "metadata": {"name": name}}
            assert ask(self.servers[site].url + "/api/v1/namespaces", "POST", json_body=body).status == 201

    def make(self, namespace, name, scope=ALL, site="Site1", **members):
        answer = self.ask(site, "POST", PODS.format(namespace), {"metadata": {"name": name}, **members}, scope,
                          {"Prefer": "wait=30"})
        assert answer.status == 201, answer
        return answer

    def data(self, site, namespace, name):
        there = self.servers[site].get(f"{PODS.format(namespace)}/{name}")
        return there and there.get("data")

    def wait_data(self, namespace, name, data, sites=SITES):
        for site in sites:
            wait_for(lambda site=site: self.data(site, namespace, name) == data,
                     f"{namespace}/{name} at {site} to be {data}")

    def replicants(self, site="Site1"):
        return ask(f"http://{self.agents[site].config['api']}/cheops/v1/replicants").json["replicants"]


@pytest.fixture
def cluster(mesh):
    return Cluster(mesh)


def test_one_name_in_two_namespaces_is_two_objects(cluster):
    for namespace in ("red", "blue"):
        cluster.namespace(namespace)
    cluster.make("red", "same", data={"is": "red"})
    cluster.make("blue", "same", data={"is": "blue"})
    assert len(cluster.replicants()) == 2
    changed = cluster.ask("Site2", "PATCH", PODS.format("red") + "/same", {"data": {"is": "dark red"}},
                          headers={"Content-Type": "application/merge-patch+json"})
    assert changed.status == 200 and changed.header("Cheops-Operation"), changed
    cluster.wait_data("red", "same", {"is": "dark red"})
    cluster.wait_data("blue", "same", {"is": "blue"})
    gone = cluster.ask("Site2", "DELETE", PODS.format("red") + "/same")
    assert gone.status == 200 and gone.header("Cheops-Operation"), gone
    cluster.wait_data("red", "same", None)
    # The other one is still replicated.
    changed = cluster.ask("Site1", "PATCH", PODS.format("blue") + "/same", {"data": {"is": "dark blue"}},
                          headers={"Content-Type": "application/merge-patch+json"})
    assert changed.status == 200 and changed.header("Cheops-Operation"), changed
    cluster.wait_data("blue", "same", {"is": "dark blue"})


def test_one_that_is_not_replicated_is_nobody_elses_business(cluster):
    for namespace in ("red", "blue"):
        cluster.namespace(namespace)
    cluster.make("red", "same", data={"is": "red"})
    own = {"metadata": {"name": "same"}, "data": {"is": "of Site1 alone"}}
    assert cluster.ask("Site1", "POST", PODS.format("blue"), own).status == 201
    changed = cluster.ask("Site1", "PUT", PODS.format("blue") + "/same", {**own, "data": {"is": "still of Site1"}})
    assert changed.status == 200 and changed.header("Cheops-Operation") is None
    assert cluster.data("Site1", "blue", "same") == {"is": "still of Site1"}
    assert cluster.data("Site2", "blue", "same") is None
    assert cluster.data("Site1", "red", "same") == cluster.data("Site2", "red", "same") == {"is": "red"}


def test_the_name_is_the_users_in_every_answer(cluster):
    cluster.namespace("red")
    made = cluster.make("red", "mine", data={"a": "1"})
    assert made.json["metadata"]["name"] == "mine"
    for site in SITES:
        assert cluster.ask(site, "GET", PODS.format("red") + "/mine").json["metadata"]["name"] == "mine"
        assert [each["metadata"]["name"] for each in cluster.ask(site, "GET", PODS.format("red")).json["items"]] == ["mine"]


def test_what_is_made_in_a_namespace_waits_for_it(cluster):
    """They are two replicants, and might be run in any order."""
    answer = cluster.ask("Site1", "POST", "/api/v1/namespaces", {"metadata": {"name": "green"}}, ALL)
    assert answer.status == 201
    deployments = "/apis/apps/v1/namespaces/green/deployments"
    for number in range(5):
        for collection in (PODS.format("green"), deployments):
            made = cluster.ask("Site1", "POST", collection, {"metadata": {"name": f"c{number}"}}, ALL)
            assert made.status == 201
    for collection in (PODS.format("green"), deployments):
        wait_for(lambda path=collection: len(cluster.servers["Site2"].names(path)) == 5, f"all five of {collection} at Site2")


def test_a_path_of_any_length_is_no_replicas(cluster):
    """What cannot be the name of one is looked for nowhere."""
    cluster.namespace("red")
    cluster.make("red", "one")
    for path in ("/api/v1/" + "x" * 300 + "/y", "/api/v1/namespaces/" + "n" * 300 + "/configmaps/y",
                 PODS.format("red") + "/" + "y" * 300):
        assert cluster.ask("Site1", "GET", path).status == 404
        assert cluster.ask("Site1", "DELETE", path).status == 404
    assert cluster.ask("Site1", "GET", PODS.format("red") + "/one").status == 200
