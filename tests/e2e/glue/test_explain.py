"""cheops app explain: what Cheops makes of a request, for people and for programs."""
import pytest

# (application, request, what is expected of the JSON)
TABLE = [
    ("sample", ["POST", "/images", '{"name": "debian"}'],
     {"service": "image", "type": "image.image", "operation": "create", "effect": "create", "id": None,
      "collection": "/images", "repeatable": False, "replicates": True}),
    ("sample", ["GET", "/images"], {"operation": "list", "effect": "list", "replicates": False}),
    ("sample", ["GET", "/images/42"], {"operation": "read", "effect": "read", "id": "42", "replicates": False}),
    ("sample", ["PUT", "/images/42"], {"operation": "replace", "effect": "replace", "replicates": True}),
    ("sample", ["PATCH", "/images/42"], {"operation": "patch", "effect": "assign", "repeatable": True}),
    ("sample", ["-H", "Content-Type: application/json-patch+json", "PATCH", "/images/42"],
     {"operation": "json-patch", "effect": "relative", "repeatable": False}),
    ("sample", ["--content-type", "application/json-patch+json; x=y", "PATCH", "/images/42"], {"operation": "json-patch"}),
    ("sample", ["DELETE", "/images/42"], {"operation": "delete", "effect": "delete", "replicates": True}),
    ("sample", ["PUT", "/images/42/file"],
     {"operation": "upload", "effect": "replace", "facet": "file", "opaque": True, "repeatable": True}),
    ("sample", ["GET", "/images/42/file"], {"operation": "download", "effect": "read", "answer_read": False}),
    ("sample", ["POST", "/servers/7/action", '{"reboot": {}}'],
     {"service": "compute", "operation": "reboot", "key": "reboot", "effect": "relative", "id": "7"}),
    ("sample", ["POST", "/servers/7/action"], {"operation": None, "needs_body": True, "replicates": False}),
    ("sample", ["POST", "/servers/7/action", '{"x": 1}'],
     {"operation": None, "trouble": "the body's first member is `x`; described are `stop`, `start`, `reboot`"}),
    ("sample", ["POST", "/pools/7/grow", '{"by": 3}'], {"service": "network", "operation": "grow", "effect": "relative"}),
    ("sample", ["POST", "/projects/5/servers", '{"name": "vm"}'],
     {"service": "compute", "type": "compute.server", "operation": "create", "collection": "/projects/5/servers", "replicates": True}),
    ("sample", ["GET", "/projects/5/volumes?name=x"], {"type": "compute.volume", "operation": "list", "replicates": False}),
    ("sample", ["DELETE", "/projects/5?cascade=true"], {"type": "compute.project", "operation": "delete", "id": "5"}),
    ("sample", ["POST", "/volumes/7/attach", '{"server": "8"}'], {"type": "compute.volume", "operation": "attach", "effect": "relative"}),
    ("sample", ["PATCH", "/stacks/7", '{"servers": 3}'], {"type": "compute.stack", "operation": "patch", "effect": "assign"}),
    ("sample", ["PUT", "/secrets/7"], {"service": "image", "type": "image.secret", "operation": "replace"}),
    ("sample", ["POST", "/pools/7/allocate", '{"count": 3}'], {"operation": "allocate", "effect": "relative"}),
    ("sample", ["GET", "http://127.0.0.1:9696/pools?name=x#y"], {"service": "network", "type": "network.pool"}),
    ("sample", ["POST", "/projects"], {"owner": "global", "cross": {"as": "container", "names": "strict"}}),
    ("sample", ["POST", "/volumes"], {"owner": "global", "cross": {"as": "indivisible"}}),
    ("sample", ["POST", "/pools/7/release", '{"count": 3}'],
     {"divide": ["/count"], "cross": {"as": "divisible", "divide": ["/size", "/hosts"], "weight": None,
                                       "combine": {"/used": "sum", "/status": "min"}}}),
    ("sample", ["POST", "/ports"], {"owner": "site"}),
    ("sample", ["GET", "/networks/n"], {"type": "network.network", "owner": "site", "cross": None, "relied": "warn"}),
    ("kubernetes", ["GET", "/api/v1/nodes/a"], {"type": "kubernetes.nodes", "owner": "site"}),
    ("kubernetes", ["POST", "/api/v1/namespaces"], {"cross": {"as": "container", "names": "strict"}, "divide": []}),
    ("kubernetes", ["PUT", "/apis/apps/v1/namespaces/n/deployments/d/scale"],
     {"type": "kubernetes.deployments.apps", "operation": "scale", "divide": ["/spec/replicas"]}),
    ("rest", ["--service", "shop", "POST", "/carts"], {"type": "shop.carts", "described_as": "*.{things}"}),
    ("rest", ["--service", "shop", "DELETE", "/carts/3"], {"type": "shop.carts", "id": "3", "effect": "delete"}),
    ("rest", ["--service", "shop", "GET", "/api/v1/carts/3/lines/4"],
     {"type": "shop.lines", "id": "4", "collection": "/carts/3/lines"}),
    ("rest", ["GET", "/posts/1"], {"service": "*", "type": "*.posts", "credentials": "forward"}),
]


