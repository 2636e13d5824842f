"""Documents of live sources: real streams over the network, cut, stalled, silent and back again."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import av
import cv2
import numpy as np
import pytest

from habitus.corpus import Vocabulary
from habitus.errors import InvalidInputError, VideoError
from habitus.ingest.clips import DocumentSettings, documents
from habitus.ingest.decoder import (
    EndOfSource,
    FrameSizeError,
    Job,
    TimedDocument,
    _ArrivingFrames,
)
from habitus.ingest.live import (
    FIRST_WAIT,
    LONGEST_QUIET,
    LONGEST_WAIT,
    LiveDocument,
    LiveSource,
    Notice,
)
from habitus.video import Frame, Source
from reference.footage import encode, moving_square
from reference.live import live_documents
from reference.processes import (
    LONG,
    cpu_seconds,
    decoders,
    fork_servers,
    resident_bytes,
    running,
    wait_until,
)
from reference.streams import free_port, motion_jpeg, playing, rtsp, silent

X264 = {"preset": "ultrafast", "tune": "zerolatency", "crf": "15", "g": "5"}
CLIP = 0.2
# Seconds of silence until a stream counts as lost, here: more than a busy machine makes.
PATIENCE = 4.0
# Seconds that anything may take that should happen at once, on a busy machine: what waits for
# something else waits longer.
SOON = LONG / 2
# Bytes that memory may grow by for other reasons than documents being kept.
NOISE = 12e6


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """Twelve seconds, as a transport stream and as Matroska."""
    folder = tmp_path_factory.mktemp("live")
    drawn = moving_square(300)
    return {name: encode(folder / f"v.{name}", drawn, options=X264) for name in ("ts", "mkv")}


@pytest.fixture(scope="module")
def expected(footage):
    """What extraction makes of the same footage, by number."""
    source = Source(str(footage["ts"]))
    return {d.number: d for d in documents(source, DocumentSettings(clip=CLIP, still_every=1))}


@contextlib.contextmanager
def watching(address, *, settings=None, **options):
    """Documents and notices of an address; afterwards, nothing of it is left."""
    stop = threading.Event()
    options = {"patience": PATIENCE, "longest_wait": 0.5, **options}
    settings = settings or DocumentSettings(clip=CLIP)
    found = live_documents(Source(str(address)), settings, stop=stop, **options)
    try:
        yield found, stop
    finally:
        found.close()
        assert decoders() == []


def take(found, n):
    """The next n documents, and the notices before and among them."""
    arrived, notices = [], []
    while len(arrived) < n:
        one = next(found)
        (arrived if isinstance(one, LiveDocument) else notices).append(one)
    return arrived, notices


def until_notice(found):
    """Documents up to the next notice, and that."""
    arrived = []
    while isinstance(one := next(found), LiveDocument):
        arrived.append(one)
    assert isinstance(one, Notice)
    return arrived, one


def assert_as_extracted(arrived, expected):
    """One connection's documents are those of extraction, from the first on."""
    assert [one.document.number for one in arrived] == list(range(len(arrived)))
    assert [one.follows for one in arrived] == [False] + [True] * (len(arrived) - 1)
    for one in arrived:
        document = expected[one.document.number]
        assert one.document.n_frames == document.n_frames
        for name in ("words", "counts", "thumbnail", "still"):
            assert np.array_equal(getattr(one.document, name), getattr(document, name)), name


def assert_back(notices, address):
    """The last of some notices says that the source is there again, the others that it is not."""
    *lost, back = notices
    assert all(notice.text.startswith(f"{address}: ") for notice in notices)
    assert all("; trying again in " in notice.text for notice in lost)
    assert "is back after" in back.text
    assert all("\n" not in notice.text for notice in notices)


def test_a_stream_that_is_cut_and_comes_back(footage, expected):
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with watching(address, longest_wait=2) as (found, _):
        with playing(port, footage["ts"]):
            before, said = take(found, 8)
            assert said == []
            now = time.time()
        more, notice = until_notice(found)
        none, still = until_notice(found)
        with playing(port, footage["ts"]):
            after, notices = take(found, 5)
    assert "the stream ended" in notice.text
    assert "connection refused; check address and port; trying again in 2 s" in still.text
    assert none == []
    assert abs(notice.time - now) < SOON
    assert_back([notice, still, *notices], address)
    # What was left of the clip that was cut may be a document too.
    whole = [one for one in before + more if one.document.n_frames == CLIP * 25]
    assert len(before + more) - len(whole) <= 1
    assert_as_extracted(whole, expected)
    assert_as_extracted(after, expected)
    times = np.array([one.time for one in before])
    assert (np.diff(times) >= 0).all()
    assert abs(times[-1] + CLIP - now) < SOON
    assert {one.vocabulary.width for one in before + after} == {160}


