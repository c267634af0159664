"""Fixtures of the tests of sharing: demos with each way of carrying a scope, images in them, and a mesh of one's own."""
import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "demo"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sample"))

import demo_process  # noqa: E402
import mesh as mesh_of_ours  # noqa: E402
from demo_sites import Sites  # noqa: E402

# mode of the demo, and what a client has to send so that there is something that the service forwards
MODES = ["headers", "baggage", "trace", "request-id", "header=X-Auth-Token"]


@pytest.fixture(scope="session")
def demos(tmp_path_factory):
    """demos(mode): the demo of three sites in that mode; None: the default. Each is started once, and kept."""
    with contextlib.ExitStack() as stops:
        made = {}

        def find(mode=None):
            if mode not in made:
                demo = demo_process.Demo(tmp_path_factory.mktemp("sharing") / "demo", *(["--forward", mode] if mode else []))
                stops.callback(demo.stop)
                made[mode] = Sites(demo)
            return made[mode]

        yield find


@pytest.fixture
def sites(demos):
    return demos(None)


@pytest.fixture(params=MODES)
def carrying(request, demos):
    """The demo in each mode in which a scope follows; `.mode` says which."""
    made = demos(request.param)
    made.mode = request.param
    return made


@pytest.fixture
def mesh(tmp_path):
    """Agents and services with a configuration of the test's own."""
    with contextlib.ExitStack() as stops:
        made = mesh_of_ours.Mesh(tmp_path)
        stops.callback(made.stop)
        yield made
