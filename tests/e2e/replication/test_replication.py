"""One resource at several sites: made, read, changed and deleted from any of them, by its meta-id or a local one."""
import re
import uuid

import pytest

from demo_process import ask, wait_for

ALL = "Site1 & Site2 & Site3"
SITES = ("Site1", "Site2", "Site3")


def front(demo, site, path="", service="network"):
    return demo.url(site, service) + path


def service(demo, site, path="", name="network"):
    """Behind the agent's back."""
    return demo.own_url(site, name) + path


def make(demo, name, scope=ALL, at="Site1", path="/pools", service="network", **members):
    answer = ask(front(demo, at, path, service), "POST", {"Scope": scope}, json_body={"name": name, **members})
    assert answer.status == 201, answer
    return answer


def get(demo, site, path, service="network"):
    return ask(front(demo, site, path, service))


def wait_everywhere(demo, path, expected, sites=SITES, service="network"):
    """Until each of these sites answers with all of these members."""
    def is_so(site):
        answer = get(demo, site, path, service)
        if expected is None:
            return answer.status == 404
        return answer.status == 200 and all(answer.json[name] == value for name, value in expected.items())
    for site in sites:
        wait_for(lambda site=site: is_so(site), f"{path} at {site} to be {expected}; it is {get(demo, site, path, service)}")


def test_one_pool_at_three_sites(demo):
    answer = make(demo, "everywhere", size=23)
    pool = answer.json
    assert uuid.UUID(pool["id"]).version == 7
    assert answer.header("Location") == f"/pools/{pool['id']}"
    assert re.fullmatch(rf"{pool['id']}\.[0-9a-f]{{16}}\.1", answer.header("Cheops-Operation"))
    assert "Site1=201" in answer.header("Cheops-Replicas")
    path = f"/pools/{pool['id']}"
    wait_everywhere(demo, path, {"id": pool["id"], "name": "everywhere", "size": 23})
    local_ids = set()
    for site in SITES:
        assert pool["id"] in [each["id"] for each in get(demo, site, "/pools").json["pools"]]
        behind = [each for each in ask(service(demo, site, "/pools")).json["pools"] if each["name"] == "everywhere"]
        assert len(behind) == 1 and behind[0]["id"] != pool["id"]
        local_ids.add(behind[0]["id"])
    assert len(local_ids) == 3


def test_what_was_answered_can_be_read_at_once(demo):
    for n in range(10):
        pool = make(demo, f"at once {n}", size=n).json
        assert get(demo, "Site1", f"/pools/{pool['id']}").json == pool


def test_changes_from_any_member_without_a_scope(demo):
    path = f"/pools/{make(demo, 'changing', size=1).json['id']}"
    wait_everywhere(demo, path, {"size": 1})
    assert ask(front(demo, "Site2", path), "PATCH", json_body={"size": 5}).status == 200
    wait_everywhere(demo, path, {"size": 5})
    assert ask(front(demo, "Site3", path + "/grow"), "POST", json_body={"by": 2}).json["size"] == 7
    wait_everywhere(demo, path, {"size": 7})
    assert ask(front(demo, "Site1", path), "PUT", json_body={"name": "changed", "size": 9}).json["size"] == 9
    wait_everywhere(demo, path, {"size": 9, "name": "changed"})


def test_a_local_id_is_as_good(demo):
    pool = make(demo, "by local id").json
    path = f"/pools/{pool['id']}"
    wait_everywhere(demo, path, {"size": 0})
    local = next(each["id"] for each in ask(service(demo, "Site2", "/pools?name=by%20local%20id")).json["pools"])
    answer = ask(front(demo, "Site2", f"/pools/{local}"), "PATCH", json_body={"size": 3})
    assert answer.status == 200 and answer.json["id"] == pool["id"]
    wait_everywhere(demo, path, {"size": 3})
    assert get(demo, "Site2", f"/pools/{local}").json["id"] == pool["id"]


def test_deleted_everywhere(demo):
    path = f"/pools/{make(demo, 'short-lived').json['id']}"
    wait_everywhere(demo, path, {"size": 0})
    assert ask(front(demo, "Site3", path), "DELETE").status == 204
    wait_everywhere(demo, path, None)
    for site in SITES:
        assert not [each for each in ask(service(demo, site, "/pools")).json["pools"] if each["name"] == "short-lived"]


def test_only_members_hear_of_it(demo):
    path = f"/pools/{make(demo, 'two of three', 'Site1 & Site2', size=4).json['id']}"
    wait_everywhere(demo, path, {"size": 4}, ("Site1", "Site2"))
    assert get(demo, "Site3", path).status == 404
    # A site that is no member, with a scope that names them.
    answer = ask(front(demo, "Site3", path), "PATCH", {"Scope": "Site1 & Site2"}, json_body={"size": 6})
    assert answer.status == 200, answer
    wait_everywhere(demo, path, {"size": 6}, ("Site1", "Site2"))
    assert ask(front(demo, "Site3", path), headers={"Scope": "Site2"}).json["size"] == 6


