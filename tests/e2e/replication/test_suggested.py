"""A service as OpenStack has them, played: a create may say the id, which is burnt once it was deleted; an expired token is taken from whom
it trusts; paths have a version before them; operators have made the same thing at each site."""
import uuid

import pytest
import yaml

from demo_process import ask, wait_for
from mesh import Agent
from played_service import PlayedService

DESCRIPTION = {
    "format": 1, "application": "played",
    "credentials": {"headers": ["X-Auth-Token", "X-Service-Token"], "accompany": "X-Service-Token",
                    "judge": {"service": "image", "path": "/v2/kinds"}},
    "services": {"image": {"under": "/v2", "base": "/v2", "carry": []}},
    "types": {
        "image.image": {"collection": "/images", "item": "/images/{id}", "identity": "suggested", "list": "/images",
                        "operations": {"replace": None}},
        "image.kind": {"collection": "/kinds", "item": "/kinds/{id}", "alike": True, "list": "/kinds"},
        "image.box": {"collection": "/boxes", "item": "/boxes/{id}", "object": "/box", "list": "/boxes",
                      "references": {"body": {"/kind": "image.kind"}},
                      "operations": {"create": {"beside": {"/hints/near": "image.box"}}}},
    },
}


class Images(PlayedService):
    """What is asked without a good token is refused: `old` is good with a service's beside it. Everything is under /v2."""

    def __init__(self):
        self.stored = {"/kinds": {"1": {"id": "1", "name": "common"}}}
        self.burnt = set()
        self.requests = []
        self.judges = True
        self.refuses = None
        self.refusals = None  # how many there will be; None: any number
        super().__init__()

    def serve(self, handler, body):
        token, service = handler.headers.get("X-Auth-Token"), handler.headers.get("X-Service-Token")
        with self.lock:
            self.requests.append((handler.command, handler.path, token, service, body))
        if not handler.path.startswith("/v2/"):
            handler.answer(300, {})
        elif not self.judges or token == self.refuses or token not in ("new", "agent") and not (token == "old" and service == "agent"):
            if self.refusals is not None:
                self.refusals -= 1
                self.refuses = self.refuses if self.refusals > 0 else None
            handler.answer(401, {})
        else:
            super().serve(handler, body)

    def handle(self, method, path, body):
        collection, _, rest = path.removeprefix("/v2/").partition("/")
        items = self.stored.setdefault(f"/{collection}", {})
        if method == "POST":
            made = dict(body.get("box", body))
            made["id"] = made.get("id") or uuid.uuid4().hex
            if made["id"] in items or made["id"] in self.burnt:
                return 409, {}
            items[made["id"]] = made
            return 201, {"box": made} if "box" in body else made
        if method == "GET" and not rest:
            return 200, {collection: list(items.values())}
        if rest not in items:
            return 404, {}
        if method == "DELETE":
            self.burnt.add(rest)
            del items[rest]
            return 204, None
        if method == "PATCH":
            items[rest].update(body)
        return 200, items[rest] if collection != "boxes" else {"box": items[rest]}


class Played:
    sites = ("Site1", "Site2")

    def __init__(self, mesh):
        (mesh.folder / "app.yaml").write_text(yaml.safe_dump(DESCRIPTION), encoding="utf-8")
        token = mesh.folder / "agent.token"
        token.write_text("agent\n", encoding="ascii")
        token.chmod(0o600)
        self.services = {site: mesh.keep(Images()) for site in self.sites}
        self.agents = {}
        for site, service in self.services.items():
            config = mesh.config(site, {"image": service.url}, application="./app.yaml")
            config["services"]["image"].update(carry=[], credential={"header": "X-Auth-Token", "file": "agent.token"})
            self.agents[site] = mesh.keep(Agent(mesh.folder, config))
        mesh.join(*self.agents.values())

    def ask(self, site, method, path, body=None, token="new", **headers):
        return ask(self.agents[site].url("image") + path, method, {"X-Auth-Token": token, **headers}, json_body=body)

    def make(self, path, body, token="new"):
        answer = self.ask("Site1", "POST", path, body, token, Scope="Site1 & Site2")
        assert answer.status == 201, answer
        return answer.json

    def there(self, site, collection, wanted):
        with self.services[site].lock:
            return dict(self.services[site].stored.get(collection, {}).get(wanted, {}))


@pytest.fixture
def played(mesh):
    return Played(mesh)


def test_the_meta_id_is_the_id(played):
    made = played.make("/v2/images", {"name": "debian"})
    for site in played.sites:
        there = wait_for(lambda site=site: played.there(site, "/images", made["id"]), f"it at {site}")
        assert there == {"id": made["id"], "name": "debian"}
    own = played.make("/v2/images", {"id": "mine", "name": "debian"})
    assert own["id"] != "mine"
    for site in played.sites:
        wait_for(lambda site=site: played.there(site, "/images", "mine"), f"it at {site}")
        wait_for(lambda site=site: played.ask(site, "GET", f"/v2/images/{own['id']}").status == 200, f"{own['id']} to lead to it")


