"""cheops site: usage, init, token, remove, revoke, root. Join has a file of its own."""
import os
import re
import stat
import subprocess

import pytest

from fake_agent import FakeAgent, http, problem
from ports import free_port

ACTIONS = ["init", "token", "join", "remove", "revoke", "root"]

# ---- Usage --------------------------------------------------------------------------------------------------------------


def test_help_of_the_program_lists_both(cheops):
    out = cheops("--help").out
    assert "\n  site " in out and "\n  sites " in out


@pytest.mark.parametrize("arguments", [["site", "--help"], ["site", "-h"], ["help", "site"]])
def test_help_lists_the_actions(cheops, arguments):
    result = cheops(*arguments)
    assert result.status == 0 and result.err == ""
    for action in ACTIONS:
        assert f"\n  {action} " in result.out
    assert "Exit status: 0 fine, 1 refused" in result.out


@pytest.mark.parametrize("arguments", [*(["site", action] for action in ACTIONS), ["sites"]])
def test_help_of_each(cheops, arguments):
    result = cheops(*arguments, "--help")
    assert result.status == 0 and result.err == ""
    assert f"usage: cheops {' '.join(arguments)}" in result.out and "Examples:\n  cheops" in result.out
    assert max(map(len, result.out.splitlines())) <= 100
    assert cheops("help", *arguments).out == result.out == cheops(*arguments, "-h").out


def test_help_fits_a_page(cheops):
    assert max(map(len, cheops("site", "--help").out.splitlines())) <= 100


@pytest.mark.parametrize("arguments, said", [
    (["site"], "One of init, token, join, remove, revoke and root is missing"),
    (["site", "jion"], "no action `jion`; did you mean `join`?"),
    (["site", "frobnicate"], "no action `frobnicate`; first comes one of init, token"),
    (["site", "join"], "TOKEN is missing"),
    (["site", "remove"], "NAME is missing"),
    (["site", "root"], "list|rotate|retire is missing"),
    (["site", "root", "turn"], "`turn` is none of `list`, `rotate` and `retire`"),
    (["site", "init", "Site1"], "what is `Site1`? The site's name comes from the configuration"),
    (["site", "remove", "Site1", "Site2"], "more than one NAME: `Site1` and `Site2`"),
    (["site", "remove", ""], "NAME `` is empty"),
    (["site", "remove", "\033[2J"], "not printable"),
    (["site", "init", "--lifetime", "soon"], "--lifetime `soon` is no duration; write 45s, 30m, 12h or 90d"),
    (["site", "init", "--lifetime", "99999d"], "is not between 1s and 3650d"),
    (["site", "init", "--lifetime", "99999999999999999999d"], "no duration"),
    (["site", "token", "--ttl", "0s"], "--ttl `0s` is not between 1s and 7d"),
    (["site", "token", "--ttl", "h"], "no duration"),
    (["site", "init", "--root-cert", "x"], "go together: `--root-key` is missing"),
    (["site", "init", "--root-key", "x"], "go together: `--root-cert` is missing"),
    (["site", "token", "--yes"], "no option `--yes`"),
    (["site", "remove", "X", "--api", "nowhere", "--yes"], "--api: `nowhere` is not an address"),
    (["sites", "Site1"], "what is `Site1`?"),
    (["sites", "-o", "xml"], "--output `xml` is none of `table`, `json`, `yaml`"),
    (["sites", "--from", ""], "--from `` is not the name of a site"),
    (["sites", "--api", "127.0.0.1:0"], "--api: 0 is not a port"),
    (["sites", "-c", "/nonexistent/agent.yaml"], "cannot read `/nonexistent/agent.yaml`"),
])
def test_wrong_usage(cheops, arguments, said):
    result = cheops(*arguments)
    assert result.status == 2 and result.out == ""
    assert result.err.startswith("cheops: ") and said in result.err, result


# ---- Where the agent is asked -------------------------------------------------------------------------------------------


