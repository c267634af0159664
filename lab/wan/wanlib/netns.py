"""Network namespaces, by the names under which ip(8) knows them."""
import contextlib
import ctypes
import os
import pathlib
import re
import socket
import subprocess

from .errors import LabError

FOLDER = pathlib.Path("/run/netns")
PREFIX = "cheops-"
NAME = re.compile(r"cheops-([A-Za-z0-9]{1,16})-(.+)")
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def name_of(lab, site):
    return f"{PREFIX}{lab}-{site}"


def path_of(name):
    return FOLDER / name


def run_batch(lines):
    """Gives the lines to one ip(8). Returns what it complains about."""
    try:
        run = subprocess.run(["ip", "-batch", "-", "-force"], input="".join(line + "\n" for line in lines), text=True,
                             capture_output=True, check=False, timeout=120)
    except FileNotFoundError:
        raise LabError("there is no program ip; install the package iproute2 (scripts/deps test)") from None
    return (run.stdout + run.stderr).strip() if run.returncode != 0 else ""


def add(names):
    complaint = run_batch(f"netns add {name}" for name in names)
    if complaint:
        raise LabError(f"cannot make network namespaces: {complaint}")


def remove(names):
    """Of those that are there. Processes that are still inside stay in a network without a name, that leads nowhere."""
    there = [name for name in names if path_of(name).exists()]
    complaint = run_batch(f"netns del {name}" for name in there) if there else ""
    left = [name for name in there if path_of(name).exists()]
    if left:
        raise LabError(f"cannot remove the network namespaces {', '.join(left)}: {complaint}")
    return there


def all_of_labs():
    """{lab: [name]} of the namespaces that have the name of a lab's, whoever made them."""
    found = {}
    for path in sorted(FOLDER.glob(PREFIX + "*")) if FOLDER.is_dir() else []:
        match = NAME.fullmatch(path.name)
        if match:
            found.setdefault(match.group(1), []).append(path.name)
    return found


def enter(descriptor):
    """This thread, from now on. What it opened before stays where it is."""
    if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot enter a network namespace: {os.strerror(error)}")


@contextlib.contextmanager
def inside(name):
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(path_of(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            enter(home)
    finally:
        os.close(home)


def make_socket(name, *kind):
    """A socket belongs to the namespace in which it was made, whoever uses it."""
    with inside(name):
        return socket.socket(*kind)
