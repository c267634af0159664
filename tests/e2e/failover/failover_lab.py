"""Sites for the tests of failover: an agent and a played service each, one network namespace each, at distances that can be
told apart, because `|` asks the nearest first.

    Site1 ── 4 ms ── Site2 ───── 16 ms ───── Site3 ────────── 30 ms ────────── Site4      (round trips)

Network is made once: the namespaces, and a state folder for each site, which has joined the others and has measured the
distances. Lab starts agents from copies of these folders for one test: whatever a test does to its sites, the next one has
them as they were.

What a service does is a script; the ones below are the faults that the tests are about.
"""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import threading

for neighbour in (".", "proxy", "wan"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / neighbour))

import mesh_maker  # noqa: E402
import proxy_lab  # noqa: E402
import wan_lab  # noqa: E402
from proxy_lab import PATIENCE_S, Service, Wire, request, response, wait_until  # noqa: E402, F401

NAMES = ["Site1", "Site2", "Site3", "Site4"]
PLACES_MS = {"Site1": 0, "Site2": 4, "Site3": 20, "Site4": 50}
PEER_PORT, API_PORT, FRONT_PORT, SERVICE_PORT = 8070, 8079, 8081, 9081
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def matrix():
    pairs = {f"{a}<>{b}": {"rtt": f"{abs(PLACES_MS[a] - PLACES_MS[b])}ms"} for a in NAMES for b in NAMES if a < b}
    return {"sites": NAMES, "pairs": pairs}


# ---- what all tests have in common --------------------------------------------------------------------------------------


