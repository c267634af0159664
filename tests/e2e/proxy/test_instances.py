"""Several instances of a service, and connections to them that fail."""
import collections
import threading
import time

import pytest

import proxy_lab
from proxy_lab import PATIENCE_S, request, response


@pytest.fixture
def three(play, start):
    services = [play() for _ in range(3)]
    for n, service in enumerate(services):
        service.answer = lambda message, n=n: response(body=b"%d" % n)
    agent = start(proxy_lab.describe(services={"service": [service.port for service in services]}))
    return agent, services


def ask_all(agent, count, method="GET", **fields):
    with agent.client() as wire:
        tally = collections.Counter()
        for _ in range(count):
            wire.send(request(method, **fields))
            answer = wire.response()
            tally[answer.body if answer.status == 200 else answer.status] += 1
        return tally


def test_requests_are_balanced(three):
    agent, _ = three
    tally = ask_all(agent, 300)
    assert set(tally) == {b"0", b"1", b"2"} and max(tally.values()) - min(tally.values()) <= 3, tally


def test_a_busy_instance_gets_fewer(three):
    agent, services = three
    go, held = threading.Event(), threading.Semaphore(0)
    services[0].answer = lambda message: (held.release(), go.wait(PATIENCE_S), response(body=b"0"))[2]
    wires = []
    while not held.acquire(blocking=False):
        wire = agent.client()
        wire.send(request())
        wires.append(wire)
        if len(services[1].requests) + len(services[2].requests) < len(wires):
            proxy_lab.wait_until(lambda: sum(len(service.requests) for service in services) == len(wires))
    assert b"0" not in ask_all(agent, 50)
    go.set()
    for wire in wires:
        assert wire.response().status == 200
        wire.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_dead_instance_is_left_out_and_comes_back(three, play, method):
    agent, services = three
    assert len(ask_all(agent, 30)) == 3
    services[1].stop()
    tally = ask_all(agent, 100, method, **({"body": b"hello"} if method == "POST" else {}))
    assert set(tally) <= {b"0", b"2", 502} and tally[502] == 0, tally
    assert agent.counter("cheops_upstream_failures_total") >= 1
    play(port=services[1].port, answer=lambda message: response(body=b"1"))
    proxy_lab.wait_until(lambda: b"1" in ask_all(agent, 6), "its return")
    tally = ask_all(agent, 90)
    assert set(tally) == {b"0", b"1", b"2"} and min(tally.values()) >= 25, tally


def test_all_dead_then_one_back(three, play):
    agent, services = three
    for service in services:
        service.stop()
    with agent.client() as wire:
        for method in ("GET", "POST", "GET"):
            wire.send(request(method, body=b"" if method == "POST" else None))
            answer = wire.response()
            assert answer.status == 503 and answer.problem == "no-instance" and not answer.closes
            assert "3 instances" in answer.json["detail"] and answer.json["tried"][0]["site"] == "Site1"
        wire.send(request("POST", body=b"hello"))
        assert wire.response().status == 503
    back = play(port=services[2].port)
    proxy_lab.wait_until(lambda: agent.ask().status == 200, "its return")
    assert agent.ask("POST", body=b"hello").status == 200
    assert back.requests


def test_a_body_is_not_lost_when_the_first_instance_cannot_be_reached(play, start):
    dead, alive = proxy_lab.free_port(), play()
    alive.answer = lambda message: response(body=message.body)
    for _ in range(4):  # whichever is first
        agent = start(proxy_lab.describe(f"Site{_}", services={"service": [dead, alive.port]}))
        body = bytes(range(256)) * 1000
        for _ in range(2):
            assert agent.ask("POST", body=body).body == body


# ---- connections that went stale ----------------------------------------------------------------------------------------


def closing_after(service, answers=1):
    """Keeps a connection open, says nothing of closing it; and closes it, with a reset, when one more request comes."""
    def script(wire):
        for _ in range(answers):
            message = wire.request()
            if message is None:
                return
            service.note(message)
            wire.send(response())
        last = wire.request()
        if last is not None:
            service.note(last)
            if last.target != b"/fails":
                wire.send(response())
                wire.to_end()

    return script


def test_a_get_on_a_stale_connection_is_sent_again(agent, service):
    """Nothing was answered, nothing can have changed: the client never notices."""
    service.script = closing_after(service)
    with agent.client() as wire:
        wire.send(request(target="/first"))
        assert wire.response().status == 200
        wire.send(request(target="/fails"))
        assert wire.response().status == 200
    assert [message.target for message in service.requests] == [b"/first", b"/fails", b"/fails"]
    assert service.accepted == 2
    assert agent.counter("cheops_retries_total") == 1


