"""`with_requirements(…)` while sites are away, agents are killed, and files are large."""
import hashlib
import signal

import pytest

from demo_process import ask, wait_for
from places import Trying, places, wait_alike

BOTH = "with_requirements(Site1 & Site2)"
LARGE = 50 << 20


def content(size):
    return (hashlib.sha256(b"content").digest() * (size // 32 + 1))[:size]


def operation(site, answer, wait=""):
    shown = site.api(f"/operations/{answer.header('Cheops-Operation')}{wait}")
    assert shown.status == 200, shown
    return shown.json


def at(shown, site):
    return next(each for each in shown["members"] if each["site"] == site.name)


def assert_whole(sites, name, server, size):
    """One image, one server at each, made of the same bytes."""
    wait_alike(sites, "images", name)
    wait_alike(sites, "servers", server)
    for site in sites:
        made, = site.named("servers", server)
        assert made["image_checksum"] == hashlib.sha256(content(size)).hexdigest()
    shown, = sites[0].replicants("image")
    assert {each["site"]: each["state"] for each in shown["members"]} == {site.name: "settled" for site in sites}


def test_a_site_that_is_away_gets_both_when_it_is_back(mesh, cheops):
    one, two = places(mesh)
    mine = one.image("large", content(LARGE))
    two.agent.signal(signal.SIGSTOP)
    made = one.create(BOTH, name="waits", image=mine)
    assert made.status == 201, made
    meta_id = one.replicants("image")[0]["id"]
    shown = operation(one, made)
    assert at(shown, one)["state"] == "applied" and at(shown, two)["state"] == "pending"
    assert at(shown, two)["waits_for"] == meta_id
    told = cheops("ops", "get", made.header("Cheops-Operation"), "--api", one.agent.config["api"])
    assert f"Site2 waits for {meta_id}, which is on its way there" in told.out, told
    two.agent.signal(signal.SIGCONT)
    assert operation(one, made, "?wait=all&timeout=60")["reached"]
    assert_whole((one, two), "large", "waits", LARGE)
    assert "waits_for" not in at(operation(one, made), two)


@pytest.mark.parametrize("size", [1 << 10, LARGE])
def test_killed_between_the_image_and_the_server(mesh, size):
    one, two = places(mesh)
    mine = one.image("killed", content(size))
    two.agent.signal(signal.SIGSTOP)
    trying = Trying(lambda: one.create(BOTH, name="may be lost", image=mine))
    wait_for(lambda: one.replicants("image"), "the image to be adopted")
    one.restart()  # most often before there is a server
    trying.end()
    two.agent.signal(signal.SIGCONT)

    def again():
        answer = one.create(BOTH, name="survives", image=mine)
        assert answer.status in (201, 400, 503), answer  # it has to hear of the other site again
        return answer if answer.status < 300 else None
    answer = wait_for(again, "the server to be made after all")
    assert operation(one, answer, "?wait=all&timeout=60")["reached"]
    assert_whole((one, two), "killed", "survives", size)
    assert len([each for each in one.replicants("server") if each["name"] == "survives"]) <= 1


def test_the_other_one_is_killed_while_it_gets_them(mesh):
    one, two = places(mesh)
    mine = one.image("sent", content(LARGE))
    made = one.create(BOTH, name="lands", image=mine)
    assert made.status == 201, made
    for _ in range(3):
        two.restart()
    assert operation(one, made, "?wait=all&timeout=90")["reached"]
    assert_whole((one, two), "sent", "lands", LARGE)


def test_one_other_site_that_is_away(mesh):
    """There is nobody to run it: nothing is made, and the next one works."""
    one, two = places(mesh)
    mine = one.image("patient", content(1 << 16))
    two.agent.signal(signal.SIGSTOP)
    trying = Trying(lambda: one.create("with_requirements(Site2)", name="later", image=mine))
    wait_for(lambda: one.replicants("image"), "the image to be adopted")
    assert one.named("servers", "later") == []
    two.agent.signal(signal.SIGCONT)
    assert trying.end().status == 201, trying.answer
    server, = two.named("servers", "later")
    assert server["image_checksum"] == hashlib.sha256(content(1 << 16)).hexdigest()


def test_its_service_is_down(mesh):
    one, two = places(mesh)
    mine = one.image("unread", content(1 << 10))
    one.own["image"].stop()
    answer = one.create(BOTH, name="no", image=mine)
    assert (answer.status, answer.problem["type"]) == (503, "requirement-on-its-way"), answer
    assert "nothing was made" in answer.problem["detail"] and answer.header("Retry-After")
    assert one.replicants("image") == [] and two.named("servers", "no") == []
    assert ask(one.url("compute") + "/servers").json["servers"] == []
