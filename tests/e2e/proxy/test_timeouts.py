"""Time-outs, each with a small value, and limits. How long something took is never measured from above: the machine may be
busy. That it ends at all is the point, and with what. Where something has to come within one, it has seconds for it."""
import contextlib
import json
import resource
import select
import socket
import threading
import time

import pytest

import proxy_lab
from proxy_lab import PATIENCE_S, Broken, acquaint, request, response


def small(service, limits=None, threads=1, **timeouts):
    others = {"limits": limits} if limits else {}
    return proxy_lab.describe(services={"service": [service.port]}, threads=threads,
                              timeouts={"connect": "20s", "header": "20s", "idle": "20s", **timeouts}, **others)


@contextlib.contextmanager
def deaf_at(port):
    """A port where connections are never accepted, and soon not even taken by the kernel."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(0)
    waiting = []
    while True:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        waiting.append(sock)
        if len(waiting) > 4 and not select.select([], [sock], [], 0.2)[1]:
            break
    yield listener.getsockname()[1]
    for sock in waiting + [listener]:
        sock.close()


@pytest.fixture
def deaf():
    with deaf_at(proxy_lab.free_port()) as port:
        yield port


# ---- the client is slow -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"G", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-One: "])
def test_a_head_that_does_not_come_to_an_end(start, service, text):
    agent = start(small(service, header="300ms"))
    with agent.client() as wire:
        wire.send(text)
        answer = wire.response()
        assert answer.status == 408 and answer.closes and answer.problem == "request-too-slow"
        assert wire.has_ended()
    assert agent.counter("cheops_client_timeouts_total") == 1


def test_a_head_that_comes_byte_by_byte_has_to_come_in_time_all_the_same(start, service):
    """Each byte comes well within any time-out: it is the whole head that counts."""
    agent = start(small(service, header="500ms"))
    with agent.client() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        answers = []
        reader = threading.Thread(target=lambda: answers.append(wire.response()))
        reader.start()
        try:
            while reader.is_alive():
                wire.send(b"X-One: 1\r\n")
                reader.join(0.05)
        except OSError:
            pass
        reader.join(PATIENCE_S)
    assert answers and answers[0].status in (408, 431), answers


def test_a_connection_without_a_request_is_closed_without_a_word(start, service):
    agent = start(small(service, idle="2s"))
    with agent.client() as wire:
        assert wire.has_ended()
    with agent.client() as wire:
        wire.send(request())
        assert wire.response().status == 200
        assert wire.has_ended()


@pytest.mark.parametrize("size", [4096, 8192, 100])
def test_between_requests_it_is_the_idle_time_that_counts(start, service, size):
    """Also after a request that filled a buffer to its last byte, so that nobody knows whether more has come."""
    agent = start(small(service, header="200ms"))
    with agent.client() as wire:
        for _ in range(2):
            plain = request(X_Fill="")
            wire.send(request(X_Fill="x" * (size - len(plain))))
            assert wire.response().status == 200
            time.sleep(0.5)  # longer than a head may take


def test_a_body_that_stops(start, service):
    agent = start(small(service, idle="2s"))
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello")
        answer = wire.response()
        assert answer.status == 408 and answer.closes
        assert wire.has_ended()
    service.wait(lambda: service.partial)
    assert service.requests == []


def test_a_body_that_comes_slowly_but_comes(start, service):
    """Longer in all than the idle time; on a new connection to the service, and on one that was used before."""
    agent = start(small(service, idle="3s"))
    service.answer = lambda message: response(body=message.body)
    with agent.client() as wire:
        for _ in range(2):
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n")
            for _ in range(40):
                time.sleep(0.1)  # not to wait for anything: this is the slowness
                wire.send(b"x")
            assert wire.response().body == b"x" * 40
            acquaint(wire)
    assert service.accepted == 1


def test_a_client_that_does_not_read_is_dropped(start, service):
    agent = start(small(service, idle="2s"))
    ended = threading.Event()

    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            while True:
                wire.send(b"x" * 65536)
        except OSError:
            ended.set()

    service.script = script
    with agent.client(receive_buffer=4096) as wire:
        wire.send(request())
        assert ended.wait(PATIENCE_S)
        with pytest.raises(Broken):
            wire.response()


# ---- the service is slow ------------------------------------------------------------------------------------------------


def test_no_answer_in_time(start, service):
    agent = start(small(service, answer="300ms"))
    done = threading.Event()
    service.answer = lambda message: (done.wait(PATIENCE_S), None)[1]
    with agent.client() as wire:
        for method in ("GET", "POST"):
            wire.send(request(method, body=b"hello" if method == "POST" else None))
            answer = wire.response()
            assert answer.status == 504 and answer.problem == "no-answer" and not answer.closes
            assert answer.json["site"] == "Site1" and b"http_response_timeout" in answer.one(b"Proxy-Status")
        done.set()
        service.usual()
        agent.config["timeouts"]["answer"] = "20s"  # now it is to come, however busy we are
        agent.write()
        assert agent.reload()
        wire.send(request())
        assert wire.response().status == 200
    service.wait_requests(3)  # what was given up may arrive later than what came after it
    assert len(service.requests) == 3, "no request may be sent twice because of a time-out"


def test_without_a_limit_for_the_answer_it_may_take_longer_than_the_idle_time(start, service):
    agent = start(small(service, answer="0s", idle="1s"))
    service.answer = lambda message: (time.sleep(3), response())[1]  # the slowness
    assert agent.ask().status == 200


def test_an_answer_that_stops(start, service):
    agent = start(small(service, idle="2s"))
    done = threading.Event()

    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        done.wait(PATIENCE_S)

    service.script = script
    with agent.client() as wire:
        wire.send(request())
        with pytest.raises(Broken):
            wire.response()
    done.set()


def test_a_service_that_does_not_read(start, service):
    agent = start(small(service, idle="2s"))
    done = threading.Event()

    def script(wire):
        wire.head()
        done.wait(PATIENCE_S)

    service.script = script
    body = b"x" * 100000000  # made before the client can be late with it
    with agent.client() as wire:
        answers = []
        reader = threading.Thread(target=lambda: answers.append(wire.response()))
        reader.start()
        try:
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n", body)
        except OSError:
            pass
        reader.join(PATIENCE_S)
    done.set()
    assert answers and answers[0].status == 504 and answers[0].problem == "no-answer", answers


@pytest.mark.parametrize("stage", ["before the answer", "in the answer", "in the request", "in the tunnel"])
def test_the_whole_request_takes_too_long(start, service, stage):
    agent = start(small(service, request="2s"))
    done = threading.Event()

    def script(wire):
        wire.head()
        if stage == "in the answer":
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if stage == "in the tunnel":
            wire.send(b"HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        try:
            while stage in ("in the answer", "in the tunnel") and not done.wait(0.02):
                wire.send(b"1\r\nx\r\n")
        except OSError:
            return
        done.wait(PATIENCE_S)

    service.script = script
    with agent.client() as wire:
        if stage == "in the request":
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello")
        else:
            wire.send(request(**({"Connection": "Upgrade", "Upgrade": "x"} if stage == "in the tunnel" else {})))
        if stage == "in the answer":
            with pytest.raises(Broken):
                wire.response()
        elif stage == "in the tunnel":
            assert wire.response().status == 101
            wire.to_end()
        else:
            answer = wire.response()
            assert answer.status == 504 and answer.problem == "request-timeout", answer
            assert answer.closes == (stage == "in the request")
    done.set()


def test_a_reload_that_takes_longer_than_a_request_may(start, service):
    """The request is given up while the configuration is being read, and answered to nobody."""
    agent = start(small(service, request="1ms"))
    # A file that takes its time: close to a megabyte, with as many services and instances as there may be.
    port = agent.port()
    agent.config["services"] |= {f"service-{'x' * 100}-{n}": {
        "front": f"127.1.0.{n + 1}:{port}", "version": "x" * 100,
        "instances": [f"127.{n + 2}.0.{i + 1}:{port}" for i in range(64)]} for n in range(60)}
    text = json.dumps(agent.config, indent=40)
    assert 600_000 < len(text) < 1 << 20
    agent.write(text)
    for n in range(12):
        with proxy_lab.Wire.to(agent.api_port) as wire:
            wire.send(request("POST", "/cheops/v1/reload", Connection="close"))
            if n % 2:
                wire.to_end()
            else:
                wire.abort()
    assert agent.api("/cheops/v1/health")[0] == 200


def test_no_connection_in_time(start, deaf, service):
    """A connection that does not come about: the next instance is tried; if there is none, that is said."""
    config = small(service, connect="300ms")
    config["services"]["service"]["instances"] = [f"127.0.0.1:{deaf}", service.address]
    agent = start(config)
    for _ in range(3):
        assert agent.ask("POST", body=b"x").status == 200
    config["services"]["service"]["instances"] = [f"127.0.0.1:{deaf}"]
    agent.write()
    assert agent.reload()
    answer = agent.ask()
    assert answer.status == 503 and answer.problem == "no-instance"


def test_no_connection_to_a_peer_in_time(two_sites):
    stage = two_sites(timeouts={"connect": "300ms"})
    stage.there.kill()
    with deaf_at(int(stage.there.config["peer"].split(":")[1])):
        answer = stage.here.ask(Scope="Site2")
    assert answer.status == 504 and answer.problem == "site-unreachable" and answer.json["site"] == "Site2"
    assert b"connection_timeout" in answer.one(b"Proxy-Status")


# ---- limits -------------------------------------------------------------------------------------------------------------


def test_connections_have_a_limit(start, service):
    agent = start(small(service, limits={"connections": 10}))
    wires = [agent.client() for _ in range(10)]
    for wire in wires:
        wire.send(request())
        assert wire.response().status == 200
    with agent.client() as wire:
        assert wire.has_ended()
    assert agent.api("/cheops/v1/health")[0] == 200, "the API is not for clients, and has to stay reachable"
    wires.pop().close()
    proxy_lab.wait_until(lambda: agent.counter("cheops_client_connections") <= 10)
    assert agent.ask().status == 200
    for wire in wires:
        wire.send(request())
        assert wire.response().status == 200
        wire.close()


def test_running_out_of_descriptors(start, service):
    """Connections wait until there are some again; the agent does not spin meanwhile."""
    agent = start(small(service), arguments=["--allow-core"],
                  preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    wires = [agent.client() for _ in range(60)]
    proxy_lab.wait_until(lambda: agent.descriptors() >= 40)
    before = agent.cpu_s()
    time.sleep(1)  # to see what it spends in that time
    assert agent.cpu_s() - before < 0.1, "it spins"
    for wire in wires[:40]:
        wire.close()
    wires[-1].send(request())
    assert wires[-1].response().status == 200
    for wire in wires:
        wire.close()
