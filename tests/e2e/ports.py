"""Ports for what tests start.

They are below those that the kernel gives to clients, one of which would be taken now and then. Each run of the tests has a
range of its own, for as long as its process lives, so that two at once do not get in each other's way: a port that was found to
be free is used a little later only. Within its range a run goes round, and has the same port again after all of the others.
"""
import socket

FIRST, LAST, RANGE = 10000, 30000, 2000

_range = None  # (its first port, the socket by which it is ours)
_turn = 0


def _take():
    """The name of a socket in the abstract namespace is taken once, and given back whatever way the process ends."""
    for first in range(FIRST, LAST, RANGE):
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0cheops-test-ports-{first}")
            return first, mark
        except OSError:
            mark.close()
    raise AssertionError(f"{(LAST - FIRST) // RANGE} runs of the tests are under way: no ports are left")


def first_port():
    global _range
    _range = _range or _take()
    return _range[0]


def is_free(port):
    """For connections and for datagrams: agents gossip on the port on which they meet."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(type=kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection that has ended does not count
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def free_port(needed=(0,)):
    """The first port of a place where the needed ones, counted from there, are free."""
    global _turn
    width = max(needed) + 1
    for _ in range(RANGE):
        if _turn + width > RANGE:
            _turn = 0
        port = first_port() + _turn
        if all(is_free(port + more) for more in needed):
            _turn += width
            return port
        _turn += 1
    raise AssertionError(f"no free port from {first_port()} on")
