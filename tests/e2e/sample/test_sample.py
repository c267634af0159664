"""The sample services alone, without Cheops: what they have in common, what goes along with their calls, and how they end."""
import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import threading
import uuid

import pytest

from sample_services import BOUND_S, ask, at_once, make_image, run, wait_until

ABSENT = str(uuid.UUID(int=0))
MIB = 1024 * 1024


# ---- the command line ---------------------------------------------------------------------------------------------------


def test_help():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    for word in ("--listen", "--data", "--forward", "--access-log", "SITE_NAME", "IMAGE_URL", "header=NAME"):
        assert word in result.stdout


@pytest.mark.parametrize("arguments, env, said", [
    ([], {}, "which service?"),
    (["volume"], {}, "volume"),
    (["image", "compute"], {}, "one service at a time"),
    (["image", "--data", "d"], {}, "--listen HOST:PORT is missing"),
    (["image", "--data", "d", "--listen", "127.0.0.1:0", "--quota", "none"], {}, "--quota must be a number"),
    (["image", "--data", "d", "--listen", "127.0.0.1:0", "--quota", "0"], {}, "--quota must be a number"),
    (["image", "--listen", "127.0.0.1:0"], {}, "--data DIR is missing"),
    (["image", "--listen", "127.0.0.1:0", "--data", "d", "--forward", "all"], {}, "not all"),
    (["image", "--listen", "127.0.0.1:0", "--data", "d", "--forward", "header="], {}, "not header="),
    (["image", "--listen", "127.0.0.1:0", "--data", "d", "--forward", "header=a b"], {}, "not header=a b"),
    (["image", "--listen", "127.0.0.1:0", "--data", "d"], {"FORWARD": "some"}, "not some"),
    (["image", "--listen", "127.0.0.1:0", "--data", "d"], {"IMAGE_URL": "localhost:1"}, "IMAGE_URL"),
    (["image", "--colour"], {}, "--help"),
])
def test_wrong_usage(arguments, env, said):
    result = run(*arguments, **env)
    assert result.returncode == 2 and said in result.stderr and result.stdout == ""


@pytest.mark.parametrize("address", ["127.0.0.1", ":80", "127.0.0.1:", "::1:80", "[::1]", "127.0.0.1:http2",
                                     "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:8 "])
def test_address_that_is_none(tmp_path, address):
    result = run("image", "--listen", address, "--data", tmp_path / "data")
    assert result.returncode == 1 and address in result.stderr


def test_address_in_use(image, tmp_path):
    result = run("image", "--listen", image.url.removeprefix("http://"), "--data", tmp_path / "other")
    assert result.returncode == 1 and "Address already in use" in result.stderr


def test_data_in_use(image):
    result = run("image", "--listen", "127.0.0.1:0", "--data", image.data)
    assert result.returncode == 1 and "another image service uses" in result.stderr


def test_data_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("image", "--listen", "127.0.0.1:0", "--data", tmp_path / "file" / "below")
    assert result.returncode == 1 and "file/below" in result.stderr


