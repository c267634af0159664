"""One site: the same commands and requests direct, through HAProxy, and through the agent."""
import os
import shlex
import statistics
import subprocess
import threading
import time

import labs
import mixes
from labs import Client, Failed, cpu_between, wait_until
from oslib import commands
from tables import print_table, spread_of
from ways import AGENT, DIRECT, WAYS, Ways
from wanlib import process

COMMAND_S = 240

REQUESTS_ROUNDS = 3     # they take a fifth of the time that the commands take, so there can be more rounds

TIMES = ("haproxy/direct", "agent/direct", "agent/haproxy", "agent-scope/direct", "agent-scope/haproxy")
PROXIES = ("agent/haproxy", "agent-scope/haproxy")
SITES = ("haproxy/direct", "agent/direct", "agent/haproxy")
# (name of the ratio, commands or requests, figure, upper way, lower way)
RATIOS = [(f"{name}_{kind}_{upper.replace('-', '_')}_over_{lower}", kind, figure, upper, lower)
          for name, figure, pairs in (("time", "seconds", TIMES), ("cpu_proxy", "proxy_s", PROXIES),
                                      ("cpu_site", "site_s", SITES))
          for kind in ("cli", "api")
          for upper, lower in (pair.split("/") for pair in pairs)]


def add(total, piece):
    """Adds figures, and lists of them, to those of the pieces before."""
    for key, value in piece.items():
        total[key] = total[key] + value if key in total else value


class Single:
    """`bench` lends options, the stage, and takes ratios."""

    def __init__(self, bench, lab):
        self.bench, self.lab = bench, lab
        self.site = lab.sites["Site1"]
        self.ways = Ways(lab, self.site, bench.stage)
        self.past = Client(self.site, inside=True).log_in()
        self.file = bench.stage.folder / "image"
        self.file.write_bytes(os.urandom(1 << 20))
        self.results = {"cli": {way.name: [] for way in WAYS}, "api": {way.name: [] for way in WAYS}}

    def measure(self):
        rounds = self.bench.rounds(2, quick=1)
        self.warm_up()
        self.take_turns("cli", self.commands, rounds)
        self.take_turns("api", self.requests, rounds * REQUESTS_ROUNDS)
        self.print()
        for name, kind, figure, upper, lower in RATIOS:
            for above, below in zip(self.results[kind][upper], self.results[kind][lower]):
                self.bench.add_ratio(name, above[figure] / below[figure])

    def warm_up(self):
        """What is slow the first time only: imports, pools of connections, Keystone's cache."""
        for way in WAYS:
            self.ways.take(way)
            self.requests(way, "warm", 0)
        self.settle()

    def take_turns(self, kind, measure, rounds):
        """A round is cut into pieces, and each is done on every way before the next, in another order each time: what changes on
        the machine meanwhile is not one way's."""
        for number in range(rounds):
            told = {way.name: {"each": []} for way in WAYS}
            for piece in range(mixes.PIECES):
                labs.say(f"{measure.__name__}: round {number + 1} of {rounds}, part {piece + 1} of {mixes.PIECES}")
                shift = (number + piece) % len(WAYS)
                for way in WAYS[shift:] + WAYS[:shift]:
                    self.ways.take(way)
                    add(told[way.name], self.counted(way, lambda: measure(way, f"{kind}{number}-{way.name}", piece)))
            for way in WAYS:
                self.results[kind][way.name].append({**told[way.name], "median_s": statistics.median(told[way.name]["each"])})
            labs.say(", ".join(f"{way.what}: {told[way.name]['seconds']:.1f} s" for way in WAYS))

    def counted(self, way, measure):
        """What measure() tells, with: seconds, CPU seconds of the proxy, and of all processes of the site, the proxy included,
        until all is done that it caused; and how many requests the agent had."""
        passed, everything, proxy, began = self.lab.passed(self.site.name), self.lab.cpu(), self.ways.cpu(way), time.monotonic()
        told = measure()
        elapsed = time.monotonic() - began
        self.settle()
        return {**told, "seconds": elapsed, "proxy_s": self.ways.cpu(way) - proxy,
                "site_s": cpu_between(everything, self.lab.cpu()), "passed": self.lab.passed(self.site.name) - passed}

    def settle(self):
        """Until Nova has no task left."""
        wait_until(lambda: not any(server["OS-EXT-STS:task_state"] for server in self.past.servers("/detail")),
                   "Nova to be done", 0.2)

    # ---- commands

    def commands(self, way, name, piece):
        env = {**os.environ, **commands.client_environment(self.site.folder)}
        env.pop("OS_SCOPE", None)
        if way.scope:
            env["OS_SCOPE"] = way.scope
        spent = [self.command(text.format(name=name, file=self.file), env) for text in mixes.commands_of(piece)]
        return {"client_s": sum(cpu for cpu, _ in spent), "each": [elapsed for _, elapsed in spent]}

    def command(self, text, env):
        """Runs one to its end: its CPU seconds, and the seconds that it took."""
        began = time.monotonic()
        with open(self.bench.stage.folder / "client.output", "w+", encoding="utf-8") as output:
            child = process.start(["/usr/bin/openstack", *shlex.split(text)], self.site.netns, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=output, env=env)
            patience = threading.Timer(COMMAND_S, child.kill)
            patience.start()
            _, status, used = os.wait4(child.pid, 0)
            patience.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                output.seek(0)
                raise Failed(f"openstack {text} ended with status {child.returncode}: {output.read()[-1500:]}")
        return used.ru_utime + used.ru_stime, time.monotonic() - began

    # ---- requests

    def requests(self, way, name, piece):
        """With a client, and a token, of its own."""
        client, names, latencies = Client(self.site), {"name": f"{name}-{piece}"}, []
        scope = {"Scope": way.scope} if way.scope else {}
        began = time.monotonic()
        client.log_in()
        for request in mixes.BLOCK:
            latencies.append(time.monotonic() - began)
            began = time.monotonic()
            headers = {**scope, **mixes.content_type(request)}
            answer = client.ask(request.service, request.method, request.path.format(**names),
                                mixes.filled(request.body, names), headers, request.status)
            if request.keeps:
                mixes.keep(request, answer, names)
        latencies.append(time.monotonic() - began)
        client.close()
        return {"each": latencies}

    # ---- printing

    def print(self):
        for kind, what in (("cli", f"{len(mixes.COMMANDS)} commands of OpenStackClient"), ("api", f"{mixes.REQUESTS} requests")):
            rounds = len(self.results[kind][DIRECT.name])
            print(f"\n{what}, on each way; rounds: {rounds}; medians (least..most)")
            count = len(mixes.COMMANDS) if kind == "cli" else mixes.REQUESTS
            columns = [("s", "seconds", 1, "%.2f"), ("ms each, median", "median_s", 1e3, "%.1f"),
                       ("proxy's CPU, us each", "proxy_s", 1e6 / count, "%.0f"),
                       ("site's CPU, ms each", "site_s", 1e3 / count, "%.1f")]
            columns += [("client's CPU, ms each", "client_s", 1e3 / count, "%.0f")] if kind == "cli" else []
            rows = [("way", *(head for head, *_ in columns))]
            for way in WAYS:
                told = self.results[kind][way.name]
                rows.append((way.what, *(spread_of([each[figure] * scale for each in told], form)
                                         if figure != "proxy_s" or way.proxy else "-" for _, figure, scale, form in columns)))
            print_table(rows)
            passed = spread_of([each["passed"] for each in self.results[kind][AGENT.name]], "%.0f")
            print(f"requests that the agent passed on, those of services to each other included: {passed}")
