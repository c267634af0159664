"""Scenarios of the literature, with real processes and lines that are cut: what docs/replication-order.md promises."""
import concurrent.futures
import itertools

import pytest

from processes import hold
from scenes import Scene, next_millisecond
from wan_lab import Lab, wait_for

SITES = ["Site1", "Site2", "Site3"]
ALL = " & ".join(SITES)


@pytest.fixture(scope="module")
def shared():
    with Lab(3) as lab:
        lab.set("*", "*", delay="5ms")
        yield lab


@pytest.fixture
def scene(shared):
    made = Scene(shared)
    yield made
    made.mend()


def test_set_29_add_13_take_12(scene):
    """Whoever does which of them, and in whatever order: 29 + 13 - 12."""
    turns = list(itertools.permutations(SITES))[:4]
    paths = [scene.make_everywhere(f"account-{i}", at="Site1", size=23) for i in range(len(turns))]
    scene.lab.cut("*", "*")
    for i, (path, (sets, adds, takes)) in enumerate(zip(paths, turns)):
        asked = [(sets, "PUT", path, {"name": f"account-{i}", "size": 29}, 29),
                 (adds, "POST", path + "/grow", {"by": 13}, 36),
                 (takes, "POST", path + "/grow", {"by": -12}, 11)]
        for site, method, target, body, size in asked[i % 3:] + asked[:i % 3]:
            # Answered at once, from the own copy: nobody else can be reached.
            answer = scene.change(site, method, target, body)
            assert answer.json["size"] == size
            assert sorted(answer.header("Cheops-Replicas").split()) == sorted(
                f"{other}={200 if other == site else 'pending'}" for other in SITES)
            next_millisecond()
    scene.lab.heal()
    for i, path in enumerate(paths):
        scene.stays(path, f"account-{i}", size=30)


def test_writes_while_cut_off(scene):
    """They do not wait for others, not even for those that were just talked with; nor is anything forgotten."""
    path = scene.make_everywhere("alone", size=0)
    scene.lab.cut("*", "*")
    for number in range(1, 21):
        for site in SITES:
            scene.change(site, "PATCH", path, {site: number})
    made = {site: scene.make(f"made at {site}", SITES, at=site) for site in SITES}
    scene.change("Site2", "PATCH", made["Site2"], {"size": 2})
    scene.change("Site3", "DELETE", made["Site3"])
    assert all(scene.lab.rules(*pair)["cut"] == "yes" for pair in itertools.permutations(SITES, 2))  # all the while
    assert [scene.pool("Site1", f"made at {site}") is not None for site in SITES] == [True, False, False]
    scene.lab.heal()
    scene.stays(path, "alone", **{site: 20 for site in SITES})
    scene.stays(made["Site1"], "made at Site1", size=0)
    scene.stays(made["Site2"], "made at Site2", size=2)
    scene.wait_gone("made at Site3")


def test_replaced_and_appended(scene):
    """The new text comes first, and what was appended is after it, in the order in which it was asked."""
    steps = [("Site1", "PUT", "", {"notes": ["new"]}), ("Site2", "POST", "/notes", {"text": "x"}),
             ("Site3", "POST", "/notes", {"text": "y"})]
    paths = [scene.make_everywhere(f"text-{i}", at=SITES[i], notes=["old"]) for i in range(3)]
    scene.lab.cut("*", "*")
    for i, path in enumerate(paths):
        for site, method, below, body in steps[i:] + steps[:i]:
            scene.change(site, method, path + below, {**body, "name": f"text-{i}"} if method == "PUT" else body)
            next_millisecond()
    scene.lab.heal()
    for i, (path, notes) in enumerate(zip(paths, (["new", "x", "y"], ["new", "x", "y"], ["new", "y", "x"]))):
        scene.stays(path, f"text-{i}", notes=notes)


def test_the_later_of_two_that_set_all(scene):
    path = scene.make_everywhere("colours", colour="none")
    scene.lab.cut("*", "*")
    for site, colour in (("Site3", "red"), ("Site1", "blue")):
        scene.change(site, "PUT", path, {"name": "colours", "colour": colour, site: True})
        next_millisecond()
    scene.lab.heal()
    scene.stays(path, "colours", colour="blue", Site1=True, Site3=None)


