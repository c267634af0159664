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
    made = PoolLab(folder, 4, str(folder / "app.yaml"),
                   [{"capacity": "2.5"}, {"capacity": "7.5"}, {"capacity": "lots"}, {"capacity": "10"}])
    yield made
    made.stop()


def test_in_proportion_to_it(lab):
    path = lab.make("by tag", scope="Site1 % Site2", size=100, hosts=["a", "b", "c", "d"])
    assert lab.parts("by tag") == [25, 75, None, None]
    assert [len(hosts) for hosts in lab.parts("by tag", "hosts")[:2]] == [1, 3]
    assert lab[2].ask("PATCH", path, {"size": 10}, Prefer="wait=60").status == 200
    assert sum(lab.parts("by tag")[:2]) == 10 and lab.parts("by tag")[0] in (2, 3)
    # What the request says is stronger, and stays.
    assert lab[2].ask("PATCH", path, {"size": 10}, Cheops_Divide="evenly", Prefer="wait=60").status == 200
    assert lab.parts("by tag") == [5, 5, None, None]


def test_a_tag_that_is_no_number_is_named(lab):
    answer = lab[1].ask("POST", "/pools", {"name": "never", "size": 4}, Scope="Site1 % Site3")
    assert answer.status == 400 and answer.problem["type"] == "bad-division", answer
    assert "Site3" in answer.json["detail"] and "capacity" in answer.json["detail"], answer
    assert lab.parts("never") == [None] * 4
    assert lab[1].ask("POST", "/pools", {"name": "given", "size": 4}, Scope="Site1 % Site3",
                      Cheops_Divide="Site1=3 Site3=1").status == 201


def test_a_site_that_comes_has_its_tag(lab, cheops):
    def extend(name, site):
        path = lab.make(name, scope="Site1 % Site2", size=80)
        result = cheops("replicant", "extend", path.split("/")[-1], site, "--wait", "--api", lab[2].config["api"])
        assert result.status == 0, result
        return lab.parts(name)
    assert extend("with a tag", "Site4") == [10, 30, None, 40]
    # One whose tag says nothing has as much as the others on average.
    parts = extend("without", "Site3")
    assert parts[3] is None and sum(parts[:3]) == 80 and parts[2] in (26, 27), parts
