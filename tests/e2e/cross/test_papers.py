"""What the papers show, line by line, with real processes and lines that are long, and are cut.

RR-9486: Table 2 (a namespace over two sites), Figures 3 and 4 (requirement, reliance, composition). RR-9336: a list over two sites, and
the flat network of another one. A project of the sample is what a namespace is there, a server what a pod or a virtual machine is.
"""
import http.client
import json
import socket

import pytest
from wan_lab import BOUND_S, Answer, Lab, agents_of_lab, wait_for

JSON = {"Content-Type": "application/json"}
BOTH = ("Site1", "Site2")


@pytest.fixture(scope="module")
def shared():
    with Lab(3) as lab:
        lab.set("*", "*", delay="5ms")
        lab.image = make(lab, "Site1", "/images", "everywhere", "Site1 & Site2 & Site3", service="image")
        yield lab


@pytest.fixture
def lab(shared):
    yield shared
    shared.heal()
    shared.wait_present()
    for site in shared.sites:  # who takes the way to another one for broken leaves it out of lists
        wait_for(lambda site=site: has_all_ways(shared, site), f"{site} to have a way to all others")


def has_all_ways(lab, site):
    return all((each["path"] or {}).get("state") != "down" for each in lab.ask(site, "api", "/cheops/v1/sites").json["sites"])


def ask(lab, site, method, path, body=None, scope=None, service="compute", prefer=None):
    headers = {**({"Scope": scope} if scope else {}), **({"Prefer": prefer} if prefer else {}), **(JSON if body is not None else {})}
    return lab.ask(site, service, path, method, headers, None if body is None else json.dumps(body))


def make(lab, site, path, name, scope=None, service="compute", **members):
    """It succeeds, and all who are to have it do; its id. What needs an image has the one that is everywhere, unless told."""
    needs = {"image": lab.image} if service == "compute" and not path.endswith("/projects") else {}
    answer = ask(lab, site, "POST", path, {"name": name, **needs, **members}, scope, service, prefer="wait=60")
    assert answer.status == 201, answer
    return answer.json["id"]


def behind(lab, site, path, service="compute"):
    """What the service itself has, past the agents."""
    connection = http.client.HTTPConnection("127.0.0.1", timeout=BOUND_S)
    connection.sock = lab.socket(site, socket.AF_INET)
    try:
        connection.sock.connect(("127.0.0.1", agents_of_lab.service_port(service)))
        connection.request("GET", path)
        return Answer(connection.getresponse()).json[path.rsplit("/", 1)[-1]]
    finally:
        connection.close()


def named(lab, site, path, name, service="compute"):
    return [each for each in behind(lab, site, path, service) if each["name"] == name]


def own_id(lab, site, replicant):
    members = lab.ask(site, "api", f"/cheops/v1/replicants/{replicant}").json["members"]
    return next(each["local_id"] for each in members if each["site"] == site)


def wait_there(lab, site, path, name, service="compute"):
    return wait_for(lambda: named(lab, site, path, name, service), f"{name} at {site}")[0]


# ---- RR-9486, Table 2 --------------------------------------------------------------------------------------------------------


def test_table_2(lab):
    # create ns foo, scope {Site1 % Site2}, at Site1: created on Site1 and Site2
    foo = make(lab, "Site1", "/projects", "foo", "{compute: Site1 % Site2}")
    for site in BOTH:
        wait_there(lab, site, "/projects", "foo")
    assert named(lab, "Site3", "/projects", "foo") == []
    pods = f"/projects/{foo}/servers"
    wait_for(lambda: ask(lab, "Site2", "GET", f"/projects/{foo}").status == 200, "Site2 to know of it")

    # create pod blue in foo, scope {Site1}, at Site2: under foo in Site1, extended to Site2
    blue = make(lab, "Site2", pods, "blue", "{compute: Site1}")
    assert len(named(lab, "Site1", "/servers", "blue")) == 1 and named(lab, "Site2", "/servers", "blue") == []

    # create pod yellow in foo, scope {Site2}, at Site1: under foo in Site2, extended to Site1
    yellow = make(lab, "Site1", pods, "yellow", "{compute: Site2}")
    assert named(lab, "Site1", "/servers", "yellow") == [] and len(named(lab, "Site2", "/servers", "yellow")) == 1

    # get pods in foo, at Site1: all of both sites (and at Site2; and each by itself)
    for site in BOTH:
        wait_for(lambda site=site: sorted(each["name"] for each in ask(lab, site, "GET", pods).json["servers"]) ==
                 ["blue", "yellow"], f"both at {site}")
        whole = ask(lab, site, "GET", pods)
        assert {each["id"] for each in whole.json["servers"]} == {blue, yellow} and whole.header("Cheops-Partial") is None
        for pod, name in ((blue, "blue"), (yellow, "yellow")):
            wait_for(lambda site=site, pod=pod: ask(lab, site, "GET", f"{pods}/{pod}").status == 200, f"{pod} at {site}")
            assert ask(lab, site, "GET", f"{pods}/{pod}").json["name"] == name

    # create pod yellow in foo, at Site1: error, it exists already in Site2 under foo
    again = ask(lab, "Site1", "POST", pods, {"name": "yellow", "image": lab.image})
    assert again.status == 409 and "Site2" in again.json["detail"] and "yellow" in again.json["detail"], again
    assert named(lab, "Site1", "/servers", "yellow") == []


