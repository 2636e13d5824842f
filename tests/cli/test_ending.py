"""Commands that are ended at any moment: no process and no temporary file stays."""

import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from habitus import Corpus
from reference.footage import FPS, encode, moving_square
from reference.processes import LONG, descendants, wait_until, workers
from reference.streams import silent

COMMAND = [sys.executable, "-m", "habitus"]
TERMINATED = 128 + signal.SIGTERM
SECONDS = 40
# Seconds in which a command starts, decodes, and ends or nearly so. Any moment is as good.
LATEST = 3.0
KILLS = 5


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    pictures = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    path = tmp_path_factory.mktemp("ending") / "a.mp4"
    return encode(path, pictures, options={"preset": "ultrafast", "g": "25"})


@pytest.fixture
def place(tmp_path):
    (tmp_path / "temporary").mkdir()
    return tmp_path


def extract(start, place, source, *options):
    command = [*COMMAND, "extract", source, "-o", "a.corpus", "--jobs", 2, *options]
    with (place / "errors").open("w") as errors:
        return start(
            command,
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"TMPDIR": str(place / "temporary")},
        )


def of_session(process):
    """Everything that a command started and that is still there, orphans too."""
    found = []
    for one in psutil.process_iter(["status"]):
        try:
            if os.getsid(one.pid) == process.pid and one.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(one.pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def assert_gone(process):
    assert process.wait(LONG) is not None
    wait_until(lambda: not of_session(process), "every process to end")


def left(place):
    return sorted(p.name for p in place.iterdir() if p.name not in ("errors", "temporary"))


@pytest.mark.parametrize("everyone", [False, True], ids=["the command", "all its processes"])
def test_terminated_at_any_moment_nothing_is_left(place, video, start, everyone):
    moments = np.random.default_rng(int(everyone))
    for _ in range(KILLS):
        process = extract(start, place, video)
        try:
            process.wait(moments.uniform(0.5, LATEST))
        except subprocess.TimeoutExpired:
            (os.killpg if everyone else os.kill)(process.pid, signal.SIGTERM)
        assert_gone(process)
        # Before Python has started, a signal just ends it; a command may also be over already.
        # Interrupted while it executes text, as dataclasses do that are imported, Python ends
        # itself by SIGINT, although the interrupt was handled.
        assert process.returncode in (TERMINATED, -signal.SIGTERM, -signal.SIGINT, 0)
        assert "Traceback" not in (place / "errors").read_text()
        assert list((place / "temporary").iterdir()) == []
        assert set(left(place)) <= {".a.corpus.chunks", "a.corpus"}


def test_terminated_while_workers_start(place, video, start):
    process = extract(start, place, video)
    wait_until(lambda: workers(process.pid), "a worker")
    process.terminate()
    assert_gone(process)
    assert process.returncode == TERMINATED
    assert (place / "errors").read_text().splitlines()[-1].startswith("habitus: interrupted")
    assert list((place / "temporary").iterdir()) == []
    assert left(place) == []


def test_terminated_while_a_camera_is_silent(place, start):
    with silent() as camera:
        process = extract(start, place, camera.address, "--timeout", 60)
        camera.wait()
        process.terminate()
        assert_gone(process)
    assert "Traceback" not in (place / "errors").read_text()
    assert list((place / "temporary").iterdir()) == []


def test_killed_at_any_moment_no_process_stays_and_the_next_run_sweeps(place, video, start):
    moments = np.random.default_rng(2)
    for _ in range(KILLS):
        process = extract(start, place, video)
        try:
            process.wait(moments.uniform(0.5, LATEST))
        except subprocess.TimeoutExpired:
            process.kill()
        assert_gone(process)
    process = extract(start, place, video)
    wait_until(lambda: workers(process.pid), "a worker")
    assert descendants(process.pid)
    process.kill()
    assert_gone(process)
    assert list((place / "temporary").iterdir()) != []
    assert extract(start, place, video).wait(LONG) == 0
    assert list((place / "temporary").iterdir()) == []
    assert left(place) == ["a.corpus"]
    assert len(Corpus.load(place / "a.corpus")) == SECONDS
