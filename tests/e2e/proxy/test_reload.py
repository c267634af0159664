"""Starting, changing and stopping an agent while it is used."""
import json
import signal
import socket
import threading

import pytest

import mesh_maker
import proxy_lab
from proxy_lab import PATIENCE_S, Agent, Broken, Wire, free_port, request, response


class Load:
    """Clients that never stop asking; each failure is noted."""

    def __init__(self, ask, threads=4):
        self.stopped = threading.Event()
        self.failures = []
        self.count = 0
        self.threads = [threading.Thread(target=self.run, args=(ask,)) for _ in range(threads)]

    def run(self, ask):
        try:
            while not self.stopped.is_set():
                answer = ask(self)
                if answer is not None and answer.status != 200:
                    self.failures.append(answer)
                self.count += 1
        except (Broken, OSError, AssertionError) as failure:
            self.failures.append(failure)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)

    def go_on(self, count):
        before = self.count
        proxy_lab.wait_until(lambda: self.count >= before + count or self.failures, "load")


# ---- reload -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_signal", [True, False], ids=["signal", "api"])
def test_reload_under_load_fails_no_request(start, play, by_signal, threads):
    services = [play(), play(), play()]
    for service in services:
        service.answer = lambda message: response(body=message.body)
    agent = start(proxy_lab.describe(services={"service": [services[0].port]}, threads=threads))
    local = threading.local()

    def ask(load):
        """New connections and old ones, with and without a body."""
        if not hasattr(local, "wire") or load.count % 7 == 0:
            local.wire = agent.client()
        body = b"b" * (load.count % 3 * 5000)
        local.wire.send(request("POST", body=body) if body else request())
        answer = local.wire.response()
        assert answer.body == body
        return answer

    with Load(ask) as load:
        for n in range(12):
            agent.config["services"]["service"]["instances"] = [services[n % 3].address, services[(n + 1) % 3].address]
            agent.config["services"].pop("other", None)
            if n % 2:
                agent.config["services"] = {"other": {"front": f"127.0.0.1:{free_port()}",
                                                      "instances": [services[0].address]}, **agent.config["services"]}
            agent.write()
            assert agent.reload(by_signal)
            load.go_on(20)
    assert load.failures == []
    assert all(service.requests for service in services)


def test_a_request_under_way_ends_where_it_began(start, play):
    old, new = play(), play()
    asked, go = threading.Event(), threading.Event()
    old.answer = lambda message: (asked.set(), go.wait(PATIENCE_S), response(body=b"old"))[2]
    new.answer = lambda message: response(body=b"new")
    agent = start(proxy_lab.describe(services={"service": [old.port]}))
    with agent.client() as wire:
        wire.send(request())
        assert asked.wait(PATIENCE_S)
        agent.config["services"]["service"]["instances"] = [new.address]
        agent.write()
        assert agent.reload()
        assert agent.ask().body == b"new"
        go.set()
        assert wire.response().body == b"old"
        wire.send(request())
        assert wire.response().body == b"new"
    # Nothing is left of the old configuration: not even a connection.
    old.wait(lambda: not old.wires)


def test_a_head_that_is_complete_after_a_reload(start, play):
    """The services have other numbers by then, and there are more of them, or fewer."""
    services = {name: play(answer=lambda message, name=name: response(body=name.encode())) for name in "abcd"}
    agent = start(proxy_lab.describe(services={"c": [services["c"].port], "d": [services["d"].port]}))
    entries = dict(agent.config["services"])
    for name in "ab":
        entries[name] = {"front": f"127.0.0.1:{free_port()}", "instances": [services[name].address]}
    wires = [(name, agent.client(name)) for name in "cd" for _ in range(3)]
    for order in ("abcd", "cd", "dbca", "dc", "cabd"):
        for _, wire in wires:
            wire.send(b"GET / HTTP/1.1\r\nHost: ")
        agent.api("/cheops/v1/health")  # by now all of that has been read
        agent.config["services"] = {name: entries[name] for name in order}
        agent.write()
        assert agent.reload()
        for name, wire in wires:
            wire.send(b"x\r\n\r\n")
            assert wire.response().body == name.encode()
    for _, wire in wires:
        wire.close()


