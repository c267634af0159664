"""What several sites of a container hold is renamed at any of its sites: the one that made it claims the name."""
import concurrent.futures

import pytest
from container_lab import Lab, known_at, wait_known
from files_lab import ask, mesh_maker, wait_for

BOTH = "Site1 & Site2"


@pytest.fixture(name="lab", scope="module")
def make_lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("renames"))
    yield made
    made.stop()


@pytest.fixture(name="project")
def make_project(lab, request):
    return lab.project(request.node.name[5:50], "Site3 % Site1 % Site2")


def make_both(project, name):
    """Held by Site1, which makes it, and Site2; Site3 has the names."""
    made = project.make(name, at=1, scope=BOTH)
    assert made.status == 201, made
    wait_known(project, made.json["id"])
    wait_for(lambda: name in project.local_names(2), "Site2 to have it")
    return made.json["id"]


def rename(project, at, meta_id, name, **more):
    return project.ask(at, meta_id, "PATCH", json_body={"name": name}, **more)


def wait_named(project, name, among=None):
    for number in (1, 2):
        wait_for(lambda number=number: project.local_names(number) == (among or [name]), f"Site{number} to call it {name}")


def local_id(site, meta_id):
    members = known_at(site, meta_id).json["members"]
    return next(each["local_id"] for each in members if each["site"] == site.name)


def test_at_any_of_its_sites(lab, project):
    meta_id = make_both(project, "first")
    for number, name in ((2, "second"), (3, "third"), (1, "fourth")):
        answer = rename(project, number, meta_id, name)
        assert answer.status == 200, answer
        assert (answer.json["id"], answer.json["name"]) == (meta_id, name)
        wait_named(project, name)
    assert known_at(lab[1], meta_id).json["name_state"] == "own"
    # Whoever named it by the id that it has there, or with a scope, is understood as well.
    assert rename(project, 2, local_id(lab[2], meta_id), "fifth").status == 200
    wait_named(project, "fifth")
    answer = rename(project, 2, local_id(lab[2], meta_id), "sixth", headers={"Scope": BOTH})
    assert answer.status == 200, answer
    wait_named(project, "sixth")
    for name in ("first", "second", "third", "fourth", "fifth"):
        made = project.make(name, at=3)
        assert made.status == 201, "it is free again"
    taken = project.make("sixth", at=3)
    assert (taken.status, taken.problem["type"]) == (409, "name-taken")


def test_a_name_that_is_taken(project):
    meta_id = make_both(project, "mine")
    assert project.make("taken", at=3).status == 201
    for number in (1, 2, 3):
        answer = rename(project, number, meta_id, "taken")
        assert (answer.status, answer.problem["type"]) == (409, "name-taken"), answer
    assert rename(project, 2, meta_id, "mine").status == 200, "its own is no other's"
    wait_named(project, "mine")
    assert project.ask(2, meta_id, "PATCH", json_body={"size": 7}).status == 200, "that is no name: it is done here"
    for number in (1, 2):
        wait_for(lambda number=number: project.ask(number, meta_id).json["size"] == 7, "the change to be everywhere")


def test_without_the_site_that_made_it(lab, project):
    meta_id = make_both(project, "before")
    lab[1].kill()
    try:
        answer = wait_for(lambda: rename(project, 2, meta_id, "after"), "an answer")
        assert answer.status in (502, 504), answer
        assert "Site1" in answer.header("Proxy-Status") or "Site1" in str(answer.json), answer
        assert project.ask(2, meta_id, "PATCH", json_body={"size": 3}).status == 200, "all else can be changed"
    finally:
        lab[1].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: rename(project, 2, meta_id, "after").status == 200, "Site1 to rename it")
    wait_named(project, "after")
    assert project.make("before", at=3).status == 201


def test_at_several_sites_at_once(project):
    """Each to a name of its own, and all to the same: whatever comes of it, one name is one child's, and all copies agree."""
    children = [make_both(project, f"disk {number}") for number in range(3)]
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(rename, project, at, child, name)
                 for name in ("red", "blue") for child in children for at in (1, 2, 3)]
        answers = [each.result() for each in asked]
    assert {answer.status for answer in answers} <= {200, 409, 503}, answers
    assert any(answer.status == 200 for answer in answers)
    wait_for(lambda: project.local_names(1) == project.local_names(2), "both to agree")
    names = project.local_names(1)
    assert len(names) == len(set(names)) == 3, names
    for name in ("red", "blue", "disk 0", "disk 1", "disk 2"):
        def is_right(name=name):
            answer = project.make(name, at=3)
            return answer.status == (409 if name in project.local_names(1) else 201)
        wait_for(is_right, f"{name} to be free, or taken")


def test_its_maker_is_killed_meanwhile(lab, project):
    """A user who gets no answer asks again."""
    meta_id = make_both(project, "start")
    for turn in range(3):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(lambda turn=turn: rename(project, 2, meta_id, f"turn {turn}"))
            lab[1].restart()
            asked.result()
        mesh_maker.wait_reachable(lab.sites)
        wait_for(lambda turn=turn: rename(project, 2, meta_id, f"turn {turn}").status == 200, "it to be renamed")
        wait_named(project, f"turn {turn}")
    for name in ("start", "turn 0", "turn 1"):
        wait_for(lambda name=name: project.make(name, at=3).status == 201, f"{name} to be free")
    assert project.make("turn 2", at=3).status == 409
    assert ask(f"{lab[1].api}/operations?state=rejected").json["operations"] == []