def test_a_delete_wins(scene):
    path = scene.make_everywhere("short", size=1)
    scene.lab.cut("*", "*")
    scene.change("Site2", "DELETE", path)
    next_millisecond()
    scene.change("Site1", "PATCH", path, {"size": 2})
    scene.change("Site3", "POST", path + "/grow", {"by": 1})
    scene.lab.heal()
    scene.wait_gone("short")
    for site in SITES:
        wait_for(lambda site=site: scene.ask(site, "GET", path).status == 404, f"it to be gone at {site}")
    # The name is free again, and nothing of the old one comes to the new one.
    again = scene.make_everywhere("short", at="Site3", size=7)
    scene.stays(again, "short", size=7)


# ---- One that fails at one site -----------------------------------------------------------------------------------------


def test_no_room_at_one_site(scene):
    """A quota: the others have it, and it is shown where it was refused. What is there already is changed as ever. When there
    is room, a person says so, and it is made there too."""
    path = scene.make_everywhere("roomy", size=23)
    scene.stop_service("Site3")
    scene.start_service("Site3", "--quota", scene.pools_count("Site3"))
    answer = scene.change("Site1", "POST", "/pools", {"name": "too much", "size": 1}, ALL)
    full = f"/pools/{answer.json['id']}"
    refused = scene.wait_member("Site1", answer, "Site3", "rejected")
    assert refused["status"] == 403 and "quota" in refused["answer"]
    scene.lab.cut("*", "*")
    scene.change("Site1", "PUT", path, {"name": "roomy", "size": 29})
    scene.change("Site2", "POST", path + "/grow", {"by": 13})
    scene.change("Site3", "POST", path + "/grow", {"by": -12})
    scene.change("Site1", "PUT", full, {"name": "too much", "size": 29})
    scene.change("Site2", "POST", full + "/grow", {"by": 13})
    assert scene.ask("Site3", "PATCH", full, {"size": 5}).json["type"].endswith(":earlier-first")
    scene.lab.heal()
    scene.stays(path, "roomy", size=30)
    scene.stays(full, "too much", SITES[:2], size=42)
    assert scene.pool("Site3", "too much") is None and scene.ask("Site3", "GET", full).status == 404
    scene.stop_service("Site3")
    scene.start_service("Site3")
    again = scene.lab.ask("Site3", "api", f"/cheops/v1/operations/{answer.header('Cheops-Operation')}/retry", "POST")
    assert again.status == 200, again
    wait_for(lambda: scene.pool("Site3", "too much"), "it to be made at Site3")


def test_not_accepted_at_one_site(scene):
    """Its service has a pool of that name, which nobody else knows: it keeps that, and the others keep theirs."""
    assert scene.ask("Site3", "POST", "/pools", {"name": "own", "size": 1}).status == 201
    answer = scene.change("Site1", "POST", "/pools", {"name": "own", "size": 23}, ALL)
    path = f"/pools/{answer.json['id']}"
    refused = scene.wait_member("Site2", answer, "Site3", "rejected")
    assert refused["status"] == 409
    scene.lab.cut("*", "*")
    scene.change("Site1", "PUT", path, {"name": "own", "size": 29})
    scene.change("Site2", "POST", path + "/grow", {"by": 13})
    scene.lab.heal()
    scene.stays(path, "own", SITES[:2], size=42)
    assert scene.pool("Site3", "own")["size"] == 1


def test_one_change_is_refused_at_one_site(scene):
    """Two may have one name as long as they are apart: a name that is free at one site is taken at another."""
    path = scene.make_everywhere("before", size=23)
    assert scene.ask("Site3", "POST", "/pools", {"name": "after", "size": 1}).status == 201
    scene.lab.cut("*", "*")
    answer = scene.change("Site1", "PATCH", path, {"name": "after", "size": 24})
    scene.change("Site2", "PATCH", path, {"Site2": 13})
    scene.change("Site3", "PATCH", path, {"Site3": 12})
    scene.lab.heal()
    refused = scene.wait_member("Site1", answer, "Site3", "rejected")
    assert refused["status"] == 409
    scene.wait_equal("after", SITES[:2], size=24, Site2=13, Site3=12)
    scene.wait_equal("before", SITES[2:], size=23, Site2=13, Site3=12)  # what was refused has no effect there
    assert scene.pool("Site3", "after")["size"] == 1


def test_a_service_that_is_stopped(scene):
    """Its site takes no writes of its own, and catches up when it is back."""
    path = scene.make_everywhere("waiting", size=23)
    scene.stop_service("Site2")
    refused = scene.ask("Site2", "POST", path + "/grow", {"by": 100})
    assert refused.status in (502, 503) and refused.header("Cheops-Operation") is None, refused
    scene.lab.cut("*", "*")
    scene.change("Site1", "PUT", path, {"name": "waiting", "size": 29})
    scene.change("Site3", "POST", path + "/grow", {"by": -12})
    scene.lab.heal()
    scene.wait_equal("waiting", ["Site1", "Site3"], size=17)
    scene.start_service("Site2")
    scene.stays(path, "waiting", size=17)


