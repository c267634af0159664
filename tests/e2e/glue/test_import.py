"""cheops app import: drafts from OpenAPI documents lint, and say what the document says."""
import json

import pytest
import yaml

PET = {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"name": {"type": "string"}}}]}
BASE = {"type": "object", "properties": {"id": {"type": "integer"}, "created_at": {"type": "string", "format": "date-time"},
                                         "born": {"type": "string", "format": "date-time"}}}
USER = {"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}}
VISITS = {"type": "object", "properties": {
    "next": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
    "visits": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}}}
VISIT = {"type": "object", "properties": {"visit": {"type": "object", "properties": {"id": {"type": "integer"}}}}}


def answers(schema, status="200"):
    return {"responses": {status: {"content": {"application/json": {"schema": schema}}}}}


def takes(schema):
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {}}


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


PETS = {
    "openapi": "3.0.3",
    "info": {"title": "Pet Store!"},
    "servers": [{"url": "https://pets.example/api/v3/"}],
    "paths": {
        "/pets": {"get": answers({"type": "array", "items": ref("Pet")}), "post": takes(ref("Pet"))},
        "/pets/{pet-id}": {"get": answers(ref("Pet")), "put": takes(ref("Pet")), "delete": {}},
        "/pets/{pet-id}/photo": {
            "put": {"requestBody": {"content": {"image/png": {}}}},
            "get": {"responses": {"200": {"content": {"image/png": {}}}}}},
        "/pets/{pet-id}/feed": {"post": answers(ref("Pet"))},
        "/pets/{petId}/visits": {"get": answers(VISITS), "post": {}},
        "/pets/{petId}/visits/{visitId}": {"get": answers(VISIT)},
        "/pets/findByStatus": {"get": answers({"type": "array", "items": ref("Pet")})},
        "/users": {"post": takes(ref("User"))},
        "/users/{username}": {"get": answers(ref("User"), "default"), "put": {}},
        "/users/login": {"get": {}},
        "/files/{name}.json": {"get": {}},
        "/admin/visits/{id}": {"get": {}},
        "/loop/{id}": {"get": answers(ref("Loop"))},
    },
    "components": {"schemas": {"Pet": PET, "Base": BASE, "User": USER, "Loop": {"allOf": [ref("Loop")]},
                               "Ring": {"$ref": "#/components/schemas/Ring"}}},
}


@pytest.fixture
def draft(cheops, tmp_path):
    """Imports a document; the draft has to be fine, without a doubt."""
    def run(document, *arguments):
        (tmp_path / "openapi.json").write_text(json.dumps(document))
        result = cheops("app", "import", *arguments, "openapi.json", cwd=tmp_path)
        assert (result.status, result.err) == (0, ""), result
        (tmp_path / "app.yaml").write_text(result.out)
        linted = cheops("app", "lint", "app.yaml", cwd=tmp_path)
        assert linted.status == 0, linted
        return yaml.safe_load(result.out), result.out
    return run


def test_openapi_3(draft):
    made, text = draft(PETS)
    assert made["application"] == "pet-store"
    assert made["services"] == {"pet-store": {"under": ["/api/v3"]}}
    types = made["types"]
    pets = types["pet-store.pets"]
    assert pets["collection"] == "/pets" and pets["item"] == "/pets/{pet_id}"
    assert pets["name"] == "/name" and pets["volatile"] == ["/created_at"] and "id" not in pets
    operations = pets["operations"]
    assert operations["patch"] is None and "replace" not in operations
    assert operations["photo-put"] == {"method": "PUT", "path": "{item}/photo", "effect": "replace", "facet": "photo",
                                       "body": "opaque", "answer": "none"}
    assert operations["photo-get"]["answer"] == "opaque"
    assert operations["feed-post"] == {"method": "POST", "path": "{item}/feed", "effect": "relative"}
    assert operations["findByStatus-get"] == {"method": "GET", "path": "/pets/findByStatus", "effect": "list"}
    visits = types["pet-store.pets-visits"]
    assert visits["object"] == "/visit" and visits["list"] == "/visits"
    assert visits["references"] == {"path": {"petId": "pet-store.pets"}}
    users = types["pet-store.users"]
    assert users["id"] == "/username" and users["identity"] == "chosen"
    assert users["operations"]["list"] is None and users["operations"]["login-get"]["effect"] == "pass"
    assert types["pet-store.visits"]["item"] == "/admin/visits/{id}"
    assert "#   /files/{name}.json\n" in text


