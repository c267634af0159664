"""`%` on a container: it is at all of its sites; what is made in it is one set, in which names are unique."""
import concurrent.futures

import pytest
from container_lab import Lab, known_at, wait_known
from files_lab import ask, wait_for


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("container"))
    yield made
    made.stop()


def test_it_is_at_each_of_its_sites(lab):
    project = lab.project("everywhere", "Site2 % Site1", at=3)
    shown = known_at(lab[1], project.id).json
    assert (shown["span"], shown["prime"]) == ("container", "Site2")
    for number in (1, 2):
        assert "everywhere" in [each["name"] for each in ask(f"{lab[number].own}/projects").json["projects"]]
    assert "everywhere" not in [each["name"] for each in ask(f"{lab[3].own}/projects").json["projects"]]
    assert ask(f"{lab[1].front}/projects/{project.id}", "PATCH", json_body={"note": "changed"}).status == 200
    wait_for(lambda: ask(f"{lab[2].front}/projects/{project.id}").json.get("note") == "changed", "Site2 to have the change")


def test_what_is_made_in_it_is_one_set(lab):
    """Made at two sites, it lies there, and is listed once at each; read, changed and deleted from any of them."""
    project = lab.project("union")
    first, second = project.make("a", at=1), project.make("b", at=2)
    assert (first.status, second.status) == (201, 201), (first, second)
    for meta_id in (first.json["id"], second.json["id"]):
        wait_known(project, meta_id)
    assert (project.local_names(1), project.local_names(2)) == (["a"], ["b"])
    for number in (1, 2):
        assert project.names(number) == ["a", "b"]
        assert {each["id"] for each in project.list(number)} == {first.json["id"], second.json["id"]}
    assert project.ask(1, second.json["id"]).json["name"] == "b"
    assert project.ask(2, first.json["id"], "PATCH", json_body={"size": 7}).json["size"] == 7
    assert project.ask(1, first.json["id"]).json["size"] == 7
    assert project.ask(2, first.json["id"], "DELETE").status == 204
    wait_for(lambda: project.names(1) == project.names(2) == ["b"], "both to list one")


def test_a_child_is_made_where_its_scope_says(lab):
    project = lab.project("placed")
    assert project.make("there", at=1, scope="Site2").status == 201
    assert project.make("from outside", at=3, scope="Site2").status == 201
    assert project.make("chosen", at=1, scope="Site2; Site1").status == 201
    assert project.make("first", at=2, scope="Site2; Site1").status == 201
    assert project.make("either", at=1, scope="Site1 | Site2").status == 201
    assert project.make("spanning", at=1, scope="Site2 % Site1").status == 201
    assert {"there", "from outside", "chosen", "first", "spanning"} <= set(project.local_names(2))
    assert project.names(1) == project.names(2) == sorted(["there", "from outside", "chosen", "first", "either",
                                                           "spanning"])


@pytest.mark.parametrize("scope", ["Site3", "Site1 & Site3", "Site3 % Site1", "Site3; Site3"])
def test_a_site_that_is_none_of_its_is_refused(lab, scope):
    project = lab.project(f"not there {scope}".replace("%", "over").replace("&", "and").replace(";", "or"))
    answer = project.make("no", at=1, scope=scope)
    assert (answer.status, answer.problem["type"]) == (409, "not-in-container"), answer
    assert "Site1, Site2" in answer.problem["detail"] or "Site2, Site1" in answer.problem["detail"], answer
    assert project.names(1) == []


def test_a_name_is_taken_everywhere(lab):
    project = lab.project("unique")
    made = project.make("yellow", at=1)
    assert made.status == 201
    for number in (1, 2):
        again = project.make("yellow", at=number)
        assert (again.status, again.problem["type"]) == (409, "name-taken"), again
        assert "Site1" in again.problem["detail"] and made.json["id"] in again.problem["detail"], again
    assert project.names(2) == ["yellow"]
    assert project.make("yellow", at=2, kind="stacks", image=image(lab, 2), servers=1).status == 201, "of another type"
    assert lab.project("unique too").make("yellow", at=2).status == 201, "in another container"


def image(lab, at):
    return ask(f"{lab[at].image}/images", "POST", json_body={"name": "debian"}).json["id"]


def test_a_name_is_free_again(lab):
    """As soon as who deletes it is answered, whoever asks next, and wherever."""
    project = lab.project("freed", "Site1 % Site2 % Site3")
    for turn in range(6):
        made = project.make("short", at=1 + turn % 3)
        assert made.status == 201, (turn, made)
        wait_known(project, made.json["id"])
        assert project.ask(1 + (turn + 2) % 3, made.json["id"], "DELETE").status == 204


def test_what_the_service_refuses_has_no_name(lab):
    project = lab.project("refused")
    assert project.make("bad", at=2, size=-1).status == 400
    wait_for(lambda: project.make("bad", at=1).status == 201, "the name to be free")


