"""The sample services alone, without Cheops: projects, volumes, secrets and stacks."""
import hashlib
import uuid

import pytest

from sample_services import Recorder, at_once, is_uuid4, make_image

ABSENT = str(uuid.UUID(int=0))
IN_PROJECT = ("servers", "volumes", "stacks")


def make(service, path, **body):
    answer = service.post(path, body)
    assert answer.status == 201, answer
    return answer.json


def make_project(site, name="blue"):
    return "/projects/" + make(site.compute, "/projects", name=name)["id"]


def body_of(site, collection, name="one", image=None):
    """What it takes to make one of a collection."""
    return {"name": name, **({"size": 5} if collection == "volumes" else {"image": image or make_image(site.image)}),
            **({"servers": 2} if collection == "stacks" else {})}


def restarted(start, site):
    site.compute.stop()
    site.compute = start("compute", data=site.compute.data, IMAGE_URL=site.image.url, NETWORK_URL=site.network.url)
    return site.compute


# ---- projects -----------------------------------------------------------------------------------------------------------


def test_life_of_a_project(site):
    made = site.compute.post("/projects", {"name": "blue", "color": "sky", "id": "mine", "project": "other"})
    project, path = made.json, made.headers["Location"]
    assert made.status == 201 and path == f"/projects/{project['id']}" and is_uuid4(project["id"])
    assert list(project) == ["id", "name", "created", "color"]
    assert site.compute.get(path).json == project and site.compute.get("/projects").json == {"projects": [project]}
    assert site.compute.get("/projects?name=blue").json == {"projects": [project]}
    assert site.compute.get("/projects?name=red").json == {"projects": []}
    assert site.compute.ask("PATCH", path, json_body={"color": None}).json == {name: project[name] for name in list(project)[:3]}
    assert site.compute.ask("PUT", path, json_body={"name": "red"}).json["name"] == "red"
    assert site.compute.ask("DELETE", path).status == 204
    for method, body in (("GET", None), ("DELETE", None), ("PUT", {"name": "a"}), ("PATCH", {})):
        assert site.compute.ask(method, path, json_body=body).status == 404


def test_names_of_projects_are_unique(site):
    assert sorted(answer.status for answer in at_once(10, lambda _: site.compute.post("/projects", {"name": "blue"}))) \
        == [201] + 9 * [409]
    (blue,) = site.compute.get("/projects").json["projects"]
    red = make_project(site, "red")
    refused = site.compute.ask("PATCH", red, json_body={"name": "blue"})
    assert refused.status == 409 and refused.error == f"project {blue['id']} has the name blue"
    for body in ({}, {"name": ""}, {"name": 7}):
        assert site.compute.post("/projects", body).status == 400


@pytest.mark.parametrize("collection", IN_PROJECT)
def test_things_in_a_project(site, collection):
    blue, red = make_project(site), make_project(site, "red")
    body = body_of(site, collection)
    made = site.compute.post(f"{blue}/{collection}", {**body, "project": "elsewhere"})
    assert made.status == 201, made
    thing, path = made.json, made.headers["Location"]
    assert path == f"{blue}/{collection}/{thing['id']}" and blue.endswith(thing["project"])
    # There, and among all; but not in another project.
    assert site.compute.get(path).json == thing == site.compute.get(f"/{collection}/{thing['id']}").json
    assert site.compute.get(f"{blue}/{collection}").json == {collection: [thing]}
    assert site.compute.get(f"{red}/{collection}").json == {collection: []}
    assert thing in site.compute.get(f"/{collection}").json[collection]
    outside = make(site.compute, f"/{collection}", **{**body, "project": thing["project"]})
    assert "project" not in outside
    assert thing not in site.compute.get(f"/{collection}?project=").json[collection]
    assert site.compute.get(f"/{collection}?project={thing['project']}").json == {collection: [thing]}
    for method, rest in (("GET", ""), ("DELETE", "")):
        answer = site.compute.ask(method, f"{red}/{collection}/{thing['id']}{rest}")
        assert answer.status == 404 and thing["id"] in answer.error
    assert site.compute.ask("PATCH", f"{blue}/{collection}", json_body={}).status == 405
    assert site.compute.ask("DELETE", path).status == 204
    assert site.compute.get(f"{blue}/{collection}").json == {collection: []}


