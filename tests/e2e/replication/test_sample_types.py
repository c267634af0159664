"""Things of the sample application that refer to others, are in others, or make others, at two sites of three."""
import hashlib
import itertools

import pytest

from demo_process import ask, wait_for
from sample_services import at_once

SITES = ("Site1", "Site2")
BOTH = " & ".join(SITES)
numbers = itertools.count(1)


class Application:
    def __init__(self, demo, cheops):
        self.demo = demo
        self.cheops = cheops

    def ask(self, site, method, path, body=None, scope=None, service="compute"):
        headers = {"Prefer": "wait=60", **({"Scope": scope} if scope else {})}
        return ask(self.demo.url(site, service) + path, method, headers, json_body=body)

    def make(self, path, scope=BOTH, at="Site1", service="compute", **body):
        """At both, which have it when this returns."""
        answer = self.ask(at, "POST", path, body, scope, service)
        assert answer.status == 201, answer
        if scope:
            assert all(f"{site}=" in answer.header("Cheops-Replicas") for site in SITES), answer
            assert "pending" not in answer.header("Cheops-Replicas"), answer
        return answer.json

    def image(self):
        return self.make("/images", service="image", name=f"image {next(numbers)}")["id"]

    def behind(self, site, path, service="compute"):
        """As the service itself says."""
        return ask(self.demo.own_url(site, service) + path)

    def named(self, site, collection, name, service="compute"):
        """The one of this name, as the service itself has it."""
        (found,) = self.behind(site, f"/{collection}?name={name.replace(' ', '%20')}", service).json[collection]
        return found

    def wait(self, condition, what):
        for site in SITES:
            wait_for(lambda site=site: condition(site), f"{what} at {site}")

    def wait_verified(self, meta_id):
        """The services' own states are compared, and agree."""
        api = self.demo.sites["Site1"]["api"].removeprefix("http://")

        def verified():
            return self.cheops("get", "--verify", "--api", api, meta_id).status == 0
        wait_for(verified, f"{meta_id} to be the same everywhere")


@pytest.fixture
def application(demo, cheops):
    return Application(demo, cheops)


def test_a_server_reads_its_sites_copy_of_a_secret(application):
    secret = application.make("/secrets", service="image", name="key", data="first")["id"]
    server = application.make("/servers", name="with a secret", image=application.image(), secret=secret)
    assert server["secret"] == secret
    own = {site: application.named(site, "servers", "with a secret") for site in SITES}
    assert own["Site1"]["secret"] != own["Site2"]["secret"] and secret not in (own["Site1"]["secret"], own["Site2"]["secret"])
    for site in SITES:
        assert application.behind(site, f"/secrets/{own[site]['secret']}", "image").json["data"] == "first"
    # Changed at one, read by the servers of both.
    assert application.ask("Site2", "PATCH", f"/secrets/{secret}", {"data": "second"}, service="image").status == 200
    rebooted = application.ask("Site2", "POST", f"/servers/{server['id']}/action", {"reboot": None})
    assert rebooted.status == 202 and "Site1=applied" in rebooted.header("Cheops-Replicas"), rebooted
    read = hashlib.sha256(b"second").hexdigest()
    application.wait(lambda site: application.named(site, "servers", "with a secret")["secret_checksum"] == read, "the new secret")
    application.wait_verified(server["id"])
    # Gone at both: nothing starts any more, and nothing is left of the attempt.
    assert application.ask("Site1", "DELETE", f"/secrets/{secret}", service="image").status == 204
    refused = application.ask("Site2", "POST", f"/servers/{server['id']}/action", {"reboot": None})
    assert refused.status == 409 and refused.header("Cheops-Operation") is None, refused
    application.wait(lambda site: application.named(site, "servers", "with a secret")["status"] == "ACTIVE", "the server, unchanged")


