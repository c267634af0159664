"""A child that several sites hold, and the site that made it is removed from the mesh: those that are left have its name."""
import pytest

from container_lab import Lab, wait_known
from files_lab import wait_for


def is_taken(answer):
    """No answer may be a success: who cannot be told yet that the name is taken is told to try again."""
    assert answer.status in (409, 503, 504), answer
    return answer.status == 409 and answer.problem["type"] == "name-taken"


@pytest.mark.parametrize("prime, others", [("Site3", "Site1 % Site2"), ("Site1", "Site2 % Site3")], ids=["the prime", "another"])
def test_its_maker_is_removed(prime, others, tmp_path, cheops):
    lab = Lab(tmp_path)
    try:
        project = lab.project("inherited", f"{prime} % {others}", at=int(prime[4:]))
        made = project.make("red", at=3, scope="Site3 & Site2", headers={"Prefer": "wait=20"})
        assert made.status == 201, made
        child = made.json["id"]
        assert project.make("blue", at=3).status == 201
        renamed = project.ask(3, child, "PATCH", json_body={"name": "green"}, headers={"Prefer": "wait=20"})
        assert renamed.status == 200, renamed
        wait_known(project, child)
        wait_for(lambda: "green" in project.local_names(2), "Site2 to have carried it out")
        lab[3].kill()
        removed = cheops("site", "remove", "Site3", "--yes", "--api", lab[1].config["api"])
        assert removed.status == 0, removed
        project.numbers.remove(3)
        wait_for(lambda: is_taken(project.make("green", at=1)), "Site1 to hear that the name is taken")
        wait_for(lambda: project.make("blue", at=1).status == 201, "the name of what is gone to be free")
        wait_for(lambda: project.make("red", at=2).status == 201, "the name that it had before to be free")
        for number in (1, 2):
            assert is_taken(project.make("green", at=number))
        lab[2].restart()
        wait_for(lambda: project.ask(2, child).status == 200, "Site2 to be there again")
        wait_for(lambda: is_taken(project.make("green", at=1)), "the name to be taken still")
        assert project.ask(2, child, "DELETE").status == 204
        wait_for(lambda: project.make("green", at=1).status == 201, "the name to be free")
    finally:
        lab.stop()