def test_nobody_answers(cheops):
    address = f"127.0.0.1:{free_port()}"
    result = cheops("sites", "--api", address)
    assert result.status == 1 and result.out == ""
    assert result.err == (f"cheops: nothing answers at {address}: connection refused; is the agent of this site running? "
                          "(systemctl status cheops-agent)\n")


def test_which_address_counts(cheops, place):
    here = place("Site1")
    answer = (200, {"site": "Site1", "sites": []})
    with FakeAgent(answer) as first, FakeAgent(answer) as second, FakeAgent(answer) as third:
        here.write(third.address)
        assert cheops("sites", "--api", first.address, "-c", here.config, env={"CHEOPS_API": second.address}).status == 0
        assert cheops("sites", "-c", here.config, env={"CHEOPS_API": second.address}).status == 0
        assert cheops("sites", "-c", here.config, env={"CHEOPS_API": ""}).status == 0
        assert [len(agent.requests) for agent in (first, second, third)] == [1, 1, 1]


# ---- init ---------------------------------------------------------------------------------------------------------------

FILES = {"site.key": 0o600, "site.crt": 0o644, "root.key": 0o600, "root.crt": 0o644, "roots.pem": 0o644, "born": 0o644,
         "lifetime": 0o644}


def openssl(*arguments, **options):
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True, timeout=60, **options).stdout


def test_init_makes_an_identity(cheops, place):
    here = place("Zürich 1")
    result = cheops("site", "init", "-c", here.config)
    assert result.status == 0 and result.err == ""
    assert "`Zürich 1` is the first site of a new mesh" in result.out and "last 90d" in result.out
    assert f"No agent runs at {here.api} yet" in result.out and "cheops site token" in result.out
    assert {name.name: stat.S_IMODE(name.stat().st_mode) for name in here.state.iterdir()} == FILES
    assert stat.S_IMODE(here.state.stat().st_mode) == 0o700
    assert "site.crt: OK" in openssl("verify", "-CAfile", here.state / "roots.pem", here.state / "site.crt")
    assert "cheops://site/Z%C3%BCrich%201" in openssl("x509", "-in", here.state / "site.crt", "-noout", "-ext",
                                                    "subjectAltName")


def test_init_never_overwrites(cheops, place):
    here = place("Site1")
    assert cheops("site", "init", "-c", here.config).status == 0
    before = {name: name.read_bytes() for name in here.state.iterdir()}
    result = cheops("site", "init", "-c", here.config)
    assert result.status == 1 and result.out == ""
    assert "has the identity of a site already: Site1; it is not overwritten" in result.err
    assert {name: name.read_bytes() for name in here.state.iterdir()} == before


def test_init_tells_a_running_agent(cheops, place):
    here = place("Site1")
    with FakeAgent((200, {"reloaded": True})) as agent:
        here.write(agent.address)
        result = cheops("site", "init", "-c", here.config)
    assert result.status == 0 and f"The agent at {agent.address} has been told" in result.out
    assert [request[:2] for request in agent.requests] == [("POST", "/cheops/v1/reload")]


def test_init_says_that_the_agent_refused(cheops, place):
    here = place("Site1")
    with FakeAgent(problem(422, "bad-configuration", "Refused", "no \033[31mpeer")) as agent:
        here.write(agent.address)
        result = cheops("site", "init", "-c", here.config)
    assert result.status == 0 and "could not take it up, restart it: no \ufffd[31mpeer" in result.out


