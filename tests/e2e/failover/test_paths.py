"""The data path itself is watched: a site that no longer answers is left within about a second, long before any time-out, and
comes back by itself."""
import concurrent.futures
import contextlib
import json
import os
import signal
import threading

import pytest
from failover_lab import PATIENCE_S, Hangs, attempts, request, response, wait_until


@contextlib.contextmanager
def silence(lab, how):
    """Site2 can no longer be heard."""
    if how == "stopped":  # its agent does nothing any more; its kernel still takes connections
        lab[2].agent.signal(signal.SIGSTOP)
    elif how == "cut off":
        lab.wan.cut("Site1", "Site2")
    else:
        lab.wan.cut("Site2", "Site1", one_way=True)
    try:
        yield
    finally:
        lab[2].agent.signal(signal.SIGCONT)
        lab.wan.heal()


@pytest.mark.parametrize("how", ["stopped", "cut off", "cannot answer"])
def test_request_leaves_a_site_that_went_silent(lab, how):
    """Nothing but probes can tell: the time-out for an answer is a minute."""
    lab.start()
    lab.warm(2)
    with silence(lab, how):
        answer = lab.ask("Site2; Site3")
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "http_response_timeout"), ("Site3", "200")]
        # The kernel of an agent that hangs is heard of: that one probe is not answered in time is enough.
        assert lab.counter("paths_lost") == 1 and lab.counter("path_probe_failures") >= (1 if how == "stopped" else 2)
        # From now on it is passed over.
        answer = lab.ask("Site2; Site3", "POST")
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "destination_unavailable"), ("Site3", "200")]
    # It comes back by itself.
    wait_until(lambda: lab.ask("Site2; Site3").body == b"Site2", "Site2 to be used again")


@pytest.mark.parametrize("how", ["cut off", "cannot answer"])
def test_request_that_has_nowhere_else_to_go(lab, how):
    """It fails as soon as the path is known to be down, on a connection from before the cut, and so does the next: not after a minute."""
    lab.start(timeouts={"answer": "10min", "connect": "1s"})
    lab.warm(2)
    with silence(lab, how):
        answer = lab.ask("Site2")
        problem = json.loads(answer.body)
        assert answer.status == 504 and problem["type"].endswith(":no-answer") and problem["site"] == "Site2", problem
        assert "the path to the site went down meanwhile" in problem["detail"]
        assert lab.counter("paths_lost") == 1
        for method in ("GET", "POST"):
            problem = json.loads(lab.ask("Site2", method).body)
            assert problem["type"].endswith((":site-unreachable", ":no-answer")) and problem["site"] == "Site2", problem
    wait_until(lambda: lab.ask("Site2").body == b"Site2", "Site2 to be used again")


@pytest.mark.parametrize("how", ["cut off", "cannot answer"])
def test_request_that_must_not_run_twice_and_was_not_taken(lab, how):
    """Sent on an open connection, into a cut: the other machine has not acknowledged it, so its answer is not waited for; and it does not
    arrive there later."""
    lab.start(timeouts={"answer": "10min"})
    lab.warm(2)
    with silence(lab, how):
        answer = lab.ask("Site2", "POST")
        problem = json.loads(answer.body)
        assert answer.status == 504 and problem["site"] == "Site2", problem
    wait_until(lambda: lab.ask("Site2").body == b"Site2", "Site2 to be used again")
    if how == "cut off":
        assert {message.method for message in lab[2].service.requests} == {b"GET"}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_that_the_service_is_at_work_on(lab, method):
    """It was taken by the other machine: a cut that ends does it no harm."""
    lab.start()
    lab.warm(2)
    reached, go = threading.Event(), threading.Event()

    def work(_):
        reached.set()
        assert go.wait(PATIENCE_S)
        return response(body=b"done")

    lab[2].service.answer = work
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lab.ask, "Site2", method)
        assert reached.wait(PATIENCE_S)
        lab.wait_delivered(2)
        with silence(lab, "cut off"):
            wait_until(lambda: lab.counter("paths_lost") == 1, "the cut to be noticed")
            assert not asked.done()
        go.set()
        assert asked.result(PATIENCE_S).body == b"done"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_that_finds_no_connection(lab, method):
    """A cut that nobody has noticed yet, and no connection from before it: nothing was sent, so any request may move on."""
    lab.start()
    lab.wan.cut("Site1", "Site2")
    try:
        answer = lab.ask("Site2; Site3", method)
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "connection_timeout"), ("Site3", "200")]
    finally:
        lab.wan.heal()
    assert lab[3].runs == 1
    wait_until(lambda: lab.ask("Site2; Site3", method).body == b"Site2", "Site2 to be used again")