def test_a_rename_claims_the_new_name(lab):
    project = lab.project("renamed")
    one, two = project.make("one", at=1).json["id"], project.make("two", at=2).json["id"]
    wait_known(project, one)
    wait_known(project, two)
    refused = project.ask(2, one, "PATCH", json_body={"name": "two"})
    assert (refused.status, refused.problem["type"]) == (409, "name-taken"), refused
    assert project.ask(2, one, "PATCH", json_body={"name": "three"}).json["name"] == "three"
    assert project.make("one", at=2).status == 201, "the old name is free"
    assert project.make("three", at=2).status == 409
    assert project.names(1) == ["one", "three", "two"]


def test_a_name_has_an_end(lab):
    """200 bytes, of a new child, a renamed one, and of copies with a name."""
    project = lab.project("lengths")
    longest = "n" * 199 + "x"
    child = project.make(longest, at=2)
    assert child.status == 201, child
    assert project.make(longest, at=1).status == 409
    wait_known(project, child.json["id"])
    too_long = (longest + "x", "\u00e9" * 101, "n" * 2000, "n" * 5000)
    answers = [project.make(name, at=at) for name in too_long for at in (1, 2)]
    answers += [project.ask(at, child.json["id"], "PATCH", json_body={"name": name}) for name in too_long for at in (1, 2)]
    answers += [ask(f"{lab[1].front}/projects", "POST", {"Scope": scope}, json_body={"name": name})
                for name in too_long for scope in ("Site1 % Site2", "Site1 & Site2")]
    for answer in answers:
        assert (answer.status, answer.problem["type"]) == (400, "name-too-long"), answer
        assert "at most 200" in answer.problem["detail"]
    assert project.names(1) == [longest]


def test_copies_are_one_child(lab):
    """What is replicated within a container is one child with one name: listed once, changed at each."""
    project = lab.project("copies")
    made = project.make("twice", at=1, scope="Site1 & Site2", headers={"Prefer": "wait=30"})
    assert made.status == 201, made
    meta_id = made.json["id"]
    assert project.local_names(1) == project.local_names(2) == ["twice"]
    for number in (1, 2):
        assert [(each["id"], each["name"]) for each in project.list(number)] == [(meta_id, "twice")]
        assert project.make("twice", at=number).status == 409
    assert project.ask(2, meta_id, "PATCH", json_body={"size": 5}).status == 200
    wait_for(lambda: project.ask(1, meta_id).json["size"] == 5, "Site1 to have the change")
    assert project.ask(2, meta_id, "PATCH", json_body={"name": "other"}).status == 200
    wait_for(lambda: project.local_names(2) == ["other"], "Site2 to have the name")
    assert project.ask(2, meta_id, "DELETE").status == 204
    wait_for(lambda: project.local_names(1) == [], "Site1 to have deleted it")
    wait_for(lambda: project.make("other", at=2).status == 201, "the name to be free")


def test_actions_and_parts(lab):
    project = lab.project("actions")
    server = project.make("vm", at=1, scope="Site2", kind="servers", image=image(lab, 2)).json["id"]
    wait_known(project, server)
    answer = ask(lab[1].front + project.path("servers", server) + "/action", "POST", json_body={"stop": None})
    assert answer.status == 202, answer
    assert project.ask(1, server, kind="servers").json["status"] == "SHUTOFF"
    assert project.names(1, "servers") == ["vm"]


def test_at_the_same_moment_one_gets_the_name(lab):
    project = lab.project("racing", "Site1 % Site2 % Site3")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for turn in range(15):
            name = f"turn {turn}"
            answers = list(pool.map(lambda at, name=name: project.make(name, at=at), [1, 2, 3, 3, 2, 1]))
            statuses = sorted(answer.status for answer in answers)
            assert statuses == [201] + [409] * 5, (name, answers)
    expected = sorted(f"turn {turn}" for turn in range(15))
    for number in (1, 2, 3):
        assert project.names(number) == expected


def test_the_same_request_again_is_not_refused(lab):
    """An Idempotency-Key that was met before: the name is its own child's."""
    project = lab.project("again and again")
    key = {"Idempotency-Key": "make the child once"}
    first, second = (project.make("once", at=2, headers=key) for _ in range(2))
    assert (first.status, second.status) == (201, 201), (first, second)
    assert first.header("Cheops-Operation") == second.header("Cheops-Operation")
    assert project.names(1) == ["once"]


def test_a_child_may_be_answered_early(lab):
    project = lab.project("early")
    answer = project.make("soon", at=2, headers={"Prefer": "respond-async"})
    assert answer.status in (201, 202), answer
    wait_for(lambda: project.names(1) == ["soon"], "it to be made")
    assert project.make("soon", at=1, headers={"Prefer": "respond-async"}).status == 409
    refused = project.make("never", at=2, headers={"Prefer": "respond-async"}, size=-1)
    assert refused.status in (202, 400), refused
    wait_for(lambda: project.make("never", at=1).status == 201, "its name to be free")
