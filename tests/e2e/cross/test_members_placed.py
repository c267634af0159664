"""Sites of an indivisible resource that come and go: more of them know of it, it moves from one to another; and agents are killed meanwhile."""
import pytest
from files_lab import CHEOPS, Lab, ask, content, digest, download, mesh_maker, upload, wait_for
from test_indivisible import SAMPLE, known_at, make, members, names, wait_known

SIZE = 300_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Four sites where images are indivisible."""
    folder = tmp_path_factory.mktemp("members")
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    item: /images/{id}\n", "    item: /images/{id}\n    cross: indivisible\n")
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = Lab(folder, 4, application=str(folder / "app.yaml"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def replicant(cheops, lab):
    def run_it(*arguments, at=1, status=0):
        result = cheops("replicant", *arguments, "--api", lab[at].config["api"])
        assert result.status == status, result
        return result
    return run_it


def held_by(lab, name):
    return [site.name for site in lab.sites if name in names(site)]


def prime(site, meta_id):
    answer = known_at(site, meta_id)
    return answer.json["prime"] if answer.status == 200 else None


def answers(site):
    try:
        return ask(f"{site.own}/images").status == 200
    except OSError:
        return False


def place(lab, name, scope="Site1 % Site2", at=1):
    meta_id = make(lab, name, at=at, scope=scope).json["id"]
    wait_known(lab, meta_id, [int(site[-1]) for site in scope.split(" % ")])
    return meta_id


def test_a_further_site_knows_of_it_and_knows_nothing_again(lab, replicant):
    meta_id = place(lab, "known further")
    assert ask(f"{lab[3].front}/images/{meta_id}").status == 404
    shown = replicant("extend", meta_id, "Site3", "--wait", "-o", "json").json
    assert {each["site"]: each["state"] for each in shown["members"]} == {
        "Site1": "settled", "Site2": "witness", "Site3": "witness"}
    wait_for(lambda: ask(f"{lab[3].front}/images/{meta_id}").status == 200, "Site3 to know of it")
    assert ask(f"{lab[3].front}/images/{meta_id}", "PATCH", json_body={"name": "changed there"}).status == 200
    assert held_by(lab, "changed there") == ["Site1"]
    wait_for(lambda: known_at(lab[1], meta_id).json["operations"] == 0, "what all have heard to be forgotten")
    replicant("drop", meta_id, "Site3", "--wait", at=2)
    wait_for(lambda: ask(f"{lab[3].front}/images/{meta_id}").status in (404, 410), "Site3 to know nothing of it")
    wait_for(lambda: set(members(lab[1], meta_id)) == {"Site1", "Site2"}, "Site1 to know that")
    assert ask(f"{lab[2].front}/images/{meta_id}").json["name"] == "changed there"


@pytest.mark.parametrize("target", ["Site2", "Site3"], ids=["a witness", "a new site"])
def test_it_moves_with_its_file(lab, replicant, target):
    name = f"moves to {target}"
    meta_id = place(lab, name)
    assert upload(f"{lab[2].front}/images/{meta_id}/file", SIZE, 3).status == 200
    replicant("move", meta_id, "Site1", target)
    to = lab[int(target[-1])]
    wait_for(lambda: held_by(lab, name) == [target], "it to be at the new site alone")
    wait_for(lambda: prime(lab[2], meta_id) == target, "Site2 to know its prime")
    for site in (lab[2], to):
        wait_for(lambda site=site: ask(f"{site.front}/images/{meta_id}").status == 200, f"{site.name} to find it")
        assert download(f"{site.front}/images/{meta_id}/file") == (200, digest(content(SIZE, 3))), site.name
    assert ask(f"{to.front}/images/{meta_id}", "PATCH", json_body={"name": name + ", changed"}).status == 200
    assert ask(f"{lab[2].front}/images/{meta_id}").json["name"] == name + ", changed"
    assert ask(f"{lab[1].front}/images/{meta_id}").status in (404, 410)
    lab.wait_no_blobs()
    assert ask(f"{lab[2].front}/images/{meta_id}", "DELETE").status == 204
    assert held_by(lab, name + ", changed") == []


def test_it_is_changed_while_it_moves(lab, replicant):
    """Whoever is asked meanwhile, what was acknowledged is there in the end."""
    meta_id = place(lab, "busy", scope="Site1 % Site2 % Site3")
    lab[3].pause()
    try:
        answer = ask(f"http://{lab[1].config['api']}/cheops/v1/replicants/{meta_id}/members/Site3?hold=true", "PUT")
        assert answer.status == 200, answer.bytes
        assert ask(f"http://{lab[1].config['api']}/cheops/v1/replicants/{meta_id}/members/Site1", "DELETE").status == 200
        # Nobody else has it yet: the old prime goes on.
        assert ask(f"{lab[1].front}/images/{meta_id}", "PATCH", json_body={"name": "still here"}).status == 200
        assert ask(f"{lab[2].front}/images/{meta_id}", "PATCH", json_body={"name": "from elsewhere"}).status == 200
    finally:
        lab[3].go_on()
    wait_for(lambda: held_by(lab, "from elsewhere") == ["Site3"], "it to have moved with all changes")
    assert held_by(lab, "still here") == []
    wait_for(lambda: ask(f"{lab[2].front}/images/{meta_id}").status == 200, "Site2 to ask the new prime")


def test_what_is_refused_says_what_would_be_right(lab, replicant):
    meta_id = place(lab, "stays")
    assert "move it to another one, or delete" in replicant("drop", meta_id, "Site1", status=1).err
    assert "`Site1`" in replicant("extend", meta_id, "Site3", at=2, status=1).err
    assert "move it" in replicant("extend", meta_id, "Site2", status=1).err
    replicant("drop", meta_id, "Site2", "--wait")
    assert "was a member before" in replicant("move", meta_id, "Site1", "Site2", status=1).err
    answer = ask(f"http://{lab[1].config['api']}/cheops/v1/replicants/{meta_id}/members/Site3?hold=perhaps", "PUT")
    assert answer.status == 422 and "`hold`" in answer.json["detail"]
    assert held_by(lab, "stays") == ["Site1"]


@pytest.mark.parametrize("victim", [1, 2], ids=["who gives it", "who gets it"])
def test_an_agent_is_killed_while_it_moves(lab, victim):
    name = f"survives {victim}"
    meta_id = place(lab, name)
    assert upload(f"{lab[1].front}/images/{meta_id}/file", SIZE, victim).status == 200
    api = f"http://{lab[1].config['api']}/cheops/v1/replicants/{meta_id}/members"
    assert ask(f"{api}/Site2?hold=true", "PUT").status == 200
    lab[victim].kill()
    lab[victim].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: members(lab[1], meta_id).get("Site2") == "settled", "Site2 to have it")
    assert ask(f"{api}/Site1", "DELETE").status == 200
    lab[victim].kill()
    lab[victim].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: held_by(lab, name) == ["Site2"], "it to be at Site2 alone")
    wait_for(lambda: ask(f"{lab[2].front}/images/{meta_id}").status == 200, "Site2 to answer")
    assert download(f"{lab[2].front}/images/{meta_id}/file") == (200, digest(content(SIZE, victim)))


def test_its_service_does_not_take_it(lab, replicant):
    """Nothing has changed then, and the site can be given up."""
    meta_id = place(lab, "unwanted")
    lab[3].service.terminate()
    lab[3].service.wait(30)
    try:
        api = f"http://{lab[1].config['api']}/cheops/v1/replicants/{meta_id}/members"
        assert ask(f"{api}/Site3?hold=true", "PUT").status == 200
        assert ask(f"{api}/Site1", "DELETE").status == 200
        assert ask(f"{lab[2].front}/images/{meta_id}", "PATCH", json_body={"name": "used on"}).status == 200
        replicant("drop", meta_id, "Site3", "--wait")
    finally:
        base = int(lab[3].own.rsplit(":", 1)[1])
        lab[3].service = lab[3]._run("service", CHEOPS.parent / "cheops-sample", "image", "--listen", f"127.0.0.1:{base}",
                                     "--data", lab[3].folder / "image")
    wait_for(lambda: answers(lab[3]), "the service to be there again")
    wait_for(lambda: ask(f"{lab[1].front}/images/{meta_id}").json.get("name") == "used on", "it to be where it was")
    assert held_by(lab, "used on") == ["Site1"]


def test_its_site_is_removed(lab, cheops, replicant):
    """The last one, as the mesh is smaller then."""
    lost = place(lab, "lost", scope="Site4 % Site1")
    moved = place(lab, "moved in time", scope="Site4 % Site1")
    replicant("move", moved, "Site4", "Site1", at=4)
    wait_for(lambda: held_by(lab, "moved in time") == ["Site1"], "it to have moved")
    removed = cheops("site", "remove", "Site4", "--yes", "--api", lab[1].config["api"])
    assert removed.status == 0, removed
    wait_for(lambda: ask(f"{lab[1].front}/images/{lost}").status == 410, "Site1 to know that it is gone")
    assert ask(f"{lab[1].front}/images/{lost}").json["type"].endswith("site-removed")
    assert ask(f"{lab[1].front}/images/{moved}").json["name"] == "moved in time"