def test_what_is_drafted_is_what_is_explained(cheops, draft, tmp_path):
    draft(PETS, "--name", "pets")
    def explained(*request):
        return cheops("app", "explain", "-o", "json", "--app", "app.yaml", *request, cwd=tmp_path).json
    assert explained("GET", "/api/v3/pets/7")["type"] == "pets.pets"
    assert explained("GET", "/pets/findByStatus")["operation"] == "findByStatus-get"
    assert explained("POST", "/pets/7/feed")["effect"] == "relative"
    assert explained("DELETE", "/users/me") == {"known": False}


def test_swagger_2(draft):
    made, _ = draft({
        "swagger": "2.0", "info": {"title": "2nd"}, "basePath": "/v1",
        "paths": {
            "/things": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Things"}}}},
                        "post": {"parameters": [{"in": "body", "schema": {"$ref": "#/definitions/Thing"}}]}},
            "/things/{id}": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}}},
        },
        "definitions": {"Thing": {"properties": {"id": {}, "name": {}}},
                        "Things": {"properties": {"count": {"type": "integer"},
                                                  "items": {"type": "array", "items": {"$ref": "#/definitions/Thing"}}}}},
    })
    assert made["services"] == {"service": {"under": ["/v1"]}}
    assert made["types"]["service.things"]["list"] == "/items" and made["types"]["service.things"]["name"] == "/name"


NASTY = {
    "same shape": ["/a/{x}", "/a/{y}", "/a/{x}/b", "/a/{y}/b"],
    "names that clash": ["/a/b/{id}", "/c/b/{id}", "/b/{id}", "/{t}/b/{id}", "/d/{t}/b/{id}"],
    "variables alone": ["/{a}", "/{a}/{b}", "/{a}/{b}/{c}", "/x/{id}"],
    "odd segments": ["/a//b", "/a/", "/", "", "a", "/a/{", "/a/}", "/a/{}", "/a/{b}{c}", "/a/{1}", "/../{x}", "/%61/{x}",
                     "/a b/{x}", "/ü/{x}", "/ok/{id}"],
    "twice the same variable": ["/a/{id}/b/{id}", "/a/{id}"],
    "many variables": ["/".join([""] + [f"s{i}/{{v{i}}}" for i in range(12)]), "/a/{id}"],
    "very long": ["/" + "a" * 600 + "/{id}", "/b/{id}", "/c/" + "d" * 90 + "/{id}"],
    "controls": ["/a\u001b/{id}", "/b/{id}", "/a\n# x/{id}"],
    "words of YAML": ["/yes/{id}", "/null/{id}", "/~/{id}", "/*/{id}", "/&a/{id}", "/no/{id}/on"],
    "many operations": ["/a/{id}"] + [f"/a/{{id}}/o{i}" for i in range(100)],
    "many types": [f"/t{i}/{{id}}" for i in range(600)],
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_paths_still_give_a_draft_that_lints(draft, name):
    methods = {method: {} for method in ("get", "post", "put", "patch", "delete")}
    made, _ = draft({"openapi": "3.1.0", "info": {}, "paths": {path: methods for path in NASTY[name]}})
    assert made["types"]


@pytest.mark.parametrize("text, said", [
    ("{", "openapi.json:1:1: not valid JSON"),
    ("[]", "is no OpenAPI 3 or Swagger 2 document: it has neither"),
    ('{"openapi": "4"}', "is no OpenAPI 3 or Swagger 2 document: it has neither"),
    ('{"openapi": "3.0.0"}', "it has no `paths`"),
    ('{"openapi": "3.0.0", "paths": {}}', "has no path that looks like a collection or an item"),
    ('{"openapi": "3.0.0", "paths": {"/a": 1, "/b/{c}.json": []}}', "has no path that looks like a collection or an item"),
])
def test_refused(cheops, tmp_path, text, said):
    (tmp_path / "openapi.json").write_text(text)
    result = cheops("app", "import", "openapi.json", cwd=tmp_path)
    assert result.status == 1 and result.out == "" and said in result.err