def test_fronts_change(start, service):
    agent = start(proxy_lab.describe(services={"service": [service.port], "gone": [service.port]}))
    old_port, gone = agent.port(), agent.port("gone")
    with agent.client() as stays, agent.client("gone") as left, agent.client("gone") as idle:
        for wire in (stays, left, idle):
            wire.send(request())
            assert wire.response().status == 200
        agent.config["services"]["service"]["front"] = f"127.0.0.1:{free_port()}"
        del agent.config["services"]["gone"]
        agent.write()
        assert agent.reload()
        assert agent.ask().status == 200
        for port in (old_port, gone):
            with pytest.raises(ConnectionRefusedError):
                Wire.to(port)
        # Connections live on with their service, wherever that is met now; without it they end.
        stays.send(request())
        assert stays.response().status == 200
        left.send(request())
        answer = left.response()
        assert answer.status == 503 and answer.problem == "no-service" and answer.closes
        assert left.has_ended()


def test_api_and_peer_addresses_change(two_sites):
    """Wherever an agent is met now, the others learn it."""
    stage = two_sites()
    agent = stage.there
    before = [agent.config["api"], agent.config["peer"]]
    assert stage.here.ask(Scope="Site2").status == 200
    agent.config["api"] = f"127.0.0.1:{free_port()}"
    agent.config["peer"] = f"127.0.0.1:{free_port()}"
    agent.write()
    assert agent.reload()
    assert agent.api("/cheops/v1/health")[0] == 200
    for address in before:
        with pytest.raises(ConnectionRefusedError):
            Wire.to(int(address.split(":")[1]))
    status, _, body = mesh_maker.ask_peer(agent.config["peer"])
    assert status == 403 and b"urn:cheops:problem:not-a-peer" in body
    proxy_lab.wait_until(lambda: mesh_maker.sites_of(stage.here)["Site2"]["address"] == agent.config["peer"], "the new address")
    assert stage.here.ask(Scope="Site2").status == 200
    assert len(stage.far.requests) == 2


def test_a_site_joins_while_its_agent_runs(start, service, join):
    """Until then it has no port for others, and knows only itself."""
    agents = [start(proxy_lab.describe(f"Site{n}", {"service": [service.port]})) for n in (1, 2)]
    for agent in agents:
        with pytest.raises(ConnectionRefusedError):
            Wire.to(int(agent.config["peer"].split(":")[1]))
        assert list(mesh_maker.sites_of(agent)) == [agent.config["site"]]
    assert agents[0].ask(Scope="Site2").problem == "unknown-site"
    with agents[0].client() as wire:
        wire.send(request())
        assert wire.response().status == 200
        join(*agents)
        wire.send(request(Scope="Site2"))  # on the same connection
        assert wire.response().status == 200
    assert agents[1].counter("cheops_peer_requests_total") == 1


def test_a_site_keeps_its_name_and_needs_its_port(two_sites):
    """What does not fit to the identity is refused, and nothing changes."""
    stage = two_sites()
    agent = stage.there
    for key, value, said in (("site", "Site7", "cannot change"), ("state", "elsewhere", "cannot change"),
                             ("peer", None, "has no `peer`"),
                             ("peer", "0.0.0.0:" + agent.config["peer"].split(":")[1], "advertise: 192.0.2.1:8070")):
        good = agent.config[key]
        if value is None:
            del agent.config[key]
        else:
            agent.config[key] = value
        agent.write()
        status, text = agent.api("/cheops/v1/reload", "POST")
        assert status == 422 and said in text, text
        agent.config[key] = good
        assert stage.here.ask(Scope="Site2").status == 200


