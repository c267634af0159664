"""cheops get and cheops ops: what they show of replicated resources and operations, and what they do to these."""
import json
import urllib.parse

import pytest
import yaml

from demo_process import ask, wait_for
from test_operations import ALL, NOWHERE, Paused, follow, make


def address(demo, site="Site1"):
    return urllib.parse.urlsplit(demo.sites[site]["api"]).netloc


@pytest.fixture(scope="module")
def run(cheops, demo):
    def run_it(*arguments, site="Site1"):
        return cheops(*arguments, "--api", address(demo, site))
    return run_it


@pytest.fixture(scope="module")
def pool(demo):
    answer = make(demo, "a pool of\x1b[31m many", size=1)
    assert follow(demo, answer.header("Cheops-Operation")).json["reached"]
    return answer


def test_the_list_names_sites_and_states(run, pool):
    result = run("get", "pool")
    assert result.status == 0, result
    titles, *rows = result.out.splitlines()
    assert titles.split() == ["ID", "TYPE", "NAME", "STATE", "SITES"]
    row = next(row for row in rows if row.startswith(pool.json["id"]))
    assert "network.pool" in row and row.endswith("settled  Site1 settled, Site2 settled, Site3 settled")
    assert "\x1b" not in result.out


def test_one_has_a_line_for_each_site(run, pool):
    result = run("get", "pool", pool.json["id"])
    assert result.status == 0, result
    first, titles, *rows = result.out.splitlines()
    assert first.startswith(f"network.pool {pool.json['id']} (a pool of") and "\x1b" not in first
    assert titles.split()[:2] == ["SITE", "STATE"]
    assert {tuple(row.split()[:2]) for row in rows} == {("Site1", "settled"), ("Site2", "settled"), ("Site3", "settled")}


def test_for_programs(run, pool):
    made = run("get", pool.json["id"], "-o", "json").json
    assert made == yaml.safe_load(run("get", pool.json["id"], "-o", "yaml").out)
    assert made["name"] == "a pool of\x1b[31m many"
    assert pool.json["id"] in [each["id"] for each in run("get", "-o", "json").json["replicants"]]


def test_more_than_one_page(demo, run):
    made = {make(demo, f"many {i}", "Site1 & Site2").json["id"] for i in range(203)}
    listed = [each["id"] for each in run("get", "pool", "-o", "json").json["replicants"]]
    assert made <= set(listed) and len(listed) == len(set(listed))


def test_an_operation_is_followed(demo, run, pool):
    with Paused(demo, "Site3"):
        answer = ask(demo.url("Site1", "network") + f"/pools/{pool.json['id']}", "PATCH", json_body={"size": 2})
        operation = answer.header("Cheops-Operation")
        assert run("ops", "get", operation, "--wait", "majority").status == 0
        late = run("ops", "get", operation, "--wait", "all", "--timeout", "1")
        assert late.status == 1 and "the time is over" in late.err and "Site3 pending" in late.out
        listed = run("ops", "--of", pool.json["id"], "--state", "pending")
        assert listed.out.split()[:6] == ["ID", "OPERATION", "BY", "ISSUED", "STATE", "SITES"]
        assert any(line.startswith(operation) and "patch" in line for line in listed.out.splitlines())
        assert "Site3 pending" in run("get", "--state", "pending").out
    done = run("ops", "get", operation, "--wait", "all", "-o", "json")
    assert done.status == 0 and done.json["reached"]
    assert run("ops", "get", operation, "--wait", "Site3").status == 0


def test_a_rejected_one_is_shown_and_decided_on(demo, run):
    image = make(demo, "image of the cli", ALL, "/images", "image")
    assert follow(demo, image.header("Cheops-Operation")).json["reached"]
    server = make(demo, "server of the cli", "compute: Site1 & Site2", "/servers", "compute", image=image.json["id"])
    assert follow(demo, server.header("Cheops-Operation")).json["reached"]
    members = {each["site"]: each for each in run("get", server.json["id"], "-o", "json").json["members"]}
    behind = demo.own_url("Site2", "compute") + f"/servers/{members['Site2']['local_id']}/action"
    assert ask(behind, "POST", json_body={"stop": None}).status == 202
    stop = ask(demo.url("Site1", "compute") + f"/servers/{server.json['id']}/action", "POST", json_body={"stop": None})
    operation = stop.header("Cheops-Operation")
    waited = run("ops", "get", operation, "--wait", "all")
    assert waited.status == 1 and "Site2 rejected 409" in waited.out and "The service at Site2 answered" in waited.out
    assert "somebody decides" in waited.err
    assert any(line.startswith(operation) for line in run("ops", "--state", "rejected").out.splitlines())
    wrong = run("ops", "retry", operation)
    assert wrong.status == 1 and "neither rejected nor in doubt at this site" in wrong.err
    assert run("ops", "dismiss", operation, site="Site2").status == 0
    wait_for(lambda: operation not in run("ops", "--state", "rejected").out, "nobody to show it")


@pytest.mark.parametrize("arguments, said", [
    (("get", "a", "b"), "After a type comes a meta-id"),
    (("get", NOWHERE, "--state", "pending"), "there is one only"),
    (("get", "-o", "xml"), "is none of"),
    (("ops", "got", "x"), "did you mean `get`"),
    (("ops", "get"), "ID is missing"),
    (("ops", "get", "x"), "is no id of an operation"),
    (("ops", "--wait", "all"), "are for `cheops ops get ID`"),
    (("ops", "get", NOWHERE + ".0000000000000001.1", "--timeout", "5"), "without --wait"),
    (("ops", "get", NOWHERE + ".0000000000000001.1", "--wait", "all", "--timeout", "601"), "from 1 to 600"),
    (("ops", "get", NOWHERE + ".0000000000000001.1", "--wait", ""), "--wait is empty"),
    (("ops", "retry", NOWHERE + ".0000000000000001.1", "--watch"), "--watch is for"),
])
def test_wrong_usage(run, arguments, said):
    result = run(*arguments)
    assert result.status == 2 and said in result.err, result


@pytest.mark.parametrize("arguments, said", [
    (("get", NOWHERE), "no replicated resource of that id"),
    (("get", "--site", "Nowhere"), "no site `Nowhere` is known"),
    (("get", "--state", "nice"), "it is one of `witness`, `settled`"),
    (("ops", "get", NOWHERE + ".0000000000000001.1"), "no operation of that id"),
])
def test_refused(run, arguments, said):
    result = run(*arguments)
    assert result.status == 1 and said in result.err, result


def test_help_and_json_lines(run, cheops):
    for command in ("get", "ops"):
        result = cheops(command, "--help")
        assert result.status == 0 and f"usage: cheops {command}" in result.out
        assert all(len(line) <= 110 for line in result.out.splitlines())
    assert json.loads(run("ops", "-o", "json").out)["next"] is None
