"""Processes that are held for a while."""
import os
import pathlib
import signal
import threading
import time

BOUND_S = 90


def _runs(task):
    try:
        return (task / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] not in "TtZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def hold(pid):
    """SIGSTOP; and returns once it has stopped. A thread that is just running may do a little more before it hears of it."""
    os.kill(pid, signal.SIGSTOP)
    until, pause = time.monotonic() + BOUND_S, threading.Event()
    while any(_runs(task) for task in pathlib.Path(f"/proc/{pid}/task").glob("*")):
        assert time.monotonic() < until, f"process {pid} does not stop"
        pause.wait(0.001)
