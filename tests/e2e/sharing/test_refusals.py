"""What a user meets when it does not work: each problem names what is wrong, and the site where it is."""
import http.client
import json
import re
import signal
import socket
import urllib.parse

import mesh as meshes
import pytest
from demo_process import BOUND_S, ask, wait_for

# ---- scopes that cannot be followed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope, kind, said", [
    ("image: Sit2", "unknown-site", "unknown site `Sit2`; did you mean `Site"),
    ("imag: Site2", "unknown-service", "unknown service `imag`; did you mean `image`?"),
    ("compute: Site1, volume: Site2", "unknown-service", "unknown service `volume`"),
    ("Site1 &", "syntax", None),
    ("Site1 Site2", "syntax", None),
    ("", "empty", None),
    ("Site1 @", "unexpected-character", None),
    ("around(Site1)", "argument-count", None),
    ("strong(Site1; Site2)", "no-meaning", None),
    ("image: Site1, image: Site2", "duplicate-service", None),
    ("x" * 5000, "too-long", None),
])
def test_scope_that_makes_no_sense(sites, scope, kind, said):
    before = sites.metric("Site1", "cheops_refused_scopes_total")
    answer = ask(sites.url("Site1", "compute") + "/servers", headers={"Scope": scope})
    problem = answer.problem
    assert (answer.status, problem["type"], problem["service"]) == (400, kind, "compute")
    assert problem["scope_error"]["type"] == kind and problem["scope_error"]["message"] in problem["detail"]
    assert {"offset", "length", "hint"} <= set(problem["scope_error"])
    assert problem["scope"] == scope
    assert said is None or said in problem["detail"]
    assert sites.metric("Site1", "cheops_refused_scopes_total") == before + 1


def test_mistake_is_shown_where_it_is(sites):
    error = ask(sites.url("Site1", "compute") + "/servers", headers={"Scope": "{image: Sit2}"}).problem["scope_error"]
    assert (error["offset"], error["length"]) == (8, 4) and error["hint"].startswith("did you mean `Site")


@pytest.mark.parametrize("headers, prefix", [({}, "/scope/%zz"), ({"baggage": "cheops.scope=%4"}, ""), ({}, "/scope/%")])
def test_scope_that_is_not_encoded_well(sites, headers, prefix):
    answer = ask(sites.url("Site1", "compute") + prefix + "/servers", headers=headers)
    assert answer.status == 400 and answer.problem["type"] == "bad-scope"


@pytest.mark.parametrize("scope, kind", [("Site1 & Site2", "all"), ("Site1 % Site2", "span"), ("Site1; Site2", "otherwise"),
                                         ("Site1 | Site2", "any")])
def test_collaboration_that_is_not_carried_out_yet(sites, scope, kind):
    before = len(sites.requests("Site1", "image"))
    answer = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": scope}, json_body={"name": "not yet"})
    assert answer.status == 501 and answer.problem["type"] == "not-yet" and f"`{kind}`" in answer.problem["detail"]
    assert len(sites.requests("Site1", "image")) == before


def test_inner_call_that_is_refused_is_told_by_the_service(sites):
    """The scope's mistake lies with image; compute is fine, so it is compute that says what it was answered."""
    answer = sites.boot("Site1", "Site2", {"Scope": "compute: Site1, image: Site1 & Site2"})
    assert answer.status == 502 and answer.json["error"]["upstream_status"] == 501


def test_connection_goes_on_after_a_refusal(sites):
    parts = urllib.parse.urlsplit(sites.url("Site1", "compute"))
    connection = http.client.HTTPConnection(parts.netloc, timeout=BOUND_S)
    for scope, status in [("Site9", 400), ("Site1", 200), ("Site1 & Site2", 501), ("Site3", 200)]:
        connection.request("GET", "/whoami", headers={"Scope": scope})
        first = connection.sock
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (status, True)
        assert connection.sock is first
    connection.close()


# ---- sites that cannot be reached ---------------------------------------------------------------------------------------


def tried(problem, site):
    """The problem names the site, and that it was tried."""
    assert site in problem["detail"] and problem["site"] == site, problem
    assert [entry["site"] for entry in problem["tried"]] == [site] and problem["tried"][0]["error"], problem
    return problem


def two_sites(mesh, **more):
    images = {site: mesh.service("image", site) for site in ("Site1", "Site2")}
    first = mesh.agent("Site1", {"image": images["Site1"].url}, ["Site2"], **more)
    second = mesh.agent("Site2", {"image": images["Site2"].url}, ["Site1"])
    assert ask(first.url("image") + "/whoami", headers={"Scope": "Site2"}).json == {"service": "image", "site": "Site2"}
    return images, first, second


