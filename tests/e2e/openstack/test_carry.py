"""How the scope follows Nova's calls: by the request id, which is what all other tests use, and by the token. By osprofiler:
test_by_osprofiler.py."""
import contextlib

import follow
import pytest
from follow import MIXED

ID = "req-0123abcd-0123-4123-8123-0123456789ab"


def image_logged(lab, site, image):
    """How often that Glance was asked for the image."""
    return lab.path(site, "log", "glance.log").read_text(encoding="utf-8").count(f"/v2/images/{image} ")


def test_by_the_token(lab):
    """Nova asks Keystone about the longer token: that agent takes the scope off, as those of other services do."""
    image = lab.make_image("Site2")
    with lab.carried("token"):
        name = lab.name("vm")
        assert lab.boot("Site1", image, MIXED, name).status == 202
        assert lab.wait_active("Site1", name)["image"]["id"] == image
        assert lab.boot("Site1", image).status == 400
        elsewhere = lab.name("vm")
        assert lab.boot("Site2", lab.make_image("Site1"), "{compute: Site2, image: Site1}", elsewhere).status == 202
        lab.wait_active("Site2", elsewhere)


def test_an_id_of_the_client_s_own(lab):
    """One that has the right form is used, and one that has not does no harm: Nova does not pass that on."""
    image = lab.make_image("Site2")
    name = lab.name("vm")
    assert lab.boot("Site1", image, MIXED, name, headers={"X-OpenStack-Request-ID": ID}).status == 202
    lab.wait_active("Site1", name)


@pytest.mark.parametrize("way", ["request id", "token"])
def test_calls_after_the_answer(lab, way):
    with lab.carried("token") if way == "token" else contextlib.nullcontext():
        follow.shelve_and_unshelve(lab)


def test_calls_to_placement_and_the_network(lab):
    """Whose token is not the user's: by the request id, not by the token."""
    follow.ask_placement(lab)
    follow.ask_network(lab)


def test_nobody_else_s_calls_have_it(lab):
    """While boots with a scope are under way, those without stay at their site."""
    here, there = lab.make_image("Site1"), lab.make_image("Site2")
    before = image_logged(lab, "Site2", here)
    names = [lab.name("vm") for _ in range(6)]
    for number, name in enumerate(names):
        answer = lab.boot("Site1", *((there, MIXED) if number % 2 else (here, None)), name=name)
        assert answer.status == 202, answer
    for number, name in enumerate(names):
        assert lab.wait_active("Site1", name)["image"]["id"] == (there if number % 2 else here)
    assert image_logged(lab, "Site2", here) == before