@pytest.mark.parametrize("number", range(len(TABLE)))
def test_requests(explain, number):
    app, arguments, expected = TABLE[number]
    answer = explain("--app", app, *arguments)
    assert answer["known"] is True and answer["application"] == app
    assert {key: answer[key] for key in expected} == expected


def test_ids_and_references(explain):
    answer = explain("--app", "sample", "POST", "/servers", '{"name": "vm", "image": "42", "network": "n"}')
    found = [(place["in"], place["kind"], place["value"], place["type"], place["rewritten"]) for place in answer["places"]]
    assert found == [
        ("body", "name", "vm", "compute.server", False),
        ("body", "reference", "42", "image.image", True),
        ("body", "reference", "n", "network.network", True),
    ]
    answer = explain("--app", "sample", "POST", "/projects/5/volumes/7/attach", '{"server": "8"}')
    assert [(place["in"], place["kind"], place["value"], place["type"]) for place in answer["places"]] == [
        ("path", "reference", "5", "compute.project"), ("path", "id", "7", "compute.volume"), ("body", "reference", "8", "compute.server")]
    nested = explain("GET", "/a/1/b/2")["places"]
    assert [(place["kind"], place["value"], place["at"]) for place in nested] == [("reference", "1", 3), ("id", "2", 7)]


def test_for_people(cheops):
    result = cheops("app", "explain", "--app", "sample", "PUT", "/images/42/file")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines() == [
        "application  sample",
        "service      image",
        "type         image.image",
        "operation    upload",
        "effect       replace: sets the whole; running it twice is running it once",
        "facet        file",
        "item         42",
        "collection   /images",
        "ids          path: id `42`, rewritten to each site's own",
        "body         never read: a file",
        "answer       ids in it are looked for",
        "with &       runs at every member that has the item, also without a scope if it is replicated",
        "credentials  forward: the user's own, as long as it is valid",
    ]


DESCRIBED = """
format: 1
application: shop
services: {stock: }
types:
  stock.shelf:
    collection: /shelves
    item: /shelves/{id}
    relied: refuse
    cross: {as: divisible, divide: [/size, /slots], weight: capacity, combine: {/used: sum, /state: prime}}
    operations: {grow: {method: POST, path: "{item}/grow", divide: /by, uses: stock.house}}
  stock.house: {collection: /houses, item: "/houses/{id}", owner: site, cross: {as: container, names: optimistic}}
  stock.pallet:
    collection: /houses/{house}/pallets
    item: /houses/{house}/pallets/{id}
    references:
      body: {/shelf: {type: stock.shelf, kind: reliance}, /old: stock.shelf}
      path: {house: {type: stock.house, kind: container}}
"""


def test_relations_of_the_sample(explain):
    answer = explain("--app", "sample", "POST", "/projects/5/servers", '{"name": "vm", "image": "6", "secret": "7", "network": "8"}')
    assert {place["value"]: place.get("relation") for place in answer["places"] if place["kind"] == "reference"} == {
        "5": "container", "6": "requirement", "7": "reliance", "8": None}
    answer = explain("--app", "sample", "PATCH", "/stacks/5", '{"servers": ["6", "7"]}')
    assert [(place["value"], place["relation"]) for place in answer["places"] if place["kind"] == "reference"] == [
        ("6", "composition"), ("7", "composition")]


