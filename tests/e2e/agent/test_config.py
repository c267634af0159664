"""cheops agent --check: the command, and that docs/agent.schema.json and the reader accept the same."""
import json
import re

import jsonschema
import pytest
import yaml

SERVICES = {"compute": {"front": "127.0.0.1:8081", "instances": ["127.0.0.1:9081"]}}
MINIMAL = {"site": "Site1", "api": "127.0.0.1:8079", "services": SERVICES}
WITH_PEER = {**MINIMAL, "peer": "0.0.0.0:8070", "advertise": "192.0.2.1:8070", "state": "state"}


@pytest.fixture(scope="session")
def schema(root):
    made = json.loads((root / "docs/agent.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(made)
    return made


@pytest.fixture
def check(cheops, tmp_path):
    """Writes a configuration, given as text or as what YAML makes of it, and checks it."""
    def run(content, *arguments, env=None):
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        (tmp_path / "agent.yaml").write_text(text)
        return cheops("agent", "--check", "-c", "agent.yaml", *arguments, cwd=tmp_path, env=env)
    return run


# ---- the command ----------------------------------------------------------------------------------------------------


def test_fine(check):
    assert check(MINIMAL).out == "agent.yaml: ok: site Site1, 1 service\n"
    result = check(WITH_PEER)
    assert (result.status, result.out, result.err) == (0, "agent.yaml: ok: site Site1, 1 service\n", "")


def test_refused(check):
    result = check("site: Site1\napi: 127.0.0.1:8079\nservces: {}\n")
    assert result.status == 1 and result.out == ""
    assert result.err.startswith("cheops: agent.yaml:3:1: unknown key `servces`: accepted are `site`, `api`, ")
    assert result.err.endswith("; did you mean `services`?\n")


def test_control_characters_do_not_reach_the_terminal(check):
    result = check('site: "\\e[31m"\n')
    assert result.status == 1 and "\x1b" not in result.err


def test_flags_beat_the_environment_which_beats_the_file(check):
    assert "site FromFile," in check({**MINIMAL, "site": "FromFile"}).out
    assert "site FromEnv," in check(MINIMAL, env={"CHEOPS_SITE": "FromEnv"}).out
    assert "site FromFlag," in check(MINIMAL, "--site", "FromFlag", env={"CHEOPS_SITE": "FromEnv"}).out


@pytest.mark.parametrize("arguments, env, said", [
    (["--threads", "x"], {}, "--threads is `x`; it has to be a whole number from 1 to 64"),
    ([], {"CHEOPS_THREADS": "65"}, "CHEOPS_THREADS is `65`; it has to be a whole number from 1 to 64"),
    (["--log=loud"], {}, "--log is `loud`; accepted are `error`, `warn`, `info` and `debug`"),
    (["--api", "nowhere"], {}, "--api: `nowhere` is not an address"),
    (["--api", "127.0.0.1:8081"], {}, "`front` is `127.0.0.1:8081`, where `api` listens already"),
    (["--peer", "127.0.0.1:8079"], {}, "--peer is `127.0.0.1:8079`, where `api` listens already"),
    (["--advertise", "192.0.2.1:8070"], {}, "--advertise is `192.0.2.1:8070`, but there is no `peer`"),
    ([], {"CHEOPS_ADVERTISE": "[::]:8070", "CHEOPS_PEER": "0.0.0.0:8070"},
     "CHEOPS_ADVERTISE is `[::]:8070`; it has to be where other agents reach this one"),
    (["--state", ""], {}, "--state is empty; it has to be the path of a folder"),
    (["--site", ""], {}, "--site is empty; it has to be a name"),
])
def test_complaints_name_the_flag_or_variable(check, arguments, env, said):
    result = check(MINIMAL, *arguments, env=env)
    assert result.status == 1 and said in result.err


@pytest.mark.parametrize("arguments", [["--chekc"], ["agent.yaml"], ["-c"], ["--check=yes"]])
def test_wrong_usage(cheops, arguments):
    assert cheops("agent", *arguments).status == 2


def test_missing_file(cheops, tmp_path):
    result = cheops("agent", "--check", "-c", "none.yaml", cwd=tmp_path)
    assert (result.status, result.err) == (1, "cheops: cannot read `none.yaml`: No such file or directory\n")


def test_from_a_pipe(cheops):
    script = f'"$CHEOPS" agent --check -c <(echo {json.dumps(json.dumps(MINIMAL))})'
    assert cheops.shell(script).status == 0


@pytest.mark.parametrize("key", ["peers", "hop_key", "hop_key_file"])
def test_keys_of_the_time_before_sites_joined(check, key):
    assert f"unknown key `{key}`" in check({**MINIMAL, key: "x"}).err


def test_checking_makes_nothing(check, tmp_path):
    assert check(WITH_PEER).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["agent.yaml"]


def test_identity_of_another_site(cheops, tmp_path):
    """A folder that belongs to another site is not taken over, and is left as it is."""
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps(WITH_PEER))
    assert cheops("site", "init", "-c", str(path)).status == 0
    path.write_text(json.dumps({**WITH_PEER, "site": "Site2"}))
    result = cheops("agent", "-c", str(path))
    assert result.status == 1
    assert f"the certificate in {tmp_path}/state is that of `Site1`, but `site` is `Site2`" in result.err


@pytest.mark.parametrize("changes, said", [
    ({"peer": None, "advertise": None}, "is part of a mesh ({state}/site.crt), but the configuration has no `peer`"),
    ({"advertise": None}, "`peer` is 0.0.0.0:8070, which other agents cannot be told; add where they reach this one"),
])
def test_site_of_a_mesh_has_to_be_met(cheops, tmp_path, changes, said):
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps(WITH_PEER))
    assert cheops("site", "init", "-c", str(path)).status == 0
    path.write_text(json.dumps({key: value for key, value in WITH_PEER.items() if key not in changes}))
    result = cheops("agent", "-c", str(path))
    assert result.status == 1 and said.replace("{state}", f"{tmp_path}/state") in result.err