def test_record_that_is_none(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.json").write_text("{")
    result = run("image", "--listen", "127.0.0.1:0", "--data", tmp_path)
    assert result.returncode == 1 and "images/a.json" in result.stderr


# ---- all services -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["image", "compute", "network"])
def test_who_and_health(start, name):
    service = start(name, SITE_NAME="Île 7")
    answer = service.get("/whoami")
    assert answer.status == 200
    assert answer.bytes.decode() == f'{{"service":"{name}","site":"Île 7"}}'
    assert service.get("/healthz").status == 200


def test_who_via_others(start, image, network):
    other = start("image", data=image.data.with_name("other"), SITE_NAME="Site2")
    compute = start("compute", IMAGE_URL=other.url, NETWORK_URL=network.url, SITE_NAME="Site1")
    assert compute.get("/whoami?via=image").json == {
        "service": "compute", "site": "Site1", "via": {"service": "image", "site": "Site2"}}
    assert compute.get("/whoami?via=network").json["via"] == {"service": "network", "site": "Site1"}
    third = start("image", data=image.data.with_name("third"), COMPUTE_URL=compute.url)
    assert third.get("/whoami?via=compute").json["via"] == {"service": "compute", "site": "Site1"}


def test_who_via_nobody(start, record):
    nonsense = record(lambda method, path: (200, b"hello"))
    gone = record(lambda method, path: (410, b"moved on"))
    compute = start("compute", IMAGE_URL="http://127.0.0.1:1", NETWORK_URL=nonsense.url, COMPUTE_URL=gone.url)
    unreachable = compute.get("/whoami?via=image")
    assert unreachable.status == 502 and "image service cannot be reached" in unreachable.error
    assert compute.get("/whoami?via=network").status == 502
    refused = compute.get("/whoami?via=compute")
    assert refused.status == 502 and "410" in refused.error and "moved on" in refused.error
    assert refused.json["error"]["upstream_status"] == 410
    assert compute.get("/whoami?via=volume").status == 400


def test_who_via_unknown_place(image):
    answer = image.get("/whoami?via=compute")
    assert answer.status == 502 and "not in the environment" in answer.error


@pytest.mark.parametrize("path", ["/", "/image", "/images/", "/images/a/b", "/images/a/file/", "/servers", "//images",
                                  "/images/" + 300 * "x", "/%FF%FE", "/whoami/x"], ids=lambda path: path[:20])
def test_unknown_path(image, path):
    for method in ("GET", "POST", "DELETE"):
        answer = image.ask(method, path)
        assert answer.status == 404 and answer.error


@pytest.mark.parametrize("name, method, path, allow", [
    ("image", "DELETE", "/images", "GET, HEAD, POST"),
    ("image", "POST", "/images/x", "GET, HEAD, PUT, PATCH, DELETE"),
    ("image", "POST", "/images/x/file", "GET, HEAD, PUT"),
    ("image", "POST", "/whoami", "GET, HEAD"),
    ("image", "OPTIONS", "/healthz", "GET, HEAD"),
    ("compute", "PUT", "/servers", "GET, HEAD, POST"),
    ("compute", "PATCH", "/servers/x", "GET, HEAD, DELETE"),
    ("compute", "GET", "/servers/x/action", "POST"),
    ("network", "POST", "/networks", "GET, HEAD"),
    ("network", "PUT", "/ports/x", "GET, HEAD, DELETE"),
])
def test_wrong_method(start, name, method, path, allow):
    answer = start(name).ask(method, path, b"{}")
    assert answer.status == 405 and answer.headers["Allow"] == allow and answer.error


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"name"', b"null", b'{"name": "a"} x', b'{"name": "a", "name": "b"}',
                                  b'{"name": "\xff"}', b'{"name": 1}', b'{"name": ""}', b"{}", b'{"name": null}',
                                  b'{"name": "\\u0000"}', b'{"name": "a", "n": 1e999}', 100000 * b"[",
                                  b'{"name": "' + 256 * b"x" + b'"}'], ids=lambda body: repr(body[:20]))
def test_bad_json(image, body):
    answer = image.ask("POST", "/images", body, {"Content-Type": "application/json"})
    assert answer.status == 400 and answer.error
    assert image.get("/images").json == {"images": []}


@pytest.mark.parametrize("content_type, status", [
    ("application/json", 201), ("Application/JSON; charset=utf-8", 201), ("text/plain", 415), ("application/jsonx", 415),
    ("application/x-www-form-urlencoded", 415), ("application/merge-patch+json", 415)])
def test_content_type(image, content_type, status):
    answer = image.ask("POST", "/images", b'{"name": "a"}', {"Content-Type": content_type})
    assert answer.status == status
    if status == 415:
        assert "application/json" in answer.error


def test_json_body_has_a_bound(image):
    fits = json.dumps({"name": "a", "pad": ""})[:-2].encode()
    fits += (MIB - len(fits) - 2) * b"x" + b'"}'
    assert image.ask("POST", "/images", fits, {"Content-Type": "application/json"}).status == 201
    assert image.ask("POST", "/images", fits + b" ", {"Content-Type": "application/json"}).status == 413
    pieces = [fits, b" "]  # an iterable is sent in chunks, so that nothing says its length beforehand
    assert image.ask("POST", "/images", iter(pieces), {"Content-Type": "application/json"}).status == 413
    assert len(image.get("/images").json["images"]) == 1


