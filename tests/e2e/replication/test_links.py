"""Links that services put into what they show: each builds them with the host that it was asked by, and with its own ids. Users see meta-ids
in them, whatever they lead to, and copies are not said to differ for them."""
import json
import uuid

import pytest
import yaml

from demo_process import ask, wait_for
from mesh import Agent
from played_service import PlayedService

DESCRIPTION = {
    "format": 1, "application": "linked",
    "services": {"shop": {"under": "/v1", "base": "/v1"}},
    "types": {
        "shop.shelf": {"collection": "/shelves", "item": "/shelves/{id}", "links": ["/self"]},
        "shop.box": {"collection": "/boxes", "item": "/boxes/{id}", "links": ["/links/*/href", "/shelf/self"],
                     "references": {"body": {"/shelf_id": "shop.shelf", "/shelf/id": "shop.shelf"}}},
    },
}


class Shop(PlayedService):
    """Its ids are numbers, counted from where it is told: those of a shelf and of a box may be the same."""

    def __init__(self, first):
        self.next = {"shelves": first, "boxes": first}
        self.stored = {}
        super().__init__()

    def shown(self, host, collection, item):
        path = f"http://{host}/v1/{collection}/{item['id']}"
        if collection == "shelves":
            return {**item, "self": path}
        on = item["shelf_id"]
        return {**{name: value for name, value in item.items() if name != "shelf_id"},
                "links": [{"rel": "self", "href": path}, {"rel": "bookmark", "href": path.replace("/v1", "")}],
                "shelf": {"id": on, "self": f"http://{host}/shelves/{on}"}}

    def serve(self, handler, body):
        host = handler.headers["Host"]
        collection, _, wanted = handler.path.removeprefix("/v1/").partition("/")
        with self.lock:
            if handler.command == "POST":
                item = {**json.loads(body), "id": str(self.next[collection])}
                self.next[collection] += 1
                self.stored[collection, item["id"]] = item
                status = 201
            else:
                item, status = self.stored.get((collection, wanted)), 200
        handler.answer(status if item else 404, self.shown(host, collection, item) if item else {})


@pytest.fixture(name="sites")
def fixture_sites(mesh):
    (mesh.folder / "app.yaml").write_text(yaml.safe_dump(DESCRIPTION), encoding="utf-8")
    services = {site: mesh.keep(Shop(first)) for site, first in (("Site1", 7), ("Site2", 21))}
    agents = {site: mesh.keep(Agent(mesh.folder, mesh.config(site, {"shop": service.url}, application="./app.yaml")))
              for site, service in services.items()}
    mesh.join(*agents.values())
    return agents


def make(sites, path, body):
    answer = ask(sites["Site1"].url("shop") + path, "POST", {"Scope": "Site1 & Site2"}, json_body=body)
    assert answer.status == 201, answer
    uuid.UUID(answer.json["id"])
    wait_for(lambda: ask(f"{sites['Site2'].url('shop')}{path}/{answer.json['id']}").status == 200, "it at Site2")
    return answer.json


def check(sites, site, shown, shelf, box):
    front = sites[site].url("shop")
    assert shown["shelf"] == {"id": shelf, "self": f"{front}/shelves/{shelf}"}
    assert [each["href"] for each in shown["links"]] == [f"{front}/v1/boxes/{box}", f"{front}/boxes/{box}"]


def test_links_lead_to_what_users_know(sites):
    shelf = make(sites, "/v1/shelves", {"name": "upper"})
    assert shelf["self"] == f"{sites['Site1'].url('shop')}/v1/shelves/{shelf['id']}"
    box = make(sites, "/v1/boxes", {"shelf_id": shelf["id"]})
    check(sites, "Site1", box, shelf["id"], box["id"])
    for site, agent in sites.items():
        check(sites, site, ask(f"{agent.url('shop')}/v1/boxes/{box['id']}").json, shelf["id"], box["id"])


def test_copies_are_the_same_whatever_their_hosts(sites):
    shelf = make(sites, "/v1/shelves", {"name": "upper"})
    box = make(sites, "/v1/boxes", {"shelf_id": shelf["id"]})
    for made in (shelf, box):
        def is_same(made=made):
            shown = ask(f"http://{sites['Site1'].config['api']}/cheops/v1/replicants/{made['id']}/verify").json
            assert shown["verify"] != "differs", shown
            return shown["verify"] == "same"

        wait_for(is_same, "the copies to be settled, and compared")
