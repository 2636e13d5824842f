"""The demo: everything it promises, from an empty folder."""

import json
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from habitus.cli import main; main()"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, subprocess.run(
        [*COMMAND, "demo", "--json"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_it_makes_what_it_says(run):
    folder, demo = run
    assert demo.returncode == 0, demo.stderr
    made = {path.name for path in (folder / "demo").iterdir()}
    assert made >= {
        "junction.mp4",
        "junction.csv",
        "junction.model",
        "events.jsonl",
        "annotated.mp4",
        "report.html",
    }
    found = json.loads(demo.stdout)
    assert len((folder / "demo/events.jsonl").read_text().splitlines()) == len(found["events"])
    assert len((folder / "demo/junction.csv").read_text().splitlines()) == len(found["truth"]) + 1


def test_it_finds_anomalies_and_hardly_anything_else(run):
    found = json.loads(run[1].stdout)
    assert found["found"] >= 2
    assert found["false_alarms"] <= 3