@pytest.mark.parametrize("how", ["stopped", "cut off", "cannot answer"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_path_that_was_never_used(lab, how, method):
    """Nothing but probes can tell: the time-out for a connection is a minute."""
    lab.start(Site1={"timeouts": {"connect": "1min"}})
    with silence(lab, how):
        answer = lab.ask("Site2; Site3", method)
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "connection_timeout"), ("Site3", "200")]
        # The kernel of an agent that hangs takes connections: that one probe is not answered in time is enough.
        assert lab.counter("paths_lost") == 1 and lab.counter("path_probe_failures") >= (1 if how == "stopped" else 2)
        answer = lab.ask("Site2; Site3", method)
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "destination_unavailable"), ("Site3", "200")]
    assert lab[2].runs == 0
    wait_until(lambda: lab.ask("Site2; Site3", method).body == b"Site2", "Site2 to be used")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_path_of_unknown_length(lab, method):
    """A newcomer that was cut off at once knows who is there, but neither how far away nor whether they live."""
    lab.start()
    newcomer = lab.newcomer(timeouts={"connect": "1min", "stop": "5s"})
    answer = lab.ask("Site2; Site3; Site5", method, at=5)
    assert answer.body == b"Site5"
    assert attempts(answer) == [("Site2", "connection_timeout"), ("Site3", "connection_timeout"), ("Site5", "200")]
    lab.wan.heal()
    wait_until(lambda: lab.ask("Site2; Site5", method, at=5).body == b"Site2", "Site2 to be used")
    assert newcomer.agent.counter("cheops_paths_lost_total") >= 2


@contextlib.contextmanager
def without_gossip(lab, name):
    for words in ("add table inet gossip", "add chain inet gossip in { type filter hook input priority 0; }",
                  "add rule inet gossip in udp dport 8070 drop"):
        assert lab.wan.run(name, ["nft", words]).returncode == 0
    try:
        yield
    finally:
        assert lab.wan.run(name, ["nft", "delete table inet gossip"]).returncode == 0


def test_path_longer_than_anybody_knows(lab):
    """A satellite that gossip has told nothing of. It is left at first, and found all the same."""
    lab.start()
    lab.newcomer()
    before = lab.wan.delay_ms("Site4", "Site2")
    with without_gossip(lab, "Site4"):  # it is heard, and hears nothing
        lab.wan.set("Site4", "Site2", delay="1s")
        try:
            lab.wan.heal()
            answer = lab.ask("Site2; Site5", at=5)
            assert answer.body == b"Site5" and attempts(answer) == [("Site2", "connection_timeout"), ("Site5", "200")]
            wait_until(lambda: lab.ask("Site2; Site5", at=5).body == b"Site2", "Site2 to be used")
        finally:
            lab.wan.set("Site4", "Site2", delay=f"{before}ms")


def test_path_that_gossip_has_lost(lab):
    """It keeps its place, is tried, and is left: nobody had used it before."""
    lab.start(Site1={"timeouts": {"connect": "1min"}})
    lab.wan.isolate("Site2")
    try:
        wait_until(lambda: lab.view()["Site2"]["shown"] == "unknown", "gossip to lose Site2")
        assert lab.order("Site2; Site3") == ["Site2", "Site3"] and lab.order("Site2 | Site3") == ["Site3", "Site2"]
        answer = lab.ask("Site2; Site3", "POST")
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "connection_timeout"), ("Site3", "200")]
    finally:
        lab.wan.heal()
    wait_until(lambda: lab.ask("Site2; Site3", "POST").body == b"Site2", "Site2 to be used")


@pytest.mark.parametrize("chunked", [False, True])
def test_large_body_that_finds_no_connection(lab, chunked):
    """It is not kept, but its first byte was not sent either."""
    lab.start()
    body = os.urandom(1 << 20)
    lab.wan.cut("Site1", "Site2")
    try:
        answer = lab.ask("Site2; Site3", "POST", **({"chunked": [body]} if chunked else {"body": body}))
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "connection_timeout"), ("Site3", "200")]
    finally:
        lab.wan.heal()
    assert lab[3].service.requests[0].body == body


