"""The manual pages and the completion know what the program knows."""
import re
import shlex

import pytest

ACTIONS = ["init", "token", "join", "remove", "revoke", "root"]


def options(cheops, *command):
    text = cheops(*command, "--help").out.split("Options:")[1].split("\n\n")[0]
    return set(re.findall(r"(?:(?<=^  )|(?<=, )|(?<=^      ))--?[a-z-]+", text, re.MULTILINE))


def complete(cheops, root, *words):
    script = (f"source {shlex.quote(str(root / 'packaging/completions/cheops.bash'))}\n"
              f"COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}\n"
              "_cheops\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
    result = cheops.shell(script)
    assert result.err == ""
    return set(result.out.split())


@pytest.mark.parametrize("action", ACTIONS)
def test_site(cheops, root, action):
    found = options(cheops, "site", action)
    assert "--help" in found
    assert complete(cheops, root, "cheops", "site", action, "-") == found or action == "root"
    page = (root / "packaging/man/cheops-site.1").read_text().replace("\\-", "-")
    assert all(word in page for word in [*found, action])


def test_sites(cheops, root):
    found = options(cheops, "sites")
    assert complete(cheops, root, "cheops", "sites", "") == found
    page = (root / "packaging/man/cheops-sites.1").read_text().replace("\\-", "-")
    assert all(word in page for word in found)


@pytest.mark.parametrize("command", ["get", "ops"])
def test_get_and_ops(cheops, root, command):
    found = options(cheops, command)
    assert complete(cheops, root, "cheops", command, "x", "-") == found
    page = (root / f"packaging/man/cheops-{command}.1").read_text().replace("\\-", "-")
    assert all(word in page for word in found)


@pytest.mark.parametrize("words, offered", [
    (["ops", "g"], {"get"}),
    (["ops", "get", "ID", "--wait", ""], {"all", "majority"}),
    (["get", "--state", "s"], {"settled", "stuck"}),
    (["site", ""], {*ACTIONS, "--help"}),
    (["site", "re"], {"remove", "revoke"}),
    (["help", "site", ""], set(ACTIONS)),
    (["site", "root", ""], {"list", "rotate", "retire", "--help"}),
    (["site", "root", "retire", "--f"], {"--force"}),
    (["site", "token", "--ttl", ""], set()),
    (["site", "remove", "Si"], set()),
    (["sites", "-o", ""], {"table", "json", "yaml"}),
    (["sites", "--output", "=", "y"], {"yaml"}),
    (["sites", "--from", ""], set()),
    (["sites", "--wa"], {"--watch"}),
])
def test_completion(cheops, root, words, offered):
    assert complete(cheops, root, "cheops", *words) == offered
