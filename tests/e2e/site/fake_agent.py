"""An agent's API that answers what a test wants, in the clear or by TLS; and join tokens made by hand (docs/protocol/join.md)."""
import base64
import hashlib
import json
import socket
import ssl
import threading
import time

BOUND_S = 30


class FakeAgent:
    """Answers each request with the next of `answers`, the last one for ever. A context manager.

    An answer is bytes, sent as they are; or (status, object), sent as JSON; or a function of the request's body that gives
    one of these. `requests` has (method, target, object or None) of each.
    """

    def __init__(self, *answers, tls=None):
        self.answers = list(answers)
        self.requests = []
        self.tls = tls
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(BOUND_S)

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(BOUND_S)
            try:
                with (self.tls.wrap_socket(connection, server_side=True) if self.tls else connection) as one:
                    self.answer(one)
            except OSError:
                pass

    def answer(self, connection):
        text = b""
        while b"\r\n\r\n" not in text:
            piece = connection.recv(65536)
            if not piece:
                return
            text += piece
            if not text[:1].isalpha():  # no HTTP
                return
        head, _, body = text.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
        while len(body) < length:
            body += connection.recv(65536)
        method, target, _ = lines[0].split(" ")
        asked = json.loads(body) if body else None
        self.requests.append((method, target, asked))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, tuple):
            content = json.dumps(answer[1]).encode()
            answer = http(content, answer[0])
        connection.sendall(answer)
        if self.tls:
            connection.unwrap()


def http(content, status=200, kind="application/json"):
    return (f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
            "Connection: close\r\n\r\n").encode() + content


def problem(status, kind, title, detail):
    return status, {"type": f"urn:cheops:problem:{kind}", "title": title, "status": status, "detail": detail}


def tls_of(state):
    """What an agent with that folder shows: its certificate, and the root behind it."""
    chain = state / "chain.pem"
    chain.write_text((state / "site.crt").read_text() + (state / "root.crt").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(chain, state / "site.key")
    return context


def fingerprint(pem):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest()


def token(root_pem, port, name="", ends_in_s=600):
    body = (b"s" * 16 + fingerprint(root_pem) + int((time.time() + ends_in_s) * 1000).to_bytes(8, "big") + bytes([4])
            + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big") + bytes([len(name.encode())]) + name.encode())
    body += hashlib.sha256(b"cheops join token 1" + body).digest()[:4]
    return "cheops1_" + base64.urlsafe_b64encode(body).decode().rstrip("=")
