"""The prime of a container is withdrawn from it: another site keeps the names from then on, and none is given twice."""
import concurrent.futures
import itertools
import threading

import pytest
from container_lab import Lab, known_at, wait_known
from files_lab import ask, mesh_maker, wait_for

THREE = "Site1 % Site2 % Site3"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("primes"), 3)
    yield made
    made.stop()


def members(site, project):
    answer = known_at(site, project.id)
    shown = answer.json if answer.status == 200 else {}
    return {each["site"]: each for each in shown.get("members", [])} if shown.get("state") != "left" else {}


def is_gone(lab, project, number):
    """Neither the agent nor the service of that site has it, and the others know that."""
    own = ask(f"{lab[number].own}/projects").json["projects"]
    local = project.local[number]
    return (ask(f"{lab[number].front}/projects/{project.id}").status in (404, 410)
            and local not in [each["id"] for each in own]
            and all(f"Site{number}" not in members(site, project) for site in project.sites))


def begin(lab, name, scope=THREE):
    project = lab.project(name, scope)
    project.local = {number: next(each["id"] for each in ask(f"{lab[number].own}/projects").json["projects"]
                                  if each["name"] == name) for number in project.numbers}
    return project


def made(project, name, at):
    """Once names are granted again: a moment, while the next prime takes over."""
    def try_it():
        answer = project.make(name, at=at)
        assert answer.status in (201, 503), answer
        return answer if answer.status == 201 else None
    return wait_for(try_it, f"{name} to be made at Site{at}").json["id"]


def refused(project, name, at):
    answer = project.make(name, at=at)
    return (answer.status, answer.problem["type"]) == (409, "name-taken")


def all_names(project):
    return sorted(itertools.chain.from_iterable(project.local_names(number) for number in project.numbers))


def test_the_prime_is_withdrawn(lab, replicant):
    project = begin(lab, "handed over")
    held = project.make("held", at=1).json["id"]
    others = [project.make(f"disk {number}", at=number).json["id"] for number in (2, 3)]
    for child in (held, *others):
        wait_known(project, child)
    error = replicant("drop", project.id, "Site1", at=2, status=1).err
    assert held in error and "Site1 holds" in error and "delete" in error
    assert project.ask(3, held, "DELETE").status == 204
    wait_for(lambda: known_at(lab[2], held).json.get("state") in (None, "deleted"), "Site2 to know that it is deleted")
    replicant("drop", project.id, "Site1", "--wait", at=2)
    project.numbers.remove(1)
    wait_for(lambda: is_gone(lab, project, 1), "Site1 to have nothing of it")
    made(project, "held", at=3)
    for number in (2, 3):
        for name in ("disk 2", "disk 3", "held"):
            assert refused(project, name, number)
        wait_for(lambda number=number: project.names(number) == ["disk 2", "disk 3", "held"], "all to be listed")
    for child in others:
        wait_for(lambda child=child: set(each["site"] for each in known_at(lab[2], child).json["members"]) ==
                 {"Site2", "Site3"}, "Site1 to know nothing of what is in it")
        wait_for(lambda child=child: project.ask(1, child).status in (404, 410), "Site1 to find nothing")
    # And so on, up to the last one.
    for child in [each["id"] for each in project.list(2)]:
        assert project.ask(2, child, "DELETE").status == 204
    wait_for(lambda: project.names(3) == [], "all to be deleted")
    wait_for(lambda: ask(f"{lab[3].api}/replicants/{project.id}/members/Site2", "DELETE").status == 200,
             "Site3 to know that nothing is left there")
    project.numbers.remove(2)
    wait_for(lambda: is_gone(lab, project, 2), "Site2 to have nothing of it")
    alone = made(project, "alone", at=3)
    assert refused(project, "alone", 3)
    assert project.ask(3, alone, "DELETE").status == 204
    assert "last member" in replicant("drop", project.id, "Site3", at=3, status=1).err


