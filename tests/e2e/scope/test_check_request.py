"""cheops scope check --app: may a request use what its scope gives it? The rules and their examples are in docs/ownership.md."""
import re

import pytest

VIEW = """
sites: {Site1: , Site2: , Site3: }
rtt_ms: {Site1: {Site2: 5, Site3: 50}, Site2: {Site3: 8}}
services:
  compute: {Site1: "1", Site2: "1", Site3: "1"}
  image: {Site1: "1", Site2: "1", Site3: "1"}
  network: {Site1: "1", Site2: "1", Site3: "1"}
"""
SAID = "server.create at Site1 expects Site1/network, but the scope gives Site2/network"
CROSSED = "{compute: Site1, network: Site2}"
SERVER = ["POST", "/servers"]


@pytest.fixture
def view(tmp_path):
    (tmp_path / "view.yaml").write_text(VIEW)
    return tmp_path / "view.yaml"


def check(cheops, *arguments, **options):
    return cheops("scope", "check", "--app", "sample", *arguments, **options)


def test_examples_of_the_manual(cheops, root, view):
    """Every row of the table, by the shipped description."""
    page = (root / "docs/ownership.md").read_text().split("## Examples")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| `([A-Z]+) (\S+)(?: ([^`]+))?` \| `([^`]+)` \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) >= 19
    for service, method, path, body, scope, said in rows:
        result = check(cheops, "--view", view, "--at", "Site1", "--service", service, scope, method, path,
                       *([body] if body else []))
        if said.startswith("fine: "):
            assert (result.status, result.out, result.err) == (0, "ok\n", ""), (scope, body, result)
        else:
            assert result.status == 1 and result.out == "", (scope, body, result)
            assert result.err.splitlines()[0] == f"cheops: {said}", (scope, body, result)


def test_refused(cheops):
    result = check(cheops, CROSSED, *SERVER, '{"network": "n"}')
    assert (result.status, result.out) == (1, "")
    assert result.err.splitlines() == [
        f"cheops: {SAID}",
        "  hint: network.network belongs to its site, and cannot be used from another one: let the scope name Site1 for network, "
        "or leave network out of it"]


def test_as_json(cheops):
    result = check(cheops, "-o", "json", CROSSED, *SERVER, '{"network": "n"}')
    assert result.status == 1 and result.err == ""
    assert result.json["error"].pop("hint").startswith("network.network belongs")
    assert result.json["error"] | {"hint": ""} == {
        "type": "not-owned-here", "message": SAID, "site": "Site1", "service": "network", "resource": "network.network", "hint": ""}
    fine = check(cheops, "-o", "json", CROSSED, *SERVER, '{"name": "vm"}')
    assert fine.status == 0 and fine.json == {"ok": True, "scope": "compute: Site1, network: Site2", "warnings": []}


def test_without_a_body_it_may_matter(cheops):
    result = check(cheops, CROSSED, *SERVER)
    assert result.status == 0 and result.out.startswith("ok\nwarning: no BODY was given")
    assert check(cheops, "{compute: Site1, image: Site2}", *SERVER).out == "ok\n"


def test_body_from_file_and_input(cheops, tmp_path):
    (tmp_path / "body.json").write_text('{"network": true}')
    assert check(cheops, CROSSED, *SERVER, f"@{tmp_path}/body.json").status == 1
    assert check(cheops, CROSSED, *SERVER, "-", stdin='{"network": true}').status == 1
    assert check(cheops, CROSSED, *SERVER, f"@{tmp_path}/none").status == 2


def test_a_description_of_ones_own(cheops, tmp_path):
    (tmp_path / "app.yaml").write_text(
        "format: 1\napplication: a\nservices: {a: , b: }\ntypes:\n"
        "  a.thing: {collection: /things, item: '/things/{id}', references: {uses: b.bay}}\n"
        "  b.bay: {collection: /bays, item: '/bays/{id}', owner: site}\n")
    result = cheops("scope", "check", "--app", tmp_path / "app.yaml", "{a: X, b: Y}", "DELETE", "/things/1")
    assert result.status == 1 and result.err.startswith("cheops: thing.delete at X expects X/b, but the scope gives Y/b\n")
    assert cheops("scope", "check", "--app", tmp_path / "app.yaml", "{a: X, b: Y}", "GET", "/things/1").out == "ok\n"


def test_what_is_not_described(cheops):
    result = check(cheops, CROSSED, "GET", "/elsewhere/at/all")
    assert result.status == 0 and "the description does not know this request" in result.out


def test_a_scope_without_meaning_is_refused_first(cheops):
    assert "strong" in check(cheops, "strong(Site1; Site2)", *SERVER, "{}").err
    assert check(cheops, "strong(Site1; Site2)", *SERVER, "{}").status == 1


@pytest.mark.parametrize("arguments", [
    ["check", "--app", "sample"], ["check", "--app", "sample", "Site1"], ["check", "--app", "sample", "Site1", "GET"],
    ["check", "--app", "sample", "Site1", "GET", "/a", "b", "c"], ["check", "--app", "sample", "Site1", "GET", "servers"],
    ["check", "--app", "nobody", "Site1", "GET", "/servers"], ["check", "Site1", "GET", "/servers"],
    ["explain", "--app", "sample", "Site1", "GET", "/servers"], ["check", "--app"],
])
def test_wrong_usage(cheops, arguments):
    assert cheops("scope", *arguments).status == 2
