"""habitus watch, as a service runs it: disks that are full, logs that rotate, readers that go."""

import contextlib
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

import habitus
from habitus.files import check_output
from reference.footage import encode, moving_square, texture
from reference.processes import LONG, decoders, wait_until
from reference.streams import free_port, motion_jpeg, playing
from reference.two_lanes import FPS, HEIGHT, WIDTH, WRONG, pictures, two_lanes

COMMAND = [sys.executable, "-m", "habitus"]
X264 = {"preset": "ultrafast", "tune": "zerolatency", "g": "10"}
# Faster than it is: a test does not wait for traffic.
SPEED = 20
BUDGET = 144  # what half a minute of footage can tell


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of two lanes, and a stream of 14 seconds in which something goes wrong."""
    folder = tmp_path_factory.mktemp("watch")
    normal = {
        "learning": habitus.LearningSettings(2, 2, n_restarts=1),
        "reading": habitus.ReadingSettings(duration=WRONG[0] - 2),
    }
    lanes = two_lanes(folder / "lanes.mp4")
    habitus.learn(str(lanes), output=folder / "lanes.model", **normal)
    wrong = islice(pictures(), int(WRONG[0] - 6) * FPS, int(WRONG[1] + 5) * FPS)
    encode(folder / "wrong.ts", wrong, rate=FPS, options=X264)
    return folder


@pytest.fixture
def camera(folder):
    """Shows what goes wrong, again and again."""
    port = free_port()
    with playing(port, folder / "wrong.ts", fps=SPEED * FPS):
        yield f"tcp://127.0.0.1:{port}"


@pytest.fixture
def watch(folder, start):
    """A function that starts watching an address."""

    def started(address, *options, **how):
        command = [*COMMAND, "watch", address, "-m", "lanes.model", "--alerts-per-day", BUDGET]
        how = {"stderr": subprocess.DEVNULL} | how
        return start([*command, *options], cwd=folder, **how)

    return started


def events_in(path):
    """Events that were written so far."""
    text = path.read_text() if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [one for one in found if one["habitus"] == "event"]


def wait_for_events(path, n, process):
    wait_until(lambda: len(events_in(path)) >= n or process.poll() is not None, f"{n} events")
    assert process.poll() is None


def until(text, process):
    """Lines on stderr up to the first with a text."""
    told = [""]
    while text not in told[-1]:
        told.append(process.stderr.readline())
        assert told[-1], f"ended without saying {text!r}: {told}"
    return told


def ended(process):
    """The exit code and what was told on stderr, if that is read here."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=LONG)
    assert "Traceback" not in (errors or "")
    return process.returncode, errors


def test_whatever_happens_to_the_file_no_event_is_lost(camera, watch, tmp_path):
    """A torn line, pictures that cannot be written, log rotation, a full disk.

    A limit on the size of files stands for the disk: it can be lifted from outside.
    """
    events, old = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    (tmp_path / "events-thumbnails").write_text("in the way")
    events.write_text('{"habitus": "event", "ver')
    whole = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # or half of a module is left
    process = watch(camera, "-o", events, stderr=subprocess.PIPE, env=whole)
    told = until("the last line was cut short", process)
    assert (tmp_path / "events.jsonl.torn").read_text() == '{"habitus": "event", "ver\n'
    wait_for_events(events, 2, process)
    told += until("note: no picture", process)
    events.rename(old)
    process.send_signal(signal.SIGHUP)
    wait_for_events(events, 1, process)
    limit = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (events.stat().st_size, -1))
    told += until("events wait in memory", process)
    n_before, n_started = len(events_in(old)), sum("upper right" in line for line in told)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limit)
    wait_for_events(events, n_started - n_before, process)
    code, errors = ended(process)
    assert code == 0
    told += errors.splitlines()
    found = events_in(old) + events_in(events)
    assert len(found) == sum("upper right" in line for line in told)
    clocks = [event["clock"] for event in found]
    assert clocks == sorted(set(clocks))


