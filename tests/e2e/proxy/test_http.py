"""HTTP as it should be: what a client and a service may rely on with an agent between them."""
import contextlib
import http.client
import signal
import socket
import subprocess
import threading
import time

import pytest

import proxy_lab
from proxy_lab import PATIENCE_S, Wire, acquaint, request, response

SIZES = [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20]


def pattern(size):
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def chunks_of(body, size):
    return b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + size]), body[at:at + size]) for at in range(0, len(body), size)) \
        + b"0\r\n\r\n"


# ---- connections --------------------------------------------------------------------------------------------------------


def test_connections_live_on_both_sides(agent, service):
    with agent.client() as wire:
        for n in range(50):
            wire.send(request(target=f"/{n}"))
            assert wire.response().status == 200
    with agent.client() as wire:
        wire.send(request(target="/another-client"))
        assert wire.response().status == 200
    assert service.accepted == 1 and len(service.requests) == 51


def test_pool_grows_with_what_is_under_way_and_is_used_again(agent, service):
    together = threading.Barrier(8)
    service.answer = lambda message: (together.wait(PATIENCE_S), response())[1]
    for _ in range(3):
        wires = [agent.client() for _ in range(8)]
        for wire in wires:
            wire.send(request())
        for wire in wires:
            assert wire.response().status == 200
            wire.close()
    assert service.accepted == 8


def test_service_that_closes_each_time(agent, service):
    service.answer = lambda message: response(Connection="close")
    with agent.client() as wire:
        for _ in range(5):
            wire.send(request())
            answer = wire.response()
            assert answer.status == 200 and not answer.closes
    assert service.accepted == 5


def test_client_that_asks_to_close(agent, service):
    with agent.client() as wire:
        wire.send(request(Connection="close"))
        assert wire.response().closes
        assert wire.has_ended()
    assert agent.ask().status == 200
    assert service.accepted == 1


def test_pipelined_requests_are_answered_in_order_one_at_a_time(agent, service):
    under_way, most = [], []

    def answer(message):
        under_way.append(message)
        most.append(len(under_way))
        under_way.pop()
        return response(body=message.target + message.body)

    service.answer = answer
    with agent.client() as wire:
        acquaint(wire)
        text = b"".join(request("POST", f"/{n}", body=b"b" * n) if n % 2 else request(target=f"/{n}") for n in range(200))
        wire.send(text)
        for n in range(200):
            assert wire.response().body == b"/%d" % n + b"b" * (n if n % 2 else 0)
    assert max(most) == 1 and service.accepted == 1


def test_pipelined_requests_behind_a_body_that_fills_the_buffer(agent, service):
    service.answer = lambda message: response(body=b"%d" % len(message.body))
    with agent.client() as wire:
        for size in (4000, 4096, 65536, 200000):
            wire.send(request("PUT", body=pattern(size)) + request(target="/after"))
            assert wire.response().body == b"%d" % size
            assert wire.response().body == b"0"


def test_http_1_0_client(agent, service):
    with agent.client() as wire:
        wire.send(b"GET /a HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
        answer = wire.response()
        assert answer.tokens(b"Connection") == [b"keep-alive"] and answer.body == b"ok"
        wire.send(b"GET /b HTTP/1.0\r\nHost: x\r\n\r\n")
        answer = wire.response()
        assert answer.closes and answer.body == b"ok"
        assert wire.has_ended()
    assert service.accepted == 1


# ---- bodies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", ["length", "chunked", "close"])
@pytest.mark.parametrize("there", ["length", "chunked"])
def test_bodies_of_any_size(agent, service, there, back):
    def script(wire):
        while (message := wire.request()) is not None:
            body = message.body
            if back == "length":
                wire.send(response(body=body))
            elif back == "chunked":
                wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks_of(body, 1000))
            else:
                wire.send(b"HTTP/1.1 200 OK\r\n\r\n", body)
                return

    service.script = script
    with agent.client() as wire:
        for size in SIZES:
            body = pattern(size)
            if there == "length":
                wire.send(request("POST", body=body))
            else:
                wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", chunks_of(body, 777))
            assert wire.response().body == body


