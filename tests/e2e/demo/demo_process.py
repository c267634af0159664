"""Starts `cheops demo` as a user does, and watches what it starts: the standard library only."""
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHEOPS = pathlib.Path(os.environ.get("CHEOPS", ROOT / "build" / "cheops")).resolve()
BOUND_S = 90  # of everything that is waited for; generous, because the sanitizers are slow
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
SERVICES = ("compute", "image", "network")


def environment(changes=None):
    made = dict(os.environ)
    made["ASAN_OPTIONS"] = made.get("ASAN_OPTIONS", "") + ":exitcode=99"
    return {**made, **(changes or {})}


def wait_for(condition, what):
    """Looks again and again, for a bounded time, until the condition gives something that is true, and returns that."""
    until = time.monotonic() + BOUND_S
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        pause.wait(0.01)
    return found


def free_base(sites=3):
    """A --base-port from which a demo's ports are free."""
    return free_port([100 * site + port for site in range(sites) for port in (0, 1, 2, 3, 4, 11, 12, 13)])


def process_state(pid):
    """One letter, as ps shows it; None: there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_running(pid):
    return process_state(pid) not in (None, "Z", "X")


def children_of(pid):
    """{pid: arguments} of its children."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
            if parent == pid:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def no_sanitizer_spoke(text):
    assert "Sanitizer" not in text and "runtime error:" not in text, text


def did_not_crash(status, log):
    """Of a process that has ended, of itself or because it was told to: no failed CHECK, no fault, no finding of a sanitizer."""
    assert status not in (99, *(-number for number in CRASHES)), f"status {status}: {log}"
    no_sanitizer_spoke(log)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # [(name, value)]
        self.bytes = body

    def header(self, name):
        values = [value for known, value in self.headers if known.lower() == name.lower()]
        return ", ".join(values) if values else None

    @property
    def json(self):
        return json.loads(self.bytes)

    @property
    def problem(self):
        """An answer of an agent's own, having checked its shape."""
        assert self.header("Content-Type") == "application/problem+json", self
        problem = self.json
        assert problem["status"] == self.status and problem["title"] and problem["detail"], self
        assert problem["type"].startswith("urn:cheops:problem:"), self
        return {**problem, "type": problem["type"].rpartition(":")[2]}

    def __repr__(self):
        return f"{self.status} {self.headers} {self.bytes[:800]!r}"


def ask(url, method="GET", headers=None, body=None, json_body=None):
    """One request on a connection of its own; `url` has the path as it is to be sent."""
    headers = dict(headers or {})
    if json_body is not None:
        body = json.dumps(json_body)
        headers.setdefault("Content-Type", "application/json")
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=BOUND_S)
    try:
        connection.request(method, (parts.path or "/") + ("?" + parts.query if parts.query else ""), body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


class Demo:
    """A demo that is ready once this is made. Its folder is kept by the test, so that the logs can be looked at."""

    def __init__(self, folder, *arguments, sites=3, base=None, env=None, json_line=True):
        self.folder = pathlib.Path(folder)
        for _ in range(5):
            self.base = base or free_base(sites)
            command = [CHEOPS, "demo", "--sites", sites, "--base-port", self.base, "--dir", self.folder, "--no-ui",
                       *(["--json"] if json_line else []), *arguments]
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen(list(map(str, command)), env=environment(env), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True)
            self.first = self._read()
            if self.first or base is not None or not any(said in self.stderr() for said in ("is taken", "already in use")):
                break
            self.ended()  # somebody else was faster
        if not self.first:
            self.process.kill()
            self.process.wait(BOUND_S)
            raise AssertionError(f"no demo: {self.stderr()}")
        self.children = children_of(self.process.pid)
        if json_line:
            self.sites = {site["name"]: site for site in json.loads(self.first)["sites"]}

    def _read(self):
        """What it prints at first, which comes in one piece."""
        ready, _, _ = select.select([self.process.stdout], [], [], BOUND_S)
        return os.read(self.process.stdout.fileno(), 1 << 16).decode() if ready else ""

    def stderr(self):
        text = os.pread(self.errors.fileno(), 1 << 20, 0).decode()
        no_sanitizer_spoke(text)
        return text

    def url(self, site, service):
        return self.sites[site]["services"][service]

    def own_url(self, site, service):
        """The service itself, without an agent before it."""
        port = urllib.parse.urlsplit(self.url(site, service)).port
        return f"http://127.0.0.1:{port + 10}"

    def peer_address(self, site):
        """Where it is met by other agents."""
        return f"127.0.0.1:{urllib.parse.urlsplit(self.sites[site]['api']).port + 4}"

    def state(self, site):
        return self.folder / site / "state"

    def metric(self, site, name):
        text = ask(self.sites[site]["api"] + "/cheops/v1/metrics").bytes.decode()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def requests(self, site, service):
        """What reached the service: [{method, path, status, headers}]."""
        lines = (self.folder / site / f"{service}.requests").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def pid_of(self, site, part):
        """The process of a part of a site: `compute`, `image`, `network` or `agent`."""
        for pid, arguments in self.children.items():
            if arguments[1] == part and any(f"/{site}/" in argument for argument in arguments):
                return pid
        raise AssertionError(f"no {part} at {site}: {self.children}")

    def ended(self):
        """Its exit status, once it is there, and all that it started is gone."""
        status = self.process.wait(BOUND_S)
        self.rest = self.process.stdout.read().decode()
        self.process.stdout.close()
        for pid in getattr(self, "children", {}):
            wait_for(lambda pid=pid: not is_running(pid), f"the end of process {pid}")
        return status

    def stop(self, number=signal.SIGTERM):
        if self.process.returncode is None:
            self.process.send_signal(number)
            try:
                assert self.ended() == 0, self.stderr()
            finally:
                self.process.kill()  # where it has not ended: then the rest goes with it
        for log in self.folder.glob("*/*.log"):
            no_sanitizer_spoke(log.read_text(encoding="utf-8", errors="replace"))