def test_table_2_while_cut(lab):
    """What the paper leaves as future work: each site goes on with what it has, and what is not whole says so."""
    bar = make(lab, "Site1", "/projects", "bar", "{compute: Site1 % Site2}")
    pods = f"/projects/{bar}/servers"
    wait_for(lambda: ask(lab, "Site2", "GET", f"/projects/{bar}").status == 200, "Site2 to know of it")
    make(lab, "Site1", pods, "red", "{compute: Site1}")
    make(lab, "Site1", pods, "green", "{compute: Site2}")
    wait_for(lambda: len(ask(lab, "Site1", "GET", pods).json["servers"]) == 2, "both")
    lab.cut("Site1", "Site2")
    for site, other, name in (("Site1", "Site2", "red"), ("Site2", "Site1", "green")):
        part = ask(lab, site, "GET", pods)
        assert [each["name"] for each in part.json["servers"]] == [name], part
        assert other in part.header("Cheops-Partial"), part
    # The prime can check a name by itself; the other one cannot, and refuses it.
    made = ask(lab, "Site1", "POST", pods, {"name": "here", "image": lab.image}, "{compute: Site1}")
    assert made.status == 201, made
    refused = ask(lab, "Site2", "POST", pods, {"name": "there", "image": lab.image})
    assert refused.status == 503 and "Site1" in refused.json["detail"], refused
    assert named(lab, "Site2", "/servers", "there") == []
    lab.heal()
    wait_for(lambda: ask(lab, "Site2", "POST", pods, {"name": "there", "image": lab.image}).status == 201, "the prime to be heard again")
    wait_for(lambda: sorted(each["name"] for each in ask(lab, "Site2", "GET", pods).json["servers"]) ==
             ["green", "here", "red", "there"], "all of them")


# ---- RR-9486, Figures 3 and 4 ------------------------------------------------------------------------------------------------


def test_requirement_replicated_first(lab):
    """B is made everywhere that A will be; A then needs no word on where B is."""
    image = make(lab, "Site1", "/images", "b-everywhere", "Site1 & Site2", service="image")
    make(lab, "Site1", "/servers", "a-with-its-own", "Site1 & Site2", image=image)
    for site in BOTH:
        made = wait_there(lab, site, "/servers", "a-with-its-own")
        assert made["image"] == own_id(lab, site, image), site


def test_requirement_shared(lab):
    """The scope says where B is; afterwards the link does not matter."""
    image = make(lab, "Site1", "/images", "b-at-site1", service="image")
    server = make(lab, "Site1", "/servers", "a-that-shares", "{compute: Site1 & Site2, image: Site1}", image=image)
    for site in BOTH:
        wait_there(lab, site, "/servers", "a-that-shares")
    lab.cut("Site1", "Site2")
    for site in BOTH:
        assert ask(lab, site, "GET", f"/servers/{server}").json["name"] == "a-that-shares"
        assert not at_risk(lab, site, server), site
    assert ask(lab, "Site1", "DELETE", f"/images/{image}", service="image").header("Warning") is None


def test_requirement_neither(lab):
    """Refused before anything runs, with the two ways; a scope that wants it brought along gets it."""
    image = make(lab, "Site1", "/images", "b-left-alone", service="image")
    refused = ask(lab, "Site1", "POST", "/servers", {"name": "a-without", "image": image}, "Site1 & Site2")
    assert refused.status == 409 and "Site2" in refused.json["detail"], refused
    assert [named(lab, site, "/servers", "a-without") for site in BOTH] == [[], []]
    make(lab, "Site1", "/servers", "a-with-all", "with_requirements(Site1 & Site2)", image=image)
    for site in BOTH:
        assert wait_there(lab, site, "/servers", "a-with-all")["image"] in {
            each["id"] for each in named(lab, site, "/images", "b-left-alone", "image")}, site


def at_risk(lab, site, replicant):
    return lab.ask(site, "api", f"/cheops/v1/replicants/{replicant}").json.get("at_risk")


