"""cheops site join: against a server that holds a real identity and answers what a test wants."""
import base64
import stat
import subprocess

import pytest

from fake_agent import FakeAgent, problem, tls_of, token
from ports import free_port

RECORDS = [b"first record", b"x" * 900, b"\x00\xff"]


@pytest.fixture
def authority(cheops, place):
    made = place("Site1")
    assert cheops("site", "init", "-c", made.config).status == 0
    made.root = (made.state / "root.crt").read_text()
    return made


def openssl(*arguments, **options):
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60, **options).stdout


def sign(authority, folder, request_base64, name=None, days=1):
    """What the authority does: a certificate for the key of the request. `name`: a wrong one."""
    request = folder / "request.der"
    request.write_bytes(base64.b64decode(request_base64))
    extensions = folder / "extensions"
    extensions.write_text("keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
                          f"subjectAltName=URI:cheops://site/{name or 'Site2'}\n")
    return openssl("x509", "-req", "-inform", "DER", "-in", request, "-CA", authority.state / "root.crt", "-CAkey",
                   authority.state / "root.key", "-set_serial", "7", "-days", str(days), "-extfile", extensions).decode()


def joined(authority, folder, **changes):
    def answer(asked):
        made = {"certificate": sign(authority, folder, asked["request"]), "roots": authority.root, "sites": 3,
                "records": [base64.b64encode(record).decode() for record in RECORDS]}
        made.update({name: change(asked) if callable(change) else change for name, change in changes.items()})
        return 200, made
    return answer


def test_join(cheops, place, authority, tmp_path):
    here = place("Site2")
    with FakeAgent(joined(authority, tmp_path), tls=tls_of(authority.state)) as agent:
        given = token(authority.root, agent.port)
        result = cheops("site", "join", given, "-c", here.config)
    assert result.status == 0 and result.err == "", result
    assert "`Site2` has joined; it is one of 3 sites.\n" in result.out and f"No agent runs at {here.api} yet" in result.out
    method, target, asked = agent.requests[0]
    assert (method, target, asked["token"], asked["name"]) == ("POST", "/cheops/v1/join", given, "Site2")
    assert {name.name: stat.S_IMODE(name.stat().st_mode) for name in here.state.iterdir()} == {
        "site.key": 0o600, "site.crt": 0o644, "roots.pem": 0o644, "born": 0o644, "records.join": 0o644}
    assert (here.state / "records.join").read_bytes() == b"".join(
        len(record).to_bytes(2, "big") + record for record in RECORDS)
    assert (here.state / "roots.pem").read_text() == authority.root
    public = openssl("x509", "-in", here.state / "site.crt", "-noout", "-pubkey")
    assert public == openssl("pkey", "-in", here.state / "site.key", "-pubout")
    again = cheops("site", "join", given, "-c", here.config)
    assert again.status == 1 and "has the identity of a site already, and a site joins once" in again.err
    assert len(agent.requests) == 1


def test_join_tells_a_running_agent(cheops, place, authority, tmp_path):
    here = place("Site2")
    with FakeAgent(joined(authority, tmp_path), tls=tls_of(authority.state)) as agent, \
            FakeAgent((200, {"reloaded": True})) as ours:
        here.write(ours.address)
        result = cheops("site", "join", token(authority.root, agent.port, "Site2"), "-c", here.config)
    assert result.status == 0 and f"The agent at {ours.address} has been told" in result.out
    assert ours.requests == [("POST", "/cheops/v1/reload", None)]


def nothing_left(here):
    return not here.state.exists() or not list(here.state.iterdir())


def test_tokens_that_are_not_good_are_told_before_anything_is_done(cheops, place, authority):
    here = place("Site2")
    port = free_port()
    good = token(authority.root, port)
    for given, said in [(good[:-3], "cut or mistyped"), (good[:20] + "x" + good[21:], "cut or mistyped"), ("hello", "token"),
                        (token(authority.root, port, ends_in_s=-300), "the token ended 5m ago, by the clock of this machine"),
                        (token(authority.root, port, name="Site3"),
                         "the token is for a site named `Site3`, and this one is `Site2`")]:
        result = cheops("site", "join", given, "-c", here.config)
        assert result.status == 1 and result.out == "" and said in result.err, result
        assert result.err.count("\n") == 1
    assert nothing_left(here)


