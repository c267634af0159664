"""The sample services alone, without Cheops: what a client of each may rely on."""
import base64
import hashlib
import ipaddress
import json
import os
import re
import socket
import uuid

import pytest

from sample_services import BOUND_S, at_once, is_uuid4, make_image, wait_until

ABSENT = str(uuid.UUID(int=0))
MIB = 1024 * 1024


# ---- image --------------------------------------------------------------------------------------------------------------


def test_life_of_an_image(image):
    created = image.post("/images", {"name": "debian", "os": {"family": "linux"}, "id": "mine", "status": "active"})
    assert created.status == 201
    record = created.json
    assert created.headers["Location"] == f"/images/{record['id']}"
    assert is_uuid4(record["id"])
    assert list(record)[:3] == ["id", "name", "status"]
    assert (record["name"], record["status"], record["os"]) == ("debian", "queued", {"family": "linux"})
    assert record["size"] is None and record["checksum"] is None

    path = created.headers["Location"]
    assert image.get(path).json == record
    assert image.get("/images").json == {"images": [record]}

    replaced = image.ask("PUT", path, json_body={"name": "ubuntu", "created": "never"})
    assert replaced.status == 200
    assert replaced.json == image.get(path).json
    assert replaced.json == {**{name: record[name] for name in record if name != "os"}, "name": "ubuntu"}

    assert image.ask("DELETE", path).status == 204
    for method, body in (("GET", None), ("DELETE", None), ("PUT", {"name": "a"}), ("PATCH", {"name": "a"})):
        answer = image.ask(method, path, json_body=body)
        assert answer.status == 404 and record["id"] in answer.error
    assert image.get("/images").json == {"images": []}


# The examples of RFC 7396, appendix A, as far as they are about members of an object.
@pytest.mark.parametrize("target, patch, result", [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": {"b": "c"}}, {}, {"a": {"b": "c"}}),
])
@pytest.mark.parametrize("content_type", ["application/json", "application/merge-patch+json"])
def test_merge_patch(image, target, patch, result, content_type):
    record = image.post("/images", {"name": "x", **target}).json
    patched = image.ask("PATCH", f"/images/{record['id']}", json_body=patch, headers={"Content-Type": content_type})
    assert patched.status == 200
    expected = {**{name: record[name] for name in record if name not in target}, **result}
    assert patched.json == expected == image.get(f"/images/{record['id']}").json


def test_patch_that_is_refused(image):
    path = "/images/" + make_image(image)
    before = image.get(path).json
    assert image.ask("PATCH", path, json_body={"name": None}).status == 400
    answer = image.ask("PATCH", path, json_body=[], headers={"Content-Type": "application/json-patch+json"})
    assert answer.status == 415 and "application/merge-patch+json" in answer.headers["Accept-Patch"]
    assert image.ask("PATCH", path, json_body={"id": "x", "checksum": "y"}).json == before


def test_image_without_bytes(image):
    answer = image.get(f"/images/{make_image(image)}/file")
    assert answer.status == 204 and answer.bytes == b""


@pytest.mark.parametrize("length", [0, 1, 70000])
def test_bytes_of_an_image(image, length):
    data = os.urandom(length)
    path = "/images/" + make_image(image)
    answer = image.ask("PUT", path + "/file", data, {"Content-Type": "application/octet-stream"})
    assert answer.status == 200
    assert answer.json == image.get(path).json
    assert answer.json["status"] == "active" and answer.json["size"] == len(data)
    assert answer.json["checksum"] == hashlib.sha256(data).hexdigest()
    file = image.get(path + "/file")
    assert file.status == 200 and file.bytes == data and file.headers["Content-Type"] == "application/octet-stream"


def test_bytes_are_replaced_and_deleted(image):
    path = "/images/" + make_image(image, b"first")
    files = image.data / "image-files"
    for data in (b"second", b"second", b"third"):  # the same twice is no other than once
        assert image.ask("PUT", path + "/file", data).status == 200
        assert image.get(path + "/file").bytes == data
        assert len(list(files.iterdir())) == 1
    assert image.ask("DELETE", path).status == 204
    assert image.get(path + "/file").status == 404
    assert list(files.iterdir()) == []


