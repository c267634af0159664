"""What the proxy's tests are made of: raw sockets on both sides of a real agent.

    client (Wire)  ->  front | agent | link  ->  Service (scripted, one thread per connection, a Wire each)

A Wire reads HTTP with a parser of its own, which is stricter than the RFC demands: what the agent sends has to pass it.
Nothing here waits for time to pass; each wait is for an event and has a bound (PATIENCE_S).
"""
import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from ports import free_port
from processes import hold

PATIENCE_S = float(os.environ.get("CHEOPS_PATIENCE_S", "30"))

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e\x80-\xff]*)")


class Broken(Exception):
    """A message that ends before it is complete, or is not HTTP."""


def wait_until(condition, what="a condition", patience_s=PATIENCE_S):
    """Polls; for what tells nobody when it changes, such as a counter or a process' memory."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come about in {patience_s} s")


# ---- messages -----------------------------------------------------------------------------------------------------------


class Message:
    """A message as it was on the wire: first line, fields (bytes, in order), body without framing, trailer fields."""

    def __init__(self, line, fields):
        self.line = line
        self.fields = fields
        self.body = b""
        self.trailers = []
        self.chunks = []  # sizes

    def __repr__(self):
        return f"<{self.line!r} {self.fields} {self.body[:80]!r} {self.trailers}>"

    def all(self, name):
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def one(self, name):
        """The field's value, which must be there once at the most; None if it is not."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} is there {len(values)} times: {self}"
        return values[0] if values else None

    def tokens(self, name):
        return [token.strip().lower() for value in self.all(name) for token in value.split(b",")]

    @property
    def status(self):
        return int(self.line.split(b" ")[1])

    @property
    def method(self):
        return self.line.split(b" ")[0]

    @property
    def target(self):
        return self.line.split(b" ")[1]

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def problem(self):
        """The type of a problem document, without its prefix."""
        assert self.one(b"Content-Type") == b"application/problem+json", self
        assert self.json["status"] == self.status and self.json["title"], self
        return self.json["type"].removeprefix("urn:cheops:problem:")

    @property
    def closes(self):
        return b"close" in self.tokens(b"Connection")


def parse_fields(lines):
    fields = []
    for line in lines:
        match = FIELD.fullmatch(line)
        if not match or match.group(2) != match.group(2).strip(b" \t"):
            raise Broken(f"not a field: {line!r}")
        fields.append((match.group(1), match.group(2)))
    return fields


class Wire:
    """A connection, and the bytes that were read ahead on it."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE_S)
        self.ahead = b""
        self.reset = False  # it ended with a reset

    @classmethod
    def to(cls, port, receive_buffer=None, nodelay=True, make_socket=socket.socket):
        sock = make_socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(PATIENCE_S)
        sock.connect(("127.0.0.1", port))
        if nodelay:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, *pieces):
        for piece in pieces:
            self.sock.sendall(piece)

    def end(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def abort(self):
        """Closes with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # -- bytes

    def more(self, most=65536):
        """Reads some; False at the end. A reset is an end too, and is noted."""
        try:
            piece = self.sock.recv(most)
        except (ConnectionResetError, BrokenPipeError):
            self.reset = True
            piece = b""
        self.ahead += piece
        return bool(piece)

    def take(self, length):
        while len(self.ahead) < length:
            if not self.more():
                raise Broken(f"ended after {len(self.ahead)} of {length} bytes: {self.ahead[-80:]!r}")
        taken, self.ahead = self.ahead[:length], self.ahead[length:]
        return taken

    def until(self, mark):
        while mark not in self.ahead:
            if not self.more():
                raise Broken(f"ended before {mark!r}: {self.ahead[-200:]!r}")
        place = self.ahead.index(mark) + len(mark)
        return self.take(place)

    def to_end(self):
        while self.more():
            pass
        taken, self.ahead = self.ahead, b""
        return taken

    def has_ended(self):
        """Waits for the end, before which nothing may come."""
        assert self.ahead == b"" and not self.more(), f"not an end: {self.ahead!r}"
        return True

    # -- messages

    def head(self):
        text = self.until(b"\r\n\r\n")
        lines = text[:-4].split(b"\r\n")
        if b"\n" in text.replace(b"\r\n", b"") or b"\r" in text.replace(b"\r\n", b"") or b"\0" in text:
            raise Broken(f"bare CR or LF, or NUL: {text!r}")
        return Message(lines[0], parse_fields(lines[1:]))

    def chunked(self, message):
        while True:
            line = self.until(b"\r\n")[:-2]
            if not re.fullmatch(rb"[0-9a-f]+", line):
                raise Broken(f"not a chunk's size: {line!r}")
            size = int(line, 16)
            if size == 0:
                break
            message.chunks.append(size)
            message.body += self.take(size)
            if self.take(2) != b"\r\n":
                raise Broken("a chunk without its end")
        while (line := self.until(b"\r\n")[:-2]) != b"":
            message.trailers += parse_fields([line])

    def body(self, message, until_close=False):
        length, coding = message.one(b"Content-Length"), message.one(b"Transfer-Encoding")
        assert length is None or coding is None, f"two framings: {message}"
        if coding is not None:
            assert coding == b"chunked", message
            self.chunked(message)
        elif length is not None:
            assert re.fullmatch(rb"[0-9]+", length), message
            message.body = self.take(int(length))
        elif until_close:
            message.body = self.to_end()
            if self.reset:
                raise Broken(f"reset after {len(message.body)} bytes")

    def request(self):
        """None at the end of the connection."""
        if not self.ahead and not self.more():
            return None
        message = self.head()
        if not re.fullmatch(rb"[A-Z-]+ [\x21-\x7e]+ HTTP/1\.1", message.line):
            raise Broken(f"not a request line: {message.line!r}")
        self.body(message)
        return message

    def response_head(self):
        message = self.head()
        if not re.fullmatch(rb"HTTP/1\.1 [1-9][0-9][0-9] [\t\x20-\x7e\x80-\xff]*", message.line):
            raise Broken(f"not a status line: {message.line!r}")
        return message

    def response(self, method=b"GET", interim=None):
        """The next final response. Interim ones are appended to `interim`, or must not be."""
        message = self.response_head()
        while message.status < 200 and message.status != 101:
            assert interim is not None, f"an interim response: {message}"
            assert not message.all(b"Content-Length") and not message.all(b"Transfer-Encoding"), message
            interim.append(message)
            message = self.response_head()
        if message.status in (101, 204, 304) or method == b"HEAD":
            return message
        self.body(message, until_close=True)
        return message