def test_more_than_others_can_be_told(two_sites):
    """What does not fit into a card is refused, and what they knew they still know."""
    stage = two_sites(tags={"region": "west"})
    agent = stage.there
    agent.config["tags"] = {f"tag{n}": "x" * 120 for n in range(64)}
    agent.write()
    status, text = agent.api("/cheops/v1/reload", "POST")
    assert status == 422 and "tags" in text, text
    assert mesh_maker.sites_of(agent)["Site2"]["tags"] == {"region": "west"}
    assert stage.here.ask(Scope="tagged(region=west)", Cheops_Explain="plan").status == 200
    agent.config["tags"] = {"region": "east"}
    agent.write()
    assert agent.reload()
    proxy_lab.wait_until(lambda: mesh_maker.sites_of(stage.here)["Site2"]["tags"] == {"region": "east"}, "the new card")


def test_tags_and_services_are_told_to_the_others(two_sites, play):
    stage = two_sites()
    agent = stage.there
    agent.config["tags"] = {"region": "west"}
    agent.config["services"]["other"] = {"front": f"127.0.0.1:{free_port()}", "instances": play().address, "version": "2.1"}
    agent.write()
    assert agent.reload()

    def told():
        site = mesh_maker.sites_of(stage.here)["Site2"]
        return site["tags"] == {"region": "west"} and site["services"] == {"service": "", "other": "2.1"}

    proxy_lab.wait_until(told, "the new card")
    answer = stage.here.ask(Scope="tagged(region=west)", Cheops_Explain="plan")
    assert answer.status == 200 and answer.json["plan"] == {"op": "one", "site": "Site2"}, answer


def test_limits_change_for_connections_that_are_open(start, service):
    agent = start(proxy_lab.describe(services={"service": [service.port]}, limits={"head": "2KiB"}))
    with agent.client() as wire:
        wire.send(request())
        assert wire.response().status == 200
        agent.config["limits"]["head"] = "16KiB"
        agent.write()
        assert agent.reload()
        wire.send(request(X_Long="x" * 10000))
        assert wire.response().status == 200
        agent.config["limits"]["head"] = "1KiB"
        agent.write()
        assert agent.reload()
        wire.send(request(X_Long="x" * 10000))
        assert wire.response().status == 431


@pytest.mark.parametrize("what", ["yaml", "site", "threads", "taken", "front-twice", "missing"])
def test_what_is_refused_changes_nothing(start, service, what):
    agent = start(proxy_lab.describe(services={"service": [service.port]}))
    good = json.dumps(agent.config)
    changed = json.loads(good)
    changed["services"]["more"] = {"front": f"127.0.0.1:{free_port()}", "instances": [service.address]}
    more_port = int(changed["services"]["more"]["front"].split(":")[1])
    taken = socket.create_server(("127.0.0.1", free_port()))
    if what == "site":
        changed["site"] = "Other"
    elif what == "threads":
        changed["threads"] = 2
    elif what == "taken":
        changed["services"]["zz"] = {"front": f"127.0.0.1:{taken.getsockname()[1]}", "instances": [service.address]}
    elif what == "front-twice":
        changed["services"]["zz"] = {"front": changed["services"]["more"]["front"], "instances": [service.address]}
    text = "services: [" if what == "yaml" else json.dumps(changed)
    with Load(lambda load: agent.ask(), threads=2) as load:
        if what == "missing":
            agent.path.unlink()
        else:
            agent.write(text)
        for by_signal in (True, False):
            assert not agent.reload(by_signal)
            load.go_on(5)
        status, answer = agent.api("/cheops/v1/reload", "POST")
        assert status == 422 and json.loads(answer)["detail"], answer
        assert "configuration refused" in agent.log
        with pytest.raises(ConnectionRefusedError):
            Wire.to(more_port)
        agent.write(good)
        assert agent.reload(False)
    assert load.failures == []
    taken.close()


def test_many_reloads_leave_nothing_behind(start, service, sanitized):
    agent = start(proxy_lab.describe(services={"service": [service.port]}, threads=2), arguments=["--allow-core"])

    def rounds(count):
        for _ in range(count):
            assert agent.ask().status == 200
            assert agent.reload(False)

    rounds(20)
    memory, before = agent.memory_kb(), agent.descriptors()
    rounds(100)
    proxy_lab.wait_until(lambda: agent.descriptors() <= before + 1, "the descriptors to be closed")
    if not sanitized:
        assert agent.memory_kb() - memory < 1024