def test_upload_that_breaks_off(image):
    path = "/images/" + make_image(image, b"kept")
    host, port = image.url.removeprefix("http://").split(":")
    files = image.data / "image-files"
    with socket.create_connection((host, int(port)), BOUND_S) as connection:
        connection.sendall(f"PUT {path}/file HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf".encode())
        wait_until(lambda: len(list(files.iterdir())) == 2)
    wait_until(lambda: len(list(files.iterdir())) == 1)
    assert image.get(path + "/file").bytes == b"kept"
    assert image.get(path).json["size"] == 4


def test_large_image_in_little_memory(site):
    """50 MB up, down, and through compute."""
    block = os.urandom(MIB)
    blocks = 50
    digest = hashlib.sha256()
    for _ in range(blocks):
        digest.update(block)
    image_id = make_image(site.image, b"warm-up")
    site.compute.post("/servers", {"name": "warm-up", "image": image_id})
    before = site.image.memory_kib(), site.compute.memory_kib()

    uploaded = site.image.ask("PUT", f"/images/{image_id}/file", (block for _ in range(blocks))).json
    assert uploaded["size"] == blocks * MIB and uploaded["checksum"] == digest.hexdigest()
    assert hashlib.sha256(site.image.get(f"/images/{image_id}/file").bytes).hexdigest() == digest.hexdigest()
    server = site.compute.post("/servers", {"name": "large", "image": image_id}).json
    assert server["image_checksum"] == digest.hexdigest() and server["image_size"] == blocks * MIB

    grown = site.image.memory_kib() - before[0], site.compute.memory_kib() - before[1]
    assert max(grown) < 8 * 1024, f"grew by {grown} KiB"


# ---- compute ------------------------------------------------------------------------------------------------------------


def test_life_of_a_server(site):
    image_id = make_image(site.image, b"bytes")
    created = site.compute.post("/servers", {"name": "vm", "image": image_id})
    assert created.status == 201
    server = created.json
    assert list(server) == ["id", "name", "image", "image_name", "image_checksum", "image_size", "status", "created"]
    assert is_uuid4(server["id"]) and created.headers["Location"] == f"/servers/{server['id']}"
    assert server["name"] == "vm" and server["image"] == image_id and server["image_name"] == "debian"
    assert server["image_checksum"] == hashlib.sha256(b"bytes").hexdigest() and server["image_size"] == 5
    assert server["status"] == "ACTIVE" and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", server["created"])

    path = created.headers["Location"]
    assert site.compute.get(path).json == server
    assert site.compute.get("/servers").json == {"servers": [server]}
    assert site.compute.ask("DELETE", path).status == 204
    for method in ("GET", "DELETE"):
        answer = site.compute.ask(method, path)
        assert answer.status == 404 and server["id"] in answer.error
    assert site.compute.get("/servers").json == {"servers": []}


def test_server_from_an_image_without_bytes(site):
    server = site.compute.post("/servers", {"name": "vm", "image": make_image(site.image)}).json
    assert server["image_size"] == 0 and server["image_checksum"] == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("body, said", [
    ({}, "name"), ({"name": "vm"}, "image"), ({"name": "vm", "image": 7}, "image"),
    ({"name": "vm", "image": ABSENT}, ABSENT), ({"name": "vm", "image": "../images"}, "../images"),
    ({"name": "vm", "image": "a b?c=%d"}, "a b?c=%d"), ({"name": "vm", "image": "x", "network": 7}, "network"),
    ({"name": "vm", "image": "x", "network": ""}, "network"),
])
def test_server_that_is_refused(site, body, said):
    answer = site.compute.post("/servers", body)
    assert answer.status == 400 and said in answer.error
    assert site.compute.get("/servers").json == {"servers": []}


def test_image_service_that_is_away(start):
    compute = start("compute", IMAGE_URL="http://127.0.0.1:1")
    answer = compute.post("/servers", {"name": "vm", "image": "x"})
    assert answer.status == 502 and "image service cannot be reached" in answer.error
    assert compute.get("/servers").json == {"servers": []}


