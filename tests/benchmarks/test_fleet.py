"""The benchmark of fleets, on two tiny rendered junctions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fleet.py"


@pytest.mark.soak
def test_every_camera_is_judged_without_and_with_the_fleet_of_the_others():
    small = ("--small", "--seeds", "307", "308", "--restarts", "1")
    arguments = (*small, "--minutes", "0.5", "1")
    found = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    head, means, junctions = found.stdout.strip().split("\n\n")
    assert re.fullmatch(r"[1-9]\d* anomalies that can be seen; each fleet: the other 1", head)
    assert cells(junctions)[0] == ["footage", "307", "308"]
    _, _, *figures = cells(means)
    both = ("alone", "with the fleet")
    assert [name for name, *_ in figures] == [f"{n} min, {how}" for n in (0.5, 1) for how in both]
    assert figures[0][1:] != figures[1][1:]
    assert all(0 < float(precision) <= 1 for _, precision, *_ in figures)


def cells(table):
    """Return the cells of a table in Markdown."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
