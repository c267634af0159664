"""What is read of a divided resource while a change is on its way is the whole of some moment, or says that it is not.

All that is written is a multiple of 1000, divided such that no part is: what is put together of old and new parts is none, but by chance."""
import itertools
import random
import threading

import mesh_maker
import pytest
from demo_process import ask, wait_for
from files_lab import LATE
from pool_lab import PoolLab

UNIT = 1000


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = PoolLab(tmp_path_factory.mktemp("on-its-way"))
    yield made
    made.stop()


class Reader(threading.Thread):
    """Reads again and again. A sum that is no multiple has to be marked."""

    def __init__(self, site, path, over, lists=False):
        super().__init__()
        self.site, self.path, self.over, self.lists = site, path, over, lists
        self.whole, self.marked, self.wrong, self.reasons = 0, 0, [], set()

    def read(self):
        if not self.lists:
            answer = self.site.ask("GET", self.path)
            return answer, answer.json.get("size") if answer.status == 200 else None
        answer = self.site.ask("GET", "/pools")
        shown = [each["size"] for each in answer.json.get("pools", []) if each["id"] == self.path.split("/")[-1]]
        return answer, shown[0] if shown else None

    def run(self):
        while not self.over.is_set():
            try:
                answer, size = self.read()
            except OSError:
                self.over.wait(0.01)
                continue
            if size is None:
                continue
            partial = answer.header("Cheops-Partial")
            if partial:
                self.marked += 1
                self.reasons |= {part.split(";reason=")[1].split(";")[0] for part in partial.split(", ") if ";reason=" in part}
            elif size % UNIT:
                self.wrong.append(size)
            else:
                self.whole += 1


def read_until(site, path, wanted, what):
    def read():
        answer = site.ask("GET", path)
        return answer if wanted(answer.header("Cheops-Partial")) else None
    return wait_for(read, what)


def read_whole(site, path):
    return read_until(site, path, lambda partial: partial is None, "an answer that is whole")


def watch(lab, path, sites, lists=False):
    over = threading.Event()
    readers = [Reader(lab[number], path, over, lists) for number in sites]
    for reader in readers:
        reader.start()
    return over, readers


def done(over, readers):
    over.set()
    for reader in readers:
        reader.join()
    assert [reader.wrong for reader in readers] == [[]] * len(readers)


def set_it(lab, number, path, dice):
    first, second = dice.randrange(1, UNIT), dice.randrange(1, UNIT)
    size = UNIT * dice.randrange(3, 9)
    return lab[number].ask("PATCH", path, {"size": size},
                           Cheops_Divide=f"Site1={first} Site2={second} Site3={size - first - second}")


@pytest.mark.parametrize("lists", [False, True], ids=["item", "list"])
def test_updates_from_all_sites(lab, lists):
    path = lab.make(f"set {lists}", size=UNIT)
    over, readers = watch(lab, path, (1, 2, 3), lists)
    dice = random.Random(int(lists))
    for number in itertools.islice(itertools.cycle((1, 2, 3)), 60):
        assert set_it(lab, number, path, dice).status == 200
    wait_for(lambda: all(reader.whole for reader in readers), "reads of a whole")
    done(over, readers)
    assert sum(reader.marked for reader in readers) > 0, "no read has met a change"
    assert set().union(*(reader.reasons for reader in readers)) - set(LATE) == {"behind"}
    # And when all is quiet, nothing is marked.
    lab.settled(path)
    for site in lab.sites:
        assert read_whole(site, path).json["size"] == sum(lab.parts(f"set {lists}"))


def test_changes_by_so_much_at_once_from_all_sites(lab):
    path = lab.make("grown", size=UNIT)
    over, readers = watch(lab, path, (1, 2, 3))
    answers = []

    def grow(number):
        for _ in range(20):
            answers.append(lab[number].ask("POST", path + "/grow", {"by": UNIT}).status)

    users = [threading.Thread(target=grow, args=(number,)) for number in (1, 2, 3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert answers == [200] * 60
    lab.settled(path)
    wholes = [reader.whole for reader in readers]
    wait_for(lambda: all(reader.whole > whole for reader, whole in zip(readers, wholes)), "reads of the whole")
    done(over, readers)
    assert sum(reader.marked for reader in readers) > 0
    assert read_whole(lab[2], path).json["size"] == 61 * UNIT


def test_a_site_is_held_or_killed_meanwhile(lab):
    path = lab.make("held", size=UNIT)
    over, readers = watch(lab, path, (1, 3))
    dice = random.Random(5)
    for turn in range(4):
        if turn % 2:
            lab[2].kill()
        else:
            lab[2].pause()
        try:
            for number in (1, 3, 1, 3):
                assert set_it(lab, number, path, dice).status == 200
        finally:
            if turn % 2:
                lab[2].start()
                mesh_maker.wait_reachable(lab.sites)
            else:
                lab[2].go_on()
        for number in (1, 2, 3):
            assert set_it(lab, number, path, dice).status == 200
    lab.settled(path)
    wholes = [reader.whole for reader in readers]
    wait_for(lambda: all(reader.whole > whole for reader, whole in zip(readers, wholes)), "reads of the whole")
    done(over, readers)
    assert read_whole(lab[1], path).json["size"] == sum(lab.parts("held"))


def test_what_one_site_refused_is_marked(lab):
    """A part that does not fit there: what the sites have does not add up, and that is said until somebody has seen to it."""
    path = lab.make("refused", size=3 * UNIT)
    local = lab[3].pools()["refused"]["id"]
    assert ask(f"{lab[3].own}/pools/{local}/allocate", "POST", json_body={"count": 900}).status == 200
    assert lab[1].ask("PATCH", path, {"size": 300}).status == 200
    for site in lab.sites:
        # The others may have yet to change theirs.
        shown = read_until(site, path, lambda partial: (partial or "").count(";reason=") == 1 and "rejected" in partial,
                           "Site3 to be named, and nobody else")
        assert shown.json["size"] == 200 + UNIT
        assert shown.header("Cheops-Partial").startswith('"Site3";reason=rejected;details="'), shown
    assert lab[2].ask("PUT", path, {"name": "refused", "size": 6 * UNIT}, Prefer="wait=60").status == 200
    assert read_whole(lab[1], path).json["size"] == 6 * UNIT
