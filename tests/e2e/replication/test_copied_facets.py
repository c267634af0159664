"""A service with the manners of Glance, played: what an item shows may not all be said by who makes one; tags stand in the item; those with whom it
is shared are a list, made one by one; it is active or not. A further site gets all of it."""
import hashlib
import json
import uuid

import pytest
import yaml

from demo_process import ask, wait_for
from mesh import Agent
from played_service import PlayedService

DESCRIPTION = {
    "format": 1, "application": "pictures",
    "services": {"image": {"under": "/v2", "base": "/v2"}},
    "types": {
        "image.project": {"collection": "/projects", "item": "/projects/{id}"},
        "image.image": {
            "collection": "/images", "item": "/images/{id}", "identity": "suggested", "links": ["/self"],
            "volatile": ["/created"], "derived": ["/status", "/checksum"],
            "operations": {
                "replace": None,
                "upload": {"method": "PUT", "path": "{item}/file", "facet": "file", "body": "opaque", "answer": "none"},
                "download": {"method": "GET", "path": "{item}/file", "facet": "file", "answer": "opaque"},
                "stage": {"method": "PUT", "path": "{item}/stage", "facet": "stage", "body": "opaque", "answer": "none"},
                "tag": {"method": ["PUT", "DELETE"], "path": "{item}/tags/{tag}", "effect": "assign", "facet": "tags"},
                "share": {"method": "POST", "path": "{item}/members", "effect": "assign", "facet": "members",
                          "references": {"/with/project": "image.project"}},
                "members": {"method": "GET", "path": "{item}/members", "facet": "members",
                            "references": {"/members/*/project": "image.project"}},
                "deactivate": {"method": "POST", "path": "{item}/deactivate", "effect": "assign", "facet": "active", "answer": "none"},
            },
            "facets": {
                "stage": {"copy": "none"}, "tags": {"copy": "item"},
                "members": {"copy": "share", "each": "/members", "body": {"/with/project": "/project", "/note": "/note"},
                            "when": {"/visibility": "shared"}},
                "active": {"copy": "deactivate", "when": {"/status": "deactivated"}},
            },
        },
    },
}
READ_ONLY = ("status", "checksum", "created", "self")


class Pictures(PlayedService):
    def __init__(self):
        self.projects, self.images, self.files, self.members = {}, {}, {}, {}
        super().__init__()

    def serve(self, handler, body):
        version, *path = handler.path.strip("/").split("/")
        with self.lock:
            status, made = self.handle(handler.command, path, body) if version == "v2" else (300, {})
        if not isinstance(made, bytes):
            handler.answer(status, made)
            return
        handler.send_response(status)
        handler.send_header("Content-Type", "application/octet-stream")
        handler.send_header("Content-Length", str(len(made)))
        handler.end_headers()
        handler.wfile.write(made)

    def shown(self, image):
        has = image["id"] in self.files
        return {**{name: value for name, value in image.items() if name != "off"}, "self": f"/images/{image['id']}", "created": uuid.uuid4().hex,
                "checksum": hashlib.md5(self.files[image["id"]]).hexdigest() if has else None,
                "status": "deactivated" if image["off"] else "active" if has else "queued"}

    def make(self, body):
        asked = json.loads(body)
        refused = [name for name in READ_ONLY if name in asked]
        if refused:
            return 403, {"error": f"{refused[0]} is read-only"}
        image = {"visibility": "private", "tags": [], "off": False, **asked, "id": asked.get("id") or uuid.uuid4().hex}
        self.images[image["id"]] = image
        return 201, self.shown(image)

    def handle(self, method, path, body):
        if path[0] == "projects":
            made = {**json.loads(body or b"{}"), "id": uuid.uuid4().hex} if method == "POST" else self.projects.get(path[1])
            if made:
                self.projects[made["id"]] = made
            return (201 if method == "POST" else 200 if made else 404), made or {}
        if len(path) == 1:
            return self.make(body) if method == "POST" else (200, list(map(self.shown, self.images.values())))
        image = self.images.get(path[1])
        if not image:
            return 404, {}
        return self.part(method, image, path[2:], body) if path[2:] else (200, self.shown(image))

    def part(self, method, image, path, body):
        if path == ["file"] and method == "PUT":
            self.files[image["id"]] = body
            return 204, None
        if path == ["file"]:
            return (200, self.files[image["id"]]) if image["id"] in self.files else (204, None)
        if path[0] == "tags":
            image["tags"].append(path[1])
            return 204, None
        if path == ["deactivate"]:  # what has no file is not active
            image["off"] = image["id"] in self.files
            return (204, None) if image["off"] else (403, {})
        if image["visibility"] != "shared":
            return 403, {"error": "only shared images have members"}
        members = self.members.setdefault(image["id"], [])
        if method == "POST":
            asked = json.loads(body)
            members.append({"project": asked["with"]["project"], "note": asked.get("note"), "status": "pending"})
        return 200, {"members": members}


