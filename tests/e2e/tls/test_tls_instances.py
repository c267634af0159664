"""Instances that speak TLS: whom the agent trusts, what it shows, and what it says when that does not work out."""
import hashlib

import pytest

import tls_lab  # noqa: F401
from tls_lab import TlsWire, proxy_lab
from proxy_lab import request, response, wait_until


def behind(service, tls, **others):
    return {"service": {"instances": [service.port], "instances_tls": tls, **others}}


def test_requests_share_connections(start, play, ours, pair):
    service = play(pair)
    agent = start(behind(service, {"ca": str(ours.root)}))
    for _ in range(10):
        assert agent.ask().status == 200
    assert len(service.requests) == 10 and service.accepted == 1
    assert service.requests[0].one(b"X-Forwarded-Proto") == b"http"  # as the client came


def test_the_roots_of_the_system(start, play, ours, pair):
    service = play(pair)
    agent = start(behind(service, {}), env={"SSL_CERT_FILE": str(ours.root), "SSL_CERT_DIR": "/nowhere"})
    assert agent.ask().status == 200


def expect_unreachable(agent, text):
    answer = agent.ask()
    assert answer.status == 503 and answer.problem == "no-instance", answer
    assert text in answer.json["detail"], answer


def test_an_instance_of_another_authority_is_not_trusted(start, play, ours, theirs, pair):
    service = play(pair)
    expect_unreachable(start(behind(service, {"ca": str(theirs.root)})), "is not trusted")
    wait_until(lambda: service.refusals)
    assert service.requests == []


def test_an_instance_has_to_prove_its_name(start, play, ours):
    service = play(ours.issue("web", "DNS:web.example"))
    agent = start(behind(service, {"ca": str(ours.root)}))
    expect_unreachable(agent, "the certificate of web.example is not for `127.0.0.1`")
    agent.config["services"]["service"]["instances_tls"]["name"] = "web.example"
    agent.write()
    assert agent.reload()
    assert agent.ask().status == 200


def test_an_instance_without_tls(start, play, ours):
    service = play(script=lambda wire: (wire.more(), wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    expect_unreachable(start(behind(service, {"ca": str(ours.root)})), "does not speak TLS")


def test_the_agent_shows_a_certificate(start, play, ours, pair):
    service, shown = play(pair, clients=ours), ours.issue("agent")
    agent = start(behind(service, {"ca": str(ours.root), "certificate": shown.certificate, "key": shown.key}))
    assert agent.ask().status == 200
    assert service.peers == [shown.der]


def test_a_certificate_that_is_required_and_not_there(start, play, ours, pair):
    """With TLS 1.3 the instance says so only when the request is on its way."""
    service = play(pair, clients=ours)
    agent = start(behind(service, {"ca": str(ours.root)}))
    answer = agent.ask()
    assert answer.status in (502, 503) and "requires a certificate" in answer.json["detail"], answer
    assert service.requests == []


def test_an_instance_comes_back_with_a_good_certificate(start, play, ours, theirs, pair):
    service = play(theirs.issue("server"))
    agent = start(behind(service, {"ca": str(ours.root)}))
    expect_unreachable(agent, "is not trusted")
    service.pair = pair
    wait_until(lambda: agent.ask().status == 200)


def test_large_bodies_through_tls_on_both_sides(start, play, ours, pair):
    body = bytes(range(256)) * 4096 * 5
    service = play(pair, answer=lambda message: response(body=hashlib.sha256(message.body).hexdigest().encode() + body))
    agent = start(behind(service, {"ca": str(ours.root)}, front_tls={"certificate": pair.certificate, "key": pair.key}))
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(request("PUT", body=body))
        assert wire.response().body == hashlib.sha256(body).hexdigest().encode() + body
        wire.send(request("PUT", chunked=[body[:100], body[100:70000], body]))
        answer = wire.response()
        assert answer.body[:64].decode() == hashlib.sha256(body[:70000] + body).hexdigest()


@pytest.mark.parametrize("clean", [True, False])
def test_an_answer_that_ends_with_the_connection(start, play, ours, pair, clean):
    """Its end has to be said by TLS; a mere close could be anybody's."""
    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 50000)
        if clean:
            wire.sock.unwrap()
        else:
            wire.sock.shutdown(2)

    service = play(pair, script=script)
    agent = start(behind(service, {"ca": str(ours.root)}))
    with agent.client() as wire:
        wire.send(request())
        if clean:
            assert wire.response().body == b"x" * 50000
        else:
            with pytest.raises(proxy_lab.Broken):
                wire.response()


def test_websockets_pass_through_tls(start, play, ours, pair):
    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        wire.send(wire.take(5))

    service = play(pair, script=script)
    agent = start(behind(service, {"ca": str(ours.root)}, front_tls={"certificate": pair.certificate, "key": pair.key}))
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(request(Connection="Upgrade", Upgrade="echo"))
        assert wire.response_head().status == 101
        wire.send(b"hello")
        assert wire.take(5) == b"hello"
