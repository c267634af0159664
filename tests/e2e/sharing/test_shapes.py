"""Problems in the form in which a service tells its errors, and why a service failed: a call that it made could not be carried out.

Compute is played: it knows the errors of image only, and makes a fault of its own of all that it does not understand, as services do.
"""
import json

import mesh as meshes
import pytest
from demo_process import ask

ID = "X-Request-Id"
DESCRIPTION = """\
format: 1
application: shapes
services:
  compute:
    errors:
      body: '{"{name}": {"code": {status}, "message": "{message}"}}'
      names: {403: forbidden, "*": computeFault}
  image: {errors: {type: text/html, body: "<h1>{status} {reason}</h1> {message}"}}
  network:
types:
  image.image: {collection: /images, item: "/images/{id}"}
"""
SCOPE = {"Scope": "{compute: Site1, image: Site2}"}


class Compute(meshes.Played):
    """Asks image for /whoami, twice if `again`, with the id of the request; then answers with `status`, or with what it got."""

    def __init__(self):
        self.image = self.status = None
        self.again = False
        self.got = []  # what image answered
        super().__init__()

    def answer(self, headers):
        passed = {ID: headers[ID]} if headers[ID] else {}
        answers = [ask(self.image + "/whoami", headers=passed)]
        if self.again:
            self.again()
            answers.append(ask(self.image + "/whoami", headers=passed))
        self.got += answers
        if self.status or answers[-1].status != 200:
            return self.status or 500, b'{"computeFault": {"code": 500, "message": "Unexpected API Error."}}'
        return 200, json.dumps({"image": answers[-1].json["site"]}).encode()


class Sites:
    def __init__(self, mesh):
        self.mesh = mesh
        self.compute = mesh.keep(Compute())
        self.images = {site: mesh.service("image", site) for site in ("Site1", "Site2")}
        path = mesh.folder / "shapes.yaml"
        path.write_text(DESCRIPTION, encoding="utf-8")
        config = mesh.config("Site1", {"compute": self.compute.url, "image": self.images["Site1"].url})
        config["services"]["compute"]["carry"] = [f"request-id:{ID}"]
        config["services"]["image"]["carry"] = []
        first = mesh.keep(meshes.Agent(mesh.folder, {**config, "application": str(path)}))
        second = mesh.agent("Site2", {"image": self.images["Site2"].url, "compute": self.compute.url}, application=str(path))
        self.first, self.second = mesh.join(first, second)
        self.compute.image = self.first.url("image")

    def ask(self, service="compute", path="/x", headers=None):
        return ask(self.first.url(service) + path, headers={**SCOPE, **(headers or {})})


@pytest.fixture
def sites(mesh):
    made = Sites(mesh)
    assert made.ask().json == {"image": "Site2"}
    return made


def test_a_problem_looks_like_an_error_of_the_service(sites):
    sites.second.kill()
    answer = sites.ask("image", "/whoami")
    assert answer.status == 502 and answer.header("Content-Type") == "text/html"
    assert answer.bytes.decode().startswith("<h1>502 Bad Gateway</h1> A site cannot be reached: the agent of Site2 (")
    assert answer.header("Cheops-Problem").startswith('site-unreachable; title="A site cannot be reached"; detail="the agent of Site2')
    assert 'error=connection_refused' in answer.header("Proxy-Status")


def test_who_knows_problem_documents_gets_them(sites):
    sites.second.kill()
    answer = sites.ask("image", "/whoami", {"Accept": "application/json;q=0.5, application/problem+json"})
    assert answer.problem["type"] == "site-unreachable" and answer.header("Cheops-Problem") is None


def test_a_scope_that_makes_no_sense(sites):
    answer = sites.ask(headers={"Scope": "{image: Sit2}"})
    assert answer.status == 400 and "unknown site `Sit2`" in answer.json["computeFault"]["message"]


def test_a_problem_of_another_agent(sites):
    """Its body is passed on as it is: so it has that form already."""
    sites.images["Site2"].stop()
    answer = sites.ask("image", "/whoami")
    assert answer.status == 503 and answer.header("Content-Type") == "text/html", answer
    assert "No instance of the service can be reached" in answer.bytes.decode() and "Site2" in answer.bytes.decode()


def test_why_a_service_failed(sites):
    """Compute made a fault of its own of it. What is told is what was wrong with its call, in the form of compute."""
    sites.second.kill()
    answer = sites.ask()
    assert answer.status == 502 and sites.compute.got[-1].status == 502
    told = answer.json["computeFault"]
    assert told["code"] == 502 and "compute called image: the agent of Site2 (" in told["message"], told
    assert answer.header("Cheops-Problem").startswith("call-failed; ")


def test_why_a_service_failed_when_another_agent_says_it(sites):
    sites.images["Site2"].stop()
    answer = sites.ask()
    assert answer.status == 503
    assert "compute called image: none of the 1 instance of image at Site2 can be reached" in answer.json["computeFault"]["message"]


def test_errors_for_other_reasons_are_left_alone(sites):
    for status in (400, 500):
        sites.compute.status = status
        answer = sites.ask()
        assert answer.status == status and answer.json["computeFault"]["message"] == "Unexpected API Error.", answer
    sites.second.kill()
    sites.compute.status = 404
    answer = sites.ask()  # the call failed, but what the service says is about the request
    assert answer.status == 404 and answer.json["computeFault"]["message"] == "Unexpected API Error."


def test_a_call_that_went_well_the_second_time(sites):
    """Then it is not why the service failed. The same client's next request is not blamed for it either."""
    sites.second.kill()

    def revive():
        sites.second = sites.mesh.again(sites.second)

    sites.compute.again, sites.compute.status = revive, 500
    answer = sites.ask()
    assert [got.status for got in sites.compute.got[-2:]] == [502, 200]
    assert answer.status == 500 and answer.json["computeFault"]["message"] == "Unexpected API Error.", answer


def test_one_id_for_several_requests(sites):
    """What was wrong with a call is told once."""
    sites.second.kill()
    mine = {ID: "one for all"}
    assert "Site2" in sites.ask(headers=mine).json["computeFault"]["message"]
    sites.second = sites.mesh.again(sites.second)
    assert sites.ask(headers=mine).json == {"image": "Site2"}
    sites.compute.status = 500
    assert sites.ask(headers=mine).json["computeFault"]["message"] == "Unexpected API Error."
