"""What counts is what a resource refers to now: after updates, restarts, and for a type that refuses to be missed."""
import contextlib

import pytest

from demo_process import ask, wait_for
from mesh import Mesh
from mesh_maker import wait_reachable
from test_operations import check_answer

SITES = ("Site1", "Site2")
ALL = " & ".join(SITES)
# The sample's images keep whatever members they are given; here one may rely on a secret, and on others.
TYPES = """  image.image:
    collection: /images
    item: /images/{id}
    list: /images
    name: /name
    volatile: [/created]
    references:
      body:
        /secret: {type: image.secret, kind: reliance}
        /base: {type: image.image, kind: reliance}
        /others/*: {type: image.secret, kind: reliance}
  image.secret:
    collection: /secrets
    item: /secrets/{id}
    list: /secrets
    name: /name
    volatile: [/created]
    relied: %s
"""


class Lab:
    def __init__(self, folder, relied):
        self.mesh = Mesh(folder)
        path = folder / "app.yaml"
        path.write_text("format: 1\napplication: relied\nservices: {image: }\ntypes:\n" + TYPES % relied, encoding="utf-8")
        services = {site: self.mesh.service("image", site) for site in SITES}
        self.agents = {site: self.mesh.agent(site, {"image": service.url}, application=str(path))
                       for site, service in services.items()}
        self.mesh.join(*self.agents.values())
        wait_reachable(list(self.agents.values()))

    def ask(self, method, path, body=None, site="Site1", scope=None):
        headers = {"Prefer": "wait=60", **({"Scope": scope} if scope else {})}
        return ask(self.agents[site].url("image") + path, method, headers, json_body=body)

    def make(self, path, scope=ALL, **members):
        answer = self.ask("POST", path, {"name": "one", "data": "hush", **members}, scope=scope)
        assert answer.status == 201, answer
        return answer.json["id"]

    def risks(self, site, replicant):
        path = f"/cheops/v1/replicants/{replicant}"
        answer = ask(f"http://{self.agents[site].config['api']}{path}")
        check_answer("GET", path, answer.status, dict(answer.headers), answer.bytes)
        return answer.json["at_risk"]

    def restart(self, site, kill=False):
        agent = self.agents[site]
        agent.kill() if kill else agent.stop()
        self.agents[site] = self.mesh.again(agent)


def lab_of(relied):
    @pytest.fixture(scope="module")
    def lab(tmp_path_factory):
        with contextlib.ExitStack() as stops:
            made = Lab(tmp_path_factory.mktemp(relied), relied)
            stops.callback(made.mesh.stop)
            yield made
    return lab


warning = lab_of("warn")
refusing = lab_of("refuse")


def warned(answer):
    assert answer.status == 204, answer
    return answer.header("Warning") or ""


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_update_that_refers_to_another(warning, method):
    old, new = warning.make("/secrets"), warning.make("/secrets")
    image = warning.make("/images", secret=old)
    assert warning.ask(method, f"/images/{image}", {"name": "two", "secret": new}).status == 200
    assert image not in warned(warning.ask("DELETE", f"/secrets/{old}"))
    assert image in warned(warning.ask("DELETE", f"/secrets/{new}", site="Site2"))


def test_a_patch_that_says_nothing_of_it_leaves_it(warning):
    secret = warning.make("/secrets")
    image = warning.make("/images", secret=secret)
    assert warning.ask("PATCH", f"/images/{image}", {"name": "two"}).status == 200
    assert image in warned(warning.ask("DELETE", f"/secrets/{secret}"))


@pytest.mark.parametrize("method, body", [("PUT", {"name": "two"}), ("PATCH", {"secret": None}), ("PATCH", {"secret": ""})])
def test_an_update_that_takes_it_back(warning, method, body):
    secret = warning.make("/secrets")
    image = warning.make("/images", secret=secret)
    assert warning.ask(method, f"/images/{image}", body).status == 200
    assert image not in warned(warning.ask("DELETE", f"/secrets/{secret}"))


def test_of_a_list_what_is_in_it(warning):
    one, two, three = (warning.make("/secrets") for _ in range(3))
    image = warning.make("/images", others=[one, two])
    assert warning.ask("PATCH", f"/images/{image}", {"others": [three]}).status == 200
    assert image not in warned(warning.ask("DELETE", f"/secrets/{one}"))
    assert image in warned(warning.ask("DELETE", f"/secrets/{three}"))


def test_who_refers_to_something_else_is_at_risk_no_more(warning):
    old, new = warning.make("/secrets"), warning.make("/secrets")
    image = warning.make("/images", secret=old)
    warned(warning.ask("DELETE", f"/secrets/{old}"))
    for site in SITES:
        wait_for(lambda site=site: warning.risks(site, image), f"the risk at {site}")
    assert warning.ask("PATCH", f"/images/{image}", {"secret": new}).status == 200
    for site in SITES:
        wait_for(lambda site=site: warning.risks(site, image) is None, f"its end at {site}")


def test_one_relies_on_another_of_its_type(warning):
    base = warning.make("/images")
    image = warning.make("/images", base=base)
    assert image in warned(warning.ask("DELETE", f"/images/{base}"))


@pytest.mark.parametrize("kill", [False, True])
def test_it_is_known_after_a_restart(warning, kill):
    secret, lost = warning.make("/secrets"), warning.make("/secrets")
    image = warning.make("/images", secret=secret, others=[lost])
    warned(warning.ask("DELETE", f"/secrets/{lost}"))
    wait_for(lambda: warning.risks("Site1", image), "the risk")
    warning.restart("Site1", kill)
    assert warning.risks("Site1", image)[0]["why"] == "gone"
    wait_reachable(list(warning.agents.values()))
    assert image in warned(warning.ask("DELETE", f"/secrets/{secret}"))


def test_a_type_that_refuses(refusing):
    secret, plain = refusing.make("/secrets"), refusing.make("/secrets", scope=None)
    image = refusing.make("/images", secret=secret)
    for site in SITES:
        answer = refusing.ask("DELETE", f"/secrets/{secret}", site=site)
        assert answer.status == 409 and answer.problem["type"] == "relied-upon", answer
        assert image in answer.json["detail"] and answer.json["others"] == 0
        assert answer.json["relied_on_by"] == [{"id": image, "type": "image.image", "name": None}]
        assert refusing.ask("GET", f"/secrets/{secret}", site=site).status == 200
    assert refusing.ask("DELETE", f"/secrets/{plain}").status == 204
    assert refusing.ask("DELETE", f"/images/{image}").status == 204
    wait_for(lambda: refusing.ask("DELETE", f"/secrets/{secret}").status == 204, "it to be let go")
