"""Sites that come and go while a resource is there: extend, drop, move; through the API and with `cheops replicant`."""
import pytest

from demo_process import ask, wait_for
from test_get_and_ops import address
from test_operations import Paused
from test_replication import front, get, make, service, wait_everywhere


@pytest.fixture(scope="module")
def replicant(cheops, demo):
    def run_it(*arguments, at="Site1", status=0):
        result = cheops("replicant", *arguments, "--api", address(demo, at))
        assert result.status == status, result
        return result
    return run_it


def members(demo, meta_id, at="Site1"):
    answer = ask(f"http://{address(demo, at)}/cheops/v1/replicants/{meta_id}")
    return {each["site"]: each for each in answer.json.get("members", [])} if answer.status == 200 else None


def behind(demo, site, name):
    return [each for each in ask(service(demo, site, "/pools")).json["pools"] if each["name"] == name]


def test_a_third_site_gets_what_two_have(demo, replicant):
    path = f"/pools/{make(demo, 'grows', scope='Site1 & Site2', size=4).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 4}, ("Site1", "Site2"))
    assert ask(front(demo, "Site2", path + "/grow"), "POST", json_body={"by": 3}).status == 200
    wait_everywhere(demo, path, {"size": 7}, ("Site1", "Site2"))
    assert behind(demo, "Site3", "grows") == []
    shown = replicant("extend", meta_id, "Site3", "--wait", "-o", "json").json
    assert {each["site"]: each["state"] for each in shown["members"]}["Site3"] == "settled"
    wait_everywhere(demo, path, {"size": 7, "name": "grows"})
    local = behind(demo, "Site3", "grows")
    assert len(local) == 1 and local[0]["id"] != meta_id
    # It is a member like any other: what is done there reaches the others, and the other way round.
    assert ask(front(demo, "Site3", path + "/grow"), "POST", json_body={"by": 2}).json["size"] == 9
    wait_everywhere(demo, path, {"size": 9})
    assert ask(front(demo, "Site1", path), "PATCH", json_body={"name": "grown"}).status == 200
    wait_everywhere(demo, path, {"size": 9, "name": "grown"})
    assert ask(front(demo, "Site3", path), "DELETE").status in (200, 204)
    wait_everywhere(demo, path, None)


def test_a_site_is_dropped_and_its_copy_goes(demo, replicant):
    path = f"/pools/{make(demo, 'shrinks', size=1).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 1})
    replicant("drop", meta_id, "Site3", "--wait", at="Site2")
    wait_for(lambda: behind(demo, "Site3", "shrinks") == [], "the copy at Site3 to be deleted")
    wait_for(lambda: set(members(demo, meta_id) or ()) == {"Site1", "Site2"}, "Site1 to know of it")
    assert get(demo, "Site3", path).status in (404, 410)
    assert ask(front(demo, "Site1", path), "PATCH", json_body={"size": 2}).status == 200
    wait_everywhere(demo, path, {"size": 2}, ("Site1", "Site2"))
    done = replicant("extend", meta_id, "Site3", status=1)
    assert "was a member before" in done.err


def test_what_is_kept_is_nobodys(demo, replicant):
    path = f"/pools/{make(demo, 'left alone', size=1).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 1})
    replicant("drop", meta_id, "Site2", "--keep", "--wait")
    local = behind(demo, "Site2", "left alone")
    assert len(local) == 1
    assert ask(front(demo, "Site1", path), "PATCH", json_body={"size": 2}).status == 200
    wait_everywhere(demo, path, {"size": 2}, ("Site1", "Site3"))
    assert behind(demo, "Site2", "left alone")[0]["size"] == 1
    assert get(demo, "Site2", f"/pools/{local[0]['id']}").json["id"] == local[0]["id"]


def test_a_move_ends_where_it_ought_to(demo, replicant):
    path = f"/pools/{make(demo, 'moves', scope='Site1 & Site2', size=5).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 5}, ("Site1", "Site2"))
    replicant("move", meta_id, "Site2", "Site3")
    wait_everywhere(demo, path, {"size": 5}, ("Site1", "Site3"))
    wait_for(lambda: behind(demo, "Site2", "moves") == [], "the copy at Site2 to be deleted")
    assert set(members(demo, meta_id)) == {"Site1", "Site3"}