def test_refusal_before_the_body(image):
    """Who asks before sending is told at once."""
    host, port = image.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), BOUND_S) as connection:
        connection.sendall(f"PUT /images/{ABSENT}/file HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n"
                           "Expect: 100-continue\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("path", ["/whoami", "/images", "/images/{id}", "/images/{id}/file", "/nothing"])
def test_head_is_get_without_body(image, path):
    path = path.format(id=make_image(image, b"abc"))
    get, head = image.get(path), image.ask("HEAD", path)
    assert head.bytes == b"" and head.status == get.status
    for name in ("Content-Length", "Content-Type"):
        assert head.headers[name] == get.headers[name]


def test_connection_is_kept(image):
    connection = http.client.HTTPConnection(image.url.removeprefix("http://"), timeout=BOUND_S)
    sockets = set()
    for method, path, body in (("GET", "/whoami", None), ("POST", "/images", b"{"), ("GET", "/nothing", None),
                               ("PUT", f"/images/{ABSENT}/file", b"lost"), ("DELETE", f"/images/{ABSENT}", None)):
        connection.request(method, path, body)
        connection.getresponse().read()
        sockets.add(connection.sock)
    assert len(sockets) == 1 and None not in sockets
    connection.close()


# ---- what goes along with inner calls -----------------------------------------------------------------------------------

SENT = {
    "Scope": "{image: Site2}",
    "X-Unknown": "a, b;c=\"d\"",
    "X-Empty": "",
    "baggage": "scope=%7Bimage%3A%20Site2%7D,userId=alice",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "rojo=00f067aa0ba902b7",
    "X-Request-Id": "req-7",
    "X-Auth-Token": "secret;scope=e30",
    "User-Agent": "test/1",
    "Accept": "application/json",
    # None of these may go along: they are about one connection, or one body.
    "Connection": "X-Hop , keep-alive",
    "X-Hop": "1",
    "Keep-Alive": "timeout=5",
    "TE": "trailers",
    "Proxy-Authorization": "Basic eDp5",
    "Accept-Encoding": "br",
    "Content-Encoding": "identity",
    "Content-Type": "application/json",
}
ALL_FORWARDED = ["Scope", "X-Unknown", "X-Empty", "baggage", "traceparent", "tracestate", "X-Request-Id", "X-Auth-Token",
                 "User-Agent", "Accept"]


@pytest.mark.parametrize("mode, names", [
    ("headers", ALL_FORWARDED), ("baggage", ["baggage"]), ("trace", ["traceparent", "tracestate"]),
    ("request-id", ["X-Request-Id"]), ("header=X-Auth-Token", ["X-Auth-Token"]), ("header=x-unknown", ["X-Unknown"]),
    ("none", [])])
@pytest.mark.parametrize("how", ["option", "environment"])
def test_forwarding(start, record, mode, names, how):
    image = record(lambda method, path: (200, b'{"id": "x", "name": "n"}'))
    network = record(lambda method, path: (201, b'{"id": "p"}'))
    arguments = ["--forward", mode] if how == "option" else []
    compute = start("compute", *arguments, IMAGE_URL=image.url, NETWORK_URL=network.url,
                    FORWARD="none" if how == "option" else mode)
    answer = compute.post("/servers", {"name": "vm", "image": "x", "network": True}, headers=SENT)
    assert answer.status == 201
    assert [request[:2] for request in image.requests] == [("GET", "/images/x"), ("GET", "/images/x/file")]
    assert [request[:2] for request in network.requests] == [("POST", "/ports")]
    seen = [image.headers_of(0), image.headers_of(1), network.headers_of(0)]
    for headers, url in zip(seen, (image.url, image.url, network.url)):
        forwarded = {name: value for name, value in headers.items() if name not in ("host", "content-length", "content-type")}
        if "User-Agent" not in names:
            forwarded.pop("accept", None)  # libcurl's own
            forwarded.pop("user-agent", None)
        assert forwarded == {name.lower(): SENT[name] for name in names}
        assert headers["host"] == url.removeprefix("http://")
    assert seen[2]["content-type"] == "application/json"


def test_forwarding_is_the_default_and_keeps_repeated_headers(start, record):
    image = record(lambda method, path: (200, b"{}"))
    compute = start("compute", IMAGE_URL=image.url)
    host, port = compute.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), BOUND_S) as connection:
        connection.sendall(b"GET /whoami?via=image HTTP/1.1\r\nHost: x\r\nScope: a\r\nscope: b\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert [value for name, value in image.requests[0][2] if name.lower() == "scope"] == ["a", "b"]


def test_nothing_sticks_to_the_next_call(start, record):
    image = record(lambda method, path: (200, b"{}"))
    compute = start("compute", IMAGE_URL=image.url)
    compute.get("/whoami?via=image", headers={"Scope": "first"})
    compute.get("/whoami?via=image")
    assert image.headers_of(0)["scope"] == "first" and "scope" not in image.headers_of(1)


def test_two_hundred_scopes_do_not_mix(start, record):
    image = record(lambda method, path: (200, json.dumps({"id": path}).encode()))
    compute = start("compute", IMAGE_URL=image.url)
    answers = at_once(200, lambda number: compute.post("/servers", {"name": "vm", "image": f"i{number}"},
                                                       headers={"Scope": f"Site{number}"}))
    assert [answer.status for answer in answers] == 200 * [201]
    assert len(image.requests) == 400
    for number, (_, path, _) in enumerate(image.requests):
        assert image.headers_of(number)["scope"] == "Site" + re.match(r"/images/i(\d+)", path).group(1)


def test_inner_connections_are_kept(start, record):
    image = record(lambda method, path: (200, b"{}"))
    compute = start("compute", IMAGE_URL=image.url)
    for _ in range(10):
        assert compute.get("/whoami?via=image").status == 200
    assert image.connections == 1


def test_access_log(start, tmp_path):
    log = tmp_path / "log"
    image = start("image", "--access-log", log)
    image.get("/images?x=%20y", headers={"Scope": "{image: Site2}", "X-Latin": "\xe9"})
    image.post("/images", {"name": "a"})
    image.get("/nothing")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/images?x=%20y", 200), ("POST", "/images", 201), ("GET", "/nothing", 404)]
    assert lines[0]["headers"]["Scope"] == "{image: Site2}" and lines[0]["headers"]["X-Latin"] == "é"
    assert lines[0]["headers"]["Host"] == image.url.removeprefix("http://")


# ---- ends ---------------------------------------------------------------------------------------------------------------


def everything(site):
    images = site.image.get("/images").json["images"]
    files = [site.image.get(f"/images/{record['id']}/file").bytes for record in images]
    return (images, files, site.compute.get("/servers").json, site.network.get("/networks").json,
            site.network.get("/ports").json)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_state_survives(site, start, end):
    for number in range(5):
        image_id = make_image(site.image, f"bytes {number}".encode(), number=number)
        server = site.compute.post("/servers", {"name": f"vm{number}", "image": image_id, "network": True}).json
    site.compute.post(f"/servers/{server['id']}/action", {"stop": None})
    make_image(site.image)
    before = everything(site)
    for name in ("compute", "image", "network"):
        service = getattr(site, name)
        getattr(service, end)()
        setattr(site, name, start(name, data=service.data))
    assert everything(site) == before
    taken = {port["address"] for port in before[4]["ports"]}
    assert site.network.post("/ports", {}).json["address"] not in taken


def write_until_killed(image, known, acknowledged):
    """Creates, patches and uploads; notes what was answered with success."""
    number = 0
    try:
        while True:
            number += 1
            record = image.post("/images", {"name": "n", "number": number}).json
            acknowledged[record["id"]] = (number, None)
            data = os.urandom(70000)
            if image.ask("PUT", f"/images/{record['id']}/file", data).status == 200:
                acknowledged[record["id"]] = (number, hashlib.sha256(data).hexdigest())
            image.ask("PATCH", f"/images/{known}", json_body={"pad": number % 100 * "x"})
            if number >= 5:
                acknowledged["enough"] = True
    except (OSError, http.client.HTTPException):
        pass


def test_killed_while_writing(start, tmp_path):
    acknowledged = {}
    for _ in range(5):
        image = start("image", data=tmp_path / "data")
        known = make_image(image)
        acknowledged[known] = (None, None)
        rounds = [{} for _ in range(4)]
        writers = [threading.Thread(target=write_until_killed, args=(image, known, done)) for done in rounds]
        for writer in writers:
            writer.start()
        wait_until(lambda: all("enough" in done for done in rounds))
        image.process.send_signal(signal.SIGKILL)
        for writer in writers:
            writer.join(BOUND_S)
        assert image.ended() == -signal.SIGKILL
        for done in rounds:
            done.pop("enough")
            acknowledged.update(done)
    image = start("image", data=tmp_path / "data")
    records = {record["id"]: record for record in image.get("/images").json["images"]}
    for image_id, (number, checksum) in acknowledged.items():
        assert records[image_id].get("number") == number
        if checksum is not None:
            assert records[image_id]["checksum"] == checksum
    for record in records.values():
        if record["checksum"] is not None:
            data = image.get(f"/images/{record['id']}/file").bytes
            assert hashlib.sha256(data).hexdigest() == record["checksum"] and len(data) == record["size"]
    active = sum(record["checksum"] is not None for record in records.values())
    assert len(list((tmp_path / "data" / "image-files").iterdir())) == active  # nothing half written is left over


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stop_lets_requests_finish(start, record, how):
    arrived, go_on = threading.Event(), threading.Event()

    def answer(*_):
        arrived.set()
        go_on.wait(BOUND_S)
        return 200, b'{"id": "x", "name": "n"}'

    compute = start("compute", IMAGE_URL=record(answer).url)
    idle = http.client.HTTPConnection(compute.url.removeprefix("http://"), timeout=BOUND_S)
    idle.request("GET", "/whoami")
    idle.getresponse().read()  # and stays open: it must hold up nothing
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(compute.post, "/servers", {"name": "vm", "image": "x"})
        assert arrived.wait(BOUND_S)
        compute.process.send_signal(how)
        wait_until(lambda: refuses(compute.url))
        go_on.set()
        finished = waiting.result(BOUND_S)
    assert finished.status == 201 and finished.headers["Connection"] == "close"
    assert compute.ended() == 0
    idle.close()


def refuses(url):
    try:
        ask(url, "GET", "/healthz")
    except (ConnectionError, http.client.HTTPException):
        return True
    return False
