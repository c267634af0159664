"""A repair from a copy that has no file: those of the others go, where the description has a request for that; else it says that they stay."""
import pytest

from demo_process import ask, wait_for
from mesh_maker import wait_present
from played_service import PlayedService

SITES = ("Site1", "Site2", "Site3")
ALL = " & ".join(SITES)
DESCRIPTION = """\
format: 1
application: boxes
services:
  box: {address: http://127.0.0.1:9292}
types:
  box.box:
    collection: /boxes
    item: /boxes/{id}
    list: /boxes
    operations:
      fill: {method: PUT, path: "{item}/note", facet: note, body: opaque}
      look: {method: GET, path: "{item}/note", facet: note, answer: opaque}
      tag: {method: PUT, path: "{item}/tags", facet: tags}
      tags: {method: GET, path: "{item}/tags", facet: tags}
"""
EMPTY = """\
      empty: {method: DELETE, path: "{item}/note", facet: note, effect: replace, body: none}
      untag: {method: DELETE, path: "{item}/tags", facet: tags, effect: replace, body: none}
"""


class Boxes(PlayedService):
    """/boxes/7, /boxes/7/note and /boxes/7/tags; counts what is taken away."""

    def __init__(self, first):
        self.items = {}
        self.next = first
        self.deleted = []
        super().__init__()

    def handle(self, method, path, body):
        if method == "POST" and path == "/boxes":
            self.next += 1
            self.items[f"/boxes/{self.next}"] = {**body, "id": self.next}
            return 201, self.items[f"/boxes/{self.next}"]
        if method == "GET" and path == "/boxes":
            return 200, {"boxes": [item for key, item in self.items.items() if key.count("/") == 2]}
        item = "/".join(path.split("/")[:3])
        if item not in self.items or (path not in self.items and method != "PUT"):
            return 404, {"error": path}
        if method == "PUT":
            self.items[path] = {**body, "id": self.items[item]["id"]} if path == item else body
        elif method == "DELETE":
            self.deleted.append(path)
            self.items.pop(path)
            return 204, None
        return 200, self.items[path]


class Shop:
    def __init__(self, mesh, folder, description):
        path = folder / "boxes.yaml"
        path.write_text(description, encoding="utf-8")
        self.services = {site: mesh.keep(Boxes(100 * number)) for number, site in enumerate(SITES)}
        self.agents = {site: mesh.agent(site, {"box": each.url}, application=str(path)) for site, each in self.services.items()}
        mesh.join(*self.agents.values())
        wait_present(list(self.agents.values()))
        made = ask(self.agents["Site1"].url("box") + "/boxes", "POST", {"Scope": ALL, "Prefer": "wait=30"}, json_body={"name": "b"})
        assert made.status == 201, made
        self.id = made.json["id"]

    def put(self, part, body):
        answer = ask(f"{self.agents['Site1'].url('box')}/boxes/{self.id}/{part}", "PUT", {"Prefer": "wait=30"}, json_body=body)
        assert answer.status == 200 and "Site3=applied" in answer.header("Cheops-Replicas"), answer

    def has(self, part):
        """By the services themselves."""
        return {site: [key for key in each.items if key.endswith(f"/{part}")] != [] for site, each in self.services.items()}

    def lose(self, site, part):
        each = self.services[site]
        with each.lock:
            for key in [key for key in each.items if key.endswith(f"/{part}")]:
                each.items.pop(key)

    def api(self, part, method="GET", body=None, site="Site1"):
        url = f"http://{self.agents[site].config['api']}/cheops/v1/replicants/{self.id}/{part}"
        answer = ask(url, method, {"Content-Type": "application/json"}, json_body=body) if body else ask(url, method)
        assert answer.status == 200, answer
        return answer.json


def everywhere(value):
    return {site: value for site in SITES}


@pytest.mark.parametrize("part", ["note", "tags"])
def test_what_the_right_copy_lacks_is_taken_away(mesh, tmp_path, part):
    shop = Shop(mesh, tmp_path, DESCRIPTION + EMPTY)
    shop.put(part, {"words": ["one", "two"]})
    assert shop.has(part) == everywhere(True)
    shop.lose("Site2", part)
    shown = shop.api("verify")
    assert shown["verify"] == "differs" and shown["not_removable"] == []
    # Asked at another site; who has none already is not asked to take it away.
    repaired = shop.api("repair", "POST", {"from": "Site2"}, site="Site3")
    assert repaired["left"] == [] and len(repaired["operations"]) == 3
    wait_for(lambda: shop.has(part) == everywhere(False), "it to be gone everywhere")
    wait_for(lambda: shop.api("verify")["verify"] == "same", "all to be the same")
    assert not shop.services["Site2"].deleted
    # It can be set again, and taken away by users as well.
    shop.put(part, {"words": ["three"]})
    assert shop.has(part) == everywhere(True)
    gone = ask(f"{shop.agents['Site3'].url('box')}/boxes/{shop.id}/{part}", "DELETE", {"Prefer": "wait=30"})
    assert gone.status == 204, gone
    wait_for(lambda: shop.has(part) == everywhere(False), "it to be gone everywhere")


def test_where_nothing_takes_it_away_that_is_said(mesh, cheops, tmp_path):
    shop = Shop(mesh, tmp_path, DESCRIPTION)
    shop.put("note", {"words": ["one", "two"]})
    shop.lose("Site2", "note")
    assert shop.api("repair", "POST", {"from": "Site2"}, site="Site3")["left"] == ["note", "tags"]
    told = cheops("repair", shop.id, "--from", "Site2", "--wait", "all", "--api", shop.agents["Site1"].config["api"])
    assert told.status == 0 and "the copy there has no note, and no request of the description takes it away" in told.out, told
    assert shop.has("note") == {**everywhere(True), "Site2": False}
    assert shop.api("verify")["not_removable"] == ["note", "tags"]
    shown = cheops("get", shop.id, "--verify", "--api", shop.agents["Site1"].config["api"])
    assert shown.status == 3 and "No request of the description takes away: note." in shown.out, shown
    assert "takes away: tags" not in shown.out
