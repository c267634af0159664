"""Sites of what is divided come and go: its parts are always all that there is of it."""
import threading

import pytest
from demo_process import ask, wait_for
from files_lab import mesh_maker
from pool_lab import PoolLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = PoolLab(tmp_path_factory.mktemp("parts"), 4)
    yield made
    made.stop()


def meta_id(path):
    return path.split("/")[-1]


def shown(site, path):
    return ask(f"http://{site.config['api']}/cheops/v1/replicants/{meta_id(path)}")


def weights(site, path):
    answer = shown(site, path)
    return {each["site"]: each["weight"] for each in answer.json["division"] or []} if answer.status == 200 else {}


def whole(site, path, field="size"):
    """What a read says; None if it says that it is not whole."""
    answer = site.ask("GET", path)
    return None if answer.status != 200 or answer.header("Cheops-Partial") else answer.json[field]


def wait_lost(site, path, value):
    """It is read without a part that is gone for good, and says so."""
    def is_told():
        answer = site.ask("GET", path)
        return answer.status == 200 and answer.json["size"] == value and ";reason=lost" in (answer.header("Cheops-Partial") or "")
    wait_for(is_told, f"{path} to be {value}, without a part that is lost, at {site.name}")


def wait_whole(site, path, value, field="size"):
    wait_for(lambda: whole(site, path, field) == value, f"{field} of {path} to be {value} at {site.name}")


def test_a_site_comes(lab, replicant):
    path = lab.make("comes", scope="Site1 % Site2", size=7, hosts=["a", "b", "c", "d"])
    assert lab.parts("comes") == [4, 3, None, None]
    replicant("extend", meta_id(path), "Site3", "--wait", at=2)
    lab.settled(path)
    assert sorted(lab.parts("comes")[:3]) == [2, 2, 3]
    assert sorted(sum(lab.parts("comes", "hosts")[:3], [])) == ["a", "b", "c", "d"]
    for number in (1, 2, 3):
        wait_whole(lab[number], path, 7)
        assert weights(lab[number], path) == {"Site1": 1, "Site2": 1, "Site3": 1}
    answer = lab[3].ask("PATCH", path, {"size": 30}, Prefer="wait=60")
    assert answer.status == 200 and answer.json["size"] == 30, answer
    assert lab.parts("comes")[:3] == [10, 10, 10]
    assert "member already" in replicant("extend", meta_id(path), "Site3", status=1).err


def test_what_is_in_use_stays_where_it_is(lab, replicant):
    path = lab.make("used", scope="Site1 % Site2", size=20)
    answer = lab[1].ask("POST", f"{path}/allocate", {"count": 4}, Prefer="wait=60")
    assert answer.status == 200, answer
    used = lab.parts("used", "used")
    assert sum(used[:2]) == 4 and all(used[:2])
    replicant("extend", meta_id(path), "Site3", "--wait")
    assert lab.parts("used", "used")[:3] == used[:2] + [0]
    wait_whole(lab[3], path, 4, "used")
    refused = replicant("drop", meta_id(path), "Site2", status=1).err
    assert "Site2" in refused and "/used" in refused
    assert sum(lab.parts("used")[:3]) == 20
    answer = lab[1].ask("POST", f"{path}/release", {"count": 4}, Prefer="wait=60",
                        Cheops_Divide=f"Site1={used[0]} Site2={used[1]} Site3=0")
    assert answer.status == 200, answer
    replicant("drop", meta_id(path), "Site2", "--wait")
    wait_whole(lab[3], path, 20)


def test_weights_stay(lab, replicant):
    path = lab.make("weights", scope="Site1 % Site2", size=12, headers={"Cheops_Divide": "Site1=8 Site2=4"})
    replicant("extend", meta_id(path), "Site3", "--wait")
    assert weights(lab[3], path) == {"Site1": 8, "Site2": 4, "Site3": 6}
    lab.settled(path)
    assert sum(lab.parts("weights")[:3]) == 12
    # An update at the new site keeps them.
    assert lab[3].ask("PATCH", path, {"size": 36}, Prefer="wait=60").status == 200
    assert lab.parts("weights")[:3] == [16, 8, 12]


