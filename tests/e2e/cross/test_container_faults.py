"""Names of what is in a container, while agents are killed, stopped, and cut off."""
import concurrent.futures
import http.client
import random
import threading

import pytest
from container_lab import SAMPLE, Lab, known_at, wait_known
from files_lab import ask, mesh_maker, wait_for


@pytest.fixture(name="lab", scope="module")
def make_lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("faults"))
    yield made
    made.stop()


@pytest.fixture(name="optimistic", scope="module")
def make_optimistic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimistic")
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    cross: container\n", "    cross: {as: container, names: optimistic}\n")
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = Lab(folder, application=str(folder / "app.yaml"))
    yield made
    made.stop()


def all_names(project):
    """Of all services, without the agents."""
    return sorted(name for number in project.numbers for name in project.local_names(number))


def test_without_the_prime_a_name_is_refused(lab):
    project = lab.project("strict")
    before = project.make("before", at=2).json["id"]
    lab[1].pause()
    try:
        answer = project.make("during", at=2)
        assert (answer.status, answer.problem["type"]) == (503, "name-unchecked"), answer
        assert "Site1" in answer.problem["detail"]
        assert project.make("before", at=2).problem["type"] == "name-taken", "that is known without the prime"
        assert project.ask(2, before, "PATCH", json_body={"size": 4}).status == 200, "what has its name goes on"
        partial = ask(lab[2].front + project.path())
        assert partial.status == 200 and "Site1" in partial.header("Cheops-Partial"), partial
        assert [each["name"] for each in partial.json["volumes"]] == ["before"]
    finally:
        lab[1].go_on()
    mesh_maker.wait_reachable(lab.sites)
    assert project.local_names(2) == ["before"], "nothing was done"
    wait_for(lambda: project.make("during", at=2).status == 201, "the prime to answer again")
    assert project.make("during", at=1).status == 409


def test_without_the_prime_a_name_may_be_accepted_and_is_settled(optimistic):
    lab = optimistic
    project = lab.project("hopeful", "Site1 % Site2 % Site3")
    lab[1].kill()
    try:
        second = project.make("same", at=2)
        third = project.make("same", at=3)
        alone = project.make("alone", at=3)
        assert (second.status, third.status, alone.status) == (201, 201, 201), (second, third, alone)
        for answer in (second, third, alone):
            assert answer.header("Cheops-Name") == 'unchecked; prime="Site1"', answer
        assert known_at(lab[2], second.json["id"]).json["name_state"] == "unchecked"
        assert project.make("same", at=2).status == 409, "here it is known to be taken"
    finally:
        lab[1].start()
    mesh_maker.wait_reachable(lab.sites)
    states = {2: second.json["id"], 3: third.json["id"]}

    def settled():
        return sorted(known_at(lab[number], meta_id).json["name_state"] for number, meta_id in states.items())

    wait_for(lambda: settled() == ["lost", "own"], "the prime to decide")
    assert known_at(lab[2], second.json["id"]).json["name_state"] == "own", "the earlier keeps it"
    shown = known_at(lab[3], third.json["id"]).json
    assert shown["name_holder"] == {"id": second.json["id"], "site": "Site2"}, shown
    wait_for(lambda: known_at(lab[3], alone.json["id"]).json["name_state"] == "own", "the other one to be settled")
    assert lab[3].metric("cheops_names_lost_total") >= 1
    assert lab[3].metric("cheops_names_unchecked_total") >= 2
    # Nothing was deleted. Who lost its name gets another one.
    assert [each["name"] for each in project.list(1)].count("same") == 2
    renamed = project.ask(3, third.json["id"], "PATCH", json_body={"name": "other"})
    assert renamed.status == 200, renamed
    wait_for(lambda: known_at(lab[3], third.json["id"]).json["name_state"] == "own", "it to have a name of its own")
    assert project.make("same", at=1).status == 409
    assert project.make("other", at=1).status == 409


def test_a_lost_name_is_told_of(optimistic):
    lab = optimistic
    project = lab.project("told", "Site1 % Site2 % Site3")
    told = Feed(lab[3])
    lab[1].kill()
    try:
        first = project.make("same", at=2).json["id"]
        later = project.make("same", at=3).json["id"]
    finally:
        lab[1].start()
    event = told.wait("name-lost", later)
    assert f'"holder":"{first}"' in event and '"site":"Site2"' in event, event
    told.close()


