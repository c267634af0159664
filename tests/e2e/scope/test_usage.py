"""How the command is called: help, version, options, mistakes."""
import re

import pytest

ACTIONS = ["fmt", "check", "explain", "tokens"]


def test_version_is_one_line(cheops):
    for option in ("--version", "-V"):
        result = cheops(option)
        assert result.status == 0 and result.err == ""
        assert re.fullmatch(r"cheops \d+\.\d+\.\d+\S*\n", result.out)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], ["help", "--help"]])
def test_help_lists_the_commands(cheops, arguments):
    result = cheops(*arguments)
    assert result.status == 0 and result.err == ""
    assert "usage: cheops COMMAND" in result.out and "  scope " in result.out


def test_nothing_asked_is_wrong_usage_with_help(cheops):
    result = cheops()
    assert result.status == 2 and result.out == ""
    assert "usage: cheops COMMAND" in result.err


@pytest.mark.parametrize("arguments", [["scope", "--help"], ["scope", "-h"], ["help", "scope"]])
def test_help_on_scope(cheops, arguments):
    result = cheops(*arguments)
    assert result.status == 0 and result.err == ""
    for action in ACTIONS:
        assert f"\n  {action} " in result.out
    assert "Examples:" in result.out and "Exit status: 0 fine, 1 refused, 2 wrong usage" in result.out


@pytest.mark.parametrize("action", ACTIONS)
def test_help_on_an_action(cheops, action):
    result = cheops.scope(action, "--help")
    assert result.status == 0 and result.err == ""
    assert f"usage: cheops scope {action}" in result.out
    for option in ("--service", "--at", "--view", "-o, --output", "--color"):
        assert option in result.out
    assert cheops.scope(action, "-h").out == cheops("help", "scope", action).out == result.out


@pytest.mark.parametrize("action", ACTIONS)
def test_examples_of_the_help_work(cheops, action, view, tmp_path):
    examples = re.findall(r"^  cheops (scope .*)$", cheops.scope(action, "--help").out, re.MULTILINE)
    assert examples
    for example in examples:
        assert cheops.shell(f'"$CHEOPS" {example}', cwd=tmp_path).status == 0, example


def test_help_fits_a_page_s_width(cheops):
    for arguments in (["--help"], ["scope", "--help"], *(["scope", action, "--help"] for action in ACTIONS)):
        assert max(map(len, cheops(*arguments).out.splitlines())) <= 100


@pytest.mark.parametrize("arguments, said", [
    (["scop"], "no command `scop`; did you mean `scope`?\nTry `cheops --help`."),
    (["hepl"], "no command `hepl`; did you mean `help`?"),
    (["frobnicate"], "no command `frobnicate`\n"),
    (["--frobnicate"], "no option `--frobnicate`\n"),
    ([""], "no command ``\n"),
    (["help", "scop"], "no command `scop`; did you mean `scope`?"),
    (["scope"], "One of fmt, check, explain and tokens is missing\nTry `cheops scope --help`."),
    (["scope", "exlpain", "Site1"], "no action `exlpain`; did you mean `explain`?"),
    (["scope", "Site1 & Site2"], "no action `Site1 & Site2`; first comes one of fmt, check, explain and tokens"),
    (["scope", "--at", "Site1", "fmt"], "no action `--at`; first comes one of"),
    (["help", "scope", "exlpain"], "no action `exlpain`; did you mean `explain`?"),
    (["scope", "fmt", "Site1", "&", "Site2"],
     "more than one TEXT: `Site1` and `&`; put quotes around the whole scope, as in 'Site1 & Site2'"),
    (["scope", "fmt", "--veiw", "x"], "no option `--veiw`; did you mean `--view`?\nTry `cheops scope fmt --help`."),
    (["scope", "fmt", "--frobnicate"], "no option `--frobnicate`; an argument that begins with a dash goes after `--`"),
    (["scope", "fmt", "-x"], "no option `-x`; an argument that begins with a dash goes after `--`"),
    (["scope", "fmt", "--at"], "`--at` needs a value: --at SITE"),
    (["scope", "fmt", "-o"], "`--output` needs a value: --output FORMAT"),
    (["scope", "fmt", "--help=yes"], "`--help` takes no value"),
    (["scope", "fmt", "-o", "yaml", "Site1"], "--output `yaml` is none of `text`, `json`"),
    (["scope", "fmt", "--output=jsn", "Site1"], "--output `jsn` is none of `text`, `json`; did you mean `json`?"),
    (["scope", "fmt", "--color", "alway", "Site1"],
     "--color `alway` is none of `auto`, `always`, `never`; did you mean `always`?"),
    (["scope", "fmt", "--at=", "Site1"], "--at is empty; it has to be a name"),
    (["scope", "fmt", "--service", "", "Site1"], "--service is empty; it has to be a name"),
    (["scope", "explain", "--at", "\033[31m", "Site1"], "--at `\ufffd[31m` is not printable UTF-8 text"),
])
def test_wrong_usage(cheops, arguments, said):
    result = cheops(*arguments)
    assert result.status == 2 and result.out == ""
    assert result.err.startswith("cheops: ") and said in result.err, result


def test_messages_cannot_disturb_a_terminal(cheops):
    result = cheops("\033[2J\x07" + 1000 * "x")
    assert result.status == 2
    assert not set(result.err) & {"\033", "\x07"} and "…`" in result.err and len(result.err) < 200


@pytest.mark.parametrize("arguments", [
    ["-o", "json", "Site1"], ["-ojson", "Site1"], ["-o=json", "Site1"], ["--output", "json", "Site1"],
    ["--output=json", "Site1"], ["Site1", "-o", "json"], ["-o", "text", "-o", "json", "Site1"],
    ["-o", "json", "--", "Site1"],
])
def test_ways_to_write_an_option(cheops, arguments):
    result = cheops.scope("fmt", *arguments)
    assert result.status == 0 and result.json == {"scope": "Site1"}


def test_a_text_that_begins_with_a_dash(cheops):
    assert cheops.scope("fmt", "--", "-edge").out == "-edge\n"
    assert cheops.scope("fmt", "--", "--", "x").status == 2


def test_actions_take_options_that_they_have_no_use_for(cheops, view):
    """So that `explain` in a line of the shell's history can be replaced by another action."""
    for action in ACTIONS:
        result = cheops.scope(action, "--view", view, "--at", "Site1", "--service", "compute", "Site2")
        assert result.status == 0 and result.err == ""
