"""docs/openapi.yaml, and how answers are held against it."""
import json
import pathlib
import re

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPENAPI = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8"))
SEEN = set()  # (path, method, status) that a test has met


def resolve(thing):
    while "$ref" in thing:
        found = OPENAPI
        for name in thing["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        thing = found
    return thing


def check(value, schema):
    resolver = jsonschema.RefResolver.from_schema(OPENAPI)
    jsonschema.Draft202012Validator(schema, resolver=resolver).validate(value)


def response_of(path, method, status):
    responses = OPENAPI["paths"][path][method.lower()]["responses"]
    return resolve(responses.get(str(status), responses["default"]))


def described_path(path):
    """As the description has it: with names in braces."""
    for known in OPENAPI["paths"]:
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(known)), path):
            return known
    raise AssertionError(f"{path} is not described")


def check_answer(method, target, status, headers, body):
    """The answer is one that the description has, and what is in it has the shape that is described."""
    path = described_path(target.partition("?")[0])
    content = response_of(path, method, status)["content"]
    assert headers["Content-Type"] in content, (method, target, headers)
    if headers["Content-Type"].endswith("json"):
        check(json.loads(body), content[headers["Content-Type"]]["schema"])
    SEEN.add((path, method.lower(), status))
