"""Agents with any configuration, before services that are real or played: what a demo would not do."""
import contextlib
import http.server
import json
import pathlib
import signal
import socket
import subprocess
import threading

import mesh_maker
import sample_services
from demo_process import BOUND_S, CHEOPS, Answer, ask, did_not_crash, environment, wait_for
from ports import free_port
from processes import hold


class Played:
    """A service that a test plays: `answer(headers)` of who derives from it gives status and body, JSON, of each GET."""

    def __init__(self):
        played = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                status, body = played.answer(self.headers)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, headers):
        raise NotImplementedError

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Agent:
    """`process` are options for subprocess.Popen."""

    def __init__(self, folder, config, *arguments, **process):
        self.config = config
        self.crashed = False  # by the test
        self.path = folder / f"{config['site']}.yaml"
        self.log = folder / f"{config['site']}.log"
        self.path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([CHEOPS, "agent", "-c", self.path, *arguments], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=environment(), **process)
        wait_for(self.is_ready, f"the agent of {config['site']}")

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        return "ready" in self.log.read_text(encoding="utf-8")

    def url(self, service):
        return "http://" + self.config["services"][service]["front"]

    def ask_peer(self, path, state=None, method="GET", headers=None):
        """At the port for agents, as the site whose state that is; None: as a stranger."""
        return Answer(*mesh_maker.ask_peer(self.config["peer"], state, method, path, headers))

    def metric(self, name):
        text = ask(f"http://{self.config['api']}/cheops/v1/metrics").bytes.decode()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def signal(self, number):
        if number == signal.SIGSTOP:
            hold(self.process.pid)
        else:
            self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        did_not_crash(self.process.wait(BOUND_S), self.log.read_text(encoding="utf-8"))

    def stop(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                status = self.process.wait(BOUND_S)
                assert status == 0, f"status {status}: {self.log.read_text(encoding='utf-8')}"
            finally:
                self.process.kill()
        if not self.crashed:
            did_not_crash(self.process.returncode, self.log.read_text(encoding="utf-8"))


class Mesh:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.stops = contextlib.ExitStack()  # one that does not stop well keeps none of the others from being stopped

    def stop(self):
        self.stops.close()

    def keep(self, thing):
        self.stops.callback(thing.stop)
        return thing

    def service(self, name, site, **env):
        folder = self.folder / f"{site}-{name}"
        return self.keep(sample_services.Service(name, folder, "--access-log", folder.with_suffix(".requests"),
                                                 SITE_NAME=site, **env))

    def recorder(self, answer=lambda method, path: (200, b"{}")):
        return self.keep(sample_services.Recorder(answer))

    def config(self, site, services, **more):
        """services: {name: URL of the instance}"""
        made = {"site": site, "api": f"127.0.0.1:{free_port()}", "threads": 1, "peer": f"127.0.0.1:{free_port()}",
                "state": str(self.folder / f"{site}.state"),
                "services": {name: {"front": f"127.0.0.1:{free_port()}", "instances": url.removeprefix("http://")}
                             for name, url in services.items()}}
        return {**made, **more}

    def agent(self, site, services, **more):
        """One that is alone, until it is joined with others."""
        return self.keep(Agent(self.folder, self.config(site, services, **more)))

    def again(self, agent):
        """The same, after its end."""
        return self.keep(Agent(self.folder, agent.config))

    def join(self, *agents):
        """Makes them one mesh; the first one has the authority."""
        mesh_maker.make_mesh(agents)
        return agents


class Relay:
    """Passes bytes on to an address that is told later."""

    def __init__(self):
        self.to = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            host, _, port = self.to.removeprefix("http://").partition(":")
            server = socket.create_connection((host, int(port)), timeout=BOUND_S)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    @staticmethod
    def _pass_on(source, destination):
        try:
            while piece := source.recv(1 << 16):
                destination.sendall(piece)
            destination.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