def test_a_restart_knows_the_alarms_of_before(camera, watch, tmp_path):
    events = tmp_path / "events.jsonl"
    process = watch(camera, "-o", events)
    wait_for_events(events, 1, process)
    assert ended(process)[0] == 0
    before = {**events_in(events)[-1], "normality": -1e9}
    events.write_text(f"{json.dumps(before)}\n" * 10 + '{"habitus": "ev')
    process = watch(camera, "-o", events, stderr=subprocess.PIPE)
    until("below the threshold: after 10 alarms in 50 minutes", process)
    assert ended(process)[0] == 0
    assert [event["normality"] for event in events_in(events)] == [-1e9] * 10


def test_a_camera_that_is_absent_then_another_then_too_slow_then_itself(folder, watch, tmp_path):
    small = encode(tmp_path / "small.ts", moving_square(100), rate=FPS, options=X264)
    slow = encode(tmp_path / "slow.ts", pictures(10), rate=1, options=X264)
    events, port = tmp_path / "events.jsonl", free_port()
    process = watch(f"tcp://127.0.0.1:{port}", "-o", events, stderr=subprocess.PIPE)
    until("connection refused; check address and port; trying again in 1 s", process)
    with playing(port, small):
        until("the picture has 160x128 pixels, expected 192x144", process)
    with playing(port, slow):
        until("a clip must hold at least two frames", process)
    (decoder,) = decoders(process.pid)
    with playing(port, folder / "wrong.ts", fps=SPEED * FPS):
        wait_for_events(events, 1, process)
    assert decoders(process.pid) == [decoder]
    assert ended(process)[0] == 0


@pytest.mark.parametrize("card", ["black", "test card"])
def test_a_camera_that_starts_with_something_else_is_not_blind(folder, watch, tmp_path, card):
    """Twenty seconds of nothing, or of a test card; then something goes wrong in the scene."""
    shown = np.zeros((HEIGHT, WIDTH), np.uint8) if card == "black" else texture(WIDTH, HEIGHT, 77)
    rng = np.random.default_rng(0)
    noise = (rng.integers(0, 2, shown.shape, dtype=np.uint8) for _ in range(20 * FPS))
    beginning = [np.clip(shown, 0, 254) + some for some in noise]
    wrong = islice(pictures(), int(WRONG[0] - 12) * FPS, int(WRONG[1] + 5) * FPS)
    path = encode(tmp_path / "card.ts", [*beginning, *wrong], rate=FPS, options=X264)
    events, port = tmp_path / "events.jsonl", free_port()
    with playing(port, path, fps=SPEED * FPS):
        process = watch(f"tcp://127.0.0.1:{port}", "-o", events)
        wait_for_events(events, 1, process)
        assert ended(process)[0] == 0
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    faults = [line for line in lines if line["habitus"] == "fault"]
    assert [fault["over"] for fault in faults[:2]] == [False, True]
    assert faults[0]["condition"] == ("covered" if card == "black" else "moved")
    assert 10 <= faults[0]["seconds"] <= faults[1]["seconds"] <= 40
    found = habitus.scene.read_events(events)
    assert "upper right" in found[0].explanation
    check_output(events, "events")  # another run may add to it


def first_fault(happenings):
    return next(one for one in happenings if isinstance(one, habitus.CameraFault))


def test_that_there_is_no_camera_is_told_again_and_again(folder, monkeypatch):
    monkeypatch.setattr("habitus.scene.camera_monitor.FIRST_REPORT", 1.0)
    monkeypatch.setattr("habitus.scene.camera_monitor.REPORT_EVERY", 0.5)
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.closing(
        habitus.watch(address, folder / "lanes.model", alerts=BUDGET)
    ) as happenings:
        told = [first_fault(happenings) for _ in range(3)]
        assert [fault.condition for fault in told] == ["absent"] * 3
        assert [fault.over for fault in told] == [False] * 3
        assert 1 <= told[0].seconds < told[1].seconds < told[2].seconds
        assert len({fault.clock for fault in told}) == 1
        with playing(port, folder / "wrong.ts", fps=FPS):
            while not (fault := first_fault(happenings)).over:
                assert fault.condition == "absent"
    assert decoders() == []


