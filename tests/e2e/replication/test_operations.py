"""What the API of an agent says of replicated resources and of operations on them, and what can be done to these."""
import http.client
import json
import os
import signal
import socket
import urllib.parse
import uuid

import pytest
from api_description import OPENAPI, SEEN, check_answer

from demo_process import BOUND_S, Demo, ask, is_running, wait_for
from processes import hold

ALL = "Site1 & Site2 & Site3"
SITES = ("Site1", "Site2", "Site3")
NOWHERE = "01890a5d-ac96-774b-bcce-b302099a8057"


def api(demo, site, path, method="GET", headers=None, described=True):
    answer = ask(demo.sites[site]["api"] + "/cheops/v1" + path, method, headers)
    if described:
        check_answer(method, "/cheops/v1" + path, answer.status, dict(answer.headers), answer.bytes)
    return answer


def make(demo, name, scope=ALL, path="/pools", service="network", headers=None, **members):
    answer = ask(demo.url("Site1", service) + path, "POST", {"Scope": scope, **(headers or {})},
                 json_body={"name": name, **members})
    assert answer.status == 201, answer
    return answer


def follow(demo, operation, wait="all", site="Site1", timeout=60):
    return api(demo, site, f"/operations/{operation}?wait={wait}&timeout={timeout}")


def states(item):
    return {member["site"]: member["state"] for member in item["members"]}


class Paused:
    """The agent of a site does nothing for a while, as if it were cut off."""

    def __init__(self, demo, site):
        self.pid = demo.pid_of(site, "agent")

    def __enter__(self):
        hold(self.pid)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


class Events:
    """Server-sent events, as they come."""

    def __init__(self, demo, site, last=None):
        parts = urllib.parse.urlsplit(demo.sites[site]["api"])
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=BOUND_S)
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        self.connection.request("GET", "/cheops/v1/changes", headers=headers)
        self.response = self.connection.getresponse()

    def next(self):
        """The next event with data: {id, event, data}; the first one that has none gives its id."""
        event = {}
        while line := self.response.readline().decode().rstrip("\n"):
            if not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value
        if "data" in event:
            event["data"] = json.loads(event["data"])
        return event

    def until(self, condition):
        """All events up to the one for which it is so."""
        seen = []
        while not seen or not condition(seen[-1]):
            event = self.next()
            if "data" in event:
                seen.append(event)
        return seen

    def close(self):
        self.connection.close()


def test_a_replicant_is_shown_everywhere(demo):
    answer = make(demo, "shown", size=3)
    assert follow(demo, answer.header("Cheops-Operation")).json["reached"]
    local_ids = set()
    for site in SITES:
        wait_for(lambda site=site: set(states(api(demo, site, f"/replicants/{answer.json['id']}").json).values())
                 == {"settled"}, f"{site} to know that all have it")
        shown = api(demo, site, f"/replicants/{answer.json['id']}").json
        assert shown["id"] == answer.json["id"] and shown["service"] == "network" and shown["type"] == "network.pool"
        assert shown["name"] == "shown" and shown["consistency"] == "eventual" and shown["state"] == "settled"
        assert sorted(states(shown)) == list(SITES)
        assert all(member["shown"] == "present" and member["pending"] == 0 for member in shown["members"])
        local_ids.add(tuple(member["local_id"] for member in shown["members"]))
    assert len(local_ids) == 1 and len(set(*local_ids)) == 3


def test_the_list_comes_in_pages_and_can_be_narrowed(demo):
    made = [make(demo, f"page {i}").json["id"] for i in range(5)]
    made_image = make(demo, "an image", "Site1 & Site2", "/images", "image").json["id"]

    def listed(query, site="Site1"):
        found, after = [], ""
        for _ in range(100):
            page = api(demo, site, f"/replicants?limit=2&{query}{after}").json
            assert len(page["replicants"]) <= 2 and page["site"] == site
            found += [each["id"] for each in page["replicants"]]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"
        raise AssertionError("the list has no end")
    everything = listed("")
    assert everything == sorted(everything) and set(made) | {made_image} <= set(everything)
    assert listed("service=image") == listed("type=image.image") == listed("type=image") == [made_image]
    assert made_image not in listed("type=pool") and set(made) <= set(listed("type=network.pool"))
    assert made_image not in listed("site=Site3")
    wait_for(lambda: api(demo, "Site2", f"/replicants/{made_image}").status == 200, "it at Site2")
    assert api(demo, "Site3", f"/replicants/{made_image}").problem["type"] == "no-such-replicant"


