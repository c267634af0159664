"""`;`: the next site when one fails, and never a request that runs twice."""
import os
import threading

import pytest
from failover_lab import PATIENCE_S, Hangs, answers, attempts, breaks, request, response, wait_until

KEPT = 64 << 10  # LIMIT_PROXY_KEPT_BODY_BYTES


# ---- which answer counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "DELETE"])
def test_first_site_that_works_is_the_only_one(lab, method):
    lab.start()
    answer = lab.ask("Site2; Site3; Site1", method)
    assert answer.status == 200 and answer.body == (b"" if method == "HEAD" else b"Site2")
    assert [lab[n].runs for n in (1, 2, 3)] == [0, 1, 0]
    assert attempts(answer) == [("Site2", "200")]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_agent_that_is_gone(lab, method):
    lab.start()
    lab.kill(2)
    answer = lab.ask("Site2; Site3", method)
    assert (answer.status, answer.body) == (200, b"Site3") and [lab[n].runs for n in (1, 2, 3)] == [0, 0, 1]
    assert answer.all(b"Proxy-Status")[-1] == (b'"Site1"; next-hop="Site2"; error=connection_refused, '
                                               b'"Site1"; next-hop="Site3"; received-status=200')
    assert lab.counter("failovers") == 1
    # Now it is known, and not tried any more.
    assert attempts(lab.ask("Site2; Site3", method)) == [("Site2", "destination_unavailable"), ("Site3", "200")]
    assert lab.counter("skipped_sites") >= 1 and lab.counter("paths_lost") == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_service_that_is_gone_at_the_other_site(lab, method):
    """Its agent says that nothing has seen the request."""
    lab.start()
    lab[2].refuse()
    answer = lab.ask("Site2; Site3", method, body=b"x" * 1000)
    assert (answer.status, answer.body) == (200, b"Site3") and attempts(answer) == [("Site2", "503"), ("Site3", "200")]
    assert lab[3].service.requests[0].body == b"x" * 1000
    assert not answer.all(b"Cheops-Outcome")
    assert b"Site2;dur=" in b",".join(answer.all(b"Server-Timing"))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_service_that_is_gone_here(lab, method):
    lab.start(count=2)
    lab[1].refuse()
    for _ in range(3):
        answer = lab.ask("Site1; Site2", method)
        assert (answer.status, answer.body) == (200, b"Site2") and attempts(answer)[0] == ("Site1", "destination_unavailable")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_answer_that_says_not_now(lab, status):
    lab.start()
    lab[2].service.answer = answers(status)
    answer = lab.ask("Site2; Site3")
    assert answer.body == b"Site3" and attempts(answer) == [("Site2", str(status)), ("Site3", "200")]
    # Something that must not run twice may have run there: its answer counts.
    answer = lab.ask("Site2; Site3", "POST")
    assert (answer.status, answer.body) == (status, b"no") and attempts(answer) == [("Site2", str(status))]
    assert lab[3].runs == 1 and lab[2].runs == 2


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 404, 409, 429, 500, 501, 505])
def test_every_other_answer_is_the_answer(lab, status):
    lab.start()
    lab[2].service.answer = lambda message: response(status, b"" if status in (204, 304) else b"no")
    for method in ("GET", "POST"):
        answer = lab.ask("Site2; Site3", method)
        assert answer.status == status and attempts(answer) == [("Site2", str(status))]
    assert lab[3].runs == 0


def test_all_say_not_now(lab):
    """The answer of a service is worth more than one that is made up: that of the site that was named first."""
    lab.start()
    lab[2].service.answer = answers(503, b"the second is tired" * 1000, Retry_After="7")
    lab[3].service.answer = answers(504, b"the third, too")
    answer = lab.ask("Site2; Site3")
    assert (answer.status, answer.body, answer.one(b"Retry-After")) == (503, b"the second is tired" * 1000, b"7")
    assert attempts(answer) == [("Site3", "504"), ("Site2", "503")]
    lab.kill(2)
    answer = lab.ask("Site2; Site3")
    assert (answer.status, answer.body) == (504, b"the third, too")


def test_all_are_gone(lab):
    lab.start()
    for n in (2, 3):
        lab.kill(n)
    answer = lab.ask("Site2; Site3")
    assert (answer.status, answer.problem) == (502, "all-sites-failed")
    assert answer.json["tried"] == [{"site": "Site2", "error": "connection_refused"}, {"site": "Site3", "error": "connection_refused"}]
    assert attempts(answer) == [("Site2", "connection_refused"), ("Site3", "connection_refused")]
    assert "Site2: connection_refused; Site3: connection_refused" in answer.json["detail"]


