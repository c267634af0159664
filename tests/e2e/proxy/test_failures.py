"""Services and agents that die, or stop, at each stage of a request; at this site and at another one.

Whatever happens, the client is told within the time-outs: by an answer that names the site, or, once an answer has begun,
by a connection that breaks off. It never takes a part for the whole, and what is left works on.
"""
import pathlib
import select
import signal
import subprocess
import sys
import threading

import pytest

import proxy_lab
from processes import hold
from proxy_lab import PATIENCE_S, Broken, request

SCRIPT = pathlib.Path(__file__).with_name("staged_service.py")
STAGES = ["accepted", "body", "answer", "answering"]
UPLOAD = b"u" * 300000
TIMEOUTS = {"answer": "4s", "idle": "4s", "connect": "5s"}  # long enough for a process to get its turn on a busy machine


class Process:
    """staged_service.py, listening."""

    def __init__(self, stage, port=None):
        self.port = port or proxy_lab.free_port()
        self.process = subprocess.Popen([sys.executable, str(SCRIPT), str(self.port), stage], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.expect("listening")

    def expect(self, line):
        assert select.select([self.process.stdout], [], [], PATIENCE_S)[0], f"it did not reach: {line}"
        assert self.process.stdout.readline().decode().strip() == line

    def signal(self, number):
        if number == signal.SIGSTOP:
            hold(self.process.pid)
        else:
            self.process.send_signal(number)

    def stop(self):
        self.process.kill()
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def staged():
    made = []

    def make(stage, port=None):
        made.append(Process(stage, port))
        return made[-1]

    yield make
    for process in made:
        process.stop()


@pytest.fixture
def ask_and():
    """ask_and(agent, service, what, **fields): sends an upload, lets the service reach its stage, does it, and goes on."""
    def run(agent, service, stage, what, **fields):
        with agent.client() as wire:
            text = request("POST", body=UPLOAD, **fields)
            wire.send(text[:len(text) // 2])
            if stage in ("accepted", "body"):
                service.expect(stage)
                what()
            sender = threading.Thread(target=lambda: send_rest(wire, text[len(text) // 2:]))
            sender.start()
            if stage in ("answer", "answering"):
                service.expect(stage)
                if stage == "answering":
                    wire.until(b"\r\n\r\nx")  # the answer has begun
                what()
            try:
                if stage == "answering":
                    wire.take((1 << 20) - 1)
                    return "whole"
                return wire.response(b"POST")
            except Broken:
                return "broken"
            finally:
                sender.join(PATIENCE_S)

    def send_rest(wire, text):
        try:
            wire.send(text)
        except OSError:
            pass  # it has been answered

    return run


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_service_here(start, staged, ask_and, stage, number):
    service = staged(stage)
    agent = start(proxy_lab.describe(services={"service": [service.port]}, timeouts=TIMEOUTS))
    answer = ask_and(agent, service, stage, lambda: service.signal(number))
    if stage == "answering":
        assert answer == "broken"
    else:
        assert answer.status == (502 if number == signal.SIGKILL else 504), answer
        assert answer.problem == ("broken-answer" if number == signal.SIGKILL else "no-answer")
        assert answer.json["site"] == "Site1" and answer.json["tried"] and answer.one(b"Proxy-Status")
    service.stop()
    assert agent.ask().status in (503, 502)  # the first one may meet a connection that just died
    assert agent.ask().status == 503
    staged("none", service.port)
    proxy_lab.wait_until(lambda: agent.ask().status == 200, "its return")


@pytest.fixture
def far_stage(start, staged, play, join):
    def make(stage, timeouts_there=TIMEOUTS):
        service = staged(stage)
        near = play()
        here = start(proxy_lab.describe("Site1", {"service": [near.port]}, timeouts=TIMEOUTS))
        there = start(proxy_lab.describe("Site2", {"service": [service.port]}, timeouts=timeouts_there))
        join(here, there)
        return here, there, service

    return make


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_service_there(far_stage, staged, ask_and, stage, number):
    here, there, service = far_stage(stage, {"answer": "2s", "idle": "2s"})
    answer = ask_and(here, service, stage, lambda: service.signal(number), Scope="Site2")
    if stage == "answering":
        assert answer == "broken"
    else:
        assert answer.status == (502 if number == signal.SIGKILL else 504), answer
        assert answer.json["site"] == "Site2"
        assert b'"Site1"; next-hop="Site2"' in b" ".join(answer.all(b"Proxy-Status")), answer
    service.stop()
    assert here.ask(Scope="Site2").status in (502, 503)
    answer = here.ask(Scope="Site2")
    assert answer.status == 503 and answer.json["site"] == "Site2"
    staged("none", service.port)
    proxy_lab.wait_until(lambda: here.ask(Scope="Site2").status == 200, "its return")
    assert here.ask().status == 200


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_agent_there(start, far_stage, staged, ask_and, stage, number):
    here, there, service = far_stage(stage)
    answer = ask_and(here, service, stage, lambda: there.signal(number), Scope="Site2")
    if stage == "answering":
        # What was under way from there when it stopped may have been all; then the answer is whole.
        assert answer in ("broken", "whole")
        assert answer == "broken" or number == signal.SIGSTOP
    else:
        assert answer.status == (502 if number == signal.SIGKILL else 504), answer
        assert answer.json["site"] == "Site2", answer
    there.kill()
    service.stop()
    answer = here.ask(Scope="Site2")
    assert answer.status == 502 and answer.problem == "site-unreachable" and answer.json["site"] == "Site2", answer
    assert b"connection_refused" in answer.one(b"Proxy-Status")
    assert here.ask().status == 200, "what is local goes on"
    staged("none", service.port)
    start(there.config, name="again")
    assert here.ask(Scope="Site2").status == 200


@pytest.mark.parametrize("stage", STAGES)
def test_the_agent_here_is_killed(far_stage, staged, ask_and, stage):
    here, there, service = far_stage(stage)
    assert ask_and(here, service, stage, lambda: here.signal(signal.SIGKILL), Scope="Site2") == "broken"
    here.process.wait(PATIENCE_S)
    # The other one has noticed: no request is under way there, so it stops without waiting.
    there.signal(signal.SIGTERM)
    assert there.wait_exit() == 0


def test_an_agent_that_is_stopped_and_goes_on(two_sites):
    """A pause shorter than any time-out costs nothing but time."""
    stage = two_sites()
    with stage.here.client() as wire:
        stage.there.signal(signal.SIGSTOP)
        wire.send(request("POST", body=b"hello", Scope="Site2"))
        assert stage.here.ask().status == 200
        stage.there.signal(signal.SIGCONT)
        assert wire.response().status == 200
    assert len(stage.far.requests) == 1