@pytest.mark.parametrize("asked", [1, 2, 3])
@pytest.mark.parametrize("goes", [2, 1], ids=["another", "the prime"])
def test_a_site_goes(lab, replicant, asked, goes):
    name = f"goes {goes} {asked}"
    path = lab.make(name, size=10, hosts=["a", "b", "c", "d", "e"])
    replicant("drop", meta_id(path), f"Site{goes}", "--wait", at=asked)
    wait_for(lambda: lab.parts(name)[goes - 1] is None, "its part to be deleted")
    stay = [number for number in (1, 2, 3) if number != goes]
    assert sorted(lab.parts(name)[number - 1] for number in stay) == [5, 5]
    for number in stay:
        wait_whole(lab[number], path, 10)
        assert sorted(whole(lab[number], path, "hosts")) == ["a", "b", "c", "d", "e"]
        assert shown(lab[number], path).json["prime"] == (f"Site{stay[0]}" if goes != 1 else shown(lab[2], path).json["prime"])
    # Nothing that is divided from now on goes to it, and nobody has to name it.
    assert lab[stay[1]].ask("PATCH", path, {"size": 21}, Prefer="wait=60").status == 200
    assert sum(lab.parts(name)[number - 1] for number in stay) == 21
    divide = " ".join(f"Site{number}=7" for number in stay)
    assert lab[stay[0]].ask("PATCH", path, {"size": 14}, Prefer="wait=60", Cheops_Divide=divide).status == 200
    assert [lab.parts(name)[number - 1] for number in stay] == [7, 7]


def test_it_is_moved(lab, replicant):
    path = lab.make("moves", scope="Site1 % Site2", size=9)
    replicant("move", meta_id(path), "Site2", "Site3")
    wait_for(lambda: lab.parts("moves")[1] is None, "Site2 to be without it")
    lab.settled(path, at=(1, 3))
    assert sum(lab.parts("moves")[number] for number in (0, 2)) == 9
    wait_whole(lab[3], path, 9)


def test_the_last_site_stays(lab, replicant):
    path = lab.make("last", scope="Site1 % Site2", size=3)
    replicant("drop", meta_id(path), "Site2", "--wait")
    assert "nothing was done" in replicant("drop", meta_id(path), "Site1", status=1).err
    wait_whole(lab[1], path, 3)


def test_a_site_is_away(lab, replicant, cheops):
    path = lab.make("away", scope="Site1 % Site2 % Site3", size=9)
    lab[3].kill()
    try:
        for action, site in (("extend", "Site4"), ("drop", "Site2")):
            refused = replicant(action, meta_id(path), site, status=1).err
            assert "Site3" in refused and "nothing was done" in refused
        assert len(shown(lab[1], path).json["members"]) == 3
        assert lab.parts("away") == [3, 3, 3, None]
        # It is given up: its part is gone, and the others go on.
        replicant("drop", meta_id(path), "Site3", "--force")
        wait_lost(lab[1], path, 6)
        wait_lost(lab[2], path, 6)
        assert '"Site3";reason=lost' in lab[2].ask("GET", path).header("Cheops-Partial")
        wait_for(lambda: shown(lab[2], path).json["lost"] == ["Site3"], "Site2 to hear of it")
        told = cheops("get", meta_id(path), "--api", lab[2].config["api"])
        assert "the part of Site3 is lost" in told.out, told
        wait_for(lambda: ";reason=lost" in (lab[2].ask("GET", "/pools").header("Cheops-Partial") or ""), "the list to say so")
        assert lab[1].ask("PATCH", path, {"size": 12}, Prefer="wait=60").status == 200
        wait_for(lambda: lab.parts("away")[:2] == [6, 6], "all of it at those that are left")
        wait_for(lambda: all(shown(lab[number], path).json["lost"] == [] for number in (1, 2)), "nothing to be lost any more")
    finally:
        lab[3].start()
        mesh_maker.wait_present(lab.sites)
    wait_for(lambda: lab.parts("away")[2] is None, "Site3 to be told")
    wait_whole(lab[2], path, 12)


class Growing:
    """Users at several sites who add to it all the while: fewer changes than are kept behind a create, so that those of other orders
    can be run again."""
    PAUSE_S, MOST = 0.2, 24

    def __init__(self, lab, path, numbers):
        self.grown, self.ends, self.lock = 0, threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self._grow, args=(lab[number], path)) for number in numbers]
        self.refused = []

    def _grow(self, site, path):
        for _ in range(self.MOST):
            if self.ends.wait(self.PAUSE_S):
                break
            answer = site.ask("POST", f"{path}/grow", {"by": 1})
            with self.lock:
                if answer.status == 200:
                    self.grown += 1
                else:
                    self.refused.append(answer)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()


