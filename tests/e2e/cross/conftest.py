"""What the tests of cross resources share with those of replication."""
import pathlib
import sys

import pytest

for beside in ("demo", "replication", "sample", "sharing", "wan"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / beside))


@pytest.fixture(scope="module")
def replicant(cheops, lab):
    """`cheops replicant ...`, asked at a site of the module's own lab."""
    def run_it(*arguments, at=1, status=0):
        result = cheops("replicant", *arguments, "--api", lab[at].config["api"])
        assert result.status == status, result
        return result
    return run_it