@pytest.mark.parametrize("broken", ["/images/x", "/images/x/file"])
@pytest.mark.parametrize("status", [500, 503, 403])
def test_image_service_that_fails(start, record, broken, status):
    def answer(_, path):
        return (status, b"out of order") if path == broken else (200, b'{"id": "x", "name": "n"}')

    compute = start("compute", IMAGE_URL=record(answer).url)
    refused = compute.post("/servers", {"name": "vm", "image": "x"})
    assert refused.status == 502 and refused.json["error"]["upstream_status"] == status
    assert f"image service answered {status} to GET {broken}: out of order" in refused.error


def test_image_service_that_contradicts_itself(start, record):
    def answer(_, path):
        return (200, b"other bytes") if path.endswith("/file") else (200, b'{"id": "x", "name": "n", "checksum": "00"}')

    compute = start("compute", IMAGE_URL=record(answer).url)
    refused = compute.post("/servers", {"name": "vm", "image": "x"})
    assert refused.status == 502 and "its record says 00" in refused.error


def test_actions(site):
    path = site.compute.post("/servers", {"name": "vm", "image": make_image(site.image)}).headers["Location"]
    for body, status, state in (({"start": None}, 409, "ACTIVE"), ({"reboot": {}}, 202, "ACTIVE"),
                                ({"stop": None}, 202, "SHUTOFF"), ({"stop": None}, 409, "SHUTOFF"),
                                ({"reboot": {}}, 409, "SHUTOFF"), ({"start": None}, 202, "ACTIVE"),
                                ({"explode": None}, 400, "ACTIVE"), ({}, 400, "ACTIVE"),
                                ({"stop": None, "start": None}, 400, "ACTIVE")):
        answer = site.compute.post(path + "/action", body)
        assert answer.status == status, body
        if status != 202:
            assert answer.error
        assert site.compute.get(path).json["status"] == state
    assert site.compute.post(f"/servers/{ABSENT}/action", {"stop": None}).status == 404


def test_two_hundred_servers_at_once(site):
    images = {make_image(site.image, f"bytes {number}".encode()): number for number in range(10)}
    ids = list(images)
    answers = at_once(200, lambda number: site.compute.post(
        "/servers", {"name": f"vm{number}", "image": ids[number % 10], "network": number % 4 == 0}))
    assert [answer.status for answer in answers] == 200 * [201]
    for number, answer in enumerate(answers):
        server = answer.json
        assert server["name"] == f"vm{number}" and server["image"] == ids[number % 10]
        assert server["image_checksum"] == hashlib.sha256(f"bytes {number % 10}".encode()).hexdigest()
    listed = {server["id"]: server for server in site.compute.get("/servers").json["servers"]}
    assert listed == {answer.json["id"]: answer.json for answer in answers} and len(listed) == 200
    assert len({server["port"]["address"] for server in listed.values() if "port" in server}) == 50


# ---- network ------------------------------------------------------------------------------------------------------------


def test_one_flat_network(network):
    answer = network.get("/networks")
    assert answer.status == 200
    (flat,) = answer.json["networks"]
    assert is_uuid4(flat["id"]) and ipaddress.ip_network(flat["cidr"]).prefixlen == 16
    assert network.get(f"/networks/{flat['id']}").json == flat
    assert network.get(f"/networks/{ABSENT}").status == 404


def test_networks_of_sites_differ(start, tmp_path):
    networks = set()
    for number in range(1, 10):
        service = start("network", data=tmp_path / str(number), SITE_NAME=f"Site{number}")
        networks.add(service.get("/networks").json["networks"][0]["cidr"])
        service.stop()
    assert len(networks) == 9