def test_reloads_from_everywhere_at_once(start, service):
    agent = start(proxy_lab.describe(services={"service": [service.port]}, threads=2))
    with Load(lambda load: agent.ask() if load.count % 2 else agent.reload(False) and None, threads=6) as load:
        for _ in range(20):
            agent.signal(signal.SIGHUP)
            load.go_on(5)
    assert load.failures == []


# ---- stop ---------------------------------------------------------------------------------------------------------------


def under_way(agent, service):
    """A request that the service has, and a way to let it answer."""
    asked, go = threading.Event(), threading.Event()
    service.answer = lambda message: (asked.set(), go.wait(PATIENCE_S), response(body=b"late"))[2]
    wire = agent.client()
    wire.send(request())
    assert asked.wait(PATIENCE_S)
    return wire, go


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_under_way_are_finished(agent, service, number):
    with agent.client() as idle:
        idle.send(request())
        assert idle.response().status == 200
        wire, go = under_way(agent, service)
        agent.signal(number)
        agent.wait_notified("STOPPING=1")
        assert idle.has_ended()
        proxy_lab.wait_until(lambda: refuses(agent.port()), "its end")
        assert agent.process.poll() is None
        go.set()
        answer = wire.response()
        assert answer.body == b"late" and answer.closes
        assert wire.has_ended()
    assert agent.wait_exit() == 0


def refuses(port):
    try:
        Wire.to(port).close()
        return False
    except ConnectionRefusedError:
        return True


def test_bodies_under_way_are_finished(agent, service):
    """A head was there before the signal; a body and an answer of some size come after it."""
    service.answer = lambda message: response(body=message.body)
    body = b"0123456789" * 100000
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:10])
        service.wait(lambda: service.accepted == 1)
        agent.signal(signal.SIGTERM)
        agent.wait_notified("STOPPING=1")
        wire.send(body[10:])
        assert wire.response().body == body
    assert agent.wait_exit() == 0


def test_what_was_sent_before_the_signal_is_answered(agent, service):
    """It lies in the kernel's queues when the agent is told to stop: on an old connection, and on new ones."""
    with agent.client() as old:
        old.send(request())
        assert old.response().status == 200
        agent.signal(signal.SIGSTOP)
        new = [agent.client() for _ in range(5)]
        for wire in new + [old]:
            wire.send(request())
        agent.signal(signal.SIGTERM)
        agent.signal(signal.SIGCONT)
        for wire in new + [old]:
            assert wire.response().status == 200
            wire.close()
    assert agent.wait_exit() == 0


def test_told_to_stop_twice(start, service):
    """It does not wait then; also when its threads are done just as it has stopped listening to them."""
    for threads in (1, 2):
        agent = start(proxy_lab.describe(services={"service": [service.port]}, threads=threads), name=f"with-{threads}")
        agent.signal(signal.SIGSTOP)
        agent.signal(signal.SIGTERM)
        agent.signal(signal.SIGINT)
        agent.signal(signal.SIGCONT)
        assert agent.wait_exit() == 0


def test_an_idle_connection_does_not_hold_it_up(agent, service):
    wires = [agent.client() for _ in range(5)]
    wires[0].send(b"\r\n")
    agent.api("/cheops/v1/health")
    agent.signal(signal.SIGTERM)
    for wire in wires[1:]:
        assert wire.has_ended()
        wire.close()
    wires[0].close()
    assert agent.wait_exit() == 0


def test_a_deadline_cuts_what_is_left(start, service):
    agent = start(proxy_lab.describe(services={"service": [service.port]}, timeouts={"stop": "300ms"}))
    wire, go = under_way(agent, service)
    agent.signal(signal.SIGTERM)
    assert agent.wait_exit() == 0
    assert "requests under way" in agent.log
    with pytest.raises(Broken):
        wire.response()
    go.set()


