"""What the tests of relations share with those of replication."""
import pathlib
import sys

import pytest

for beside in ("demo", "replication", "sample", "sharing", "wan"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / beside))

import demo_process  # noqa: E402


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    made = demo_process.Demo(tmp_path_factory.mktemp("relation") / "demo")
    yield made
    made.stop()
