"""A scope that names the service which judges credentials: things are asked for at one site with a token of another, whose directory is then
asked about it, now and when operations run later. Who somebody is there, the services here are told in ids of their own site."""
import contextlib
import http.client
import json

import pytest
from demo_process import ask, wait_for
from mesh import Agent
from played_service import PlayedService

SITES = ("Site1", "Site2")
DESCRIPTION = """\
format: 1
application: judged
credentials:
  headers: [X-Auth-Token, X-Subject-Token]
  run: forward
  refused: [401]
  judge: {service: directory, path: /users}
services:
  directory: {credentials: {headers: [X-Auth-Token], run: agent, refused: [401]}}
  things:
types:
  directory.user: {collection: /users, item: "/users/{id}", name: /name}
  directory.token:
    operations:
      check: {method: GET, path: /tokens, effect: read, reader: service, references: {/user/id: directory.user}}
  things.thing: {collection: /things, item: "/things/{id}", name: /name, references: {body: {/owner: directory.user}}}
"""


class Directory(PlayedService):
    """Of a site: makes ids of its own, and knows tokens of its own alone."""

    def __init__(self, site):
        self.site, self.users, self.asked = site, {}, []
        self.broken = False
        super().__init__()

    def serve(self, handler, body):
        with self.lock:
            handler.answer(*self.handle(handler.command, handler.path, json.loads(body) if body else {}, handler.headers))

    def handle(self, method, path, body, headers):
        if method == "POST" and self.broken:
            return 503, {"error": "no database"}
        if method == "POST":
            user = {"id": f"{self.site}-user-{len(self.users)}", "name": body["name"]}
            self.users[user["id"]] = user
            return 201, user
        if path != "/tokens":
            return 200, list(self.users.values())
        token = headers["X-Subject-Token"]
        self.asked.append(token)
        if self.broken:
            return 500, {"error": "no database"}
        user = next((user for user in self.users.values() if token == f"{self.site}/{user['name']}"), None)
        return (200, {"user": user}) if user else (404, {"error": "no such token"})


class Things(PlayedService):
    """Asks the directory about each token, where it is told that it is, and keeps what somebody makes as his. It is as vague about a
    directory that does not answer as some services are."""

    def __init__(self, site):
        self.site, self.things, self.seen, self.directory = site, {}, [], None
        self.away = False
        super().__init__()

    def serve(self, handler, body):
        token = handler.headers["X-Auth-Token"]
        self.seen.append(token)
        if self.away:
            handler.answer(503, {"error": "later"})
            return
        try:
            asked = ask(self.directory + "/tokens", headers={"X-Subject-Token": token, "Accept-Encoding": "gzip"})
        except (OSError, http.client.HTTPException):
            asked = None
        with self.lock:
            if asked is None or asked.status != 200:
                handler.answer(401, {"error": "who are you?"})
                return
            owner = asked.json["user"]["id"]
            if handler.command == "POST":
                thing = {"id": f"{self.site}-thing-{len(self.things)}", "name": json.loads(body)["name"], "owner": owner}
                self.things[thing["id"]] = thing
                handler.answer(201, thing)
            else:
                handler.answer(200, [thing for thing in self.things.values() if thing["owner"] == owner])

    def named(self, name):
        return next((thing for thing in self.things.values() if thing["name"] == name), None)


class Lab:
    """`ann` is a user at both sites, made at once."""

    def __init__(self, mesh):
        self.mesh = mesh
        path = mesh.folder / "judged.yaml"
        path.write_text(DESCRIPTION, encoding="utf-8")
        token = mesh.folder / "agent.token"
        token.write_text("agent\n", encoding="ascii")
        token.chmod(0o600)
        self.directories = {site: mesh.keep(Directory(site)) for site in SITES}
        self.things = {site: mesh.keep(Things(site)) for site in SITES}
        self.agents = {}
        for site in SITES:
            config = mesh.config(site, {"directory": self.directories[site].url, "things": self.things[site].url},
                                 application=str(path))
            config["services"]["things"]["carry"] = ["append:X-Auth-Token:directory", "append:X-Subject-Token:directory"]
            config["services"]["directory"]["carry"] = []
            config["services"]["directory"]["credential"] = {"header": "X-Auth-Token", "file": "agent.token"}
            self.agents[site] = mesh.keep(Agent(mesh.folder, config))
            self.things[site].directory = self.agents[site].url("directory")
        mesh.join(*self.agents.values())
        made = self.ask("Site1", "directory", "/users", "POST", "Site1 & Site2", body={"name": "ann"})
        assert made.status == 201, made
        wait_for(lambda: self.directories["Site2"].users, "ann at Site2")
        self.ann = made.json["id"]

    def ask(self, site, service, path, method="GET", scope=None, token=None, body=None):
        headers = {**({"Scope": scope} if scope else {}), **({"X-Auth-Token": token} if token else {})}
        return ask(self.agents[site].url(service) + path, method, headers, json_body=body)

    def make(self, site, scope, name, token="Site1/ann"):
        return self.ask(site, "things", "/things", "POST", scope, token, {"name": name})

    def at_site2(self, made):
        """What Site2 tells of the operation."""
        api = self.agents["Site2"].config["api"]
        return ask(f"http://{api}/cheops/v1/operations/{made.header('Cheops-Operation')}").bytes.decode()


@pytest.fixture
def lab(mesh):
    return Lab(mesh)