def test_a_service_that_dies_in_the_middle(scene):
    """Nobody knows whether it did what it was asked, and the user is told so; in the end all have it, or none."""
    path = scene.make_everywhere("dying", size=1)
    hold(scene.lab.pid("Site1", "network"))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(scene.ask, "Site1", "PATCH", path, {"size": 2})
        scene.lab.wait_metric("Site1", "cheops_replica_running", 0)
        scene.stop_service("Site1")
        assert asked.result().status == 502
    answer = scene.ask("Site1", "PATCH", path, {"colour": "red"})
    assert answer.status in (502, 503), answer
    scene.start_service("Site1")
    scene.stays(path, "dying")
    assert scene.pool("Site1", "dying")["size"] in (1, 2)
    scene.change("Site1", "PATCH", path, {"colour": "blue"})
    scene.stays(path, "dying", colour="blue")


# ---- Who is concerned ---------------------------------------------------------------------------------------------------


def test_overlapping_sets_of_sites(scene):
    """Two resources that have one site in common. Each is changed on both sides of a cut."""
    left, right = SITES[:2], SITES[1:]
    a = scene.make_everywhere("left", left, size=1)
    b = scene.make_everywhere("right", right, at="Site3", size=2)
    before = {site: scene.lab.path(site, "network.requests").read_text(encoding="utf-8").count("\n") for site in SITES}
    scene.lab.cut("*", "*")
    scene.change("Site1", "PUT", a, {"name": "left", "size": 10})
    scene.change("Site2", "POST", a + "/grow", {"by": 1})
    scene.change("Site2", "POST", b + "/grow", {"by": 3})
    scene.change("Site3", "PUT", b, {"name": "right", "size": 20})
    scene.lab.heal()
    scene.stays(a, "left", left, size=11)
    scene.stays(b, "right", right, size=23)
    assert scene.pool("Site3", "left") is None and scene.pool("Site1", "right") is None
    assert scene.ask("Site3", "GET", a).status == 404 and scene.ask("Site1", "GET", b).status == 404
    # Their services were asked for nothing that changes anything but their own.
    for site, name in (("Site1", "left"), ("Site3", "right")):
        own = next(pool["id"] for pool in scene.behind(site).json["pools"] if pool["name"] == name)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for line in scene.requests(site, method, before[site]):
                assert own in line["path"], line


@pytest.mark.parametrize("how", ["down", "cut off"])
def test_away_for_a_whole_life(scene, how):
    """It was made, changed and deleted while one member was away: that one ends without it."""
    if how == "down":
        scene.lab.kill("Site3")
    else:
        scene.lab.isolate("Site3")
    path = scene.make("mayfly", SITES, at="Site1", size=1)
    scene.wait_equal("mayfly", SITES[:2], size=1)
    scene.change("Site2", "PATCH", path, {"size": 2})
    scene.wait_equal("mayfly", SITES[:2], size=2)
    scene.change("Site1", "DELETE", path)
    scene.wait_gone("mayfly")
    # Another of the same name, which lives.
    after = scene.make("mayfly", SITES, at="Site2", size=3)
    if how == "down":
        scene.lab.start_agent("Site3")
    else:
        scene.lab.heal()
    scene.stays(after, "mayfly", size=3)
    for site in SITES:
        assert scene.ask(site, "GET", path).status == 404
    scene.change("Site3", "DELETE", after)
    scene.wait_gone("mayfly")


def test_a_satellite_link(scene):
    """Two seconds there and back, and 7 % of the frames are lost."""
    path = scene.make_everywhere("far", size=23)
    for other in SITES[:2]:
        scene.lab.set("Site3", other, delay="1s", loss="7%")
    late = scene.make("new", SITES, at="Site3", size=1)
    scene.change("Site1", "PUT", path, {"name": "far", "size": 29})
    scene.change("Site2", "POST", path + "/grow", {"by": 13})
    scene.change("Site3", "POST", path + "/grow", {"by": -12})
    scene.wait_equal("far", size=30)
    scene.wait_equal("new", size=1)
    scene.change("Site1", "DELETE", late)
    scene.wait_gone("new")
    scene.lab.set("*", "*", delay="5ms", loss="0")
    scene.stays(path, "far", size=30)
