"""Makes one mesh of agents that run, as an operator would: `cheops site init`, a token, `cheops site join`.

An agent here is anything with `config` (a dictionary, as it is in its file) and `path` (of that file). Its configuration
needs `peer` and `state`. The standard library only; nothing waits for time to pass, and each wait has a bound.
"""
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHEOPS = pathlib.Path(os.environ.get("CHEOPS", ROOT / "build" / "cheops")).resolve()
BOUND_S = 90


def wait_for(condition, what):
    """Looks again and again until the condition gives something that is true, and returns that."""
    until = time.monotonic() + BOUND_S
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        pause.wait(0.005)
    return found


# ---- The API ------------------------------------------------------------------------------------------------------------


def call(agent, method, path, body=None):
    """Status and JSON of one question to the agent's API."""
    connection = http.client.HTTPConnection(agent.config["api"], timeout=BOUND_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def sites_of(agent):
    """{name: what the agent says of it}"""
    return {site["name"]: site for site in call(agent, "GET", "/cheops/v1/sites")[1]["sites"]}


def wait_present(agents, names=None):
    """Until each of them sees all of them (or those names) as present. What an agent says that it sees, scopes may name."""
    names = [agent.config["site"] for agent in agents] if names is None else names

    def sees_all(agent):
        sites = sites_of(agent)
        return all(name in sites and sites[name]["shown"] == "present" for name in names)

    for agent in agents:
        wait_for(lambda agent=agent: sees_all(agent), f"{agent.config['site']} to see {names}")


def wait_reachable(agents):
    """And none of them takes the way to another one for broken, as it does for a moment where that was killed and started
    again: such a site is not asked."""
    wait_present(agents)

    def has_all_ways(agent):
        return all((site["path"] or {}).get("state") != "down" for site in sites_of(agent).values())

    for agent in agents:
        wait_for(lambda agent=agent: has_all_ways(agent), f"{agent.config['site']} to have a way to all others")


def wait_kept(agents):
    """Until each of them has all others on its disk: it knows them when it starts again, and need not be found by them."""
    def has_kept(agent):
        table = pathlib.Path(agent.config["state"]) / "sites"
        return table.exists() and all(other.config["site"].encode() in table.read_bytes() for other in agents if other is not agent)

    for agent in agents:
        wait_for(lambda agent=agent: has_kept(agent), f"the table of sites on the disk of {agent.config['site']}")


# ---- Joining ------------------------------------------------------------------------------------------------------------


def run_site(*arguments):
    run = subprocess.run([CHEOPS, "site", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=BOUND_S, check=False)
    assert run.returncode == 0, f"cheops site {arguments}: {run.stdout}{run.stderr}"
    return run.stdout


def init(path):
    """The first site, whose agent need not run."""
    run_site("init", "-c", path)


def join(agent, to):
    """One more site, whose agent need not run; `to` has the authority."""
    status, answer = call(to, "POST", "/cheops/v1/sites/tokens", {"name": agent.config["site"]})
    assert status == 201, answer
    run_site("join", answer["token"], "-c", agent.path)


def make_mesh(agents):
    """The first one has the authority; all are there when this returns."""
    first, *others = agents
    init(first.path)
    status, answer = call(first, "POST", "/cheops/v1/reload")
    assert status == 200, answer
    for agent in others:
        join(agent, first)
    wait_present(agents)


# ---- Playing an agent ---------------------------------------------------------------------------------------------------


def tls_server(state):
    """TLS as the agent whose state this is has it, for playing that agent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(pathlib.Path(state) / "site.crt", pathlib.Path(state) / "site.key")
    context.load_verify_locations(pathlib.Path(state) / "roots.pem")
    return context


def tls_client(state=None):
    """The other side; without a state, a stranger's, who believes everybody and shows nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # certificates are of sites, not of hosts
    if state is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_cert_chain(pathlib.Path(state) / "site.crt", pathlib.Path(state) / "site.key")
        context.load_verify_locations(pathlib.Path(state) / "roots.pem")
    return context


def ask_peer(address, state=None, method="GET", path="/", headers=None, body=None, context=None):
    """Status, headers and body of a request to an agent's port for other agents, as the site with that state."""
    connection = http.client.HTTPSConnection(address, timeout=BOUND_S, context=context or tls_client(state))
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


class PlayedAgent:
    """In the place of an agent that has joined and was stopped: `script(sock)` has each connection, after the handshake."""

    def __init__(self, config, script):
        host, _, port = config["peer"].rpartition(":")
        self.context = tls_server(config["state"])
        self.script = script
        self.listener = wait_for(lambda: self._listen(host, int(port)), f"{config['peer']} to be free")
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def _listen(host, port):
        try:
            return socket.create_server((host, port))
        except OSError:
            return None

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            with self.context.wrap_socket(sock, server_side=True) as secure:
                secure.settimeout(BOUND_S)
                self.script(secure)
        except OSError:
            pass

    def stop(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