def test_a_second_signal_does_not_wait(agent, service):
    wire, go = under_way(agent, service)
    agent.signal(signal.SIGTERM)
    agent.wait_notified("STOPPING=1")
    agent.signal(signal.SIGTERM)
    assert agent.wait_exit() == 0
    with pytest.raises(Broken):
        wire.response()
    go.set()


def test_stop_with_everything_in_the_middle(start, play):
    """Heads, bodies, answers, tunnels, connections that linger: nothing is left behind (the sanitizers look)."""
    go = threading.Event()

    def script(wire):
        message = wire.head()
        if message.target == b"/tunnel":
            wire.send(b"HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        elif message.target == b"/answering":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        elif message.target == b"/early":
            wire.send(response())
        go.wait(PATIENCE_S)

    service = play(script=script)
    agent = start(proxy_lab.describe(services={"service": [service.port]}, threads=2, timeouts={"stop": "200ms"}))
    wires = []
    for text in (b"GET / HT", request(target="/answering"), request(target="/tunnel", Connection="Upgrade", Upgrade="x"),
                 b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello", b"bad\r\n\r\n",
                 b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello", request(target="/answer") * 3):
        for _ in range(4):
            wire = agent.client()
            wire.send(text)
            wires.append(wire)
    service.wait(lambda: service.accepted >= 20)
    agent.signal(signal.SIGTERM)
    assert agent.wait_exit() == 0
    go.set()
    for wire in wires:
        wire.close()


# ---- start, and what systemd is told ------------------------------------------------------------------------------------


def test_what_systemd_is_told(cheops, tmp_path, service):
    agent = Agent(cheops.path, tmp_path, proxy_lab.describe(services={"service": [service.port]}), wait=False)
    assert agent.wait_notified("READY=1") == ["READY=1"]
    assert agent.ask().status == 200, "ready means that the fronts are open"
    agent.signal(signal.SIGHUP)
    told = agent.wait_notified("READY=1")
    assert told[0] == "RELOADING=1" and told[1].startswith("MONOTONIC_USEC=") and told[2:] == ["READY=1"]
    agent.write("bad: [")
    agent.signal(signal.SIGHUP)
    assert agent.wait_notified("READY=1")[0] == "RELOADING=1"
    agent.signal(signal.SIGTERM)
    assert agent.wait_notified("STOPPING=1") == ["STOPPING=1"]
    assert agent.wait_exit() == 0
    agent.stop()


@pytest.mark.parametrize("which", ["front", "api", "peer"])
@pytest.mark.parametrize("by", ["stranger", "agent"])
def test_a_port_that_is_taken(start, cheops, tmp_path, service, which, by):
    """Also by an agent: the threads of one share its ports, but two agents must not share one."""
    config = proxy_lab.describe(services={"service": [service.port]})
    address = config["services"]["service"]["front"] if which == "front" else config[which]
    port = int(address.split(":")[1])
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "Site1.yaml").write_text(json.dumps(config))
    mesh_maker.init(tmp_path / "second" / "Site1.yaml")
    if by == "stranger":
        holder = socket.create_server(("127.0.0.1", port))
    else:
        other = proxy_lab.describe("Other", {"service": {"front": address, "instances": [service.port]}})
        holder = start(other)
    agent = Agent(cheops.path, tmp_path / "second", config, wait=False)
    assert agent.wait_exit() == 1
    assert address in agent.log and "cannot listen" in agent.log and "in use" in agent.log, agent.log
    agent.stop()
    if by == "stranger":
        holder.close()


@pytest.mark.parametrize("text,said", [("services: [", "yaml:"), ("{}", "site"), ("nonsense: 1", "nonsense")])
def test_a_file_that_is_wrong(cheops, tmp_path, text, said):
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    result = cheops("agent", "-c", str(path))
    assert result.status == 1 and said in result.err and "agent.yaml" in result.err


def test_a_file_that_is_not_there(cheops, tmp_path):
    result = cheops("agent", "-c", str(tmp_path / "none.yaml"))
    assert result.status == 1 and "none.yaml" in result.err