def test_what_spans_sites_and_whose_it_is(explain, cheops, tmp_path):
    (tmp_path / "shop.yaml").write_text(DESCRIBED)
    app = ["--app", str(tmp_path / "shop.yaml")]
    grow = explain(*app, "POST", "/shelves/1/grow", '{"by": 3}')
    assert grow["cross"] == {"as": "divisible", "divide": ["/size", "/slots"], "weight": "capacity",
                             "combine": {"/used": "sum", "/state": "prime"}}
    assert (grow["divide"], grow["uses"], grow["relied"]) == (["/by"], ["stock.house"], "refuse")
    text = cheops("app", "explain", *app, "POST", "/shelves/1/grow", '{"by": 3}').out
    assert "\nuses         stock.house\n" in text
    assert ("\nwith %       divisible: divides /size, /slots; here /by; by the tag `capacity`; reads sum of /used, prime of /state\n"
            in text)
    house = cheops("app", "explain", *app, "GET", "/houses/1").out
    assert "\nwith %       container; names that cannot be checked are accepted\n" in house
    assert "\nowner        site: what runs at another site cannot use it\n" in house
    pallet = explain(*app, "POST", "/houses/1/pallets", '{"shelf": "s", "old": "t"}')
    assert [(place["value"], place.get("relation")) for place in pallet["places"]] == [
        ("1", "container"), ("s", "reliance"), ("t", None)]


@pytest.mark.parametrize("arguments", [
    ["--app", "sample", "GET", "/whoami"],
    ["--app", "sample", "--service", "image", "GET", "/servers"],
    ["--app", "sample", "BREW", "/images"],
    ["GET", "/things/../other"],
    ["GET", "/"],
])
def test_unknown(cheops, arguments):
    result = cheops("app", "explain", *arguments)
    assert (result.status, result.out) == (1, "unknown to the description: passed on as it is\n")
    assert cheops("app", "explain", "-o", "json", *arguments).json == {"known": False}


def test_body_from_a_file_and_from_the_standard_input(cheops, explain, tmp_path):
    (tmp_path / "body").write_text('{"stop": null}')
    path = str(tmp_path / "body")
    assert explain("--app", "sample", "POST", "/servers/7/action", "@" + path)["operation"] == "stop"
    script = f'"$CHEOPS" app explain -o json --app sample POST /servers/7/action - < {path}'
    assert cheops.shell(script).json["operation"] == "stop"
    assert cheops("app", "explain", "POST", "/a", "@/nowhere/x").status == 2


def test_body_that_is_no_json(explain):
    answer = explain("--app", "sample", "POST", "/images", "{nonsense")
    assert answer["operation"] == "create" and "JSON" in answer["trouble"]


def test_several_services_know_the_path(cheops, tmp_path):
    (tmp_path / "two.yaml").write_text("format: 1\napplication: two\nservices: {a: , b: }\n"
                                       "types: {a.x: {item: '/x/{id}'}, b.x: {item: '/x/{id}'}}\n")
    result = cheops("app", "explain", "--app", "two.yaml", "GET", "/x/1", cwd=tmp_path)
    assert result.status == 2 and "a and b; choose with --service" in result.err
    assert cheops("app", "explain", "--app", "two.yaml", "--service", "b", "GET", "/x/1", cwd=tmp_path).status == 0


def test_description_that_is_wrong_or_missing(cheops, tmp_path):
    (tmp_path / "bad.yaml").write_text("format: 1\n")
    result = cheops("app", "explain", "--app", "bad.yaml", "GET", "/x", cwd=tmp_path)
    assert result.status == 1 and result.err.startswith("cheops: bad.yaml:1:1: ")
    assert cheops("app", "explain", "--app", "nobody", "GET", "/x").status == 2


def test_nothing_harmful_reaches_the_terminal(cheops):
    result = cheops("app", "explain", "GET", "/things/\x9b31m")
    assert result.status == 0 and "\x9b" not in result.out
