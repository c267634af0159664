"""cheops app lint: the command, and that docs/description.schema.json and the reader accept the same."""
import copy
import json
import re

import jsonschema
import pytest
import yaml

TYPE = {"collection": "/images", "item": "/images/{id}"}
MINIMAL = {"format": 1, "application": "a", "services": {"image": None}, "types": {"image.image": TYPE}}


def with_service(**keys):
    return {**MINIMAL, "services": {"image": keys}}


def with_credentials(**keys):
    return {**MINIMAL, "credentials": keys}


def with_type(**keys):
    return {**MINIMAL, "types": {"image.image": {**TYPE, **keys}}}


def with_operation(**keys):
    return with_type(operations={"act": {"method": "POST", "path": "{item}/act", **keys}})


def with_facet(**keys):
    return with_type(operations={"act": {"method": "POST", "path": "{item}/act", "facet": "part"},
                                 "acts": {"method": "GET", "path": "{item}/act", "facet": "part"}}, facets={"part": keys})


@pytest.fixture(scope="session")
def schema(root):
    made = json.loads((root / "docs/description.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(made)
    return made


# ---- the command ----------------------------------------------------------------------------------------------------


def test_fine(lint):
    result = lint(MINIMAL)
    assert (result.status, result.out, result.err) == (0, "app.yaml: ok: application a, 1 type, 7 operations\n", "")


def test_all_that_is_wrong_is_told_at_once(lint):
    result = lint("format: 1\napplication: a\nservices: {image: }\ntypes:\n  image.image:\n    colection: /images\n"
                  "    item: /images\n  imag.other: {item: '/x/{id}', identity: x}\n")
    assert result.status == 1 and result.err == ""
    lines = result.out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "app.yaml:6:5", "app.yaml:7:11", "app.yaml:8:3", "app.yaml:8:43"]
    assert all(": error: " in line for line in lines)
    assert lines[0].endswith("did you mean `collection`? [types.image.image]")


def test_warnings_refuse_nothing(lint):
    result = lint(with_operation(method="PUT"))
    assert result.status == 0
    warning, summary = result.out.splitlines()
    assert ": warning: the effect is `replace`, of the whole item" in warning
    assert summary.endswith("8 operations, 1 warning")


def test_as_json(lint):
    good, bad = lint(MINIMAL, "-o", "json").json, lint({**MINIMAL, "format": 2}, "-o", "json")
    assert good == {"files": [{"file": "app.yaml", "findings": [], "ok": True, "application": "a"}]}
    assert bad.status == 1
    (file,) = bad.json["files"]
    assert file["ok"] is False and file["application"] is None
    assert file["findings"] == [{
        "severity": "error", "line": 1, "column": 9, "where": "",
        "message": "the format is 2; this version of Cheops reads up to 1"}]


def test_several_files(cheops, tmp_path):
    (tmp_path / "a.yaml").write_text(json.dumps(MINIMAL))
    (tmp_path / "b.yaml").write_text("format: 1\n")
    result = cheops("app", "lint", "a.yaml", "b.yaml", cwd=tmp_path)
    assert result.status == 1 and result.out.startswith("a.yaml: ok") and "b.yaml:1:1: error:" in result.out
    both = cheops("app", "lint", "-o", "json", "a.yaml", "b.yaml", cwd=tmp_path).json
    assert [file["ok"] for file in both["files"]] == [True, False]


def test_missing_file(cheops, tmp_path):
    result = cheops("app", "lint", "none.yaml", cwd=tmp_path)
    assert (result.status, result.err) == (2, "cheops: cannot read `none.yaml`: No such file or directory\n")


def test_control_characters_do_not_reach_the_terminal(lint):
    result = lint('"\\e[31m": 1\n')
    assert result.status == 1 and "\x1b" not in result.out


@pytest.mark.parametrize("arguments", [[], ["lint"], ["lnit"], ["lint", "--colour"], ["explain"], ["explain", "GET"],
                                       ["explain", "GET", "/a", "b", "c"], ["explain", "-H", "x", "GET", "/a"],
                                       ["import"], ["import", "a", "b"], ["lint", "-o", "xml", "a"]])
def test_wrong_usage(cheops, arguments):
    assert cheops("app", *arguments).status == 2


def test_shipped_descriptions_are_fine(cheops, root, schema):
    files = sorted((root / "apps").glob("*.yaml"))
    assert len(files) >= 2
    for file in files:
        result = cheops("app", "lint", str(file))
        assert result.status == 0 and "warning" not in result.out, result
        jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(file.read_text()))