def test_a_stack_has_servers_of_its_own_at_each_site(application):
    image = application.image()
    stack = application.make("/stacks", name="web", image=image, servers=2)
    path = f"/stacks/{stack['id']}"

    def parts(site):
        return application.named(site, "stacks", "web")["servers"]

    application.wait(lambda site: len(parts(site)) == 2, "two servers")
    assert not set(parts("Site1")) & set(parts("Site2"))
    # Read at a site, it shows those of the site; the parts say of which whole they are.
    for site in SITES:
        shown = application.ask(site, "GET", path).json
        assert (shown["id"], shown["image"], shown["servers"], shown["count"]) == (stack["id"], image, parts(site), 2)
        part = application.ask(site, "GET", f"/servers/{parts(site)[0]}").json
        assert (part["stack"], part["image"]) == (stack["id"], image)
    application.wait_verified(stack["id"])
    for count, at in ((4, "Site2"), (1, "Site1")):
        assert application.ask(at, "PATCH", path, {"servers": count}).json["count"] == count
        application.wait(lambda site, count=count: len(parts(site)) == count, f"{count} servers")
        application.wait_verified(stack["id"])
    refused = application.ask("Site2", "DELETE", f"/servers/{parts('Site2')[0]}")
    assert refused.status == 409 and "part of stack" in refused.json["error"]["message"]
    assert application.ask("Site2", "DELETE", path).status == 204
    application.wait(lambda site: not [server for server in application.behind(site, "/servers").json["servers"] if "stack" in server],
                     "no part that is left")


def test_things_in_a_project_at_two_sites(application):
    project = application.make("/projects", name="shop")["id"]
    below = f"/projects/{project}"
    image = application.image()
    server = application.make(f"{below}/servers", name="front", image=image)
    volume = application.make(f"{below}/volumes", name="data", size=3, at="Site2")
    stack = application.make(f"{below}/stacks", name="back", image=image, servers=1)
    assert (server["project"], volume["project"], stack["project"]) == 3 * (project,)
    own = {site: application.named(site, "projects", "shop")["id"] for site in SITES}
    assert len({project, *own.values()}) == 3
    for site in SITES:
        for collection, thing in (("servers", server), ("volumes", volume), ("stacks", stack)):
            assert thing["name"] in [each["name"] for each in application.behind(site, f"/projects/{own[site]}/{collection}").json[collection]]
            # By the path in the project, and by the one without; by the project's meta-id, and by its local one.
            for prefix in (below, f"/projects/{own[site]}", ""):
                answer = application.ask(site, "GET", f"{prefix}/{collection}/{thing['id']}")
                assert answer.status == 200 and answer.json["id"] == thing["id"] and answer.json["project"] == project, answer
                assert thing["id"] in [each["id"] for each in application.ask(site, "GET", f"{prefix}/{collection}").json[collection]]
    # One that is at one site only, in the project that is at both.
    alone = application.ask("Site2", "POST", f"{below}/volumes", {"name": "here", "size": 1})
    assert alone.status == 201 and alone.json["project"] == project, alone
    assert application.named("Site2", "volumes", "here")["project"] == own["Site2"]
    refused = application.ask("Site2", "POST", f"{below}/servers", {"name": "front", "image": image}, BOTH)
    assert refused.status == 409 and "has the name front" in refused.json["error"]["message"], refused
    refused = application.ask("Site1", "DELETE", below)
    assert refused.status == 409 and "not empty" in refused.json["error"]["message"], refused


def test_a_volume_is_attached_to_its_sites_copy_of_a_server(application):
    server = application.make("/servers", name="with a volume", image=application.image())["id"]
    volume = application.make("/volumes", name="of two", size=7)["id"]
    attached = application.ask("Site2", "POST", f"/volumes/{volume}/attach", {"server": server})
    assert attached.status == 200 and attached.json["attached"] == server, attached
    application.wait(lambda site: application.named(site, "volumes", "of two")["attached"]
                     == application.named(site, "servers", "with a volume")["id"], "its own server")
    application.wait_verified(volume)
    assert application.ask("Site1", "GET", f"/volumes/{volume}").json["attached"] == server
    assert application.ask("Site1", "DELETE", f"/volumes/{volume}").status == 409
    assert application.ask("Site1", "POST", f"/volumes/{volume}/detach").json["attached"] is None
    assert application.ask("Site2", "DELETE", f"/volumes/{volume}").status == 204
    application.wait(lambda site: application.behind(site, "/volumes?name=of%20two").json == {"volumes": []}, "no volume")


@pytest.mark.parametrize("collection, service, body", [("projects", "compute", {}), ("volumes", "compute", {"size": 2}),
                                                       ("secrets", "image", {"data": "x"})])