def test_trailers_pass_both_ways(agent, service):
    def script(wire):
        while (message := wire.request()) is not None:
            service.note(message)
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n"
                      b"0\r\nX-Sum: back\r\nX-Two: 2\r\n\r\n")

    service.script = script
    with agent.client() as wire:
        for _ in range(2):
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: there\r\n\r\n")
            assert wire.response().trailers == [(b"X-Sum", b"back"), (b"X-Two", b"2")]
    assert [message.trailers for message in service.requests] == [[(b"X-Sum", b"there")]] * 2


def test_head(agent, service):
    service.answer = lambda message: b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with agent.client() as wire:
        wire.send(request("HEAD") + request("HEAD"))
        for _ in range(2):
            assert wire.response(b"HEAD").one(b"Content-Length") == b"1000"
        service.answer = lambda message: response()
        wire.send(request())
        assert wire.response().body == b"ok"
    assert service.accepted == 1


def test_a_large_head_passes(agent, service):
    big = "v" * 30000
    service.answer = lambda message: response(X_Big=big)
    with agent.client() as wire:
        wire.send(request(X_Big=big))
        answer = wire.response()
        assert answer.one(b"X-Big") == big.encode() and answer.body == b"ok"
    assert service.requests[0].one(b"X-Big") == big.encode()


def test_an_endless_response_passes_byte_by_byte(agent, service):
    """Each byte has to arrive before the next one is sent: nothing may be held back."""
    def script(wire):
        assert wire.request()
        mine = arrived  # the next one may begin while this one has yet to hear of its last byte
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + b"\r\n")
        for _ in range(100):
            wire.send(piece)
            assert mine.acquire(timeout=PATIENCE_S)

    service.script = script
    for framing, piece in ((b"", b"x"), (b"Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n"), (b"Content-Length: 100\r\n", b"x")):
        arrived = threading.Semaphore(0)
        with agent.client() as wire:
            wire.send(request())
            head = wire.response_head()
            for _ in range(100):
                if head.all(b"Transfer-Encoding"):
                    assert wire.until(b"\r\n") == b"1\r\n" and wire.take(3) == b"x\r\n"
                else:
                    assert wire.take(1) == b"x"
                arrived.release()


def test_an_endless_request_passes_byte_by_byte(agent, service):
    arrived = threading.Semaphore(0)

    def script(wire):
        while wire.ahead or wire.more():  # who closes after the first could do so while the second is being sent
            head = wire.head()
            for _ in range(100):
                if head.all(b"Transfer-Encoding"):
                    assert wire.until(b"\r\n") == b"1\r\n" and wire.take(3) == b"x\r\n"
                else:
                    assert wire.take(1) == b"x"
                arrived.release()
            if head.all(b"Transfer-Encoding"):
                assert wire.take(5) == b"0\r\n\r\n"
            wire.send(response())

    service.script = script
    for framing, piece, last in ((b"Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n", b"0\r\n\r\n"),
                                 (b"Content-Length: 100\r\n", b"x", b"")):
        with agent.client() as wire:
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n")
            for _ in range(100):
                wire.send(piece)
                assert arrived.acquire(timeout=PATIENCE_S)
            wire.send(last)
            assert wire.response().status == 200


# ---- interim responses --------------------------------------------------------------------------------------------------


def test_the_client_waits_for_100_and_gets_it_from_the_service(agent, service):
    def script(wire):
        while wire.ahead or wire.more():
            head = wire.head()
            if head.method == b"GET":
                wire.send(response())
                continue
            assert head.one(b"Expect") == b"100-continue"
            assert wire.ahead == b""
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            wire.body(head)
            service.note(head)
            wire.send(response(body=head.body))

    service.script = script
    with agent.client() as wire:
        acquaint(wire)
        for _ in range(2):
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            assert wire.response_head().status == 100
            wire.send(b"hello")
            assert wire.response().body == b"hello"
    assert service.accepted == 1


@pytest.mark.parametrize("status", [417, 413, 401])
def test_the_service_refuses_before_the_body_is_sent(agent, service, status):
    def script(wire):
        service.note(wire.head())
        wire.send(response(status))

    service.script = script
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        answer = wire.response()
        assert answer.status == status and answer.closes, answer
        assert wire.has_ended()