def test_made_from_a_site_that_is_no_member(demo):
    answer = make(demo, "from afar", "Site2 & Site3", at="Site1", size=8)
    path = f"/pools/{answer.json['id']}"
    wait_everywhere(demo, path, {"size": 8}, ("Site2", "Site3"))
    assert get(demo, "Site1", path).status == 404


def test_what_the_service_refuses_leaves_no_trace(demo):
    before = {site: len(get(demo, site, "/pools").json["pools"]) for site in SITES}
    answer = ask(front(demo, "Site1", "/pools"), "POST", {"Scope": ALL}, json_body={"size": "none"})
    assert answer.status == 400 and "error" in answer.json and answer.header("Cheops-Operation") is None
    assert before == {site: len(get(demo, site, "/pools").json["pools"]) for site in SITES}


def test_every_other_byte_stays(demo):
    """Key order, white space, number formats: only ids are replaced, in requests and answers."""
    body = b'{ "name":"odd",\n\t"n": 1.50e+3 , "deep": [ {"id" : "mine"} ],  "z":0, "a":"\\u00e9" }'
    answer = ask(front(demo, "Site1", "/images", "image"), "POST",
                 {"Scope": ALL, "Content-Type": "application/json"}, body=body)
    assert answer.status == 201
    path = f"/images/{answer.json['id']}"
    wait_everywhere(demo, path, {"name": "odd"}, service="image")
    for site in SITES:
        through = get(demo, site, path, "image").bytes
        behind = [each for each in ask(service(demo, site, "/images", "image")).json["images"] if each["name"] == "odd"]
        raw = ask(service(demo, site, f"/images/{behind[0]['id']}", "image")).bytes
        assert through == raw.replace(behind[0]["id"].encode(), answer.json["id"].encode())


def test_a_server_refers_to_a_replicated_image(demo):
    image = ask(front(demo, "Site1", "/images", "image"), "POST", {"Scope": "Site1 & Site2"},
                json_body={"name": "debian"}).json["id"]
    wait_everywhere(demo, f"/images/{image}", {"name": "debian"}, ("Site1", "Site2"), "image")
    answer = ask(front(demo, "Site1", "/servers", "compute"), "POST", {"Scope": "compute: Site1 & Site2"},
                 json_body={"name": "vm", "image": image})
    assert answer.status == 201, answer
    assert answer.json["image"] == image
    wait_everywhere(demo, f"/servers/{answer.json['id']}", {"name": "vm", "image": image}, ("Site1", "Site2"), "compute")


@pytest.mark.parametrize("scope, said", [("strong(Site1 & Site2)", "not-yet")])
def test_what_is_not_yet(demo, scope, said):
    answer = ask(front(demo, "Site1", "/pools"), "POST", {"Scope": scope}, json_body={"name": "x"})
    assert answer.status == 501 and answer.problem["type"].endswith(said)


def test_reading_ones_own_writes_at_another_site(demo):
    """Each read comes right behind the write, at another site, and sees it."""
    made = make(demo, "session", size=0)
    path, session = f"/pools/{made.json['id']}", made.header("Cheops-Session")
    wait_everywhere(demo, path, {"size": 0})
    for n in range(1, 31):
        here, there = SITES[n % 3], SITES[(n + 1) % 3]
        written = ask(front(demo, here, path), "PATCH", {"Cheops-Session": session}, json_body={"size": n})
        assert written.status == 200, written
        session = written.header("Cheops-Session")
        assert ask(front(demo, there, path), headers={"Cheops-Session": session}).json["size"] == n


def test_reading_what_one_has_just_made_at_another_site(demo):
    """It may not have arrived there when it is asked for: it is known by its meta-id once it has."""
    for n in range(30):
        made = make(demo, f"just made {n}", at=SITES[n % 3])
        read = ask(front(demo, SITES[(n + 1) % 3], f"/pools/{made.json['id']}"),
                   headers={"Cheops-Session": made.header("Cheops-Session")})
        assert (read.status, read.json.get("id")) == (200, made.json["id"]), (n, read)


@pytest.mark.parametrize("session", ["", "nonsense", "x" * 3000], ids=lambda text: text[:8] or "empty")
def test_a_session_that_says_nothing(demo, session):
    path = f"/pools/{make(demo, f'session {len(session)}').json['id']}"
    assert ask(front(demo, "Site1", path), headers={"Cheops-Session": session}).status == 200


def test_the_same_key_twice_is_one_operation(demo):
    answers = [ask(front(demo, "Site1", "/pools"), "POST", {"Scope": ALL, "Idempotency-Key": "a key"},
                   json_body={"name": "keyed"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].header("Cheops-Operation") == answers[1].header("Cheops-Operation") is not None
    assert len([each for each in get(demo, "Site1", "/pools").json["pools"] if each["name"] == "keyed"]) == 1


def test_weak_is_answered_as_the_service_did(demo):
    answer = make(demo, "weakly", "weak(Site1 & Site2)", size=3)
    assert uuid.UUID(answer.json["id"]).version == 7 and answer.json["size"] == 3
    wait_everywhere(demo, f"/pools/{answer.json['id']}", {"size": 3}, ("Site1", "Site2"))