def test_a_stream_that_stalls(footage, expected):
    port = free_port()
    address = f"http://127.0.0.1:{port}/camera.ts"
    with (
        watching(address) as (found, _),
        playing(port, footage["ts"], protocol="http", stall=40),
    ):
        before, notice = until_notice(found)
        after, notices = take(found, 3)
    assert f"no data for {PATIENCE:g} s" in notice.text
    assert 5 <= len(before) <= 8
    # From the start of the last clip to the notice: the clip, the silence.
    assert PATIENCE - 0.2 < notice.time - before[-1].time < PATIENCE + SOON
    assert_back([notice, *notices], address)
    assert_as_extracted(before, expected)
    assert_as_extracted(after, expected)


def test_rtsp_that_is_cut_and_comes_back(footage, expected):
    port = free_port()
    with contextlib.ExitStack() as stack:
        with rtsp(port, footage["mkv"]) as address:
            found, _ = stack.enter_context(watching(address))
            before, said = take(found, 8)
            assert said == []
        _, notice = until_notice(found)
        with rtsp(port, footage["mkv"]):
            after, notices = take(found, 5)
    assert_back([notice, *notices], address)
    assert_as_extracted(before, expected)
    assert_as_extracted(after, expected)


@pytest.mark.usefixtures("own_fork_servers")
def test_a_decoder_that_hangs_or_crashes_is_replaced(footage):
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, _), playing(port, footage["ts"]):
        take(found, 2)
        for by, said in ((signal.SIGSTOP, "no data for"), (signal.SIGKILL, "crashed")):
            (decoder,) = decoders()
            os.kill(decoder, by)
            _, notice = until_notice(found)
            assert said in notice.text
            after, _ = take(found, 2)
            assert not running(decoder)
            assert [one.follows for one in after] == [False, True]


@pytest.mark.usefixtures("own_fork_servers")
def test_a_decoder_that_cannot_be_started_is_tried_again(footage, tmp_path, monkeypatch):
    """It crashes with its fork server while Python is being replaced."""
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, _), playing(port, footage["ts"]):
        take(found, 2)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(tmp_path / "python"))
            crash(found, *fork_servers())
            assert "cannot start a decoder: No such file" in until_notice(found)[1].text
        after, _ = take(found, 2)
        assert [one.follows for one in after] == [False, True]


def crash(found, *others):
    (decoder,) = decoders()
    for process in (*others, decoder):
        os.kill(process, signal.SIGKILL)
    assert "crashed" in until_notice(found)[1].text


def seconds_to_end(found, stop, wait):
    """Set `stop` once `wait` returns; gives how long everything takes to end after that."""
    told = []

    def tell():
        wait()
        told.append(time.monotonic())
        stop.set()

    thread = threading.Thread(target=tell)
    thread.start()
    for _ in found:
        pass
    ended = time.monotonic()
    thread.join()
    return ended - told[0]


def test_stop_while_streaming(footage):
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, stop), playing(port, footage["ts"]):
        take(found, 2)
        (decoder,) = decoders()
        assert seconds_to_end(found, stop, lambda: time.sleep(0.3)) < SOON
        assert not running(decoder)


def test_stop_while_waiting_for_the_next_attempt():
    with watching(f"tcp://127.0.0.1:{free_port()}", longest_wait=600) as (found, stop):
        waits = [until_notice(found)[1].text.partition("trying again in ")[2] for _ in range(3)]
        assert waits == ["1 s", "2 s", "4 s"]
        stop.set()
        assert list(found) == [], "it does not try again"


def test_stop_while_the_server_says_nothing():
    with silent() as camera, watching(camera.address, patience=LONG) as (found, stop):
        assert seconds_to_end(found, stop, camera.wait) < SOON


