"""Fixtures of the tests of reads at several sites: a demo of three sites, and agents before services that a test plays."""
import contextlib
import pathlib
import sys

import pytest

for beside in ("demo", "sample", "sharing", "replication"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / beside))

import demo_process  # noqa: E402
import lists_lab  # noqa: E402


@pytest.fixture(scope="session")
def sanitized(cheops):
    """Is the executable built with a sanitizer? Then figures of memory and speed say nothing."""
    with open(cheops.path, "rb") as file:
        code = file.read()
    return b"__asan_init" in code or b"__tsan_init" in code


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    made = demo_process.Demo(tmp_path_factory.mktemp("aggregation") / "demo")
    yield made
    made.stop()


@pytest.fixture
def lab(tmp_path):
    """lab.sites[NAME].answer says what the image service of a site sends; requests go to Site1."""
    with contextlib.ExitStack() as stops:
        made = lists_lab.Lab(tmp_path)
        stops.callback(made.stop)
        yield made