def test_an_expired_token_with_the_agent_s(played):
    """Elsewhere, and later, the user's token comes with the agent's beside it; here it does not."""
    assert played.ask("Site1", "POST", "/v2/images", {"name": "x"}, "old", Scope="Site1 & Site2").status == 401
    answer = played.ask("Site1", "POST", "/v2/images", {"name": "debian"}, "old", Scope="Site1 & Site2",
                        **{"X-Service-Token": "agent"})
    wait_for(lambda: played.there("Site2", "/images", answer.json["id"]), "it at Site2")
    with played.services["Site2"].lock:
        posts = [(token, service) for method, _, token, service, _ in played.services["Site2"].requests if method == "POST"]
    assert posts == [("old", "agent")]


def test_a_judge_that_is_away(played):
    """All credentials are refused: that says nothing of this one. What is refused while the judge is there waits for a person."""
    played.services["Site2"].judges = False
    made = played.make("/v2/images", {"name": "debian"})
    wait_for(lambda: any(method == "POST" for method, *_ in played.services["Site2"].requests), "a first try")
    operation = f"http://{played.agents['Site2'].config['api']}/cheops/v1/operations"
    assert "rejected-credential" not in str(ask(operation).json)
    played.services["Site2"].judges = True
    wait_for(lambda: played.there("Site2", "/images", made["id"]), "it at Site2")
    with played.services["Site2"].lock:
        played.services["Site2"].refuses = "new"
    played.make("/v2/images", {"name": "debian"})
    wait_for(lambda: "rejected-credential" in str(ask(operation).json), "a refusal")


def test_a_judge_that_comes_back_before_it_is_asked(played):
    """The service has refused, and its judge is found there: that was not so a moment ago."""
    with played.services["Site2"].lock:
        played.services["Site2"].refuses, played.services["Site2"].refusals = "new", 1
    made = played.make("/v2/images", {"name": "debian"})
    wait_for(lambda: played.there("Site2", "/images", made["id"]), "it at Site2")
    with played.services["Site2"].lock:
        asked = [method for method, _, token, _, _ in played.services["Site2"].requests if token == "new"]
    assert asked == ["POST", "POST"]


def test_copies_are_read_where_the_service_has_them(played):
    made = played.make("/v2/images", {"name": "debian"})
    wait_for(lambda: played.there("Site2", "/images", made["id"]), "it at Site2")

    def verified():
        answer = ask(f"http://{played.agents['Site1'].config['api']}/cheops/v1/replicants/{made['id']}/verify")
        return {each["verify"] for each in answer.json["members"]} == {"same"}

    wait_for(verified, "the copies to be compared")


def test_what_is_alike_is_one(played):
    both = {"Scope": "Site1 & Site2"}
    assert played.ask("Site1", "GET", "/v2/kinds", **both).json == {"kinds": [{"id": "1", "name": "common"}]}
    assert played.ask("Site1", "GET", "/v2/kinds/1", **both).json == {"id": "1", "name": "common"}
    shown = played.ask("Site1", "GET", "/v2/kinds/1", **both, Prefer="cheops-sites")
    assert shown.status == 207 and set(shown.json) == {"Site1", "Site2"}
    with played.services["Site2"].lock:
        played.services["Site2"].stored["/kinds"]["1"]["name"] = "other"
    assert len(played.ask("Site1", "GET", "/v2/kinds", **both).json["kinds"]) == 2
    assert played.ask("Site1", "GET", "/v2/kinds/1", **both).status == 207


def test_a_local_request_refers_to_what_is_replicated(played):
    """A box of one site alone, of a kind that is at both: the service there gets its own id."""
    kind = played.make("/v2/kinds", {"name": "rare"})["id"]
    for site in played.sites:
        def local(site=site):
            with played.services[site].lock:
                return next((each["id"] for each in played.services[site].stored["/kinds"].values() if each["name"] == "rare"), None)

        own = wait_for(local, f"the kind at {site}")
        wait_for(lambda site=site: played.ask(site, "GET", f"/v2/kinds/{kind}").status == 200, f"the agent of {site} to know what it has")
        assert own != kind
        made = played.ask(site, "POST", "/v2/boxes", {"box": {"name": "box", "kind": kind}})
        assert made.status == 201, made
        assert played.there(site, "/boxes", made.json["box"]["id"])["kind"] == own
        scoped = played.ask("Site1", "POST", "/v2/boxes", {"box": {"name": "box", "kind": kind}}, Scope=site)
        assert played.there(site, "/boxes", scoped.json["box"]["id"])["kind"] == own