class Network:
    """Four namespaces, and the states of four sites that know each other."""

    def __init__(self, executable):
        self.executable = executable
        self.wan = wan_lab.Lab(matrix(), agents=False)
        self.folder = self.wan.base / "sites"
        self.doors = {name: os.open(f"/run/netns/{self.wan.netns(name)}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMES}
        try:
            self.join()
        except BaseException:
            self.close()
            raise

    def close(self):
        for door in self.doors.values():
            os.close(door)
        self.wan.close()

    def join(self):
        """As operators do it. The states are kept when the sites have seen each other and how far away they are."""
        with Lab(self, "template") as lab:
            for name in NAMES:
                config = self.config(name, lab.folder)
                path = lab.folder / f"{name}.yaml"
                lab.write(path, config)
                if name == "Site1":
                    self.cheops(name, "site", "init", "-c", path)
                else:
                    text = self.cheops("Site1", "site", "token", name, "-c", lab.folder / "Site1.yaml")
                    token = next(word for word in text.split() if word.startswith("cheops1_"))
                    self.cheops(name, "site", "join", token, "-c", path)
                lab.sites[name] = Site(name, lab.agent(config), None)
            lab.wait_measured()
            lab.wait_ready()
            wait_until(lambda: lab.order("around(Site2, 1s)") == ["Site2", "Site1", "Site3", "Site4"], "distances from Site2")

    def config(self, name, folder, **others):
        return {"site": name, "state": str(folder / f"{name}.state"), "api": f"127.0.0.1:{API_PORT}",
                "peer": f"{self.wan.address(name)}:{PEER_PORT}", "threads": 1, "timeouts": {"stop": "5s"},
                "services": {"service": {"front": f"127.0.0.1:{FRONT_PORT}", "instances": [f"127.0.0.1:{SERVICE_PORT}"]}},
                **others}

    def cheops(self, name, *arguments):
        """Runs it at a site. It has to end well."""
        run = self.wan.run(name, [self.executable, *map(str, arguments)])
        assert run.returncode == 0, f"cheops {arguments} at {name}: {run.stdout}{run.stderr}"
        return run.stdout

    def entrance(self, name):
        """For preexec_fn: the process runs at that site, and does not outlive this one."""
        door, parent = self.doors[name], os.getpid()

        def enter():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
            wan_lab.netns.enter(door)

        return enter

    def make_socket(self, name):
        return lambda: self.wan.socket(name)


# ---- one test -----------------------------------------------------------------------------------------------------------


class Site:
    def __init__(self, name, agent, service):
        self.name, self.agent, self.service = name, agent, service

    def refuse(self):
        """Its service takes no connections any more; its agent does."""
        self.service.stop_listening()
        self.service.drop_connections()

    def sites(self):
        """What its agent says of each site."""
        status, text = self.agent.api("/cheops/v1/sites")
        assert status == 200, text
        return proxy_lab.json.loads(text)["sites"]

    @property
    def runs(self):
        """How many requests its service has got."""
        return len(self.service.requests)


class Lab:
    """lab.start(), then lab[1], lab[2], …; requests are sent to Site1."""

    def __init__(self, network, name):
        self.network, self.wan = network, network.wan
        self.folder = network.folder / name
        self.folder.mkdir(parents=True)
        self.agents, self.services = [], []
        self.sites = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def __getitem__(self, number):
        return self.sites[f"Site{number}"]

    def start(self, count=3, **others):
        """`others`: more configuration for all; Site1={…} for one.

        Site1 is the last: what it sends to an agent that is not there yet is sent again later, and would be taken for a
        long way."""
        names = NAMES[:count]
        given = {name: others.pop(name) for name in list(others) if name in names}
        for name in names:
            shutil.copytree(self.network.folder / "template" / f"{name}.state", self.folder / f"{name}.state")
            self.sites[name] = Site(name, None, self.service(name))
        for name in [*names[1:], names[0]]:
            config = self.network.config(name, self.folder, **others)
            for key, value in given.get(name, {}).items():
                config[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
            if name == "Site1":
                self.wait_notified()
            self.sites[name].agent = self.agent(config, wait=False)
        self.wait_notified()
        self.wait_ready()
        return self

    def wait_notified(self):
        for agent in self.agents:
            if not agent.is_ready:
                agent.wait_notified("READY=1")
                agent.is_ready = True

    def service(self, name):
        service = Service(SERVICE_PORT, answer=lambda message: response(body=name.encode()), make_socket=self.listener(name))
        self.services.append(service)
        return service

    def listener(self, name):
        def make():
            sock = self.wan.socket(name)
            sock.settimeout(None)
            return sock

        return make

    def agent(self, config, name=None, at=None, wait=True):
        """`at`: the site whose network it is in, if that is not its own."""
        at = at or config["site"]
        agent = proxy_lab.Agent(self.network.executable, self.folder, config, name=name, wait=wait,
                                preexec=self.network.entrance(at), make_socket=self.network.make_socket(at))
        agent.is_ready = wait
        self.agents.append(agent)
        return agent

    @staticmethod
    def write(path, config):
        path.write_text(proxy_lab.json.dumps(config))

    def kill(self, number):
        """Its agent is gone, and Site1 has seen the end of all connections to it: none of them is used any more."""
        self[number].agent.kill()
        wait_until(lambda: not self.connections(number), "connections to end")

    def connections(self, number):
        """Those of Site1 to that site, as its kernel has them: established, half closed."""
        address = socket.inet_aton(self.wan.address(f"Site{number}"))[::-1].hex().upper()
        table = pathlib.Path(f"/proc/{self[1].agent.pid}/net/tcp")
        lines = [line.split() for line in table.read_text().splitlines()[1:]]
        return [line for line in lines if line[2].startswith(address + ":") and line[3] in ("01", "08")]

    def wait_delivered(self, number):
        """Until that machine has acknowledged all that Site1 has sent: it may wait with that for a moment."""
        wait_until(lambda: all(line[4].startswith("00000000:") for line in self.connections(number)), "acknowledgements")

    def restart(self, number):
        """An agent that was killed, with the same configuration."""
        site = self[number]
        site.agent = self.agent(site.agent.config, f"{site.agent.name}-again")

    def stop(self):
        """All at once. A service that hangs must not keep its agent from stopping."""
        with contextlib.ExitStack() as stops:
            for agent in self.agents:
                stops.callback(agent.stop)
            for service in self.services:
                stops.callback(service.stop)
            for agent in self.agents:
                agent.end()

    # -- what Site1 knows

    def view(self):
        """What Site1 says of each site."""
        return {site["name"]: site for site in self[1].sites()}

    def present(self):
        return {name for name, site in self.view().items() if site["shown"] == "present"}

    def order(self, scope):
        """The sites of a scope, in the order in which Site1 would ask them now."""
        answer = self.ask(scope, Cheops_Explain="plan")
        return re.findall(r"Site\d", proxy_lab.json.dumps(answer.json["plan"])) if answer.status == 200 else None

    def wait_ready(self):
        """Until all are there, and Site1 knows which is near and which is far."""
        wanted = [name for name in self.sites if name != "Site1"]
        if not wanted:
            return
        scope = " | ".join(reversed(wanted))
        wait_until(lambda: set(wanted) <= self.present(), f"{wanted} to be present")
        wait_until(lambda: self.order(scope) == wanted, f"{wanted} in this order")

    def wait_measured(self):
        """Until Site1 has measured all distances itself, and also what it is told of them makes sense."""
        def are_known(key):
            distances = [self.view().get(name, {}).get(key) for name in NAMES[1:]]
            return None not in distances and distances == sorted(distances)

        wait_until(lambda: are_known("rtt_ms") and are_known("estimate_ms"), "distances that make sense")

    # -- the mesh

    def shut_out(self, number, how):
        """`how`: remove or revoke, as an operator does it where the authority is."""
        self.network.cheops("Site1", "site", how, f"Site{number}", "--yes", "-c", self[1].agent.path)

    def newcomer(self, **others):
        """Site5, in the network of Site4, which must not run. It has joined, and was cut off before it ever ran: it has
        heard of the other sites, and nothing of how far away they are."""
        config = {**self.network.config("Site4", self.folder, **others), "site": "Site5",
                  "state": str(self.folder / "Site5.state")}
        path = self.folder / "Site5.yaml"
        self.write(path, config)
        text = self.network.cheops("Site1", "site", "token", "Site5", "-c", self[1].agent.path)
        token = next(word for word in text.split() if word.startswith("cheops1_"))
        self.network.cheops("Site4", "site", "join", token, "-c", path)
        self.wan.isolate("Site4")
        self.services.append(Service(SERVICE_PORT, answer=lambda message: response(body=b"Site5"),
                                     make_socket=self.listener("Site4")))
        site = self.sites["Site5"] = Site("Site5", self.agent(config, at="Site4"), self.services[-1])
        known = {other["name"]: other["estimate_ms"] for other in site.sites() if other["name"] != "Site5"}
        assert "Site2" in known and set(known.values()) == {None}, known
        return site

    def impostor(self, number, as_site):
        """In the place of an agent that was killed."""
        name = f"Site{number}"
        listener = self.listener(name)()
        return Impostor(listener, self.wan.address(name), mesh_maker.tls_server(self.folder / f"Site{as_site}.state"))

    def as_peer(self, number, before=lambda: None):
        """A connection to Site1's port for other agents; None: of somebody who is no site. `before`: the handshake begins."""
        state = self.folder / f"Site{number}.state" if number else None
        sock = self.wan.socket("Site2")
        sock.connect((self.wan.address("Site1"), PEER_PORT))
        before()
        return Wire(mesh_maker.tls_client(state).wrap_socket(sock))

    # -- asking Site1

    def ask(self, scope, method="GET", target="/", at=1, **options):
        with self.client(at) as wire:
            wire.send(request(method, target, Scope=scope, **options))
            return wire.response(method.encode())

    def client(self, at=1):
        return self[at].agent.client()

    def counter(self, name, at=1):
        return self[at].agent.counter(f"cheops_{name}_total")

    def warm(self, *numbers):
        """Each of these sites has answered, and its path is known to be good."""
        for number in numbers:
            assert self.ask(f"Site{number}").body == f"Site{number}".encode()
        for number in numbers:
            self[number].service.forget()


class Impostor:
    """Speaks TLS as a site that it is not expected to be.

    met    handshakes that came to their end
    told   what it was sent after them
    """

    def __init__(self, listener, address, context):
        self.listener, self.context = listener, context
        self.met, self.told = 0, b""
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, PEER_PORT))
        listener.listen()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE_S)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                threading.Thread(target=self.listen_to, args=(sock,), daemon=True).start()

    def listen_to(self, sock):
        with contextlib.suppress(OSError), self.context.wrap_socket(sock, server_side=True) as secure:
            self.met += 1
            secure.settimeout(PATIENCE_S)
            while piece := secure.recv(65536):
                self.told += piece


