"""The papers' scenarios: what a user gets from a scope, by each carrier and with several HTTP clients."""
import json
import socket
import urllib.parse

import clients
import pytest
from demo_process import BOUND_S, ask

SCOPE = "{compute: Site1, image: Site2}"
JSON_SCOPE = '{"compute": "Site1", "image": "Site2"}'


def quoted(text):
    return urllib.parse.quote(text, safe="")


# name: (headers, what stands before the path)
CARRIERS = {
    "Scope": ({"Scope": SCOPE}, ""),
    "scope, in small letters and without braces": ({"scope": "compute: Site1, image: Site2"}, ""),
    "X-Scope": ({"X-Scope": SCOPE}, ""),
    "path": ({}, "/scope/" + quoted(SCOPE)),
    "path, barely encoded": ({}, "/scope/compute:%20Site1,%20image:%20Site2"),
    "baggage": ({"baggage": "cheops.scope=" + quoted(SCOPE)}, ""),
    "baggage among others": ({"baggage": f"a=1,cheops.scope={quoted(SCOPE)};p=q, b=2"}, ""),
    "JSON": ({"Scope": JSON_SCOPE}, ""),
    "JSON in X-Scope": ({"X-Scope": JSON_SCOPE}, ""),
    "JSON in the path": ({}, "/scope/" + quoted(JSON_SCOPE)),
    "JSON in baggage": ({"baggage": "cheops.scope=" + quoted(JSON_SCOPE)}, ""),
    "Service/Site": ({"Scope": "image/Site2"}, ""),
    "only image": ({"Scope": "{image: Site2}"}, ""),
}

# ---- without a scope ----------------------------------------------------------------------------------------------------


def raw(url, request):
    """Sends bytes, and returns all that comes back: first line, header lines, body."""
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=BOUND_S) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return first, lines, body


PLAIN = [
    ("compute", "GET /whoami", ""),
    ("compute", "GET /whoami?via=image", ""),
    ("compute", "HEAD /whoami", ""),
    ("compute", "GET /servers", ""),
    ("compute", "GET /servers/none", ""),
    ("compute", "DELETE /whoami", ""),
    ("compute", "OPTIONS /servers", ""),
    ("compute", "GET /%7e/a%2Fb?q=%26&&x", ""),
    ("compute", "GET /scopes/Site2/whoami", ""),
    ("compute", "POST /servers", "no JSON"),
    ("compute", "POST /servers", '{"name": "vm", "image": "none"}'),
    ("image", "GET /images", ""),
    ("image", "GET /images/{image}", ""),
    ("image", "GET /images/{image}/file", ""),
    ("image", "HEAD /images/{image}/file", ""),
    ("image", "PATCH /images/{image}", '{"note": "ümlaut", "big": 12345678901234567890, "float": 1.50}'),
    ("network", "GET /networks", ""),
    ("network", "GET /ports", ""),
]


@pytest.mark.parametrize("service, line, body", PLAIN, ids=[f"{line} {body}" for _, line, body in PLAIN])
def test_without_scope_byte_for_byte_what_the_service_answers(sites, service, line, body):
    line = line.replace("{image}", sites.image_id("Site1"))
    content = body.encode()
    request = (f"{line} HTTP/1.1\r\nHost: service.example\r\nConnection: close\r\nContent-Type: application/json\r\n"
               + (f"Content-Length: {len(content)}\r\n" if body else "") + "\r\n").encode() + content
    own_first, own_lines, own_body = raw(sites.own_url("Site1", service), request)
    first, lines, answer = raw(sites.url("Site1", service), request)
    assert (first, answer) == (own_first, own_body)
    own = [line for line in own_lines if not line.startswith(("Date:", "Connection:"))]
    got = [line for line in lines if not line.startswith(("Date:", "Connection:"))]
    assert got == [*own, "Via: 1.1 Site1"]  # which every proxy has to add


def test_without_scope_the_service_sees_what_was_sent(sites):
    headers = {"X-Mixed-Case": "Kept As It Is", "Accept": "application/json;q=0.5", "User-Agent": "me/1.0"}
    ask(sites.url("Site1", "compute") + "/whoami?unchanged=1", headers=headers)
    seen = [entry for entry in sites.requests("Site1", "compute") if entry["path"] == "/whoami?unchanged=1"][-1]["headers"]
    for name, value in headers.items():
        assert seen[name] == value
    assert set(seen) - set(headers) == {"Host", "Accept-Encoding", "Via", "Forwarded", "X-Forwarded-For",
                                        "X-Forwarded-Proto", "X-Forwarded-Host"}


