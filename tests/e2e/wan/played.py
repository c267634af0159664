"""A service that a test plays at a site of the lab: it counts what it is asked, and can be made to wait."""
import contextlib
import http.server
import json
import select
import socket
import threading

from wan_lab import BOUND_S, agents_of_lab, wait_for


class Played:
    """In the place of a service of the sample. Answers with the name of its site; `hold()`: not until `release()`."""

    def __init__(self, lab, site, service="compute", status=None):
        self.site = site
        self.status = status  # of its answers; None: 200 or 201
        self.requests = []  # (method, path, body)
        self.given_up = 0  # requests whose asker went away while they were held
        self.gate = threading.Event()
        self.gate.set()
        lab.kill(site, service)
        listener = lab.socket(site)
        listener.settimeout(None)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wait_for(lambda: self.bind(listener, agents_of_lab.service_port(service)), f"the port of {service} at {site}")
        listener.listen(64)
        self.server = http.server.ThreadingHTTPServer(listener.getsockname(), handler_of(self), bind_and_activate=False)
        self.server.daemon_threads = True
        self.server.socket.close()
        self.server.socket = listener
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @staticmethod
    def bind(listener, port):
        with contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return True
        return False

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

    # ---- what tests do with it

    def forget(self):
        self.requests, self.given_up = [], 0

    def hold(self):
        self.gate.clear()

    def release(self):
        self.gate.set()

    def runs(self, method=None):
        return sum(method in (None, asked) for asked, _, _ in self.requests)

    def wait_asked(self, count=1):
        wait_for(lambda: len(self.requests) >= count, f"{count} requests at {self.site}")

    def wait_given_up(self, count=1):
        wait_for(lambda: self.given_up >= count, f"{self.site} to be left alone")


def handler_of(played):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path != "/healthz":
                played.requests.append((self.command, self.path, body))
                if not self.wait_for_gate():
                    played.given_up += 1
                    self.close_connection = True
                    return
            text = json.dumps({"service": "compute", "site": played.site}).encode()
            self.send_response(played.status or (201 if self.command == "POST" else 200))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve

        def wait_for_gate(self):
            """False: who asked has gone."""
            for _ in range(BOUND_S * 50):
                if played.gate.wait(0.02):
                    return True
                if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    return False
            return True

        def log_message(self, *_):
            pass

        def handle(self):
            with contextlib.suppress(OSError):
                super().handle()

    return Handler