def test_a_camera_with_too_few_frames_is_told(folder, monkeypatch):
    """It declares no rate that could be refused."""
    monkeypatch.setattr("habitus.scene.camera_monitor.FIRST_REPORT", 1.0)
    drawn = [cv2.imencode(".jpg", picture)[1].tobytes() for picture in islice(pictures(), 60)]
    with (
        motion_jpeg(drawn, fps=0.9) as address,
        contextlib.closing(
            habitus.watch(address, folder / "lanes.model", alerts=BUDGET)
        ) as happenings,
    ):
        assert first_fault(happenings).condition == "slow"


def full_pipe():
    """Both ends of a pipe that has no room left."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"before\n" * 100)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"\n")
    fcntl.fcntl(write, fcntl.F_SETFL, 0)
    return read, write


def test_a_reader_of_stderr_that_goes_away(camera, watch, tmp_path):
    events = tmp_path / "events.jsonl"
    read, write = os.pipe()
    process = watch(camera, "-o", events, stderr=write)
    os.close(write)
    os.close(read)
    wait_for_events(events, 2, process)
    assert ended(process)[0] == 0


def test_closed_standard_files_are_not_taken_by_others(camera, folder, start, tmp_path):
    """What the decoder says on stderr must not come between its messages."""
    events = tmp_path / "events.jsonl"
    command = [*COMMAND, "watch", camera, "-m", folder / "lanes.model", "-o", events]
    command += ["--alerts-per-day", str(BUDGET)]
    process = start(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command])
    wait_for_events(events, 1, process)
    (decoder,) = decoders(process.pid)
    for pid in (process.pid, decoder):
        assert Path(f"/proc/{pid}/fd/2").readlink() == Path(os.devnull)
    assert ended(process)[0] == 0


def test_a_reader_of_stderr_that_does_not_read(camera, watch, tmp_path):
    events = tmp_path / "events.jsonl"
    read, write = full_pipe()
    process = watch(camera, "-o", events, stderr=write)
    os.close(write)
    wait_for_events(events, 2, process)
    assert ended(process)[0] == 0
    os.close(read)


def test_lines_that_were_not_read_are_counted(tmp_path):
    """A reader that comes back learns how much it missed."""
    code = (
        "from habitus.cli import lines\n"
        "lines.ROOM, lines.ENDING = 10, 60\n"
        "with lines.ErrorLines() as errors:\n"
        "    for n in range(100):\n"
        "        errors.add(str(n))\n"
        "    print('told', flush=True)\n"
        "    input()\n"
        "    while len(errors._backlog):\n"
        "        pass\n"
        "    errors.add('last')\n"
    )
    read, write = full_pipe()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write,
        text=True,
    ) as process:
        os.close(write)
        assert process.stdout.readline() == "told\n"
        process.stdin.write("\n")
        process.stdin.close()
        with os.fdopen(read) as errors:
            told = [line.strip() for line in errors if line not in ("before\n", "\n")]
    assert process.returncode == 0
    notes = [line for line in told if line.startswith("note: ")]
    n_unread = sum(int(note.split()[1]) for note in notes)
    assert all("not read" in note for note in notes)
    assert told[-1] == "last"
    assert n_unread + len(told) - len(notes) - 1 == 100
    assert n_unread > 80


def test_a_reader_of_the_events_that_does_not_read(camera, watch):
    """SIGTERM ends it; what nobody read is told."""
    read, write = full_pipe()
    process = watch(camera, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    until("the stream ended", process)  # and so has the event
    code, errors = ended(process)
    assert code == 1
    assert 'note: not read from standard output: {"habitus": "event"' in errors
    assert "habitus: 1 line of standard output could not be written\n" in errors
    os.close(read)


def test_a_reader_of_the_events_that_goes_away(camera, watch):
    process = watch(camera, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert json.loads(process.stdout.readline())["habitus"] == "event"
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(LONG) == 1
    assert "Traceback" not in errors
    assert decoders(process.pid) == []
