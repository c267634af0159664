"""Deleting a container says what is in it, or deletes that, too."""
import pytest
from container_lab import Lab, known_at, wait_known
from files_lab import ask, mesh_maker, wait_for


@pytest.fixture(name="lab", scope="module")
def make_lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("delete"))
    yield made
    made.stop()


def delete(project, at, **headers):
    return ask(f"{project.lab[at].front}/projects/{project.id}", "DELETE",
               {name.replace("_", "-"): value for name, value in headers.items()})


def wait_gone(project):
    for site in project.sites:
        wait_for(lambda site=site: ask(f"{site.front}/projects/{project.id}").status in (404, 410),
                 f"{site.name} to have deleted it")


def local_projects(site):
    return [each["name"] for each in ask(f"{site.own}/projects").json["projects"]]


@pytest.mark.parametrize("at", [1, 2])
def test_an_empty_one_is_deleted_everywhere(lab, at):
    project = lab.project(f"empty {at}")
    assert delete(project, at).status == 204
    wait_gone(project)
    for number in (1, 2):
        assert f"empty {at}" not in local_projects(lab[number])
    assert project.make("late", at=1).status == 404


def test_nothing_is_made_in_what_was_just_deleted(lab):
    """Where its service has it no more, its agent does not say that it has not heard of it yet."""
    for number in range(20):
        project = lab.project(f"short-lived {number}")
        assert delete(project, 2).status == 204
        wait_for(lambda project=project: ask(f"{lab[1].front}/projects/{project.id}").status in (404, 410), "it to be gone")
        late = project.make("late", at=1)
        assert late.status == 404, late


def test_what_is_in_it_is_said(lab):
    project = lab.project("full")
    here, there = project.make("here", at=1).json["id"], project.make("there", at=2).json["id"]
    for meta_id in (here, there):
        wait_known(project, meta_id)
    for at in (1, 2):
        answer = delete(project, at)
        assert (answer.status, answer.problem["type"]) == (409, "container-not-empty"), answer
        assert "cheops-contents" in answer.problem["detail"]
        shown = {each["id"]: (each["type"], each["name"], each["sites"]) for each in answer.problem["contents"]}
        assert shown == {here: ("compute.volume", "here", ["Site1"]), there: ("compute.volume", "there", ["Site2"])}
        assert answer.problem["contents_more"] is False
    assert project.names(1) == ["here", "there"]
    for meta_id in (here, there):
        assert project.ask(1, meta_id, "DELETE").status == 204
    wait_for(lambda: delete(project, 2).status == 204, "it to be empty")
    wait_gone(project)


@pytest.mark.parametrize("at", [1, 2])
def test_all_of_it_is_deleted(lab, at):
    project = lab.project(f"all {at}")
    made = [project.make(f"n{number}", at=1 + number % 2).json["id"] for number in range(6)]
    both = project.make("both", at=1, scope="Site1 & Site2", headers={"Prefer": "wait=30"})
    made.append(both.json["id"])
    for meta_id in made:
        wait_known(project, meta_id)
    answer = delete(project, at, Prefer="cheops-contents")
    assert answer.status == 204, answer
    contents = answer.header("Cheops-Contents")
    assert contents.startswith("deleted=7;") and all(meta_id in contents for meta_id in made), contents
    wait_gone(project)
    for number in (1, 2):
        assert f"all {at}" not in local_projects(lab[number])
        assert [each for each in ask(f"{lab[number].own}/volumes?project=").json["volumes"] if each["name"] in
                ("both", "n1")] == []
    again = lab.project(f"all {at}")
    assert again.make("n1", at=2).status == 201, "nothing is left of its names"


def test_a_site_with_a_child_is_away(lab):
    project = lab.project("away")
    there = project.make("there", at=2).json["id"]
    here = project.make("here", at=1).json["id"]
    wait_known(project, there)
    lab[2].kill()
    try:
        answer = delete(project, 1, Prefer="cheops-contents")
        assert (answer.status, answer.problem["type"]) == (409, "container-not-empty"), answer
        assert there in answer.problem["detail"] and "Site2" in answer.problem["detail"]
        assert there in [each["id"] for each in answer.problem["contents"]]
        assert ask(f"{lab[1].front}/projects/{project.id}").status == 200
    finally:
        lab[2].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: delete(project, 1, Prefer="cheops-contents").status == 204, "all to be deleted")
    wait_gone(project)
    assert known_at(lab[1], here).json["state"] in ("deleted", "settled")


def is_deleted(site, meta_id):
    """Or not known there: then nothing is left of it either."""
    answer = known_at(site, meta_id)
    return answer.status in (404, 410) or answer.json["state"] == "deleted"


def test_a_child_goes_with_a_container_whose_service_took_it_along(lab):
    """Who deletes it has not heard of the child, and the application deletes what is in it: no replicant is left behind."""
    project = lab.project("cascade")
    lab[2].kill()
    late = project.make("late", at=1).json["id"]
    lab[1].kill()
    lab[2].start()
    try:
        answer = ask(f"{lab[2].front}/projects/{project.id}?cascade=true", "DELETE")
        assert answer.status == 204, answer
    finally:
        lab[1].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: "cascade" not in local_projects(lab[1]), "the project to be deleted at Site1")
    for number in (1, 2):
        wait_for(lambda number=number: is_deleted(lab[number], late), f"Site{number} to have nothing of the child")