def test_life_of_a_port(network):
    flat = network.get("/networks").json["networks"][0]
    created = network.post("/ports", {"network": flat["id"]})
    assert created.status == 201
    port = created.json
    assert created.headers["Location"] == f"/ports/{port['id']}" and is_uuid4(port["id"])
    assert port["network"] == flat["id"]
    assert ipaddress.ip_address(port["address"]) in ipaddress.ip_network(flat["cidr"])
    assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", port["mac"])
    assert network.get(created.headers["Location"]).json == port
    assert network.get("/ports").json == {"ports": [port]}
    assert network.ask("DELETE", created.headers["Location"]).status == 204
    assert network.get("/ports").json == {"ports": []}
    for method in ("GET", "DELETE"):
        assert network.ask(method, created.headers["Location"]).status == 404


def test_ports_that_are_refused(network):
    for wanted in (ABSENT, "", 7, None, {}):
        assert network.post("/ports", {"network": wanted}).status == 400
    assert network.get("/ports").json == {"ports": []}


def test_addresses_are_unique(network):
    ports = [answer.json for answer in at_once(100, lambda number: network.post("/ports", {}))]
    for member in ("id", "address", "mac"):
        assert len({port[member] for port in ports}) == 100
    gateway = network.get("/networks").json["networks"][0]["gateway"]
    assert gateway not in {port["address"] for port in ports}


def test_addresses_come_back_after_delete_only(start, tmp_path):
    """With one address left free, that one is given; then none."""
    first = start("network", data=tmp_path / "data")
    port = first.post("/ports", {}).json
    prefix = ".".join(port["address"].split(".")[:2])
    first.stop()
    ports = tmp_path / "data" / "ports"
    for host in range(2, 65535):  # written directly, since so many requests would take long
        address = f"{prefix}.{host // 256}.{host % 256}"
        if address != port["address"]:
            name = str(uuid.UUID(int=host))
            (ports / f"{name}.json").write_text(json.dumps({"id": name, "address": address}))
    network = start("network", data=tmp_path / "data")
    full = network.post("/ports", {})
    assert full.status == 409 and "taken" in full.error
    assert network.ask("DELETE", f"/ports/{port['id']}").status == 204
    assert network.post("/ports", {}).json["address"] == port["address"]
    assert network.post("/ports", {}).status == 409


# ---- pools --------------------------------------------------------------------------------------------------------------


def test_life_of_a_pool(network):
    made = network.post("/pools", {"name": "blue", "size": 23, "color": "sky"})
    pool, path = made.json, f"/pools/{made.json['id']}"
    assert made.status == 201 and made.headers["Location"] == path and is_uuid4(pool["id"])
    assert (pool["size"], pool["notes"], pool["color"]) == (23, [], "sky")
    assert network.post(f"{path}/grow", {"by": 13}).json["size"] == 36
    assert network.post(f"{path}/grow", {"by": -12}).json["size"] == 24
    assert network.post(f"{path}/notes", {"text": "one"}).status == 200
    assert network.post(f"{path}/notes", {"text": "two"}).json["notes"] == ["one", "two"]
    patched = network.ask("PATCH", path, json_body={"color": None, "size": 5}).json
    assert patched == {name: value for name, value in {**pool, "size": 5, "notes": ["one", "two"]}.items() if name != "color"}
    replaced = network.ask("PUT", path, json_body={"name": "red", "size": 29, "id": "mine", "created": "never"}).json
    assert replaced == {"id": pool["id"], "created": pool["created"], "name": "red", "size": 29, "notes": [], "hosts": [],
                        "used": 0, "status": "available"}
    assert network.ask("GET", path).json == replaced
    assert network.ask("GET", "/pools?name=red").json == {"pools": [replaced]}
    assert network.ask("GET", "/pools?name=blue").json == {"pools": []}
    assert network.ask("DELETE", path).status == 204
    for method, there in (("GET", path), ("DELETE", path), ("PUT", path), ("POST", f"{path}/grow")):
        assert network.ask(method, there, json_body={"name": "red", "by": 1}).status == 404


def test_a_pool_has_a_name_of_its_own(network):
    first = network.post("/pools", {"name": "blue"}).json
    again = network.post("/pools", {"name": "blue"})
    assert again.status == 409 and first["id"] in again.error
    other = network.post("/pools", {"name": "red"}).json
    assert network.ask("PATCH", f"/pools/{other['id']}", json_body={"name": "blue"}).status == 409
    assert network.ask("PATCH", f"/pools/{first['id']}", json_body={"name": "blue", "size": 1}).status == 200
    assert len(network.ask("GET", "/pools").json["pools"]) == 2


