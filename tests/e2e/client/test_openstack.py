"""`cheops openstack`: it becomes the client. Played here by a program that says what it was given; the real one is in tests/e2e/openstack."""
import json
import os
import shutil
import signal
import subprocess

import pytest

CLIENT = """\
#!/usr/bin/python3
import json, os, signal, sys
if "--wait" in sys.argv:
    print("ready", flush=True)
    signal.pause()
json.dump({"arguments": sys.argv[1:], "path": os.environ["PYTHONPATH"], "pid": os.getpid(), "scope": os.environ.get("OS_SCOPE"),
           "input": sys.stdin.read()}, sys.stdout)
print("told", file=sys.stderr)
sys.exit(int(os.environ.get("STATUS", "0")))
"""


@pytest.fixture
def client(tmp_path):
    path = tmp_path / "openstack"
    path.write_text(CLIENT, encoding="utf-8")
    path.chmod(0o755)
    return path


def command(cheops, *words):
    return [str(cheops.path), "openstack", *map(str, words)]


def environment(client, **more):
    return {"PATH": f"{client.parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **more}


def run(cheops, client, *words, stdin="", **more):
    return subprocess.run(command(cheops, *words), env=environment(client, **more), input=stdin, capture_output=True, text=True,
                          check=False, timeout=60)


def test_the_scope_comes_first_and_the_rest_as_it_is(cheops, client, root):
    ran = run(cheops, client, "--scope", "{compute: Site1 & Site2}", "--os-cloud", "x", "server", "list", "--name", "a b", "--", "--help", "")
    told = json.loads(ran.stdout)
    assert told["arguments"] == ["--os-scope", "{compute: Site1 & Site2}", "--os-cloud", "x", "server", "list", "--name", "a b", "--", "--help", ""]
    [folder] = told["path"].split(":")
    assert os.path.samefile(folder, root / "clients" / "openstack")


@pytest.mark.parametrize("words, given", [
    ([], []), (["server", "list"], ["server", "list"]), (["--", "--help"], ["--help"]), (["--", "--scope", "x"], ["--scope", "x"]),
    (["server", "list", "--scope", "Site1"], ["server", "list", "--scope", "Site1"]), (["--scoped"], ["--scoped"]),
    (["--scope=Site1", "x"], ["--os-scope", "Site1", "x"])])
def test_what_is_handed_over(cheops, client, words, given):
    assert json.loads(run(cheops, client, *words).stdout)["arguments"] == given


def test_streams_status_and_environment(cheops, client):
    ran = run(cheops, client, "x", stdin="ünd", STATUS="42", PYTHONPATH="/mine", OS_SCOPE="Site2")
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["input"], told["scope"]) == (42, "ünd", "Site2") and ran.stderr == "told\n"
    assert told["path"].endswith("/clients/openstack:/mine")


def test_it_is_the_same_process(cheops, client):
    """So signals are the client's, and so is the terminal."""
    child = subprocess.Popen(command(cheops, "--wait"), env=environment(client), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == -signal.SIGTERM
    finally:
        child.kill()
        child.stdout.close()


def test_a_broken_pipe_ends_what_it_would_end(cheops, tmp_path):
    """cheops itself ignores that signal, the client does not inherit it."""
    path = tmp_path / "openstack"
    path.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n", encoding="utf-8")
    path.chmod(0o755)
    ignored = int(run(cheops, path, "x").stdout.split()[1], 16)
    assert not ignored >> (signal.SIGPIPE - 1) & 1


def test_a_scope_that_makes_no_sense(cheops, client):
    ran = run(cheops, client, "--scope", "Site1 &", "server", "list")
    assert ran.returncode == 1 and ran.stdout == "" and "`&` needs a site on its right" in ran.stderr


def test_usage(cheops, client, tmp_path):
    ran = run(cheops, client, "--help")
    assert ran.returncode == 0 and "usage: cheops openstack" in ran.stdout
    ran = run(cheops, client, "--scope")
    assert ran.returncode == 2 and "--scope needs a value" in ran.stderr
    ran = run(cheops, client, "--client", tmp_path / "none", "x")
    assert ran.returncode == 127 and "python3-openstackclient" in ran.stderr
    ran = run(cheops, client, "--client", tmp_path, "x")
    assert ran.returncode == 126 and "Permission denied" in ran.stderr


def test_without_the_plugin(cheops, client, tmp_path):
    """Where it is not installed, nothing is run: the scope would be ignored."""
    alone = tmp_path / "bin" / "cheops"
    alone.parent.mkdir()
    shutil.copyfile(cheops.path, alone)
    alone.chmod(0o755)
    ran = subprocess.run([alone, "openstack", "x"], env=environment(client), capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 126 and "cheops_osc.py" in ran.stderr and ran.stdout == ""