def own_root(folder, days=30, key=("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")):
    openssl("genpkey", *key, "-out", folder / "ca.key")
    os.chmod(folder / "ca.key", 0o600)
    openssl("req", "-x509", "-new", "-key", folder / "ca.key", "-subj", "/O=Example/CN=Example CA", "-days", str(days),
            "-out", folder / "ca.pem", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    return "--root-cert", str(folder / "ca.pem"), "--root-key", str(folder / "ca.key")


@pytest.mark.parametrize("key", [("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
                                 ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")])
def test_init_with_a_root_of_ones_own(cheops, place, tmp_path, key):
    here = place("Site1")
    result = cheops("site", "init", "-c", here.config, *own_root(tmp_path, key=key), "--lifetime", "12h")
    assert result.status == 0, result
    assert "(yours)" in result.out and "last 12h" in result.out
    assert "site.crt: OK" in openssl("verify", "-CAfile", tmp_path / "ca.pem", here.state / "site.crt")
    assert "CN = Example CA" in openssl("x509", "-in", here.state / "site.crt", "-noout", "-issuer")
    assert (here.state / "lifetime").read_text() == "43200\n"


def test_init_refuses_a_root_that_cannot_sign(cheops, place, tmp_path):
    here = place("Site1")
    certificate, key = own_root(tmp_path)[1::2]
    other = tmp_path / "other"
    other.mkdir()
    other_certificate, other_key = own_root(other)[1::2]
    os.chmod(other_key, 0o644)
    for arguments, said, status in [
            ((certificate, other_key), "everybody may read or write", 2),
            ((other_certificate, key), "the key does not belong to the root certificate", 1),
            ((key, key), "the root certificate: there is no certificate in PEM", 1),
            ((certificate, certificate), "everybody may read", 2),
            (("/nonexistent", key), "cannot read `/nonexistent`", 2)]:
        result = cheops("site", "init", "-c", here.config, "--root-cert", arguments[0], "--root-key", arguments[1])
        assert result.status == status and said in result.err, result
    assert not (here.state / "site.crt").exists()


def test_init_says_what_is_wrong_with_the_configuration(cheops, tmp_path):
    (tmp_path / "agent.yaml").write_text("site: Site1\n")
    result = cheops("site", "init", "-c", str(tmp_path / "agent.yaml"))
    assert result.status == 2 and "agent.yaml:1:1: there is no `api`" in result.err


# ---- token --------------------------------------------------------------------------------------------------------------


def test_token_prints_the_command_alone(cheops):
    with FakeAgent((201, {"token": "cheops1_Ab-_9", "expires": "2026-01-01T00:00:00Z"})) as agent:
        result = cheops("site", "token", "Site2", "--ttl", "10m", "--api", agent.address)
        any_name = cheops("site", "token", "--api", agent.address)
    assert result.status == 0
    assert result.out == "cheops site join cheops1_Ab-_9 -c /etc/cheops/agent.yaml\n" == any_name.out
    assert "has to be named `Site2`" in result.err and "good once, for 10m" in result.err
    assert "named" not in any_name.err and "for 1h" in any_name.err
    assert agent.requests == [("POST", "/cheops/v1/sites/tokens", {"name": "Site2", "ttl_s": 600}),
                              ("POST", "/cheops/v1/sites/tokens", {"name": "", "ttl_s": 3600})]


@pytest.mark.parametrize("token", ["x; rm -rf /", "$(reboot)", "", None, 7, "cheops1_a\nb", ["cheops1_x"]])
def test_what_is_no_token_never_becomes_a_command(cheops, token):
    with FakeAgent((201, {"token": token})) as agent:
        result = cheops("site", "token", "--api", agent.address)
    assert result.status == 1 and result.out == "" and "has no token in it" in result.err


def test_a_refusal_is_one_message(cheops):
    with FakeAgent(problem(409, "no-authority", "The authority is at another site", "ask at Site\033[2J1")) as agent:
        result = cheops("site", "token", "--api", agent.address)
    assert result.status == 1 and result.out == ""
    assert result.err == "cheops: The authority is at another site: ask at Site\ufffd[2J1\n"


@pytest.mark.parametrize("answer, said", [
    (http(b"<html>hello</html>", 200, "text/html"), "is not JSON"),
    (http(b'{"token": "cheops1_x"'), "is not JSON"),
    (http(b'{"token": "a", "token": "b"}'), "is not JSON"),
    (http(b"[" * 100000), "is not JSON"),
    (http(b"[]"), "is no JSON object; is it an agent?"),
    (http(b"\xff\xfe"), "is not JSON"),
    (http(b""), "is not JSON"),
    (http(b"{}", 500), "with status 500, and not as agents do"),
    (b"220 mail.example.org ESMTP\r\n", "is not HTTP as it should be"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n", "is longer than"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", "closed the connection in the middle"),
    (b"", "closed the connection without an answer"),
], ids=["html", "cut JSON", "a key twice", "deep", "a list", "not UTF-8", "empty", "no reason", "mail", "huge", "cut", "nothing"])
def test_answers_that_are_none(cheops, answer, said):
    with FakeAgent(answer) as agent:
        for arguments in (["site", "token"], ["sites"], ["site", "root", "list"]):
            result = cheops(*arguments, "--api", agent.address)
            assert result.status == 1 and result.out == "" and said in result.err, result
            assert result.err.count("\n") == 1


# ---- remove, revoke, root -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action, said", [("remove", "`Site2` is removed; its name is free again\n"),
                                          ("revoke", "`Site2` is revoked: no site that hears of it lets it in any more\n")])
def test_shutting_out(cheops, action, said):
    with FakeAgent((200, {})) as agent:
        result = cheops("site", action, "Site2", "--yes", "--api", agent.address)
        assert result.status == 0 and result.out == said
        assert agent.requests == [("POST", f"/cheops/v1/sites/{action}", {"name": "Site2"})]
        result = cheops("site", action, "Site2", "--api", agent.address)
        assert result.status == 2 and "--yes" in result.err and len(agent.requests) == 1


@pytest.mark.parametrize("typed, status", [("y\n", 0), ("n\n", 1), ("\n", 1), ("\x04", 1)])
def test_shutting_out_is_asked_at_a_terminal(cheops, typed, status):
    with FakeAgent((200, {})) as agent:
        ended, seen = cheops.terminal("site", "revoke", "Site2", "--api", agent.address, typed=typed)
    assert ended == status and "Is that meant? [y/N] " in seen
    assert len(agent.requests) == (1 if status == 0 else 0)
    assert ("nothing was done" in seen) == (status == 1)


def test_an_unknown_site_is_told(cheops):
    with FakeAgent(problem(404, "unknown-site", "No such site", "there is no site `Nix`")) as agent:
        result = cheops("site", "remove", "Nix", "--yes", "--api", agent.address)
    assert result.status == 1 and result.err == "cheops: No such site: there is no site `Nix`\n"


def test_roots(cheops):
    roots = {"here": True, "roots": [
        {"name": "Cheops Site1 2026-11-15", "id": "00", "signs": False, "expires": "2099-01-01T00:00:00Z"},
        {"name": "Ev\033il", "id": "01", "signs": True, "expires": None}, {"signs": None}, 7]}
    with FakeAgent((200, roots), (200, {"rotated": True}), (200, {"retired": True})) as agent:
        listed = cheops("site", "root", "list", "--api", agent.address)
        assert cheops("site", "root", "rotate", "--api", agent.address).status == 0
        assert cheops("site", "root", "retire", "--api", agent.address).status == 2
        assert cheops("site", "root", "retire", "--yes", "--force", "--api", agent.address).status == 0
    assert listed.status == 0
    lines = [re.split(r"  +", line) for line in listed.out.splitlines()]
    assert lines[0] == ["ROOT", "ID", "SIGNS", "EXPIRES"]
    assert lines[1][:3] == ["Cheops Site1 2026-11-15", "00", "no"] and lines[1][3].endswith("d")
    assert lines[2:] == [["Ev\ufffdil", "01", "yes", "-"], ["-", "-", "-", "-"], ["-", "-", "-", "-"]]
    assert agent.requests == [("GET", "/cheops/v1/authority", None), ("POST", "/cheops/v1/authority/rotate", {}),
                              ("POST", "/cheops/v1/authority/retire", {"force": True})]
