"""The manual page and the completion know what the program knows."""
import re
import shlex

import pytest

ACTIONS = ["fmt", "check", "explain", "tokens"]


def options(cheops):
    return re.findall(r"(?<=[ ,])--?[a-z]+", cheops.scope("--help").out.split("Options:")[1].split("\n\n")[0])


def test_manual_page_has_every_option_and_action(cheops, root):
    page = (root / "packaging/man/cheops-scope.1").read_text().replace("\\-", "-")
    for word in [*options(cheops), *ACTIONS]:
        assert word in page


def complete(cheops, root, words):
    """What completion offers for the last of the words."""
    script = (f"source {shlex.quote(str(root / 'packaging/completions/cheops.bash'))}\n"
              f"COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}\n"
              "_cheops\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
    result = cheops.shell(script)
    assert result.err == ""
    return set(result.out.split())


@pytest.mark.parametrize("words, offered", [
    (["cheops", ""], {"agent", "app", "demo", "deps", "get", "openstack", "ops", "repair", "replicant", "scope", "site", "sites", "webhooks", "help",
                         "--help", "--version"}),
    (["cheops", "sc"], {"scope"}),
    (["cheops", "help", ""], {"agent", "app", "demo", "deps", "get", "openstack", "ops", "repair", "replicant", "scope", "site", "sites", "webhooks"}),
    (["cheops", "scope", "e"], {"explain"}),
    (["cheops", "scope", ""], {*ACTIONS, "--help"}),
    (["cheops", "help", "scope", ""], set(ACTIONS)),
    (["cheops", "scope", "fmt", "-o", ""], {"text", "json"}),
    (["cheops", "scope", "fmt", "--output", "=", "j"], {"json"}),
    (["cheops", "scope", "fmt", "--output", "="], {"text", "json"}),
    (["cheops", "scope", "fmt", "--color", "a"], {"auto", "always"}),
    (["cheops", "scope", "fmt", "--view", "/etc/pass"], {"/etc/passwd", "/etc/passwd-"}),
    (["cheops", "scope", "fmt", "Si"], set()),
    (["cheops", "agent", "--log", ""], {"error", "warn", "info", "debug"}),
    (["cheops", "agent", "--log", "=", "d"], {"debug"}),
    (["cheops", "agent", "-c", "/etc/pass"], {"/etc/passwd", "/etc/passwd-"}),
    (["cheops", "agent", "--site", ""], set()),
    (["cheops", "app", ""], {"lint", "explain", "import", "--help"}),
    (["cheops", "help", "app", ""], {"lint", "explain", "import"}),
    (["cheops", "app", "lint", "/etc/pass"], {"/etc/passwd", "/etc/passwd-"}),
    (["cheops", "app", "explain", "--app", "sam"], {"sample"}),
    (["cheops", "app", "explain", "P"], {"POST", "PUT", "PATCH"}),
    (["cheops", "app", "explain", "GET", "/etc/pass"], set()),
    (["cheops", "app", "lint", "--output", "=", "j"], {"json"}),
    (["cheops", "demo", "--forward", "t"], {"trace"}),
    (["cheops", "demo", "--sites", ""], set()),
    (["cheops", "demo", "--k"], {"--keep"}),
    (["cheops", "openstack", "--s"], {"--scope"}),
    (["cheops", "openstack", "--client", "/etc/pass"], {"/etc/passwd", "/etc/passwd-"}),
    (["cheops", "zork", ""], set()),
])
def test_completion(cheops, root, words, offered):
    found = complete(cheops, root, words)
    assert found == offered or (found and found < offered and words[-1].startswith("/"))


def test_completion_knows_every_option(cheops, root):
    assert complete(cheops, root, ["cheops", "scope", "explain", "-"]) == set(options(cheops))