# ---- carriers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", clients.ALL, ids=lambda client: client.__name__)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_boots_a_server_from_an_image_of_another_site(sites, carrier, client):
    headers, prefix = CARRIERS[carrier]
    body = json.dumps({"name": "vm", "image": sites.image_id("Site2")})
    answer = client("POST", sites.url("Site1", "compute") + prefix + "/servers",
                    {**headers, "Content-Type": "application/json"}, body)
    assert answer.status == 201, answer
    assert answer.json["image_checksum"] == sites.images["Site2"]["checksum"]
    stored = ask(f"{sites.own_url('Site1', 'compute')}/servers/{answer.json['id']}")
    assert stored.json == answer.json  # it is at Site1, and is what we were told
    assert answer.header("Location") == f"/servers/{answer.json['id']}"


def test_without_scope_there_is_no_such_image(sites):
    answer = sites.boot("Site1", "Site2")
    assert answer.status == 400 and answer.json["error"]["message"] == f"no image {sites.image_id('Site2')}"


def test_precedence_of_carriers(sites):
    """Scope, X-Scope, path, baggage: the first that is there counts, and none of the others."""
    headers = {"Scope": "image: Site2", "X-Scope": "image: Site3", "baggage": "cheops.scope=image:Site2"}
    url = sites.url("Site1", "compute")

    def via(prefix=""):
        return ask(f"{url}{prefix}/whoami?via=image", headers=headers).json["via"]["site"]

    assert via("/scope/image:Site3") == "Site2"
    del headers["Scope"]
    assert via("/scope/image:Site2") == "Site3"
    del headers["X-Scope"]
    assert via("/scope/image:Site3") == "Site3"
    assert via() == "Site2"
    del headers["baggage"]
    assert via() == "Site1"


def test_path_prefix_leaves_the_rest_of_the_target_as_it_is(sites):
    url = sites.url("Site1", "image")
    for target, expected in [("/scope/Site2/a%2Fb//c?d=%26&e", "/a%2Fb//c?d=%26&e"), ("/scope/Site2", "/"),
                             ("/scope/Site2?x=1", "/?x=1"), ("/scope/Site2/", "/"),
                             ("/scope/Site2/scope/Site3/x", "/scope/Site3/x")]:
        before = len(sites.requests("Site2", "image"))
        ask(url + target)
        assert [entry["path"] for entry in sites.requests("Site2", "image")[before:]] == [expected]


# ---- where it runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope, where", [
    ("{compute: Site1, image: Site2}", ("Site1", "Site2")),
    ("{image: Site2}", ("Site1", "Site2")),
    ("image/Site2", ("Site1", "Site2")),
    ("{compute: Site3}", ("Site3", "Site3")),
    ("Site3", ("Site3", "Site3")),
    ("compute: Site2, image: Site3", ("Site2", "Site3")),
    ("compute: Site2, image: Site1", ("Site2", "Site1")),
    ("compute: Site1", ("Site1", "Site1")),
    ("network: Site2", ("Site1", "Site1")),
    ('"Site3"', ("Site3", "Site3")),
])
def test_where_compute_runs_and_which_image_it_reaches(sites, scope, where):
    assert sites.via(Scope=scope) == where


def test_scope_that_names_only_image_leaves_compute_where_the_request_came_in(sites):
    for at in sites.sites:
        assert sites.via(at, Scope="image: Site2") == (at, "Site2")


def test_sent_to_site1_runs_at_site3_with_the_image_of_site3(sites):
    answer = sites.boot("Site1", "Site3", {"Scope": "{compute: Site3}"})
    assert answer.status == 201 and answer.json["image_checksum"] == sites.images["Site3"]["checksum"]
    assert ask(f"{sites.own_url('Site3', 'compute')}/servers/{answer.json['id']}").status == 200
    assert ask(f"{sites.own_url('Site1', 'compute')}/servers/{answer.json['id']}").status == 404


def test_three_services_at_three_sites(sites):
    """Asked here, compute at another one with a port of its own network, and the image from a third one."""
    answer = ask(sites.url("Site1", "compute") + "/servers", "POST", {"Scope": "compute: Site3, image: Site2, network: Site3"},
                 json_body={"name": "vm", "image": sites.image_id("Site2"), "network": True})
    assert answer.status == 201
    [port] = [port for port in ask(sites.own_url("Site3", "network") + "/ports").json["ports"]
              if port["id"] in answer.bytes.decode()]
    assert port["id"] not in ask(sites.own_url("Site1", "network") + "/ports").bytes.decode()


