"""What exists at one site becomes a replicated resource: `cheops replicant adopt`, and then it is extended like any other."""
import concurrent.futures

import pytest
from api_description import check_answer

from demo_process import ask
from test_get_and_ops import address
from test_members import members
from test_replication import front, get, make, service, wait_everywhere


@pytest.fixture(scope="module")
def replicant(cheops, demo):
    def run_it(*arguments, at="Site1", status=0):
        result = cheops("replicant", *arguments, "--api", address(demo, at))
        assert result.status == status, result
        return result
    return run_it


def plain(demo, name, at="Site1", path="/pools", of="network", **members_of_it):
    """Somebody makes it, and Cheops knows nothing of it."""
    made = ask(front(demo, at, path, of), "POST", json_body={"name": name, **members_of_it})
    assert made.status == 201, made
    return made.json["id"]


def adopt(demo, at="Site1", **body):
    answer = ask(f"http://{address(demo, at)}/cheops/v1/replicants", "POST", json_body=body)
    check_answer("POST", "/cheops/v1/replicants", answer.status, dict(answer.headers), answer.bytes)
    return answer


def test_a_life(demo, replicant):
    local = plain(demo, "was alone", size=4)
    shown = replicant("adopt", f"network/pools/{local}", "-o", "json").json
    assert [(each["site"], each["state"], each["local_id"]) for each in shown["members"]] == [("Site1", "settled", local)]
    assert shown["type"] == "network.pool" and shown["name"] == "was alone"
    meta_id = shown["id"]
    path = f"/pools/{meta_id}"
    # By either id; lists have the meta-id from now on.
    assert get(demo, "Site1", path).json["id"] == meta_id
    assert get(demo, "Site1", f"/pools/{local}").json["id"] == meta_id
    assert meta_id in [each["id"] for each in get(demo, "Site1", "/pools").json["pools"]]
    assert ask(front(demo, "Site1", f"/pools/{local}/grow"), "POST", json_body={"by": 1}).json["size"] == 5
    replicant("extend", meta_id, "Site2", "--wait")
    wait_everywhere(demo, path, {"size": 5, "name": "was alone"}, ("Site1", "Site2"))
    assert ask(front(demo, "Site2", path + "/grow"), "POST", json_body={"by": 2}).json["size"] == 7
    wait_everywhere(demo, path, {"size": 7}, ("Site1", "Site2"))
    # It was not made again: it is the item that was there.
    own = [each for each in ask(service(demo, "Site1", "/pools")).json["pools"] if each["name"] == "was alone"]
    assert [each["id"] for each in own] == [local] and own[0]["size"] == 7
    replicant("move", meta_id, "Site1", "Site3")
    wait_everywhere(demo, path, {"size": 7}, ("Site2", "Site3"))
    assert ask(service(demo, "Site1", f"/pools/{local}")).status == 404
    assert ask(front(demo, "Site3", path), "DELETE").status in (200, 204)
    wait_everywhere(demo, path, None, ("Site2", "Site3"))


def test_with_its_file(demo, replicant):
    local = plain(demo, "pictures", path="/images", of="image")
    content = bytes(range(256)) * 4096
    assert ask(front(demo, "Site1", f"/images/{local}/file", "image"), "PUT", body=content).status == 200
    meta_id = replicant("adopt", f"image/images/{local}", "-o", "json").json["id"]
    replicant("extend", meta_id, "Site3", "--wait")
    assert ask(front(demo, "Site3", f"/images/{meta_id}/file", "image")).bytes == content


def test_in_a_table(demo, replicant):
    local = plain(demo, "shown", size=1)
    out = replicant("adopt", f"network/pools/{local}").out.splitlines()
    assert out[2].split() == ["SITE", "STATE", "LOCAL", "ID", "MEMBER"]
    assert out[3].split() == ["Site1", "settled", local, "yes"]
    assert set(members(demo, out[0])) == {"Site1"}


def test_one_replicant_however_often_it_is_asked_for(demo):
    local = plain(demo, "popular", size=1)
    with concurrent.futures.ThreadPoolExecutor(16) as many:
        answers = list(many.map(lambda _: adopt(demo, service="network", path=f"/pools/{local}"), range(32)))
    assert {answer.status for answer in answers} == {200}, answers
    meta_id, = {answer.json["id"] for answer in answers}
    assert adopt(demo, service="network", path=f"/pools/{meta_id}").json["id"] == meta_id
    # What was made with `&` is one already.
    made = make(demo, "made so", size=1).json["id"]
    wait_everywhere(demo, f"/pools/{made}", {"size": 1})
    there = next(each["id"] for each in ask(service(demo, "Site2", "/pools")).json["pools"] if each["name"] == "made so")
    assert adopt(demo, "Site2", service="network", path=f"/pools/{there}").json["id"] == made


@pytest.mark.parametrize("body, status, problem, says", [
    ({"service": "network", "path": "/pools/none"}, 404, "no-such-item", "network/pools/none: the service of this site has no such"),
    ({"service": "network", "path": "/pools/01890a5d-ac96-774b-bcce-b302099a8057"}, 404, "no-such-item", "ask one of those that have it"),
    ({"service": "network", "path": "/pools"}, 422, "bad-request", "knows no item of that path"),
    ({"service": "network", "path": "/nothing/1"}, 422, "bad-request", "knows no item of that path"),
    ({"service": "image", "path": "/images/1/file"}, 422, "bad-request", "knows no item of that path"),
    ({"service": "storage", "path": "/pools/1"}, 404, "no-such-item", "no such service"),
    ({"service": "network", "path": "pools/1"}, 422, "bad-request", "begins with a `/`"),
    ({"service": "network"}, 422, "bad-request", "`service` and `path`"),
    ({"service": 1, "path": "/pools/1"}, 422, "bad-request", "both texts"),
])
def test_what_cannot_be(demo, body, status, problem, says):
    answer = adopt(demo, **body)
    assert (answer.status, answer.problem["type"]) == (status, problem) and says in answer.problem["detail"], answer


def test_usage(cheops):
    assert "SERVICE/PATH" in cheops("replicant", "--help").out
    for arguments, says in [(("adopt",), "which item"), (("adopt", "images"), "SERVICE/PATH: image/images/42"),
                            (("adopt", "image/images/4", "Site2"), "one argument too many"),
                            (("adopt", "image/images/4", "--wait"), "there already"),
                            (("adopt", "image/images/4", "--keep"), "--keep")]:
        result = cheops("replicant", *arguments)
        assert result.status == 2 and says in result.err, result
