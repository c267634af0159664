"""Sites that come and go while a resource is there: extend, drop, move; through the API and with `cheops replicant`."""
import pytest

from demo_process import ask, wait_for
from test_get_and_ops import address
from test_credentials import Guarded
from test_members_policy import set_policy
from test_operations import Events, Paused
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
    assert "no site `Si te/2?` is known" in replicant("extend", meta_id, "Si te/2?", status=1).err
    assert "--force is for drop" in replicant("extend", meta_id, "Site3", "--force", status=2).err
    unknown = "01890a5d-ac96-774b-bcce-b302099a8057"
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{unknown}/members/Site3", "PUT")
    assert answer.status == 404 and answer.json["type"].endswith("no-such-replicant")
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}/members/Site3?keep=perhaps", "DELETE")
    assert answer.status == 422
    answer = ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}/members/Site3", "POST")
    assert answer.status == 405 and answer.header("Allow") == "PUT, DELETE"


def test_who_left_is_not_asked_when_copies_are_compared(demo, cheops, replicant):
    path = f"/pools/{make(demo, 'compared', size=1).json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"size": 1})
    replicant("drop", meta_id, "Site3", "--wait")
    local = behind(demo, "Site2", "compared")[0]["id"]
    assert ask(service(demo, "Site2", f"/pools/{local}"), "PATCH", json_body={"size": 8}).status == 200
    with Paused(demo, "Site3"):
        shown = ask(f"http://{address(demo)}/cheops/v1/replicants/{meta_id}/verify").json
        assert {each["site"] for each in shown["members"]} == {"Site1", "Site2"} and shown["verify"] == "differs"
        repaired = cheops("repair", meta_id, "--from", "Site1", "--wait", "all", "--api", address(demo))
        assert repaired.status == 0, repaired
        assert behind(demo, "Site2", "compared")[0]["size"] == 1
    assert "Site3" in cheops("repair", meta_id, "--from", "Site3", "--api", address(demo)).err


def test_those_who_follow_changes_are_told(demo, replicant):
    path = f"/pools/{make(demo, 'followed', scope='Site1 & Site2').json['id']}"
    meta_id = path.split("/")[-1]
    wait_everywhere(demo, path, {"name": "followed"}, ("Site1", "Site2"))
    events = Events(demo, "Site2")
    events.next()
    replicant("extend", meta_id, "Site3", "--wait")

    def is_applied(event):
        data = event["data"]
        return (event["event"] == "operation" and data.get("replicant") == meta_id and data.get("site") == "Site3"
                and data.get("state") == "applied")
    seen = events.until(is_applied)
    assert any(each["event"] == "replicant" and each["data"]["replicant"] == meta_id for each in seen)
    replicant("drop", meta_id, "Site3", "--wait")
    events.until(lambda event: event["event"] == "replicant" and event["data"]["replicant"] == meta_id)
    events.close()


def test_what_it_refers_to_is_found_at_the_new_site(demo, replicant):
    """A server refers to an image that is at all three sites, under another id at each."""
    image = ask(front(demo, "Site1", "/images", "image"), "POST", {"Scope": "Site1 & Site2 & Site3"}, json_body={"name": "base"}).json["id"]
    wait_everywhere(demo, f"/images/{image}", {"name": "base"}, service="image")
    made = ask(front(demo, "Site1", "/servers", "compute"), "POST", {"Scope": "Site1 & Site2"}, json_body={"name": "web", "image": image})
    assert made.status == 201, made
    server = made.json["id"]
    wait_everywhere(demo, f"/servers/{server}", {"name": "web"}, ("Site1", "Site2"), "compute")
    replicant("extend", server, "Site3", "--wait")
    wait_everywhere(demo, f"/servers/{server}", {"name": "web", "image": image}, service="compute")
    local = next(each["id"] for each in ask(service(demo, "Site3", "/images", "image")).json["images"] if each["name"] == "base")
    there = next(each for each in ask(service(demo, "Site3", "/servers", "compute")).json["servers"] if each["name"] == "web")
    assert there["image"] == local and local != image