def test_what_waits_for_a_site_is_shown(demo):
    pool = make(demo, "waited for")
    path = f"/pools/{pool.json['id']}"
    assert follow(demo, pool.header("Cheops-Operation")).json["reached"]
    with Paused(demo, "Site3"):
        answer = ask(demo.url("Site1", "network") + path, "PATCH", json_body={"size": 2})
        operation = answer.header("Cheops-Operation")
        assert follow(demo, operation, "majority").json["reached"]
        assert follow(demo, operation, "Site2").json["reached"]
        late = follow(demo, operation, "all", timeout=1).json
        assert not late["reached"] and late["state"] == "pending"
        assert states(late) == {"Site1": "applied", "Site2": "applied", "Site3": "pending"}
        assert late["operation"] == "patch" and late["effect"] == "assign" and late["issuer"] == "Site1"
        listed = api(demo, "Site1", f"/operations?replicant={pool.json['id']}&state=pending&site=Site3").json
        assert operation in [each["id"] for each in listed["operations"]]
        assert not api(demo, "Site1", f"/operations?replicant={pool.json['id']}&state=pending&site=Site2").json["operations"]
        shown = api(demo, "Site1", f"/replicants/{pool.json['id']}").json
        assert states(shown)["Site3"] == "pending" and shown["state"] == "pending"
        assert pool.json["id"] in [each["id"] for each in api(demo, "Site1", "/replicants?state=pending").json["replicants"]]
    assert follow(demo, operation).json["reached"]
    assert states(api(demo, "Site1", f"/operations/{operation}").json) == dict.fromkeys(SITES, "applied")


def test_rejected_at_one_site_and_run_again(demo):
    image = make(demo, "for servers", ALL, "/images", "image")
    assert follow(demo, image.header("Cheops-Operation")).json["reached"]
    server = make(demo, "stubborn", "compute: Site1 & Site2", "/servers", "compute", image=image.json["id"])
    assert follow(demo, server.header("Cheops-Operation")).json["reached"]
    local = next(member["local_id"] for member in api(demo, "Site1", f"/replicants/{server.json['id']}").json["members"]
                 if member["site"] == "Site2")
    behind = demo.own_url("Site2", "compute") + f"/servers/{local}/action"
    assert ask(behind, "POST", json_body={"stop": None}).status == 202
    answer = ask(demo.url("Site1", "compute") + f"/servers/{server.json['id']}/action", "POST", json_body={"stop": None})
    operation = answer.header("Cheops-Operation")
    followed = follow(demo, operation).json
    assert not followed["reached"] and followed["state"] == "rejected"
    rejected = next(member for member in followed["members"] if member["site"] == "Site2")
    assert rejected["state"] == "rejected" and rejected["status"] == 409 and "error" in rejected["answer"]
    assert states(api(demo, "Site1", f"/replicants/{server.json['id']}").json) == {"Site1": "settled", "Site2": "rejected"}
    # It is decided where it was rejected.
    assert api(demo, "Site1", f"/operations/{operation}/retry", "POST").problem["type"] == "nothing-to-judge"
    assert api(demo, "Site2", f"/operations/{operation}/happened", "POST").problem["type"] == "nothing-to-judge"
    assert ask(behind, "POST", json_body={"start": None}).status == 202
    assert api(demo, "Site2", f"/operations/{operation}/retry", "POST").status == 200
    wait_for(lambda: follow(demo, operation).json["reached"], "the stop at Site2")
    assert ask(demo.own_url("Site2", "compute") + f"/servers/{local}").json["status"] == "SHUTOFF"


def test_rejected_at_one_site_and_let_be(demo):
    pool = make(demo, "let be", "Site1 & Site2")
    assert follow(demo, pool.header("Cheops-Operation")).json["reached"]
    local = next(member["local_id"] for member in api(demo, "Site1", f"/replicants/{pool.json['id']}").json["members"]
                 if member["site"] == "Site2")
    assert ask(demo.own_url("Site2", "network") + f"/pools/{local}", "DELETE").status == 204
    operation = ask(demo.url("Site1", "network") + f"/pools/{pool.json['id']}/grow", "POST",
                    json_body={"by": 1}).header("Cheops-Operation")
    assert follow(demo, operation).json["state"] == "rejected"
    assert api(demo, "Site2", f"/operations/{operation}/dismiss", "POST").status == 200
    wait_for(lambda: not api(demo, "Site1", "/operations?state=rejected").json["operations"], "nothing to show")


