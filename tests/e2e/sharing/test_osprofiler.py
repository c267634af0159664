"""The scope follows by a trace of osprofiler: through a service that passes on nothing else, and takes only what is signed.

What osprofiler itself does, and what OpenStack makes of it, is in tests/e2e/openstack; here it is played by a few lines.
"""
import base64
import hashlib
import hmac
import json
import uuid

import mesh as meshes
import pytest
from demo_process import ask

KEYS = ["first key", "other"]


def sign(info, key):
    return hmac.new(key.encode(), info.encode(), hashlib.sha1).hexdigest()


def pack(members, key=KEYS[0]):
    info = base64.urlsafe_b64encode(json.dumps(members).encode()).decode()
    return {"X-Trace-Info": info, "X-Trace-HMAC": sign(info, key)}


class Compute(meshes.Played):
    """Calls the image service for each request, with the trace of it if that is signed with one of the keys."""

    def __init__(self):
        self.image = None  # where it is, which is told later
        self.seen = []  # (headers, base_id) of each request
        super().__init__()

    def answer(self, headers):
        info, passed, base = headers.get("X-Trace-Info"), {}, None
        for key in KEYS:
            if info and sign(info, key) == headers.get("X-Trace-Hmac", headers.get("X-Trace-HMAC")):
                base = json.loads(base64.urlsafe_b64decode(info))["base_id"]
                passed = pack({"base_id": base, "parent_id": str(uuid.uuid4())}, key)
        self.seen.append((dict(headers), base))
        return 200, json.dumps({"image": ask(self.image + "/whoami", headers=passed).json["site"]}).encode()


class Sites:
    """Two; compute is asked at the first."""

    def __init__(self, mesh):
        self.compute = mesh.keep(Compute())
        images = {site: mesh.service("image", site) for site in ("Site1", "Site2")}
        keys = mesh.folder / "profiler.keys"
        keys.write_text(", ".join(KEYS) + "\n", encoding="utf-8")
        keys.chmod(0o600)
        config = mesh.config("Site1", {"compute": self.compute.url, "image": images["Site1"].url})["services"]
        config["compute"]["carry"] = ["osprofiler:profiler.keys"]
        config["image"]["carry"] = []
        first = mesh.keep(meshes.Agent(mesh.folder, {**mesh.config("Site1", {}), "services": config}))
        self.agent, _ = mesh.join(first, mesh.agent("Site2", {"image": images["Site2"].url, "compute": self.compute.url}))
        self.compute.image = self.agent.url("image")

    def ask(self, scope=None, headers=None):
        """Where the image service was asked."""
        answer = ask(self.agent.url("compute") + "/x", headers={**({"Scope": scope} if scope else {}), **(headers or {})})
        assert answer.status == 200, answer
        return answer.json["image"]


@pytest.fixture
def sites(mesh):
    return Sites(mesh)


def test_a_trace_is_begun(sites):
    assert sites.ask("image: Site2") == "Site2"
    headers, base = sites.compute.seen[-1]
    assert uuid.UUID(base).version == 4 and "Scope" not in headers
    assert set(json.loads(base64.urlsafe_b64decode(headers["X-Trace-Info"]))) == {"base_id", "parent_id"}  # others are refused
    assert sites.ask("image: Site1") == "Site1"
    assert sites.ask("image: Site2") == "Site2" and sites.compute.seen[-1][1] != base


@pytest.mark.parametrize("key", KEYS)
def test_a_trace_of_the_client_is_used(sites, key):
    mine = pack({"base_id": f"mine with {key}", "parent_id": "p"}, key)
    assert sites.ask("image: Site2", mine) == "Site2"
    headers, base = sites.compute.seen[-1]
    assert base == f"mine with {key}" and headers["X-Trace-Info"] == mine["X-Trace-Info"]


@pytest.mark.parametrize("broken", [
    pack({"base_id": "a", "parent_id": "p"}, "a key that nobody has"), {**pack({"base_id": "a"}), "X-Trace-HMAC": "0" * 40},
    {"X-Trace-Info": pack({"base_id": "a"})["X-Trace-Info"]}, pack({"base_id": 5}), pack({"base_id": "a", "more": 1}),
    {"X-Trace-Info": "{}", "X-Trace-HMAC": sign("{}", KEYS[0])}])
def test_a_trace_that_the_service_would_not_take(sites, broken):
    """It is replaced, and no call is found by it."""
    assert sites.ask("image: Site2", broken) == "Site2"
    headers, base = sites.compute.seen[-1]
    assert uuid.UUID(base) and headers["X-Trace-Info"] != broken["X-Trace-Info"]


def test_without_a_scope_nothing_is_added(sites):
    assert sites.ask() == "Site1"
    assert not any(name.startswith("X-Trace") for name in sites.compute.seen[-1][0])
    mine = pack({"base_id": "mine", "parent_id": "p"})
    assert sites.ask(None, mine) == "Site1"
    assert sites.compute.seen[-1][0]["X-Trace-Info"] == mine["X-Trace-Info"]


def test_one_trace_with_two_scopes(sites):
    """Tells nothing any more: the calls stay here, and are counted."""
    mine = pack({"base_id": "mine", "parent_id": "p"})
    assert sites.ask("image: Site2", mine) == "Site2"
    before = sites.agent.metric("cheops_scope_ambiguous_total")
    assert sites.ask("image: Site1", mine) == "Site1" and sites.ask("image: Site2", mine) == "Site1"
    assert sites.agent.metric("cheops_scope_ambiguous_total") > before


def test_a_trace_that_is_too_long_to_be_remembered(sites):
    before = sites.agent.metric("cheops_scope_unattributed_total")
    assert sites.ask("image: Site2", pack({"base_id": "x" * 129, "parent_id": "p"})) == "Site1"
    assert sites.agent.metric("cheops_scope_unattributed_total") == before + 1
