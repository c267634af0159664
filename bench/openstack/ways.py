"""The ways to the services of one site: direct, through HAProxy, through its agent.

Everybody, the client and the services among themselves, goes on asking the address that the catalogue names. What changes is
where the kernel leads new connections to it (a translation of addresses in the network namespace of the site): to the services'
own ports, to HAProxy, or to the agent, to whom the address belongs. So names, tokens, links and configuration are the same on
every way, and what services ask of each other goes the same way as what the client asks.
"""
import dataclasses
import subprocess
import time

from labs import Failed, layout, sites

HAPROXY_PORTS = 10000    # HAProxy listens so many ports above the usual ones
READY_S = 30

HAPROXY_CONFIGURATION = """\
global
    nbthread 1
defaults
    mode http
    option http-keep-alive
    http-reuse always
    timeout connect 5s
    timeout client 300s
    timeout server 300s
"""


@dataclasses.dataclass
class Way:
    name: str
    what: str
    proxy: str = ""     # whose CPU is counted: haproxy, agent
    scope: str = ""     # that the client sends


DIRECT = Way("direct", "no proxy")
HAPROXY = Way("haproxy", "HAProxy", "haproxy")
AGENT = Way("agent", "agent, no scope", "agent")
AGENT_SCOPE = Way("agent-scope", "agent, scope here", "agent", "{compute: Site1, image: Site1}")
WAYS = [DIRECT, HAPROXY, AGENT, AGENT_SCOPE]


class Ways:
    """Of one site of a lab, which goes through its agent until another way is taken."""

    def __init__(self, lab, site, stage):
        self.lab, self.site, self.stage = lab, site, stage
        self.haproxy = None

    def start_haproxy(self):
        """One thread, as the agent has; a plain proxy for each service."""
        text = HAPROXY_CONFIGURATION + "".join(f"listen {service}\n    bind {self.site.inside}:{port + HAPROXY_PORTS}\n"
                                 f"    server one {self.site.inside}:{self.site.port(service)}\n"
                                 for service, port in layout.FRONTS.items())
        process = self.stage.start("haproxy", ["ip", "netns", "exec", self.site.netns, "haproxy", "-db", "-q", "-f",
                                               self.stage.file("haproxy.cfg", text)], None)
        until = time.monotonic() + READY_S
        while sites.ask(self.site, layout.FRONTS["identity"] + HAPROXY_PORTS, "/v3", inside=True) is None:
            process.check()
            if time.monotonic() > until:
                raise Failed(f"HAProxy does not answer within {READY_S} s: {process.said()}")
            time.sleep(0.05)
        return process

    def cpu(self, way):
        """Of the proxy on that way."""
        if way.proxy == "haproxy":
            return self.haproxy.cpu_seconds()
        return self.lab.agent_cpu(self.site.name) if way.proxy == "agent" else 0.0

    def take(self, way):
        """From now on all connections to the site go this way. Those that there are, on another one, are broken off."""
        if way.proxy == "haproxy" and self.haproxy is None:
            self.haproxy = self.start_haproxy()
        where = {"": lambda port: f"{self.site.inside}:{port + layout.INSIDE}",
                 "haproxy": lambda port: f"{self.site.inside}:{port + HAPROXY_PORTS}",
                 "agent": lambda port: f"{self.site.address}:{port}"}[way.proxy]
        rules = "".join(f"ip daddr {self.site.address} tcp dport {port} dnat to {where(port)}\n"
                        for port in layout.FRONTS.values())
        self.run(["nft", "-f", "-"], "table ip bench\ndelete table ip bench\ntable ip bench {\nchain out {\n"
                 "type nat hook output priority -100\n" + rules + "}\n}\n")
        ports = " or ".join(f"dport = :{port}" for port in layout.FRONTS.values())
        self.run(["ss", "-K", "-t", "-n", "state", "established", f"dst {self.site.address} and ( {ports} )"])

    def run(self, command, given=""):
        run = subprocess.run(["ip", "netns", "exec", self.site.netns, *command], input=given, capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            raise Failed(f"{command[0]} ended with status {run.returncode}: {run.stderr}")
