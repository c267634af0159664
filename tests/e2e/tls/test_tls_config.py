"""TLS and policy in the configuration: the schema and the reader accept the same."""
import copy
import json

import jsonschema
import pytest

MINIMAL = {"site": "Site1", "api": "127.0.0.1:8079",
           "services": {"compute": {"front": "127.0.0.1:8081", "instances": ["127.0.0.1:9081"]}}}
FRONT = {"certificate": "server.pem", "key": "server.key"}


def service(**changes):
    made = copy.deepcopy(MINIMAL)
    made["services"]["compute"].update(changes)
    return made


def rule(**keys):
    return {**MINIMAL, "policy": {"rules": [{"name": "partners", **keys}]}}


def hook(url="http://127.0.0.1:9000/cheops", **keys):
    return {**MINIMAL, "webhooks": {"audit": {"url": url, **keys}}}


GOOD = [
    service(front_tls=FRONT), service(front_tls={**FRONT, "clients": "root.pem"}),
    service(instances_tls={}), service(instances_tls=None), service(instances_tls={"ca": "root.pem"}),
    service(instances_tls={"name": "a.example"}), service(instances_tls={"name": "::1"}), service(instances_tls=FRONT),
    {**MINIMAL, "policy": None}, {**MINIMAL, "policy": {}}, {**MINIMAL, "policy": {"others": "refuse"}},
    {**MINIMAL, "policy": {"others": "allow", "rules": []}},
    rule(), rule(sites="Site2"), rule(sites=["Site2", "Site3"]), rule(tags={"tier": "partner", "rack": 3}),
    rule(services="compute"), rule(services=[]), rule(operations=["read", "write"]), rule(operations="read"),
    rule(operations=[]), rule(rate=1, concurrent=1000000),
    {**MINIMAL, "webhooks": None}, {**MINIMAL, "webhooks": {}}, hook(), hook("HTTP://127.0.0.1:9000"), hook("http://127.0.0.1"),
    hook("https://127.0.0.1/a?b=c"), hook("https://[::1]:9000/", tls={"ca": "root.pem"}), hook("https://[::1]", tls=None),
    hook(events="operation"), hook(events=["operation", "replicant", "repaired", "conflict"]), hook(timeout="1.5s"),
    hook(secret="server.key"),
]

BAD = [
    service(front_tls=None), service(front_tls={}), service(front_tls={"certificate": "server.pem"}),
    service(front_tls={"key": "server.key"}), service(front_tls="server.pem"), service(front_tls={**FRONT, "clients": []}),
    service(instances_tls={"certificate": "server.pem"}), service(instances_tls={"key": "server.key"}),
    service(instances_tls={"name": "a b"}), service(instances_tls={"name": ""}), service(instances_tls=["root.pem"]),
    service(instances_tls={"ca": ""}),
    {**MINIMAL, "policy": "refuse"}, {**MINIMAL, "policy": {"others": "maybe"}}, {**MINIMAL, "policy": {"rules": {}}},
    {**MINIMAL, "policy": {"rules": ["partners"]}}, {**MINIMAL, "policy": {"rules": [{"sites": "Site2"}]}},
    {**MINIMAL, "policy": {"rules": [{"name": f"rule {n}"} for n in range(65)]}},
    rule(name=""), rule(sites=[]), rule(sites=[["a"]]), rule(tags={}), rule(tags=["tier"]), rule(services=None),
    rule(operations="delete"), rule(operations=[None]), rule(rate=0), rule(rate=1.5), rule(rate="many"), rule(concurrent=0),
    rule(concurrent=1000001),
    {**MINIMAL, "webhooks": []}, {**MINIMAL, "webhooks": {"audit": "http://127.0.0.1/"}}, {**MINIMAL, "webhooks": {"audit": {}}},
    {**MINIMAL, "webhooks": {f"hook {n}": {"url": "http://127.0.0.1:9000/"} for n in range(17)}},
    hook("127.0.0.1:9000"), hook("ftp://127.0.0.1/"), hook("http://"), hook("http:///cheops"), hook("http://a:b@127.0.0.1/"),
    hook("http://127.0.0.1/#a"), hook("http://127.0.0.1?a=b"), hook("http://127.0.0.1/a b"), hook("http://127.0.0.1/" + 1024 * "a"),
    hook(events=[]), hook(events=["reset"]), hook(events={}), hook(secret=[]), hook(timeout=10), hook(timeout=None),
    hook(retries=3), hook("https://127.0.0.1/", tls={"name": "a b"}),
]


@pytest.fixture(scope="module")
def schema(root):
    made = json.loads((root / "docs/agent.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.fixture
def check(cheops, ours, pair):
    """Beside the files that the configurations name."""
    def run(content):
        path = ours.folder / "agent.yaml"
        path.write_text(json.dumps(content))
        return cheops("agent", "--check", "-c", str(path))

    return run


@pytest.mark.parametrize("content", GOOD)
def test_both_accept(check, schema, content):
    schema.validate(content)
    result = check(content)
    assert result.status == 0, result


@pytest.mark.parametrize("content", BAD)
def test_both_refuse(check, schema, content):
    assert not schema.is_valid(content)
    assert check(content).status == 1


# What a schema cannot say.
@pytest.mark.parametrize("content, text", [
    (rule(services=["compite"]), "did you mean `compute`?"),
    ({**MINIMAL, "policy": {"rules": [{"name": "a"}, {"name": "a"}]}}, "each needs a name of its own"),
    (service(front_tls={**FRONT, "key": "root.key"}), "the key does not belong to the certificate"),
    (service(front_tls={**FRONT, "clients": "server.key"}), "there is no certificate in it"),
    (service(instances_tls={"ca": "nowhere.pem"}), "nowhere.pem"),
])
def test_the_reader_says_why(check, content, text):
    result = check(content)
    assert result.status == 1 and text in result.err and "agent.yaml:1:" in result.err, result
