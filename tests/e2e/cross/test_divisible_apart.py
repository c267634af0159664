"""Divided resources while sites are away, are killed, or are cut apart: parts add up in the end."""
import random
import threading

import mesh_maker
import pytest
from demo_process import wait_for
from pool_lab import PoolLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = PoolLab(tmp_path_factory.mktemp("divisible-apart"))
    yield made
    made.stop()


def only(lab, number):
    """Only the agent of this site runs, and takes requests."""
    for site in lab.sites:
        if site.agent.poll() is None:
            site.kill()
    lab[number].start()


def together(lab):
    for site in lab.sites:
        if site.agent.poll() is not None:
            site.start()
    mesh_maker.wait_reachable(lab.sites)


def read_whole(site, path):
    """What it says of it, once all have a say in that: who was just started again is asked as soon as others know that."""
    shown = site.ask("GET", path)
    return None if shown.header("Cheops-Partial") else shown


def whole(lab, path, size):
    """All sites are settled, say the same, and have parts that add up to it."""
    lab.settled(path)
    shown = [wait_for(lambda site=site: read_whole(site, path), f"all to answer {site.name}") for site in lab.sites]
    assert [(each.status, each.json["size"]) for each in shown] == [(200, size)] * 3
    assert sum(lab.parts(shown[0].json["name"])) == size


def test_a_site_that_is_away_is_marked(lab):
    path = lab.make("partial", headers={"Cheops_Divide": "Site1=1 Site2=2 Site3=4"}, size=7)
    lab[2].kill()
    try:
        shown = lab[1].ask("GET", path)
        assert (shown.status, shown.json["size"]) == (200, 5)
        assert shown.header("Cheops-Partial").startswith('"Site2";reason='), shown
        answer = lab[1].ask("PATCH", path, {"size": 14})
        assert answer.status == 200 and "Site2=pending" in answer.header("Cheops-Replicas")
        wait_for(lambda: lab.parts("partial") == [2, 2, 8], "those that are there to have their parts")
    finally:
        together(lab)
    whole(lab, path, 14)
    assert lab.parts("partial") == [2, 4, 8]


def test_the_prime_is_away(lab):
    path = lab.make("no prime", size=9)
    lab[1].kill()
    try:
        shown = lab[2].ask("GET", path)
        assert (shown.status, shown.json["size"], shown.json["id"]) == (200, 6, path.split("/")[-1])
        assert shown.header("Cheops-Partial").startswith('"Site1";reason=')
    finally:
        together(lab)
    whole(lab, path, 9)


def test_updates_made_apart_end_with_the_whole_of_one(lab):
    """With different divisions, in both directions. Which of them is the last is the affair of the clocks of who started anew."""
    for first, second in ((1, 3), (3, 1)):
        name = f"apart {first}"
        path = lab.make(name, size=9)
        only(lab, first)
        assert lab[first].ask("PATCH", path, {"size": 20}, Cheops_Divide="Site1=20 Site2=0 Site3=0").status == 200
        only(lab, second)
        assert lab[second].ask("PATCH", path, {"size": 40}, Cheops_Divide="weights; Site1=1 Site2=1 Site3=2").status == 200
        together(lab)
        lab.settled(path)
        parts = lab.parts(name)
        assert parts in ([20, 0, 0], [10, 10, 20])
        whole(lab, path, sum(parts))
        # All have the division of the one that was last.
        for number, times in ((1, 2), (2, 3), (3, 4)):
            assert lab[number].ask("PATCH", path, {"size": sum(parts) * times}, Prefer="wait=60").status == 200
            assert lab.parts(name) == [part * times for part in parts]


def test_a_set_and_changes_made_apart(lab):
    """What is added lands on top of what was set: 29, +13 and -12."""
    path = lab.make("set and grown", size=23)
    only(lab, 2)
    assert lab[2].ask("POST", path + "/grow", {"by": 13}).status == 200
    only(lab, 1)
    assert lab[1].ask("PUT", path, {"name": "set and grown", "size": 29}).status == 200
    only(lab, 3)
    assert lab[3].ask("POST", path + "/grow", {"by": -12}).status == 200
    together(lab)
    whole(lab, path, 30)


def test_patches_notes_and_changes_made_apart(lab):
    path = lab.make("mixed", size=10, hosts=["a", "b", "c"])
    only(lab, 1)
    assert lab[1].ask("POST", path + "/grow", {"by": 5}).status == 200
    assert lab[1].ask("POST", path + "/notes", {"text": "one"}).status == 200
    only(lab, 2)
    assert lab[2].ask("PATCH", path, {"size": 100, "hosts": ["d", "e"]}).status == 200
    assert lab[2].ask("POST", path + "/grow", {"by": 7}).status == 200
    only(lab, 3)
    assert lab[3].ask("PATCH", path, {"label": "three"}).status == 200
    together(lab)
    whole(lab, path, 112)
    shown = lab[3].ask("GET", path).json
    assert (sorted(shown["hosts"]), shown["label"], shown["notes"]) == (["d", "e"], "three", ["one"])


