"""The benchmark of the console's pages, on a console with next to nothing in it."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "console_pages.py"
SMALL = ("--events=40", "--days=1", "--cameras=2", "--rounds=1", "--no-pictures")
PAGES = (
    "/",
    "/events",
    "/review",
    "/settings",
    "/api/events",
    "/api/precision",
    "/metrics",
    "/calendar",
    "/events?sort=unusual",
)


@pytest.mark.soak
def test_every_page_is_asked_for():
    done = subprocess.run(
        [sys.executable, SCRIPT, *SMALL, "--databases", "sqlite"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| `/")]
    found = {cells[1].strip(" `") for cells in rows}
    assert set(PAGES) <= found
    assert any(path.startswith("/cameras/camera-") for path in found)
    assert all(float(cells[2]) > 0 and float(cells[3]) > 0 for cells in rows)
    slow = [line for line in done.stdout.splitlines() if line.startswith("slower than")]
    assert done.returncode == (1 if slow else 0)
