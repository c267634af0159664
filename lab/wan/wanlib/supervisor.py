"""The process that holds a lab together.

  1. removes what labs that died have left behind, and takes the lab's lock
  2. makes the namespaces, starts the switch, tells it the matrix
  3. starts agents and services, if they are wanted
  4. writes the state file, says that all is ready, and waits: for a signal, or for the end of its standard input
  5. stops all that it started, and removes all that it made

If it fails before 4, it goes on with 5 and says why. If it is killed, its processes are killed by the kernel (agents and
services) or end by themselves (the switch, whose standard input is a pipe from here); the next `up` or `down` finds the
lock free, and removes the namespaces and the folder. If the switch ends, the lab ends. If an agent or a service ends, that
is noted in supervisor.log, and nothing else: tests kill agents.
"""
import os
import select
import shutil
import signal
import subprocess
import sys
import time

from . import agents, netns, place, process
from .control import Control, listen
from .errors import LabError

READY_S = 60
STOP_S = 6
NETWORK = "10.77"


def address_of(number):
    """Of the site of that number, from 1, as the switch sets it."""
    return f"{NETWORK}.{number >> 8}.{number & 255}"


class Supervisor:
    def __init__(self, options):
        self.options = options
        place.sweep(options.dir)  # before the lock is ours: what is left over may be of a lab of this name
        self.lock = place.take_new(options.lab)
        self.id = self.lock.lab
        self.folder = options.dir.absolute() / self.id
        self.sites = {name: {"netns": netns.name_of(self.id, name), "address": address_of(number), "about": about}
                      for number, (name, about) in enumerate(options.matrix.sites.items(), 1)}
        self.children = {}  # name: subprocess.Popen
        self.made_folder = False
        self.interrupted = None  # name of a signal
        self.wakes, self.waker = None, None

    def log(self, text):
        with open(self.folder / "supervisor.log", "a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    # ---- start

    def start(self):
        for step in (self.make_folder, self.make_namespaces, self.start_switch, self.set_rules, self.start_agents):
            self.check()
            step()
        self.check()
        self.write_state()
        self.log(f"ready: {len(self.sites)} sites")

    def make_folder(self):
        try:
            self.folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise LabError(f"{self.folder} is there already; remove it, or choose another name with --lab") from None
        self.made_folder = True
        self.write_state()  # so that a sweep knows the folder

    def make_namespaces(self):
        netns.add(site["netns"] for site in self.sites.values())

    def start_agents(self):
        if self.options.agents:
            agents.Agents(self.options.cheops, self.options.sample, self.sites, self, self.options.join).start()

    def start_switch(self):
        listener = listen(self.folder)
        with listener, open(self.folder / "switch.log", "ab") as log:
            sites = [f"{name}={netns.path_of(site['netns'])}" for name, site in self.sites.items()]
            child = process.start(
                [self.options.switch, "--control-fd", listener.fileno(), "--seed", self.options.seed, *sites],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, pass_fds=[listener.fileno()],
                start_new_session=True)
        self.children["switch"] = child
        ready, _, _ = select.select([child.stdout], [], [], READY_S)
        if not ready or child.stdout.readline() != b"ready\n":
            said = (self.folder / "switch.log").read_text(encoding="utf-8", errors="replace").strip()
            raise LabError(f"the switch does not start: {said or 'it says nothing'}")

    def set_rules(self):
        with Control(self.folder) as control:
            control.run_all([f"set {pair} " + " ".join(f"{key}={value}" for key, value in keys.items())
                             for pair, keys in self.options.matrix.rules if keys and len(self.sites) > 1])

    def start_process(self, name, command, namespace, log, env, folder=None):
        """A process of the lab, in a session of its own: Ctrl-C in a terminal reaches the supervisor alone. `folder`: where it works,
        and so where it leaves what it leaves when it crashes."""
        with open(log, "ab") as out:
            self.children[name] = process.start(command, namespace, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                env=env, start_new_session=True, cwd=folder)

    def state(self):
        return {"lab": self.id, "folder": str(self.folder), "keep": self.options.keep, "seed": self.options.seed,
                "supervisor": process.describe(os.getpid()),
                "processes": {name: process.describe(child.pid) for name, child in self.children.items()},
                "sites": self.sites}

    def write_state(self):
        place.write_state(self.folder, self.state())

    # ---- run

    def watch_signals(self):
        """From here on a signal ends start() at the next check(), or wakes wait() up."""
        self.wakes, self.waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self.interrupt)

    def interrupt(self, number, _):
        if number != signal.SIGCHLD:
            self.interrupted = signal.Signals(number).name

    def check(self):
        """Between the steps of start(): each is whole, or was not begun."""
        if self.interrupted:
            raise LabError(f"interrupted by {self.interrupted}")

    def wait(self):
        """Until somebody wants it to end. Returns the exit status."""
        ended = set()
        while True:
            watched = [self.wakes] + ([sys.stdin] if self.options.attached else [])
            ready, _, _ = select.select(watched, [], [], None)
            numbers = os.read(self.wakes, 4096) if self.wakes in ready else b""
            if any(number != signal.SIGCHLD for number in numbers):
                return 0
            if self.options.attached and sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
                return 0
            for name, child in self.children.items():
                if name not in ended and child.poll() is not None:
                    ended.add(name)
                    self.log(f"{name} ended, with status {child.returncode}")
            if "switch" in ended:
                print(f"the switch ended; see {self.folder / 'switch.log'}", file=sys.stderr)
                return 1

    # ---- stop

    def stop(self):
        """Returns the exit status: 1 if the switch found fault with itself."""
        for names in self.stop_order():
            self.stop_children([self.children[name] for name in names])
        status = self.stop_switch(self.children["switch"]) if "switch" in self.children else 0
        netns.remove([site["netns"] for site in self.sites.values() if site["netns"]])
        if self.made_folder and self.options.keep:
            (self.folder / "lab.json").unlink(missing_ok=True)
        elif self.made_folder:
            shutil.rmtree(self.folder)
        self.lock.release()
        return status

    def stop_order(self):
        """Names of the processes but for the switch: those of a list end before those of the next. The agents are first, so
        that requests under way can finish."""
        return [[name for name in self.children if name.endswith("/agent")],
                [name for name in self.children if "/" in name and not name.endswith("/agent")]]

    def stop_children(self, children):
        for child in children:
            if child.poll() is None:
                child.terminate()
        until = time.monotonic() + STOP_S
        for child in children:
            try:
                child.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def stop_switch(self, child):
        child.stdin.close()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
        if child.returncode != 0:
            print(f"the switch ended with status {child.returncode}:\n"
                  + (self.folder / "switch.log").read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
        return 1 if child.returncode != 0 else 0


def run(options, say_ready):
    """The life of a lab. say_ready() is given its state. Returns the exit status."""
    supervisor = Supervisor(options)
    supervisor.watch_signals()
    try:
        supervisor.start()
        say_ready(supervisor.state())
        status = supervisor.wait()
    except BaseException:
        supervisor.stop()
        raise
    return supervisor.stop() or status