def test_what_refers_to_nothing_here_says_so(demo, cheops):
    """A server at three sites refers to a secret at two of them: the third never heard of it."""
    image = ask(front(demo, "Site1", "/images", "image"), "POST", {"Scope": "Site1 & Site2 & Site3"}, json_body={"name": "all"}).json["id"]
    wait_everywhere(demo, f"/images/{image}", {"name": "all"}, ("Site1", "Site2", "Site3"), "image")
    secret = ask(front(demo, "Site1", "/secrets", "image"), "POST", {"Scope": "Site1 & Site2"},
                 json_body={"name": "two only", "data": "x"}).json["id"]
    wait_everywhere(demo, f"/secrets/{secret}", {"name": "two only"}, ("Site1", "Site2"), "image")
    made = ask(front(demo, "Site1", "/servers", "compute"), "POST", {"Scope": "Site1 & Site2 & Site3"},
               json_body={"name": "waits", "image": image, "secret": secret})
    assert made.status == 201, made
    server, operation = made.json["id"], made.header("Cheops-Operation")
    wait_everywhere(demo, f"/servers/{server}", {"name": "waits"}, ("Site1", "Site2"), "compute")

    def shown():
        answer = ask(f"http://{address(demo, 'Site3')}/cheops/v1/operations/{operation}")
        return next(each for each in answer.json["members"] if each["site"] == "Site3") if answer.status == 200 else None

    wait_for(shown, "the operation at Site3")
    assert shown()["state"] == "pending" and shown()["waits_for"] == secret
    assert shown()["reason"] == f"waits for {secret}, which is not at this site"
    told = cheops("ops", "get", operation, "--api", address(demo, "Site3"))
    assert f"Site3 waits for {secret}, which is not at this site" in told.out, told
    # Nobody else knows why.
    elsewhere = ask(f"http://{address(demo, 'Site1')}/cheops/v1/operations/{operation}").json
    assert all("reason" not in each for each in elsewhere["members"])
    assert get(demo, "Site3", f"/servers/{server}", "compute").status == 404


class GuardedByThree(Guarded):
    sites = ("Site1", "Site2", "Site3")


def test_the_new_site_has_its_say_and_agents_their_credentials(mesh, cheops):
    """The policy of the new site refuses it at first; the copy is read, made and deleted by the agents, when no user's token is at hand."""
    guarded = GuardedByThree(mesh, "forward")
    set_policy(guarded.agents["Site3"], others="refuse")
    made = guarded.make(guarded.token("ann"), "guarded")
    meta_id = made.json["id"]
    wait_for(lambda: guarded.behind("Site2", "guarded"), "the pool at Site2")
    api = guarded.agents["Site1"].config["api"]
    assert cheops("replicant", "extend", meta_id, "Site3", "--api", api).status == 0

    def copy():
        found = ask(f"http://{api}/cheops/v1/operations?replicant={meta_id}").json["operations"]
        copies = [each for each in found if each["effect"] == "copy"]
        return copies and ask(f"http://{api}/cheops/v1/operations/{copies[0]['id']}").json

    def at_the_new_one(of):
        return next(each for each in of["members"] if each["site"] == "Site3")
    refused = wait_for(lambda: (found := copy()) and at_the_new_one(found)["state"] == "rejected" and found, "it to be refused")
    assert at_the_new_one(refused)["answer"] == "no rule of Site3 names Site1, and its policy refuses all others"
    assert guarded.behind("Site3", "guarded") is None
    set_policy(guarded.agents["Site3"], others="allow")
    retry = f"http://{guarded.agents['Site3'].config['api']}/cheops/v1/operations/{refused['id']}/retry"
    assert ask(retry, "POST").status in (200, 202)
    assert wait_for(lambda: guarded.behind("Site3", "guarded"), "the pool at Site3")["owner"] == "agent"
    assert cheops("replicant", "drop", meta_id, "Site3", "--wait", "--api", api).status == 0
    wait_for(lambda: guarded.behind("Site3", "guarded") is None, "the copy to be deleted")