def test_request_in_the_middle_moves_on(lab):
    """It was taken by the other site, whose agent goes silent then."""
    lab.start()
    lab.warm(2)
    hangs = Hangs(lab[2].service)
    lab[2].service.drop_connections()
    with lab.client() as wire:
        wire.send(request(Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        lab[2].agent.signal(signal.SIGSTOP)
        answer = wire.response()
    assert answer.body == b"Site3" and attempts(answer) == [("Site2", "http_response_timeout"), ("Site3", "200")]


def test_request_that_may_have_run_stays(lab):
    lab.start()
    lab.warm(2)
    hangs = Hangs(lab[2].service)
    lab[2].service.drop_connections()
    with lab.client() as wire, lab.client() as other:
        wire.send(request("POST", Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        lab[2].agent.signal(signal.SIGSTOP)
        wait_until(lambda: lab.counter("paths_lost") == 1, "the path to be lost")
        other.send(request("POST", Scope="Site2; Site3"))
        assert other.response().body == b"Site3"
        assert lab[3].runs == 1 and lab[2].runs == 1
        lab[2].agent.signal(signal.SIGCONT)
        hangs.service.drop_connections()
        assert wire.response().status in (200, 502)
    assert lab[3].runs == 1


def test_many_requests_leave_together(lab):
    lab.start(threads=2)
    lab.warm(2)
    hangs = Hangs(lab[2].service)
    lab[2].service.drop_connections()
    wires = [lab.client() for _ in range(20)]
    for number, wire in enumerate(wires):
        wire.send(request("GET", f"/{number}", Scope="Site2; Site3" if number % 2 else "Site2; Site3 | Site1"))
    # On a busy machine a probe may be late, and some have left already: each of them has got somewhere.
    wait_until(lambda: len({message.line for n in (1, 2, 3) for message in lab[n].service.requests}) == 20, "all of them")
    lab[2].agent.signal(signal.SIGSTOP)
    assert {wire.response().body for wire in wires} <= {b"Site3", b"Site1"}
    for wire in wires:
        wire.close()
    del hangs


def test_path_is_probed_while_it_is_used(lab):
    """By a real request on the real port. A slow service is not a silent site."""
    lab.start()
    hangs = Hangs(lab[2].service)
    before = lab[2].agent.counter("cheops_requests_total")
    with lab.client() as wire:
        wire.send(request(Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        wait_until(lambda: lab.counter("path_probes") >= 4, "probes")
        assert lab[2].agent.counter("cheops_requests_total") >= before + 3
        assert lab.counter("paths_lost") == 0
        hangs.service.drop_connections()
        assert wire.response().body == b"Site3"


def test_sites_that_are_not_used_are_not_probed(lab):
    lab.start()
    lab.warm(2)
    wait_until(lambda: lab.counter("path_probes") >= 2, "probes of Site2")
    assert lab[3].agent.counter("cheops_requests_total") <= 1  # the question itself


def test_port_for_agents_answers_probes(lab):
    """Of other agents: they show who they are."""
    lab.start(count=2)
    with lab.as_peer(2) as wire:
        for _ in range(2):
            wire.send(request(target="/cheops/v1/health"))
            answer = wire.response()
            assert answer.status == 200 and answer.json["status"] == "ok"
    for target in ("/cheops/v1/health", "/other"):
        with lab.as_peer(None) as wire:
            wire.send(request(target=target))
            assert wire.response().problem == "not-a-peer"


def test_handshake_of_an_agent_may_take_long(lab):
    """Behind a satellite it does, and whoever is turned away takes this site for one that fails. `header` is for clients: one
    that came later has had its time by then."""
    lab.start(count=2, Site1={"timeouts": {"header": "100ms", "stop": "5s"}})

    def a_client_is_too_late():
        with lab.client() as wire:
            wire.send(b"GET / HTTP/1.1\r\n")
            assert wire.response().problem == "request-too-slow"

    with lab.as_peer(2, before=a_client_is_too_late) as wire:
        wire.send(request(target="/cheops/v1/health")[:20])
        a_client_is_too_late()
        wire.send(request(target="/cheops/v1/health")[20:])
        assert wire.response().status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_site_that_comes_and_goes(lab, method):
    """Whatever happens to Site2, each request is answered, and runs once."""
    lab.start()
    lab.warm(2)

    def come_and_go():
        for turn in range(1, 4):
            lab[2].agent.signal(signal.SIGSTOP)
            wait_until(lambda: lab.counter("paths_lost") >= turn, "the path to be lost")
            lab[2].agent.signal(signal.SIGCONT)
            wait_until(lambda: lab.view()["Site2"]["path"]["state"] == "up", "the path to be good again")
            before = lab[2].runs
            wait_until(lambda: lab[2].runs > before, "Site2 to be used again")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    sent = 0
    while thread.is_alive():
        assert lab.ask("Site2; Site3", method).status == 200
        sent += 1
    thread.join()
    assert lab[2].runs + lab[3].runs >= sent
    if method == "POST":
        assert lab[2].runs + lab[3].runs == sent
