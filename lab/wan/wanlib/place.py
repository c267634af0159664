"""Where a lab lives, and which labs there are.

    /run/cheops-lab/locks/ID   locked by the supervisor of the lab ID; the kernel lets it go when that ends
    DIR/ID/lab.json            what there is: sites, namespaces, addresses, processes
    DIR/ID/control             the switch's control socket
    DIR/ID/supervisor.log      and switch.log
    DIR/ID/Site1/              what the agent and the services of a site read and write

DIR is chosen by the user; the locks are in one place, because namespaces are: a namespace whose lab nobody holds is left
over from one that died, and may be removed, whatever DIR that used.
"""
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import struct

from . import netns, process
from .errors import LabError

LOCKS = pathlib.Path("/run/cheops-lab/locks")
FLOCK = struct.Struct("hhqqi")  # struct flock of fcntl(2), for locks that belong to the open file
ID = re.compile(r"[A-Za-z0-9]{1,16}")


def default_dir():
    given = os.environ.get("CHEOPS_LAB_DIR")
    if given:
        return pathlib.Path(given)
    own = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() != 0 and own:
        return pathlib.Path(own) / "cheops-lab"
    return pathlib.Path("/run/cheops-lab")


def check_id(text):
    if not ID.fullmatch(text):
        raise LabError(f"'{text}' is no name of a lab: 1 to 16 letters and digits")
    return text


# ---- locks ------------------------------------------------------------------------------------------------------------


class Lock:
    """Held until release(), or the end of the process."""

    def __init__(self, lab, descriptor):
        self.lab = lab
        self.descriptor = descriptor

    def release(self):
        (LOCKS / self.lab).unlink(missing_ok=True)
        os.close(self.descriptor)


def take(lab):
    """The lock of that lab, or None: somebody has it."""
    LOCKS.mkdir(parents=True, exist_ok=True)
    path = LOCKS / lab
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            ours, there = os.fstat(descriptor), os.stat(path)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            there = None
        if there is not None and (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino):
            return Lock(lab, descriptor)
        os.close(descriptor)  # its last holder removed the file between our two looks at it


def is_held(lab):
    """Asks only: unlike trying, this is in nobody's way."""
    try:
        descriptor = os.open(LOCKS / lab, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        return FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK
    finally:
        os.close(descriptor)


def take_new(wanted=None):
    if wanted is not None:
        lock = take(check_id(wanted))
        if lock is None:
            raise LabError(f"there is a lab {wanted} already; end it with lab/wan/down --lab {wanted}, or name another")
        return lock
    while True:
        lock = take(secrets.token_hex(2))
        if lock is not None:
            return lock


# ---- state ------------------------------------------------------------------------------------------------------------


def write_state(folder, state):
    """Whole or not at all."""
    new = folder / "lab.json.new"
    new.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    new.rename(folder / "lab.json")


def read_state(folder):
    """None: there is none, or it is broken."""
    try:
        return json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def running(base):
    """{lab: state} of the labs in DIR that are alive and ready."""
    found = {}
    for path in sorted(base.glob("*/lab.json")):
        state = read_state(path.parent)
        if state is not None and is_held(path.parent.name):
            found[path.parent.name] = state
    return found


def find(base, lab=None):
    """The state of the lab that a command is about: the one that is named, or the only one."""
    lab = lab or os.environ.get("CHEOPS_LAB") or None
    labs = running(base)
    if lab is not None and lab not in labs:
        raise LabError(f"no lab {check_id(lab)} runs in {base}; " + (f"there is: {', '.join(labs)}" if labs else "there is none"))
    if not labs:
        raise LabError(f"no lab runs in {base}; start one with lab/wan/up 3, or say with --dir where it is")
    if lab is None and len(labs) > 1:
        raise LabError(f"several labs run: {', '.join(labs)}; say which with --lab")
    return labs[lab or next(iter(labs))]


# ---- leftovers --------------------------------------------------------------------------------------------------------


def sweep_lab(lab, names, folder):
    """Removes what a lab left behind, if its supervisor is dead. Returns what it removed."""
    lock = take(lab)
    if lock is None:
        return []
    removed = []
    try:
        state = read_state(folder) or {}
        for described in state.get("processes", {}).values():
            process.end(described, patience_s=5)  # killed by the kernel already, unless that is still at it
        removed += netns.remove(names)
        if (folder / "lab.json").exists():
            removed.append(str(folder))
            if state.get("keep"):
                (folder / "lab.json").unlink()
            else:
                shutil.rmtree(folder)
    finally:
        lock.release()
    return removed


def sweep(base):
    """Removes what is left over from labs that died: namespaces of any, folders of those in DIR."""
    namespaces = netns.all_of_labs()
    labs = set(namespaces) | {path.parent.name for path in base.glob("*/lab.json") if ID.fullmatch(path.parent.name)}
    removed = []
    for lab in sorted(labs):
        removed += sweep_lab(lab, namespaces.get(lab, []), base / lab)
    return removed