def test_the_site_that_goes_can_be_asked(demo, replicant):
    path = f"/pools/{make(demo, 'goes', size=5).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 5})
    done = replicant("drop", meta_id, "Site1", "--wait")
    assert done.out == "the site that was asked is no member any more; it is at Site2, Site3\n"
    wait_for(lambda: behind(demo, "Site1", "goes") == [], "the copy at Site1 to be deleted")
    wait_for(lambda: set(members(demo, meta_id, "Site2") or ()) == {"Site2", "Site3"}, "Site2 to know of it")


def test_a_site_that_is_away_holds_up_nobody_but_its_own_drop(demo, replicant):
    path = f"/pools/{make(demo, 'two and one away', scope='Site1 & Site2', size=1).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 1}, ("Site1", "Site2"))
    with Paused(demo, "Site2"):
        assert ask(front(demo, "Site1", path), "PATCH", json_body={"size": 2}).status == 200
        replicant("extend", meta_id, "Site3", "--wait")
        wait_everywhere(demo, path, {"size": 2}, ("Site1", "Site3"))
        assert "time is over" in replicant("drop", meta_id, "Site2", "--wait", "--timeout", "2", status=1).err
        assert members(demo, meta_id)["Site2"]["leaving"]
    wait_for(lambda: set(members(demo, meta_id)) == {"Site1", "Site3"}, "Site2 to leave once it is back")
    wait_for(lambda: behind(demo, "Site2", "two and one away") == [], "its copy to be deleted")


def test_by_force_nobody_waits(demo, replicant):
    path = f"/pools/{make(demo, 'forced', size=1).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 1})
    assert "need not be forced" in replicant("drop", meta_id, "Site1", "--force", status=1).err
    with Paused(demo, "Site3"):
        replicant("drop", meta_id, "Site3", "--force", "--wait")
        assert set(members(demo, meta_id)) == {"Site1", "Site2"}
        assert ask(front(demo, "Site2", path), "PATCH", json_body={"size": 2}).status == 200
        wait_everywhere(demo, path, {"size": 2}, ("Site1", "Site2"))
        wait_for(lambda: ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}").json["operations"] == 0,
                 "the operation to be forgotten")
    # It has heard nothing of it; when it turns to the others, it is told.
    assert ask(front(demo, "Site3", path), "PATCH", json_body={"size": 9}).status in (200, 404, 409, 410)
    wait_for(lambda: behind(demo, "Site3", "forced") == [], "the copy at Site3 to be deleted")
    assert get(demo, "Site1", path).json["size"] == 2


def test_what_makes_no_sense_is_refused(demo, replicant):
    meta_id = make(demo, "stays", scope="Site1 & Site2").json["id"]
    wait_everywhere(demo, f"/pools/{meta_id}", {"name": "stays"}, ("Site1", "Site2"))
    assert "a member already" in replicant("extend", meta_id, "Site2", status=1).err
    assert "no site" in replicant("extend", meta_id, "Nowhere", status=1).err
    assert "no member" in replicant("drop", meta_id, "Site3", status=1).err
    assert "add itself" in replicant("extend", meta_id, "Site1", status=1).err
    replicant("drop", meta_id, "Site2", "--wait")
    assert "last member" in replicant("drop", meta_id, "Site1", status=1).err
    assert "SITE is missing" in replicant("extend", meta_id, status=2).err
    assert "--force is for drop" in replicant("extend", meta_id, "Site3", "--force", status=2).err
    unknown = "01890a5d-ac96-774b-bcce-b302099a8057"
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{unknown}/members/Site3", "PUT")
    assert answer.status == 404 and answer.json["type"].endswith("no-such-replicant")
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}/members/Site3?keep=perhaps", "DELETE")
    assert answer.status == 422
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}/members/Site3", "POST")
    assert answer.status == 405 and answer.header("Allow") == "PUT, DELETE"


def test_an_image_with_a_file_is_not_copied(demo, replicant):
    """Its file is not in what GET shows: better no copy than one without it."""
    answer = ask(front(demo, "Site1", "/images", "image"), "POST", {"Scope": "Site1 & Site2"}, json_body={"name": "with a file"})
    assert answer.status == 201
    done = replicant("extend", answer.json["id"], "Site3", status=1)
    assert "set on its own" in done.err
