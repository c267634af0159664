"""What the tests of cross resources share with those of replication."""
import pathlib
import sys

for beside in ("demo", "replication", "sample", "sharing", "wan"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / beside))