def test_changes_as_they_happen_and_none_missed(demo):
    events = Events(demo, "Site1")
    assert events.response.getheader("Content-Type") == "text/event-stream"
    assert int(events.next()["id"]) > 0
    first = make(demo, "watched")
    operation = first.header("Cheops-Operation")

    def applied_at(site, operation):
        return lambda event: event["data"].get("operation") == operation and event["data"].get("site") == site \
            and event["data"].get("state") == "applied"
    seen = events.until(applied_at("Site1", operation))
    last = seen[-1]["id"]
    assert [int(event["id"]) for event in seen] == sorted(int(event["id"]) for event in seen)
    events.close()
    assert follow(demo, operation).json["reached"]
    again = Events(demo, "Site1", last)
    sites = set()

    def all_came(event):
        sites.add(event["data"].get("site"))
        return {"Site2", "Site3"} <= sites
    missed = again.until(all_came)
    assert int(missed[0]["id"]) == int(last) + 1
    assert "reset" not in [event["event"] for event in missed]
    again.close()
    for unknown in ("1", str(int(last) + 10 ** 12)):
        late = Events(demo, "Site1", unknown)
        assert late.next()["event"] == "reset"
        late.close()


def test_too_many_listeners_are_refused(demo):
    listeners = [Events(demo, "Site2") for _ in range(64)]
    try:
        assert all(listener.response.status == 200 for listener in listeners)
        assert api(demo, "Site2", "/changes").problem["type"] == "too-many-waiting"
    finally:
        for listener in listeners:
            listener.close()

    def one_more():
        listener = Events(demo, "Site2")
        listener.close()
        return listener.response.status == 200
    wait_for(one_more, "room for one more")


@pytest.mark.parametrize("path, status, problem", [
    ("/replicants/" + NOWHERE, 404, "no-such-replicant"),
    ("/replicants/nonsense", 422, "bad-request"),
    ("/replicants?limit=0", 422, "bad-request"),
    ("/replicants?limit=201", 422, "bad-request"),
    ("/replicants?state=nice", 422, "bad-request"),
    ("/replicants?after=x", 422, "bad-request"),
    ("/replicants?site=Nowhere", 422, "bad-request"),
    ("/operations/" + NOWHERE + ".0000000000000001.1", 404, "no-such-operation"),
    ("/operations/nonsense", 422, "bad-request"),
    ("/operations?state=settled", 422, "bad-request"),
    ("/operations?replicant=1", 422, "bad-request"),
    ("/operations/" + NOWHERE + ".0000000000000001.1?wait=all&timeout=601", 422, "bad-request"),
    ("/operations/" + NOWHERE + ".0000000000000001.1/retry", 405, "wrong-method"),
    ("/operations/" + NOWHERE + ".0000000000000001.1/forget", 404, "no-such-path"),
    ("/operations//retry", 404, "no-such-path"),
])
def test_what_makes_no_sense_is_refused(demo, path, status, problem):
    answer = api(demo, "Site1", path, described=problem not in ("wrong-method", "no-such-path"))
    assert answer.status == status and answer.problem["type"] == problem, answer


def test_a_site_that_is_no_member_is_not_waited_for(demo):
    answer = make(demo, "of two", "Site1 & Site2")
    assert follow(demo, answer.header("Cheops-Operation"), "Site3").problem["type"] == "bad-request"
    assert uuid.UUID(answer.json["id"]).version == 7


def test_members_are_added_and_dropped(demo):
    answer = make(demo, "comes and goes", "Site1 & Site2")
    path = f"/replicants/{answer.json['id']}"
    assert follow(demo, answer.header("Cheops-Operation")).json["reached"]
    added = api(demo, "Site1", path + "/members/Site3", "PUT")
    assert added.status == 200 and set(states(added.json)) == {"Site1", "Site2", "Site3"}
    wait_for(lambda: states(api(demo, "Site1", path).json)["Site3"] == "settled", "Site3 to have it")
    again = api(demo, "Site1", path + "/members/Site3", "PUT")
    assert again.status == 409 and again.problem["type"] == "members-unchanged"
    assert api(demo, "Site1", path + "/members/Site2", "DELETE").status == 200
    wait_for(lambda: set(states(api(demo, "Site1", path).json)) == {"Site1", "Site3"}, "Site2 to leave")
    assert api(demo, "Site1", path + "/members/Site2", "DELETE").status == 404