def test_names_are_looked_up(check):
    assert check({**MINIMAL, "api": "localhost:8079"}).status == 0


def test_help_names_every_option_of_the_file_that_is_a_flag(cheops, schema):
    text = cheops("agent", "--help").out
    for key in ("site", "api", "peer", "advertise", "state", "threads", "log"):
        assert f"--{key} " in text and f"CHEOPS_{key.upper()}" in text and key in schema["properties"]


# ---- schema and reader agree ----------------------------------------------------------------------------------------

# Where keys are fixed: the schema's definition, and a configuration with the key `zork` there.
PLACES = {
    "": {**MINIMAL, "zork": 1},
    "service": {**MINIMAL, "services": {"compute": {**SERVICES["compute"], "zork": 1}}},
    "timeouts": {**MINIMAL, "timeouts": {"zork": 1}},
    "limits": {**MINIMAL, "limits": {"zork": 1}},
    "front_tls": {**MINIMAL, "services": {"compute": {**SERVICES["compute"], "front_tls": {"zork": 1}}}},
    "instances_tls": {**MINIMAL, "services": {"compute": {**SERVICES["compute"], "instances_tls": {"zork": 1}}}},
    "policy": {**MINIMAL, "policy": {"zork": 1}},
    "rule": {**MINIMAL, "policy": {"rules": [{"zork": 1}]}},
    "webhook": {**MINIMAL, "webhooks": {"audit": {"zork": 1}}},
}


@pytest.mark.parametrize("place", PLACES)
def test_the_same_keys(check, schema, place):
    """The reader lists what it accepts when it meets another key."""
    result = check(PLACES[place])
    accepted = re.search(r"unknown key `zork`: accepted are (.*)", result.err).group(1)
    properties = (schema["$defs"][place] if place else schema)["properties"]
    assert set(re.findall("`([a-z_]+)`", accepted)) == set(properties)


def test_every_place_of_the_schema_is_compared(schema):
    fixed = {name for name, definition in schema["$defs"].items() if "properties" in definition}
    assert fixed | {""} == set(PLACES)


def with_service(**changes):
    return {**MINIMAL, "services": {"compute": {**SERVICES["compute"], **changes}}}


GOOD = [
    MINIMAL, WITH_PEER, {**MINIMAL, "peer": "0.0.0.0:8070"}, {**MINIMAL, "state": "/var/lib/cheops/Site1"},
    {**MINIMAL, "peer": "[::]:8070", "advertise": "localhost:8071"},
    {**MINIMAL, "threads": 64, "log": "debug", "tags": {"region": "west", "rack": 3, "gold": True}},
    {**MINIMAL, "tags": None, "timeouts": None, "limits": None},
    with_service(instances="127.0.0.1:9081"), with_service(version="2.1"), with_service(version=2.1),
    with_service(carry=[]), with_service(carry="header"),
    with_service(carry=["traceparent", "request-id:X-Request-Id", "append:X-Auth-Token", "append:X-Subject-Token:compute"]),
    with_service(carry=["request-id:X-OpenStack-Request-ID:req-"]),
    with_service(front="[::1]:8081"),
    {**MINIMAL, "timeouts": {"connect": "2s", "header": "1.5s", "answer": 0, "idle": "1h", "request": "2min", "stop": "1ms"}},
    {**MINIMAL, "limits": {"head": "8KiB", "fields": 16, "target": 4096, "connections": 1}},
]

