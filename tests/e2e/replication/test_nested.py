"""Items below replicated items, by ids of one site, under the description `rest`; and what of requests is easily overlooked."""
import http.client
import urllib.parse

import pytest

from demo_process import BOUND_S, ask, wait_for
from mesh_maker import wait_present
from played_service import PlayedService

SITES = ("Site1", "Site2")
ALL = " & ".join(SITES)


class Shelf(PlayedService):
    """/posts/1/comments/2: numbers from each site's own count; what is in nothing cannot be made."""

    def __init__(self, first):
        self.items = {}
        self.next = first
        super().__init__()

    def handle(self, method, path, body):
        outer = path.rpartition("/")[0]
        if method == "POST" and (outer == "" or outer in self.items):
            self.next += 1
            made = {**body, "id": self.next}
            self.items[f"{path}/{self.next}"] = made
            return 201, made
        if path not in self.items:
            return 404, {"error": path}
        if method == "PATCH":
            self.items[path].update(body)
        return 200, self.items.pop(path) if method == "DELETE" else self.items[path]

    def under(self, prefix):
        with self.lock:
            return {path: dict(item) for path, item in self.items.items() if path.startswith(prefix)}


class Shelves:
    def __init__(self, mesh):
        self.sites = {site: mesh.keep(Shelf(100 * number)) for number, site in enumerate(SITES)}
        self.agents = {site: mesh.agent(site, {"shelf": shelf.url}, application="rest") for site, shelf in self.sites.items()}
        mesh.join(*self.agents.values())
        wait_present(list(self.agents.values()))

    def ask(self, site, method, path, body=None, scope=None):
        headers = {"Prefer": "wait=30", **({"Scope": scope} if scope else {})}
        return ask(self.agents[site].url("shelf") + path, method, headers, json_body=body)


@pytest.fixture
def shelves(mesh):
    return Shelves(mesh)


def test_below_an_item_that_is_called_by_its_local_id(shelves):
    post = shelves.ask("Site1", "POST", "/posts", {"title": "p"}, ALL)
    assert post.status == 201
    local = {site: next(iter(shelves.sites[site].under("/posts/"))) for site in SITES}
    assert local["Site1"] != local["Site2"]
    comment = shelves.ask("Site1", "POST", f"{local['Site1']}/comments", {"text": "c"}, ALL)
    assert comment.status == 201 and "Site2=applied" in comment.header("Cheops-Replicas"), comment
    of_site2 = shelves.sites["Site2"].under(local["Site2"] + "/comments/")
    assert [item["text"] for item in of_site2.values()] == ["c"]
    # From the other site, by what that calls them.
    changed = shelves.ask("Site2", "PATCH", next(iter(of_site2)), {"text": "d"})
    assert changed.status == 200 and "Site1=applied" in changed.header("Cheops-Replicas"), changed
    assert [item["text"] for item in shelves.sites["Site1"].under(local["Site1"] + "/comments/").values()] == ["d"]
    # And by meta-ids.
    gone = shelves.ask("Site2", "DELETE", f"/posts/{post.json['id']}/comments/{comment.json['id']}")
    assert gone.status == 200
    for site in SITES:
        assert not shelves.sites[site].under(local[site] + "/comments/")


def test_what_is_below_waits_for_what_it_is_in(shelves):
    """They are two replicants: without that, what is below could come first, to a site where its path leads nowhere."""
    for number in range(8):
        post = ask(shelves.agents["Site1"].url("shelf") + "/posts", "POST", {"Scope": ALL}, json_body={"n": number})
        path = f"/posts/{post.json['id']}/comments"
        assert ask(shelves.agents["Site1"].url("shelf") + path, "POST", {"Scope": ALL}, json_body={"of": number}).status == 201

    def pairs():
        items = shelves.sites["Site2"].under("/posts/")
        return sorted((items[path.rpartition("/comments/")[0]]["n"], item["of"]) for path, item in items.items() if "of" in item)

    wait_for(lambda: pairs() == [(number, number) for number in range(8)], "each comment below its post at Site2")


def test_prefer_may_be_said_in_several_lines(shelves):
    parts = urllib.parse.urlsplit(shelves.agents["Site1"].url("shelf"))
    connection = http.client.HTTPConnection(parts.netloc, timeout=BOUND_S)
    body = b'{"title": "p"}'
    connection.putrequest("POST", "/posts")
    for name, value in (("Scope", ALL), ("Prefer", "handling=lenient"), ("Content-Type", "application/json"),
                        ("Content-Length", str(len(body))), ("Prefer", "wait=30")):
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 201 and answer.getheader("Preference-Applied") == "wait=30"
    assert "Site2=applied" in answer.getheader("Cheops-Replicas")
    connection.close()


def test_weak_takes_long_bodies(shelves):
    made = shelves.ask("Site1", "POST", "/posts", {"title": "x" * 70000}, f"weak({ALL})")
    assert made.status == 201 and len(shelves.sites["Site1"].items) == 1, made
    wait_for(lambda: len(shelves.sites["Site2"].items) == 1, "it at Site2")
