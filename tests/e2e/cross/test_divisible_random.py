"""Many random operations on a divided resource from all of its sites: what is read is what a model says, and the parts add up."""
import random
import threading

import pytest
from pool_lab import PoolLab

SCOPE = "Site1 % Site2 % Site3"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = PoolLab(tmp_path_factory.mktemp("divisible-random"))
    yield made
    made.stop()


class Model:
    """One pool, as if it were at one site."""

    def __init__(self, name, size, hosts):
        self.name, self.size, self.hosts = name, size, hosts

    def step(self, dice, lab, path):
        site = lab[dice.randrange(1, 4)]
        headers = {"Prefer": "wait=60"}
        what = dice.choice(("grow", "patch", "patch", "hosts", "put", "name", "grow"))
        size = dice.choice((dice.randrange(50), dice.randrange(10**6), dice.randrange(-9, 9)))
        if what != "name" and dice.randrange(3) == 0:
            headers["Cheops_Divide"] = "weights; " + " ".join(f"Site{i}={dice.randrange(1, 5)}" for i in (1, 2, 3))
        if what == "grow":
            self.size += size
            answer = site.ask("POST", path + "/grow", {"by": size}, **headers)
        elif what == "patch":
            self.size = size
            answer = site.ask("PATCH", path, {"size": size}, **headers)
        elif what == "hosts":
            self.hosts = [f"h{dice.randrange(40)}" for _ in range(dice.randrange(12))]
            answer = site.ask("PATCH", path, {"hosts": self.hosts}, **headers)
        elif what == "put":
            self.size, self.hosts = size, [f"h{i}" for i in range(dice.randrange(9))]
            answer = site.ask("PUT", path, {"name": self.name, "size": size, "hosts": self.hosts}, **headers)
        else:
            answer = site.ask("PATCH", path, {"label": str(size)}, **headers)
        assert answer.status == 200, answer
        return answer

    def check(self, lab, path):
        for site in lab.sites:
            shown = site.read(path)
            assert shown.header("Cheops-Partial") is None
            assert (shown.json["size"], sorted(shown.json["hosts"])) == (self.size, sorted(self.hosts)), site.name
        assert sum(lab.parts(self.name)) == self.size
        assert sorted(sum(lab.parts(self.name, "hosts"), [])) == sorted(self.hosts)


@pytest.mark.parametrize("seed", range(4))
def test_one_after_the_other(lab, seed):
    dice = random.Random(seed)
    model = Model(f"random {seed}", 12, ["a", "b", "c", "a"])
    path = lab.make(model.name, size=model.size, hosts=model.hosts)
    for _ in range(30):
        model.step(dice, lab, path)
        model.check(lab, path)


def test_at_once_from_all_sites(lab):
    path = lab.make("at once", size=100)
    given = []

    def grow(number):
        dice = random.Random(number)
        for _ in range(25):
            by = dice.randrange(-5, 20)
            assert lab[number].ask("POST", path + "/grow", {"by": by}).status == 200
            given.append(by)

    users = [threading.Thread(target=grow, args=(number,)) for number in (1, 2, 3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(given) == 75
    lab.settled(path)
    assert [site.read(path).json["size"] for site in lab.sites] == [100 + sum(given)] * 3
    assert sum(lab.parts("at once")) == 100 + sum(given)
