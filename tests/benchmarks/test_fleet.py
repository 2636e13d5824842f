"""The benchmark of fleets, on two tiny rendered junctions."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fleet.py"


def test_every_camera_is_judged_without_and_with_the_fleet_of_the_others():
    small = ("--small", "--seeds", "307", "308", "--restarts", "1")
    arguments = (*small, "--minutes", "0.5", "1")
    found = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    head, _, columns, _, *lines = found.stdout.splitlines()
    assert re.fullmatch(r"[1-9]\d* anomalies that can be seen; each fleet: the other 1", head)
    assert columns.endswith("| 307 | 308 |")
    names = [line.split(" | ")[0] for line in lines]
    both = ("without", "with the fleet")
    assert names == [f"| {n} min, {how}" for n in (0.5, 1) for how in both]
    figures = [line.split(" | ")[1:] for line in lines]
    assert figures[0] != figures[1]
    assert all(0 < float(precision) <= 1 for precision, *_ in figures)