def test_it_grows_while_a_site_comes(lab, replicant):
    path = lab.make("grows", scope="Site1 % Site2", size=10)
    with Growing(lab, path, (1, 2)) as growing:
        wait_for(lambda: growing.grown > 3, "some changes")
        replicant("extend", meta_id(path), "Site3")
        wait_for(lambda: "Site3" in weights(lab[1], path), "Site3 to have a share")
    assert not growing.refused
    lab.settled(path)
    assert sum(lab.parts("grows")[:3]) == 10 + growing.grown, lab.parts("grows")
    wait_whole(lab[3], path, 10 + growing.grown)


def test_it_grows_while_a_site_goes(lab, replicant):
    path = lab.make("grows and shrinks", size=10)
    with Growing(lab, path, (1, 3)) as growing:
        wait_for(lambda: growing.grown > 3, "some changes")
        replicant("drop", meta_id(path), "Site2")
    assert not growing.refused
    wait_for(lambda: lab.parts("grows and shrinks")[1] is None, "Site2 to be without it")
    lab.settled(path, at=(1, 3))
    parts = lab.parts("grows and shrinks")
    assert parts[0] + parts[2] == 10 + growing.grown, parts
    wait_whole(lab[3], path, 10 + growing.grown)


@pytest.mark.parametrize("victim", [1, 2, 3], ids=["the prime", "who gives the copy", "who is new"])
def test_an_agent_is_killed_while_a_site_comes(lab, victim):
    name = f"killed {victim}"
    path = lab.make(name, scope="Site1 % Site2", size=10)
    assert ask(f"http://{lab[2].config['api']}/cheops/v1/replicants/{meta_id(path)}/members/Site3", "PUT").status == 200
    lab[victim].kill()
    try:
        reader = lab[1 if victim != 1 else 2]
        assert whole(reader, path) in (None, 10)
    finally:
        lab[victim].start()
        mesh_maker.wait_present(lab.sites)
    wait_for(lambda: set(weights(lab[3], path)) == {"Site1", "Site2", "Site3"}, "Site3 to have a share")
    lab.settled(path)
    assert sorted(lab.parts(name)[:3]) == [3, 3, 4]
    wait_whole(lab[victim], path, 10)


@pytest.mark.parametrize("victim", [1, 2, 3], ids=["the prime", "who goes", "another"])
def test_an_agent_is_killed_while_a_site_goes(lab, replicant, victim):
    name = f"killed leaving {victim}"
    path = lab.make(name, size=10)
    asked = 3 if victim == 1 else 1
    answers = []
    target = f"http://{lab[asked].config['api']}/cheops/v1/replicants/{meta_id(path)}/members/Site2"
    asking = threading.Thread(target=lambda: answers.append(ask(target, "DELETE")))
    asking.start()
    wait_for(lambda: weights(lab[asked], path).get("Site2") == 0, "its share to be taken from it")
    lab[victim].kill()
    lab[victim].start()
    mesh_maker.wait_present(lab.sites)
    asking.join()
    if answers[0].status != 200:  # asking again completes it
        assert answers[0].status == 409, answers
        replicant("drop", meta_id(path), "Site2", at=asked)
    wait_for(lambda: lab.parts(name)[1] is None, "Site2 to be without it")
    lab.settled(path, at=(1, 3))
    assert [lab.parts(name)[number] for number in (0, 2)] == [5, 5]
    wait_whole(lab[victim if victim != 2 else 1], path, 10)


def test_a_site_is_removed_from_the_mesh(cheops, tmp_path):
    lab = PoolLab(tmp_path, 3)
    try:
        path = lab.make("left", size=9)
        lab[3].kill()
        result = cheops("site", "remove", "Site3", "--yes", "--api", lab[1].config["api"])
        assert result.status == 0, result
        wait_lost(lab[2], path, 6)
        # That may have been the word of Site1: who has not heard of it itself divides over all three.
        wait_for(lambda: shown(lab[2], path).json["lost"], "Site2 to hear of it")
        assert lab[2].ask("PATCH", path, {"size": 12}, Prefer="wait=60").status == 200
        wait_for(lambda: lab.parts("left")[:2] == [6, 6], "all of it at those that are left")
        wait_whole(lab[1], path, 12)
    finally:
        lab.stop()
