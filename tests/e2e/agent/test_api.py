"""Cheops' own API, as docs/openapi.yaml describes it: every answer here is held against the description."""
import base64
import contextlib
import http.client
import json
import pathlib
import re
import subprocess
import types

import mesh_maker
import pytest
from api_description import OPENAPI, SEEN, check, check_answer
from ports import free_port

ROOT = pathlib.Path(__file__).parents[3]
BOUND_S = 30


# ---- agents -------------------------------------------------------------------------------------------------------------


class Agent:
    """Its `ask` is a question to the API, whose answer has to fit the description."""

    def __init__(self, executable, folder, site):
        self.config = {"site": site, "api": f"127.0.0.1:{free_port()}", "peer": f"127.0.0.1:{free_port()}", "threads": 2,
                       "state": str(folder / f"{site}.state"), "tags": {"region": "west"},
                       "services": {"app": {"front": f"127.0.0.1:{free_port()}", "instances": ["127.0.0.1:9"], "version": "2.1"}}}
        self.path = folder / f"{site}.yaml"
        self.path.write_text(json.dumps(self.config), encoding="utf-8")
        self.log = folder / f"{site}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([executable, "agent", "-c", self.path], stderr=log)
        mesh_maker.wait_for(self.answers, f"the agent of {site}")

    def __call__(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.config["api"], timeout=BOUND_S)
        connection.request(method, path, body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def ask(self, method, path, body=None):
        """Status and JSON."""
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        status, headers, content = self(method, "/cheops/v1/" + path, body)
        check_answer(method, "/cheops/v1/" + path, status, headers, content)
        return status, json.loads(content)

    def ask_as(self, state, method, path, body=None):
        """The same at the port for agents."""
        status, headers, content = mesh_maker.ask_peer(self.config["peer"], state, method, "/cheops/v1/" + path,
                                                       body=None if body is None else json.dumps(body))
        check_answer(method, "/cheops/v1/" + path, status, dict(headers), content)
        return status, json.loads(content)

    def answers(self):
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        try:
            return self("GET", "/cheops/v1/health")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        assert self.process.wait(BOUND_S) == 0, self.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def start(cheops, tmp_path_factory):
    """start(site, …): agents in a folder of their own."""
    with contextlib.ExitStack() as stops:
        def make(*sites):
            folder = tmp_path_factory.mktemp("api")
            made = [Agent(cheops.path, folder, site) for site in sites]
            for agent in made:
                stops.callback(agent.stop)
            return made

        yield make


@pytest.fixture(scope="module")
def api(start):
    """An agent that is alone."""
    return start("Site1")[0]


@pytest.fixture(scope="module")
def mesh(start):
    """Site1, which has the authority, and Site2."""
    agents = start("Site1", "Site2")
    mesh_maker.make_mesh(agents)
    return types.SimpleNamespace(first=agents[0], second=agents[1])


def problem(answer):
    """Status and type."""
    status, body = answer
    return status, body["type"].removeprefix("urn:cheops:problem:")


# ---- one agent ----------------------------------------------------------------------------------------------------------


def test_health_and_version(api):
    assert api.ask("GET", "health") == (200, {"status": "ok", "site": "Site1"})
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", api.ask("GET", "version")[1]["version"])


def test_services(api):
    services = api.ask("GET", "services")[1]["services"]
    assert [service["name"] for service in services] == ["app"] and services[0]["instances"] == ["127.0.0.1:9"]


def test_metrics_are_prometheus_text(mesh, api):
    for agent in (api, mesh.first):
        status, headers, body = agent("GET", "/cheops/v1/metrics")
        check_answer("GET", "/cheops/v1/metrics", status, headers, body)
        lines = body.decode().splitlines()
        names = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
        values = {re.match(r"[a-z_]+", line)[0]: float(line.split()[-1]) for line in lines if not line.startswith("#")}
        assert names == set(values) and values["cheops_requests_total"] >= 1 and "cheops_scope_unattributed_total" in names

    def states():
        text = mesh.first("GET", "/cheops/v1/metrics")[2].decode()
        return dict(re.findall(r'^cheops_sites\{state="([a-z]+)"\} (\d+)$', text, re.MULTILINE))

    # One that does not get its turn for a second is suspected until it does.
    mesh_maker.wait_for(lambda: states() == {"alive": "2", "suspect": "0", "lost": "0", "left": "0", "revoked": "0"}, "both alive")
    assert values["cheops_certificate_expiry_timestamp_seconds"] > 1.7e9 and "cheops_gossip_sent_total" in names


def test_every_metric_is_documented(mesh):
    text = mesh.first("GET", "/cheops/v1/metrics")[2].decode()
    manual = (ROOT / "docs" / "data-plane.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(cheops_[a-z_]+)`", "".join(re.findall(r"^\| (`cheops_[^|]*) \|", manual, re.MULTILINE))))
    there = set(re.findall(r"^# TYPE ([a-z_]+) ", text, re.MULTILINE))
    assert there - listed == set() and listed - there == set()