def test_reliance(lab):
    """A needs B for life: who is cut off from B is told so, and who deletes B is told of A."""
    secret = make(lab, "Site1", "/secrets", "b-secret", service="image", data="x")
    server = make(lab, "Site1", "/servers", "a-relies", "{compute: Site1 & Site2, image: Site1}", secret=secret)
    for site in BOTH:
        wait_there(lab, site, "/servers", "a-relies")
        wait_for(lambda site=site: not at_risk(lab, site, server), f"nothing to be at risk at {site}")
    lab.isolate("Site2")
    wait_for(lambda: at_risk(lab, "Site2", server), "Site2 to see that it is at risk")
    assert not at_risk(lab, "Site1", server)
    shown = lab.cheops("Site2", "get", server)
    assert "at risk" in shown.stdout, shown
    lab.heal()
    wait_for(lambda: not at_risk(lab, "Site2", server), "Site2 to see that it is not any more")
    deleted = ask(lab, "Site1", "DELETE", f"/secrets/{secret}", service="image")
    assert deleted.status == 204 and server in deleted.header("Warning"), deleted


def test_reliance_replicated(lab):
    """With B at each site of A, a cut does no harm."""
    secret = make(lab, "Site1", "/secrets", "b-secret-everywhere", "Site1 & Site2", service="image", data="x")
    server = make(lab, "Site1", "/servers", "a-safe", "Site1 & Site2", secret=secret)
    wait_there(lab, "Site2", "/servers", "a-safe")
    lab.isolate("Site2")
    wait_for(lambda: lab.shown("Site2")["Site1"] != "present", "Site2 to lose Site1")
    assert not at_risk(lab, "Site2", server) and not at_risk(lab, "Site1", server)


def test_composition(lab):
    """B, C and D are made by each site's own application, and go with A."""
    stack = make(lab, "Site1", "/stacks", "a-whole", "Site1 & Site2", servers=3)
    parts = {site: set(wait_there(lab, site, "/stacks", "a-whole")["servers"]) for site in BOTH}
    assert all(len(found) == 3 for found in parts.values()) and not parts["Site1"] & parts["Site2"]
    for site in BOTH:
        assert set(ask(lab, site, "GET", f"/stacks/{stack}").json["servers"]) == parts[site]
        assert parts[site] <= {each["id"] for each in behind(lab, site, "/servers")}
    assert ask(lab, "Site2", "DELETE", f"/stacks/{stack}", prefer="wait=60").status == 204
    for site in BOTH:
        wait_for(lambda site=site: not parts[site] & {each["id"] for each in behind(lab, site, "/servers")}, f"none at {site}")


def test_composition_in_a_project_over_two_sites(lab):
    """Each compound resource is made in a cross manner: the stack is one of the project, its servers are where it is."""
    project = make(lab, "Site1", "/projects", "whole", "Site1 % Site2")
    wait_for(lambda: ask(lab, "Site2", "GET", f"/projects/{project}").status == 200, "Site2 to know of it")
    stack = make(lab, "Site1", f"/projects/{project}/stacks", "within", "Site2", servers=2)
    path = f"/projects/{project}/stacks/{stack}"
    wait_for(lambda: ask(lab, "Site1", "GET", path).status == 200, "Site1 to know of it")
    shown = ask(lab, "Site1", "GET", path).json
    assert len(shown["servers"]) == 2
    assert set(shown["servers"]) <= {each["id"] for each in behind(lab, "Site2", "/servers")}
    assert named(lab, "Site1", "/stacks", "within") == []


# ---- RR-9336 -----------------------------------------------------------------------------------------------------------------


def test_list_over_two_sites(lab):
    """openstack server list --scope { compute: Site1 & Site2 }"""
    for site in lab.sites:
        make(lab, site, "/servers", f"listed at {site}")
    answer = ask(lab, "Site3", "GET", "/servers", scope="{compute: Site1 & Site2}")
    names = {each["name"] for each in answer.json["servers"]}
    assert answer.status == 200 and {"listed at Site1", "listed at Site2"} <= names and "listed at Site3" not in names


def test_flat_network_of_another_site(lab):
    """openstack server create --network flat --scope { compute: Site1, network: Site2 }: mismatched types."""
    network = behind(lab, "Site2", "/networks", "network")[0]["id"]
    answer = ask(lab, "Site1", "POST", "/servers", {"name": "mismatched", "image": lab.image, "network": network},
                 "{compute: Site1, network: Site2}")
    assert answer.status == 403
    assert answer.json["detail"].startswith(
        "server.create at Site1 expects Site1/network, but the scope gives Site2/network"), answer
    assert [named(lab, site, "/servers", "mismatched") for site in BOTH] == [[], []]
