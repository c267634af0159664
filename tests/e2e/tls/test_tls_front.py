"""Fronts that speak TLS: what clients see, who gets in, and that a new certificate needs no restart."""
import hashlib
import shutil
import subprocess

import pytest

import tls_lab  # noqa: F401
from tls_lab import TlsWire, Wire, proxy_lab
from proxy_lab import PATIENCE_S, Broken, request, response, wait_until


def front_of(pair, clients=None):
    made = {"certificate": pair.certificate, "key": pair.key}
    return {**made, "clients": str(clients.root)} if clients else made


@pytest.fixture
def front(start, play, pair):
    """front(**options): an agent whose one front speaks TLS, and the service behind it."""
    def make(clients=None, answer=None, script=None, **others):
        service = play(answer=answer, script=script)
        agent = start({"service": {"instances": [service.port], "front_tls": front_of(pair, clients)}}, **others)
        agent.service = service
        return agent

    return make


def curl(agent, *arguments):
    run = subprocess.run(["curl", "-sS", "-i", "--max-time", str(PATIENCE_S), *map(str, arguments),
                          f"https://localhost:{agent.port()}/"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return run.returncode, run.stdout.decode() + run.stderr.decode()


def test_curl_is_served(front, ours):
    agent = front()
    status, text = curl(agent, "--cacert", ours.root)
    assert status == 0 and text.startswith("HTTP/1.1 200"), text
    asked = agent.service.wait_requests(1)
    assert asked.one(b"X-Forwarded-Proto") == b"https"
    assert asked.one(b"Forwarded") == b"for=127.0.0.1;proto=https"


@pytest.mark.parametrize("version", ["--tlsv1.2", "--tlsv1.3"])
def test_versions(front, ours, version):
    assert curl(front(), "--cacert", ours.root, version, "--tls-max", version[-3:])[0] == 0


def test_old_versions_are_refused(front, ours):
    agent = front()
    status, text = curl(agent, "--cacert", ours.root, "--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")
    assert status != 0, text
    wait_until(lambda: agent.counter("cheops_tls_failures_total") == 1)


def test_a_client_with_another_root_is_not_fooled(front, theirs):
    agent = front()
    assert curl(agent, "--cacert", theirs.root)[0] == 60
    wait_until(lambda: agent.counter("cheops_tls_failures_total") == 1)
    assert agent.service.requests == []


def test_many_requests_on_one_connection(front, ours):
    agent = front()
    with TlsWire.to(agent.port(), ours) as wire:
        for _ in range(50):
            wire.send(request())
            assert wire.response().status == 200
        wire.send(request() * 20)  # at once
        assert [wire.response().status for _ in range(20)] == [200] * 20
    assert agent.counter("cheops_client_connections_total") - agent.counter("cheops_tls_failures_total") >= 1
    assert len(agent.service.requests) == 70 and agent.service.accepted == 1


@pytest.mark.parametrize("text", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\0" * 100, b"\x80\x2e\x01"],
                         ids=["plain HTTP", "no hello", "zeros", "SSLv2"])
def test_what_is_not_tls_is_refused(front, ours, text):
    agent = front()
    with Wire.to(agent.port()) as wire:
        wire.send(text)
        wire.end()
        wire.to_end()
    wait_until(lambda: agent.counter("cheops_tls_failures_total") == 1)
    with TlsWire.to(agent.port(), ours) as wire:  # others are served
        wire.send(request())
        assert wire.response().status == 200


def test_a_handshake_that_never_comes_is_ended(front):
    agent = front(timeouts={"header": "100ms"})
    with Wire.to(agent.port()) as wire:
        assert wire.has_ended()
    assert agent.counter("cheops_tls_failures_total") == 1


# ---- clients with certificates --------------------------------------------------------------------------------------------


def test_only_clients_with_a_certificate(front, ours, theirs):
    agent = front(clients=ours)
    good, bad = ours.issue("client"), theirs.issue("client")
    root = ["--cacert", ours.root]
    assert curl(agent, *root, "--cert", good.certificate, "--key", good.key)[0] == 0
    assert curl(agent, *root)[0] != 0
    assert curl(agent, *root, "--cert", bad.certificate, "--key", bad.key)[0] != 0
    wait_until(lambda: agent.counter("cheops_tls_failures_total") == 2)
    assert len(agent.service.requests) == 1


# ---- bytes and their end --------------------------------------------------------------------------------------------------


def test_large_bodies(front, ours):
    body = bytes(range(256)) * 4096 * 20  # 20 MiB
    agent = front(answer=lambda message: response(body=message.body, X_Digest=hashlib.sha256(message.body).hexdigest()))
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(request("PUT", body=body))  # then reads: one TLS connection is not for two threads
        answer = wire.response()
    assert answer.one(b"X-Digest").decode() == hashlib.sha256(body).hexdigest()
    assert answer.body == body


def test_the_end_of_an_answer_is_proven(front, ours):
    """HTTP/1.0 has no other framing for what has no length: TLS has to say that this was all."""
    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100000)
        wire.end()

    agent = front(script=script)
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        assert wire.response().body == b"x" * 100000


def test_an_answer_that_was_cut_off_does_not_look_complete(front, ours):
    def script(wire):
        wire.request()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        wire.until(b"never")  # the test closes it

    agent = front(script=script)
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        head = wire.response_head()
        assert wire.take(5) == b"hello" and head.status == 200
        agent.service.drop_connections()
        with pytest.raises((Broken, OSError)):
            wire.to_end()
            assert wire.reset, "it ended as if it was complete"
            raise Broken("reset")


# ---- new certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture
def renewable(start, play, ours, tmp_path):
    """An agent whose files are copies, named by paths that begin in the folder of the configuration."""
    (tmp_path / "tls").mkdir()
    service = play()

    def install(pair):
        shutil.copy(pair.certificate, tmp_path / "tls" / "front.pem")
        shutil.copy(pair.key, tmp_path / "tls" / "front.key")

    first = ours.issue("first")
    install(first)
    agent = start({"service": {"instances": [service.port],
                               "front_tls": {"certificate": "tls/front.pem", "key": "tls/front.key"}}})
    agent.install, agent.first = install, first
    return agent


def test_a_reload_brings_a_new_certificate(renewable, ours):
    second = ours.issue("second")
    with TlsWire.to(renewable.port(), ours) as before:
        assert before.der == renewable.first.der
        before.send(request())
        assert before.response().status == 200
        renewable.install(second)
        assert renewable.reload()
        with TlsWire.to(renewable.port(), ours) as after:
            assert after.der == second.der
            after.send(request())
            assert after.response().status == 200
        before.send(request())  # who was connected stays so
        assert before.response().status == 200


def test_a_reload_with_files_that_do_not_fit_is_refused(renewable, ours, tmp_path):
    shutil.copy(ours.issue("other").key, tmp_path / "tls" / "front.key")
    status, text = renewable.api("/cheops/v1/reload", "POST")
    assert status == 422 and "the key does not belong to the certificate" in text, text
    (tmp_path / "tls" / "front.pem").unlink()
    status, text = renewable.api("/cheops/v1/reload", "POST")
    assert status == 422 and "tls/front.pem" in text, text
    with TlsWire.to(renewable.port(), ours) as wire:
        assert wire.der == renewable.first.der


def test_a_front_changes_to_tls_and_back(start, play, ours, pair):
    service = play()
    agent = start({"service": [service.port]})
    with agent.client() as plain:
        plain.send(request())
        assert plain.response().status == 200
        agent.config["services"]["service"]["front_tls"] = front_of(pair)
        agent.write()
        assert agent.reload()
        plain.send(request())  # goes on as it began
        assert plain.response().status == 200
    with TlsWire.to(agent.port(), ours) as wire:
        wire.send(request())
        assert wire.response().status == 200
    del agent.config["services"]["service"]["front_tls"]
    agent.write()
    assert agent.reload()
    assert agent.ask().status == 200


def test_a_key_that_everybody_can_read_is_refused(cheops, tmp_path, pair):
    key = tmp_path / "front.key"
    shutil.copy(pair.key, key)
    key.chmod(0o644)
    config = tmp_path / "agent.yaml"
    config.write_text("site: Site1\napi: 127.0.0.1:8079\nservices:\n  compute:\n    front: 127.0.0.1:8081\n"
                      f"    instances: 127.0.0.1:9081\n    front_tls: {{certificate: {pair.certificate}, key: front.key}}\n")
    result = cheops("agent", "--check", "-c", str(config))
    assert result.status == 1 and "everybody may read" in result.err and "agent.yaml:7:" in result.err, result
    key.chmod(0o640)
    assert cheops("agent", "--check", "-c", str(config)).status == 0


def test_stop_while_handshakes_are_under_way(front):
    agent = front()
    with Wire.to(agent.port()), Wire.to(agent.port()):
        wait_until(lambda: agent.counter("cheops_client_connections_total") >= 2)
        agent.signal(15)
        assert agent.wait_exit() == 0