def test_one_of_many_gets_the_name(network):
    answers = at_once(20, lambda _: network.post("/pools", {"name": "blue"}).status)
    assert sorted(answers) == [201] + 19 * [409]


@pytest.mark.parametrize("path, body", [
    ("/pools", {}), ("/pools", {"name": "x", "size": "5"}), ("/pools", {"name": "x", "size": 10 ** 12}),
    ("/pools", {"name": "x", "notes": "none"}), ("grow", {}), ("grow", {"by": "5"}), ("grow", {"by": 10 ** 9}),
    ("notes", {}), ("notes", {"text": ""}), ("/pools", {"name": "x", "hosts": "a"}), ("/pools", {"name": "x", "hosts": ["a", ""]}),
    ("/pools", {"name": "x", "hosts": [7]}), ("allocate", {}), ("allocate", {"count": -1}),
    ("allocate", {"count": "1"}), ("allocate", {"count": 10 ** 10}), ("release", {"count": 0.5}),
])
def test_pools_that_are_refused(network, path, body):
    pool = network.post("/pools", {"name": "blue", "size": 1}).json
    answer = network.post(path if path[0] == "/" else f"/pools/{pool['id']}/{path}", body)
    assert answer.status == 400 and answer.error
    assert network.ask("GET", "/pools").json == {"pools": [pool]}


def test_addresses_of_a_pool_are_taken_and_given_back(network):
    made = network.post("/pools", {"name": "blue", "size": 5, "hosts": ["a", "b"], "used": 99, "status": "mine"}).json
    path = f"/pools/{made['id']}"
    assert (made["used"], made["status"], made["hosts"]) == (0, "available", ["a", "b"])
    assert network.post(f"{path}/allocate", {"count": 3}).json["used"] == 3
    for action in ("allocate", "release"):  # none is a number, too
        assert network.post(f"{path}/{action}", {"count": 0}).json["used"] == 3
    beyond = network.post(f"{path}/allocate", {"count": 3})
    assert beyond.status == 409 and "2 of 5 are left" in beyond.error
    full = network.post(f"{path}/allocate", {"count": 2}).json
    assert (full["used"], full["status"]) == (5, "full")
    # What is given out is not taken away, by whichever change.
    for method, rest, body in (("PATCH", "", {"size": 4}), ("PUT", "", {"name": "blue", "size": 4}), ("POST", "/grow", {"by": -1}),
                               ("PATCH", "", {"size": None})):
        refused = network.ask(method, path + rest, json_body=body)
        assert refused.status == 409 and "5 of the pool would be used" in refused.error
    assert network.get(path).json == full
    assert network.ask("PATCH", path, json_body={"used": 0, "status": "available", "hosts": ["c"]}).json == {**full, "hosts": ["c"]}
    assert network.post(f"{path}/grow", {"by": 1}).json["status"] == "available"
    assert network.post(f"{path}/release", {"count": 7}).status == 409
    released = network.post(f"{path}/release", {"count": 5}).json
    assert (released["used"], released["size"]) == (0, 6)
    for action in ("allocate", "release"):
        assert network.post(f"/pools/{ABSENT}/{action}", {"count": 1}).status == 404


def test_no_address_of_a_pool_is_given_out_twice(network):
    path = "/pools/" + network.post("/pools", {"name": "blue", "size": 50}).json["id"]
    answers = at_once(60, lambda number: network.post(f"{path}/allocate", {"count": 1}).status)
    assert sorted(answers) == 50 * [200] + 10 * [409]
    assert network.get(path).json["used"] == 50


@pytest.mark.parametrize("service, path", [("image", "/images"), ("network", "/pools")])
def test_quota(start, service, path):
    instance = start(service, "--quota", "2")
    first = instance.post(path, {"name": "a"}).json
    assert instance.post(path, {"name": "b"}).status == 201
    refused = instance.post(path, {"name": "c"})
    assert refused.status == 403 and "quota of 2" in refused.error
    assert instance.ask("PATCH", f"{path}/{first['id']}", json_body={"color": "red"}).status == 200
    assert instance.ask("DELETE", f"{path}/{first['id']}").status == 204
    assert instance.post(path, {"name": "c"}).status == 201


