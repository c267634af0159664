"""Sites of a container that come and go: what is in it is known at all of them, its names are unique over all of them."""
import pytest
from container_lab import Lab, known_at, wait_known
from files_lab import ask, mesh_maker, wait_for


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("spread"), 4)
    yield made
    made.stop()


def members(site, meta_id):
    answer = known_at(site, meta_id)
    return {each["site"]: each["state"] for each in answer.json["members"]} if answer.status == 200 else {}


def grow(project, number, replicant, at=1):
    replicant("extend", project.id, f"Site{number}", "--wait", at=at)
    project.numbers.append(number)


def test_what_is_in_it_is_known_at_a_new_site(lab, replicant):
    project = lab.project("grows")
    first, second = (project.make(f"disk {at}", at=at).json["id"] for at in (1, 2))
    for child in (first, second):
        wait_known(project, child)
    grow(project, 3, replicant)
    for child in (first, second):
        wait_known(project, child)
        wait_for(lambda child=child: project.ask(3, child).status == 200, "Site3 to find it")
    assert project.names(3) == ["disk 1", "disk 2"]
    assert members(lab[3], second) == {"Site1": "witness", "Site2": "settled", "Site3": "witness"}
    # Names are unique there, too.
    wait_for(lambda: project.make("its own", at=3).status == 201, "Site3 to be granted names")
    assert project.make("disk 1", at=3).status == 409
    assert project.make("its own", at=2).status == 409
    assert project.names(1) == ["disk 1", "disk 2", "its own"]
    for number in (2, 3):
        wait_for(lambda number=number: project.names(number) == ["disk 1", "disk 2", "its own"], f"Site{number} to list all")
    assert "known at all sites" in replicant("drop", first, "Site3", status=1).err
    assert "cannot be moved" in replicant("move", first, "Site1", "Site2", status=1).err


def test_it_is_withdrawn_from_where_nothing_of_it_lies(lab, replicant):
    project = lab.project("shrinks", scope="Site1 % Site2 % Site3")
    stays, goes = project.make("stays", at=1).json["id"], project.make("goes", at=3).json["id"]
    for child in (stays, goes):
        wait_known(project, child)
    refused = replicant("drop", project.id, "Site3", status=1).err
    assert goes in refused and "Site3 holds" in refused and "delete" in refused
    assert project.ask(2, goes, "DELETE").status == 204
    wait_for(lambda: known_at(lab[1], goes).status == 404 or known_at(lab[1], goes).json["state"] == "deleted",
             "Site1 to know that it is deleted")
    replicant("drop", project.id, "Site3", "--wait")
    wait_for(lambda: set(members(lab[1], stays)) == {"Site1", "Site2"}, "Site3 to be withdrawn from its child")
    wait_for(lambda: ask(f"{lab[3].front}/projects/{project.id}").status in (404, 410), "Site3 to know nothing of it")
    assert [each for each in ask(f"{lab[3].own}/projects").json["projects"] if each["name"] == "shrinks"] == []
    wait_for(lambda: project.make("another", at=2).status == 201, "names to be granted")
    assert project.make("stays", at=2).status == 409


@pytest.mark.parametrize("victim", [1, 3], ids=["who extends it", "who is new"])
def test_an_agent_is_killed_while_it_grows(lab, replicant, victim):
    project = lab.project(f"killed {victim}")
    children = [project.make(f"disk {number}", at=1 + number % 2).json["id"] for number in range(6)]
    for child in children:
        wait_known(project, child)
    assert ask(f"{lab[1].api}/replicants/{project.id}/members/Site3", "PUT").status == 200
    lab[victim].restart()
    mesh_maker.wait_reachable(lab.sites)
    project.numbers.append(3)
    for child in children:
        wait_known(project, child)
    wait_for(lambda: project.make("new", at=3).status == 201, "Site3 to be granted names")
    assert project.make("disk 3", at=3).status == 409
    assert project.names(3) == sorted([f"disk {number}" for number in range(6)] + ["new"])


def is_made(answer):
    return answer if answer.status == 201 else None


def test_a_child_that_nobody_had_heard_of(lab, replicant):
    """It was made apart, when the container was extended elsewhere."""
    project = lab.project("apart", scope="Site1 % Site2")
    lab[1].pause()
    try:
        made = project.make("made apart", at=2, headers={"Prefer": "wait=0"})
    finally:
        lab[1].go_on()
    if made.status != 201:  # the prime did not answer in time, and what it was asked may still be on its way
        made = wait_for(lambda: is_made(project.make("made apart", at=2)), "the prime to grant the name")
    grow(project, 3, replicant)
    wait_known(project, made.json["id"])


def test_a_site_of_it_is_removed(lab, cheops):
    """The last one, as the mesh is smaller then."""
    project = lab.project("loses one", scope="Site4 % Site1 % Site2")
    child, lost = project.make("child", at=1).json["id"], project.make("lost", at=4).json["id"]
    copied = project.make("copied", at=4, scope="Site4 & Site1", headers={"Prefer": "wait=20"}).json["id"]
    for each in (child, lost, copied):
        wait_known(project, each)
    removed = cheops("site", "remove", "Site4", "--yes", "--api", lab[1].config["api"])
    assert removed.status == 0, removed
    project.numbers.remove(4)
    for number in project.numbers:
        wait_for(lambda number=number: set(members(lab[number], project.id)) == {"Site1", "Site2"}, "Site4 to be out of it")
        wait_for(lambda number=number: project.ask(number, lost).status == 410, "what lay there to be gone")
        assert project.ask(number, child).json["name"] == "child"
    wait_for(lambda: project.make("after", at=2).status == 201, "the next prime to grant names")
    assert project.make("child", at=2).status == 409
    # Who made it is gone; the one that holds it has its name, and changes it, whoever is asked.
    taken = project.make("copied", at=2)
    assert (taken.status, taken.problem["type"]) == (409, "name-taken"), taken
    assert project.ask(2, copied, "PATCH", json_body={"name": "renamed"}).status == 200
    taken = project.make("renamed", at=2)
    assert (taken.status, taken.problem["type"]) == (409, "name-taken"), taken
    wait_for(lambda: project.make("copied", at=2).status == 201, "the name that it had to be free")
