"""All that the threads of an agent share, used at once: configurations that change, counters that are read, the memory of
ids, the loops' queues. With CHEOPS_TSAN=PATH the agents are that executable, which has the thread sanitizer in it
(scripts/test sets it); it has to find nothing."""
import os
import subprocess
import threading

import pytest

import proxy_lab
from proxy_lab import PATIENCE_S, request
from test_scale import backend, tools  # noqa: F401, fixtures

SECONDS = 4


@pytest.fixture
def agents(cheops, tmp_path, backend, join):  # noqa: F811
    """Two sites with two threads each, whose services forward in every way there is."""
    executable = os.environ.get("CHEOPS_TSAN", cheops.path)
    made = []
    for n in range(2):
        port = backend()
        services = {"service": {"instances": [port], "carry": ["header", "baggage", "traceparent", "request-id:X-Id"]},
                    "other": {"instances": [port], "carry": ["append:X-Token"]}, "mute": {"instances": [port], "carry": []}}
        config = proxy_lab.describe(f"Site{n + 1}", services, threads=2)
        made.append(proxy_lab.Agent(executable, tmp_path, config,
                                    env={"TSAN_OPTIONS": "halt_on_error=0:exitcode=66:report_signal_unsafe=0"}))
    join(*made)
    yield made
    for agent in made:
        agent.stop()


def test_everything_at_once(agents, tools):  # noqa: F811
    here, there = agents
    stop, failures = threading.Event(), []

    def repeat(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as failure:
            failures.append(failure)
            raise

    number = iter(range(10 ** 9))

    def ask():
        """Scopes that are remembered by ids, which other threads look up."""
        n = next(number)
        trace = f"00-{n % 50 + 1:032x}-{n + 1:016x}-01"
        for service, fields in (("service", {"Scope": "Site1, other: Site2", "traceparent": trace, "X_Id": f"id{n % 50}"}),
                                ("other", {"traceparent": trace}), ("other", {"X_Id": f"id{n % 50}"}),
                                ("other", {"X_Token": "t!SCOPE!Site2"}), ("mute", {"Scope": "Site2, other: Site1"}),
                                ("service", {"Scope": "nonsense("})):
            answer = here.ask(service=service, **fields)
            assert answer.status == (400 if fields.get("Scope") == "nonsense(" else 200), answer

    def change():
        """The card of this site, and so the view of both, changes with each reload, and the level of the log."""
        n = next(number)
        here.config["log"] = ("info", "debug", "warn")[n % 3]
        here.config["tags"] = {"number": n}
        here.write()
        assert here.reload(False)

    def look():
        assert here.api("/cheops/v1/metrics")[0] == 200 and there.api("/cheops/v1/sites")[0] == 200

    def come_and_go():
        with here.client() as wire:
            wire.send(request() * 3)
            wire.response()
        with here.client() as wire:
            wire.send(b"nonsense\r\n\r\n")
            assert wire.response().status in (400, 501)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in (ask, ask, change, look, come_and_go)]
    for thread in threads:
        thread.start()
    loads = [subprocess.Popen([tools / "load", "requests", f"127.0.0.1:{here.port()}", "connections=8", f"seconds={SECONDS}",
                               *fields], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for fields in ([], ["header=Scope: Site2"], ["header=Scope: service: Site1, other: Site2"])]
    outs = [load.communicate(timeout=SECONDS + PATIENCE_S) for load in loads]
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == []
    assert [load.returncode for load in loads] == [0, 0, 0], outs
    here.signal(proxy_lab.signal.SIGTERM)
    assert here.wait_exit() == 0
