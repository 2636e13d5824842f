"""Commands that are ended while they work: no process and no temporary file stays."""

import contextlib
import os
import signal
import subprocess
from textwrap import dedent

import psutil
import pytest

from habitus import Corpus
from reference.commands import COMMAND
from reference.footage import FPS, encode, moving_square, repeated
from reference.processes import LONG, wait_until, workers
from reference.streams import silent

TERMINATED = 128 + signal.SIGTERM
SECONDS = 40
MOMENTS = ("workers start", "chunks are written")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    pictures = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    path = tmp_path_factory.mktemp("ending") / "a.mp4"
    return encode(path, pictures, options={"preset": "ultrafast", "g": "25"})


@pytest.fixture(scope="module")
def long_video(video):
    """So much that it is still being decoded when a signal comes."""
    return repeated(video, video.with_name("long.mp4"), 50)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "temporary").mkdir()
    return tmp_path


def extract(start, place, source, *options, **variables):
    command = [*COMMAND, "extract", source, "-o", "a.corpus", "--jobs", 2, *options]
    with (place / "errors").open("w") as errors:
        return start(
            command,
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"TMPDIR": str(place / "temporary")} | variables,
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


def wait_for(moment, process, place):
    """Wait until a command has come so far, or has ended."""
    if moment == "workers start":
        wait_until(lambda: workers(process.pid) or process.poll() is not None, "a worker")
    else:
        chunks = place / ".a.corpus.chunks"
        wait_until(lambda: list(chunks.glob("*")) or process.poll() is not None, "a chunk")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("everyone", [False, True], ids=["the command", "all its processes"])
def test_terminated_nothing_is_left(place, long_video, start, everyone, moment):
    """At any moment: `make soak`."""
    process = extract(start, place, long_video)
    wait_for(moment, process, place)
    with contextlib.suppress(ProcessLookupError):  # it was over before
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGTERM)
    assert_gone(process)
    told = (place / "errors").read_text()
    assert "Traceback" not in told
    assert list((place / "temporary").iterdir()) == []
    if moment == "workers start":
        assert process.returncode == TERMINATED
        assert told.splitlines()[-1].startswith("habitus: interrupted")
        written = list((place / ".a.corpus.chunks").glob("*"))  # by workers that were quick
        assert left(place) == ([".a.corpus.chunks"] if written else [])
    else:
        assert process.returncode in (TERMINATED, 0)
        assert left(place) in ([".a.corpus.chunks"], ["a.corpus"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("module", "known"), [("typer", False), ("pydantic", True)])
def test_ended_in_the_middle_of_an_import(place, video, start, number, module, known):
    """Before the command begins, the signal just ends it; later the import is waited for."""
    code = (
        f"import os, sys; sys.path.remove({str(place / 'temporary')!r}); del sys.modules[__name__]"
        f"; os.kill(os.getpid(), {number}); import {module}; open('imported', 'w').close()"
    )
    (place / "temporary" / f"{module}.py").write_text(code)
    process = extract(start, place, video, PYTHONPATH=str(place / "temporary"))
    assert_gone(process)
    told = "habitus: interrupted; nothing was left half-written\n" if known else ""
    assert (place / "errors").read_text() == told
    assert process.returncode == (128 + number if known else -number)
    assert left(place) == (["imported"] if known else [])


def test_an_interrupt_that_is_lost_in_a_destructor_is_made_up_for(place, long_video, start):
    """Python prints what a destructor raises, and goes on."""
    code = f"""
        import os, sys
        sys.path.remove({str(place / "temporary")!r}); del sys.modules[__name__]
        import pydantic

        class Ending:
            def __del__(self):
                os.kill(os.getpid(), {signal.SIGTERM})
                all(range(1, 1000))
                open("lost", "w").close()

        def trace(frame, event, argument):
            if frame.f_code.co_name == "extract" and "pipeline" in frame.f_code.co_filename:
                sys.setprofile(None)
                Ending()

        sys.setprofile(trace)
    """
    (place / "temporary" / "pydantic.py").write_text(dedent(code))
    process = extract(start, place, long_video, PYTHONPATH=str(place / "temporary"))
    assert_gone(process)
    told = "habitus: interrupted; nothing was left half-written\n"
    assert (place / "errors").read_text() == told
    assert process.returncode == TERMINATED


def test_terminated_while_a_camera_is_silent(place, start):
    with silent() as camera:
        process = extract(start, place, camera.address, "--timeout", 60)
        camera.wait()
        process.terminate()
        assert_gone(process)
    assert "Traceback" not in (place / "errors").read_text()
    assert list((place / "temporary").iterdir()) == []


def test_killed_no_process_stays_and_the_next_run_goes_on(place, video, start):
    """At any moment: `make soak`."""
    for moment in MOMENTS:
        process = extract(start, place, video, "--force")  # it may be over before
        wait_for(moment, process, place)
        process.kill()
        assert_gone(process)
    assert extract(start, place, video, "--force").wait(LONG) == 0
    assert list((place / "temporary").iterdir()) == []
    assert left(place) == ["a.corpus"]
    assert len(Corpus.load(place / "a.corpus")) == SECONDS
