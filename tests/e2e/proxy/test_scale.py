"""Much at once: large bodies, many connections, slow clients. Figures of memory are those of the agents alone; the programs at
both ends are the instruments of bench/proxy, which check each byte of a body. With CHEOPS_FULL=1 the bodies have 4 GB."""
import os
import re
import resource
import subprocess
import sys

import pytest

import proxy_lab

FULL = os.environ.get("CHEOPS_FULL") == "1"
BODY_BYTES = 4 << 30 if FULL else 512 << 20
BOUND_S = 300


@pytest.fixture(scope="session")
def tools(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    source = root / "bench" / "proxy"
    for name in ("backend", "load"):
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-o", folder / name, source / f"{name}.c",
                        source / "net.c", "-lm"], check=True, timeout=120)
    return folder


@pytest.fixture
def backend(tools):
    """backend(): the C service of bench/proxy; its port."""
    made = []

    def make():
        port = proxy_lab.free_port()
        made.append(subprocess.Popen([tools / "backend", f"127.0.0.1:{port}"]))
        proxy_lab.wait_until(lambda: answers(port), "the backend")
        return port

    yield make
    for process in made:
        process.kill()
        process.wait(30)


def answers(port):
    try:
        proxy_lab.Wire.to(port).close()
        return True
    except ConnectionRefusedError:
        return False


def run_load(tools, mode, port, **options):
    """What it printed, by name."""
    arguments = [f"{name}={value}" for name, value in options.items()]
    run = subprocess.run([tools / "load", mode, f"127.0.0.1:{port}", *arguments], capture_output=True, text=True,
                         timeout=BOUND_S, check=False)
    assert run.returncode == 0, run
    return dict(line.split(" ", 1) for line in run.stdout.splitlines())


def tell(text):
    """For whoever looks with -s, or at what a test said that failed."""
    print(text, file=sys.stderr)


@pytest.mark.parametrize("mode", ["upload", "download"])
def test_a_large_body_through_two_agents(start, join, backend, tools, sanitized, mode):
    here, there = (start(proxy_lab.describe(f"Site{n + 1}", {"service": [backend()]})) for n in range(2))
    join(here, there)
    size = BODY_BYTES // (8 if sanitized else 1)
    told = run_load(tools, mode, here.port(), bytes=size, header="Scope: Site2")
    peaks = [agent.memory_kb("VmHWM") for agent in (here, there)]
    tell(f"{mode} of {size >> 20} MiB: {told['seconds']} s, peaks {peaks} KiB")
    assert there.counter("cheops_peer_requests_total") == 1
    if not sanitized:
        assert max(peaks) < 32 << 10


def test_ten_thousand_idle_connections(start, backend, tools, sanitized):
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 11000, "not enough descriptors here"
    agent = start(proxy_lab.describe(services={"service": [backend()]}, threads=2))
    before = agent.memory_kb()
    idle = subprocess.Popen([tools / "load", "idle", f"127.0.0.1:{agent.port()}", "connections=10000"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert idle.stdout.readline() == "open 10000\n"
        proxy_lab.wait_until(lambda: agent.counter("cheops_client_connections") >= 10000, "all connections")
        memory = agent.memory_kb()
        tell(f"10000 idle connections: {memory} KiB, without any {before} KiB")
        if not sanitized:
            assert memory < 120 << 10
        assert agent.ask().status == 200
        out, _ = idle.communicate("", timeout=BOUND_S)  # it asks once more on each of them
        assert "kept 10000" in out
    finally:
        idle.kill()
        idle.wait(30)
    proxy_lab.wait_until(lambda: agent.counter("cheops_client_connections") < 10, "the end of the connections")


def test_slow_clients_while_others_are_served(start, backend, tools, sanitized):
    """What a request costs the agent in processor time is compared: how many it serves in a second says more of who else is busy."""
    agent = start(proxy_lab.describe(services={"service": [backend()]}, timeouts={"header": "10min"}))

    def speed():
        """Requests per second of the agent's processor time."""
        told = run_load(tools, "requests", agent.port(), seconds=2, warmup=0.3, cpu=agent.pid)
        return float(told["requests"]) * 1e9 / float(told[f"cpu_ns_{agent.pid}"])

    alone = speed()
    script = os.path.join(os.path.dirname(__file__), "slow_clients.py")
    slow = subprocess.Popen([sys.executable, script, str(agent.port()), "5000"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        assert slow.stdout.readline() == "open\n"
        proxy_lab.wait_until(lambda: agent.counter("cheops_client_connections") >= 5000, "all connections")
        beside = max(speed() for _ in range(2))
        memory = agent.memory_kb()
        out, _ = slow.communicate("\n", timeout=BOUND_S)
        broken, seconds = map(int, re.fullmatch(r"(\d+) (\d+)\n", out).groups())
    finally:
        slow.kill()
        slow.wait(30)
    tell(f"5000 slow clients: {beside:.0f} requests for a second of the processor beside them, {alone:.0f} without, {memory} KiB")
    assert broken == 0 and seconds >= 2
    if not sanitized:
        assert beside > alone * 0.3
        assert memory < 120 << 10


def test_a_client_that_goes_on_sending_after_its_answer(start, backend, tools):
    """It sends as fast as it can what nobody will read: for a while that is thrown away, then the connection is closed. The
    one thread of the agent has time for others all along."""
    config = proxy_lab.describe(services={"service": [backend()], "nowhere": [proxy_lab.free_port()]})
    agent = start(config)
    floods = [subprocess.Popen([tools / "load", "upload", f"127.0.0.1:{agent.port('nowhere')}", f"bytes={1 << 42}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        while any(flood.poll() is None for flood in floods):
            assert agent.ask().status == 200
    finally:
        for flood in floods:
            flood.kill()
            flood.wait(30)