def test_life_at_two_sites(application, collection, service, body):
    name = f"{collection} at two"
    made = application.make(f"/{collection}", service=service, name=name, **body)
    path = f"/{collection}/{made['id']}"
    assert application.ask("Site2", "PATCH", path, {"name": name + " sites"}, service=service).status == 200
    application.wait(lambda site: application.named(site, collection, name + " sites", service)["id"] != made["id"], "the new name")
    replaced = application.ask("Site1", "PUT", path, {"name": name, **body}, service=service)
    assert replaced.status == 200 and replaced.json == {**made, "name": name}
    application.wait_verified(made["id"])
    assert application.ask("Site2", "DELETE", path, service=service).status == 204
    application.wait(lambda site: application.ask(site, "GET", path, service=service).status == 404, "nothing")
    assert made["id"] not in str(application.ask("Site1", "GET", f"/{collection}", service=service).json)


def test_a_pool_is_taken_from_at_both_sites(application):
    pool = application.make("/pools", service="network", name="taken from", size=10, hosts=["a"])["id"]
    for site, action, count, used in (("Site1", "allocate", 4, 4), ("Site2", "allocate", 5, 9), ("Site1", "release", 2, 7)):
        answer = application.ask(site, "POST", f"/pools/{pool}/{action}", {"count": count}, service="network")
        assert answer.status == 200 and answer.json["used"] == used, answer
    refused = application.ask("Site2", "POST", f"/pools/{pool}/allocate", {"count": 4}, service="network")
    assert refused.status == 409 and refused.header("Cheops-Operation") is None
    application.wait(lambda site: application.named(site, "pools", "taken from", "network")["used"] == 7, "seven")
    application.wait_verified(pool)


def test_a_third_site_makes_a_stack_of_its_own(application):
    """After what it refers to has come: the project that it is in, the secret. The image is there."""
    names = {"project": "extended", "image": "extended image", "secret": "extended key", "stack": "extended stack"}
    project = application.make("/projects", name=names["project"])["id"]
    image = application.make("/images", BOTH + " & Site3", service="image", name=names["image"])["id"]
    secret = application.make("/secrets", service="image", name=names["secret"], data="s")["id"]
    stack = application.make(f"/projects/{project}/stacks", name=names["stack"], image=image, secret=secret, servers=1)["id"]
    assert application.ask("Site2", "PATCH", f"/stacks/{stack}", {"servers": 3}).status == 200
    api = application.demo.sites["Site1"]["api"].removeprefix("http://")
    for each in (project, secret, stack):
        result = application.cheops("replicant", "extend", each, "Site3", "--wait", "--api", api)
        assert result.status == 0, result
    there = application.named("Site3", "stacks", names["stack"])
    assert (there["count"], len(there["servers"]), there["status"]) == (3, 3, "ACTIVE")
    assert there["project"] == application.named("Site3", "projects", names["project"])["id"]
    assert there["image"] == application.named("Site3", "images", names["image"], "image")["id"]
    assert there["secret"] == application.named("Site3", "secrets", names["secret"], "image")["id"]
    shown = application.ask("Site3", "GET", f"/projects/{project}/stacks/{stack}").json
    assert (shown["id"], shown["image"], shown["secret"], shown["project"]) == (stack, image, secret, project)
    application.wait_verified(stack)
    # What leaves takes its parts along.
    assert application.cheops("replicant", "drop", stack, "Site3", "--wait", "--api", api).status == 0
    wait_for(lambda: application.behind("Site3", "/stacks").json == {"stacks": []}, "the stack to leave")
    assert application.behind("Site3", "/servers").json == {"servers": []}


@pytest.mark.parametrize("within", [True, False])
def test_one_name_at_both_sites_at_the_same_moment(application, within):
    """In a project, and in none: whoever is told that it was made has the one that stays."""
    name = f"wanted by two, {within}"
    below = f"/projects/{application.make('/projects', name=name)['id']}" if within else ""
    answers = at_once(2, lambda number: application.ask(SITES[number], "POST", f"{below}/volumes", {"name": name, "size": 1 + number}, BOTH))
    made = [answer.json["id"] for answer in answers if answer.status == 201]
    # Or that there is another one of this name: which is there, or is being made at this very moment.
    assert made and all(answer.status in (201, 409) or answer.problem["type"] == "earlier-first" for answer in answers), answers
    application.wait(lambda site: len(application.behind(site, f"/volumes?name={name.replace(' ', '%20')}").json["volumes"]) == 1, "one volume")

    def ids(site):
        return {application.ask(site, "GET", f"{below}/volumes/{each}").json.get("id") for each in made}
    application.wait(lambda site: len(ids(site)) == 1 and ids("Site1") == ids("Site2"), f"one of {made}")
    (winner,) = ids("Site1")
    application.wait_verified(winner)
