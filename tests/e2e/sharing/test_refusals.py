"""What a user meets when it does not work: each problem names what is wrong, and the site where it is."""
import http.client
import json
import signal
import socket
import ssl
import urllib.parse

import mesh as meshes
import mesh_maker
import pytest
from demo_process import BOUND_S, Answer, ask, wait_for

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


@pytest.mark.parametrize("scope, kind", [("strong(Site1 & Site2)", "`all` (`&`"),
                                         ("Site1; Site2 & Site3", "`all` (`&`"), ("Site1 | Site2 % Site3", "`span` (`%`")])
def test_collaboration_that_is_not_carried_out_yet(sites, scope, kind):
    before = len(sites.requests("Site1", "image"))
    answer = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": scope}, json_body={"name": "not yet"})
    assert answer.status == 501 and answer.problem["type"] == "not-yet" and kind in answer.problem["detail"]
    assert len(sites.requests("Site1", "image")) == before


def test_a_span_of_what_does_not_span(sites):
    before = len(sites.requests("Site1", "image"))
    answer = ask(sites.url("Site1", "image") + "/images", "POST", {"Scope": "Site1 % Site2"}, json_body={"name": "no"})
    assert answer.status == 400 and answer.problem["type"] == "not-cross" and "image.image" in answer.problem["detail"]
    assert len(sites.requests("Site1", "image")) == before


def test_inner_call_that_is_refused_is_told_by_the_service(sites):
    """The scope's mistake lies with image; compute is fine, so it is compute that says what it was answered."""
    answer = sites.boot("Site1", "Site2", {"Scope": "compute: Site1, image: Site1 % Site2"})
    assert answer.status == 502 and answer.json["error"]["upstream_status"] == 501


def test_connection_goes_on_after_a_refusal(sites):
    parts = urllib.parse.urlsplit(sites.url("Site1", "compute"))
    connection = http.client.HTTPConnection(parts.netloc, timeout=BOUND_S)
    for scope, status in [("Site9", 400), ("Site1", 200), ("Site1 % Site2", 501), ("Site1 & Site2", 207), ("Site3", 200)]:
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
    first, second = mesh.join(mesh.agent("Site1", {"image": images["Site1"].url}, **more),
                              mesh.agent("Site2", {"image": images["Site2"].url}))
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
    second = mesh.again(second)
    assert ask(first.url("image") + "/whoami", headers={"Scope": "Site2"}).json == {"service": "image", "site": "Site2"}


def test_body_for_a_site_that_is_down(mesh):
    """The answer comes although the body was not taken."""
    _, first, second = two_sites(mesh)
    second.kill()
    answer = ask(first.url("image") + "/images", "POST", {"Scope": "Site2", "Content-Type": "application/json"}, b"{}")
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "site-unreachable"


def test_agent_of_the_site_hangs(mesh):
    _, first, second = two_sites(mesh, timeouts={"answer": "2s"})
    second.signal(signal.SIGSTOP)
    answer = ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 504 and tried(answer.problem, "Site2")["type"] == "no-answer"


def test_site_takes_no_connection(mesh):
    """As behind a firewall that drops everything: a queue of connections that is full, where the agent was."""
    _, first, second = two_sites(mesh, timeouts={"connect": "2s"})
    second.kill()
    host, _, port = second.config["peer"].partition(":")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        answer = ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})
        for client in waiting:
            client.close()
    assert answer.status == 504 and tried(answer.problem, "Site2")["type"] == "site-unreachable"
    assert answer.header("Proxy-Status").endswith("error=connection_timeout")