def test_stop_while_documents_pile_up(footage):
    with watching(footage["ts"]) as (found, stop):
        take(found, 1)
        (decoder,) = decoders()
        assert running(decoder)  # far from the end of the file
        # More documents than the pipe holds: the decoder sleeps until somebody reads them.
        wait_until(lambda: idle(decoder), "the decoder waits, as nobody reads")
        stop.set()
        started = time.monotonic()
        assert list(found) == []
        assert time.monotonic() - started < SOON
        assert not running(decoder)


def idle(pid, seconds=0.5):
    """Whether a process uses next to no processor time for a while."""
    spent = cpu_seconds(pid)
    time.sleep(seconds)
    return cpu_seconds(pid) - spent < 0.2 * seconds


def test_a_file_ends_at_its_end(footage, expected):
    with watching(footage["ts"]) as (found, _):
        arrived = list(found)
    assert len(arrived) == len(expected)
    assert_as_extracted(arrived, expected)
    times = np.array([one.time for one in arrived])
    np.testing.assert_allclose(np.diff(times), CLIP, atol=1e-3)


def test_standard_input_ends_at_its_end(footage):
    code = (
        "from habitus.ingest.clips import DocumentSettings\n"
        "from habitus.ingest.decoder import Job\n"
        "from habitus.ingest.live import LiveSource\n"
        "from habitus.video import Source\n"
        "found = LiveSource(Job(Source('-'), DocumentSettings()))\n"
        "print(*(one.document.n_frames for one in found))\n"
    )
    with footage["ts"].open("rb") as video:
        command = [sys.executable, "-c", code]
        run = subprocess.run(
            command, stdin=video, capture_output=True, text=True, timeout=LONG, check=False
        )
    assert run.stderr == ""
    assert run.stdout.split() == ["25"] * 12


def test_errors_are_one_line(footage, tmp_path):
    cases = [
        (tmp_path / "absent.mp4", {}, VideoError, "no such file"),
        (footage["ts"], {"settings": DocumentSettings(clip=0.05)}, InvalidInputError, "two frames"),
    ]
    for address, options, kind, message in cases:
        with watching(address, **options) as (found, _), pytest.raises(kind, match=message) as e:
            next(found)
        assert len(str(e.value).splitlines()) == 1


def test_another_frame_size_or_rate_after_a_reconnection(footage, expected, tmp_path):
    """It waits until the camera is as it was; none of it costs a new process."""
    small = moving_square(100, width=96, height=80, side=32, start=(0, 24))
    slow = encode(tmp_path / "slow.ts", moving_square(20), rate=1, options=X264)
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, _):
        with playing(port, footage["ts"]):
            take(found, 1)
            before = decoders()
        until_notice(found)
        for other, reason in (
            (encode(tmp_path / "small.ts", small, options=X264), "has 96x80 pixels, expected 160x"),
            (slow, "at least two frames"),
        ):
            with playing(port, other):
                wait_for_notice(found, reason)
        with playing(port, footage["ts"]):
            after, _ = take(found, 3)
            assert decoders() == before
    assert_as_extracted(after, expected)


def test_a_camera_that_is_turned_while_it_streams(tmp_path):
    """The change is told as such, before and after a reconnection; nothing of it is judged."""
    first = encode(tmp_path / "first.ts", moving_square(75), options=X264)
    drawn = moving_square(75, width=128, height=160, side=32, start=(0, 24))
    turned = encode(tmp_path / "turned.ts", drawn, options=X264)
    both = tmp_path / "both.ts"
    both.write_bytes(first.read_bytes() + turned.read_bytes())
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, _):
        for path, n_expected in ((both, 75), (turned, 0)):
            n_frames = 0
            with playing(port, path):
                while "has 128x160 pixels, expected 160x128" not in getattr(
                    one := next(found), "text", ""
                ):
                    n_frames += one.document.n_frames if isinstance(one, LiveDocument) else 0
                    assert n_frames <= n_expected
            assert bool(n_frames) == bool(n_expected)


class Turned(list):
    """Frames of a camera that are shown turned, as a reader gives them."""

    fps, width, height, timed = 25.0, 160, 128, True
    source, notes = Source("rtsp://192.0.2.1/main"), []


