"""The control socket of the switch: one line is one command, the answer ends with `ok` or `error: ...`."""
import os
import pathlib
import socket

from .errors import LabError

BOUND_S = 30


def socket_path(folder, descriptor):
    """A path that is short enough for a UNIX socket, whatever the folder's is. The folder is held open meanwhile."""
    return f"/proc/self/fd/{descriptor}/{folder}"


def connect(folder):
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(BOUND_S)
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        made.connect(socket_path("control", descriptor))
    except OSError as error:
        made.close()
        raise LabError(f"cannot reach the switch at {pathlib.Path(folder) / 'control'}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return made


def listen(folder):
    made = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        made.bind(socket_path("control", descriptor))
        made.listen(64)
    finally:
        os.close(descriptor)
    return made


class Control:
    def __init__(self, folder):
        self.socket = connect(folder)
        self.stream = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stream.close()
        self.socket.close()

    def answer(self):
        lines = []
        while True:
            line = self.stream.readline().decode()
            if line == "ok\n":
                return lines
            if line.startswith("error: "):
                raise LabError(line[7:-1])
            if not line.endswith("\n"):
                raise LabError("the switch ended")
            lines.append(line[:-1])

    def run(self, *words):
        """The lines of the answer."""
        self.socket.sendall(" ".join(words).encode() + b"\n")
        return self.answer()

    def run_all(self, commands):
        """Many commands, of one answer line each, in few packets."""
        for start in range(0, len(commands), 100):
            part = commands[start:start + 100]
            self.socket.sendall("".join(command + "\n" for command in part).encode())
            for command in part:
                try:
                    self.answer()
                except LabError as error:
                    raise LabError(f"{error} (in: {command})") from None

    def set(self, pair, **keys):
        self.run("set", pair, *(f"{key}={value}" for key, value in keys.items()))

    def table(self, what, *pair):
        """{pair: {key: text}} of `show` or `stats`."""
        made = {}
        for line in self.run(what, *pair):
            name, *values = line.split()
            made[name] = dict(value.split("=", 1) for value in values)
        return made

    def stats(self, *pair):
        return {name: {key: int(value) for key, value in values.items()}
                for name, values in self.table("stats", *pair).items()}