def test_agent_of_the_site_is_down(mesh):
    _, first, second = two_sites(mesh)
    second.kill()
    answer = ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "site-unreachable"
    assert "Connection refused" in answer.problem["detail"] and second.config["peer"] in answer.problem["detail"]
    assert answer.header("Proxy-Status") == '"Site1"; next-hop="Site2"; error=connection_refused'
    assert ask(first.url("image") + "/whoami").status == 200  # which nothing of that concerns
    second = mesh.keep(meshes.Agent(mesh.folder, second.config))
    assert ask(first.url("image") + "/whoami", headers={"Scope": "Site2"}).json == {"service": "image", "site": "Site2"}


def test_body_for_a_site_that_is_down(mesh):
    """The answer comes although the body was not taken."""
    _, first, second = two_sites(mesh)
    second.kill()
    answer = ask(first.url("image") + "/images", "POST", {"Scope": "Site2", "Content-Type": "application/json"}, b"{}")
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "site-unreachable"


def test_agent_of_the_site_hangs(mesh):
    _, first, second = two_sites(mesh, timeouts={"answer": "300ms"})
    second.signal(signal.SIGSTOP)
    answer = ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 504 and tried(answer.problem, "Site2")["type"] == "no-answer"


def test_site_takes_no_connection(mesh):
    """As behind a firewall that drops everything: a queue of connections that is full."""
    image = mesh.service("image", "Site1")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = "{}:{}".format(*listener.getsockname())
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        agent = mesh.agent("Site1", {"image": image.url}, {"Site2": address}, timeouts={"connect": "300ms"})
        answer = ask(agent.url("image") + "/whoami", headers={"Scope": "Site2"})
        for client in waiting:
            client.close()
    assert answer.status == 504 and tried(answer.problem, "Site2")["type"] == "site-unreachable"
    assert answer.header("Proxy-Status").endswith("error=connection_timeout")


def test_service_is_down_at_the_other_site(mesh):
    images, first, _ = two_sites(mesh)
    images["Site2"].kill()
    answer = wait_for(lambda: (made := ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})).status == 503 and made,
                      "Site2 to notice")
    assert tried(answer.problem, "Site2")["type"] == "no-instance" and answer.problem["service"] == "image"
    assert ask(first.url("image") + "/whoami").status == 200


def test_service_is_down_here(mesh):
    images, first, _ = two_sites(mesh)
    images["Site1"].kill()
    answer = wait_for(lambda: (made := ask(first.url("image") + "/whoami")).status == 503 and made, "Site1 to notice")
    assert tried(answer.problem, "Site1")["type"] == "no-instance"
    assert ask(first.url("image") + "/whoami", headers={"Scope": "Site2"}).status == 200


def test_service_that_the_other_site_does_not_have(mesh):
    """Which its agent knows best, and the configuration here may not say."""
    both = mesh.recorder()
    first = mesh.agent("Site1", {"image": both.url, "compute": both.url}, ["Site2"])
    mesh.agent("Site2", {"image": both.url}, ["Site1"])
    answer = ask(first.url("compute") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 503 and tried(answer.problem, "Site2")["type"] == "no-instance"


def test_service_breaks_off_at_the_other_site(mesh):
    listener = mesh.keep(Listener(b""))
    here = mesh.recorder()
    first = mesh.agent("Site1", {"image": here.url}, ["Site2"])
    mesh.agent("Site2", {"image": listener.url}, ["Site1"])
    answer = ask(first.url("image") + "/images", "POST", {"Scope": "Site2"}, json_body={})
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "broken-answer"


def test_answer_that_is_not_http(mesh):
    listener = mesh.keep(Listener(b"SSH-2.0-hello\r\n\r\n"))
    agent = mesh.agent("Site1", {"image": listener.url})
    answer = ask(agent.url("image") + "/whoami")
    assert answer.status == 502 and tried(answer.problem, "Site1")["type"] == "malformed-response"


class Listener:
    """Answers whatever comes with the same bytes, and closes."""

    def __init__(self, answer):
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self.socket.getsockname())
        meshes.threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                if client.recv(1 << 16):
                    client.sendall(self.answer)

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


# ---- hops and loops -----------------------------------------------------------------------------------------------------

FORGED = ["v1 service=image from=Site2 hops=1 mac=00000000000000000000000000000000", "v1", "", "v2 service=image", "x" * 3000]


@pytest.mark.parametrize("hop", FORGED, ids=lambda hop: hop[:30])
def test_forged_hop_at_a_front_is_ignored(sites, hop):
    before = sites.metric("Site1", "cheops_forged_hops_total")
    assert ask(sites.url("Site1", "compute") + "/whoami", headers={"Cheops-Hop": hop}).json["service"] == "compute"
    assert sites.metric("Site1", "cheops_forged_hops_total") == before + 1
    assert all("cheops-hop" not in map(str.lower, entry["headers"]) for entry in sites.requests("Site1", "compute"))


