"""The benchmark of what the console carries, with one camera for a moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reference.system import BROWSER, needs

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "console_load.py"
SMALL = ("--only=carried", "--sizes=360x288", "--most=1", "--seconds=3")


@pytest.mark.soak
def test_a_camera_is_carried():
    needs(BROWSER)
    done = subprocess.run(
        [sys.executable, SCRIPT, *SMALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert "documents in 3 s" in row["note"]
    assert row["ours"] in (0, 1), "none where the machine has too much else to do"
