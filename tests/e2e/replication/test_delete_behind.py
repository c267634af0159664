"""What is deleted was needed by what was made before, and is still on its way to another site: there the delete comes after that."""
import uuid

import pytest
import yaml

from demo_process import ask, wait_for
from mesh import Agent
from played_service import PlayedService

DESCRIPTION = {
    "format": 1, "application": "needs",
    "services": {"cloud": {}},
    "types": {
        "cloud.image": {"collection": "/images", "item": "/images/{id}"},
        "cloud.server": {"collection": "/servers", "item": "/servers/{id}",
                         "references": {"body": {"/image": {"type": "cloud.image", "kind": "requirement"}}}},
    },
}


class Cloud(PlayedService):
    """A server is made of an image that has to be there. While it is full it makes none, and says so in one way or the other."""

    def __init__(self):
        self.stored = {"images": {}, "servers": {}}
        self.full = None
        super().__init__()

    def handle(self, method, path, body):
        _, collection, *wanted = path.split("/")
        items = self.stored[collection]
        if method == "POST":
            if collection == "servers" and self.full:
                return self.full, {"error": "no host"}
            if collection == "servers" and body["image"] not in self.stored["images"]:
                return 400, {"error": f"no image {body['image']}"}
            made = {**body, "id": uuid.uuid4().hex}
            items[made["id"]] = made
            return 201, made
        if wanted[0] not in items:
            return 404, {}
        return (204, items.pop(wanted[0]) and None) if method == "DELETE" else (200, items[wanted[0]])

    def names(self, collection):
        with self.lock:
            return sorted(each["name"] for each in self.stored[collection].values())


class Sites:
    def __init__(self, mesh):
        (mesh.folder / "app.yaml").write_text(yaml.safe_dump(DESCRIPTION), encoding="utf-8")
        self.services = {site: mesh.keep(Cloud()) for site in ("Site1", "Site2")}
        self.agents = {site: mesh.keep(Agent(mesh.folder, mesh.config(site, {"cloud": service.url}, application="./app.yaml")))
                       for site, service in self.services.items()}
        mesh.join(*self.agents.values())

    def ask(self, site, method, path, scope, **body):
        return ask(self.agents[site].url("cloud") + path, method, {"Scope": scope}, json_body=body)

    def make(self, path, scope, **body):
        answer = self.ask("Site1", "POST", path, scope, **body)
        assert answer.status == 201, answer
        return answer.json["id"]

    def delete(self, path):
        answer = ask(self.agents["Site1"].url("cloud") + path, "DELETE")
        assert answer.status == 204, answer
        return answer.header("Cheops-Operation")

    def operation(self, site, operation):
        return ask(f"http://{self.agents[site].config['api']}/cheops/v1/operations/{operation}").json

    def wait_names(self, site, collection, wanted):
        wait_for(lambda: self.services[site].names(collection) == wanted, f"{wanted} to be the {collection} of {site}")


@pytest.fixture(name="sites")
def fixture_sites(mesh):
    return Sites(mesh)


def test_it_waits_for_what_needed_it(sites):
    image = sites.make("/images", "Site1 & Site2", name="debian")
    sites.wait_names("Site2", "images", ["debian"])
    sites.services["Site2"].full = 503  # for now
    server = sites.make("/servers", "Site1 & Site2", name="vm", image=image)
    operation = sites.delete(f"/images/{image}")
    sites.wait_names("Site1", "images", [])

    def waits():
        reason = next(each["reason"] for each in sites.operation("Site2", operation)["members"] if each["site"] == "Site2")
        return reason and server in reason

    wait_for(waits, "Site2 to say what the delete waits for")
    assert sites.services["Site2"].names("images") == ["debian"]
    sites.services["Site2"].full = None
    sites.wait_names("Site2", "servers", ["vm"])
    sites.wait_names("Site2", "images", [])
    for site in ("Site1", "Site2"):
        def refused(site=site):
            answer = sites.ask(site, "POST", "/servers", "Site1 & Site2", name="late", image=image)
            assert answer.status in (400, 409), answer  # the service's own, until all know that it is gone everywhere
            return answer.status == 409 and answer.json["detail"]

        assert f"requires cloud.image `{image}`, which was deleted" in wait_for(refused, "what is gone to be gone for good")
        assert sites.services[site].names("servers") == ["vm"]


def test_a_create_that_is_refused_holds_up_nothing(sites):
    image = sites.make("/images", "Site1 & Site2", name="debian")
    sites.wait_names("Site2", "images", ["debian"])
    sites.services["Site2"].full = 409
    sites.make("/servers", "Site1 & Site2", name="vm", image=image)
    sites.delete(f"/images/{image}")
    sites.wait_names("Site2", "images", [])
    assert sites.services["Site2"].names("servers") == []
