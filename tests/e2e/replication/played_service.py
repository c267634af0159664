"""A service of one site that a test plays: HTTP with JSON in and out, in threads of this process."""
import http.server
import json
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return self.read_chunks()
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, made):
        data = json.dumps(made).encode() if made is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        self.server.service.serve(self, self.read_body())

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve


class PlayedService:
    """Has a `url`, and stops. Those who inherit have handle(), which gives a status, and what is answered as JSON (None: nothing);
    or serve(), where that is not enough."""

    def __init__(self):
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.service = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def serve(self, handler, body):
        with self.lock:
            status, made = self.handle(handler.command, handler.path, json.loads(body) if body else {})
        handler.answer(status, made)