def test_sites_that_are_down_are_tried_when_no_other_is_left(lab):
    lab.start()
    for n in (2, 3):
        lab.kill(n)
    assert lab.ask("Site2; Site3").status == 502
    lab.restart(3)
    answer = lab.ask("Site2; Site3", "POST")
    assert (answer.status, answer.body) == (200, b"Site3")


def test_services_that_are_gone_everywhere(lab):
    lab.start()
    for n in (1, 2, 3):
        lab[n].refuse()
    answer = lab.ask("Site2; Site3; Site1", "POST")
    assert (answer.status, answer.problem) == (503, "all-sites-failed")
    assert [(entry["site"], entry.get("status")) for entry in answer.json["tried"]] == [("Site2", 503), ("Site3", 503), ("Site1", None)]


# ---- what was sent is not sent again --------------------------------------------------------------------------------------


def test_no_answer_in_time(lab):
    lab.start(Site1={"timeouts": {"answer": "2s"}})
    hangs = Hangs(lab[2].service)
    answer = lab.ask("Site2; Site3")
    assert answer.body == b"Site3" and attempts(answer) == [("Site2", "http_response_timeout"), ("Site3", "200")]
    hangs.wait(hangs.closed)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = lab.ask("Site2; Site3", method)
        assert (answer.status, answer.problem, answer.json["site"]) == (504, "no-answer", "Site2")
        assert answer.json["tried"] == [{"site": "Site2", "error": "http_response_timeout"}]
    assert lab[3].runs == 1


def test_connection_that_breaks_before_the_answer(lab):
    """The service breaks off; its agent says so, and cannot say that nothing has run."""
    lab.start()
    breaks(lab[2].service)
    answer = lab.ask("Site2; Site3")
    assert answer.body == b"Site3" and attempts(answer) == [("Site2", "502"), ("Site3", "200")]
    answer = lab.ask("Site2; Site3", "POST")
    assert (answer.status, answer.problem) == (502, "broken-answer") and lab[3].runs == 1
    assert not answer.all(b"Cheops-Outcome")


