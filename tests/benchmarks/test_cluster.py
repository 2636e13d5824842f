"""The benchmark of a cluster, on little."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster.py"
SMALL = ("--only", "extraction", "tasks", "--minutes", "0.6", "--tasks", "50")


@pytest.mark.soak
def test_two_workers_are_measured_beside_one():
    done = subprocess.run(
        [sys.executable, SCRIPT, *SMALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    speed, sent, tasks = json.loads(done.stdout)
    assert speed["what"].endswith("two workers over one")
    assert speed["ratio"] > 0
    assert 0.1 < sent["ours"] < 1000, "MB per hour of video"
    assert tasks["ours"] > 1
