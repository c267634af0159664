"""Cheops' own API, as docs/openapi.yaml describes it, on an agent with one service that does not answer."""
import http.client
import json
import pathlib
import re
import socket
import subprocess
import time

import pytest
import yaml

OPENAPI = yaml.safe_load((pathlib.Path(__file__).parents[3] / "docs" / "openapi.yaml").read_text(encoding="utf-8"))
BOUND_S = 30


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Api:
    def __init__(self, port):
        self.port = port

    def __call__(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def answers(self):
        try:
            return self("GET", "/cheops/v1/health")[0] == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def api(cheops, tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    port = free_port()
    config = {"site": "Site1", "api": f"127.0.0.1:{port}", "peer": f"127.0.0.1:{free_port()}", "threads": 2,
              "hop_key": "a key for tests only", "peers": {"Site2": {"address": "127.0.0.1:9", "rtt": "8ms"}},
              "services": {"app": {"front": f"127.0.0.1:{free_port()}", "instances": ["127.0.0.1:9"]}}}
    (folder / "agent.yaml").write_text(json.dumps(config), encoding="utf-8")
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([cheops.path, "agent", "-c", folder / "agent.yaml"], stderr=log)
    made = Api(port)
    end = time.monotonic() + BOUND_S
    while not made.answers():
        assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text(encoding="utf-8")
    made.file = folder / "agent.yaml"
    yield made
    process.terminate()
    assert process.wait(BOUND_S) == 0, (folder / "log").read_text(encoding="utf-8")


def test_health_and_version(api):
    assert json.loads(api("GET", "/cheops/v1/health")[2]) == {"status": "ok", "site": "Site1"}
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", json.loads(api("GET", "/cheops/v1/version")[2])["version"])


def test_services_and_sites(api):
    services = json.loads(api("GET", "/cheops/v1/services")[2])["services"]
    assert [service["name"] for service in services] == ["app"] and services[0]["instances"] == ["127.0.0.1:9"]
    sites = json.loads(api("GET", "/cheops/v1/sites")[2])
    assert sites["site"] == "Site1"
    assert [(site["name"], site.get("rtt_ms")) for site in sites["sites"]] == [("Site1", 0), ("Site2", 8)]


def test_metrics_are_prometheus_text(api):
    status, headers, body = api("GET", "/cheops/v1/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = body.decode().splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    values = {re.match(r"[a-z_]+", line)[0]: float(line.split()[-1]) for line in lines if not line.startswith("#")}
    assert names == set(values) and values["cheops_requests_total"] >= 1 and "cheops_scope_unattributed_total" in names


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
    assert json.loads(api("POST", "/cheops/v1/reload")[2]) == {"reloaded": True}
    good = api.file.read_text(encoding="utf-8")
    api.file.write_text(good.replace('"threads": 2', '"threads": "many"'), encoding="utf-8")
    status, _, body = api("POST", "/cheops/v1/reload")
    api.file.write_text(good, encoding="utf-8")
    problem = json.loads(body)
    assert status == 422 and problem["type"] == "urn:cheops:problem:bad-configuration"
    assert "agent.yaml:1:" in problem["detail"] and "threads" in problem["detail"]
    assert api("GET", "/cheops/v1/health")[0] == 200


def test_the_description_has_every_path_and_method(api):
    for path, item in OPENAPI["paths"].items():
        full = path if path.startswith("/cheops") else "/cheops/v1" + path
        for method in item:
            assert api(method.upper(), full)[0] in (200, 204), f"{method} {full}"