class Feed:
    """What /changes of a site tells, from now on."""

    def __init__(self, site):
        self.connection = http.client.HTTPConnection(site.config["api"], timeout=90)
        self.connection.request("GET", "/cheops/v1/changes")
        self.answer = self.connection.getresponse()
        while not self.answer.readline().startswith(b"id:"):
            pass

    def wait(self, kind, meta_id):
        for _ in range(1000):
            if self.answer.readline().decode().strip() == f"event: {kind}":
                data = self.answer.readline().decode()
                if meta_id in data:
                    return data
        raise AssertionError(f"no {kind} of {meta_id}")

    def close(self):
        self.connection.close()


def quietly(make):
    """The status, or None if the agent was killed meanwhile."""
    try:
        return make().status
    except (OSError, http.client.HTTPException):
        return None


@pytest.mark.parametrize("victim", [1, 2], ids=["the prime", "a maker"])
def test_kills_in_the_middle(lab, victim):
    """While three sites make children of the same few names, one of them is killed again and again. No name is there twice, none
    that was acknowledged is missing, and none stays taken by nobody."""
    project = lab.project(f"killed {victim}", "Site1 % Site2 % Site3")
    luck, over = random.Random(victim), threading.Event()
    names = [f"n{i}" for i in range(60)]
    made = {}

    def maker(at):
        for name in names:
            if quietly(lambda name=name: project.make(name, at=at)) == 201:
                assert made.setdefault(name, at) == at, f"{name} was acknowledged twice"

    def killer():
        while not over.wait(luck.uniform(0.05, 0.4)):
            lab[victim].restart()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        kills = pool.submit(killer)
        for done in [pool.submit(maker, at) for at in (1, 2, 3)]:
            done.result()
        over.set()
        kills.result()
    mesh_maker.wait_reachable(lab.sites)
    there = all_names(project)
    assert len(there) == len(set(there)), there
    assert set(made) <= set(there), set(made) - set(there)

    for name in names:
        if name not in there:
            wait_for(lambda name=name: project.make(name, at=2).status in (201, 409) and name in all_names(project),
                     f"{name} to be free, or there")
    there = all_names(project)
    assert there == sorted(names), there
    for number in (1, 2, 3):
        assert project.names(number) == sorted(names)


def test_a_maker_that_is_gone_keeps_its_names(lab):
    project = lab.project("kept", "Site1 % Site2 % Site3")
    made = project.make("mine", at=3).json["id"]
    wait_known(project, made)
    lab[3].kill()
    try:
        answer = project.make("mine", at=2)
        assert (answer.status, answer.problem["type"]) == (409, "name-taken"), answer
        assert "Site3" in answer.problem["detail"]
        assert project.make("another", at=2).status == 201
    finally:
        lab[3].start()
    mesh_maker.wait_reachable(lab.sites)
    assert project.ask(1, made).json["name"] == "mine"
    assert project.ask(1, made, "DELETE").status == 204
    wait_for(lambda: project.make("mine", at=2).status == 201, "the name to be free")


def test_all_start_again(lab):
    project = lab.project("again", "Site1 % Site2 % Site3")
    ids = [project.make(f"at {number}", at=number).json["id"] for number in (1, 2, 3)]
    for meta_id in ids:
        wait_known(project, meta_id)
    for site in lab.sites:
        site.restart()
    mesh_maker.wait_reachable(lab.sites)
    for number in (1, 2, 3):
        wait_for(lambda number=number: ask(lab[number].front + project.path()).header("Cheops-Partial") is None,
                 "all to answer")
        assert project.names(number) == ["at 1", "at 2", "at 3"]
        for name in ("at 1", "at 2", "at 3"):
            assert project.make(name, at=number).status == 409, (number, name)


def test_the_prime_is_removed_from_the_mesh(tmp_path_factory, cheops):
    """The next site is prime, and grants names; those that there are stay taken, but for what went with the site."""
    lab = Lab(tmp_path_factory.mktemp("removed"))
    try:
        project = lab.project("left alone", "Site3 % Site1 % Site2")
        gone, kept = project.make("gone", at=3).json["id"], project.make("kept", at=1).json["id"]
        for meta_id in (gone, kept):
            wait_known(project, meta_id)
        lab[3].kill()
        removed = cheops("site", "remove", "Site3", "--yes", "--api", lab[1].config["api"])
        assert removed.status == 0, removed
        wait_for(lambda: project.make("new", at=2).status == 201, "a name to be granted")
        assert project.make("new", at=1).problem["type"] == "name-taken"
        assert project.make("kept", at=2).problem["type"] == "name-taken"
        wait_for(lambda: project.make("gone", at=2).status == 201, "the name of what is gone to be free")
        for number in (1, 2):
            wait_for(lambda number=number: ask(lab[number].front + project.path()).header("Cheops-Partial") is None,
                     f"Site{number} to know that Site3 is gone")
            assert project.names(number) == ["gone", "kept", "new"]
    finally:
        lab.stop()