@pytest.mark.parametrize("collection", IN_PROJECT)
def test_a_project_that_is_not_there(site, collection):
    nowhere = f"/projects/{ABSENT}/{collection}"
    assert site.compute.get(nowhere).status == 404
    refused = site.compute.post(nowhere, body_of(site, collection))
    assert refused.status == 404 and refused.error == f"no project {ABSENT}"
    assert site.compute.get(f"{nowhere}/{ABSENT}").status == 404
    assert site.compute.get(f"/{collection}").json == {collection: []}


@pytest.mark.parametrize("path", ["/projects//servers", "/projects/a/ports", "/projects/a/projects", "/projects/a/b/servers",
                                  "/projects/a/", "/projects/a/whoami", "/projects/a/projects/b/servers",
                                  f"/projects/{300 * 'a'}/servers"])
def test_paths_that_are_below_no_project(site, path):
    assert site.compute.get(path).status == 404


@pytest.mark.parametrize("collection", IN_PROJECT)
def test_names_in_a_project_are_unique(site, collection):
    """Among the things of its kind; and of many who want it at the same moment, one gets it."""
    blue, red = make_project(site), make_project(site, "red")
    body = body_of(site, collection)
    answers = at_once(8, lambda _: site.compute.post(f"{blue}/{collection}", body))
    assert sorted(answer.status for answer in answers) == [201] + 7 * [409]
    (thing,) = site.compute.get(f"{blue}/{collection}").json[collection]
    refused = next(answer for answer in answers if answer.status == 409)
    assert refused.error == f"{collection[:-1]} {thing['id']} has the name one"
    make(site.compute, f"{red}/{collection}", **body)
    make(site.compute, f"/{collection}", **body)
    for other in set(IN_PROJECT) - {collection}:
        make(site.compute, f"{blue}/{other}", **body_of(site, other))


@pytest.mark.parametrize("collection", ["volumes", "stacks"])
def test_names_outside_of_projects(site, collection):
    make(site.compute, f"/{collection}", **body_of(site, collection))
    assert site.compute.post(f"/{collection}", body_of(site, collection)).status == 409
    second = make(site.compute, f"/{collection}", **body_of(site, collection, "two"))
    assert site.compute.ask("PATCH", f"/{collection}/{second['id']}", json_body={"name": "one"}).status == 409
    assert site.compute.get(f"/{collection}?name=two").json == {collection: [second]}


def test_a_refused_server_in_a_project_takes_no_port(site):
    blue = make_project(site)
    body = {**body_of(site, "servers"), "network": True}
    answers = at_once(8, lambda _: site.compute.post(f"{blue}/servers", body))
    assert sorted(answer.status for answer in answers) == [201] + 7 * [409]
    assert len(site.network.get("/ports").json["ports"]) == 1


def test_deleting_a_project_says_what_is_in_it(site):
    blue = make_project(site)
    made = {collection: make(site.compute, f"{blue}/{collection}", **body_of(site, collection)) for collection in IN_PROJECT}
    make(site.compute, "/volumes", name="outside", size=1)
    assert site.compute.post(f"{blue}/volumes/{made['volumes']['id']}/attach", {"server": made["servers"]["id"]}).status == 200
    refused = site.compute.ask("DELETE", blue)
    assert refused.status == 409 and "stacks: 1, servers: 3, volumes: 1" in refused.error and "cascade=true" in refused.error
    contents = refused.json["error"]["contents"]
    assert {name: set(ids) for name, ids in contents.items()} == {
        "stacks": {made["stacks"]["id"]}, "servers": {made["servers"]["id"], *made["stacks"]["servers"]},
        "volumes": {made["volumes"]["id"]}}
    assert site.compute.ask("DELETE", blue + "?cascade=perhaps").status == 400
    assert site.compute.ask("DELETE", blue + "?cascade=false").status == 409
    assert site.compute.ask("DELETE", blue + "?cascade=true").status == 204
    assert site.compute.get(blue).status == 404
    for collection in IN_PROJECT:
        assert [each["name"] for each in site.compute.get(f"/{collection}").json[collection]] \
            == (["outside"] if collection == "volumes" else [])


