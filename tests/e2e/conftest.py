"""What the end-to-end tests share: the executable under test ($CHEOPS, or build/cheops), and how it is run.

No test waits for time to pass; every run has a bound, which is generous because the sanitizers are slow.
"""
import json
import os
import pathlib
import pty
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXECUTABLE = pathlib.Path(os.environ.get("CHEOPS", ROOT / "build" / "cheops")).resolve()
TIMEOUT_S = 60


class Result:
    """What a run gave. `out` and `err` are text; a test that cares about bytes has none here that are not UTF-8."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out.decode()
        self.err = err.decode()
        assert "Sanitizer" not in self.err and "runtime error:" not in self.err, self.err
        assert status in (0, 1, 2, 3), f"status {status}: {self.err}"

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"

    @property
    def json(self):
        assert self.out.endswith("\n") and self.out.count("\n") == 1, self
        return json.loads(self.out)


def environment(changes=None):
    """The same for everybody: no colours asked for or refused, and a sanitizer's finding is no ordinary exit status."""
    made = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    made.update(TERM="xterm", LC_ALL="C.UTF-8")
    made["ASAN_OPTIONS"] = made.get("ASAN_OPTIONS", "") + ":exitcode=99"
    for name, value in (changes or {}).items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = value
    return made


class Cheops:
    path = str(EXECUTABLE)

    def __call__(self, *arguments, stdin=None, env=None, cwd=None, stdout=subprocess.PIPE):
        feed = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        if isinstance(stdin, str):
            feed["input"] = stdin.encode()
        run = subprocess.run([self.path, *arguments], stdout=stdout, stderr=subprocess.PIPE, env=environment(env),
                             cwd=cwd, timeout=TIMEOUT_S, check=False, **feed)
        return Result(run.returncode, run.stdout or b"", run.stderr)

    def scope(self, *arguments, **options):
        return self("scope", *arguments, **options)

    def shell(self, script, env=None, cwd=None):
        """A bash script in which $CHEOPS is the executable."""
        run = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment({"CHEOPS": self.path, **(env or {})}), cwd=cwd,
                             timeout=TIMEOUT_S, check=False)
        return Result(run.returncode, run.stdout, run.stderr)

    def terminal(self, *arguments, env=None, typed=None):
        """Runs it with all three streams on a terminal. Returns status and what is seen there."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([self.path, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
                              env=environment(env), start_new_session=True) as child:
            bound = threading.Timer(TIMEOUT_S, child.kill)
            bound.start()
            os.close(theirs)
            if typed is not None:
                os.write(ours, typed.encode())
            seen = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                seen += piece
            status = child.wait()
            bound.cancel()
        os.close(ours)
        return status, seen.decode().replace("\r\n", "\n")


@pytest.fixture(scope="session")
def cheops():
    assert EXECUTABLE.exists(), f"{EXECUTABLE} is not there: build it, or set CHEOPS"
    return Cheops()


@pytest.fixture(scope="session")
def root():
    return ROOT


VIEW = """\
sites:
  Site1: {state: present, tags: {region: west}}
  Site2: {tags: {region: west}}
  Site3: {state: absent, since: 2024-05-01T12:00:00Z}
  "DC 4":
rtt_ms:
  Site1: {Site2: 8, Site3: 25, "DC 4": 0.35}
services:
  compute: {Site1: "2.1", Site2: "2.3", Site3: 2.10, "DC 4": "3.0"}
  image: {Site1: , Site2: ""}
"""


@pytest.fixture
def view(tmp_path):
    """A view file with a little of everything; its path."""
    path = tmp_path / "view.yaml"
    path.write_text(VIEW)
    return str(path)
