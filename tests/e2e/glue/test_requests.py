"""The shipped descriptions of real applications: how they read the requests of a table.

openstack.yaml and kubernetes.yaml here are lists of

    ask       METHOD TARGET, as on the wire
    content   the type of the body
    body      as text
    unknown   true: the description does not mention it, and it is passed on; nothing more is said
    is        TYPE OPERATION EFFECT
    id, in    the item's id, and the collection in one form; the path, where there is none
    facet     what part of the item is concerned
    creates, opaque, streams
    elsewhere the body that other sites get, where it is another: without preconditions
    places    what stands in path, query and body: WHERE KIND VALUE TYPE, and whether each site's own id is put there

What a row does not mention has to be absent from the answer: no id, no facet, no place.
"""
import pathlib

import pytest
import yaml

HERE = pathlib.Path(__file__).parent
KEYS = {"ask", "content", "body", "unknown", "is", "id", "in", "facet", "creates", "opaque", "streams", "elsewhere", "places"}


def rows(app):
    return yaml.safe_load((HERE / f"{app}.yaml").read_text())


REQUESTS = [(app, number) for app in ("openstack", "kubernetes") for number in range(len(rows(app)))]
LISTS = {app: rows(app) for app in ("openstack", "kubernetes")}


def expected(app, row):
    type_name, operation, effect = row["is"].split()
    return {
        "application": app, "service": type_name.split(".")[0], "type": type_name, "operation": operation, "effect": effect,
        "facet": row.get("facet"), "id": row.get("id"), "collection": row.get("in", ""),
        "elsewhere": row.get("elsewhere"), "ids": "collection" if app == "kubernetes" and "id" in row else None,
        "creates": row.get("creates", False), "opaque": row.get("opaque", False), "streams": row.get("streams", False),
        "credentials": "agent" if type_name.startswith("identity.") else "forward", "trouble": None, "needs_body": False, "places": row.get("places", []),
    }


def place(found):
    return " ".join([found["in"], found["kind"], found["value"], found["type"] or "any",
                     "rewritten" if found["rewritten"] else "left"])


@pytest.mark.parametrize("app,number", REQUESTS)
def test_reading(cheops, app, number):
    row = LISTS[app][number]
    assert set(row) <= KEYS, row
    method, target = row["ask"].split(" ", 1)
    options = ["--content-type", row["content"]] if "content" in row else []
    body = [row["body"]] if "body" in row else []
    result = cheops("app", "explain", "-o", "json", "--app", app, *options, method, target, *body)
    if row.get("unknown"):
        assert (result.status, result.json) == (1, {"known": False}), row
        return
    assert (result.status, result.err) == (0, ""), row
    answer = result.json
    answer["places"] = [place(found) for found in answer["places"]]
    wanted = expected(app, row)
    if wanted["ids"] is None:  # what is named by a namespace and a name is known by both
        del wanted["ids"]
    assert {key: answer[key] for key in wanted} == wanted, row


@pytest.mark.parametrize("app", LISTS)
def test_the_table_is_large_and_says_nothing_twice(app, root):
    asked = [(row["ask"], row.get("content"), row.get("body")) for row in LISTS[app]]
    assert len(asked) >= 40 and len(set(asked)) == len(asked)
    assert f"## {app}\n\n{len(asked)} requests in the table." in (root / "docs/apps.md").read_text()