BAD = [
    [], "text", {}, {"site": "Site1"},
    {**MINIMAL, "site": ""}, {**MINIMAL, "site": ["a"]}, {**MINIMAL, "site": "x" * 129}, {**MINIMAL, "site": "a\x07b"},
    {**MINIMAL, "api": "8079"}, {**MINIMAL, "api": {"port": 1}}, {**MINIMAL, "peer": "a b:1"},
    {**MINIMAL, "threads": 0}, {**MINIMAL, "threads": 65}, {**MINIMAL, "threads": 1.5}, {**MINIMAL, "threads": "all"},
    {**MINIMAL, "log": "loud"}, {**MINIMAL, "log": None},
    {**MINIMAL, "advertise": "192.0.2.1:8070"}, {**WITH_PEER, "advertise": "nowhere"}, {**WITH_PEER, "advertise": None},
    {**MINIMAL, "state": ""}, {**MINIMAL, "state": None}, {**MINIMAL, "state": ["a"]},
    {**MINIMAL, "peers": {"Site2": {"address": "127.0.0.1:8170"}}}, {**MINIMAL, "hop_key": "x" * 16},
    {**MINIMAL, "services": {}}, {**MINIMAL, "services": {"compute": None}}, {**MINIMAL, "services": ["compute"]},
    {**MINIMAL, "services": {f"s{i}": {"front": f"127.0.0.1:{i + 1}", "instances": "127.0.0.2:1"} for i in range(65)}},
    {**MINIMAL, "services": {"x" * 129: SERVICES["compute"]}},
    with_service(instances=[]), with_service(instances=None), with_service(instances=["127.0.0.1:9", "127.0.0.1:9"]),
    with_service(instances=[f"127.0.1.{i}:9" for i in range(65)]), with_service(front=None),
    with_service(version=None), with_service(version=["2"]),
    with_service(carry=None), with_service(carry=["headr"]), with_service(carry=["request-id"]),
    with_service(carry=["osprofiler"]), with_service(carry=["osprofiler:"]),
    with_service(carry=["append:"]), with_service(carry=["append:a b"]), with_service(carry=["append:A:"]), with_service(carry=["header", "header"]),
    with_service(carry=["header", "baggage", "traceparent", "append:A", "append:B"]),
    {**MINIMAL, "services": {"compute": {"front": "127.0.0.1:8081"}}},
    {**MINIMAL, "services": {"compute": {"instances": "127.0.0.1:9081"}}},
    {**MINIMAL, "tags": {"region": None}}, {**MINIMAL, "tags": "west"},
    {**MINIMAL, "timeouts": {"connect": 2}}, {**MINIMAL, "timeouts": {"connect": 0}},
    {**MINIMAL, "timeouts": {"stop": "soon"}}, {**MINIMAL, "timeouts": "2s"},
    {**MINIMAL, "limits": {"head": "32KB"}}, {**MINIMAL, "limits": {"head": 100}}, {**MINIMAL, "limits": {"fields": 15}},
    {**MINIMAL, "limits": {"fields": 1025}}, {**MINIMAL, "limits": {"connections": 0}},
    {**MINIMAL, "limits": {"connections": "many"}},
]


def schema_accepts(schema, content):
    return jsonschema.Draft202012Validator(schema).is_valid(content)


@pytest.mark.parametrize("content", GOOD)
def test_both_accept(check, schema, content):
    assert schema_accepts(schema, content)
    assert check(content).status == 0


@pytest.mark.parametrize("content", BAD)
def test_both_refuse(check, schema, content):
    assert not schema_accepts(schema, content)
    assert check(content).status == 1


@pytest.mark.parametrize("language", ["yaml"])
def test_examples_of_the_manual(check, schema, root, language):
    """Every whole configuration in docs/agent.md is one."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (root / "docs/agent.md").read_text(), re.DOTALL)
    whole = [block for block in blocks if block.startswith(("site:", "# /etc/cheops/agent.yaml"))]
    assert len(whole) >= 2
    for block in whole:
        assert schema_accepts(schema, yaml.safe_load(block)), block
        result = check(block)
        assert result.status == 0, result


# ---- what is installed beside it ------------------------------------------------------------------------------------


def options(cheops):
    return re.findall(r"(?<=[ ,])--?[a-z]+", cheops("agent", "--help").out.split("Options:")[1].split("\n\n")[0])


def test_manual_page_and_completion_have_every_option(cheops, root):
    page = (root / "packaging/man/cheops-agent.1").read_text().replace("\\-", "-")
    completion = (root / "packaging/completions/cheops.bash").read_text().split("_cheops_command_agent()")[1].split("_cheops()")[0]
    for option in options(cheops):
        assert option in page and option in completion


def test_manual_describes_every_key(schema, root):
    manual = (root / "docs/agent.md").read_text()
    keys = set(schema["properties"])
    for definition in schema["$defs"].values():
        keys |= set(definition.get("properties", {}))
    for key in keys:
        assert f"| `{key}` |" in manual, key