@pytest.fixture(name="sites")
def fixture_sites(mesh):
    (mesh.folder / "app.yaml").write_text(yaml.safe_dump(DESCRIPTION), encoding="utf-8")
    sites = {}
    for name in ("Site1", "Site2", "Site3"):
        service = mesh.keep(Pictures())
        sites[name] = mesh.keep(Agent(mesh.folder, mesh.config(name, {"image": service.url}, application="./app.yaml")))
        sites[name].service = service
    mesh.join(*sites.values())
    return sites


def front(sites, path, method="GET", site="Site1", **options):
    answer = ask(sites[site].url("image") + "/v2" + path, method, **options)
    assert answer.status < 300, answer
    return answer


def make(sites, path, body, scope="Site1 & Site2"):
    made = front(sites, path, "POST", headers={"Scope": scope}, json_body=body).json["id"]
    for site in scope.split(" & "):
        wait_for(lambda site=site: ask(f"{sites[site].url('image')}/v2{path}/{made}").status == 200, f"{made} at {site}")
    return made


def extend(sites, wanted, site="Site3"):
    answer = ask(f"http://{sites['Site1'].config['api']}/cheops/v1/replicants/{wanted}/members/{site}", "PUT")
    assert answer.status in (200, 202), answer

    def is_there():
        shown = ask(f"http://{sites['Site1'].config['api']}/cheops/v1/replicants/{wanted}").json
        states = {each["site"]: each["state"] for each in shown["members"]}
        assert states[site] != "rejected", shown
        return states[site] == "settled"

    wait_for(is_there, f"{wanted} to be at {site}")


def local(sites, site, project):
    shown = ask(f"http://{sites[site].config['api']}/cheops/v1/replicants/{project}").json
    return next(each["local_id"] for each in shown["members"] if each["site"] == site)


def test_a_further_site_gets_all_of_it(sites):
    projects = [make(sites, "/projects", {"name": name}, "Site1 & Site2 & Site3") for name in ("red", "blue")]
    image = make(sites, "/images", {"name": "debian", "visibility": "shared", "tags": ["stable"]})
    front(sites, f"/images/{image}/file", "PUT", body=b"bytes", headers={"Content-Type": "application/octet-stream"})
    front(sites, f"/images/{image}/tags/new", "PUT", site="Site2")
    for project, note in zip(projects, ("first", None)):
        front(sites, f"/images/{image}/members", "POST", json_body={"with": {"project": project}, "note": note})
    front(sites, f"/images/{image}/deactivate", "POST")
    extend(sites, image)
    service = sites["Site3"].service
    with service.lock:
        there = dict(service.images[image])  # by the same id
        members = [(each["project"], each["note"]) for each in service.members[image]]
        assert service.files[image] == b"bytes"
    assert sorted(there["tags"]) == ["new", "stable"] and there["off"] and there["name"] == "debian"
    assert members == [(local(sites, "Site3", projects[0]), "first"), (local(sites, "Site3", projects[1]), None)]
    verified = ask(f"http://{sites['Site1'].config['api']}/cheops/v1/replicants/{image}/verify").json
    assert verified["verify"] == "same" and sorted(verified["not_compared"]) == ["members", "stage"], verified


def test_nothing_that_is_not_there(sites):
    """One without a file, shared with nobody, and active: nothing of it is asked of the new site."""
    image = make(sites, "/images", {"id": "mine", "name": "empty"})
    extend(sites, image)
    service = sites["Site3"].service
    with service.lock:
        assert service.images["mine"]["name"] == "empty" and not service.images["mine"]["off"]  # by the id that its user chose
        assert not service.files and not service.members
