"""Webhooks: agents tell a receiver what happens, in order, at least once, whatever happens to either."""
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import pathlib
import signal
import socket
import ssl
import sys
import threading

import pytest
from api_description import check_answer

from demo_process import BOUND_S, ask, wait_for
from mesh import Agent, free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tls"))

import tls_lab  # noqa: E402

SECRET = "0123456789abcdef0123456789abcdef"


class Receiver:
    """An HTTP server that keeps what it is sent. It can be away, and be back at the same port."""

    def __init__(self, port=None, context=None):
        self.port = port or free_port()
        self.context = context
        self.requests = []  # (headers, body, status) in the order in which they came
        self.status = 204
        self.server = None
        self.connections = []
        self.start()

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.status  # which a test may change as soon as it sees the request
                receiver.requests.append((self.headers, body, status))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def process_request(self, request, client_address):
                receiver.connections.append(request)
                super().process_request(request, client_address)

            def handle_error(self, *_):  # a client that refuses our certificate
                pass

        self.server = Server(("127.0.0.1", self.port), Handler)
        if self.context:
            self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True,
                                                          do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        while self.connections:  # kept ones would go on being answered
            with contextlib.suppress(OSError):
                self.connections.pop().shutdown(socket.SHUT_RDWR)
        self.server = None

    @property
    def events(self):
        """Those that were taken, without those that were told twice."""
        seen = {}
        for _, body, status in list(self.requests):
            if status < 300:
                for event in json.loads(body)["events"]:
                    seen.setdefault(event["id"], event)
        return list(seen.values())


class World:
    """Two sites; the first one has webhooks."""

    def __init__(self, mesh, hooks):
        self.mesh = mesh
        self.services = {site: mesh.service("network", site) for site in ("Site1", "Site2")}
        (mesh.folder / "secret").write_text(SECRET + "\n", encoding="ascii")
        (mesh.folder / "secret").chmod(0o600)
        self.agents = {}
        for site, service in self.services.items():
            config = mesh.config(site, {"network": service.url}, application="sample")
            if site == "Site1":
                config["webhooks"] = hooks
            self.agents[site] = mesh.keep(Agent(mesh.folder, config))
        mesh.join(*self.agents.values())

    def make(self, name):
        answer = ask(self.agents["Site1"].url("network") + "/pools", "POST", {"Scope": "Site1 & Site2"},
                     json_body={"name": name})
        assert answer.status == 201, answer
        return answer

    def change(self, pool, **members):
        answer = ask(self.agents["Site1"].url("network") + f"/pools/{pool}", "PATCH", json_body=members)
        assert answer.status == 200, answer
        return answer.header("Cheops-Operation")

    def api(self, path, method="GET"):
        return ask(f"http://{self.agents['Site1'].config['api']}/cheops/v1{path}", method)

    def hooks(self):
        answer = self.api("/webhooks")
        check_answer("GET", "/cheops/v1/webhooks", answer.status, dict(answer.headers), answer.bytes)
        return {hook["name"]: hook for hook in answer.json["webhooks"]}

    def reload(self, **config):
        agent = self.agents["Site1"]
        agent.config.update(config)
        agent.path.write_text(json.dumps(agent.config), encoding="utf-8")
        answer = self.api("/reload", "POST")
        assert answer.status == 200, answer


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


def told_of(receiver, operation, site="Site2", state="applied"):
    return lambda: any(event["data"].get("operation") == operation and event["data"].get("site") == site and
                       event["data"].get("state") == state for event in receiver.events)


def hook_at(receiver, **more):
    return {"url": f"http://127.0.0.1:{receiver.port}/hook?x=1", **more}