def test_a_folder_that_cannot_be_written_is_found_before_the_token_is_used(cheops, place, authority, tmp_path):
    here = place("Site2")
    here.state.write_text("a file in its place")
    with FakeAgent(joined(authority, tmp_path), tls=tls_of(authority.state)) as agent:
        result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
    assert result.status == 1 and str(here.state)[-40:] in result.err
    assert agent.requests == []


def test_nobody_is_there(cheops, place, authority):
    here = place("Site2")
    port = free_port()
    result = cheops("site", "join", token(authority.root, port), "-c", here.config)
    assert result.status == 1
    assert f"cannot connect to 127.0.0.1:{port}: Connection refused; that is where the token says to join" in result.err
    assert nothing_left(here)


def test_somebody_else_never_sees_the_token(cheops, place, authority, tmp_path):
    """Another mesh answers at that address; then one that speaks no TLS."""
    here, other = place("Site2"), place("Other")
    assert cheops("site", "init", "-c", other.config).status == 0
    with FakeAgent(joined(authority, tmp_path), tls=tls_of(other.state)) as agent:
        result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
        assert result.status == 1 and "cannot connect to" in result.err, result
        assert agent.requests == []
    with FakeAgent((200, {})) as agent:
        result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
        assert result.status == 1 and "cannot connect to" in result.err, result
    assert nothing_left(here)


@pytest.mark.parametrize("status, kind, title, detail", [
    (409, "name-taken", "The name is taken", "there is a site `Site2` already, and names are unique"),
    (403, "token-used", "The token is not good", "the token was used already"),
    (503, "no-authority", "The authority is at another site", "ask at Site1"),
])
def test_refusals_are_one_message(cheops, place, authority, status, kind, title, detail):
    here = place("Site2")
    with FakeAgent(problem(status, kind, title, detail), tls=tls_of(authority.state)) as agent:
        result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
    assert result.status == 1 and result.out == "" and result.err == f"cheops: {title}: {detail}\n"
    assert nothing_left(here)


def test_what_comes_back_has_to_be_ours(cheops, place, authority, tmp_path):
    here, other = place("Site2"), place("Other")
    assert cheops("site", "init", "-c", other.config).status == 0
    other_root = (other.state / "root.crt").read_text()
    for changes, said in [
            ({"certificate": "hello"}, "the certificate in the answer: there is no certificate"),
            ({"certificate": None}, "the certificate in the answer"),
            ({"certificate": (authority.state / "site.crt").read_text()}, "it is for another key"),
            ({"certificate": lambda asked: sign(authority, tmp_path, asked["request"], "Site9")}, "it is for the name `Site9`"),
            ({"certificate": lambda asked: sign(other, tmp_path, asked["request"])}, "signed by no root that is trusted"),
            ({"roots": ""}, "the roots in the answer"),
            ({"roots": other_root}, "the root that the token names is not among them"),
            ({"records": ["no base64!"]}, "a record in the answer is not base64"),
            ({"records": [7]}, "a record in the answer is not base64"),
            ({"records": ["A" * 400000]}, "a record in the answer is not base64")]:
        with FakeAgent(joined(authority, tmp_path, **changes), tls=tls_of(authority.state)) as agent:
            result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
        assert result.status == 1 and said in result.err and "nothing was kept" in result.err, (changes, result)
        assert nothing_left(here)


def test_two_roots_while_one_replaces_the_other(cheops, place, authority, tmp_path):
    here, other = place("Site2"), place("Other")
    assert cheops("site", "init", "-c", other.config).status == 0
    both = (other.state / "root.crt").read_text() + authority.root
    with FakeAgent(joined(authority, tmp_path, roots=both), tls=tls_of(authority.state)) as agent:
        result = cheops("site", "join", token(authority.root, agent.port), "-c", here.config)
    assert result.status == 0 and (here.state / "roots.pem").read_text() == both
