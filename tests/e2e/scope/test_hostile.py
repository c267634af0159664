"""Texts that are large, broken or meant to hurt: each gets an answer, within the text, and at once."""
import random

import pytest

ACTIONS = ["fmt", "check", "explain", "tokens"]
LIMIT_BYTES = 4096


def check_answer(result, text):
    """Fine, or refused at a place inside the text."""
    assert result.status in (0, 1), result
    if result.status == 1:
        error = result.json["error"]
        assert error["message"] and error["type"]
        assert 0 <= error["offset"] <= len(text) and 0 <= error["length"] <= len(text) - error["offset"], error


LARGE = {
    "open": b"(" * LIMIT_BYTES,
    "close": b")" * LIMIT_BYTES,
    "not": b"!" * LIMIT_BYTES,
    "not one": b"!" * (LIMIT_BYTES - 1) + b"a",
    "otherwise": b";" * LIMIT_BYTES,
    "and": b"&" * LIMIT_BYTES,
    "name": b"a" * LIMIT_BYTES,
    "digits": b"9" * LIMIT_BYTES,
    "quotes": b'"' * LIMIT_BYTES,
    "backslashes": b'"' + b"\\" * (LIMIT_BYTES - 2) + b'"',
    "braces": b"{" * LIMIT_BYTES,
    "spaces": b" " * LIMIT_BYTES,
    "newlines": b"a\n" * (LIMIT_BYTES // 2),
    "calls": b"all(" * (LIMIT_BYTES // 4),
    "same site": b"a&" * (LIMIT_BYTES // 2 - 1) + b"a",
    "entries": b"a:b," * (LIMIT_BYTES // 4),
    "zeros": bytes(LIMIT_BYTES),
    "high bytes": b"\xff" * LIMIT_BYTES,
    "escapes": b"\x1b[2J" * (LIMIT_BYTES // 4),
    "wide": "é".encode() * (LIMIT_BYTES // 2),
    "all bytes": bytes(range(256)) * (LIMIT_BYTES // 256),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", LARGE)
def test_four_kib(cheops, action, name):
    text = LARGE[name]
    check_answer(cheops.scope(action, "-o", "json", stdin=text), text)
    said = cheops.scope(action, stdin=text)
    if said.status == 1:
        assert len(said.err) < 2000 and not set(said.err) & set(map(chr, range(9))), said
    if b"\0" not in text:
        as_argument = cheops.scope(action, "-o", "json", "--", text)
        assert as_argument.status == said.status


@pytest.mark.parametrize("text, kind", [
    (b"Site1\0", "control-character"),
    (b"Site1 & \x1b[31m", "control-character"),
    (b"Site\xff", "invalid-utf8"),
    (b"\xc3", "invalid-utf8"),
    (b"around(Site1, 10parsec)", "unknown-unit"),
    (b"around(Site1, 99999999999999999999s)", "number-range"),
    (b"nearest(99999999999999999999)", "number-range"),
    (b"zork(Site1)", "unknown-function"),
    (b"(" * 40 + b"a" + b")" * 40, "too-deep"),
    (b"&".join(b"s%d" % i for i in range(257)), "too-many-sites"),
    (b"a" * (LIMIT_BYTES + 1), "too-long"),
    (b"a" * (1 << 20), "too-long"),
], ids=range(12))
def test_each_its_own_error(cheops, text, kind):
    result = cheops.scope("check", "-o", "json", stdin=text)
    assert result.status == 1 and result.json["error"]["type"] == kind
    assert result.json["error"]["message"]


def test_names_of_the_user_do_not_reach_the_terminal_raw(cheops):
    for action in ACTIONS:
        result = cheops.scope(action, stdin=b'Site1 & "\x1b[2J"')
        assert result.status == 1 and "\033" not in result.err


def test_garbage(cheops):
    """Bytes by chance, always the same ones."""
    chance = random.Random(20240501)
    pieces = [b"Site1", b"&", b"|", b";", b"%", b"!", b"(", b")", b"all(", b'"', b"\\", b",", b":", b"{", b"}", b"10ms",
              b"\xc3\xa9", b"\xff", b"\0", b"\n", b"/", b"=", b"strong(", b" "]
    for _ in range(150):
        text = b"".join(chance.choice(pieces) for _ in range(chance.randrange(1, 40)))
        check_answer(cheops.scope("check", "-o", "json", stdin=text + b"."), text + b".")