def test_site_whose_agent_says_nothing(mesh):
    """A connection comes about, but no handshake."""
    _, first, second = two_sites(mesh, timeouts={"connect": "2s"})
    second.kill()
    host, _, port = second.config["peer"].partition(":")
    with socket.create_server((host, int(port))):
        answer = ask(first.url("image") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 504 and tried(answer.problem, "Site2")["type"] == "site-unreachable"


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
    """Which its agent knows best."""
    both = mesh.recorder()
    first, _ = mesh.join(mesh.agent("Site1", {"image": both.url, "compute": both.url}),
                         mesh.agent("Site2", {"image": both.url}))
    answer = ask(first.url("compute") + "/whoami", headers={"Scope": "Site2"})
    assert answer.status == 503 and tried(answer.problem, "Site2")["type"] == "no-instance"


def test_service_breaks_off_at_the_other_site(mesh):
    listener = mesh.keep(Listener(b""))
    here = mesh.recorder()
    first, _ = mesh.join(mesh.agent("Site1", {"image": here.url}), mesh.agent("Site2", {"image": listener.url}))
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


# ---- agents that misbehave ----------------------------------------------------------------------------------------------


def played(mesh, script, identity_of=None):
    """Site1, and Site2 played by the script, with its own identity or with that of another agent."""
    here = mesh.recorder()
    agents = [mesh.agent(f"Site{n}", {"image": here.url}) for n in (1, 2, 3)]
    mesh.join(*agents)
    agents[1].kill()
    state = agents[identity_of - 1 if identity_of else 1].config["state"]
    mesh.keep(mesh_maker.PlayedAgent({**agents[1].config, "state": state}, script))
    return agents[0]


def read_head(sock):
    text = b""
    while not text.endswith(b"\r\n\r\n") and (piece := sock.recv(1)):
        text += piece
    return text.decode()


def test_what_one_agent_says_to_another(mesh):
    """Nothing but the service, the hops and the scope is told; who asks, the certificate tells."""
    heads = []

    def script(sock):
        heads.append((read_head(sock), sock.getpeercert()))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    first = played(mesh, script)
    assert ask(first.url("image") + "/images?x=1", headers={"Scope": "Site2", "Cheops-Hop": "v2 service=x hops=7"}).bytes == b"hi"
    [(head, certificate)] = [one for one in heads if " /images" in one[0]]  # else it is a probe, as on a busy machine
    line, *fields = head.split("\r\n")[:-2]
    assert line == "GET /images?x=1 HTTP/1.1"
    assert [field for field in fields if field.startswith(("Cheops-Hop:", "Scope:"))] == [
        "Cheops-Hop: v2 service=image hops=1", "Scope: image: Site2"]
    assert (("commonName", "Site1"),) in certificate["subject"]


@pytest.mark.parametrize("answer, kind", [(b"SSH-2.0-hello\r\n\r\n", "malformed-response"), (b"", "broken-answer"),
                                          (b"HTTP/1.1 200 OK\r\nContent-Le", "broken-answer")])
def test_agent_that_answers_nonsense(mesh, answer, kind):
    def script(sock):
        read_head(sock)
        sock.recv(2)  # the body; what is left unread would make the end a reset
        sock.sendall(answer)

    got = ask(played(mesh, script).url("image") + "/images", "POST", {"Scope": "Site2"}, json_body={})
    assert got.status == 502 and tried(got.problem, "Site2")["type"] == kind


def test_another_agent_in_the_place_of_one(mesh):
    """It is of the mesh, but not the site that is meant: it gets no request."""
    heads = []
    first = played(mesh, lambda sock: heads.append(read_head(sock)), identity_of=3)
    answer = ask(first.url("image") + "/images", "POST", {"Scope": "Site2"}, json_body={"secret": 1})
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "site-unreachable"
    assert [head for head in heads if head] == []


def test_a_stranger_in_the_place_of_an_agent(mesh, tmp_path):
    """A certificate of another authority, though for the same name."""
    heads = []
    _, first, second = two_sites(mesh)
    second.kill()
    other = {**second.config, "state": str(tmp_path / "other")}
    (tmp_path / "other.yaml").write_text(json.dumps(other))
    mesh_maker.init(tmp_path / "other.yaml")
    stranger = mesh_maker.PlayedAgent(other, lambda sock: heads.append(read_head(sock)))
    stranger.context.load_verify_locations(f"{first.config['state']}/roots.pem")
    mesh.keep(stranger)
    answer = ask(first.url("image") + "/images", "POST", {"Scope": "Site2"}, json_body={"secret": 1})
    assert answer.status == 502 and tried(answer.problem, "Site2")["type"] == "site-unreachable"
    assert [head for head in heads if head] == []


# ---- hops and loops -----------------------------------------------------------------------------------------------------

FORGED = ["v1 service=image from=Site2 hops=1 mac=00000000000000000000000000000000", "v1", "", "v2 service=image", "x" * 3000]
HOP = "v2 service=image hops=1"


@pytest.mark.parametrize("hop", [*FORGED, HOP], ids=lambda hop: hop[:30])
def test_forged_hop_at_a_front_is_ignored(sites, hop):
    before = sites.metric("Site1", "cheops_forged_hops_total")
    assert ask(sites.url("Site1", "compute") + "/whoami", headers={"Cheops-Hop": hop}).json["service"] == "compute"
    assert sites.metric("Site1", "cheops_forged_hops_total") == before + 1
    assert all("cheops-hop" not in map(str.lower, entry["headers"]) for entry in sites.requests("Site1", "compute"))


def ask_peer(sites, state, path="/whoami", method="GET", **headers):
    """At the port for agents of Site1, as the site whose state that is; None: as a stranger."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(*mesh_maker.ask_peer(sites.peer_address("Site1"), state, method, path, headers))


@pytest.mark.parametrize("path", ["/whoami", "/cheops/v1/health", "/cheops/v1/renew"])
@pytest.mark.parametrize("hop", [*FORGED, HOP, None], ids=lambda hop: str(hop)[:30])
def test_stranger_at_the_port_for_agents(sites, hop, path):
    """Without a certificate there is nothing to be had, whatever the header says."""
    before = sites.metric("Site1", "cheops_refused_peers_total")
    answer = ask_peer(sites, None, path, Scope="Site1", **({"Cheops_Hop": hop} if hop is not None else {}))
    assert answer.status == 403 and answer.problem["type"] == "not-a-peer" and answer.header("Connection") == "close"
    assert sites.metric("Site1", "cheops_refused_peers_total") == before + 1


def test_plain_http_at_the_port_for_agents(sites):
    """Is not answered: whoever asks may be sure that nobody was listened to."""
    with pytest.raises((http.client.BadStatusLine, ConnectionError)):
        ask("http://" + sites.peer_address("Site1") + "/whoami", headers={"Cheops-Hop": HOP})


def test_certificate_of_another_authority(sites, cheops, tmp_path):
    """Is refused in the handshake, and the other side is told why."""
    config = {"site": "Site2", "api": "127.0.0.1:1", "peer": "127.0.0.1:2", "state": str(tmp_path / "other"),
              "services": {"image": {"front": "127.0.0.1:3", "instances": "127.0.0.1:4"}}}
    (tmp_path / "other.yaml").write_text(json.dumps(config))
    mesh_maker.init(tmp_path / "other.yaml")
    context = mesh_maker.tls_client(tmp_path / "other")
    context.load_verify_locations(sites.state("Site2") / "roots.pem")  # it trusts us; that helps nothing
    requests = len(sites.requests("Site1", "image"))
    with pytest.raises(ssl.SSLError, match="(?i)unknown.ca"):
        mesh_maker.ask_peer(sites.peer_address("Site1"), path="/whoami", headers={"Cheops-Hop": HOP}, context=context)
    assert len(sites.requests("Site1", "image")) == requests


def test_hop_of_an_agent(sites):
    """The header says for which service; it and the scope are not for the service."""
    before = sites.metric("Site1", "cheops_peer_requests_total")
    answer = ask_peer(sites, sites.state("Site2"), Cheops_Hop=HOP, Scope="image: Site1")
    assert answer.json == {"service": "image", "site": "Site1"}
    assert sites.metric("Site1", "cheops_peer_requests_total") == before + 1
    assert {"cheops-hop", "scope"} & set(map(str.lower, sites.requests("Site1", "image")[-1]["headers"])) == set()
    later = ask_peer(sites, sites.state("Site2"), Cheops_Hop="v2 by=later service=%69mage hops=001", Scope="image: Site1")
    assert later.json == {"service": "image", "site": "Site1"}


@pytest.mark.parametrize("hop", [*FORGED, None, "v2 hops=1", "v2 service= hops=1", "v2 service=%zz hops=1", "v2 service=image hops=",
                                 "v2 service=image hops=1000", "v2 service=image hops=-1", "v3 service=image hops=1"],
                         ids=lambda hop: str(hop)[:30])
def test_agent_that_does_not_say_for_which_service(sites, hop):
    headers = {} if hop is None else {"Cheops_Hop": hop}
    answer = ask_peer(sites, sites.state("Site2"), Scope="Site1", **headers)
    assert answer.status == 400 and answer.problem["type"] == "bad-hop" and answer.header("Connection") == "close"
    assert "Cheops-Hop: v2 service=... hops=..." in answer.problem["detail"]


def test_hop_to_a_service_that_is_not_here(sites):
    answer = ask_peer(sites, sites.state("Site2"), Cheops_Hop="v2 service=volume hops=1", Scope="image: Site1")
    assert answer.status == 503 and answer.problem["type"] == "no-instance" and answer.problem["site"] == "Site1"


def test_hops_are_counted(sites):
    before = sites.metric("Site1", "cheops_loops_total")
    assert ask_peer(sites, sites.state("Site2"), Cheops_Hop="v2 service=image hops=8", Scope="Site1").status == 200
    answer = ask_peer(sites, sites.state("Site2"), Cheops_Hop="v2 service=image hops=9", Scope="Site1")
    assert answer.status == 508 and answer.problem["type"] == "loop"
    assert sites.metric("Site1", "cheops_loops_total") == before + 1


def test_what_an_agent_may_ask_of_another(sites):
    """Not what its operator may."""
    state = sites.state("Site2")
    assert ask_peer(sites, state, "/cheops/v1/health").json == {"status": "ok", "site": "Site1"}
    assert ask_peer(sites, state, "/cheops/v1/version").status == 200
    for method, path in [("GET", "sites"), ("GET", "metrics"), ("GET", "services"), ("GET", "authority"), ("POST", "reload"),
                         ("POST", "sites/tokens"), ("POST", "sites/revoke"), ("POST", "sites/remove"),
                         ("POST", "authority/rotate"), ("POST", "authority/retire")]:
        answer = ask_peer(sites, state, f"/cheops/v1/{path}", method)
        assert answer.status == 404 and answer.problem["type"] == "no-such-path", (method, path, answer)


def test_site_that_was_shut_out(mesh):
    """Everywhere, also on connections that it has; and nobody sends it anything any more."""
    image = mesh.recorder()
    first, second, third = mesh.join(*(mesh.agent(f"Site{n}", {"image": image.url}) for n in (1, 2, 3)))
    state = third.config["state"]
    hop = {"Cheops-Hop": HOP, "Scope": "Site2"}
    assert second.ask_peer("/images", state, headers=hop).status == 200
    kept = http.client.HTTPSConnection(second.config["peer"], timeout=BOUND_S, context=mesh_maker.tls_client(state))
    kept.request("GET", "/images", headers=hop)
    assert kept.getresponse().read() == b"{}"
    assert mesh_maker.call(first, "POST", "/cheops/v1/sites/revoke", {"name": "Site3"}) == (200, {"revoked": "Site3"})
    wait_for(lambda: mesh_maker.sites_of(second)["Site3"]["state"] == "revoked", "Site2 to know")
    answer = second.ask_peer("/images", state, headers=hop)
    assert answer.status == 403
    assert answer.problem["type"] == "revoked" and answer.header("Connection") == "close"
    with pytest.raises((http.client.HTTPException, OSError)):
        kept.request("GET", "/images", headers=hop)
        kept.getresponse()
    kept.close()
    before = len(image.requests)
    answer = ask(third.url("image") + "/images", headers={"Scope": "Site2"})
    assert answer.status >= 400 and answer.problem, answer
    assert len(image.requests) == before
    assert ask(first.url("image") + "/images", headers={"Scope": "Site2"}).status == 200


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