def test_they_are_told_in_order_and_signed(mesh, receiver, cheops):
    world = World(mesh, {"audit": hook_at(receiver, secret="secret")})
    made = world.make("a")
    wait_for(told_of(receiver, made.header("Cheops-Operation")), "the event of the create at Site2")
    for size in range(5):
        operation = world.change(made.json["id"], size=size)
    wait_for(told_of(receiver, operation), "the last event")
    ids = [event["id"] for event in receiver.events]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    for headers, body, _ in receiver.requests:
        seconds, _, digest = headers["Cheops-Signature"].removeprefix("t=").partition(",sha256=")
        wanted = hmac.new(SECRET.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(digest, wanted)
        assert headers["Content-Type"] == "application/json" and headers["Cheops-Hook"] == "audit"
        assert json.loads(body)["site"] == "Site1" and json.loads(body)["hook"] == "audit"
    assert {event["event"] for event in receiver.events} >= {"operation", "replicant"}
    wait_for(lambda: world.hooks()["audit"]["state"] == "idle", "it to be idle")
    shown = world.hooks()["audit"]
    assert shown["url"] == f"http://127.0.0.1:{receiver.port}/hook"
    assert shown["behind"] == 0 and shown["failed"] == 0 and shown["last_error"] is None
    assert world.agents["Site1"].metric("cheops_webhook_events_total") == shown["told"] >= len(ids)
    listed = cheops("webhooks", "--api", world.agents["Site1"].config["api"])
    assert listed.status == 0 and "audit" in listed.out and "idle" in listed.out, listed
    log = world.agents["Site1"].log.read_text(encoding="utf-8")
    assert SECRET not in log


def test_only_what_it_wants_to_hear(mesh, receiver):
    world = World(mesh, {"audit": hook_at(receiver, events=["replicant"])})
    world.make("a")
    wait_for(lambda: receiver.events, "an event")
    wait_for(lambda: world.hooks()["audit"]["behind"] == 0, "all to be told")
    assert {event["event"] for event in receiver.events} == {"replicant"}


def test_a_receiver_that_is_away_for_a_while(mesh, receiver):
    """Nothing waits for it, nothing is lost, and the order stays; a second one is told meanwhile."""
    other = mesh.keep(Receiver())
    world = World(mesh, {"audit": hook_at(receiver), "other": hook_at(other)})
    pool = world.make("a").json["id"]
    wait_for(lambda: receiver.events, "a first event")
    receiver.stop()
    operations = [world.change(pool, size=size) for size in range(20)]
    # The first failure may be that of a request that was under way when it went; it is refused when it is tried again.
    wait_for(lambda: "refused" in (world.hooks()["audit"]["last_error"] or ""), "it to be tried again")
    wait_for(told_of(other, operations[-1]), "the other one to be told")
    shown = world.hooks()["audit"]
    assert shown["state"] in ("waiting", "telling") and shown["behind"] > 0 and shown["failed"] > 0
    receiver.start()
    receiver.status = 500  # it is back, and not well
    wait_for(lambda: any(status == 500 for _, _, status in receiver.requests), "a request")
    receiver.status = 200
    wait_for(told_of(receiver, operations[-1]), "the last event")
    assert [event["id"] for event in receiver.events] == sorted(event["id"] for event in receiver.events)
    assert {event["id"] for event in receiver.events} == {event["id"] for event in other.events}
    assert all(told_of(receiver, operation)() for operation in operations)


def test_it_goes_on_after_a_kill(mesh, receiver):
    """The journal and the position survive: what happened while the receiver was away is told by the next life of the agent."""
    world = World(mesh, {"audit": hook_at(receiver)})
    pool = world.make("a").json["id"]
    wait_for(told_of(receiver, world.change(pool, size=0)), "a first event")
    receiver.stop()
    operations = [world.change(pool, size=size) for size in range(1, 6)]
    world.agents["Site1"].kill()
    world.agents["Site1"] = mesh.again(world.agents["Site1"])
    receiver.start()
    wait_for(lambda: all(told_of(receiver, operation, "Site1")() for operation in operations), "all of them")
    ids = [event["id"] for event in receiver.events]
    assert ids == sorted(ids)
    assert "missed" not in {event["event"] for event in receiver.events}
    world.agents["Site1"].stop()  # orderly, with nothing left to tell


def test_one_that_was_away_for_too_long_is_told_so(mesh, receiver):
    """More has happened than is kept: `missed` comes first, then what is kept."""
    world = World(mesh, {"audit": hook_at(receiver)})
    pools = [world.make(f"pool {n}").json["id"] for n in range(8)]
    wait_for(lambda: world.hooks()["audit"]["behind"] == 0 and receiver.events, "all to be told")
    receiver.stop()
    before = world.agents["Site1"].metric("cheops_changes_total")
    address = world.agents["Site1"].url("network").removeprefix("http://")

    def change(pool):
        connection = http.client.HTTPConnection(address, timeout=BOUND_S)
        size = 0
        while world.agents["Site1"].metric("cheops_changes_total") < before + 4500:
            for _ in range(20):
                size += 1
                connection.request("PATCH", f"/pools/{pool}", json.dumps({"size": size}), {"Content-Type": "application/json"})
                response = connection.getresponse()
                assert response.status == 200, response.read()
                response.read()
        connection.close()
    with concurrent.futures.ThreadPoolExecutor(len(pools)) as workers:
        list(workers.map(change, pools))
    # Site2 may lag behind: what it reports later would be too much once more.
    wait_for(lambda: world.api("/operations").json["operations"] == [], "all to be settled")
    behind = world.hooks()["audit"]["behind"]
    assert behind >= 4500
    told = len(receiver.events)
    receiver.start()
    world.reload()  # it is tried at once, and not after the pause that has grown meanwhile
    wait_for(lambda: world.hooks()["audit"]["behind"] == 0, "all to be told")
    events = receiver.events[told:]
    assert events[0]["event"] == "missed" and events[0]["data"]["changes"] >= behind - 4096
    assert len(events) >= 4096 and "missed" not in {event["event"] for event in events[1:]}
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert world.hooks()["audit"]["missed"] == events[0]["data"]["changes"]


def test_followers_go_on_after_a_restart(mesh, receiver):
    """The same for server-sent events: no reset."""
    world = World(mesh, {"audit": hook_at(receiver)})
    made = world.make("a")
    wait_for(told_of(receiver, made.header("Cheops-Operation")), "the events")
    first = receiver.events[0]
    world.agents["Site1"].kill()
    world.agents["Site1"] = mesh.again(world.agents["Site1"])
    connection = http.client.HTTPConnection(world.agents["Site1"].config["api"], timeout=30)
    connection.request("GET", "/cheops/v1/changes", headers={"Last-Event-ID": str(first["id"] - 1)})
    response = connection.getresponse()
    lines = [response.readline().decode().rstrip("\n") for _ in range(3)]
    assert lines[:2] == [f"id: {first['id']}", f"event: {first['event']}"]
    assert json.loads(lines[2].removeprefix("data: ")) == first["data"]
    connection.close()


def test_they_come_and_go_with_a_reload(mesh, receiver):
    world = World(mesh, {})
    assert world.hooks() == {}
    world.make("before")
    world.reload(webhooks={"audit": hook_at(receiver)})
    wait_for(lambda: "audit" in world.hooks(), "the hook")
    made = world.make("after")
    wait_for(told_of(receiver, made.header("Cheops-Operation")), "its event")
    assert made.json["id"] in {event["data"]["replicant"] for event in receiver.events}
    other = mesh.keep(Receiver())
    world.reload(webhooks={"audit": hook_at(other)})
    again = world.make("elsewhere")
    wait_for(told_of(other, again.header("Cheops-Operation")), "its event, at the new address")
    assert not told_of(receiver, again.header("Cheops-Operation"))()
    assert made.json["id"] not in {event["data"]["replicant"] for event in other.events if event["event"] == "replicant"}
    world.reload(webhooks={})
    wait_for(lambda: world.hooks() == {}, "no hook")


def test_one_that_hears_nothing_holds_up_nobody(mesh):
    """It takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        world = World(mesh, {"deaf": {"url": url, "timeout": "300ms"}})
        pool = world.make("a").json["id"]
        for size in range(10):
            world.change(pool, size=size)
        wait_for(lambda: world.hooks()["deaf"]["failed"] >= 2, "it to be tried again")
        assert world.hooks()["deaf"]["last_error"]
        world.agents["Site1"].signal(signal.SIGTERM)
        assert world.agents["Site1"].process.wait(30) == 0


def test_tls_is_verified(mesh, tmp_path):
    authority = tls_lab.Authority(tmp_path / "authority", "hooks")
    pair = authority.issue("receiver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    receiver = mesh.keep(Receiver(context=context))
    url = f"https://127.0.0.1:{receiver.port}/"
    world = World(mesh, {"good": {"url": url, "tls": {"ca": str(authority.root)}}, "bad": {"url": url}})
    made = world.make("a")
    wait_for(told_of(receiver, made.header("Cheops-Operation")), "the event")
    wait_for(lambda: world.hooks()["bad"]["state"] == "waiting", "the other one to fail")
    assert "certificate" in world.hooks()["bad"]["last_error"]
    assert {headers["Cheops-Hook"] for headers, _, _ in receiver.requests} == {"good"}