# ---- who asks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(start, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    return start("network", "--token-key", str(key))


def bearer(service, user="ann", seconds=600, **more):
    token = service.post("/tokens", {"user": user, "seconds": seconds}).json["token"]
    return {"Authorization": f"Bearer {token}", **more}


def test_a_token_is_asked_for(guarded):
    assert guarded.ask("GET", "/healthz").status == 200
    for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}, {"Authorization": "Bearer a.b.c"}):
        answer = guarded.ask("GET", "/pools", headers=headers)
        assert answer.status == 401 and "Bearer" in answer.headers["WWW-Authenticate"] and answer.error
    made = guarded.ask("POST", "/pools", json_body={"name": "blue", "owner": "bob"}, headers=bearer(guarded))
    assert made.status == 201 and made.json["owner"] == "ann"


def test_a_token_ends(guarded):
    answer = guarded.ask("GET", "/pools", headers=bearer(guarded, seconds=0))
    assert answer.status == 401 and "expired" in answer.error


def test_a_token_cannot_be_changed(guarded):
    head, body, mac = bearer(guarded)["Authorization"].removeprefix("Bearer ").split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert claims["sub"] == "ann" and claims["exp"] > 0
    coded = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    for forged in (f"{head}.{coded({**claims, 'sub': 'bob'})}.{mac}", f"{coded({'alg': 'none'})}.{body}.",
                   f"{head}.{body}.{mac[:-2]}{'AA' if mac[-2:] != 'AA' else 'BB'}", f"{head}.{body}", f"{head}..{mac}"):
        assert guarded.ask("GET", "/pools", headers={"Authorization": f"Bearer {forged}"}).status == 401, forged


def test_on_behalf_of_others(guarded):
    agents = bearer(guarded, user="agent", **{"X-On-Behalf-Of": "ann"})
    assert guarded.ask("POST", "/pools", json_body={"name": "blue"}, headers=agents).json["owner"] == "ann"
    anns = bearer(guarded, user="ann", **{"X-On-Behalf-Of": "agent"})
    assert guarded.ask("POST", "/pools", json_body={"name": "red"}, headers=anns).status == 403


@pytest.mark.parametrize("body", [{}, {"user": "ann"}, {"user": "a.b", "seconds": 1}, {"user": "ann", "seconds": -1},
                                  {"user": "ann", "seconds": 10 ** 9}])
def test_tokens_that_are_refused(guarded, body):
    assert guarded.post("/tokens", body).status == 400


def test_without_a_key_there_are_no_tokens(network):
    assert network.post("/tokens", {"user": "ann", "seconds": 1}).status == 404


@pytest.mark.parametrize("by_id", [False, True])
def test_server_on_a_network(site, by_id):
    wanted = site.network.get("/networks").json["networks"][0]["id"] if by_id else True
    created = site.compute.post("/servers", {"name": "vm", "image": make_image(site.image), "network": wanted})
    assert created.status == 201
    assert site.network.get("/ports").json["ports"] == [created.json["port"]]
    assert site.compute.ask("DELETE", created.headers["Location"]).status == 204
    assert site.network.get("/ports").json["ports"] == []


def test_server_on_a_network_that_fails(site):
    image_id = make_image(site.image)
    unknown = site.compute.post("/servers", {"name": "vm", "image": image_id, "network": ABSENT})
    assert unknown.status == 400 and ABSENT in unknown.error
    path = site.compute.post("/servers", {"name": "vm", "image": image_id, "network": True}).headers["Location"]
    site.network.stop()
    away = site.compute.post("/servers", {"name": "vm", "image": image_id, "network": True})
    assert away.status == 502 and "network service cannot be reached" in away.error
    kept = site.compute.ask("DELETE", path)
    assert kept.status == 502 and site.compute.get(path).status == 200
