"""Prefer (RFC 7240) on writes: an answer that waits for all members, or for nobody."""
import os
import signal

from demo_process import ask, wait_for
from processes import hold
from test_operations import ALL, SITES, Paused, api, follow, make, states


def replicas(answer):
    return dict(each.split("=") for each in answer.header("Cheops-Replicas").split())


def test_the_answer_waits_for_all(demo):
    answer = make(demo, "for all", headers={"Prefer": "wait=60"})
    assert answer.header("Preference-Applied") == "wait=60"
    assert replicas(answer) == {"Site1": "201", "Site2": "applied", "Site3": "applied"}
    for site in SITES:
        behind = ask(demo.own_url(site, "network") + "/pools?name=for%20all").json["pools"]
        assert len(behind) == 1


def test_but_not_for_ever(demo):
    with Paused(demo, "Site3"):
        answer = make(demo, "not for ever", headers={"Prefer": 'handling=lenient, wait="1"'})
        assert answer.header("Preference-Applied") == "wait=1"
        assert replicas(answer)["Site3"] == "pending"
        assert make(demo, "at once").header("Preference-Applied") is None


def test_nobody_waits_for_a_service_that_is_slow(demo):
    pid = demo.pid_of("Site1", "network")
    hold(pid)
    try:
        answer = ask(demo.url("Site1", "network") + "/pools", "POST", {"Scope": ALL, "Prefer": "respond-async"},
                     json_body={"name": "later", "size": 4})
        assert answer.status == 202 and answer.header("Preference-Applied") == "respond-async"
        operation = answer.header("Cheops-Operation")
        assert answer.header("Location") == f"{demo.sites['Site1']['api']}/cheops/v1/operations/{operation}"
        assert answer.json["operation"] == operation and operation.startswith(answer.json["id"])
        followed = ask(answer.header("Location")).json
        assert followed["state"] == "pending" and states(followed) == {"Site1": "pending"}
        assert followed["operation"] == "create"
        patient = ask(demo.url("Site1", "network") + "/pools", "POST", {"Scope": ALL, "Prefer": "respond-async, wait=1"},
                      json_body={"name": "later still"})
        assert patient.status == 202
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(lambda: (found := follow(demo, operation).json)["reached"] and found, "it everywhere")
    assert ask(demo.url("Site3", "network") + f"/pools/{answer.json['id']}").json["size"] == 4
    wait_for(lambda: follow(demo, patient.header("Cheops-Operation")).json["reached"], "the other one everywhere")


def test_who_is_quick_enough_is_answered_as_always(demo):
    answer = make(demo, "quick", headers={"Prefer": "respond-async, wait=60"})
    assert answer.header("Preference-Applied") is None and answer.json["name"] == "quick"


def test_refused_after_the_answer(demo):
    before = ask(demo.url("Site1", "network") + "/pools").json["pools"]
    answer = ask(demo.url("Site1", "network") + "/pools", "POST", {"Scope": ALL, "Prefer": "respond-async"},
                 json_body={"size": "none"})
    assert answer.status == 202
    followed = follow(demo, answer.header("Cheops-Operation")).json
    assert not followed["reached"] and followed["state"] == "rejected"
    [member] = followed["members"]
    assert member["site"] == "Site1" and member["status"] == 400 and "error" in member["answer"]
    assert api(demo, "Site1", f"/replicants/{answer.json['id']}").status == 404
    assert ask(demo.url("Site1", "network") + "/pools").json["pools"] == before