@pytest.mark.parametrize("turns", range(4))
def test_a_picture_that_is_stored_turned_has_the_shape_that_is_shown(turns):
    stored = (160, 128) if turns % 2 == 0 else (128, 160)
    for sides, alike in ((stored, True), (stored[::-1], False)):
        picture = av.VideoFrame(*sides, "gray")
        reader = Turned([Frame(0.0, 160, 128, True, picture, turns=turns)])
        frames = _ArrivingFrames(reader, Mock(), threading.Event())
        with contextlib.nullcontext() if alike else pytest.raises(FrameSizeError):
            assert len(list(frames)) == 1


def wait_for_notice(found, text):
    while text not in (notice := next(found)).text:
        assert isinstance(notice, Notice)


def test_a_stream_that_is_absent_at_the_start(footage, expected):
    port = free_port()
    with watching(f"tcp://127.0.0.1:{port}") as (found, _):
        wait_for_notice(found, "connection refused; check address and port; trying again")
        with playing(port, footage["ts"]):
            arrived, notices = take(found, 3)
    assert "is back after" in notices[-1].text
    assert_as_extracted(arrived, expected)


def test_a_long_absence(footage):
    """Notices become rare, attempts do not."""
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with watching(address, longest_wait=0.05) as (found, stop):
            times = []

            def hang_up():
                for _ in range(60):
                    server.accept()[0].close()
                    times.append(time.monotonic())
                stop.set()

            thread = threading.Thread(target=hang_up)
            thread.start()
            notices = list(found)
            thread.join()
    assert 1 <= len(notices) <= 12
    assert all("trying again" in notice.text for notice in notices)
    assert np.median(np.diff(times)) < 2


def test_waits_start_anew_once_a_stream_gave_documents(expected):
    live = LiveSource(Job(Source("tcp://camera"), DocumentSettings()), longest_wait=600)

    def waits_after(*messages):
        for message in (*messages, EndOfSource([])):
            list(live._take(message))
        return live._opens_at - live._attempted

    assert [round(waits_after()) for _ in range(7)] == [1, 2, 4, 8, 16, 32, 64]
    assert waits_after(Vocabulary(2, 2)) > 100  # a frame is no document yet
    assert waits_after(Vocabulary(2, 2), TimedDocument(expected[0], live.heard)) < 60


def test_a_stream_that_ends_after_long_is_not_opened_again_at_once(expected, monkeypatch):
    monkeypatch.setattr("habitus.ingest.live.time.monotonic", lambda: now)
    now = 0.0
    live = LiveSource(Job(Source("tcp://camera"), DocumentSettings()))
    now = 500.0
    for message in (Vocabulary(2, 2), TimedDocument(expected[0], now), EndOfSource([])):
        list(live._take(message))
    assert live._opens_at == now + FIRST_WAIT


def test_documents_follow_by_number_and_never_lie_before_others(expected):
    live = LiveSource(Job(Source("tcp://camera"), DocumentSettings(clip=CLIP)))

    def arrived(*numbers):
        live.before = None  # it was opened
        messages = [Vocabulary(2, 2), *(TimedDocument(expected[n], live.heard) for n in numbers)]
        return [arrival for message in messages for arrival in live._take(message)]

    found = arrived(0, 1, 3, 4)  # at once, and again before their time was over
    assert [one.follows for one in found] == [False, True, False, True]
    assert [one.seconds for one in found] == pytest.approx([0, CLIP, 3 * CLIP, 4 * CLIP])
    (again,) = arrived(0)
    assert not again.follows
    assert again.seconds >= 5 * CLIP


