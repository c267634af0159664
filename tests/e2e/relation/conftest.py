"""Fixtures of the tests of relations: a demo of three sites, and a mesh whose agents can be killed."""
import contextlib
import pathlib
import sys

import pytest

for beside in ("demo", "sample", "sharing", "replication", "wan"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / beside))

import demo_process  # noqa: E402
import mesh as mesh_of_ours  # noqa: E402


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    made = demo_process.Demo(tmp_path_factory.mktemp("relation") / "demo")
    yield made
    made.stop()


@pytest.fixture
def mesh(tmp_path):
    """Agents and services with a configuration of the test's own."""
    with contextlib.ExitStack() as stops:
        made = mesh_of_ours.Mesh(tmp_path)
        stops.callback(made.stop)
        yield made