def test_a_query_changes_nothing_and_head_has_no_body(api):
    assert api("GET", "/cheops/v1/health?verbose=1")[0] == 200
    status, headers, body = api("HEAD", "/cheops/v1/health")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) > 0


def test_wrong_method_and_path_are_problems(api):
    status, headers, body = api("DELETE", "/cheops/v1/health")
    assert status == 405 and headers["Allow"] == "GET, HEAD" and headers["Content-Type"] == "application/problem+json"
    assert api("GET", "/cheops/v1/reload")[1]["Allow"] == "POST"
    status, _, body = api("GET", "/nothing")
    assert status == 404 and json.loads(body)["type"] == "urn:cheops:problem:no-such-path"


def test_reload_takes_a_good_file_and_refuses_a_bad_one(api):
    assert api.ask("POST", "reload") == (200, {"reloaded": True})
    good = api.path.read_text(encoding="utf-8")
    api.path.write_text(good.replace('"threads": 2', '"threads": "many"'), encoding="utf-8")
    status, refusal = api.ask("POST", "reload")
    api.path.write_text(good, encoding="utf-8")
    assert status == 422 and refusal["type"] == "urn:cheops:problem:bad-configuration"
    assert "Site1.yaml:1:" in refusal["detail"] and "threads" in refusal["detail"]
    assert api("GET", "/cheops/v1/health")[0] == 200


# ---- requests with a body -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, body, said", [
    ("sites/revoke", "", "the body needs a member `name`"),
    ("sites/revoke", {}, "the body needs a member `name`"),
    ("sites/remove", {"name": 7}, "the body needs a member `name`, which is a string"),
    ("sites/tokens", "{", "the body is not valid JSON: line 1, column 1:"),
    ("sites/tokens", "[]", "the body is JSON, but not an object"),
    ("sites/tokens", '{"name": "a", "name": "b"}', "duplicate"),
    ("sites/tokens", {"name": 7}, "`name` has to be a string"),
    ("sites/tokens", {"name": "x" * 129}, "of at most 128 bytes"),
    ("sites/tokens", {"name": "Site9\n"}, "without control characters"),
    ("sites/tokens", {"ttl_s": 0}, "a token is good for 1 second to 7 days"),
    ("sites/tokens", {"ttl_s": 604801}, "a token is good for 1 second to 7 days"),
    ("sites/tokens", {"ttl_s": 10 ** 17}, "a token is good for 1 second to 7 days"),
    ("sites/tokens", {"ttl_s": -(10 ** 17)}, "a token is good for 1 second to 7 days"),
    ("sites/tokens", {"ttl_s": "1h"}, "`ttl_s` has to be a whole number of seconds, from 1 to 604800"),
    ("join", {"token": "x", "name": "Site9"}, "the body needs a member `request`"),
    ("join", {"token": "x", "name": "Site9", "request": "?"}, "`request` has to be a certificate request (PKCS #10, DER) in base64"),
    ("renew", {}, "the body needs a member `request`"),
    ("renew", {"request": base64.b64encode(b"nonsense").decode()}, "request"),
])
def test_body_that_cannot_be_followed(mesh, path, body, said):
    answer = mesh.first.ask("POST", path, body)
    assert problem(answer) == (422, "bad-request") and said in answer[1]["detail"], answer


def test_body_that_is_too_long(mesh):
    body = json.dumps({"name": "x" * (64 << 10)})
    assert problem(mesh.first.ask("POST", "sites/revoke", body)) == (413, "body-too-long")
    assert problem(mesh.first.ask_as(None, "POST", "join", {"name": "x" * (64 << 10)})) == (413, "body-too-long")
    assert mesh.first.ask("GET", "health")[0] == 200


