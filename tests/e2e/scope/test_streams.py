"""Standard input, standard output, terminals and colours."""
import os

import pytest

# ---- standard input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["-"], ["-o", "text"], ["--", "-"]])
@pytest.mark.parametrize("stdin", ["Site1&Site2", "Site1&Site2\n", "Site1&Site2\r\n", "Site1\n&\nSite2\n"])
def test_the_text_may_come_from_standard_input(cheops, arguments, stdin):
    result = cheops.scope("fmt", *arguments, stdin=stdin)
    assert (result.status, result.out, result.err) == (0, "Site1 & Site2\n", "")


def test_exactly_one_newline_is_dropped(cheops):
    """Seen by the offset of what is missing at the end."""
    for stdin, offset in (("a &", 3), ("a &\n", 3), ("a &\r\n", 3), ("a &\n\n", 4), ("a &\r", 4)):
        assert cheops.scope("fmt", "-o", "json", stdin=stdin).json["error"]["offset"] == offset, repr(stdin)


def test_nothing_on_standard_input(cheops):
    assert cheops.scope("fmt", "-o", "json", stdin="").json["error"]["type"] == "empty"
    assert cheops.scope("fmt", "-o", "json", stdin="\n").json["error"]["type"] == "empty"


def test_the_limit_counts_without_the_newline(cheops):
    for newline in ("", "\n", "\r\n"):
        assert cheops.scope("fmt", stdin=4096 * "a" + newline).status == 0
        assert cheops.scope("fmt", "-o", "json", stdin=4097 * "a" + newline).json["error"]["type"] == "too-long"


def test_endless_input_is_not_read_to_its_end(cheops):
    result = cheops.shell('"$CHEOPS" scope fmt -o json </dev/zero')
    assert result.status == 1 and result.json["error"]["type"] == "too-long"


@pytest.mark.parametrize("redirection, reason", [("<&-", "Bad file descriptor"), ("</", "Is a directory")])
def test_standard_input_that_cannot_be_read(cheops, redirection, reason):
    result = cheops.shell(f'"$CHEOPS" scope fmt {redirection}')
    assert result.status == 2 and result.err == f"cheops: cannot read the standard input: {reason}\n"


def test_a_terminal_is_told_what_is_awaited(cheops):
    status, seen = cheops.terminal("scope", "fmt", typed="Site1&Site2\n\x04")
    assert status == 0
    assert "cheops: reading the scope from the terminal; end it with Enter and Ctrl-D\n" in seen
    assert seen.endswith("Site1 & Site2\n")


def test_the_view_is_looked_at_before_a_text_is_awaited(cheops):
    status, seen = cheops.terminal("scope", "explain", "--view", "/nonexistent")
    assert status == 2 and "reading the scope" not in seen


# ---- standard output ------------------------------------------------------------------------------------------------

COMMANDS = ["--help", "--version", "scope --help", "scope fmt --help", "scope fmt Site1", "scope check Site1",
            "scope explain Site1", "scope explain -o json Site1", "scope tokens Site1", "scope fmt -o json '('"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("redirection, reason", [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_output_that_cannot_be_written(cheops, command, redirection, reason):
    result = cheops.shell(f'"$CHEOPS" {command} {redirection}')
    assert result.status == 1
    assert result.err == f"cheops: cannot write to the standard output: {reason}\n"


def test_a_reader_that_went_away(cheops):
    ours, theirs = os.pipe()
    os.close(ours)
    result = cheops.scope("fmt", "Site1", stdout=theirs)
    os.close(theirs)
    assert result.status == 1 and result.err == "cheops: cannot write to the standard output: Broken pipe\n"


def test_no_standard_error(cheops):
    assert cheops.shell('"$CHEOPS" scope fmt "(" 2>&-').status == 1
    assert cheops.shell('"$CHEOPS" scop 2>/dev/full').status == 2


def test_all_streams_closed(cheops, view):
    script = f'"$CHEOPS" scope explain --view {view} Site1 <&- >&- 2>&-; s=$?; echo $s; exit 0'
    assert cheops.shell(script).out == "1\n"


# ---- colours --------------------------------------------------------------------------------------------------------

EXPLAIN = ["scope", "explain", "Site2; Site1"]
REFUSED = ["scope", "fmt", "("]


def test_colours_on_a_terminal(cheops):
    for arguments, status in ((EXPLAIN, 0), (REFUSED, 1)):
        gave, seen = cheops.terminal(*arguments)
        assert gave == status and "\033[" in seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}])
def test_no_colours_where_they_are_not_wanted(cheops, env):
    for arguments in (EXPLAIN, REFUSED):
        assert "\033" not in cheops.terminal(*arguments, env=env)[1]


def test_an_empty_no_color_means_nothing(cheops):
    assert "\033[" in cheops.terminal(*EXPLAIN, env={"NO_COLOR": ""})[1]


def test_no_colours_in_a_pipe_or_file(cheops):
    assert "\033" not in cheops(*EXPLAIN).out
    assert "\033" not in cheops(*REFUSED).err


def test_colours_by_option(cheops):
    assert "\033[" in cheops(*EXPLAIN, "--color=always").out
    assert "\033[" in cheops(*EXPLAIN, "--color", "always", env={"NO_COLOR": "1"}).out
    assert "\033[" in cheops(*REFUSED, "--color=always").err
    assert "\033[" in cheops("scope", "check", "Site1; Site1", "--color=always").out
    assert "\033" not in cheops.terminal(*EXPLAIN, "--color=never")[1]


def test_json_has_no_colours(cheops):
    assert "\033" not in cheops(*EXPLAIN, "-o", "json", "--color=always").out
    assert "\033" not in cheops.terminal(*EXPLAIN, "-o", "json")[1]


def test_colours_change_nothing_else(cheops):
    import re
    assert re.sub(r"\033\[[0-9;]*m", "", cheops(*EXPLAIN, "--color=always").out) == cheops(*EXPLAIN).out
    assert re.sub(r"\033\[[0-9;]*m", "", cheops(*REFUSED, "--color=always").err) == cheops(*REFUSED).err
