"""Three sites whose image services send what a test wants, byte by byte, and a client that sees trailers."""
import json
import socket
import threading
import urllib.parse

import mesh as mesh_of_ours
from demo_process import BOUND_S
from played_service import PlayedService

SITES = ("Site1", "Site2", "Site3")
ALL = " & ".join(SITES)


def images(*names, **more):
    """The body of a list as the sample's image service has it."""
    return json.dumps({"images": [{"id": name, "name": name} for name in names], **more}).encode()


class ListService(PlayedService):
    """`answer` is a body, or (status, body), or (status, {header: value}, body), or a function that is given the handler and does all."""

    def __init__(self, site):
        self.site = site
        self.answer = images()
        self.paths = []
        self.bodies = []
        self.seen = []  # headers of each request
        super().__init__()

    def serve(self, handler, body):
        self.paths.append(handler.path)
        self.bodies.append(body)
        self.seen.append(dict(handler.headers))
        answer = self.answer
        try:
            if callable(answer):
                answer(handler)
                return
            status, headers, body = 200, {"Content-Type": "application/json"}, answer
            if isinstance(answer, tuple):
                status, body = answer[0], answer[-1]
                headers = {**headers, **(answer[1] if len(answer) == 3 else {})}
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass


class Response:
    def __init__(self, status, headers, body, trailers):
        self.status, self.headers, self.body, self.trailers = status, headers, body, trailers

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def names(self):
        return [each["name"] for each in self.json["images"]]

    @property
    def partial(self):
        """What the head says is missing."""
        return self.headers.get("cheops-partial")

    @property
    def problem(self):
        assert self.headers["content-type"] == "application/problem+json", self.body
        return self.json

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:600]!r} {self.trailers}"


def _fields(file):
    found = {}
    while (line := file.readline().decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = line.partition(":")
        known = found.get(name.lower())
        found[name.lower()] = value.strip() if known is None else f"{known}, {value.strip()}"
    return found


def connect(url, path, headers, method="GET", version="1.1"):
    """A connection on which the request was sent."""
    parts = urllib.parse.urlsplit(url)
    sock = socket.create_connection((parts.hostname, parts.port), timeout=BOUND_S)
    lines = [f"{method} {path} HTTP/{version}", f"Host: {parts.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return sock


def read(sock, method="GET"):
    """The whole answer, having checked its framing."""
    with sock, sock.makefile("rb") as file:
        status = int(file.readline().split()[1])
        headers = _fields(file)
        trailers = {}
        if method == "HEAD":
            body = file.read()
            assert body == b""
        elif headers.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int(file.readline(), 16):
                pieces.append(file.read(size))
                assert len(pieces[-1]) == size and file.read(2) == b"\r\n"
            trailers = _fields(file)
            body = b"".join(pieces)
        elif "content-length" in headers:
            body = file.read(int(headers["content-length"]))
        else:
            body = file.read()
        return Response(status, headers, body, trailers)


class Lab:
    def __init__(self, folder, application="sample", sites=SITES, **more):
        self.mesh = mesh_of_ours.Mesh(folder)
        self.sites = {site: self.mesh.keep(ListService(site)) for site in sites}
        timeouts = {"connect": "2s", "answer": "30s", "idle": "30s"}
        self.agents = {site: self.mesh.agent(site, {"image": service.url}, application=application,
                                             **{"timeouts": timeouts, **more})
                       for site, service in self.sites.items()}
        self.mesh.join(*self.agents.values())
        for service in self.sites.values():
            service.paths.clear()

    def stop(self):
        self.mesh.stop()

    def say(self, **answers):
        for site, answer in answers.items():
            self.sites[site].answer = answer

    def get(self, path="/images", scope=ALL, method="GET", version="1.1", **headers):
        sent = {"Scope": scope, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return read(connect(self.agents["Site1"].url("image"), path, sent, method, version), method)
