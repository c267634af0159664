"""The scope follows Nova's calls by osprofiler, and by nothing else: Site1 is as `up --carry osprofiler` makes it. Nova is configured for that,
and no line of it changed."""
import base64
import hashlib
import hmac
import json

import follow
import pytest
import yaml

KEYS = ("lab key", "a newer key")


@pytest.fixture(scope="module")
def profiled_sites(sites):
    with sites.carried("osprofiler", "Site1"):
        yield sites


@pytest.fixture
def profiled(profiled_sites, lab):
    assert profiled_sites is lab
    return lab


def trace(base_id, key):
    info = base64.urlsafe_b64encode(json.dumps({"base_id": base_id, "parent_id": "a client"}).encode()).decode()
    return {"X-Trace-Info": info, "X-Trace-HMAC": hmac.new(key.encode(), info.encode(), hashlib.sha1).hexdigest()}


def test_nothing_else_is_carried(profiled):
    services = yaml.safe_load(profiled.path("Site1", "agent.yaml").read_text(encoding="utf-8"))["services"]
    ways = {(name, way) for name, known in services.items() for way in known["carry"] if not way.endswith(":identity")}  # whose token it is
    assert ways == {("compute", "osprofiler:osprofiler.keys")}
    assert "[profiler]\nenabled = true" in profiled.path("Site1", "etc", "nova", "nova.conf").read_text(encoding="utf-8")


def test_a_boot_with_an_image_of_another_site(profiled):
    follow.boot(profiled)


def test_calls_after_the_answer(profiled):
    follow.shelve_and_unshelve(profiled)


def test_calls_to_placement_and_the_network(profiled):
    follow.ask_placement(profiled)
    follow.ask_network(profiled)


@pytest.mark.parametrize("key", KEYS)
def test_who_profiles_a_request(profiled, key):
    """The trace of the user is the one that is used; Nova takes any of its keys."""
    image, name = profiled.make_image("Site2"), profiled.name("vm")
    answer = profiled.boot("Site1", image, follow.MIXED, name, headers=trace(profiled.name("trace"), key))
    assert answer.status == 202, answer
    profiled.wait_active("Site1", name)


def test_a_trace_that_nova_would_not_take(profiled):
    image, name = profiled.make_image("Site2"), profiled.name("vm")
    answer = profiled.boot("Site1", image, follow.MIXED, name, headers=trace(profiled.name("trace"), "nobody's key"))
    assert answer.status == 202, answer
    profiled.wait_active("Site1", name)


def test_the_link_is_cut(profiled):
    """Nova's answer is a fault of its own; the user is told what it was."""
    image = profiled.make_image("Site2")
    with profiled.apart():
        asked = profiled.boot("Site1", image, follow.MIXED)
        assert asked.status in (502, 504) and "Site2" in asked.json["computeFault"]["message"], asked
        assert profiled.servers("Site1") == {}


def test_the_real_client(profiled):
    image, name = profiled.name("debian"), profiled.name("vm")
    profiled.make_image("Site2", image)
    created = profiled.openstack("Site1", f"server create -f json --image {image} --flavor m1.tiny --nic none --wait {name}", follow.MIXED)
    assert created.json["status"] == "ACTIVE"