def test_made_while_a_site_is_away_and_deleted(lab):
    lab[3].kill()
    answer = lab[1].ask("POST", "/pools", {"name": "later", "size": 9}, Scope="Site1 % Site2 % Site3")
    assert (answer.status, answer.json["size"]) == (201, 9)
    path = f"/pools/{answer.json['id']}"
    together(lab)
    whole(lab, path, 9)
    lab[3].kill()
    assert lab[1].ask("DELETE", path).status == 204
    together(lab)
    wait_for(lambda: lab.parts("later") == [None] * 3, "no part to be left")


def test_killed_in_the_middle(lab):
    """Users set it at all sites, each with a division of its own, while agents are killed."""
    path = lab.make("killed", size=30)
    acknowledged, over = [], threading.Event()
    dice = random.Random(7)

    def set_it(number):
        mine = random.Random(number)
        while not over.is_set():
            parts = [mine.randrange(100) for _ in range(3)]
            try:
                answer = lab[number].ask("PATCH", path, {"size": sum(parts)},
                                         Cheops_Divide=" ".join(f"Site{i + 1}={part}" for i, part in enumerate(parts)))
            except OSError:
                over.wait(0.01)
                continue
            if answer.status == 200:
                acknowledged.append(parts)
            else:
                over.wait(0.01)

    users = [threading.Thread(target=set_it, args=(number,)) for number in (1, 2, 3)]
    for user in users:
        user.start()
    for _ in range(6):
        number = dice.randrange(1, 4)
        so_far = len(acknowledged)
        wait_for(lambda so_far=so_far: len(acknowledged) > so_far + 5, "users to get on")
        lab[number].kill()
        lab[number].start()
    over.set()
    for user in users:
        user.join()
    mesh_maker.wait_reachable(lab.sites)
    lab.settled(path)
    whole(lab, path, sum(lab.parts("killed")))
    assert lab[2].ask("PATCH", path, {"size": 0}, Cheops_Divide="evenly", Prefer="wait=60").status == 200
    assert lab[1].ask("PATCH", path, {"size": 7}, Prefer="wait=60").status == 200
    assert lab.parts("killed") == [3, 2, 2]


def test_sites_change_while_a_read_is_under_way(lab):
    """What the read knows of them is its own: who is there may be another matter when it is answered."""
    path = lab.make("under way", size=9)
    for _ in range(3):
        answers = []
        lab[2].pause()
        try:
            readers = [threading.Thread(target=lambda: answers.append(lab[1].ask("GET", path))) for _ in range(4)]
            for reader in readers:
                reader.start()
            lab[3].kill()
            lab[3].start()
        finally:
            lab[2].go_on()
        for reader in readers:
            reader.join()
        assert [answer.status for answer in answers] == [200] * 4
        mesh_maker.wait_reachable(lab.sites)
    whole(lab, path, 9)


def test_a_history_that_is_longer_than_what_is_kept(lab):
    """Its create is long forgotten when something comes that belongs before what was run: each site goes back to what it has kept of its own part."""
    path = lab.make("long", size=100)
    for number in range(90):
        assert lab[1 + number % 3].ask("POST", path + "/grow", {"by": 10}).status == 200
    whole(lab, path, 1000)
    for turn in range(2):
        only(lab, 2)
        assert lab[2].ask("POST", path + "/grow", {"by": 13}).status == 200
        assert lab[2].ask("POST", path + "/notes", {"text": f"two {turn}"}).status == 200
        only(lab, 1)
        assert lab[1].ask("PATCH", path, {"size": 2000 + turn}, Cheops_Divide="weights; Site1=1 Site2=5 Site3=2").status == 200
        only(lab, 3)
        assert lab[3].ask("POST", path + "/grow", {"by": -12}).status == 200
        assert lab[3].ask("POST", path + "/notes", {"text": f"three {turn}"}).status == 200
        together(lab)
        whole(lab, path, 2001 + turn)
        shown = lab[2].ask("GET", path).json
        assert sorted(shown["notes"]) == sorted(f"{who} {each}" for who in ("two", "three") for each in range(turn + 1))


def test_what_is_in_use_is_counted_once_where_changes_run_again(lab):
    """A PUT does not set it back: so what was taken is not to be taken again with the changes of the size."""
    path = lab.make("in use", size=90)
    assert lab[1].ask("POST", path + "/allocate", {"count": 6}, Prefer="wait=60").status == 200
    only(lab, 2)
    assert lab[2].ask("POST", path + "/grow", {"by": 13}).status == 200
    only(lab, 1)
    assert lab[1].ask("PATCH", path, {"size": 290}).status == 200
    only(lab, 3)
    assert lab[3].ask("POST", path + "/grow", {"by": -12}).status == 200
    assert lab[3].ask("POST", path + "/allocate", {"count": 9}).status == 200
    together(lab)
    whole(lab, path, 291)
    assert lab[2].ask("GET", path).json["used"] == 15 == sum(lab.parts("in use", "used"))
    assert lab[2].ask("POST", path + "/release", {"count": 0}, Prefer="wait=60").status == 200
