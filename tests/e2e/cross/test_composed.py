"""Collaborations compose: a replicated server whose copies all take their image from one site."""
import demo_process
import pytest
from demo_process import ask, wait_for
from demo_sites import Sites

MODES = ["headers", "baggage", "trace", "request-id", "header=X-Auth-Token"]


@pytest.fixture(scope="module", params=MODES)
def sites(request, tmp_path_factory):
    demo = demo_process.Demo(tmp_path_factory.mktemp("composed") / "demo", "--forward", request.param)
    made = Sites(demo)
    made.mode = request.param
    yield made
    demo.stop()


def boot(sites, name, image, scope, at="Site1"):
    extra = {"X-Auth-Token": "secret"} if sites.mode.startswith("header=") else {}
    return ask(sites.url(at, "compute") + "/servers", "POST", {"Scope": scope, "Prefer": "wait=60", **extra},
               json_body={"name": name, "image": image})


def behind(sites, site, name):
    return [each for each in ask(sites.own_url(site, "compute") + "/servers").json["servers"] if each["name"] == name]


def test_both_copies_take_the_image_of_one_site(sites):
    image = sites.image_id("Site1")
    answer = boot(sites, "shared image", image, "{compute: Site1 & Site2, image: Site1}")
    assert answer.status == 201, answer.bytes
    wait_for(lambda: behind(sites, "Site2", "shared image"), "the copy at Site2")
    for site in ("Site1", "Site2"):
        (copy,) = behind(sites, site, "shared image")
        assert copy["image_checksum"] == sites.images["Site1"]["checksum"], site
    asked = [entry for entry in sites.requests("Site2", "image") if image in entry["path"]]
    assert asked == []
    # No service has seen what is between agents.
    assert not any(name.lower() == "cheops-scope" for site in ("Site1", "Site2") for entry in sites.requests(site, "compute")
                   for name in entry["headers"])


def test_from_a_site_that_is_no_member(sites):
    answer = boot(sites, "from afar", sites.image_id("Site3"), "{compute: Site1 & Site2, image: Site3}", at="Site3")
    assert answer.status == 201, answer.bytes
    for site in ("Site1", "Site2"):
        wait_for(lambda site=site: behind(sites, site, "from afar"), f"the copy at {site}")
        assert behind(sites, site, "from afar")[0]["image_checksum"] == sites.images["Site3"]["checksum"]
    assert behind(sites, "Site3", "from afar") == []


def test_a_replicated_image_is_taken_from_one_site_all_the_same(sites):
    """Its ids differ from site to site, and a service names it by the one of its own site."""
    made = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": "Site1 & Site2", "Prefer": "wait=60"},
               json_body={"name": "two"})
    image = made.json["id"]
    ask(f"{sites.url('Site1', 'image')}/images/{image}/file", "PUT", {"Prefer": "wait=60"}, body=b"the same bytes")
    answer = boot(sites, "of one", image, "{compute: Site1 & Site2, image: Site1}")
    assert answer.status == 201, answer.bytes
    wait_for(lambda: behind(sites, "Site2", "of one"), "the copy at Site2")
    first, second = behind(sites, "Site1", "of one")[0], behind(sites, "Site2", "of one")[0]
    assert first["image_checksum"] == second["image_checksum"]
    local = second["image"]
    assert [entry for entry in sites.requests("Site2", "image") if local in entry["path"] and entry["method"] == "GET"] == []