def test_shipped_descriptions_are_installed_and_named(root):
    installed = (root / "packaging/meson.build").read_text()
    completed = (root / "packaging/completions/cheops.bash").read_text().split("_cheops_command_app()")[1].split("\n}")[0]
    named = re.search("compgen -W '([a-z ]+)'", completed).group(1).split()
    page = (root / "packaging/man/cheops-app.1").read_text()
    manual = (root / "docs/apps.md").read_text()
    names = sorted(file.stem for file in (root / "apps").glob("*.yaml"))
    assert named == names
    for name in names:
        assert f"'../apps/{name}.yaml'" in installed, name
        assert f".B {name}\n" in page, name
        assert f"## {name}\n" in manual, name


# ---- schema and reader agree ----------------------------------------------------------------------------------------

# Where keys are fixed: the schema's definition, and a description with the key `zork` there.
PLACES = {
    "": {**MINIMAL, "zork": 1},
    "service": with_service(zork=1),
    "version": with_service(version={"zork": 1}),
    "errors": with_service(errors={"zork": 1}),
    "credentials": with_credentials(zork=1),
    "user": with_credentials(user={"zork": 1}),
    "type": with_type(zork=1),
    "references": with_type(references={"zork": 1}),
    "reference": with_type(references={"body": {"/a": {"zork": 1}}}),
    "cross": with_type(cross={"zork": 1}),
    "operation": with_operation(zork=1),
    "facet": with_facet(zork=1),
    "resolution": with_type(resolutions=[{"zork": 1}]),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_same_keys(lint, schema, place):
    """The reader lists what it accepts when it meets another key."""
    accepted = re.search(r"unknown key `zork`: accepted are (.*)", lint(PLACES[place]).out).group(1)
    properties = (schema["$defs"][place] if place else schema)["properties"]
    assert set(re.findall("`([a-z_]+)`", accepted)) == set(properties)


def test_every_place_of_the_schema_is_compared(schema):
    fixed = {name for name, definition in schema["$defs"].items() if "properties" in definition}
    assert fixed | {""} == set(PLACES)


ACT = {"method": "POST", "path": "{item}/act"}

GOOD = [
    MINIMAL,
    with_facet(copy="item"),
    with_facet(copy="none"),
    with_facet(copy="act", each="/acts", body={"/a": "/b"}, when={"/state": "on"}),
    with_type(derived=["/sum"], sets="/tags", facets={}),
    {"format": 1, "application": "a", "types": {"*.{things}": {"collection": "/{things}", "item": "/{things}/{id}"}}},
    {**MINIMAL, "services": {"image": {}, "*": None}},
    {**MINIMAL, "credentials": None},
    with_service(address="https://image.example", under="/image", version={"path": "/v", "pointer": "/0/id"}),
    with_service(under=["/image", "/v2"], carry=["header", "append:X-Auth-Token:identity", "request-id:X-Id:req-", "osprofiler"]),
    with_service(credentials={"headers": "X-Auth-Token", "run": "agent", "refused": 401}),
    with_service(errors={"body": '{"{name}": "{message}"}', "names": {"404": "absent", "*": "fault"}}),
    with_service(errors={"body": "<p>{message}</p>", "type": "text/html; charset=UTF-8"}),
    with_credentials(headers=["A", "B"], run="impersonate", user={"claim": "sub"}, impersonate={"X-User": "{user}"}),
    with_service(under=["/v2", "/image/v2"], base="/v2", credentials={"accompany": "X-Service-Token"}),
    with_credentials(run="forward", accompany="X-Service-Token"), with_type(identity="suggested"),
    with_credentials(refused=[401, 403]), with_credentials(user={"header": "X-User"}),
    with_type(collection=["/images", "/v1/images"], item=["/images/{id}", "/v1/images/{id}"]),
    with_type(lists=["/images/detail"], identity="chosen", object="/image", list="", id=["/id", "/uuid"]),
    with_type(name="/name", unique=True, find="name={name}", links=["/self", "/links/*/href"], volatile="/created"),
    with_type(references={"body": {"/a": "image.image", "/b/*/c": "*"}, "query": {"a": "image.image"}}),
    with_type(item="/{site}/images/{id}", collection="/{site}/images", ignore="site"),
    with_type(item="/{up}/images/{id}", collection="/{up}/images", references={"path": {"up": "image.image"}}),
    with_type(references={"path": {"other": "image.image"}}, operations={"link": {"method": "PUT", "path": "{item}/to/{other}",
                                                                                   "effect": "assign"}}),
    with_type(references=None, operations=None, resolutions=None, delete="loses"),
    with_type(operations={"replace": None, "patch": {"content": "application/merge-patch+json"}}),
    with_type(collection="/images/", item="/images/{id}/"),
    with_operation(), with_operation(method=["POST", "PUT"], effect="relative"),
    with_operation(path=["{item}/act", "/images/{id}/do/{rest*}", "{collection}/act/"], effect="pass"),
    with_operation(content=["a/b", "application/x+json"], query={"a": "*", "b": ["1", 2, True]}, key="*"),
    with_operation(effect="replace", facet="f", body="opaque", answer="none", object="", repeatable=False),
    with_operation(references={"/a": "image.image"}, answer="stream"),
    with_operation(method="GET", effect="read", reader="service"), with_operation(reader="user"),
    with_type(operations={"create": {"replays": True}}), with_type(paging={"query": ["limit"], "most": "limit=1000"}),
    with_type(owner="site", relied="refuse", cross="container"), with_type(owner="global", relied="warn", cross="indivisible"),
    with_type(cross={"as": "container", "names": "optimistic"}), with_type(cross={"as": "container", "names": "strict"}),
    with_type(cross={"as": "divisible", "divide": "/size"}), with_type(cross={"as": "indivisible"}),
    with_type(cross={"as": "divisible", "divide": ["/size", "/a/hosts"], "weight": "capacity",
                     "combine": {"/used": "sum", "/status": "prime", "/size": "sum", "/a/hosts": "union"}}),
    with_type(cross={"as": "divisible", "divide": ["/size"], "combine": None},
              operations={"grow": {"method": "POST", "path": "{item}/grow", "divide": ["/by"]}}),
    with_type(references={"body": {"/a": {"type": "image.image", "kind": "requirement"}, "/b": {"type": "*", "kind": "reliance"},
                                   "/c": {"type": "image.image"}},
                          "query": {"a": {"type": "image.image", "kind": "composition"}}, "uses": ["image.image"]}),
    {**MINIMAL, "types": {"image.image": {**TYPE, "cross": "container"},
                          "image.part": {"item": "/images/{image}/parts/{id}", "collection": "/images/{image}/parts",
                                         "references": {"path": {"image": {"type": "image.image", "kind": "container"}},
                                                        "uses": "image.image"}}}},
    with_operation(uses=["image.image"], references={"/a": {"type": "image.image", "kind": "reliance"}}),
    with_type(resolutions=[{"between": ["replace", "assign"], "as": "keep-order"}]),
]

BAD = [
    with_facet(each="/acts"),
    with_facet(copy="act", each="acts", body={"/a": "/b"}),
    with_facet(copy="act", each="/acts", body={"a": "/b"}),
    with_facet(copy="act", when={}),
    with_facet(copy="act", when={"/a": "x", "/b": "y"}),
    with_type(derived="sum"), with_type(sets="tags"), with_type(paging={"query": ["limit"], "most": "limit"}),
    with_type(paging={"query": ["limit"], "most": "limit=1&x=2"}),
    [], "text", {}, {"format": 1}, {**MINIMAL, "format": 2}, {**MINIMAL, "format": "x"},
    {**MINIMAL, "application": ""}, {**MINIMAL, "application": "x" * 129}, {**MINIMAL, "application": ["a"]},
    {**MINIMAL, "types": {}}, {**MINIMAL, "types": None}, {**MINIMAL, "types": ["image.image"]},
    {**MINIMAL, "types": {"image": TYPE}}, {**MINIMAL, "types": {"image.": TYPE}},
    {**MINIMAL, "types": {"image.{a b}": TYPE}}, {**MINIMAL, "types": {"image.image": None}},
    {**MINIMAL, "services": ["image"]}, {**MINIMAL, "services": {"image": None, "a.b": None}},
    {**MINIMAL, "services": {"image": None, **{f"s{i}": None for i in range(64)}}},
    with_service(address="127.0.0.1"), with_service(under="image"), with_service(under=["/a/"]),
    with_service(under=[f"/a{i}" for i in range(9)]), with_service(under="/{a}"),
    with_service(version={"path": "/v"}), with_service(version={"path": "/{v}", "pointer": "/v"}), with_service(version=None),
    with_service(carry="headr"), with_service(carry=["append"]), with_service(carry="append:a b"), with_service(carry=None),
    with_service(carry=["header", "header"]), with_service(carry="append:a:"), with_service(carry="osprofiler:file"),
    with_service(errors={}), with_service(errors=None), with_service(errors={"body": ""}), with_service(errors={"body": "x", "type": "x"}),
    with_service(errors={"body": "1", "names": {"404": "x"}}), with_service(errors={"body": "1", "names": {"*": "x", "99": "y"}}), with_service(credentials={"run": "x"}),
    with_credentials(headers=["a b"]), with_credentials(run=None), with_credentials(run="impersonate"),
    with_credentials(user=None), with_credentials(user={}), with_credentials(user={"claim": "a", "header": "b"}),
    with_credentials(refused=[200]), with_credentials(refused="x"), with_credentials(impersonate={"a b": "c"}),
    {**MINIMAL, "types": {"image.image": {"name": "/name"}}},
    with_type(collection="images"), with_type(collection="/a//b"), with_type(collection="/a{b}"), with_type(collection=[]),
    with_type(collection="/{1a}"), with_type(collection="/a?b"), with_type(collection="/{a*}/b"), with_type(collection=None),
    with_type(item="/images"), with_type(item="/images/{id*}"), with_type(item=7), with_type(item="/" + "a" * 512),
    with_type(identity="x"), with_type(object="image"), with_type(list="~2"), with_type(id="id"), with_type(name=None),
    with_type(unique=True), with_type(unique="yes", name="/name"), with_type(find="name={name}"),
    with_type(name="/name", find="name"), with_type(links=["/a", "/a"]), with_type(volatile="created"),
    with_type(ignore="{a}"), with_type(references={"body": {"a": "image.image"}}), with_type(references={"query": ["a"]}),
    with_type(references={"path": {"{id}": "image.image"}}), with_type(references={"body": {"/a": ["image.image"]}}),
    with_type(delete="maybe"), with_type(operations=["act"]), with_type(operations={"act": None}),
    with_type(operations={"act": {"method": "POST"}}), with_type(operations={"act": {"path": "{item}/act"}}),
    with_type(operations={f"act{i}": {**ACT, "path": f"{{item}}/act{i}"} for i in range(58)}),
    with_operation(method="post"), with_operation(method=[]), with_operation(path=[]), with_operation(path="{item}act"),
    with_operation(path="{itm}/act"), with_operation(content="json"), with_operation(content="a/b; c=d"),
    with_operation(query={"a": None}), with_operation(query=["a"]), with_operation(key=""), with_operation(effect="x"),
    with_operation(facet=["a"]), with_operation(body="x"), with_operation(answer="x"), with_operation(object="x"),
    with_operation(reader="x"),
    with_operation(references={"a": "image.image"}), with_operation(creates="yes"), with_operation(repeatable=None),
    with_type(resolutions={"between": ["a", "b"]}), with_type(resolutions=[{"between": ["read"], "as": "any-order"}]),
    with_type(resolutions=[{"between": ["read", "read"]}]),
    with_type(resolutions=[{"between": ["read", "read"], "as": "any"}]),
    with_type(owner="sites"), with_type(owner=None), with_type(relied="maybe"), with_type(cross="divisible"),
    with_type(cross="crossed"), with_type(cross={"names": "strict"}), with_type(cross={"as": "container", "names": "x"}),
    with_type(cross={"as": "container", "divide": "/a"}), with_type(cross={"as": "indivisible", "names": "strict"}),
    with_type(cross={"as": "divisible"}), with_type(cross={"as": "divisible", "divide": ["/a", "/a"]}),
    with_type(cross={"as": "divisible", "divide": "/a/*"}), with_type(cross={"as": "divisible", "divide": ""}),
    with_type(cross={"as": "divisible", "divide": "/a", "combine": {"/b": "average"}}),
    with_type(cross={"as": "divisible", "divide": "/a", "combine": {"b": "sum"}}),
    with_type(cross={"as": "divisible", "divide": "/a", "names": "strict"}), with_type(cross=None), with_type(cross=[]),
    with_type(references={"body": {"/a": {"kind": "reliance"}}}),
    with_type(references={"body": {"/a": {"type": "image.image", "kind": "needs"}}}),
    with_type(references={"body": {"/a": {"type": "*", "kind": "container"}}}),
    with_type(references={"uses": {"image.image": 1}}), with_operation(uses=["image.image", "image.image"]),
]


def schema_accepts(schema, content):
    return jsonschema.Draft202012Validator(schema).is_valid(content)


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_both_accept(lint, schema, number):
    content = GOOD[number]
    assert schema_accepts(schema, content), content
    result = lint(content)
    assert result.status == 0, (content, result)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_both_refuse(lint, schema, number):
    content = BAD[number]
    result = lint(content)
    assert result.status == 1, (content, result)
    assert not schema_accepts(schema, content), (content, result)


# What only the reader sees.
MEANINGLESS = [
    with_type(references={"body": {"/a": "image.imag"}}),
    with_type(ignore="nobody"),
    with_type(resolutions=[{"between": ["raed", "read"], "as": "any-order"}]),
    {**MINIMAL, "types": {"imag.image": TYPE}},
    {**MINIMAL, "types": {"image.image": TYPE, "image.other": copy.deepcopy(TYPE)}},
    with_operation(key="x", body="opaque"),
    with_operation(replays=True),
    with_operation(reader="service"),
    with_type(item="/{a}/{a}"),
    with_type(references={"uses": ["image.imag"]}),
    with_operation(uses=["*"]),
    with_operation(divide=["/by"]),
    with_type(references={"body": {"/a": {"type": "image.image", "kind": "container"}}}),
    with_type(cross="container", references={"body": {"/a": {"type": "image.image", "kind": "container"}}}),
    with_type(cross={"as": "divisible", "divide": ["/a", "/a/b"]}),
    with_type(cross={"as": "divisible", "divide": ["/id"]}),
    with_type(cross={"as": "divisible", "divide": ["/a"], "combine": {"/a": "max"}}),
    with_type(cross={"as": "divisible", "divide": ["/a"]}, operations={"patch": None, "delete": {"divide": "/by"}}),
    with_type(cross={"as": "divisible", "divide": ["/a"], "combine": {f"/b{i}": "sum" for i in range(32)}}),
    with_type(cross="indivisible", owner="site"),
]


@pytest.mark.parametrize("number", range(len(MEANINGLESS)))
def test_what_a_schema_cannot_say(lint, schema, number):
    assert schema_accepts(schema, MEANINGLESS[number])
    assert lint(MEANINGLESS[number]).status == 1


# ---- what is written about it ----------------------------------------------------------------------------------------


def test_examples_of_the_manual(lint, schema, root):
    """Every whole description in docs/descriptions.md is one."""
    blocks = re.findall(r"```yaml\n(.*?)```", (root / "docs/descriptions.md").read_text(), re.DOTALL)
    whole = [block for block in blocks if block.startswith("format:")]
    assert len(whole) >= 2
    for block in whole:
        assert schema_accepts(schema, yaml.safe_load(block)), block
        result = lint(block)
        assert result.status == 0 and "warning" not in result.out, result


def test_manual_describes_every_key(schema, root):
    manual = (root / "docs/descriptions.md").read_text()
    keys = set(schema["properties"])
    for definition in schema["$defs"].values():
        keys |= set(definition.get("properties", {}))
    for key in keys:
        assert re.search(rf"\| `{key}`[ ,|]", manual), key


def options(cheops):
    return re.findall(r"(?<=[ ,])--?[a-zA-Z-]+", cheops("app", "--help").out.split("Options:")[1].split("\n\n")[0])


def test_manual_page_and_completion_have_every_option(cheops, root):
    page = (root / "packaging/man/cheops-app.1").read_text().replace("\\-", "-")
    completion = (root / "packaging/completions/cheops.bash").read_text().split("_cheops_command_app()")[1].split("\n}")[0]
    found = [option for option in options(cheops) if option not in ("-H",)]
    assert "--app" in found and "--output" in found
    for option in found:
        assert option in page and option in completion, option