def test_bytes_of_any_kind_pass_two_agents(sites):
    content = bytes(range(256)) * 8192
    url = sites.url("Site1", "image")
    at_site3 = {"Scope": "Site3"}
    image = ask(url + "/images", "POST", at_site3, json_body={"name": "big"}).json["id"]
    assert ask(f"{url}/images/{image}/file", "PUT", at_site3, content).json["size"] == len(content)
    assert ask(f"{url}/images/{image}/file", headers=at_site3).bytes == content
    assert ask(f"{sites.own_url('Site3', 'image')}/images/{image}/file").bytes == content
    assert ask(f"{url}/images/{image}", "DELETE", at_site3).status == 204


def test_errors_of_the_application_pass_untouched(sites):
    scoped = ask(sites.url("Site1", "image") + "/images/none", headers={"Scope": "Site2"})
    own = ask(sites.own_url("Site2", "image") + "/images/none")
    assert (scoped.status, scoped.bytes, scoped.header("Content-Type")) == (404, own.bytes, "application/json")


def test_answer_says_where_it_comes_from(sites):
    answer = ask(sites.url("Site1", "image") + "/whoami", headers={"Scope": "Site2"})
    assert answer.header("Via") == "1.1 Site2, 1.1 Site1"
    assert '"Site1"; next-hop="Site2"; received-status=200' in answer.header("Proxy-Status")
    timings = [entry.split(";")[0] for entry in answer.header("Server-Timing").split(", ")]
    assert timings == ["Site2", "Site1"]
    local = ask(sites.url("Site1", "image") + "/whoami", headers={"Scope": "Site1"})
    assert local.header("Via") == "1.1 Site1" and local.header("Server-Timing").startswith("Site1;dur=")


# ---- explain ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers, prefix", [({"Scope": SCOPE}, ""), ({}, "/scope/" + quoted(SCOPE))])
def test_explain_runs_nothing(sites, headers, prefix):
    before = len(sites.requests("Site1", "compute"))
    answer = ask(sites.url("Site1", "compute") + prefix + "/servers", "POST", {**headers, "Cheops-Explain": "plan"},
                 json_body={"name": "vm", "image": sites.image_id("Site2")})
    assert answer.status == 200 and answer.header("Content-Type") == "application/json"
    assert answer.json == {"service": "compute", "at": "Site1", "scope": "compute: Site1, image: Site2",
                           "plan": {"op": "one", "site": "Site1"}, "latency_ms": 0, "warnings": []}
    assert len(sites.requests("Site1", "compute")) == before


def test_explain_without_a_scope_runs_nothing_either(sites):
    before = len(sites.requests("Site1", "compute"))
    answer = ask(sites.url("Site1", "compute") + "/servers/42", "DELETE", {"Cheops-Explain": "plan"})
    assert answer.status == 200
    assert answer.json == {"service": "compute", "at": "Site1", "scope": None, "plan": {"op": "one", "site": "Site1"},
                           "latency_ms": 0, "warnings": []}
    assert len(sites.requests("Site1", "compute")) == before


def test_explain_shows_plans_that_do_not_run_yet(sites):
    answer = ask(sites.url("Site1", "image") + "/images", headers={"Scope": "Site1 & Site2", "Cheops-Explain": "plan"})
    assert answer.status == 200 and answer.json["plan"]["op"] == "all"


def test_explain_has_one_value(sites):
    answer = ask(sites.url("Site1", "image") + "/images", headers={"Scope": "Site1", "Cheops-Explain": "plans"})
    assert answer.status == 400 and answer.problem["type"] == "bad-explain"


def test_a_server_that_relies_on_a_secret_of_another_site(sites):
    """It is read when the server starts, from where the scope of that request says."""
    secret = ask(sites.url("Site2", "image") + "/secrets", "POST", json_body={"name": "key", "data": "s"}).json["id"]
    scope = {"Scope": "{compute: Site1, image: Site2}"}
    made = ask(sites.url("Site1", "compute") + "/servers", "POST", scope,
               json_body={"name": "vm", "image": sites.image_id("Site2"), "secret": secret})
    assert made.status == 201 and made.json["secret"] == secret, made
    action = f"{sites.url('Site1', 'compute')}/servers/{made.json['id']}/action"
    assert ask(action, "POST", scope, json_body={"reboot": None}).status == 202
    here = ask(action, "POST", json_body={"reboot": None})
    assert here.status == 409 and here.json["error"]["message"] == f"no secret {secret}"
    assert ask(f"{sites.url('Site2', 'image')}/secrets/{secret}", "DELETE").status == 204
    assert ask(action, "POST", scope, json_body={"reboot": None}).status == 409
