"""Processes of a lab. Each is killed by the kernel when the process that started it ends, however that ends."""
import ctypes
import os
import pathlib
import select
import signal
import subprocess

from . import netns

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def start(command, namespace=None, **options):
    """subprocess.Popen, inside a namespace, and bound to the life of this thread: call it from one that stays."""
    parent = os.getpid()
    there = os.open(netns.path_of(namespace), os.O_RDONLY | os.O_CLOEXEC) if namespace else None

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before it was watched
            os._exit(1)
        if there is not None:
            netns.enter(there)

    try:
        return subprocess.Popen(list(map(str, command)), preexec_fn=prepare, **options)
    finally:
        if there is not None:
            os.close(there)


def started(pid):
    """When the process started, in clock ticks since boot: with its number, this names it for good. None: it is gone."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if stat[0] in "ZX" else int(stat[19])


def describe(pid):
    return {"pid": pid, "started": started(pid)}


def is_alive(described):
    return described["started"] is not None and started(described["pid"]) == described["started"]


def open_handle(described):
    """A descriptor that becomes readable when the process ends, and for send(). None: it has ended."""
    try:
        handle = os.pidfd_open(described["pid"])
    except ProcessLookupError:
        return None
    if is_alive(described):
        return handle
    os.close(handle)
    return None


def end(described, signals=(signal.SIGTERM, signal.SIGKILL), patience_s=10):
    """Sends one signal after the other until the process has ended. False: it has not."""
    handle = open_handle(described)
    if handle is None:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        for number in signals:
            signal.pidfd_send_signal(handle, number)
            if poll.poll(patience_s * 1000):
                return True
        return False
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)