@pytest.mark.parametrize("method,body", [("POST", b"hello"), ("POST", None), ("PUT", b"hello"), ("DELETE", None),
                                         ("PATCH", b"hello"), ("GET", b"hello")])
def test_what_may_have_been_acted_on_is_not_sent_again(agent, service, method, body):
    """On a connection that was seen to be kept, and then is not."""
    service.script = closing_after(service, answers=2)
    with agent.client() as wire:
        for _ in range(2):
            wire.send(request(target="/first"))
            assert wire.response().status == 200
        wire.send(request(method, "/fails", body=body))
        answer = wire.response()
        assert answer.status == 502 and answer.problem == "broken-answer"
    assert [message.target for message in service.requests] == [b"/first", b"/first", b"/fails"]
    assert agent.counter("cheops_retries_total") == 0


def test_a_service_that_closes_after_each_answer_fails_nothing(agent, service):
    """It does not say so, and closes a moment later, as uWSGI does on a busy machine: what was sent meanwhile would be lost."""
    def script(wire):
        while (message := wire.request()) is not None:
            service.note(message)
            wire.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            answered = time.monotonic()
            time.sleep(0.05)
            if time.monotonic() < answered + 0.4:   # else it had no turn for so long that it looks as if it kept the connection
                return

    service.script = script
    statuses = []

    def ask():
        with agent.client() as wire:
            for number in range(20):
                wire.send(request(["GET", "PUT", "DELETE", "POST"][number % 4], body=b"hello" if number % 2 else None))
                statuses.append(wire.response().status)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert statuses == [204] * 80
    assert [message.method for message in service.requests].count(b"PUT") == 20


def test_where_nothing_is_asked_but_what_must_not_run_twice_connections_are_kept_nevertheless(agent, service):
    """Once they have been open for long enough. Few wait for that: a service may have a worker for each."""
    until = time.monotonic() + PATIENCE_S
    with agent.client() as wire:
        while len(service.requests) - service.accepted < 50 and time.monotonic() < until:
            wire.send(request("POST", body=b"hello"))
            assert wire.response().status == 200
    assert len(service.requests) - service.accepted >= 50
    service.wait(lambda: len(service.wires) <= 12)


def test_a_get_on_a_new_connection_is_not_sent_again(agent, service):
    service.answer = lambda message: None
    assert agent.ask().status == 502
    assert len(service.requests) == 1


def test_a_get_is_not_sent_a_third_time(agent, service):
    """Every connection works once, then breaks."""
    service.script = closing_after(service)
    with agent.client() as wire:
        wire.send(request(target="/first"))
        assert wire.response().status == 200
        service.script = lambda wire: service.note(wire.request())
        wire.send(request(target="/fails"))
        assert wire.response().status == 502
    assert len(service.requests) == 3


def test_an_answer_that_began_is_not_asked_for_again(agent, service):
    def script(wire):
        service.note(wire.request())
        wire.send(response())
        service.note(wire.request())
        wire.send(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.")

    service.script = script
    with agent.client() as wire:
        wire.send(request(target="/first"))
        assert wire.response().status == 200
        wire.send(request(target="/fails"))
        assert wire.response(interim=[]).status == 502
    assert len(service.requests) == 2


def test_connections_that_were_closed_while_idle_are_not_used(agent, service):
    for _ in range(10):
        assert agent.ask().status == 200
        service.drop_connections()
        service.wait(lambda: not service.wires)
        assert agent.ask("POST", body=b"hello").status == 200
    assert agent.counter("cheops_retries_total") == 0
    assert len(service.requests) == 20


def test_a_service_that_closes_connections_as_it_likes_fails_no_get(start, play):
    """After one to five answers, without a word. What was asked meanwhile on such a connection is asked again."""
    def script(wire):
        for _ in range(1 + wire.sock.fileno() % 5):
            if wire.request() is None:
                return
            wire.send(response())

    services = [play(script=script), play(script=script)]
    agent = start(proxy_lab.describe(services={"service": [service.port for service in services]}))
    failures = []

    def ask():
        with agent.client() as wire:
            for _ in range(200):
                wire.send(request())
                answer = wire.response()
                if answer.status != 200:
                    failures.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == []
    assert sum(service.accepted for service in services) >= 100