def attempts(message):
    """What the client's agent did, in the order in which it says so: (site, what became of it)."""
    made = []
    for member in re.split(rb", (?=\")", message.all(b"Proxy-Status")[-1]):
        parts = member.split(b"; ")
        fields = dict(part.partition(b"=")[::2] for part in parts[1:])
        site = fields.get(b"next-hop", parts[0]).strip(b'"').decode()
        became = fields.get(b"error") or fields.get(b"received-status") or fields[b"details"]
        made.append((site, became.strip(b'"').decode()))
    return made


# ---- what a service does ------------------------------------------------------------------------------------------------


def answers(status, body=b"no", **fields):
    return lambda message: response(status, body, **fields)


class Hangs:
    """Reads a request, says nothing, and notes when the connection is given up."""

    def __init__(self, service, before=b""):
        self.service, self.before = service, before
        self.reached, self.closed, self.released = threading.Event(), threading.Event(), threading.Event()
        service.script = self.script

    def script(self, wire):
        message = wire.request()
        if message is None:
            return
        self.service.note(message)
        if self.before:
            wire.send(self.before)
        self.reached.set()
        with contextlib.suppress(OSError):
            wire.more()
        self.closed.set()

    def wait(self, event):
        assert event.wait(PATIENCE_S)


def breaks(service, after=b""):
    """Reads a request, sends so much of an answer, and closes."""
    def script(wire):
        message = wire.request()
        if message is not None:
            service.note(message)
            wire.send(after)

    service.script = script
