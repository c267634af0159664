"""Divided by a tag of the sites."""
import pathlib

import pytest
from pool_lab import PoolLab

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("divisible-tags")
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("      as: divisible\n", "      as: divisible\n      weight: capacity\n")
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = PoolLab(folder, 3, str(folder / "app.yaml"), [{"capacity": "2.5"}, {"capacity": "7.5"}, {"capacity": "lots"}])
    yield made
    made.stop()


def test_in_proportion_to_it(lab):
    path = lab.make("by tag", scope="Site1 % Site2", size=100, hosts=["a", "b", "c", "d"])
    assert lab.parts("by tag") == [25, 75, None]
    assert [len(hosts) for hosts in lab.parts("by tag", "hosts")[:2]] == [1, 3]
    assert lab[2].ask("PATCH", path, {"size": 10}, Prefer="wait=60").status == 200
    assert sum(lab.parts("by tag")[:2]) == 10 and lab.parts("by tag")[0] in (2, 3)
    # What the request says is stronger, and stays.
    assert lab[2].ask("PATCH", path, {"size": 10}, Cheops_Divide="evenly", Prefer="wait=60").status == 200
    assert lab.parts("by tag") == [5, 5, None]


def test_a_tag_that_is_no_number_is_named(lab):
    answer = lab[1].ask("POST", "/pools", {"name": "never", "size": 4}, Scope="Site1 % Site3")
    assert answer.status == 400 and answer.problem["type"] == "bad-division", answer
    assert "Site3" in answer.json["detail"] and "capacity" in answer.json["detail"], answer
    assert lab.parts("never") == [None] * 3
    assert lab[1].ask("POST", "/pools", {"name": "given", "size": 4}, Scope="Site1 % Site3",
                      Cheops_Divide="Site1=3 Site3=1").status == 201
