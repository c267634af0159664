"""A million replicants: written by bench_fill, then what they cost an agent in memory, and requests that do not concern them.

Requests are measured as bench/proxy does it, with its load, backend and peers: one core for proxies, one for the rest.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess

import mesh
import sides as proxies     # of bench/proxy
from stage import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILL_SECONDS = 3600
START_SECONDS = 120

CHEOPS = """
site: Site1
api: 127.0.0.1:{api}
peer: 127.0.0.1:{peer}
state: {state}
threads: 1
services:
  app:
    front: 127.0.0.1:{front}
    instances: [127.0.0.1:{backend}]
"""

ITEM = "/others/7"      # looks like an item; nothing of that type is replicated
LOCAL = ("Scope: {app: Site1}",)


class Agent:
    """One that is alone in its mesh, and so has a store."""

    def __init__(self, bench, name, backend_port, core):
        self.bench, self.stage, self.core = bench, bench.stage, core
        self.ports = {what: self.stage.port() for what in ("api", "peer", "front")}
        self.state = self.stage.folder / name
        self.configuration = self.stage.file(f"{name}.yaml", CHEOPS.format(state=self.state, backend=backend_port, **self.ports))
        mesh.run([bench.options.cheops, "site", "init", "-c", self.configuration])
        self.name, self.process = name, None

    def start(self):
        self.process = self.stage.start(self.name, [self.bench.options.cheops, "agent", "-c", self.configuration], self.core)
        mesh.wait_until(START_SECONDS, "the agent answers", lambda: mesh.ask(self.ports["api"], "/cheops/v1/health"), 0.01)

    def stop(self):
        self.process.stop()
        self.stage.processes.remove(self.process)

    def replicants(self):
        """As many as a page has."""
        return json.loads(mesh.ask(self.ports["api"], "/cheops/v1/replicants?limit=1"))["replicants"]

    def fill(self, count):
        """While it does not run. Returns what the store takes on disk."""
        self.start()                    # makes the store, and its key
        site = next(site for site in json.loads(mesh.ask(self.ports["api"], "/cheops/v1/sites"))["sites"])["id"]
        self.stop()
        fill = self.stage.start("bench_fill", [self.bench.programs / "bench_fill", count, self.state / "store",
                                               self.state / "store.key", site, ROOT / "apps" / "rest.yaml"], None)
        if fill.popen.wait(FILL_SECONDS) != 0:
            raise Failed(fill.said())
        self.stage.processes.remove(fill)
        return sum(path.stat().st_blocks * 512 for path in (self.state / "store").rglob("*"))

    def memory(self):
        """In bytes: its own, and with what is mapped of files, which the kernel may drop at any time."""
        fields = {}
        for line in pathlib.Path(f"/proc/{self.process.popen.pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, value = line.split(":")
            fields[name] = int(value.split()[0]) * 1024
        return {"own": fields["Anonymous"], "dirty": fields["Private_Dirty"], "resident": fields["Rss"]}


def requests(bench, port, processes, path, headers, core):
    """CPU for each request, in microseconds."""
    command = [bench.proxy_programs / "load", "requests", f"127.0.0.1:{port}", f"path={path}", f"seconds={bench.options.seconds}",
               f"warmup={bench.options.warmup}", "cpu=" + ",".join(str(pid) for process in processes for pid in process.pids()),
               *(f"header={header}" for header in headers)]
    load = bench.stage.start("load", command, core, stdout=subprocess.PIPE)
    bench.stage.processes.remove(load)
    printed, _ = load.popen.communicate(timeout=bench.options.seconds * 3 + 30)
    if load.popen.returncode != 0:
        raise Failed(load.said())
    told = {key: float(value) for key, value in (line.split() for line in printed.splitlines())}
    return sum(value for key, value in told.items() if key.startswith("cpu_ns_")) / told["requests"] / 1000


def instruments(bench):
    """The load and the backend of bench/proxy: beside ours where meson built them, else compiled for this run."""
    folder = bench.programs.parent / "proxy"
    if (folder / "load").exists():
        return folder
    here = ROOT / "bench" / "proxy"
    for name in ("load", "backend"):
        subprocess.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-Werror", "-o", bench.stage.folder / name,
                        here / f"{name}.c", here / "net.c", "-lm"], check=True)
    return bench.stage.folder


def peers(bench, backend_port, core):
    """HAProxy, and HAProxy with the scope in Lua, if there is one: (name, port, processes, headers)."""
    setting = proxies.Setting(bench.stage, bench.proxy_programs, bench.options.cheops, core, backend_port)
    for name, start, headers in (("haproxy", proxies.haproxy, ()),
                                 ("haproxy-lua", lambda setting: proxies.haproxy(setting, proxies.LUA_FETCH), LOCAL)):
        port, processes = start(setting)
        bench.stage.wait_ready(processes[0], port, "/", headers)
        yield name, port, processes, headers


def print_memory(bench, count, before, after, used, disk):
    own = (after["own"] - before["own"]) / count
    print(f"\nmemory: an agent that knows {count} replicants of three members, against one that knows none")
    print(f"  its own            {before['own'] / 2**20:8.1f} MB  {after['own'] / 2**20:8.1f} MB   {own:8.1f} bytes for each")
    print(f"  after requests     {'':8}     {used['own'] / 2**20:8.1f} MB   {(used['own'] - before['own']) / count:8.1f}")
    print(f"  resident, with the mapped file, which the kernel may drop  {before['resident'] / 2**20:.1f} MB  "
          f"{after['resident'] / 2**20:.1f} MB  {(after['resident'] - before['resident']) / count:.1f}")
    print(f"  on disk            {disk / 2**20:8.1f} MB   {disk / count:.1f} bytes for each")
    bench.add_ratio("replicant_bytes_over_200", max(own, (used["own"] - before["own"]) / count, 0) / 200)
    bench.add_ratio("replicant_resident_bytes_over_200", (used["resident"] - before["resident"]) / count / 200)


def measure(bench):
    options, stage = bench.options, bench.stage
    load_core, proxy_core = sorted(os.sched_getaffinity(0))[:2]
    if not (bench.programs / "bench_fill").exists():
        raise Failed("bench_fill is not built; `scripts/bench replication` does, or: --programs build/bench/replication")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    bench.proxy_programs = instruments(bench)
    backend_port = stage.port()
    backend = stage.start("backend", [bench.proxy_programs / "backend", f"127.0.0.1:{backend_port}"], load_core)
    stage.wait_ready(backend, backend_port)
    none, many = Agent(bench, "none", backend_port, proxy_core), Agent(bench, "many", backend_port, proxy_core)
    disk = many.fill(options.known)
    none.start()
    many.start()
    if none.replicants() or not many.replicants():
        raise Failed("the replicants are not there, or where they should not be")
    before, after = none.memory(), many.memory()
    cases = [("none", none.ports["front"], [none.process], "/", ()), ("million", many.ports["front"], [many.process], "/", ()),
             ("none, an item", none.ports["front"], [none.process], ITEM, ()),
             ("million, an item", many.ports["front"], [many.process], ITEM, ()),
             ("none, scope", none.ports["front"], [none.process], "/", LOCAL),
             ("million, scope", many.ports["front"], [many.process], "/", LOCAL),
             ("million, scope, an item", many.ports["front"], [many.process], ITEM, LOCAL)]
    for name, port, processes, headers in peers(bench, backend_port, proxy_core):
        cases.append((name, port, processes, "/", headers))
    results = {name: [] for name, *_ in cases}
    for repeat in range(3 if options.quick else max(7, options.rounds)):
        turn = repeat % len(cases)
        for name, port, processes, path, headers in cases[turn:] + cases[:turn]:
            try:
                results[name].append(requests(bench, port, processes, path, headers, load_core))
            except Failed as error:
                raise Failed(f"{name}: {error}") from None
    print_memory(bench, options.known, before, after, many.memory(), disk)
    print("\nrequests: CPU of the proxy for each, one thread, 32 connections, an answer of 100 bytes; medians (least..most)")
    for name, values in results.items():
        print(f"  {name:28} {statistics.median(values):6.2f} us ({min(values):.2f}..{max(values):.2f})")
    for ratio, upper, lower in (("cpu_unscoped_million_over_none", "million", "none"),
                                ("cpu_unscoped_item_million_over_none", "million, an item", "none, an item"),
                                ("cpu_unscoped_item_million_over_haproxy", "million, an item", "haproxy"),
                                ("cpu_scope_million_over_none", "million, scope", "none, scope"),
                                ("cpu_scope_million_over_haproxy", "million, scope", "haproxy"),
                                ("cpu_scope_item_million_over_haproxy", "million, scope, an item", "haproxy"),
                                ("cpu_scope_million_over_haproxy_lua", "million, scope", "haproxy-lua")):
        for ours, theirs in zip(results[upper], results[lower]):
            bench.add_ratio(ratio, ours / theirs)
    stage.clear()