def test_answer_that_breaks_in_the_middle_is_not_repeated(lab):
    lab.start()
    breaks(lab[2].service, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    with lab.client() as wire:
        wire.send(request(Scope="Site2; Site3"))
        assert wire.response_head().status == 200
        assert wire.to_end() == b"half" and wire.reset
    assert lab[3].runs == 0


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_agent_that_is_killed_in_the_middle(lab, method):
    lab.start()
    hangs = Hangs(lab[2].service)
    with lab.client() as wire:
        wire.send(request(method, Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        lab.kill(2)
        answer = wire.response()
    if method == "GET":
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "connection_terminated"), ("Site3", "200")]
    else:
        assert (answer.status, answer.problem) == (502, "broken-answer") and "may have run" in answer.json["detail"]
        assert lab[3].runs == 0


def test_answer_that_is_not_http(lab):
    lab.start(count=2)
    breaks(lab[1].service, b"hello\r\n\r\n")
    answer = lab.ask("Site1; Site2")
    assert answer.body == b"Site2" and attempts(answer) == [("Site1", "http_protocol_error"), ("Site2", "200")]
    assert lab.ask("Site1; Site2", "POST").status == 502


def test_service_cannot_say_that_it_did_not_run(lab):
    """The word is an agent's. From a service it is neither believed nor passed on, here or at another site."""
    lab.start()
    for n in (1, 2):
        lab[n].service.answer = answers(503, Cheops_Outcome="not-run")
        answer = lab.ask(f"Site{n}; Site3", "POST")
        assert (answer.status, answer.body) == (503, b"no") and not answer.all(b"Cheops-Outcome")
        assert lab.ask(f"Site{n}").all(b"Cheops-Outcome") == []
    assert lab[3].runs == 0


def test_other_agents_refusal_is_not_the_answer(lab):
    """Site2 has a policy that lets nobody in: it refuses with 403, and has run nothing."""
    lab.start(Site2={"policy": {"others": "refuse"}})
    for method in ("GET", "POST"):
        answer = lab.ask("Site2; Site3", method)
        assert (answer.status, answer.body) == (200, b"Site3") and attempts(answer) == [("Site2", "403"), ("Site3", "200")]
        answer = lab.ask("Site2", method)  # alone it is
        assert (answer.status, answer.problem) == (403, "policy-refused") and not answer.all(b"Cheops-Outcome")
    assert lab[2].runs == 0


def test_other_agent_that_has_enough_to_do(lab):
    """429 of an agent says that nothing was run. That of a service is an answer like any other."""
    lab.start(Site2={"policy": {"rules": [{"name": "few", "concurrent": 1}]}})
    hangs = Hangs(lab[2].service)
    with lab.client() as wire:
        wire.send(request(Scope="Site2"))
        hangs.wait(hangs.reached)
        for method in ("GET", "POST"):
            answer = lab.ask("Site2; Site3", method)
            assert answer.body == b"Site3" and attempts(answer) == [("Site2", "429"), ("Site3", "200")]
    assert lab[2].runs == 1


# ---- who is there -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, how", [("GET", "revoke"), ("GET", "remove"), ("POST", "revoke"), ("POST", "remove")])
def test_site_that_is_shut_out_in_the_middle(lab, method, how):
    """Its requests are taken away from it. What may have run there and must not run twice is answered so.

    Site3 may have heard by then that there is no Site2; it runs the request all the same."""
    lab.start()
    hangs = Hangs(lab[2].service)
    with lab.client() as wire:
        wire.send(request(method, Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        lab.shut_out(2, how)
        answer = wire.response()
        hangs.wait(hangs.closed)
    if method == "GET":
        assert answer.body == b"Site3" and attempts(answer) == [("Site2", "destination_unavailable"), ("Site3", "200")]
    else:
        assert (answer.status, answer.problem) == (502, "broken-answer") and "may have run" in answer.json["detail"]
        assert lab[3].runs == 0


def ask_as_site2(lab, scope):
    """At Site1, as the agent of Site2 would."""
    with lab.as_peer(2) as wire:
        wire.send(request(Scope=scope, Cheops_Hop="v2 service=service hops=1"))
        return wire.response()


@pytest.mark.parametrize("scope", ["Site9; Site1", "service: (Site9; Site1), other: Site9", "tagged(a=b); Site1"])
def test_scope_of_another_agent_says_what_is_not_known_here(lab, scope):
    """It was evaluated there, by what was known there, and this site was chosen: a site that is gone, or not yet known here, is no
    reason to refuse. What is no scope at all is; and so is the same scope of a client."""
    lab.start(count=2)
    answer = ask_as_site2(lab, scope)
    assert (answer.status, answer.body) == (200, b"Site1"), answer
    assert lab[1].runs == 1
    assert ask_as_site2(lab, "Site9; ").status == 400
    assert lab.ask(scope).status == 400 and lab[1].runs == 1


def test_site_that_is_shut_out_in_the_middle_of_a_large_body(lab):
    lab.start()
    started, closed = threading.Event(), threading.Event()

    def script(wire):
        wire.head()
        started.set()
        while wire.more():
            wire.ahead = b""
        closed.set()

    lab[2].service.script = script
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nContent-Length: 1000000\r\n\r\n", b"x" * 100000)
        assert started.wait(PATIENCE_S)
        lab.shut_out(2, "revoke")
        answer = wire.response()
        assert closed.wait(PATIENCE_S)
    assert (answer.status, answer.problem) == (502, "broken-answer") and answer.json["site"] == "Site2" and lab[3].runs == 0


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_site_at_the_address(lab, method, large):
    """It belongs to the mesh, and would pass any handshake; but it is not the site that is meant. It is told nothing."""
    lab.start()
    lab.kill(2)
    with lab.impostor(2, as_site=3) as impostor:
        body = b"x" * (1 << 20 if large else 10)
        for turn in range(3):
            answer = lab.ask("Site2; Site3", method, body=body)
            assert (answer.status, answer.body) == (200, b"Site3")
            assert [site for site, _ in attempts(answer)] == ["Site2", "Site3"]
            if turn == 0:  # later on probes have found out, too
                assert attempts(answer)[0] == ("Site2", "destination_unavailable")
                assert b"not tried" not in answer.all(b"Proxy-Status")[-1]
        answer = lab.ask("Site2", method)
        assert (answer.status, answer.problem) == (502, "site-unreachable")
        wait_until(lambda: lab.counter("path_probe_failures") > 0, "a probe that finds the wrong one")
        assert impostor.met > 0 and impostor.told == b""
    lab.restart(2)
    wait_until(lambda: lab.ask("Site2; Site3", method).body == b"Site2", "Site2 to be used again")


# ---- bodies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5000, KEPT - 1, KEPT])
def test_kept_body_is_sent_again(lab, size):
    lab.start()
    lab[2].refuse()
    body = os.urandom(size)
    answer = lab.ask("Site2; Site3", "POST", body=body)
    assert (answer.status, answer.body) == (200, b"Site3") and lab[3].service.requests[0].body == body
    assert lab[3].service.requests[0].one(b"Content-Length") == str(size).encode()


@pytest.mark.parametrize("pieces", [[], [b"x"], [os.urandom(1000) for _ in range(7)], [os.urandom(KEPT // 4)] * 4],
                         ids=lambda pieces: f"{len(pieces)}x{len(pieces[0]) if pieces else 0}")
def test_kept_chunks_are_sent_again(lab, pieces):
    lab.start()
    lab[2].refuse()
    answer = lab.ask("Site2; Site3", "POST", chunked=pieces)
    assert (answer.status, answer.body) == (200, b"Site3") and lab[3].service.requests[0].body == b"".join(pieces)


def test_trailers_of_kept_chunks(lab):
    lab.start()
    lab.kill(2)
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        wire.send(b"0\r\nDigest: 42\r\n\r\n")
        assert wire.response().body == b"Site3"
    got = lab[3].service.requests[0]
    assert got.body == b"abc" and got.trailers == [(b"Digest", b"42")]


@pytest.mark.parametrize("chunked", [False, True])
def test_large_body_goes_on_before_its_first_byte(lab, chunked):
    lab.start()
    lab.kill(2)
    body = os.urandom(1 << 20)
    pieces = {"chunked": [body[at:at + 10000] for at in range(0, len(body), 10000)]} if chunked else {"body": body}
    for _ in range(2):  # the second time it is known
        answer = lab.ask("Site2; Site3", "POST", **pieces)
        assert (answer.status, answer.body) == (200, b"Site3")
        assert attempts(answer)[0][0] == "Site2" and attempts(answer)[-1] == ("Site3", "200")
    assert [message.body == body for message in lab[3].service.requests] == [True, True]


def test_large_body_does_not_go_on_after_its_first_byte(lab):
    lab.start()
    lab[2].refuse()
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100000)
        answer = wire.response()
    assert answer.status == 503 and answer.problem == "no-instance" and lab[3].runs == 0
    assert not answer.all(b"Cheops-Outcome")


def test_large_body_nobody_takes(lab):
    lab.start()
    for n in (2, 3):
        lab.kill(n)
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nContent-Length: 1000000\r\n\r\n")
        answer = wire.response()
    assert (answer.status, answer.problem) == (502, "all-sites-failed") and answer.closes
    assert [entry["site"] for entry in answer.json["tried"]] == ["Site2", "Site3"]


@pytest.mark.parametrize("gone", ["agent", "service"])
def test_expectation_is_the_services_to_meet(lab, gone):
    """The client sends no body before it is told to; by then it is known who takes it."""
    lab.start()
    lab.warm(2, 3)  # there are idle connections to both
    if gone == "agent":
        lab.kill(2)
    else:
        lab[2].refuse()

    def script(wire):
        head = wire.head()
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.body(head)
        lab[3].service.note(head)
        wire.send(response(body=b"Site3"))

    lab[3].service.script = script
    lab[3].service.drop_connections()
    with lab.client() as wire:
        interim = []
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert wire.response_head().status == 100
        wire.send(b"hello")
        answer = wire.response(interim=interim)
    assert answer.body == b"Site3" and not interim and lab[3].service.requests[0].body == b"hello"
    # A probe may have found out before.
    assert attempts(answer)[0][1] in (("connection_refused", "destination_unavailable") if gone == "agent" else ("503",))
    assert [site for site, _ in attempts(answer)] == ["Site2", "Site3"]


def test_body_that_does_not_come_in_time(lab):
    lab.start(Site1={"timeouts": {"idle": "1s"}})
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nContent-Length: 10\r\n\r\n12345")
        answer = wire.response()
        assert (answer.status, answer.problem) == (408, "request-too-slow") and wire.has_ended()
    assert lab[2].runs == lab[3].runs == 0


def test_body_that_is_malformed(lab):
    lab.start()
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        answer = wire.response()
    assert (answer.status, answer.problem) == (400, "malformed-request") and lab[2].runs == lab[3].runs == 0


def test_client_that_leaves_in_the_middle_of_its_body(lab):
    lab.start()
    with lab.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nScope: Site2; Site3\r\nContent-Length: 10\r\n\r\n12345")
    assert lab.ask("Site2; Site3").body == b"Site2" and lab[2].runs == 1


# ---- the rest of a connection -------------------------------------------------------------------------------------------


def test_connection_goes_on(lab):
    """Requests one after the other, some of them sent ahead, with and without failover, on one connection."""
    lab.start()
    lab.kill(2)
    scopes = ["Site2; Site3", "Site1", "Site3; Site2", "Site2 | Site1", "Site2; Site3"] * 3
    with lab.client() as wire:
        wire.send(b"".join(request("POST", Scope=scope, body=scope.encode()) for scope in scopes))
        assert [wire.response().body for _ in scopes] == [b"Site3", b"Site1", b"Site3", b"Site1", b"Site3"] * 3


def test_http_1_0(lab):
    lab.start()
    lab.kill(2)
    with lab.client() as wire:
        wire.send(b"GET /a HTTP/1.0\r\nScope: Site2; Site3\r\n\r\n")
        assert wire.response().body == b"Site3"
    assert lab[3].service.requests[0].target == b"/a"


def test_each_site_gets_the_head_that_is_meant_for_it(lab):
    """Also after the request was written for another site: nothing of that one is left in it."""
    lab.start()
    lab.kill(2)
    with lab.client() as wire:
        wire.send(b"GET /scope/Site2;Site1/a?b=c HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nbaggage: a=b\r\n"
                  b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-More: 2\r\n\r\n")
        assert wire.response().body == b"Site1"
    got = lab[1].service.requests[0]
    assert got.target == b"/a?b=c" and got.one(b"Host") == b"h" and got.one(b"X-More") == b"2"
    assert got.one(b"X-Forwarded-For") == b"1.2.3.4, 127.0.0.1" and got.one(b"Via") == b"1.1 Site1"
    assert not got.all(b"Cheops-Hop") and not got.all(b"X-Hop")
    assert got.one(b"Scope") == b"service: Site2; Site1" and got.one(b"baggage").startswith(b"a=b,cheops.scope=")


def test_protocol_is_changed_where_the_request_ends_up(lab):
    lab.start()
    lab.kill(2)

    def script(wire):
        lab[3].service.note(wire.head())
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        while wire.more():
            wire.send(wire.take(len(wire.ahead)))

    lab[3].service.script = script
    with lab.client() as wire:
        wire.send(request(Scope="Site2 | Site3", Connection="upgrade", Upgrade="echo"))
        assert wire.response().status == 101
        wire.send(b"hello")
        assert wire.take(5) == b"hello"
    assert lab[3].runs == 1


def test_idle_connection_that_was_closed_is_no_failure(lab):
    lab.start(count=2)
    lab.warm(1)
    for _ in range(5):
        assert lab.ask("Site1; Site2").body == b"Site1"
        lab[1].service.drop_connections()
        assert lab.ask("Site1; Site2").body == b"Site1"
    assert lab[2].runs == 0


def test_whole_request_takes_too_long(lab):
    lab.start(Site1={"timeouts": {"request": "2s"}})
    hangs = Hangs(lab[2].service)
    answer = lab.ask("Site2; Site3", "POST")
    assert (answer.status, answer.problem) == (504, "request-timeout") and lab[3].runs == 0
    assert answer.json["tried"][0]["site"] == "Site2"
    hangs.wait(hangs.closed)


def test_what_functions_give(lab):
    """`!`, around() and fallback() are `;`; either() is `|`."""
    lab.start()
    wait_until(lambda: lab.order("around(Site2, 1s)")[:2] == ["Site2", "Site1"], "Site1 to be near to Site2")
    lab.kill(2)
    for scope, body in [("!Site1", b"Site3"), ("around(Site2, 1s)", b"Site1"), ("fallback(all())", b"Site1"),
                        ("!(Site1 & Site3); Site3", b"Site3"), ("either(all())", b"Site1")]:
        assert lab.ask(scope).body == body, scope


def test_plan_is_only_shown(lab):
    lab.start()
    answer = lab.ask("Site2; Site3 | Site1", Cheops_Explain="plan")
    assert answer.status == 200 and answer.json["plan"]["op"] == "otherwise" and lab[2].runs == 0