def test_body_where_none_is_needed(mesh):
    assert mesh.first.ask("GET", "sites", "whatever")[0] == 200


def test_what_no_member_would_say_is_dropped(mesh):
    """Taken, since nobody waits for what becomes of it; and only from agents."""
    assert mesh.first.ask_as(mesh.second.config["state"], "POST", "replica", "nonsense")[0] == 202
    assert mesh.first.ask("POST", "replica", "nonsense")[0] == 503
    assert mesh.first.ask("GET", "health")[0] == 200


# ---- sites --------------------------------------------------------------------------------------------------------------


def test_sites_of_an_agent_that_is_alone(api):
    sites = api.ask("GET", "sites")[1]
    assert (sites["site"], sites["from"]) == ("Site1", "Site1")
    [site] = sites["sites"]
    assert (site["name"], site["shown"], site["id"], site["address"], site["certificate"]) == ("Site1", "present", None, None, None)
    assert (site["tags"], site["services"]) == ({"region": "west"}, {"app": "2.1"})


def test_sites_of_a_mesh(mesh):
    mesh_maker.wait_for(lambda: {site["state"] for site in mesh.first.ask("GET", "sites")[1]["sites"]} == {"alive"}, "both alive")
    sites = mesh.first.ask("GET", "sites")[1]
    assert [(site["name"], site["shown"], site["authority"]) for site in sites["sites"]] == [
        ("Site1", "present", True), ("Site2", "present", False)]
    own, other = sites["sites"]
    assert own["estimate_ms"] == 0 and own["rtt_ms"] is None and own["heard"] is None
    assert other["address"] == mesh.second.config["peer"] and other["heard"] is not None
    assert (other["tags"], other["services"]) == ({"region": "west"}, {"app": "2.1"})
    seen = mesh.second.ask("GET", "sites")[1]["sites"]
    assert {site["name"]: site["id"] for site in seen} == {site["name"]: site["id"] for site in sites["sites"]}


def test_distances_from_another_site(mesh):
    mesh_maker.wait_for(lambda: all(site["estimate_ms"] is not None for site in mesh.first.ask("GET", "sites")[1]["sites"]),
                        "coordinates")
    sites = mesh.first.ask("GET", "sites?from=Site%32")[1]
    assert sites["from"] == "Site2"
    distances = {site["name"]: site["estimate_ms"] for site in sites["sites"]}
    assert distances["Site2"] == 0 and distances["Site1"] > 0
    assert problem(mesh.first.ask("GET", "sites?from=Site9")) == (404, "unknown-site")


def test_what_only_a_mesh_has(api):
    for method, path, body in [("POST", "sites/tokens", {}), ("POST", "sites/remove", {"name": "Site2"}),
                               ("POST", "sites/revoke", {"name": "Site2"}), ("GET", "authority", None),
                               ("POST", "authority/rotate", None), ("POST", "authority/retire", None),
                               ("POST", "join", {"token": "x", "name": "y", "request": "eHh4"}),
                               ("POST", "renew", {"request": "eHh4"})]:
        answer = api.ask(method, path, body)
        assert problem(answer) == (409, "no-mesh") and "cheops site init" in answer[1]["detail"], (path, answer)


def test_what_only_the_authority_does(mesh):
    for method, path, body in [("POST", "sites/tokens", {}), ("POST", "sites/remove", {"name": "Site1"}),
                               ("POST", "sites/revoke", {"name": "Site1"}), ("POST", "authority/rotate", None),
                               ("POST", "authority/retire", None), ("POST", "renew", {"request": "eHh4"}),
                               ("POST", "join", {"token": "x", "name": "y", "request": "eHh4"})]:
        answer = mesh.second.ask(method, path, body)
        assert problem(answer) == (409, "no-authority") and "ask at Site1" in answer[1]["detail"], (path, answer)


# ---- tokens and joining -------------------------------------------------------------------------------------------------


def make_request(name, folder=None, key=None):
    """A certificate request, in base64, for that key, or for a new one in the folder."""
    if key is None:
        key = folder / f"{name}.key"
        subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key], check=True, timeout=BOUND_S)
    run = subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", f"/CN={name}", "-outform", "DER",
                          "-addext", f"subjectAltName=URI:cheops://site/{name}"], capture_output=True, check=True, timeout=BOUND_S)
    return base64.b64encode(run.stdout).decode()