def test_every_path_was_asked_for_and_answered_well():
    """By the tests before this one, whose answers were all held against the description."""
    good = {(path, method) for path, method, status in SEEN if status < 300}
    wanted = {(path, method) for path, item in OPENAPI["paths"].items() for method, about in item.items()
              if "replication" in about["tags"] and "agents" not in about["tags"]}  # test_files.py is one of those
    # In test_verify.py, test_adopt.py and test_webhooks.py, and in tests/e2e/relation.
    wanted -= {("/cheops/v1/deps", "get"), ("/cheops/v1/deps/sites/{site}", "get"),
               ("/cheops/v1/replicants/{id}/verify", "get"), ("/cheops/v1/replicants/{id}/repair", "post"),
               ("/cheops/v1/replicants", "post"), ("/cheops/v1/replicants/{id}/parts", "get"), ("/cheops/v1/webhooks", "get")}
    # An operation in doubt takes a crash; what a stream answers is looked at where it is read.
    assert wanted - good == {("/cheops/v1/operations/{id}/happened", "post"), ("/cheops/v1/changes", "get")}


def send(demo, site, request, service=None):
    """A request whose answer nobody reads yet."""
    url = urllib.parse.urlsplit(demo.url(site, service) if service else demo.sites[site]["api"])
    connection = socket.create_connection((url.hostname, url.port), timeout=BOUND_S)
    connection.sendall(request.encode())
    return connection


def read_until(connection, said):
    text = b""
    while said not in text:
        got = connection.recv(4096)
        assert got, text
        text += got
    return text


def test_events_for_a_client_that_knows_no_chunks(demo):
    connection = send(demo, "Site1", "GET /cheops/v1/changes HTTP/1.0\r\n\r\n")
    text = read_until(connection, b"\n\n")
    assert b"Transfer-Encoding" not in text and b"Connection: close" in text
    make(demo, "for an old client", "Site1 & Site2")
    assert b"event: operation\ndata: {" in read_until(connection, b"event: operation\ndata: {")
    connection.close()
    assert api(demo, "Site1", "/changes", "HEAD", described=False).header("Content-Type") == "text/event-stream"


def test_an_agent_ends_whoever_waits(tmp_path):
    made = Demo(tmp_path / "demo", sites=2)
    try:
        pool = make(made, "waited for at the end", "Site1 & Site2")
        assert follow(made, pool.header("Cheops-Operation")).json["reached"]
        path = f"/pools/{pool.json['id']}"
        with Paused(made, "Site2"):
            operation = ask(made.url("Site1", "network") + path, "PATCH", json_body={"size": 1}).header("Cheops-Operation")
            listeners = [Events(made, "Site1") for _ in range(3)]
            waiting = [send(made, "Site1", f"GET /cheops/v1/operations/{operation}?wait=all&timeout=600 HTTP/1.1\r\nHost: x\r\n\r\n")
                       for _ in range(2)]
            for method in ("POST", "DELETE"):
                where = path + "/grow" if method == "POST" else path
                body = "Content-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"by\":1}" if method == "POST" else "\r\n"
                waiting.insert(0, send(made, "Site1", f"{method} {where} HTTP/1.1\r\nHost: x\r\nPrefer: wait=300\r\n{body}", "network"))
                wait_for(lambda: waiting and len(api(made, "Site1", "/operations?state=pending").json["operations"])
                         == (2 if method == "POST" else 3), f"the {method}")  # pylint: disable=cell-var-from-loop
            for gone in (waiting.pop(1), waiting.pop()):  # their clients have gone, which changes nothing
                gone.close()
            agent = made.pid_of("Site1", "agent")
            os.kill(agent, signal.SIGTERM)
            for listener in listeners:  # they are told at once, and come back later
                while listener.response.readline():
                    pass
            os.kill(agent, signal.SIGTERM)  # the others are cut off by the second signal
            wait_for(lambda: not is_running(agent), "its end")
        assert made.ended() == 1 and "ended by itself, with exit status 0" in made.stderr()
    finally:
        for connection in waiting + [listener.connection for listener in listeners]:
            connection.close()
        made.stop()
