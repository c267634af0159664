"""The lab itself: it says what is wrong, is left as it is when it is there, and leaves nothing behind."""
import json
import os
import pathlib
import subprocess

from openstack_lab import COMMANDS, wait_for
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


def fake(tmp_path, agent):
    """A cheops whose agents do this."""
    made = tmp_path / "cheops"
    made.write_text(f"#!/bin/sh\nif [ $1 = agent ]; then {agent}; fi\n")
    made.chmod(0o755)
    return made


def test_a_process_that_fails_is_named(tmp_path, sites):
    """Here the agents, which are no agents; all that was started before is ended."""
    failed = run("up", 1, "--lab", "tfail", "--cheops", fake(tmp_path, "echo the reason; exit 3"))
    assert failed.returncode == 1, failed
    assert "agent of Site1 ended, with status 3" in failed.stderr and "the reason" in failed.stderr, failed
    assert not (sites.folder.parent / "tfail").exists()
    assert run("down", "--lab", "tfail").stderr == "no lab runs, and nothing is left over\n"


def at_work_in(folder):
    """Names of the processes that are."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd").startswith(str(folder)):
                found.append((path / "comm").read_text(encoding="utf-8").strip())
        except OSError:  # it has ended
            pass
    return found


def test_a_lab_that_is_killed_leaves_nothing(tmp_path, sites):
    """Its processes end with it, the broker as well; the next one of its name begins anew."""
    folder = sites.folder.parent / "tkill"
    with subprocess.Popen([COMMANDS / "up", "1", "--lab", "tkill", "--attached", "--cheops", fake(tmp_path, "exec sleep 1000")],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as killed:
        wait_for(lambda: {"beam.smp", "mariadbd", "sleep"} <= set(at_work_in(folder)), "the lab to begin")
        killed.kill()
    wait_for(lambda: not at_work_in(folder), lambda: f"these to end: {at_work_in(folder)}")
    assert folder.exists()
    failed = run("up", 1, "--lab", "tkill", "--cheops", fake(tmp_path, "exit 3"))
    assert "agent of Site1 ended, with status 3" in failed.stderr, failed
    assert not folder.exists()