def test_nothing_is_left_in_a_project_that_is_deleted(site):
    """Things are made in it while it goes: each is refused, or goes too, or keeps the project."""
    for number in range(5):
        blue = make_project(site, f"blue {number}")

        def work(turn, blue=blue):
            if turn == 0:
                return site.compute.ask("DELETE", blue + "?cascade=true").status
            return site.compute.post(f"{blue}/volumes", {"name": f"v{turn}", "size": 1}).status

        deleted, *made = at_once(12, work)
        assert set(made) <= {201, 404} and deleted in (204, 409)
        if deleted == 204:
            assert site.compute.get(f"/volumes?project={blue.rpartition('/')[2]}").json == {"volumes": []}


def test_projects_survive_a_restart(start, site):
    blue = make_project(site)
    for collection in IN_PROJECT:
        make(site.compute, f"{blue}/{collection}", **body_of(site, collection))
    before = [site.compute.get(path).json for path in ("/projects", *(f"{blue}/{collection}" for collection in IN_PROJECT))]
    compute = restarted(start, site)
    assert before == [compute.get(path).json for path in ("/projects", *(f"{blue}/{collection}" for collection in IN_PROJECT))]


# ---- volumes ------------------------------------------------------------------------------------------------------------


def test_life_of_a_volume(site):
    made = site.compute.post("/volumes", {"name": "data", "size": 10, "attached": "mine"})
    volume, path = made.json, made.headers["Location"]
    assert list(volume) == ["id", "name", "size", "attached", "created"] and volume["attached"] is None
    assert site.compute.ask("PATCH", path, json_body={"size": 20, "attached": "x"}).json == {**volume, "size": 20}
    replaced = site.compute.ask("PUT", path, json_body={"name": "other", "size": 1})
    assert replaced.json == {**volume, "name": "other", "size": 1}
    assert site.compute.ask("DELETE", path).status == 204
    for method, rest, body in (("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None), ("POST", "/attach", {"server": "x"}),
                               ("POST", "/detach", {})):
        assert site.compute.ask(method, path + rest, json_body=body).status == 404


@pytest.mark.parametrize("body", [{"name": "x"}, {"size": 1}, {"name": "x", "size": 0}, {"name": "x", "size": "1"},
                                  {"name": "x", "size": 10 ** 12}, {"name": "", "size": 1}])
def test_volumes_that_are_refused(site, body):
    assert site.compute.post("/volumes", body).status == 400
    assert site.compute.get("/volumes").json == {"volumes": []}


def test_attaching(site):
    volume = "/volumes/" + make(site.compute, "/volumes", name="data", size=10)["id"]
    servers = [make(site.compute, "/servers", **body_of(site, "servers"))["id"] for _ in range(2)]
    for body, status in (({}, 400), ({"server": 7}, 400), ({"server": ABSENT}, 400)):
        assert site.compute.post(volume + "/attach", body).status == status
    assert site.compute.post(volume + "/detach", {}).status == 409
    assert site.compute.post(volume + "/attach", {"server": servers[0]}).json["attached"] == servers[0]
    taken = site.compute.post(volume + "/attach", {"server": servers[1]})
    assert taken.status == 409 and servers[0] in taken.error
    kept = site.compute.ask("DELETE", volume)
    assert kept.status == 409 and "detach" in kept.error
    assert site.compute.post(volume + "/detach", {}).json["attached"] is None
    # A server that goes leaves its volumes.
    assert site.compute.post(volume + "/attach", {"server": servers[1]}).status == 200
    assert site.compute.ask("DELETE", f"/servers/{servers[1]}").status == 204
    assert site.compute.get(volume).json["attached"] is None
    assert site.compute.ask("DELETE", volume).status == 204


def test_no_volume_is_attached_to_what_is_gone(site):
    volumes = ["/volumes/" + make(site.compute, "/volumes", name=f"v{number}", size=1)["id"] for number in range(8)]
    server = make(site.compute, "/servers", **body_of(site, "servers"))["id"]

    def work(number):
        if number == 8:
            return site.compute.ask("DELETE", f"/servers/{server}").status
        return site.compute.post(volumes[number] + "/attach", {"server": server}).status

    *attached, deleted = at_once(9, work)
    assert deleted == 204 and set(attached) <= {200, 400}
    assert {volume["attached"] for volume in site.compute.get("/volumes").json["volumes"]} == {None}


# ---- secrets ------------------------------------------------------------------------------------------------------------


def test_life_of_a_secret(image):
    made = image.post("/secrets", {"name": "key", "data": "s3cret"})
    secret, path = made.json, made.headers["Location"]
    assert made.status == 201 and path == f"/secrets/{secret['id']}" and list(secret) == ["id", "name", "created", "data"]
    assert image.get(path).json == secret
    # Who lists them does not see what they say.
    assert image.get("/secrets").json == {"secrets": [{name: secret[name] for name in secret if name != "data"}]}
    assert image.ask("PATCH", path, json_body={"data": "other"}).json == {**secret, "data": "other"}
    assert image.ask("PUT", path, json_body={"name": "key", "data": "third"}).json["data"] == "third"
    for method, body in (("PUT", {"name": "key"}), ("PATCH", {"data": ""}), ("PATCH", {"data": 65537 * "x"}), ("PATCH", {"name": None})):
        assert image.ask(method, path, json_body=body).status == 400
    assert image.get(path).json["data"] == "third"
    assert image.ask("DELETE", path).status == 204 and image.get(path).status == 404


def test_server_with_a_secret(site):
    secret = "/secrets/" + make(site.image, "/secrets", name="key", data="first")["id"]
    created = site.compute.post("/servers", {**body_of(site, "servers"), "secret": secret.rpartition("/")[2]})
    server, path = created.json, created.headers["Location"]
    assert server["secret"] == secret.rpartition("/")[2]
    assert server["secret_checksum"] == hashlib.sha256(b"first").hexdigest()
    # It is read when the server starts, and not before.
    site.image.ask("PATCH", secret, json_body={"data": "second"})
    assert site.compute.get(path).json == server
    assert site.compute.post(path + "/action", {"reboot": None}).json["secret_checksum"] == hashlib.sha256(b"second").hexdigest()
    # Without it the server goes on as it is, can be stopped, but cannot be started.
    site.image.ask("DELETE", secret)
    refused = site.compute.post(path + "/action", {"reboot": None})
    assert refused.status == 409 and refused.error == f"no secret {server['secret']}"
    assert site.compute.get(path).json["status"] == "ACTIVE"
    assert site.compute.post(path + "/action", {"stop": None}).status == 202
    assert site.compute.post(path + "/action", {"start": None}).status == 409
    assert site.compute.get(path).json["status"] == "SHUTOFF"
    site.image.stop()
    away = site.compute.post(path + "/action", {"start": None})
    assert away.status == 502 and "image service cannot be reached" in away.error
    assert site.compute.get(path).json["status"] == "SHUTOFF"


@pytest.mark.parametrize("secret", [ABSENT, "", 7, True])
def test_server_with_a_secret_that_is_refused(site, secret):
    body = {**body_of(site, "servers"), "secret": secret, "network": True}
    assert site.compute.post("/servers", body).status == 400
    assert site.network.get("/ports").json == {"ports": []}
    assert site.compute.post("/servers", {**body, "secret": None}).status == 201


# ---- stacks -------------------------------------------------------------------------------------------------------------


def test_life_of_a_stack(site):
    image = make_image(site.image, b"bytes")
    made = site.compute.post("/stacks", {"name": "web", "servers": 3, "image": image, "count": 9, "status": "x"})
    stack, path = made.json, made.headers["Location"]
    assert made.status == 201 and path == f"/stacks/{stack['id']}"
    assert list(stack) == ["id", "name", "image", "count", "created", "servers", "status"]
    assert (stack["count"], len(stack["servers"]), stack["status"]) == (3, 3, "ACTIVE")
    assert site.compute.get(path).json == stack and site.compute.get("/stacks").json == {"stacks": [stack]}
    parts = [site.compute.get(f"/servers/{server}").json for server in stack["servers"]]
    assert [(part["name"], part["stack"], part["image_size"]) for part in parts] == [
        (f"web-{number}", stack["id"], 5) for number in (1, 2, 3)]
    # A part goes with the whole, but otherwise it is a server.
    refused = site.compute.ask("DELETE", f"/servers/{stack['servers'][0]}")
    assert refused.status == 409 and stack["id"] in refused.error
    assert site.compute.post(f"/servers/{stack['servers'][0]}/action", {"stop": None}).status == 202

    grown = site.compute.ask("PATCH", path, json_body={"servers": 5}).json
    assert grown["servers"][:3] == stack["servers"] and (len(grown["servers"]), grown["count"]) == (5, 5)
    shrunk = site.compute.ask("PATCH", path, json_body={"servers": 2, "name": "www"}).json
    assert shrunk == {**stack, "name": "www", "count": 2, "servers": stack["servers"][:2]}
    assert len(site.compute.get("/servers").json["servers"]) == 2
    # What was read can be sent back, with or without its parts; and makes another one.
    assert site.compute.ask("PATCH", path, json_body=shrunk).json == shrunk
    del shrunk["servers"]
    again = make(site.compute, "/stacks", **{**shrunk, "name": "again"})
    assert (again["count"], len(again["servers"])) == (2, 2) and again["id"] != stack["id"]
    assert site.compute.ask("DELETE", f"/stacks/{again['id']}").status == 204
    assert site.compute.ask("DELETE", path).status == 204
    assert site.compute.get("/servers").json == {"servers": []}
    for method, body in (("GET", None), ("PATCH", {"servers": 1}), ("DELETE", None)):
        assert site.compute.ask(method, path, json_body=body).status == 404


@pytest.mark.parametrize("change", [{"servers": None}, {"servers": -1}, {"servers": 101}, {"servers": "3"}, {"servers": 1.5},
                                    {"name": 252 * "x"}, {"name": ""}, {"image": ABSENT}, {"image": None}, {"network": 7},
                                    {"secret": ABSENT}])
def test_stacks_that_are_refused(site, change):
    body = {**body_of(site, "stacks"), **change}
    assert site.compute.post("/stacks", body).status == 400
    assert site.compute.get("/stacks").json == {"stacks": []} and site.compute.get("/servers").json == {"servers": []}


@pytest.mark.parametrize("change", [{"servers": -1}, {"servers": 101}, {"servers": "3"}, {"name": ""}, {"image": "other"},
                                    {"network": True}, {"secret": "x"}])
def test_changes_of_a_stack_that_are_refused(site, change):
    stack = make(site.compute, "/stacks", **body_of(site, "stacks"))
    assert site.compute.ask("PATCH", f"/stacks/{stack['id']}", json_body=change).status == 400
    assert site.compute.get(f"/stacks/{stack['id']}").json == stack


def test_stack_with_network_and_secret(site):
    secret = make(site.image, "/secrets", name="key", data="first")["id"]
    stack = make(site.compute, "/stacks", **body_of(site, "stacks"), network=True, secret=secret)
    path = f"/stacks/{stack['id']}"
    assert site.compute.ask("PATCH", path, json_body={"servers": 4}).status == 200
    parts = site.compute.get("/servers").json["servers"]
    assert len({part["port"]["address"] for part in parts}) == 4 and {part["secret"] for part in parts} == {secret}
    assert site.compute.ask("PATCH", path, json_body={"servers": 1}).status == 200
    assert len(site.network.get("/ports").json["ports"]) == 1
    # Where a port cannot be given back, what is left can be deleted later.
    site.network.stop()
    assert site.compute.ask("PATCH", path, json_body={"servers": 0}).status == 502
    assert site.compute.get(path).json["status"] == "INCOMPLETE"
    assert site.compute.ask("DELETE", path).status == 502 and site.compute.get(path).status == 200


def test_a_stack_that_cannot_be_made_leaves_nothing(start, site):
    """The third port is refused."""
    taken = []

    def answer(method, _):
        if method == "POST":
            taken.append(method)
            return (500, b"no more") if len(taken) == 3 else (201, b'{"id": "p%d"}' % len(taken))
        return 204, b""

    network = Recorder(answer)
    try:
        compute = start("compute", data=site.compute.data.with_name("other"), IMAGE_URL=site.image.url, NETWORK_URL=network.url)
        refused = compute.post("/stacks", {**body_of(site, "stacks"), "servers": 5, "network": True})
        assert refused.status == 502 and "no more" in refused.error
        assert compute.get("/stacks").json == {"stacks": []} and compute.get("/servers").json == {"servers": []}
        assert sorted(path for method, path, _ in network.requests if method == "DELETE") == ["/ports/p1", "/ports/p2"]
        # Growing is the same, and leaves what there was.
        stack = make(compute, "/stacks", **{**body_of(site, "stacks"), "network": True})
        taken.clear()
        assert compute.ask("PATCH", f"/stacks/{stack['id']}", json_body={"servers": 6}).status == 502
        assert compute.get(f"/stacks/{stack['id']}").json == stack
    finally:
        network.stop()


def test_a_stack_whose_making_was_cut_off(start, site):
    stack = make(site.compute, "/stacks", **body_of(site, "stacks"))
    site.compute.kill()
    (site.compute.data / "servers" / f"{stack['servers'][1]}.json").unlink()
    compute = start("compute", data=site.compute.data, IMAGE_URL=site.image.url, NETWORK_URL=site.network.url)
    path = f"/stacks/{stack['id']}"
    assert compute.get(path).json == {**stack, "servers": stack["servers"][:1], "status": "INCOMPLETE"}
    whole = compute.ask("PATCH", path, json_body={"servers": 2}).json
    assert whole["status"] == "ACTIVE" and len(whole["servers"]) == 2
    assert compute.ask("DELETE", path).status == 204 and compute.get("/servers").json == {"servers": []}


def test_one_stack_changed_by_many(site):
    stack = make(site.compute, "/stacks", **body_of(site, "stacks"))
    path = f"/stacks/{stack['id']}"
    answers = at_once(10, lambda number: site.compute.ask("PATCH", path, json_body={"servers": number}))
    assert {answer.status for answer in answers} == {200}
    end = site.compute.get(path).json
    assert end["status"] == "ACTIVE" and len(end["servers"]) == end["count"]
    assert sorted(server["id"] for server in site.compute.get("/servers").json["servers"]) == sorted(end["servers"])


def test_parts_of_a_stack_in_a_project(site):
    blue = make_project(site)
    image = make_image(site.image)
    stack = make(site.compute, f"{blue}/stacks", **body_of(site, "stacks", "web", image))
    assert [server["name"] for server in site.compute.get(f"{blue}/servers").json["servers"]] == ["web-1", "web-2"]
    # A name that is taken there is taken for a part, too.
    make(site.compute, f"{blue}/servers", name="web-3", image=image)
    refused = site.compute.ask("PATCH", f"{blue}/stacks/{stack['id']}", json_body={"servers": 4})
    assert refused.status == 409 and "web-3" in refused.error
    assert site.compute.get(f"{blue}/stacks/{stack['id']}").json == stack


@pytest.mark.parametrize("collection", ["projects", "volumes", "stacks"])
def test_quota_of_compute(start, image, network, tmp_path, collection):
    compute = start("compute", "--quota", "2", data=tmp_path / "small", IMAGE_URL=image.url, NETWORK_URL=network.url)
    body = {"name": "a", "size": 1, "image": make_image(image), "servers": 0}
    assert [compute.post(f"/{collection}", {**body, "name": name}).status for name in "abc"] == [201, 201, 403]


def test_quota_of_servers_holds_for_stacks(start, image, network, tmp_path):
    compute = start("compute", "--quota", "2", data=tmp_path / "small", IMAGE_URL=image.url, NETWORK_URL=network.url)
    body = {"name": "a", "image": make_image(image)}
    assert compute.post("/stacks", {**body, "servers": 3}).status == 403
    assert compute.get("/stacks").json == {"stacks": []} and compute.get("/servers").json == {"servers": []}
    assert compute.post("/stacks", {**body, "servers": 2}).status == 201