def test_notices_of_a_day_of_absence_become_rare_but_come_every_hour(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("habitus.ingest.live.time.monotonic", lambda: now[0])
    live, told = LiveSource(Job(Source("tcp://camera"), DocumentSettings())), []
    for now[0] in np.arange(0.0, 86_400, 60):
        told += [now[0] for _ in live._take(EndOfSource([]))]
    assert np.diff(told)[:5].tolist() == [60, 60, 120, 240, 480]
    assert np.diff(told)[-15:].tolist() == [LONGEST_QUIET] * 15


def test_defaults_of_waiting():
    assert LONGEST_WAIT <= 10


def test_the_decoder_ends_with_its_parent(start):
    code = (
        "from habitus.ingest.clips import DocumentSettings\n"
        "from habitus.ingest.decoder import Job\n"
        "from habitus.ingest.live import LiveSource\n"
        "from habitus.video import Source\n"
        "next(iter(LiveSource(Job(Source({!r}), DocumentSettings()), patience=600)))\n"
    )
    with silent() as camera:
        command = [sys.executable, "-c", code.format(camera.address)]
        process = start(command)
        camera.wait()  # it is inside FFmpeg now
        (decoder,) = decoders(process.pid)
        assert running(decoder)
        process.kill()
        wait_until(lambda: not running(decoder), "the decoder ends")


LEAPS = {
    "an hour ahead": [3600.0],
    "an hour back": [-3600.0],
    "ahead and back": [3600.0, -3600.0],
    "two weeks ahead and far back": [14 * 86_400.0, -40 * 86_400.0],
    "a little, again and again": [5.0, -5.0, 5.0, -5.0],
}


@pytest.mark.parametrize("leaps", LEAPS.values(), ids=LEAPS)
def test_a_clock_that_leaps_within_a_clip(tmp_path, leaps):
    """Documents are about when they arrived, and one after the other."""
    drawn = moving_square(28 + 25 * len(leaps))
    stream, port, data, offset = tmp_path / "leap.ts", free_port(), b"", 50_000.0
    for n, leap in enumerate([0.0, *leaps]):
        offset += leap
        part = range(28 + 25 * (n - 1) if n else 0, 28 + 25 * n)
        times = [offset + i / 25 for i in part]
        data += encode(
            stream, [drawn[i] for i in part], times=times, options=X264, rate=25
        ).read_bytes()
    stream.write_bytes(data)
    started = time.time()
    with (
        playing(port, stream),
        watching(f"tcp://127.0.0.1:{port}") as (found, _),
    ):
        arrived, notice = until_notice(found)
        while "the stream ended" not in notice.text:
            more, notice = until_notice(found)
            arrived += more
        ended = time.time()
    assert len(arrived) >= len(drawn) / 25 / CLIP - 2 * len(leaps) - 1
    clock, seconds = (np.array([getattr(one, a) for one in arrived]) for a in ("time", "seconds"))
    assert started - 1 <= clock.min()
    assert clock.max() <= ended + 1
    assert (np.diff(clock) >= 0).all()
    assert (np.diff(seconds) > CLIP / 2).all()
    assert seconds[-1] <= ended - started + 2
    assert len([one for one in arrived if not one.follows]) <= 1 + len(leaps)


def test_a_burst_keeps_the_time_of_its_frames(footage):
    """As of HLS: twelve seconds arrive in one."""
    port = free_port()
    with (
        playing(port, footage["ts"], fps=300),
        watching(f"tcp://127.0.0.1:{port}") as (found, _),
    ):
        before, _ = take(found, 50)
        after, _ = take(found, 30)
    np.testing.assert_allclose(np.diff([one.seconds for one in before]), CLIP, atol=1e-3)
    assert (np.diff([one.seconds for one in before + after]) >= CLIP - 1e-3).all()


@pytest.mark.parametrize("fps", [5, 20])
def test_pictures_without_times_are_timed_by_arrival(fps):
    """FFmpeg would count 25 a second, whatever comes."""
    pictures = [cv2.imencode(".jpg", picture)[1].tobytes() for picture in moving_square(40)]
    with motion_jpeg(pictures, fps=fps) as address, watching(address) as (found, _):
        arrived, notice = until_notice(found)
    assert "the stream ended" in notice.text
    lasted = len(pictures) / fps
    assert 0.5 * lasted <= arrived[-1].seconds + CLIP <= 2 * lasted + 2


@pytest.mark.soak
def test_memory_stays_the_same(tmp_path):
    drawn = moving_square(50, width=128, height=96, side=32)
    path = encode(tmp_path / "long.ts", drawn * 70, options=X264)
    port = free_port()
    settings = DocumentSettings(clip=2 / 25)
    # A hundred times as fast as it plays: as fast as it is decoded.
    with (
        playing(port, path, fps=2500),
        watching(f"tcp://127.0.0.1:{port}", settings=settings) as (found, _),
    ):
        for _ in range(400):
            assert isinstance(next(found), LiveDocument)
        (decoder,) = decoders()
        start = [resident_bytes(pid) for pid in (os.getpid(), decoder)]
        for _ in range(1300):
            assert isinstance(next(found), LiveDocument)
        grown = np.subtract([resident_bytes(pid) for pid in (os.getpid(), decoder)], start)
    assert (grown < NOISE).all(), grown