def test_interim_responses_pass_and_http_1_0_gets_none(agent, service):
    service.answer = lambda message: (b"HTTP/1.1 102 Processing\r\n\r\n"
                                      b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\nConnection: x-y\r\nX-Y: 1\r\n\r\n"
                                      + response())
    with agent.client() as wire:
        interim = []
        wire.send(request())
        assert wire.response(interim=interim).body == b"ok"
        assert [message.status for message in interim] == [102, 103]
        assert interim[1].fields == [(b"Link", b"</a>"), (b"Link", b"</b>")]
        wire.send(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        assert wire.response().body == b"ok"
    assert service.accepted == 1


def test_an_interim_response_does_not_wait_for_the_final_one(agent, service):
    seen = threading.Event()

    def script(wire):
        assert wire.request()
        wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        assert seen.wait(PATIENCE_S)
        wire.send(response())

    service.script = script
    with agent.client() as wire:
        wire.send(request())
        assert wire.response_head().status == 103
        seen.set()
        assert wire.response().body == b"ok"


# ---- other protocols ----------------------------------------------------------------------------------------------------

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n"


def upgrade(wire, more=b""):
    wire.send(request(Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Key="x") + more)
    answer = wire.response()
    assert answer.status == 101 and answer.one(b"Upgrade") == b"websocket" and answer.one(b"Sec-WebSocket-Accept") == b"y"
    assert answer.tokens(b"Connection") == [b"upgrade"], answer


def test_a_tunnel_carries_anything_both_ways(agent, service):
    def script(wire):
        head = wire.head()
        assert head.one(b"Upgrade") == b"websocket" and head.tokens(b"Connection") == [b"upgrade"]
        wire.send(SWITCH + b"\0first")
        while wire.ahead or wire.more():
            data, wire.ahead = wire.ahead, b""
            wire.send(data)

    service.script = script
    with agent.client() as wire:
        upgrade(wire, b"early\r\n\r\n")  # sent before the answer, as an optimist does
        assert wire.take(6) == b"\0first"
        assert wire.take(9) == b"early\r\n\r\n"
        for size in (1, 10, 5000, 100000):
            wire.send(pattern(size))
            assert wire.take(size) == pattern(size)
        wire.end()
        assert wire.has_ended() and not wire.reset
    service.wait(lambda: service.ended == 1)


def test_a_tunnel_half_closed_by_the_client(agent, service):
    """The end passes on in one direction while the other goes on; and nothing of it is lost, however slowly it is read."""
    size = 8 << 20

    def script(wire):
        wire.head()
        wire.send(SWITCH)
        said = wire.to_end()
        wire.send(b"%d " % len(said), pattern(size))

    service.script = script
    with agent.client(receive_buffer=4096) as wire:
        upgrade(wire)
        wire.send(pattern(100000))
        wire.end()
        got = wire.to_end()
        assert not wire.reset and got == b"100000 " + pattern(size)


def test_a_tunnel_half_closed_by_the_service(agent, service):
    result = []

    def script(wire):
        wire.head()
        wire.send(SWITCH, b"bye")
        wire.end()
        result.append(len(wire.to_end()))
        service.note(None)

    service.script = script
    with agent.client() as wire:
        upgrade(wire)
        assert wire.to_end() == b"bye"
        wire.send(pattern(1 << 20))
        wire.end()
        service.wait_requests(1)
    assert result == [1 << 20]


@pytest.mark.parametrize("who", ["client", "service"])
def test_a_tunnel_that_is_broken_off_is_broken_off_on_the_other_side(agent, service, who):
    ended = threading.Event()

    def script(wire):
        wire.head()
        wire.send(SWITCH)
        if who == "service":
            wire.abort()
            return
        wire.to_end()
        ended.set()

    service.script = script
    with agent.client() as wire:
        upgrade(wire)
        if who == "client":
            wire.abort()
            assert ended.wait(PATIENCE_S)
        else:
            wire.to_end()


def test_an_upgrade_that_the_service_does_not_want(agent, service):
    with agent.client() as wire:
        for _ in range(2):
            wire.send(request(Connection="Upgrade", Upgrade="websocket"))
            assert wire.response().status == 200
    assert service.accepted == 1


# ---- ends of connections ------------------------------------------------------------------------------------------------


def test_a_half_closed_client_gets_its_answer_and_the_end(agent, service):
    asked, go = threading.Event(), threading.Event()
    service.answer = lambda message: (asked.set(), go.wait(PATIENCE_S), response())[2]
    with agent.client() as wire:
        wire.send(request())
        wire.end()
        assert asked.wait(PATIENCE_S)
        go.set()
        assert wire.response().body == b"ok"
        assert wire.has_ended() and not wire.reset


def test_a_half_closed_client_with_pipelined_requests_gets_all_answers(agent, service):
    with agent.client() as wire:
        wire.send(request() * 20)
        wire.end()
        for _ in range(20):
            assert wire.response().body == b"ok"
        assert wire.has_ended() and not wire.reset


def test_a_client_that_ends_before_it_is_accepted(start, service):
    """All that it sends, and its end, come with one event."""
    agent = start(proxy_lab.describe(services={"service": [service.port]}))
    agent.signal(signal.SIGSTOP)
    with agent.client() as wire:
        wire.send(request("POST", body=b"hello"))
        wire.end()
        agent.signal(signal.SIGCONT)
        assert wire.response().body == b"ok"
        assert wire.has_ended() and not wire.reset


def test_a_service_that_answers_and_ends_at_once(agent, service):
    """Answer and end come with one event, whatever the framing."""
    for text in (b"HTTP/1.1 200 OK\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                 b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
        def script(wire, text=text):
            assert wire.request()
            wire.send(text)

        service.script = script
        for _ in range(20):
            with agent.client() as wire:
                wire.send(request())
                assert wire.response().body == b"hello"


def test_a_client_that_goes_away_is_noticed_by_the_service(agent, service):
    ended = threading.Event()

    def script(wire):
        assert wire.request()
        service.note(None)
        wire.to_end()
        ended.set()

    service.script = script
    wire = agent.client()
    wire.send(request())
    service.wait_requests(1)
    wire.abort()
    assert ended.wait(PATIENCE_S)


# ---- early answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stays", "closes", "resets"])
def test_an_answer_that_comes_before_the_body_is_sent(agent, service, how):
    """413 while 50 MB are on their way: the client is told, and its connection ends after that."""
    go_on = threading.Event()

    def script(wire):
        service.note(wire.head())
        wire.send(response(413, b"too much", Connection="close"))
        if how == "stays":
            go_on.wait(PATIENCE_S)
        elif how == "resets":  # by closing with bytes unread
            wire.more(1)

    service.script = script
    answers = []
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n")
        reader = threading.Thread(target=lambda: answers.append(wire.response()))
        reader.start()
        try:
            for _ in range(500):
                wire.send(b"x" * 100000)
        except OSError:
            pass  # as it should be
        reader.join(PATIENCE_S)
        go_on.set()
    assert answers and answers[0].status == 413 and answers[0].body == b"too much" and answers[0].closes


def test_a_client_that_reads_only_after_it_has_sent_everything_gets_the_early_answer(agent, service):
    def script(wire):
        service.note(wire.head())
        wire.send(response(413, b"too much", Connection="close"))

    service.script = script
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n")
        try:
            for _ in range(4):
                wire.send(b"x" * 100000)
        except OSError:
            pass
        assert wire.response().status == 413


def test_the_service_answers_while_it_reads(agent, service):
    """A service may stream both ways at once."""
    def script(wire):
        head = wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(100):
            assert wire.until(b"\r\n") == b"1\r\n"
            piece = wire.take(3)
            wire.send(b"1\r\n" + piece)
        assert wire.take(5) == b"0\r\n\r\n"
        service.note(head)
        wire.send(b"0\r\n\r\n")

    service.script = script
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.send(b"1\r\nx\r\n")
        wire.response_head()
        for n in range(100):
            assert wire.until(b"\r\n") == b"1\r\n" and wire.take(3) == b"x\r\n"
            wire.send(b"1\r\nx\r\n" if n < 99 else b"0\r\n\r\n")
        assert wire.take(5) == b"0\r\n\r\n"


# ---- back-pressure and fairness -----------------------------------------------------------------------------------------


def fill(sock, most):
    """Sends until nothing more is taken for a second, or `most` bytes; how many."""
    sent = 0
    sock.settimeout(1)
    try:
        while sent < most:
            sent += sock.send(b"x" * 65536)
    except (TimeoutError, BlockingIOError):
        pass
    sock.settimeout(PATIENCE_S)
    return sent


def test_a_client_that_does_not_read_stops_the_service(agent, service, sanitized):
    sent = []

    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        sent.append(fill(wire.sock, 200 << 20))
        service.note(None)

    before = agent.memory_kb()
    service.script = script
    with agent.client(receive_buffer=4096) as wire:
        wire.send(request())
        service.wait_requests(1)
        assert sent[0] < 32 << 20, "the service was not stopped"
        if not sanitized:
            assert agent.memory_kb() - before < 1024
        assert agent.api("/cheops/v1/health")[0] == 200


def test_a_service_that_does_not_read_stops_the_client(agent, service, sanitized):
    done = threading.Event()

    def script(wire):
        wire.head()
        done.wait(PATIENCE_S)

    service.script = script
    before = agent.memory_kb()
    with agent.client() as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        assert fill(wire.sock, 200 << 20) < 32 << 20, "the client was not stopped"
        if not sanitized:
            assert agent.memory_kb() - before < 1024
    done.set()


def test_a_large_transfer_leaves_room_for_others(agent, service):
    """One connection is fed and emptied as fast as can be, all the time; small requests are answered meanwhile."""
    stop = threading.Event()
    block = b"x" * (1 << 20)

    def script(wire):
        while (message := wire.request()) is not None:
            if message.target != b"/endless":
                wire.send(response())
                continue
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            while not stop.is_set():
                wire.send(block)
            return

    service.script = script
    with agent.client() as wire:
        wire.send(request(target="/endless"))
        wire.response_head()

        def drain():
            into = bytearray(1 << 20)
            with contextlib.suppress(OSError):
                while wire.sock.recv_into(into):
                    pass

        threading.Thread(target=drain, daemon=True).start()
        slowest = 0
        for _ in range(50):
            began = time.monotonic()
            assert agent.ask().status == 200
            slowest = max(slowest, time.monotonic() - began)
        stop.set()
        wire.sock.shutdown(socket.SHUT_RDWR)
    assert slowest < PATIENCE_S / 5, f"a small request took {slowest} s"


def test_a_client_that_never_stops_sending_after_its_answer_does_not_keep_the_agent(agent, service):
    """The agent throws away what it still sends, but not for ever, and not at the others' expense."""
    block = b"x" * (1 << 20)
    with agent.client() as wire:
        wire.send(request("POST", body=b"").replace(b"Content-Length: 0", b"Content-Length: x"))

        def flood():
            try:
                while True:
                    wire.sock.sendall(block)
            except OSError:
                pass

        flooder = threading.Thread(target=flood, daemon=True)
        flooder.start()
        for _ in range(20):
            assert agent.ask().status == 200
        flooder.join(PATIENCE_S)
        assert not flooder.is_alive(), "it is still being listened to"


# ---- what is said about the way -----------------------------------------------------------------------------------------


def test_who_was_here(agent, service):
    answer = agent.ask(host="first.example")
    asked = service.requests[0]
    assert asked.one(b"Via") == b"1.1 Site1" and answer.one(b"Via") == b"1.1 Site1"
    assert asked.one(b"Forwarded") == b"for=127.0.0.1;proto=http"
    assert asked.one(b"X-Forwarded-For") == b"127.0.0.1"
    assert asked.one(b"X-Forwarded-Host") == b"first.example" and asked.one(b"Host") == b"first.example"
    assert asked.one(b"X-Forwarded-Proto") == b"http"


def test_ipv6_client(start, service):
    if not socket.has_ipv6:
        pytest.fail("no IPv6 here")
    config = proxy_lab.describe(services={"service": [service.port]})
    port = proxy_lab.free_port()
    config["services"]["service"]["front"] = f"[::1]:{port}"
    start(config)
    with socket.create_connection(("::1", port), PATIENCE_S) as sock:
        wire = Wire(sock)
        wire.send(request())
        assert wire.response().status == 200
    assert service.requests[0].one(b"Forwarded") == b'for="[::1]";proto=http'
    assert service.requests[0].one(b"X-Forwarded-For") == b"::1"


def test_a_scoped_request_says_where_it_ran(two_sites):
    stage = two_sites()
    answer = stage.here.ask(Scope="Site2")
    assert answer.all(b"Proxy-Status") == [b'"Site2"; next-hop="Site2"; received-status=200',
                                           b'"Site1"; next-hop="Site2"; received-status=200'], answer
    assert [value.split(b";")[0] for value in answer.all(b"Server-Timing")] == [b"Site2", b"Site1"]
    assert answer.all(b"Via") == [b"1.1 Site2", b"1.1 Site1"]
    assert stage.near.requests == []
    asked = stage.far.requests[0]
    assert asked.all(b"Via") == [b"1.1 Site1", b"1.1 Site2"]
    assert asked.one(b"X-Forwarded-For") == b"127.0.0.1, 127.0.0.1"
    assert asked.all(b"Cheops-Hop") == []


@pytest.mark.parametrize("there", ["length", "chunked"])
def test_bodies_pass_two_agents(two_sites, there):
    stage = two_sites()
    stage.far.answer = lambda message: response(body=message.body)
    with stage.here.client() as wire:
        acquaint(wire, Scope="Site2")
        for size in SIZES:
            if there == "length":
                wire.send(request("POST", body=pattern(size), Scope="Site2"))
            else:
                wire.send(request("POST", chunked=[pattern(size)] if size else [], Scope="Site2"))
            assert wire.response().body == pattern(size)
    assert stage.far.accepted == 1


def test_a_tunnel_through_two_agents(two_sites):
    stage = two_sites()

    def script(wire):
        wire.head()
        wire.send(SWITCH)
        said = wire.to_end()
        wire.send(said[::-1])

    stage.far.script = script
    with stage.here.client() as wire:
        wire.send(request(Connection="Upgrade", Upgrade="websocket", Scope="Site2"))
        assert wire.response().status == 101
        wire.send(pattern(1 << 20))
        wire.end()
        assert wire.to_end() == pattern(1 << 20)[::-1] and not wire.reset


# ---- real clients -------------------------------------------------------------------------------------------------------

NODE = """
const http = require('http');
const agent = new http.Agent({keepAlive: true, maxSockets: 4});
const body = Buffer.alloc(300000, 'n');
let left = 40;
function one(n) {
  const call = http.request({port: process.argv[1], path: '/' + n, method: n % 2 ? 'POST' : 'GET', agent}, answer => {
    let got = 0;
    answer.on('data', piece => got += piece.length);
    answer.on('end', () => {
      if (answer.statusCode !== 200 || got !== (n % 2 ? body.length : 0) || !answer.complete) process.exit(3);
      if (--left === 0) { agent.destroy(); console.log('fine'); }
    });
  });
  call.on('error', error => { console.error(error); process.exit(4); });
  if (n % 2) for (let at = 0; at < body.length; at += 50000) call.write(body.subarray(at, at + 50000));
  call.end();
}
for (let n = 0; n < 40; n++) one(n);
"""


def test_node(agent, service):
    service.answer = lambda message: response(body=message.body)
    run = subprocess.run(["node", "-e", NODE, str(agent.port())], capture_output=True, timeout=PATIENCE_S + 30, check=False)
    assert (run.returncode, run.stdout) == (0, b"fine\n"), run
    assert len(service.requests) == 40


def test_curl(agent, service, tmp_path):
    service.answer = lambda message: response(body=message.body)
    upload = tmp_path / "upload"
    upload.write_bytes(pattern(3 << 20))
    url = f"http://127.0.0.1:{agent.port()}/"
    base = ["curl", "-sS", "--fail", "--max-time", str(int(PATIENCE_S + 10)), "-o", tmp_path / "got"]
    for arguments in (["--data-binary", f"@{upload}"], ["-T", upload], ["-T", upload, "-H", "Transfer-Encoding: chunked"],
                      ["-T", upload, "-H", "Expect: 100-continue"], ["-0", "--data-binary", f"@{upload}"]):
        run = subprocess.run([*base, *arguments, url], capture_output=True, timeout=PATIENCE_S + 20, check=False)
        assert run.returncode == 0, run
        assert (tmp_path / "got").read_bytes() == pattern(3 << 20)
    run = subprocess.run(["curl", "-sS", "-w", "%{http_code} %{num_connects}\n", url, url, url], capture_output=True,
                         timeout=PATIENCE_S + 20, check=False)
    assert run.stdout.split() == [b"200", b"1", b"200", b"0", b"200", b"0"], run


def test_python(agent, service):
    service.answer = lambda message: response(body=message.body)
    connection = http.client.HTTPConnection("127.0.0.1", agent.port(), timeout=PATIENCE_S)
    for n in range(20):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b""
        connection.request("PUT", "/", body=pattern(n * 5000), headers={"Expect": "100-continue"} if n % 2 else {})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, pattern(n * 5000))
        connection.request("POST", "/", body=iter([b"a", b"b" * 10000]), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"})
        assert connection.getresponse().read() == b"a" + b"b" * 10000
    connection.close()
    assert service.accepted <= 3    # before it is known that the service keeps connections, what must not run twice gets new ones
