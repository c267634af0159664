"""Objects whose names their users choose, under the description `kubernetes`."""
import json

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


# ---- Preconditions ------------------------------------------------------------------------------------------------------


MERGE = {"Content-Type": "application/merge-patch+json"}


def test_what_has_to_be_so_is_judged_where_the_request_arrives(cluster):
    cluster.namespace("red")
    made = cluster.make("red", "one", data={"n": "1"})
    path = PODS.format("red") + "/one"
    versions = {site: cluster.servers[site].get(path)["metadata"] for site in SITES}
    assert versions["Site1"]["uid"] != versions["Site2"]["uid"]
    # As it was read here: taken here, and done at the other site, whose version is another.
    seen = cluster.ask("Site1", "GET", path).json
    assert seen["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]
    body = '{"kind": "ConfigMap",  "metadata": {"name": "one", "uid": "%s", "labels": {"a": "b"}, "resourceVersion": "%s"}, ' \
           '"data": {"n": "2"}, "x": 1.50}' % (seen["metadata"]["uid"], seen["metadata"]["resourceVersion"])
    changed = ask(cluster.agents["Site1"].url("kubernetes") + path, "PUT",
                  {"Content-Type": "application/json", "Prefer": "wait=30"}, body.encode())
    assert changed.status == 200 and "Site2=applied" in changed.header("Cheops-Replicas"), changed
    assert cluster.servers["Site1"].asked("PUT") == [body.encode()]
    assert cluster.servers["Site2"].asked("PUT") == [
        b'{"kind": "ConfigMap",  "metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"n": "2"}, "x": 1.50}']
    # The same once more is not as it is now: refused here, and nobody else hears of it.
    again = ask(cluster.agents["Site1"].url("kubernetes") + path, "PUT", {"Content-Type": "application/json"}, body.encode())
    assert again.status == 409 and again.header("Cheops-Operation") is None
    for method, headers, content in (("PATCH", MERGE, {"metadata": {"resourceVersion": "1"}, "data": {"n": "3"}}),
                                     ("DELETE", None, {"preconditions": {"uid": versions["Site2"]["uid"]}})):
        assert cluster.ask("Site1", method, path, content, headers=headers).status == 409
    cluster.wait_data("red", "one", {"n": "2"})
    assert len(cluster.servers["Site2"].asked("PUT")) == 1 and not cluster.servers["Site2"].asked("PATCH")
    # A delete that insists on the object of this site.
    gone = cluster.ask("Site1", "DELETE", path, {"preconditions": {"uid": versions["Site1"]["uid"]}, "kind": "DeleteOptions"},
                       headers={"Prefer": "wait=30"})
    assert gone.status == 200, gone
    cluster.wait_data("red", "one", None)
    assert [json.loads(body) for body in cluster.servers["Site2"].asked("DELETE")] == [{"kind": "DeleteOptions"}]


def test_if_match_is_judged_where_the_request_arrives(cluster):
    cluster.namespace("red")
    made = cluster.make("red", "one", data={"n": "1"})
    path = PODS.format("red") + "/one"
    stale, current = '"1"', '"' + made.json["metadata"]["resourceVersion"] + '"'
    refused = cluster.ask("Site1", "PATCH", path, {"data": {"n": "2"}}, headers={**MERGE, "If-Match": stale})
    assert refused.status == 412 and refused.header("Cheops-Operation") is None, refused
    changed = cluster.ask("Site1", "PATCH", path, {"data": {"n": "2"}},
                          headers={**MERGE, "If-Match": current, "Prefer": "wait=30"})
    assert changed.status == 200 and "Site2=applied" in changed.header("Cheops-Replicas"), changed
    cluster.wait_data("red", "one", {"n": "2"})
    assert [headers.get("If-Match") for headers in cluster.servers["Site1"].headers_of("PATCH", path)] == [stale, current]
    assert [headers.get("If-Match") for headers in cluster.servers["Site2"].headers_of("PATCH", path)] == [None]


def test_a_change_with_preconditions_is_not_tried_again_blindly(cluster):
    """The service did not say what became of it: without its preconditions it might do what they were to prevent."""
    cluster.namespace("red")
    cluster.make("red", "one", data={"n": "1"})
    path = PODS.format("red") + "/one"
    version = cluster.servers["Site1"].get(path)["metadata"]["resourceVersion"]
    cluster.servers["Site1"].silent = 1
    put = {"metadata": {"name": "one", "resourceVersion": version}, "data": {"n": "2"}}
    assert cluster.ask("Site1", "PUT", path, put).status == 502
    operations = ask(f"http://{cluster.agents['Site1'].config['api']}/cheops/v1/operations").json["operations"]
    assert [member["state"] for each in operations for member in each["members"]] == ["in-doubt"], operations
    assert len(cluster.servers["Site1"].asked("PUT")) == 1 and not cluster.servers["Site2"].asked("PUT")


# ---- Names that the service makes ---------------------------------------------------------------------------------------


def test_a_name_that_the_service_makes_is_the_same_everywhere(cluster):
    cluster.namespace("red")
    names = []
    for scope in (ALL, f"weak({ALL})"):  # when Site2 knows what it made for the latter is told to nobody
        answer = cluster.ask("Site1", "POST", PODS.format("red"), {"metadata": {"generateName": "job-"}, "data": {"a": "b"}},
                             scope, {"Prefer": "wait=30"})
        assert answer.status == 201 and answer.json["metadata"]["name"].startswith("job-")
        names.append(answer.json["metadata"]["name"])
        cluster.wait_data("red", names[-1], {"a": "b"})
    changed = cluster.ask("Site2", "PATCH", f"{PODS.format('red')}/{names[0]}", {"data": {"a": "c"}}, headers=MERGE)
    assert changed.status == 200 and changed.header("Cheops-Operation")
    cluster.wait_data("red", names[0], {"a": "c"})
    assert cluster.servers["Site1"].names(PODS.format("red")) == cluster.servers["Site2"].names(PODS.format("red"))
    assert b'"name"' not in cluster.servers["Site1"].asked("POST", PODS.format("red"))[0]


def test_what_cannot_be_read_is_refused(cluster):
    """A name, or a precondition, might be in it."""
    cluster.namespace("red")
    cluster.make("red", "one", data={"n": "1"})
    url = cluster.agents["Site1"].url("kubernetes") + PODS.format("red")
    for content in ("application/yaml", "application/vnd.kubernetes.protobuf"):
        for method, target, scope in (("POST", url, {"Scope": ALL}), ("PUT", url + "/one", {})):
            answer = ask(target, method, {"Content-Type": content, **scope}, b"metadata: {name: two}")
            assert answer.status == 415 and answer.json["type"] == "urn:cheops:problem:body-not-read", answer
            assert content in answer.json["detail"]
    assert cluster.servers["Site1"].names(PODS.format("red")) == ["one"]
    # What is nobody else's business passes as it is.
    assert ask(url, "POST", {"Content-Type": "application/yaml"}, b'{"metadata": {"name": "own"}}').status == 201


def test_the_answer_of_a_create_is_asked_for_in_json(cluster):
    cluster.namespace("red")
    cluster.ask("Site1", "POST", PODS.format("red"), {"metadata": {"name": "one"}}, ALL,
                {"Accept": "application/vnd.kubernetes.protobuf, application/json", "Prefer": "wait=30"})
    for site in SITES:
        assert [headers["Accept"] for headers in cluster.servers[site].headers_of("POST", PODS.format("red"))] == [
            "application/json"]
    cluster.ask("Site1", "PATCH", PODS.format("red") + "/one", {}, None, {**MERGE, "Accept": "text/yaml"})
    sent = cluster.servers["Site1"].headers_of("PATCH", PODS.format("red") + "/one")
    assert [headers["Accept"] for headers in sent] == ["application/json"]


def test_an_apply_makes_what_is_not_there(cluster):
    """A create by another name: with `&` it makes a replicant, and once that is there it changes it."""
    cluster.namespace("red")
    path = PODS.format("red") + "/one"
    url = cluster.agents["Site1"].url("kubernetes") + path + "?fieldManager=me"
    headers = {"Content-Type": "application/apply-patch+yaml", "Scope": ALL, "Prefer": "wait=30"}
    for status, data in ((201, {"n": "1"}), (200, {"n": "2"})):
        answer = ask(url, "PATCH", headers, json.dumps({"kind": "ConfigMap", "data": data}).encode())
        assert answer.status == status and "Site2=applied" in answer.header("Cheops-Replicas"), answer
        cluster.wait_data("red", "one", data)
    assert len(cluster.replicants()) == 1
    gone = cluster.ask("Site2", "DELETE", path, headers={"Prefer": "wait=30"})
    assert gone.status == 200 and gone.header("Cheops-Operation"), gone
    cluster.wait_data("red", "one", None)