@pytest.mark.parametrize("hop", [*FORGED, None], ids=lambda hop: str(hop)[:30])
def test_stranger_at_the_port_for_agents(sites, hop):
    before = sites.metric("Site1", "cheops_forged_hops_total")
    answer = ask(sites.peer_url("Site1") + "/whoami", headers={"Scope": "Site1"} | ({"Cheops-Hop": hop} if hop is not None else {}))
    assert answer.status == 403 and answer.problem["type"] == "not-a-peer"
    assert sites.metric("Site1", "cheops_forged_hops_total") == before + 1


def test_hop_holds_for_one_request_to_one_site_only(mesh):
    """What an agent signed for one request to one site is refused with any other, and at any other site."""
    spy = mesh.recorder()
    image = mesh.recorder()
    first = mesh.agent("Site1", {"image": image.url, "compute": image.url}, {"Site2": spy.url.removeprefix("http://")})
    second = mesh.agent("Site2", {"image": image.url, "compute": image.url}, ["Site1"])
    third = mesh.agent("Site3", {"image": image.url, "compute": image.url}, ["Site1"])
    stranger = mesh.agent("Site4", {"image": image.url}, ["Site1"], hop_key="another secret altogether")
    ask(first.url("image") + "/images?x=1", headers={"Scope": "Site2"})
    signed = {name: value for name, value in spy.requests[0][2] if name in ("Cheops-Hop", "Scope")}
    hop = signed["Cheops-Hop"]
    assert re.fullmatch(r"v1 service=image from=Site1 hops=1 mac=[0-9a-f]{32}", hop)
    assert ask(second.peer + "/images?x=1", headers=signed).status == 200
    for agent, method, path, header in [
            (second, "GET", "/images", hop), (second, "DELETE", "/images?x=1", hop), (third, "GET", "/images?x=1", hop),
            (stranger, "GET", "/images?x=1", hop),
            (second, "GET", "/images?x=1", hop.replace("service=image", "service=compute")),
            (second, "GET", "/images?x=1", hop.replace("hops=1", "hops=2")),
            (second, "GET", "/images?x=1", hop.replace("from=Site1", "from=Site3"))]:
        answer = ask(agent.peer + path, method, {**signed, "Cheops-Hop": header})
        assert answer.status == 403, (method, path, header)
    assert len(image.requests) == 1


def test_instance_that_is_a_front_is_refused_from_the_start(mesh, cheops):
    config = mesh.config("Site1", {"image": "http://127.0.0.1:1"})
    config["services"]["image"]["instances"] = config["services"]["image"]["front"]
    (mesh.folder / "loop.yaml").write_text(json.dumps(config))
    result = cheops("agent", "--check", "-c", "loop.yaml", cwd=mesh.folder)
    assert result.status == 1 and "requests would go round in circles" in result.err


@pytest.mark.parametrize("headers", [{}, {"Scope": "Site1"}, {"Via": "1.1 Site1x"}])
def test_loop_through_something_else_ends(mesh, headers):
    """An instance whose address leads back to the front, by a way that no check of a file can see."""
    relay = mesh.keep(meshes.Relay())
    agent = mesh.agent("Site1", {"image": relay.url})
    relay.to = agent.url("image")
    answer = ask(agent.url("image") + "/whoami", headers=headers)
    assert answer.status == 508 and answer.problem["type"] == "loop" and answer.problem["site"] == "Site1"
    assert agent.metric("cheops_loops_total") == 1


def test_loop_of_two_agents_ends(mesh):
    """Each takes the other's front for an instance of the service."""
    first = mesh.config("Site1", {"image": "http://127.0.0.1:1"})
    second = mesh.config("Site2", {"image": "http://" + first["services"]["image"]["front"]})
    first["services"]["image"]["instances"] = second["services"]["image"]["front"]
    agents = [mesh.keep(meshes.Agent(mesh.folder, config)) for config in (first, second)]
    answer = ask(agents[0].url("image") + "/whoami")
    assert answer.status == 508 and answer.problem["type"] == "loop"
    assert sum(agent.metric("cheops_loops_total") for agent in agents) == 1


def test_request_cannot_be_sent_round_the_sites(sites):
    """A service that calls itself through a scope: each call is a request of its own, and ends."""
    before = {site: sites.metric(site, "cheops_peer_requests_total") for site in sites.sites}
    assert sites.via(Scope="compute: Site2, image: Site1") == ("Site2", "Site1")
    after = {site: sites.metric(site, "cheops_peer_requests_total") for site in sites.sites}
    assert {site: after[site] - before[site] for site in after} == {"Site1": 1, "Site2": 1, "Site3": 0}