def request(method="GET", target="/", body=None, host="service.example", chunked=None, **fields):
    """The bytes of a request. Fields are keyword arguments, with `_` for `-`."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if chunked is not None:
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in chunked) + b"0\r\n\r\n"
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def response(status=200, body=b"ok", **fields):
    lines = [f"HTTP/1.1 {status} Fine", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def acquaint(wire, **fields):
    """Two answers on one connection: from now on the agent knows that the service keeps them, and uses them for all that it is asked."""
    for _ in range(2):
        wire.send(request(**fields))
        assert wire.response().status == 200


# ---- a service ----------------------------------------------------------------------------------------------------------


class Service:
    """Plays a service. `script(wire)` handles a connection; the usual one answers each request with `answer(request)`.

    requests   what was received whole, of all connections, in the order in which it was complete
    partial    connections that broke off in the middle of a request
    accepted   number of connections
    """

    def __init__(self, port=None, answer=None, script=None, backlog=512, make_socket=socket.socket):
        self.answer = answer or (lambda message: response())
        self.script = script or self.converse
        self.listener = make_socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = port or free_port()
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(backlog)
        self.changed = threading.Condition()
        self.forget()
        self.wires = []
        self.failures = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    address = property(lambda self: f"127.0.0.1:{self.port}")

    def forget(self):
        with self.changed:
            self.requests, self.partial, self.accepted, self.ended = [], [], 0, 0

    def usual(self):
        self.answer, self.script = (lambda message: response()), self.converse

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = Wire(sock)
            with self.changed:
                self.accepted += 1
                self.wires.append(wire)
                self.changed.notify_all()
            threading.Thread(target=self.run, args=(wire,), daemon=True).start()

    def run(self, wire):
        try:
            self.script(wire)
        except Broken as broken:
            with self.changed:
                self.partial.append(str(broken))
                self.changed.notify_all()
        except OSError:
            pass
        except BaseException as failure:  # told to the test at its end
            self.failures.append(failure)
            raise
        finally:
            wire.close()
            with self.changed:
                self.ended += 1
                self.wires.remove(wire)
                self.changed.notify_all()

    def note(self, message):
        with self.changed:
            self.requests.append(message)
            self.changed.notify_all()

    def converse(self, wire):
        while (message := wire.request()) is not None:
            self.note(message)
            answer = self.answer(message)
            if answer is None:
                return
            wire.send(answer)

    def wait(self, condition, what="something at the service", patience_s=PATIENCE_S):
        with self.changed:
            assert self.changed.wait_for(condition, patience_s), f"{what} did not come about: {self.requests} {self.partial}"

    def wait_requests(self, count):
        self.wait(lambda: len(self.requests) >= count, f"request {count}")
        return self.requests[count - 1]

    def drop_connections(self, abort=False):
        with self.changed:
            wires = list(self.wires)
        for wire in wires:
            if abort:
                wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                wire.close()
            else:
                with contextlib.suppress(OSError):
                    wire.sock.shutdown(socket.SHUT_RDWR)

    def stop_listening(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE_S)

    def stop(self):
        self.stop_listening()
        self.drop_connections()
        assert not self.failures, self.failures


# ---- an agent -----------------------------------------------------------------------------------------------------------


class Agent:
    """`cheops agent`, started and ready; or not, if wait is False. Its configuration is a dictionary, which may be changed
    and written again for a reload. Where it runs in a network of its own, `make_socket` makes sockets there."""

    def __init__(self, executable, directory, config, wait=True, env=None, preexec=None, name=None,
                 make_socket=socket.socket, arguments=()):
        self.make_socket = make_socket
        self.told = False  # to end
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config = config
        self.name = name or config["site"]
        self.path = self.directory / f"{self.name}.yaml"
        self.log_path = self.directory / f"{self.name}.log"
        self.write()
        self.notify_path = str(self.directory / f"{self.name}.notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified = queue.Queue()
        if len(self.notify_path) < 100:
            self.notify.bind(self.notify_path)
        else:
            self.notify_path = f"@cheops-test-{os.getpid()}-{id(self)}"
            self.notify.bind("\0" + self.notify_path[1:])
        threading.Thread(target=self.listen_to_notifications, daemon=True).start()
        environment = {**os.environ, "NOTIFY_SOCKET": self.notify_path, **(env or {})}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([str(executable), "agent", "-c", str(self.path), *arguments],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                            preexec_fn=preexec)
        if wait:
            self.wait_notified("READY=1")

    pid = property(lambda self: self.process.pid)
    api_port = property(lambda self: int(self.config["api"].split(":")[1]))

    def port(self, service="service"):
        return int(self.config["services"][service]["front"].split(":")[1])

    def write(self, text=None):
        text = json.dumps(self.config) if text is None else text
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.path)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def listen_to_notifications(self):
        """All the time: an agent that is not listened to would wait for us."""
        with contextlib.suppress(OSError):
            while text := self.notify.recv(4096):
                for line in text.decode().split("\n"):
                    self.notified.put(line)

    def wait_notified(self, wanted):
        """Messages to systemd up to the wanted one."""
        seen = []
        while wanted not in seen:
            try:
                seen.append(self.notified.get(timeout=PATIENCE_S))
            except queue.Empty:
                raise AssertionError(f"no {wanted} but {seen}; status {self.process.poll()}: {self.log}") from None
        return seen

    def client(self, service="service", **options):
        return Wire.to(self.port(service), make_socket=self.make_socket, **options)

    def ask(self, method="GET", target="/", service="service", **fields):
        """One request on a connection of its own."""
        with self.client(service) as wire:
            wire.send(request(method, target, **fields))
            return wire.response(method.encode())

    def api(self, target, method="GET"):
        """Status and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api_port, timeout=PATIENCE_S)
        connection.sock = Wire.to(self.api_port, make_socket=self.make_socket).sock
        try:
            connection.request(method, target)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def counter(self, name):
        for line in self.api("/cheops/v1/metrics")[1].splitlines():
            if line.startswith(name + " "):
                return int(line.split()[1])
        raise AssertionError(f"no counter {name}")

    def descriptors(self):
        """How many it has open. Only root may look at those of an agent without --allow-core."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory_kb(self, key="VmRSS"):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise AssertionError(key)

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number):
        if number == signal.SIGSTOP:
            hold(self.process.pid)
        else:
            self.process.send_signal(number)

    def reload(self, by_signal=True):
        """True if the file was applied."""
        if not by_signal:
            return self.api("/cheops/v1/reload", "POST")[0] == 200
        before = self.log.count("configuration reloaded")
        while not self.notified.empty():  # of reloads by the API
            self.notified.get()
        self.signal(signal.SIGHUP)
        self.wait_notified("RELOADING=1")
        self.wait_notified("READY=1")
        return self.log.count("configuration reloaded") > before

    def wait_exit(self):
        status = self.process.wait(PATIENCE_S)
        assert "Sanitizer" not in self.log and "runtime error:" not in self.log, self.log
        return status

    def kill(self):
        """At once, whatever state it is in."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
            self.signal(signal.SIGCONT)
        self.process.wait(PATIENCE_S)

    def end(self):
        """Tells it to end, once: told twice, it would not wait for requests that are under way."""
        if not self.told and self.process.poll() is None:
            self.told = True
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)

    def stop(self):
        """Ends it; it has to end well."""
        try:
            self.end()
            if self.told:
                try:
                    self.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    self.kill()
                    raise AssertionError(f"{self.name} did not stop: {self.log}") from None
                assert self.process.returncode == 0, f"status {self.process.returncode}: {self.log}"
            assert "Sanitizer" not in self.log and "runtime error:" not in self.log, self.log
        finally:
            with contextlib.suppress(OSError):
                self.notify.shutdown(socket.SHUT_RDWR)
            self.notify.close()


def describe(site="Site1", services=None, threads=1, **others):
    """A configuration. `services`: name to list of ports of instances, or to a dictionary with more."""
    made = {}
    for name, what in (services or {}).items():
        entry = dict(what) if isinstance(what, dict) else {"instances": what}
        entry["instances"] = [f"127.0.0.1:{port}" if isinstance(port, int) else port for port in entry["instances"]]
        entry.setdefault("front", f"127.0.0.1:{free_port()}")
        made[name] = entry
    return {"site": site, "api": f"127.0.0.1:{free_port()}", "peer": f"127.0.0.1:{free_port()}", "state": f"{site}.state",
            "threads": threads, "services": made, **others}
