"""Processes of a benchmark: started on a core, watched, and always stopped; ports and a folder for them."""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

READY_SECONDS = 10
STOP_SECONDS = 5
PORTS = range(20000, 32000)     # below the range that the kernel gives to outgoing connections
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """A side could not be measured; the text says why."""


def cpu_seconds_of(pid):
    """Of all threads of a process, by the clock that clock_getcpuclockid(3) would name."""
    return time.clock_gettime((~pid << 3) | 2)


class Process:
    """One program of ours. Its children, such as nginx's worker, count as part of it."""

    def __init__(self, name, popen, output):
        self.name, self.popen, self.output = name, popen, output

    def pids(self):
        children = pathlib.Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children").read_text()
        return [self.popen.pid] + [int(pid) for pid in children.split()]

    def cpu_seconds(self):
        return sum(map(cpu_seconds_of, self.pids()))

    def memory_mb(self, field="VmRSS"):
        """VmRSS now, or VmHWM, the highest it ever was."""
        kb = 0
        for pid in self.pids():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            kb += next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field + ":"))
        return kb / 1024

    def said(self):
        """The last of what it printed, for an error message."""
        return self.output.read_text(errors="replace")[-1500:].strip() or "(it printed nothing)"

    def check(self):
        if self.popen.poll() is not None:
            raise Failed(f"{self.name} ended with status {self.popen.returncode}: {self.said()}")

    def stop(self):
        pids = self.pids() if self.popen.poll() is None else []
        if pids:
            self.popen.terminate()
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                self.popen.wait()


class Stage:
    """What is running now, and the folder that it uses; leaving it removes both."""

    def __init__(self, nice=0, under=None):
        self.nice = nice
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cheops-bench-", dir=under))
        self.processes = []
        self.next_port = PORTS.start + os.getpid() * 7 % len(PORTS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self):
        """Stops everything, last started first."""
        while self.processes:
            self.processes.pop().stop()

    def port(self):
        """One that nobody listens on."""
        for _ in PORTS:
            self.next_port = self.next_port + 1 if self.next_port + 1 in PORTS else PORTS.start
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", self.next_port))
                    return self.next_port
                except OSError:
                    continue
        raise Failed("no free port between %d and %d" % (PORTS.start, PORTS.stop))

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, name, command, core, **more):
        """Starts a program on one core, or (None) on any. It dies with us, even if we are killed."""
        libc = ctypes.CDLL(None)

        def prepare():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if core is not None:
                os.sched_setaffinity(0, {core})
            if self.nice != 0:
                os.setpriority(os.PRIO_PROCESS, 0, self.nice)
                if os.path.exists("/proc/self/autogroup"):      # where it is the session's niceness that counts
                    pathlib.Path("/proc/self/autogroup").write_text(str(self.nice))

        output = self.folder / f"{name}.{len(self.processes)}.output"
        with output.open("w") as file:
            popen = subprocess.Popen([str(part) for part in command], stdin=more.get("stdin", subprocess.DEVNULL),
                                     stdout=more.get("stdout", file), stderr=file, preexec_fn=prepare, text=True,
                                     start_new_session=True, cwd=self.folder)
        process = Process(name, popen, output)
        self.processes.append(process)
        return process

    def wait_ready(self, process, port, path="/", headers=()):
        """Until GET `path` is answered with 200."""
        until = time.monotonic() + READY_SECONDS
        answer = b""
        while time.monotonic() < until:
            process.check()
            try:
                answer = get(port, path, headers)
                if answer.startswith(b"HTTP/1.1 200 "):
                    return
            except OSError as error:
                answer = str(error).encode()
            time.sleep(0.02)
        raise Failed(f"{process.name} did not answer 200 to GET {path} on port {port} within {READY_SECONDS} s, but: "
                     f"{answer[:400].decode(errors='replace')}\nit printed: {process.said()}")


def get(port, path, headers):
    """The beginning of the answer to one request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.recv(4096)


def machine_busy_seconds():
    """What all cores together have spent so far, on anybody's behalf; what the host took away counts as well."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    idle = int(fields[3]) + int(fields[4])
    return (sum(int(field) for field in fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")