def test_the_directory_of_the_scope_judges(lab):
    assert lab.make("Site1", None, "here").status == 201
    assert lab.make("Site1", "things: Site2", "refused").status == 401
    assert lab.directories["Site2"].asked[-1] == "Site1/ann"
    made = lab.make("Site1", "{directory: Site1, things: Site2}", "there")
    assert made.status == 201, made
    assert lab.directories["Site1"].asked[-1] == "Site1/ann"
    # It has the ids of Site2 there, where her own log-in finds it.
    assert lab.things["Site2"].named("there")["owner"] == "Site2-user-0"
    assert [each["name"] for each in lab.ask("Site2", "things", "/things", token="Site2/ann").json] == ["there"]
    assert lab.things["Site1"].named("here")["owner"] == "Site1-user-0"


def test_it_hangs_on_the_token_only_where_it_matters(lab):
    for scope in (None, "things: Site1", "{things: Site1, other: Site2}"):
        lab.ask("Site1", "things", "/things", scope=scope, token="Site1/ann")
    assert set(lab.things["Site1"].seen) == {"Site1/ann"}
    assert lab.ask("Site1", "things", "/things", scope="{directory: Site1}", token="Site1/ann").status == 200
    assert lab.things["Site1"].seen[-1] == "Site1/ann!SCOPE!directory: Site1"
    assert lab.directories["Site1"].asked[-1] == "Site1/ann"


def test_of_several_directories_the_one_that_is_here(lab):
    for site in SITES:
        answer = lab.ask(site, "things", "/things", scope="{directory: Site1 & Site2}", token=f"{site}/ann")
        assert answer.status == 200, answer


def test_at_both_sites(lab):
    """Each copy has the owner that is hers there; and a user sees one."""
    made = lab.make("Site1", "{directory: Site1, things: Site1 & Site2}", "both")
    assert made.status == 201 and made.json["owner"] == lab.ann, made
    thing = wait_for(lambda: lab.things["Site2"].named("both"), "the copy at Site2")
    assert thing["owner"] == "Site2-user-0"


def test_without_a_word_it_is_judged_where_it_was_shown(lab):
    """Operations that run at another site, whose own directory does not know the token."""
    for site, other in (SITES, SITES[::-1]):
        made = lab.make(site, "Site1 & Site2", f"from {site}", f"{site}/ann")
        assert made.status == 201, made
        thing = wait_for(lambda: lab.things[other].named(f"from {site}"), "the copy")
        assert thing["owner"] == f"{other}-user-0"
        assert lab.directories[other].asked and lab.directories[site].asked[-1] == f"{site}/ann"


def test_somebody_whom_a_site_has_yet_to_hear_of(lab):
    """He is known there by an id that is not there yet: nothing becomes somebody else's."""
    lab.directories["Site2"].broken = True
    assert lab.ask("Site1", "directory", "/users", "POST", "Site1 & Site2", body={"name": "bob"}).status == 201
    answer = lab.make("Site1", "{directory: Site1, things: Site2}", "early", "Site1/bob")
    assert answer.status >= 500 and "Site2 has not got yet" in answer.problem["detail"], answer
    assert lab.make("Site1", "{directory: Site1, things: Site1 & Site2}", "his", "Site1/bob").status == 201
    wait_for(lambda: len(lab.things["Site2"].seen) > 1, "an attempt at Site2")
    assert not lab.things["Site2"].things
    lab.directories["Site2"].broken = False
    assert wait_for(lambda: lab.things["Site2"].named("his"), "his copy")["owner"] == "Site2-user-1"


def test_a_token_that_nobody_knows_any_more(lab):
    """Neither the directory here nor that of the site where it was shown: then it is the credential."""
    lab.things["Site2"].away = True
    made = lab.make("Site1", "Site1 & Site2", "late")
    assert made.status == 201, made
    wait_for(lambda: lab.things["Site2"].seen, "the first attempt at Site2")
    next(iter(lab.directories["Site1"].users.values()))["name"] = "another"
    lab.things["Site2"].away = False
    wait_for(lambda: "rejected-credential" in lab.at_site2(made), "the refusal")


@pytest.fixture(params=["agent", "directory"])
def gone(request, lab):
    """The directory of Site1 cannot be asked, for as long as it lasts: it is broken, or its agent is away."""
    @contextlib.contextmanager
    def lasts():
        if request.param == "agent":
            lab.agents["Site1"].kill()
            yield
            lab.agents["Site1"] = lab.mesh.again(lab.agents["Site1"])
        else:
            lab.directories["Site1"].broken = True
            yield
            lab.directories["Site1"].broken = False
    return lasts


def test_a_directory_that_does_not_answer(lab, gone):
    """The user reads which it is."""
    with gone():
        answer = lab.ask("Site2", "things", "/things", scope="{directory: Site1}", token="Site1/ann")
        assert answer.status >= 500, answer
        assert "things called directory" in answer.problem["detail"] and "Site1" in answer.problem["detail"], answer
    wait_for(lambda: lab.ask("Site2", "things", "/things", scope="{directory: Site1}", token="Site1/ann").status == 200,
             "the directory of Site1")


def test_what_runs_later_waits_for_it(lab, gone):
    """It is not taken for a bad credential."""
    lab.things["Site2"].away = True
    made = lab.make("Site1", "{directory: Site1, things: Site1 & Site2}", "late")
    wait_for(lambda: lab.things["Site2"].seen, "the first attempt at Site2")
    with gone():
        lab.things["Site2"].away = False
        tried = len(lab.things["Site2"].seen)
        wait_for(lambda: len(lab.things["Site2"].seen) > tried, "the next")
        assert "rejected" not in lab.at_site2(made) and lab.things["Site2"].named("late") is None
    assert wait_for(lambda: lab.things["Site2"].named("late"), "the copy at Site2")["owner"] == "Site2-user-0"
