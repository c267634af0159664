"""What is compared: three sites of Cheops, each an agent with its service, and three members of etcd; and how they are asked.

All of it runs on loopback, on whatever cores there are, with its files below the folder of the stage.
"""
import json
import subprocess
import time
import urllib.error
import urllib.request

from stage import Failed

SITES = ["Site1", "Site2", "Site3"]
SCOPE = "Scope: " + " & ".join(SITES)
JOIN_SECONDS = 20
ETCD_SECONDS = 30


def run(command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(str(part) for part in command[:3])} ended with status {done.returncode}: {done.stdout}")


def ask(port, path, body=None, headers=()):
    """The text of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", None if body is None else json.dumps(body).encode(),
                                     dict(headers), method="GET" if body is None else "POST")
    with urllib.request.urlopen(request, timeout=JOIN_SECONDS) as answer:
        return answer.read().decode()


def wait_until(seconds, what, holds, every=0.02):
    """Until holds() is true; returns what it returned. An agent or member that does not answer yet is not there yet."""
    until = time.monotonic() + seconds
    while True:
        try:
            told = holds()
        except urllib.error.HTTPError as error:
            raise Failed(f"{what}: {error.url} answered {error.code}") from None
        except OSError:
            told = False
        if told:
            return told
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {seconds:g} s")
        time.sleep(every)


# ---- Cheops -------------------------------------------------------------------------------------------------------------

CHEOPS = """
site: {site}
api: 127.0.0.1:{api}
peer: 127.0.0.1:{peer}
state: {site}.state
services:
  app:
    front: 127.0.0.1:{front}
    instances: [127.0.0.1:{service}]
"""


class Site:
    """An agent and the service behind it."""

    def __init__(self, mesh, name):
        self.mesh, self.name = mesh, name
        self.ports = {what: mesh.stage.port() for what in ("api", "peer", "front", "service")}
        self.service = mesh.stage.start(f"service-{name}", [mesh.programs / "service",
                                                            f"127.0.0.1:{self.ports['service']}"], None)
        mesh.stage.wait_ready(self.service, self.ports["service"], "/count")
        self.configuration = mesh.stage.file(f"{name}.yaml", CHEOPS.format(site=name, **self.ports))
        self.agent = None

    def start(self):
        self.agent = self.mesh.stage.start(f"agent-{self.name}", [*self.mesh.prefix, self.mesh.cheops, "agent", "-c",
                                                                  self.configuration], None)
        self.mesh.stage.wait_ready(self.agent, self.ports["api"], "/cheops/v1/health")

    def stop(self):
        self.agent.stop()
        self.mesh.stage.processes.remove(self.agent)

    def metrics(self):
        values = {}
        for line in ask(self.ports["api"], "/cheops/v1/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#"):
                values[name] = float(value)
        return values

    def writes(self):
        """Requests that have changed something at its service."""
        return json.loads(ask(self.ports["service"], "/count"))["writes"]


class Mesh:
    """Three sites that have joined."""

    def __init__(self, stage, programs, cheops, prefix=()):
        self.stage, self.programs, self.cheops, self.prefix = stage, programs, cheops, prefix
        self.sites = [Site(self, name) for name in SITES]
        for site in self.sites:
            if site is self.sites[0]:
                run([cheops, "site", "init", "-c", site.configuration])
            else:
                token = json.loads(ask(self.sites[0].ports["api"], "/cheops/v1/sites/tokens", {"name": site.name}))["token"]
                run([cheops, "site", "join", token, "-c", site.configuration])
            site.start()
        self.wait_present()

    def wait_present(self):
        for site in self.sites:
            wait_until(JOIN_SECONDS, "the agents see each other", lambda port=site.ports["api"]: sum(
                other["shown"] == "present" for other in json.loads(ask(port, "/cheops/v1/sites"))["sites"]) == len(SITES))

    def targets(self, spread):
        return [f"127.0.0.1:{site.ports['front']}" for site in (self.sites if spread else self.sites[:1])]

    def processes(self):
        return [process for site in self.sites for process in (site.agent, site.service)]

    def pending(self):
        return sum(site.metrics()["cheops_replica_pending_operations"] for site in self.sites)

    def wait_settled(self, seconds):
        """Until every operation is settled at every member, and forgotten. Returns how long that took."""
        started = time.monotonic()
        wait_until(seconds, "all operations settled everywhere", lambda: self.pending() == 0)
        return time.monotonic() - started

    def compare(self, paths):
        """The copies at all sites are equal: asked through the agents, by meta-id."""
        for path in paths:
            copies = {ask(site.ports["front"], path) for site in self.sites}
            if len(copies) != 1:
                raise Failed(f"the copies of {path} differ: {copies}")


# ---- etcd ---------------------------------------------------------------------------------------------------------------

class Etcd:
    """Three members, as Debian has them, with their defaults."""

    def __init__(self, stage):
        self.stage = stage
        self.ports = [(stage.port(), stage.port()) for _ in SITES]
        self.cluster = ",".join(f"m{i}=http://127.0.0.1:{peer}" for i, (_, peer) in enumerate(self.ports))
        self.members = [self.start(i) for i in range(len(self.ports))]
        self.leader = wait_until(ETCD_SECONDS, "etcd has a leader", self.find_leader)
        self.wait_healthy()

    def start(self, number):
        client, peer = self.ports[number]
        return self.stage.start(f"etcd-{number}", [
            "etcd", "--name", f"m{number}", "--data-dir", f"etcd-{number}", "--listen-client-urls",
            f"http://127.0.0.1:{client}", "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls",
            f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster",
            self.cluster, "--initial-cluster-state", "new", "--logger", "zap", "--log-level", "error"], None)

    def status(self, number):
        return json.loads(ask(self.ports[number][0], "/v3/maintenance/status", {}))

    def find_leader(self):
        for number in range(len(self.ports)):
            status = self.status(number)
            if status.get("leader") == status["header"]["member_id"]:
                return number + 1       # never 0, which would be no leader
        return 0

    def wait_healthy(self):
        for client, _ in self.ports:
            wait_until(ETCD_SECONDS, "etcd's members are healthy",
                       lambda port=client: json.loads(ask(port, "/health"))["health"] == "true")

    def stop(self, number):
        self.members[number].stop()
        self.stage.processes.remove(self.members[number])

    def targets(self, spread):
        chosen = self.ports if spread else [self.ports[self.leader - 1]]
        return [f"127.0.0.1:{client}" for client, _ in chosen]

    def processes(self):
        return self.members

    def revision(self, number):
        """How many puts this member has applied."""
        return int(self.status(number)["header"]["revision"])
