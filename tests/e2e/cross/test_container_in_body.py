"""A container that is named in the body of what is made in it, and in the query of a list."""
import contextlib
import urllib.parse

import mesh as mesh_of_ours
import pytest
from files_lab import ask, wait_for
from mesh_maker import wait_present
from played_service import PlayedService

DESCRIBED = """
format: 1
application: boxes
services: {store: }
types:
  store.box: {collection: /boxes, item: "/boxes/{id}", list: /boxes, name: /name, cross: container}
  store.thing:
    collection: /things
    item: /things/{id}
    list: /things
    name: /name
    references:
      body: {/box: {type: store.box, kind: container}}
      query: {box: {type: store.box, kind: container}}
"""


class Store(PlayedService):
    """Numbers from each site's own count; a thing is in a box, or in none."""

    def __init__(self, first):
        self.items, self.next = {"boxes": {}, "things": {}}, first
        super().__init__()

    def handle(self, method, path, body):
        path, _, query = path.partition("?")
        kind, _, item = path.strip("/").partition("/")
        box = urllib.parse.parse_qs(query).get("box", [None])[0]
        there = self.items[kind]
        if method == "POST" and body.get("box") is not None and int(body["box"]) not in self.items["boxes"]:
            return 400, {"error": f"no box {body['box']}"}
        if method == "POST":
            self.next += 1
            there[self.next] = {**body, "id": self.next}
            return 201, there[self.next]
        if not item:
            return 200, {kind: [each for each in there.values() if box is None or str(each.get("box")) == box]}
        if int(item) not in there:
            return 404, {"error": item}
        return 200, there.pop(int(item)) if method == "DELETE" else there[int(item)]

    def names(self):
        with self.lock:
            return sorted(each["name"] for each in self.items["things"].values())


class Stores:
    def __init__(self, mesh, folder):
        (folder / "boxes.yaml").write_text(DESCRIBED, encoding="utf-8")
        self.sites = {f"Site{number}": mesh.keep(Store(100 * number)) for number in (1, 2)}
        self.agents = {site: mesh.agent(site, {"store": store.url}, application=str(folder / "boxes.yaml"))
                       for site, store in self.sites.items()}
        mesh.join(*self.agents.values())
        wait_present(list(self.agents.values()))

    def ask(self, site, method, path, body=None, scope=None):
        headers = {"Prefer": "wait=30", **({"Scope": scope} if scope else {})}
        return ask(self.agents[site].url("store") + path, method, headers, json_body=body)


@pytest.fixture(name="stores")
def make_stores(tmp_path):
    with contextlib.ExitStack() as stops:
        mesh = mesh_of_ours.Mesh(tmp_path)
        stops.callback(mesh.stop)
        yield Stores(mesh, tmp_path)


def test_by_the_body(stores):
    box = stores.ask("Site1", "POST", "/boxes", {"name": "box"}, "Site1 % Site2").json["id"]
    wait_for(lambda: stores.ask("Site2", "GET", f"/boxes/{box}").status == 200, "Site2 to have it")
    for site, name in (("Site1", "one"), ("Site2", "two")):
        made = stores.ask(site, "POST", "/things", {"name": name, "box": box})
        assert (made.status, made.json["box"]) == (201, box), made
    for site in ("Site1", "Site2"):
        for name in ("one", "two"):
            answer = stores.ask(site, "POST", "/things", {"name": name, "box": box})
            assert (answer.status, answer.problem["type"]) == (409, "name-taken"), answer
        listed = stores.ask(site, "GET", f"/things?box={box}")
        assert sorted(each["name"] for each in listed.json["things"]) == ["one", "two"], listed
        assert {each["box"] for each in listed.json["things"]} == {box}
    assert (stores.sites["Site1"].names(), stores.sites["Site2"].names()) == (["one"], ["two"])
    assert stores.ask("Site1", "POST", "/things", {"name": "there", "box": box}, "Site2").status == 201
    assert stores.ask("Site1", "POST", "/things", {"name": "both", "box": box}, "Site1 & Site2").status == 201
    assert stores.sites["Site2"].names() == ["both", "there", "two"]
    assert stores.sites["Site1"].names() == ["both", "one"]


def test_what_is_in_none_is_as_ever(stores):
    box = stores.ask("Site1", "POST", "/boxes", {"name": "box"}, "Site1 % Site2").json["id"]
    wait_for(lambda: stores.ask("Site2", "GET", f"/boxes/{box}").status == 200, "Site2 to have it")
    for site in ("Site1", "Site2"):
        assert stores.ask(site, "POST", "/things", {"name": "loose"}).status == 201
        assert stores.ask(site, "POST", "/things", {"name": "loose", "box": None}).status == 201
    mine = stores.ask("Site1", "POST", "/boxes", {"name": "mine"}).json["id"]
    for _ in range(2):
        assert stores.ask("Site1", "POST", "/things", {"name": "same", "box": mine}).status == 201
    assert stores.sites["Site2"].names() == ["loose", "loose"]
