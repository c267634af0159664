"""Starts the sample services and talks to them: the standard library only.

The executable is $CHEOPS_SAMPLE, or cheops-sample beside $CHEOPS, or build/cheops-sample.
"""
import concurrent.futures
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import urllib.parse
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHEOPS = pathlib.Path(os.environ.get("CHEOPS", ROOT / "build" / "cheops")).resolve()
EXECUTABLE = pathlib.Path(os.environ.get("CHEOPS_SAMPLE", CHEOPS.parent / "cheops-sample")).resolve()
BOUND_S = 60  # of everything that is waited for; generous, because the sanitizers are slow
NOT_OURS = ("SITE_NAME", "FORWARD", "IMAGE_URL", "COMPUTE_URL", "NETWORK_URL")


def environment(**changes):
    made = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    made["ASAN_OPTIONS"] = made.get("ASAN_OPTIONS", "") + ":exitcode=99"
    return {**made, **changes}


def run(*arguments, **env):
    """For what ends by itself."""
    return subprocess.run([EXECUTABLE, *map(str, arguments)], env=environment(**env), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=BOUND_S, check=False)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.bytes = response.read()

    @property
    def json(self):
        assert self.headers["Content-Type"] == "application/json", self
        return json.loads(self.bytes)

    @property
    def error(self):
        """The message of an error, having checked its shape."""
        error = self.json["error"]
        assert list(self.json) == ["error"] and error["code"] == self.status and error["message"], self
        return error["message"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.bytes[:500]!r}"


def ask(url, method, path, body=None, headers=None, json_body=None):
    """One request on a connection of its own."""
    headers = dict(headers or {})
    if json_body is not None:
        body = json.dumps(json_body)
        headers.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=BOUND_S)
    try:
        connection.request(method, path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


class Service:
    """One instance, which listens once this is made."""

    def __init__(self, name, data, *arguments, **env):
        self.name = name
        self.data = data
        self.lines = []
        self.changed = threading.Condition()
        command = [EXECUTABLE, name, "--listen", "127.0.0.1:0", "--data", data, *arguments]
        self.process = subprocess.Popen(list(map(str, command)), env=environment(**env), stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        with self.changed:
            self.changed.wait_for(lambda: self.lines, BOUND_S)
        match = re.fullmatch(rf"cheops-sample: {name} at .* listens on (http://\S+)\n", "".join(self.lines[:1]))
        if match is None:
            self.kill()
            raise AssertionError(f"{name} does not listen: {''.join(self.lines)}")
        self.url = match.group(1)

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def ask(self, method, path, body=None, headers=None, json_body=None):
        return ask(self.url, method, path, body, headers, json_body)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, json_body, **options):
        return self.ask("POST", path, json_body=json_body, **options)

    def memory_kib(self):
        """The most memory that it had so far."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))

    def ended(self):
        """Its exit status, once it is there; a sanitizer's complaint fails the test."""
        try:
            status = self.process.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(BOUND_S)
        self.process.stderr.close()
        text = "".join(self.lines)
        assert "Sanitizer" not in text and "runtime error:" not in text, text
        return status

    def stop(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.ended()
            assert status == 0, f"{self.name} ended with {status}: {''.join(self.lines)}"

    def kill(self):
        self.process.kill()
        self.ended()


class Recorder:
    """Plays a service: notes each request, and answers what `answer(method, path)` returns: (status, bytes)."""

    def __init__(self, answer):
        self.requests = []  # (method, path, [(name, value)])
        self.connections = 0
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                recorder.connections += 1

            def handle_any(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                recorder.requests.append((self.command, self.path, self.headers.items()))
                status, body = answer(self.command, self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def headers_of(self, number):
        """The headers of one request, names in small letters."""
        return {name.lower(): value for name, value in self.requests[number][2]}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


# ---- what tests of them share -------------------------------------------------------------------------------------------


def make_image(image, data=None, **members):
    record = image.post("/images", {"name": "debian", **members}).json
    if data is not None:
        assert image.ask("PUT", f"/images/{record['id']}/file", data).status == 200
    return record["id"]


def is_uuid4(text):
    return str(uuid.UUID(text)) == text and uuid.UUID(text).version == 4


def at_once(count, work):
    """work(0) to work(count - 1), all at the same time; their results."""
    barrier = threading.Barrier(count)

    def begin(number):
        barrier.wait(BOUND_S)
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count), timeout=2 * BOUND_S))


def wait_until(condition):
    """Asks again and again, without sleeping, up to a bound."""
    done = threading.Event()
    bound = threading.Timer(BOUND_S, done.set)
    bound.start()
    try:
        while not condition():
            assert not done.wait(0.01), "waited in vain"
    finally:
        bound.cancel()
