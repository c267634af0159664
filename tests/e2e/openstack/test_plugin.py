"""The plugin of OpenStackClient by itself: what it says of itself, and what it refuses."""
import configparser
import email
import subprocess
import tomllib

import openstack_lab
import pytest

FOLDER = openstack_lab.ROOT / "clients" / "openstack"
ABOUT = FOLDER / "cheops_osc-1.0.dist-info"


def openstack(*words, env=None):
    """The client at no site: it is not to come so far as to ask anybody."""
    made = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(FOLDER), "LC_ALL": "C.UTF-8",
            "OS_AUTH_URL": "http://127.0.0.1:1/v3", "OS_USERNAME": "x", "OS_PASSWORD": "x", "OS_PROJECT_NAME": "x",
            "OS_USER_DOMAIN_NAME": "x", "OS_PROJECT_DOMAIN_NAME": "x", **(env or {})}
    return subprocess.run(["openstack", *words], env=made, capture_output=True, text=True, check=False, timeout=120)


def test_both_ways_to_install_it_say_the_same():
    """pyproject.toml, for pip; and what lets Python find it where it is."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    about = email.message_from_string((ABOUT / "METADATA").read_text())
    points = configparser.ConfigParser()
    points.read(ABOUT / "entry_points.txt")
    assert (about["Name"], about["Version"], about["Summary"]) == (project["name"], project["version"], project["description"])
    assert {section: dict(points[section]) for section in points.sections()} == project["entry-points"]


def test_help():
    said = openstack("--help").stdout
    assert "--scope <scope>, --os-scope <scope>" in said and "OS_SCOPE" in said


def test_it_comes_with_cheops_openstack():
    """Where it is not installed: the real client, which finds it where cheops has it."""
    def run(*words):
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
        return subprocess.run([openstack_lab.CHEOPS, "openstack", *words], env=env, capture_output=True, text=True, check=False, timeout=120)

    assert "--scope <scope>, --os-scope <scope>" in run("--", "--help").stdout
    missing = run("--scope", "Site1", "server", "list")  # it knows the option, and misses who asks
    assert missing.returncode != 0 and "auth" in missing.stderr and "unrecognized" not in missing.stderr, missing


@pytest.mark.parametrize("scope, why", [("Site1\nX-Evil: 1", "control character"), ("S" * 5000, "at most 4096 bytes")],
                         ids=["two lines", "too long"])
def test_what_cannot_be_sent_is_refused(scope, why):
    for run in (openstack("--scope", scope, "server", "list"), openstack("server", "list", env={"OS_SCOPE": scope})):
        assert run.returncode != 0 and why in run.stderr, run
        assert "Traceback" not in run.stderr, run


def test_an_empty_one_is_none():
    run = openstack("--scope", "", "server", "list", env={"OS_SCOPE": "x\ny"})
    assert "127.0.0.1:1" in run.stderr or "127.0.0.1', port=1" in run.stderr, run


def test_it_is_installed(tmp_path):
    """`make install` has all of it: the client finds the plugin where that puts it."""
    build = openstack_lab.CHEOPS.parent
    run = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", tmp_path], capture_output=True, text=True,
                         check=False, timeout=120)
    assert run.returncode == 0, run
    found = list(tmp_path.rglob("share/cheops/clients/openstack/cheops_osc.py"))
    assert len(found) == 1 and "--scope <scope>" in openstack("--help", env={"PYTHONPATH": str(found[0].parent)}).stdout