def test_it_waits_for_a_site_that_is_away(lab, replicant):
    """Names are granted meanwhile, but for what would lie at the site that is to go."""
    project = begin(lab, "waits")
    project.make("first", at=2)
    lab[3].kill()
    try:
        replicant("drop", project.id, "Site1", at=1)
        wait_for(lambda: members(lab[2], project).get("Site1", {}).get("leaving"), "Site2 to know that Site1 leaves")
        assert project.make("second", at=2).status == 201
        assert refused(project, "first", 2)
        answer = project.make("third", at=1)
        assert (answer.status, answer.problem["type"]) == (409, "not-in-container"), answer
        assert "withdrawn from Site1" in answer.problem["detail"]
        answer = project.make("third", at=2, scope="Site1 & Site2")
        assert (answer.status, answer.problem["type"]) == (409, "not-in-container"), answer
        lab[1].restart()
        wait_for(lambda: members(lab[1], project).get("Site1", {}).get("leaving"), "Site1 to remember it")
        assert members(lab[1], project)["Site3"]["leaving"] is False
        assert known_at(lab[2], project.id).json["prime"] == "Site1", "it still keeps the names"
    finally:
        lab[3].start()
    mesh_maker.wait_reachable(lab.sites)
    project.numbers.remove(1)
    wait_for(lambda: is_gone(lab, project, 1), "Site1 to go once Site3 is back")
    made(project, "third", at=3)
    next_prime = {known_at(site, project.id).json["prime"] for site in project.sites}
    assert len(next_prime) == 1 and next_prime < {"Site2", "Site3"}, next_prime
    for name in ("first", "second", "third"):
        assert refused(project, name, 2) and refused(project, name, 3)
    assert all_names(project) == ["first", "second", "third"]


@pytest.mark.parametrize("victim", [1, 2, 3], ids=["who leaves", "who is next", "another one"])
def test_an_agent_is_killed_meanwhile(lab, replicant, victim):
    project = begin(lab, f"killed {victim}")
    for number in range(6):
        assert project.make(f"disk {number}", at=2 + number % 2).status == 201
    replicant("drop", project.id, "Site1", at=2 if victim == 3 else 3)
    lab[victim].restart()
    mesh_maker.wait_reachable(lab.sites)
    project.numbers.remove(1)
    wait_for(lambda: is_gone(lab, project, 1), "Site1 to be out of it")
    made(project, "new", at=3)
    for number in range(6):
        assert refused(project, f"disk {number}", 3 - number % 2)
    assert all_names(project) == sorted([f"disk {number}" for number in range(6)] + ["new"])


@pytest.mark.parametrize("kills", [False, True], ids=["calm", "the next prime is killed"])
def test_children_are_made_all_the_while(lab, replicant, kills):
    """At the sites that stay, each name at both of them at once: never are two told that it is theirs."""
    project = begin(lab, f"busy {kills}")
    done = threading.Event()

    def work(at):
        taken = {}
        for number in itertools.count():
            if done.is_set():
                return taken
            try:
                answer = project.make(f"disk {number}", at=at)
            except OSError:  # its agent is down
                continue
            if answer.status == 201:
                taken[f"disk {number}"] = answer.json["id"]
            assert answer.status in (201, 409, 502, 503, 504), answer

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work, at) for at in (2, 2, 3, 3)]
        try:
            wait_for(lambda: "disk 20" in project.local_names(2) + project.local_names(3), "some to be made")
            replicant("drop", project.id, "Site1", at=3)
            if kills:
                lab[2].restart()
                mesh_maker.wait_reachable(lab.sites)
            project.numbers.remove(1)
            wait_for(lambda: is_gone(lab, project, 1), "Site1 to be out of it")
            before = len(all_names(project))
            wait_for(lambda: len(all_names(project)) > before + 10, "more to be made")
        finally:
            done.set()
        acknowledged = [worker.result() for worker in workers]
    told = [name for each in acknowledged for name in each]
    assert len(told) == len(set(told)), "no name was given to two"
    names = all_names(project)
    assert len(names) == len(set(names)), "nor is any there twice"
    assert set(told) <= set(names), "what was acknowledged is there"


def test_it_is_moved_away(lab, replicant):
    """To a site that had nothing of it, from the prime, which holds nothing that is in it."""
    project = begin(lab, "moves", "Site1 % Site2")
    child = project.make("stays", at=2).json["id"]
    wait_known(project, child)
    replicant("move", project.id, "Site1", "Site3")
    project.numbers[0] = 3
    wait_for(lambda: is_gone(lab, project, 1), "Site1 to have nothing of it")
    wait_known(project, child)
    made(project, "new", at=3)
    assert refused(project, "stays", 3) and refused(project, "new", 2)
    for site in project.sites:
        wait_for(lambda site=site: known_at(site, project.id).json["prime"] == "Site2", "Site2 to keep the names")


def test_it_is_forced_out(lab, replicant):
    project = begin(lab, "forced")
    for number in (2, 3):
        assert project.make(f"disk {number}", at=number).status == 201
    lab[1].kill()
    try:
        replicant("drop", project.id, "Site1", "--force", at=2)
        project.numbers.remove(1)
        made(project, "after", at=3)
        for name in ("disk 2", "disk 3", "after"):
            assert refused(project, name, 2) and refused(project, name, 3)
    finally:
        lab[1].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: is_gone(lab, project, 1), "Site1 to hear of it, and to go")
    made(project, "later", at=2)
    assert refused(project, "after", 2)
    assert all_names(project) == ["after", "disk 2", "disk 3", "later"]
