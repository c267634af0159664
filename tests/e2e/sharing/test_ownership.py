"""What belongs to a site is not used from another one (docs/ownership.md): RR-9336's flat network, refused before anything runs."""
import contextlib
import http.client
import itertools
import json
import urllib.parse
import uuid

import pytest

import demo_process
from demo_process import BOUND_S, ask
from demo_sites import Sites
from test_propagation import extra

SITES = ("Site1", "Site2", "Site3")
SERVICES = ("compute", "image", "network")
SAID = "server.create at Site1 expects Site1/network, but the scope gives Site2/network"
PROBLEM = "urn:cheops:problem:not-owned-here"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A demo of its own: what is replicated in it would show in the answers that others look at."""
    demo = demo_process.Demo(tmp_path_factory.mktemp("ownership") / "demo")
    yield Sites(demo)
    demo.stop()


def network_of(sites, site):
    return ask(sites.own_url(site, "network") + "/networks").json["networks"][0]["id"]


def reached(sites, answer):
    """The services that have seen a request which this one is, or led to: compute forwards its headers. What else goes on in the demo,
    such as copies that are on their way, does not count."""
    return {(site, service) for site, service in itertools.product(SITES, SERVICES)
            if any(entry["headers"].get("X-Mark") == answer.mark for entry in sites.requests(site, service))}


def server(sites, image_of="Site1", **members):
    return {"name": "vm", "image": sites.image_id(image_of), **members}


def send(sites, headers, body, prefix=""):
    mark = str(uuid.uuid4())
    answer = ask(sites.url("Site1", "compute") + prefix + "/servers", "POST", {"X-Mark": mark, **headers}, json_body=body)
    answer.mark = mark
    return answer


def create(sites, scope, body, **headers):
    return send(sites, {"Scope": scope, **headers}, body)


def connected(sites):
    netloc = urllib.parse.urlsplit(sites.url("Site1", "compute")).netloc
    return contextlib.closing(http.client.HTTPConnection(netloc, timeout=BOUND_S))


def counted(sites, site="Site1"):
    return sites.metric(site, "cheops_not_owned_total")


# ---- refused, and nothing has run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix, headers", [
    ("", {"Scope": "{compute: Site1, network: Site2}"}),
    ("", {"X-Scope": '{"compute": "Site1", "network": "Site2"}'}),
    ("", {"Scope": "network: Site2"}),
    ("/scope/compute:Site1,network:Site2", {}),
])
def test_the_flat_network_of_another_site(sites, prefix, headers):
    network = network_of(sites, "Site2")
    answer = send(sites, headers, server(sites, network=network), prefix)
    assert answer.status == 403 and answer.header("Content-Type") == "application/problem+json"
    assert answer.json["type"] == PROBLEM and answer.json["site"] == "Site1" and answer.json["service"] == "compute"
    assert answer.json["detail"].startswith(SAID + "; network.network belongs to its site")
    assert reached(sites, answer) == set()


@pytest.mark.parametrize("scope, said", [
    ("{compute: Site2, network: Site1}", "server.create at Site2 expects Site2/network, but the scope gives Site1/network"),
    ("{compute: Site1 & Site2, network: Site1}",
     "server.create at Site2 expects Site2/network, but the scope gives Site1/network"),
    ("{compute: Site1; Site2, network: Site1}",
     "server.create at Site2 expects Site2/network, but the scope gives Site1/network"),
    ("{compute: Site1, network: Site1; Site2}",
     "server.create at Site1 expects Site1/network, but the scope gives Site1/network or Site2/network"),
])
def test_wherever_it_may_run(sites, scope, said):
    count = counted(sites)
    answer = create(sites, scope, server(sites, network=True))
    assert answer.status == 403 and answer.json["detail"].startswith(said)
    assert reached(sites, answer) == set()
    assert counted(sites) == count + 1


def test_explained_instead_of_run(sites):
    count = counted(sites)
    explained = create(sites, "{compute: Site1, network: Site2}", server(sites, network=True), **{"Cheops-Explain": "plan"})
    assert explained.status == 200 and explained.json["plan"] == {"op": "one", "site": "Site1"}
    assert explained.json["refused"]["type"] == "not-owned-here" and explained.json["refused"]["message"] == SAID
    assert "belongs to its site" in explained.json["refused"]["hint"]
    fine = create(sites, "{compute: Site1, network: Site2}", server(sites), **{"Cheops-Explain": "plan"})
    assert fine.status == 200 and "refused" not in fine.json
    assert reached(sites, explained) == reached(sites, fine) == set() and counted(sites) == count


def test_the_connection_goes_on(sites):
    """A refused request, then one that is fine, on one connection: the body of the first was read to its end."""
    with connected(sites) as connection:
        headers = {"Scope": "compute: Site1, network: Site2", "Content-Type": "application/json"}
        connection.request("POST", "/servers", json.dumps(server(sites, network=True)), headers)
        refused = connection.getresponse()
        assert refused.status == 403 and refused.read()
        connection.request("POST", "/servers", json.dumps(server(sites)), headers)
        assert connection.getresponse().status == 201


# ---- what makes sense ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope, image_of, network, runs_at", [
    ("{compute: Site1, image: Site2}", "Site2", True, "Site1"),
    ("{compute: Site2, image: Site1, network: Site2}", "Site1", True, "Site2"),
    ("{compute: Site1, network: Site1}", "Site1", True, "Site1"),
    ("compute: Site2", "Site2", True, "Site2"),
    ("{compute: Site1, network: nearest(1)}", "Site1", True, "Site1"),
    # read to see that there is no network in it, and sent on as it is
    ("{compute: Site1, network: Site2}", "Site1", False, "Site1"),
    ("{compute: Site2, network: Site1}", "Site2", None, "Site2"),
    ("{compute: Site2; Site3, network: Site1}", "Site2", None, "Site2"),
])
def test_is_not_refused(sites, scope, image_of, network, runs_at):
    members = {} if network is None else {"network": network}
    answer = create(sites, scope, server(sites, image_of, **members))
    assert answer.status == 201, answer
    assert (runs_at, "compute") in reached(sites, answer)
    made = ask(f"{sites.own_url(runs_at, 'compute')}/servers/{answer.json['id']}")
    assert made.status == 200 and (made.json.get("port") is not None) == bool(network)


def test_sent_to_what_belongs_to_a_site(sites):
    """Networks of another site are read there, ports made there: nothing else takes part."""
    for scope in ("Site2", "compute: Site1, network: Site2"):
        networks = ask(sites.url("Site1", "network") + "/networks", headers={"Scope": scope})
        assert networks.json == ask(sites.own_url("Site2", "network") + "/networks").json
    port = ask(sites.url("Site1", "network") + "/ports", "POST", {"Scope": "Site2"}, json_body={})
    assert port.status == 201 and ask(f"{sites.own_url('Site2', 'network')}/ports/{port.json['id']}").status == 200


def test_replicated_over_sites_with_networks_of_their_own(sites):
    image = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": "Site1 & Site2"}, json_body={"name": "both"})
    assert image.status == 201
    file = ask(f"{sites.url('Site1', 'image')}/images/{image.json['id']}/file", "PUT", body=b"bytes")
    assert file.status < 300
    for scope in ("compute: Site1 & Site2", "{compute: Site1 & Site2, network: Site1 & Site2}"):
        made = create(sites, scope, {"name": "vm", "image": image.json["id"], "network": True})
        assert made.status == 201, made


@pytest.mark.parametrize("pieces", [[b'{"name": "vm", ', b'"ima', b'ge": "%s"}'], [b'{"name": "vm", "image": "%s"}']])
def test_a_body_in_chunks_goes_on_as_it_came(sites, pieces):
    image = sites.image_id("Site1").encode()
    with connected(sites) as connection:
        connection.request("POST", "/servers", iter([piece.replace(b"%s", image) for piece in pieces]),
                           {"Scope": "compute: Site1, network: Site2", "Content-Type": "application/json"},
                           encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 201 and json.loads(answer.read())["name"] == "vm"


# ---- calls on behalf of a request ----------------------------------------------------------------------------------------


def ports_asked(sites, site):
    return [entry for entry in sites.requests(site, "network") if (entry["method"], entry["path"]) == ("POST", "/ports")]


def test_a_call_of_a_service(carrying):
    """The agent does not see the network in a body that is nested too deep; compute does, and asks for a port. That call is
    refused, in each way that a scope can follow."""
    sites = carrying
    deep = "[" * 300 + "]" * 300
    body = f'{{"deep": {deep}, "name": "vm", "image": "{sites.image_id("Site1")}", "network": true}}'.encode()
    asked = {site: len(ports_asked(sites, site)) for site in SITES}
    answer = ask(sites.url("Site1", "compute") + "/servers", "POST",
                 {"Scope": "compute: Site1, network: Site2", "Content-Type": "application/json", **extra(sites.mode)}, body)
    assert answer.status >= 400, answer
    assert {site: len(ports_asked(sites, site)) for site in SITES} == asked
    assert counted(sites) >= 1


def test_a_call_is_told_who_made_it(sites):
    """As compute forwards it."""
    answer = ask(sites.url("Site1", "network") + "/ports", "POST",
                 {"Scope": "compute: Site1, network: Site2", "Cheops-Caller": "compute"}, json_body={})
    assert answer.status == 403 and answer.json["type"] == PROBLEM
    assert answer.json["detail"].startswith(
        "port.create, called by compute at Site1, expects Site1/network, but the scope gives Site2/network; network.port")
    pools = ask(sites.url("Site1", "network") + "/pools",
                headers={"Scope": "compute: Site1, network: Site2", "Cheops-Caller": "compute"})
    assert pools.status == 200


# ---- what is required ---------------------------------------------------------------------------------------------------


def replicated_image(sites, scope):
    image = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": scope}, json_body={"name": scope})
    assert image.status == 201
    assert ask(f"{sites.url('Site1', 'image')}/images/{image.json['id']}/file", "PUT", body=b"bytes").status < 300
    return image.json["id"]


def test_a_required_image_that_is_not_at_every_site(sites):
    image = replicated_image(sites, "Site1 & Site2")
    count = sites.metric("Site1", "cheops_requirement_absent_total")
    answer = create(sites, "compute: Site1 & Site3", {"name": "vm", "image": image})
    assert answer.status == 409 and answer.problem["type"] == "requirement-absent" and answer.json["site"] == "Site3"
    assert answer.json["detail"] == (
        f"server.create at Site3 requires image.image `{image}` at Site3, where it is not; replicate it there first, `cheops "
        f"replicant extend {image} Site3`, or let it be brought along, by `with_requirements(…)` around the location, or share it: let the scope say where image is, as in `image: SITE`")
    assert reached(sites, answer) == set()
    assert sites.metric("Site1", "cheops_requirement_absent_total") == count + 1
    explained = create(sites, "compute: Site1 & Site3", {"name": "vm", "image": image}, **{"Cheops-Explain": "plan"})
    assert explained.json["refused"]["type"] == "requirement-absent"
    assert create(sites, "compute: Site1 & Site2", {"name": "vm", "image": image}).status == 201


def test_a_required_image_of_one_site(sites):
    """It is no replica, so one of the two copies would have to do without."""
    answer = create(sites, "compute: Site1 & Site2", server(sites))
    assert answer.status == 409 and answer.problem["type"] == "requirement-absent"
    assert "but it is not replicated" in answer.json["detail"] and "make it with `image: Site1 & Site2`" in answer.json["detail"]
    assert reached(sites, answer) == set()
