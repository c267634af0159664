"""Images are read at whoever is near, and there: `|`, and around() with the round trips of a network. Asked at Site2; Site1 is the near one, and goes."""
import pytest
from openstack_lab import wait_for

SCOPES = ("{image: Site1 | Site2}", "{image: around(Site1, 10ms)}")


@pytest.fixture
def near(lab):
    """Two sites two milliseconds apart, and the agent of Site2 knows that; and a name that both have an image of, with other bytes."""
    before = lab.rules("Site1", "Site2")["delay"]
    lab.set("Site1", "Site2", delay="1ms")
    name = lab.name("debian")
    ids = {site: lab.make_image(site, name) for site in lab.sites}
    wait_for(lambda: (lab.view("Site2")["Site1"]["rtt_ms"] or 100) < 10, "Site2 to know that Site1 is near")
    yield name, ids
    lab.set("Site1", "Site2", delay=before)


def shown(lab, name, scope):
    return lab.openstack("Site2", f"image show -f json {name}", scope).json["id"]


def test_around_begins_with_its_centre(lab, near):
    name, ids = near
    assert shown(lab, name, SCOPES[1]) == ids["Site1"]
    assert shown(lab, name, SCOPES[0]) in ids.values()


@pytest.mark.parametrize("how", ["its agent is killed", "its Glance is killed", "it is cut off"])
def test_the_near_site_is_down(lab, near, how):
    """The other one answers, by record and by file; a scope that names the near one alone says who is missing."""
    name, ids = near
    away = {"its agent is killed": lambda: lab.without("Site1", "agent"), "its Glance is killed": lambda: lab.without("Site1", "glance"),
            "it is cut off": lab.apart}[how]
    with away():
        for scope in SCOPES:
            assert shown(lab, name, scope) == ids["Site2"], scope
            stored = lab.ask("Site2", "image", f"/v2/images/{ids['Site2']}/file", scope=scope)
            assert stored.status == 200 and len(stored.bytes) == 4096, stored
        lab.openstack("Site2", f"image show {name}", "{image: Site1}").refused("Site1")
