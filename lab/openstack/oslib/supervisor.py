"""The process that holds a lab of OpenStack together: that of the WAN lab, with other processes at the sites.

The commands of lab/wan work with it: cut, heal, set, show, run, down. On loopback there is no network that could be changed, and no
namespace. All processes are children of this one, in sessions of their own, and are killed by the kernel when it is killed; those
that they start themselves (workers of uwsgi and of Nova, the broker's helpers) end when their parents do.
"""
import os
import subprocess
import sys
import threading
import time

from wanlib import process, supervisor
from wanlib.errors import LabError

from . import commands, sites

BOUND_S = 180  # of all that is waited for: the machine may be busy
TAIL_LINES = 15


class Supervisor(supervisor.Supervisor):
    def __init__(self, options):
        super().__init__(options)
        self.ready = False
        self.began = time.monotonic()
        self.running = []  # of run_all(): (what, child, log)
        self.started = {}  # name: how to start it again
        for number, site in enumerate(self.sites.values(), 1):
            site["inside"] = "127.0.0.1" if options.wan else f"127.0.{number}.2"
            if not options.wan:
                site.update(netns=None, address=f"127.0.{number}.1")

    def say(self, text):
        line = f"{time.monotonic() - self.began:6.1f} s  {text}"
        self.log(line)
        self.options.progress(line)

    # ---- start

    def make_namespaces(self):
        if self.options.wan:
            super().make_namespaces()

    def start_switch(self):
        if self.options.wan:
            super().start_switch()

    def set_rules(self):
        if self.options.wan:
            super().set_rules()

    def start_agents(self):
        sites.OpenStack(self).start()
        self.ready = True

    def state(self):
        return {**super().state(), "kind": "openstack", "wan": self.options.wan, "carry": self.options.carry,
                "started": self.started, "ready": self.ready}

    def start_part(self, site, name, command=None, env=None):
        """A service of a site, which works in the site's folder; how it was started is kept, so that tests can do it again."""
        if command is None:
            command, env = commands.of(site, name)
        log = site.folder / "log" / f"{name}.out"
        self.start_process(f"{site.name}/{name}", command, site.netns, log, env, site.folder)
        if site.name in self.sites:
            self.started[f"{site.name}/{name}"] = {"command": [str(word) for word in command], "env": env, "log": str(log),
                                                      "folder": str(site.folder)}

    def stop_part(self, name):
        """In order, and it is none of ours any more."""
        child = self.children.pop(name)
        child.terminate()
        try:
            child.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise LabError(f"{name} does not end within {BOUND_S} s") from None

    def wait_part(self, site, name, condition, what):
        """Until the condition holds, as long as that service runs."""
        child = self.children[f"{site.name}/{name}"]
        until = time.monotonic() + BOUND_S
        pause = threading.Event()
        while not condition():
            self.check()
            if child.poll() is not None:
                raise LabError(f"{name} of {site.name} ended, with status {child.returncode}; {tail(site, name)}")
            if time.monotonic() > until:
                raise LabError(f"{name} of {site.name} does not {what} within {BOUND_S} s; {tail(site, name)}")
            pause.wait(0.05)

    # ---- commands that end

    def run_all(self, wanted, site, wait=True):
        """Runs commands, {what: command}, side by side."""
        for what, command in wanted.items():
            log = site.folder / "log" / f"{what}.out"
            with open(log, "ab") as out:
                child = process.start(command, site.netns, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                      env=commands.environment(), start_new_session=True, cwd=site.folder)
            self.running.append((f"{what} of {site.name}", child, log))
        if wait:
            self.wait_all()

    def wait_all(self):
        until = time.monotonic() + BOUND_S
        running, self.running = self.running, []
        failed = None
        for what, child, log in running:
            try:
                status = child.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                status = f"{child.wait()}, after {BOUND_S} s"
            if status != 0 and failed is None:
                failed = f"{what} failed, with status {status}; {tail_of([log])}"
        if failed:
            raise LabError(failed)
        self.check()

    # ---- stop

    def stop_order(self):
        def of(wanted):
            return [name for name in self.children if "/" in name and wanted(name.partition("/")[2])]

        base = commands.ORDER[:3]
        return [of(lambda part: part == "agent"), of(lambda part: part.startswith("nova-")),
                of(lambda part: part not in base and part != "agent" and not part.startswith("nova-")),
                of(lambda part: part == "rabbitmq"), of(lambda part: part in base and part != "rabbitmq")]

    def stop(self):
        for _, child, _ in self.running:
            child.kill()
            child.wait()
        return super().stop()


def tail(site, name):
    return tail_of([site.folder / "log" / f"{name}.out", site.folder / "log" / f"{name}.log"])


def tail_of(paths):
    """The end of the first of the files that says anything."""
    for path in paths:
        if path.exists() and path.stat().st_size:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
            return f"the end of {path}:\n  " + "\n  ".join(lines)
    return f"{paths[0]} is empty"


def run(options, say_ready):
    """The life of a lab. say_ready() is given its state. Returns the exit status."""
    made = Supervisor(options)
    made.watch_signals()
    try:
        made.start()
        say_ready(made.state())
        status = made.wait()
    except BaseException:
        made.stop()
        raise
    return made.stop() or status


def progress_to(stream):
    """Lines as they come; nothing, once nobody reads them."""
    def progress(line):
        try:
            print(line, file=stream, flush=True)
        except (BrokenPipeError, ValueError):
            pass
    return progress


QUIET = progress_to(open(os.devnull, "w", encoding="utf-8"))
LOUD = progress_to(sys.stderr)