def test_token_and_what_is_wrong_with_it(mesh, tmp_path):
    first = mesh.first
    status, token = first.ask("POST", "sites/tokens", {"name": "Site3", "ttl_s": 60})
    assert status == 201 and token["command"] == "cheops site join " + token["token"]
    request = make_request("Site3", tmp_path)

    def join(token, name="Site3", request=request):
        return first.ask_as(None, "POST", "join", {"token": token, "name": name, "request": request})

    assert problem(join("cheops1_nonsense")) == (403, "token-unknown")
    assert problem(join(token["token"], "Site4", make_request("Site4", tmp_path))) == (403, "token-for-another")
    assert problem(join(token["token"], request=make_request("Site4", tmp_path))) == (422, "bad-request")
    status, joined = join(token["token"])
    assert status == 200 and joined["certificate"].startswith("-----BEGIN CERTIFICATE-----") and joined["sites"] == 3
    roots = (pathlib.Path(first.config["state"]) / "roots.pem").read_text()
    assert joined["roots"].split() == roots.split() and len(joined["records"]) >= 2
    assert problem(join(token["token"])) == (403, "token-used")
    free = first.ask("POST", "sites/tokens")[1]["token"]  # for any name that is not taken
    assert problem(join(free)) == (409, "name-taken")
    assert problem(join(free, "Site1", make_request("Site1", tmp_path))) == (409, "name-taken")
    assert problem(first.ask("POST", "sites/tokens", {"name": "Site2"})) == (409, "name-taken")
    assert join(free, "Site5", make_request("Site5", tmp_path))[0] == 200


def test_token_that_has_expired(mesh, tmp_path):
    token = mesh.first.ask("POST", "sites/tokens", {"ttl_s": 1})[1]["token"]
    request = make_request("Site6", tmp_path)

    def expired():
        """Asked with a request for another name, which leaves the token as it is."""
        answer = mesh.first.ask_as(None, "POST", "join", {"token": token, "name": "Site7", "request": request})
        return problem(answer) == (403, "token-expired")

    mesh_maker.wait_for(expired, "the end of the token")


def test_damaged_file_of_tokens_is_left_as_it_is(start):
    """What it says cannot be known, so nobody joins until it is mended; what needs no tokens goes on."""
    agent, = start("Site1")
    mesh_maker.make_mesh([agent])
    tokens = pathlib.Path(agent.config["state"]) / "tokens"
    good = f"{7:064x} 1794733200000 1 Site2\n"
    tokens.write_text(good + "nonsense\n", encoding="utf-8")
    answer = agent.ask("POST", "sites/tokens")
    assert problem(answer) == (500, "cannot-read") and "tokens` is damaged" in answer[1]["detail"]
    assert "line 2" in answer[1]["detail"] and "line 2" in agent.log.read_text(encoding="utf-8")
    assert problem(agent.ask("POST", "sites/remove", {"name": "Site9"})) == (404, "unknown-site")
    assert agent.ask("POST", "authority/rotate")[0] == 200
    assert tokens.read_text(encoding="utf-8") == good + "nonsense\n"
    tokens.write_text(good, encoding="utf-8")
    assert agent.ask("POST", "sites/tokens")[0] == 201
    assert tokens.read_text(encoding="utf-8").startswith(good)


def test_renewal_is_for_the_own_key_and_name(mesh, tmp_path):
    first, second = mesh.first, mesh.second
    state = pathlib.Path(second.config["state"])

    def request(name):
        return {"request": make_request(name, key=state / "site.key")}

    status, renewed = first.ask_as(state, "POST", "renew", request("Site2"))
    assert status == 200 and renewed["records"] == [] and "BEGIN CERTIFICATE" in renewed["certificate"]
    assert problem(first.ask_as(state, "POST", "renew", request("Site1"))) == (403, "not-yours")
    assert problem(first.ask_as(state, "POST", "renew", {"request": make_request("Site2", tmp_path)})) == (403, "not-yours")
    assert problem(first.ask("POST", "renew", request("Site2"))) == (403, "not-yours")
    assert problem(first.ask_as(None, "POST", "renew", request("Site2"))) == (403, "not-a-peer")


# ---- the authority ------------------------------------------------------------------------------------------------------


