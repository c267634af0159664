"""Sites with an agent and an image service each, started one by one: a test may end an agent and start it again, which a demo
does not survive."""
import contextlib
import hashlib
import http.client
import json
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

for neighbour in (".", "demo"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / neighbour))

import demo_process  # noqa: E402
import mesh_maker  # noqa: E402
from demo_process import ask, wait_for  # noqa: E402, F401
from processes import hold  # noqa: E402

CHEOPS = demo_process.CHEOPS
SAMPLE = CHEOPS.parent / "cheops-sample"
IS_SANITIZED = b"__asan_init" in CHEOPS.read_bytes() or b"__tsan_init" in CHEOPS.read_bytes()
PIECE = 1 << 20
LATE = ("http_response_timeout", "connection_timeout", "destination_unavailable")


def heard(read):
    """The answer of read(), once none of the sites is missing in it because it did not answer in time: an agent that does not get its
    turn for a second is taken for one that hangs, and rightly so. Whatever else is said to be missing is for the test to judge."""
    def try_it():
        answer = read()
        partial = answer.header("Cheops-Partial") or ""
        return None if any(f";reason={reason}" in partial for reason in LATE) else answer
    return wait_for(try_it, "all sites to answer")


class Site:
    """Its API, the port for other agents, the front of its image service, and the service itself are next to each other."""

    def __init__(self, folder, name, base, application="sample"):
        self.folder, self.name = folder / name, name
        self.folder.mkdir(parents=True)
        self.front, self.own = f"http://127.0.0.1:{base + 2}", f"http://127.0.0.1:{base + 11}"
        self.config = {"site": name, "api": f"127.0.0.1:{base}", "peer": f"127.0.0.1:{base + 1}", "threads": 1,
                       "state": str(self.folder / "state"), "application": application, "timeouts": {"stop": "3s"},
                       "services": {"image": {"front": f"127.0.0.1:{base + 2}", "instances": f"127.0.0.1:{base + 11}"}}}
        self.path = self.folder / "agent.yaml"
        self.path.write_text(json.dumps(self.config), encoding="utf-8")
        self.agent = None
        self.service = self._run("service", SAMPLE, "image", "--listen", f"127.0.0.1:{base + 11}", "--data",
                                 self.folder / "image")

    def _run(self, part, *command):
        with open(self.folder / f"{part}.log", "ab") as log:
            return subprocess.Popen(list(map(str, command)), env=demo_process.environment(), stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def start(self):
        self.agent = self._run("agent", CHEOPS, "agent", "-c", self.path)
        wait_for(self._is_ready, f"{self.name} to be ready: {self.log()}")

    def _is_ready(self):
        assert self.agent.poll() is None, self.log()
        try:
            return mesh_maker.call(self, "GET", "/cheops/v1/health")[0] == 200
        except OSError:
            return False

    def log(self):
        return (self.folder / "agent.log").read_text(encoding="utf-8", errors="replace")

    def kill(self):
        """Without a word, as a loss of power would."""
        self.agent.kill()
        demo_process.did_not_crash(self.agent.wait(demo_process.BOUND_S), self.log())

    def stop(self):
        was_running = self.agent and self.agent.poll() is None
        for process in (self.agent, self.service):
            if process and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(demo_process.BOUND_S)
        if was_running:
            assert self.agent.returncode == 0, f"status {self.agent.returncode}: {self.log()}"
        if self.agent:
            demo_process.did_not_crash(self.agent.returncode, self.log())

    def pause(self):
        hold(self.agent.pid)

    def go_on(self):
        self.agent.send_signal(signal.SIGCONT)

    def limit_files(self, size):
        """How long a file may get for the agent: as if the disk were full beyond that."""
        hard = resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE, (size, hard))

    def blobs(self):
        """{name: bytes} of what it keeps of long bodies."""
        found = {}
        for path in (self.folder / "state" / "store" / "blobs").iterdir():
            try:
                found[path.name] = path.stat().st_size
            except FileNotFoundError:
                continue
        return found

    def metric(self, name):
        text = ask(f"http://{self.config['api']}/cheops/v1/metrics").bytes.decode()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def peak_bytes(self):
        """The most memory that the agent ever had."""
        status = pathlib.Path(f"/proc/{self.agent.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def stop_all(sites):
    """One that does not stop well keeps none of the others from being stopped."""
    with contextlib.ExitStack() as stops:
        for site in sites:
            stops.callback(site.stop)


class Lab:
    def __init__(self, folder, count=3, application="sample"):
        base = demo_process.free_base(count)
        self.sites = [Site(folder, f"Site{i + 1}", base + 100 * i, application) for i in range(count)]
        try:
            mesh_maker.init(self.sites[0].path)
            self.sites[0].start()
            for site in self.sites[1:]:
                mesh_maker.join(site, self.sites[0])
                site.start()
            mesh_maker.wait_reachable(self.sites)
        except BaseException:
            self.stop()
            raise

    def __getitem__(self, number):
        return self.sites[number - 1]

    def stop(self):
        stop_all(self.sites)

    @property
    def all(self):
        return " & ".join(site.name for site in self.sites)

    def wait_no_blobs(self):
        for site in self.sites:
            wait_for(lambda site=site: not site.blobs(), f"{site.name} to have no body left: {site.blobs()}")


# ---- Content that nobody has to hold --------------------------------------------------------------------------------------


def content(size, seed):
    """Pieces that do not repeat themselves."""
    for at in range(0, size, PIECE):
        block = hashlib.sha256(f"{seed} {at}".encode()).digest()
        yield (block * (PIECE // len(block)))[:min(PIECE, size - at)]


def digest(pieces):
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.hexdigest()


def upload(url, size, seed, chunked=False, headers=None):
    """A PUT as it is sent by who reads from a disk. Its answer."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=demo_process.BOUND_S)
    fields = {"Content-Type": "application/octet-stream", **(headers or {})}
    if not chunked:
        fields["Content-Length"] = str(size)
    try:
        connection.request("PUT", parts.path, content(size, seed), fields, encode_chunked=chunked)
        answer = connection.getresponse()
        return demo_process.Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def download(url):
    """Status and digest of what is there."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=demo_process.BOUND_S)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return answer.status, digest(iter(lambda: answer.read(PIECE), b""))
    finally:
        connection.close()


def leave_in_the_middle(url, size, sent):
    """A client that promises so many bytes, sends some, and goes."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=demo_process.BOUND_S)
    connection.putrequest("PUT", parts.path)
    connection.putheader("Content-Length", str(size))
    connection.endheaders()
    for piece in content(sent, "left"):
        connection.send(piece)
    return connection


def when(condition, what):
    """As wait_for(), looking as often as it can: for what is over soon."""
    until = time.monotonic() + demo_process.BOUND_S
    while not (found := condition()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        threading.Event().wait(0.0005)
    return found
