"""The lab itself: it says what is wrong, is left as it is when it is there, and leaves nothing behind."""
import json
import os
import subprocess

from openstack_lab import COMMANDS
from wanlib import process


def run(name, *words):
    return subprocess.run([COMMANDS / name, *map(str, words)], capture_output=True, text=True, check=False, timeout=600,
                          stdin=subprocess.DEVNULL)


def test_up_once_more(sites):
    """The same lab is left as it is; another one of that name is refused."""
    again = run("up", 2, "--wan", "flat", "--lab", sites.id, "--json")
    assert again.returncode == 0, again
    assert json.loads(again.stdout)["supervisor"] == sites.state["supervisor"]
    assert all(map(process.is_alive, sites.state["processes"].values()))
    other = run("up", 3, "--wan", "flat", "--lab", sites.id)
    assert other.returncode == 1 and "there is a lab" in other.stderr and "of 2 sites" in other.stderr, other


def test_nothing_is_missing(sites):
    assert run("install", "--list").stdout == ""
    assert run("install").stdout == ""


def test_processes_work_in_the_folder_of_their_site(sites):
    """What they leave when they crash (the broker's dumps) is gone with the lab, and not where its user happens to be."""
    for name, described in sites.state["processes"].items():
        site, _, part = name.partition("/")
        if part:
            assert os.readlink(f"/proc/{described['pid']}/cwd").startswith(str(sites.path(site))), name


def test_usage():
    for words, why in ((["0"], "1 to 16"), (["x"], "invalid int"), ([], "required"), (["2", "--carry", "x"], "invalid choice")):
        refused = run("up", *words)
        assert refused.returncode == 2 and why in refused.stderr, refused
    refused = run("up", 2, "--wan", "nowhere", "--lab", "x")
    assert refused.returncode == 1 and "these matrices come along" in refused.stderr, refused
    refused = run("run", "--lab", "nolab", "Site1", "true")
    assert refused.returncode == 1 and "no lab nolab runs" in refused.stderr, refused


def test_a_process_that_fails_is_named(tmp_path, sites):
    """Here the agents, which are no agents; all that was started before is ended."""
    fake = tmp_path / "cheops"
    fake.write_text("#!/bin/sh\nif [ $1 = agent ]; then echo the reason; exit 3; fi\n")
    fake.chmod(0o755)
    failed = run("up", 1, "--lab", "tfail", "--cheops", fake)
    assert failed.returncode == 1, failed
    assert "agent of Site1 ended, with status 3" in failed.stderr and "the reason" in failed.stderr, failed
    assert not (sites.folder.parent / "tfail").exists()
    assert run("down", "--lab", "tfail").stderr == "no lab runs, and nothing is left over\n"