def test_remove_and_revoke(start):
    first, second, third = start("Site1", "Site2", "Site3")
    mesh_maker.make_mesh([first, second, third])
    assert problem(first.ask("POST", "sites/revoke", {"name": "Site9"})) == (404, "unknown-site")
    assert problem(first.ask("POST", "sites/revoke", {"name": "Site1"})) == (409, "own-site")
    assert problem(first.ask("POST", "sites/remove", {"name": "Site1"})) == (409, "own-site")
    assert first.ask("POST", "sites/revoke", {"name": "Site2"}) == (200, {"revoked": "Site2"})
    assert mesh_maker.sites_of(first)["Site2"]["state"] == "revoked"
    assert problem(first.ask("POST", "sites/tokens", {"name": "Site2"})) == (409, "name-taken")
    assert first.ask("POST", "sites/remove", {"name": "Site2"}) == (200, {"removed": "Site2"})
    assert first.ask("POST", "sites/remove", {"name": "Site3"}) == (200, {"removed": "Site3"})
    assert list(mesh_maker.sites_of(first)) == ["Site1"]
    assert first.ask("POST", "sites/tokens", {"name": "Site2"})[0] == 201
    state = pathlib.Path(second.config["state"])
    assert problem(first.ask_as(state, "GET", "health")) == (403, "revoked")


def test_root_is_replaced(start):
    first, second = start("Site1", "Site2")
    mesh_maker.make_mesh([first, second])
    [old] = first.ask("GET", "authority")[1]["roots"]
    assert first.ask("GET", "authority")[1]["here"] and old["signs"]
    elsewhere = second.ask("GET", "authority")[1]
    assert not elsewhere["here"] and [(root["id"], root["signs"]) for root in elsewhere["roots"]] == [(old["id"], None)]
    assert problem(first.ask("POST", "authority/retire")) == (409, "no-rotation")
    assert first.ask("POST", "authority/rotate") == (200, {"rotated": True})
    assert problem(first.ask("POST", "authority/rotate")) == (409, "rotation-under-way")
    roots = first.ask("GET", "authority")[1]["roots"]
    assert [root["signs"] for root in roots if root["id"] == old["id"]] == [False] and len(roots) == 2

    def retired():
        """Refused until both sites have a certificate of the new one."""
        answer = first.ask("POST", "authority/retire", {"force": False})
        return answer == (200, {"retired": True}) or problem(answer) != (409, "not-renewed")

    mesh_maker.wait_for(retired, "new certificates")
    [new] = first.ask("GET", "authority")[1]["roots"]
    assert new["signs"] and new["id"] != old["id"]
    mesh_maker.wait_for(lambda: [root["id"] for root in second.ask("GET", "authority")[1]["roots"]] == [new["id"]],
                        "Site2 to trust the new one alone")
    mesh_maker.wait_present([first, second])


def test_an_agent_that_is_alone_has_nothing_replicated(api):
    for path in ("replicants", "operations", "changes"):
        assert problem(api.ask("GET", path)) == (503, "store-failed")


# ---- the description and the program agree ------------------------------------------------------------------------------


def routes_of_the_program():
    code = (ROOT / "src" / "api" / "api.c").read_text(encoding="utf-8")
    return set(re.findall(r'\{STR_INIT\("(/cheops/v1/[a-z/{}]+)"\), STR_INIT\("([A-Z]+)"\)', code))


def test_the_description_has_every_path_and_method():
    described = {(path, method.upper()) for path, item in OPENAPI["paths"].items() for method in item}
    assert described == routes_of_the_program() and len(described) >= 14


def test_every_example_fits_its_schema():
    def contents(thing):
        if isinstance(thing, dict):
            if "schema" in thing and "example" in thing:
                yield thing
            for value in thing.values():
                yield from contents(value)
        elif isinstance(thing, list):
            for value in thing:
                yield from contents(value)

    found = list(contents(OPENAPI))
    assert len(found) >= 20
    for content in found:
        check(content["example"], content["schema"])


def test_every_path_was_asked_for_and_answered_well():
    """By the tests before this one, whose answers were all held against the description."""
    good = {(path, method) for path, method, status in SEEN if status < 300}
    wanted = {(path, method) for path, item in OPENAPI["paths"].items() for method, about in item.items()
              if "replication" not in about["tags"]}  # tests/e2e/replication asks for these, and for bodies
    # Between agents that share something: tests/e2e/replication and tests/e2e/cross have such.
    assert wanted - good <= {("/cheops/v1/blobs/{hash}", "get"), ("/cheops/v1/names", "post")}
