"""The ring of a camera's packets, and clips of events: real encodes, real streams, real kills."""

import os
import resource
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.live import LiveDocument
from habitus.site.packet_ring import (
    AFTER,
    AGAIN,
    BEFORE,
    LONGEST,
    PacketRing,
    clip_due,
    cut_clip,
    cut_clip_of_file,
    prune,
)
from habitus.video import Reader, Source
from reference.footage import FPS, HEIGHT, WIDTH, encode, texture
from reference.live import live_documents
from reference.processes import LONG, decoders, wait_until
from reference.recordings import turned
from reference.streams import free_port, motion_jpeg, playing, rtsp

EPOCH = 1_700_000_000.0
SECONDS = 20
BITS, BLOCK = 10, 16
"""Every frame shows its number as a row of black and white blocks."""
QUICK = {"preset": "ultrafast", "g": "25"}
CODECS = {
    "h264": ("libx264", "yuv420p", {"g": "25", "bf": "2", "b-adapt": "0"}, "mkv"),
    "h264-ts": ("libx264", "yuv420p", {"g": "25", "bf": "2", "b-adapt": "0"}, "ts"),
    "vp8": ("libvpx", "yuv420p", {"g": "25", "deadline": "realtime", "cpu-used": "8"}, "mkv"),
    "vp9": ("libvpx-vp9", "yuv420p", {"g": "25", "deadline": "realtime", "cpu-used": "8"}, "mkv"),
    "mjpeg": ("mjpeg", "yuvj420p", {"qmin": "2", "qmax": "4"}, "mkv"),
    "mpeg4": ("mpeg4", "yuv420p", {"g": "25", "qmax": "6"}, "mkv"),
    "hevc": ("libx265", "yuv420p", {"g": "25", "x265-params": "log-level=none"}, "mkv"),
    "h264-422": ("libx264", "yuv422p", QUICK, "mkv"),
}
COPIED = {"h264", "h264-ts", "vp8", "vp9"}


def numbered(n: int, *, first: int = 0, width: int = WIDTH, height: int = HEIGHT):
    """Pictures with their numbers."""
    ground = texture(width, height, 0)
    for number in range(first, first + n):
        picture = ground.copy()
        for bit in range(BITS):
            value = 235 if number >> bit & 1 else 20
            picture[:BLOCK, bit * BLOCK : (bit + 1) * BLOCK] = value
        yield picture


def number_of(picture: np.ndarray) -> int:
    """The number that a picture shows, at any size."""
    small = cv2.resize(picture, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    blocks = small[4 : BLOCK - 4, : BITS * BLOCK].reshape(-1, BITS, BLOCK)[:, :, 4:-4]
    return sum(1 << bit for bit, mean in enumerate(blocks.mean(axis=(0, 2))) if mean > 128)


def shown(path: Path) -> list[tuple[float, int]]:
    """Time and number of each frame of a video."""
    with av.open(str(path)) as container:
        frames = container.decode(video=0)
        return [(frame.time, number_of(frame.to_ndarray(format="gray"))) for frame in frames]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """A function that encodes the numbered pictures with a codec, once."""
    folder, made = tmp_path_factory.mktemp("videos"), {}

    def video(name: str) -> Path:
        if name not in made:
            codec, pixels, options, suffix = CODECS[name]
            path = folder / f"{name}.{suffix}"
            pictures = numbered(SECONDS * FPS)
            made[name] = encode(path, pictures, codec=codec, pix_fmt=pixels, options=options)
        return made[name]

    return video


class Clock:
    """Time that passes as frames do."""

    now = EPOCH

    def __call__(self) -> float:
        return self.now


def record(
    video: Path, folder: Path, *, at: float = EPOCH, speed: float = 1.0, **options
) -> list[str]:
    """Read a video as if its frames arrived in real time; return the notes."""
    clock = Clock()
    clock.now = at
    ring = PacketRing(folder, clock=clock, speed=speed, **options)
    with Reader(Source(str(video)), tap=ring) as reader:
        for frame in reader:
            clock.now = at + frame.time / speed
        return reader.notes


@pytest.mark.parametrize("name", CODECS)
def test_a_clip_shows_the_event_and_the_seconds_around_it(videos, tmp_path, name):
    assert record(videos(name), tmp_path / "recent") == []
    event = EPOCH + 9.4, EPOCH + 11.2
    clip = cut_clip(tmp_path / "recent", *event, tmp_path / "a.mp4")
    frames = shown(clip.path)
    assert clip.copied == (name in COPIED)
    assert clip.path.name == ("a.webm" if name == "vp8" else "a.mp4")
    assert clip.n_bytes == clip.path.stat().st_size
    # From the last keyframe that is early enough, and arrival is by whole frames.
    assert event[0] - BEFORE - 1.1 < clip.start <= event[0] - BEFORE
    assert clip.end == pytest.approx(event[1] + AFTER, abs=0.1)
    assert frames[-1][0] + 1 / FPS == pytest.approx(clip.end - clip.start, abs=0.05)
    for time, number in frames:
        assert number / FPS == pytest.approx(clip.start - EPOCH + time, abs=0.05)
    assert [number for _, number in frames] == list(range(frames[0][1], frames[-1][1] + 1))


@pytest.mark.parametrize("name", CODECS)
def test_a_clip_is_cut_from_a_recording(videos, tmp_path, name):
    clip = cut_clip_of_file(videos(name), 9.4, 11.2, tmp_path / "a.mp4")
    frames = shown(clip.path)
    assert clip.copied == (name in COPIED)
    assert 3.3 < clip.start <= 4.4
    assert clip.end == pytest.approx(16.2, abs=0.1)
    for time, number in frames:
        assert number / FPS == pytest.approx(clip.start + time, abs=0.021)


def test_a_clip_of_the_start_of_a_recording_has_what_there_is(videos, tmp_path):
    clip = cut_clip_of_file(videos("h264"), 1.0, 2.0, tmp_path / "a.mp4")
    assert clip.start == 0
    assert clip.end == pytest.approx(7.0, abs=0.1)


def test_a_recording_that_cannot_be_sought_in_is_encoded_anew(videos, tmp_path):
    video = encode(
        tmp_path / "a.avi", numbered(300), options={"g": "25", "bf": "2", "b-adapt": "0"}
    )
    clip = cut_clip_of_file(video, 6.0, 7.0, tmp_path / "clip.mp4")
    assert not clip.copied
    for time, number in shown(clip.path):
        assert number / FPS == pytest.approx(clip.start + time, abs=0.05)


@pytest.mark.parametrize("codec", ["mpeg4", "libx264"])
def test_a_recording_that_is_stored_turned_is_shown_upright(tmp_path, codec):
    video = encode(tmp_path / "a.mp4", numbered(100), codec=codec, options={"g": "25"})
    clip = cut_clip_of_file(turned(video, 1), 1.0, 2.0, tmp_path / "clip.mp4")
    with Reader(Source(str(clip.path))) as reader:
        assert (reader.width, reader.height) == (HEIGHT, WIDTH)
        upright = next(iter(reader)).colours(HEIGHT, WIDTH)
        assert number_of(np.rot90(upright[..., 0])) == 0


def test_browsers_play_clips(videos, tmp_path, opened):
    """In a browser, a clip has its length and can be sought in."""
    for name in ("h264", "vp8", "vp9", "mjpeg"):
        record(videos(name), tmp_path / name)
        clip = cut_clip(tmp_path / name, EPOCH + 9, EPOCH + 10, tmp_path / f"{name}.mp4")
        page = tmp_path / f"{name}.html"
        page.write_text(f"<!doctype html><video preload=auto src={clip.path.name}></video>")
        found = opened(page)
        duration, width, at = found.page.evaluate(
            """() => new Promise((done, fail) => {
                const video = document.querySelector("video");
                setTimeout(() => fail("nothing plays"), 60_000);
                video.onerror = () => fail(video.error.message);
                video.onseeked = () => done([video.duration, video.videoWidth, video.currentTime]);
                const start = () => { video.currentTime = 7; };
                video.readyState >= 3 ? start() : video.addEventListener("canplay", start);
            })"""
        )
        assert duration == pytest.approx(clip.end - clip.start, abs=0.1), name
        assert (width, at) == (WIDTH, 7)
        assert found.complaints == []


def test_segments_begin_with_keyframes_every_five_seconds(videos, tmp_path):
    record(videos("h264-ts"), tmp_path / "recent")
    names = sorted(path.name for path in (tmp_path / "recent").iterdir())
    starts = [int(name.removesuffix(".mkv")) / 1000 - EPOCH for name in names]
    assert starts[0] == 0
    assert all(5 <= later - earlier < 6.5 for earlier, later in pairwise(starts))
    for name in names:
        with av.open(str(tmp_path / "recent" / name)) as container:
            assert next(container.demux(video=0)).is_keyframe


def test_only_the_last_minutes_and_bytes_are_kept(videos, tmp_path):
    record(videos("h264"), tmp_path / "recent", seconds=8.0)
    names = sorted(path.stem for path in (tmp_path / "recent").iterdir())
    # The latest began at 15 s or later, and those before it are at most 8 s older.
    assert 2 <= len(names) <= 3
    assert int(names[0]) / 1000 >= EPOCH + 7
    record(videos("h264"), tmp_path / "small", most_bytes=30_000)
    sizes = [path.stat().st_size for path in (tmp_path / "small").iterdir()]
    assert sum(sizes) - max(sizes) <= 30_000
    assert len(sizes) < 4


def test_segments_of_the_future_are_deleted_and_others_left_alone(tmp_path):
    for name in ("001700000000000.mkv", "001700009999000.mkv", "mine.mkv", "1700000000000.txt"):
        (tmp_path / name).write_bytes(b"x")
    prune(tmp_path, EPOCH + 1)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["001700000000000.mkv", "1700000000000.txt", "mine.mkv"]


def test_a_clip_lasts_over_a_gap(videos, tmp_path):
    """The camera was away for three seconds: the picture stands still meanwhile."""
    record(videos("h264"), tmp_path / "recent")
    record(videos("h264"), tmp_path / "recent", at=EPOCH + SECONDS + 3)
    clip = cut_clip(tmp_path / "recent", EPOCH + 18, EPOCH + 26, tmp_path / "a.mp4")
    frames = shown(clip.path)
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(frames)]
    assert clip.copied
    assert max(steps) == pytest.approx(3.04, abs=0.2)  # arrival is known by the frame
    assert sorted(steps)[-2] < 0.1
    assert clip.end - clip.start == pytest.approx(18, abs=1.2)
    for time, number in frames:
        at = clip.start - EPOCH + time
        assert number / FPS == pytest.approx(at if at < SECONDS + 1 else at - 23, abs=0.2)


def test_a_file_that_plays_faster_than_it_was_recorded(videos, tmp_path):
    record(videos("h264"), tmp_path / "recent", speed=4.0)
    clip = cut_clip(tmp_path / "recent", EPOCH + 2, EPOCH + 3, tmp_path / "a.mp4")
    assert clip.end - clip.start == pytest.approx(SECONDS / 4, abs=0.2)
    for time, number in shown(clip.path):
        assert number / FPS / 4 == pytest.approx(clip.start - EPOCH + time, abs=0.1)


def test_a_camera_that_comes_back_with_another_picture(videos, tmp_path):
    """Packets of two kinds cannot be in one file: they are encoded anew, at the first size."""
    record(videos("h264"), tmp_path / "recent")
    large = tmp_path / "large.mkv"
    encode(large, numbered(150, width=320, height=256), options=QUICK)
    record(large, tmp_path / "recent", at=EPOCH + SECONDS + 3)
    clip = cut_clip(tmp_path / "recent", EPOCH + 18, EPOCH + 22, tmp_path / "a.mp4")
    assert not clip.copied
    with av.open(str(clip.path)) as container:
        sizes = {(frame.width, frame.height) for frame in container.decode(video=0)}
    assert sizes == {(WIDTH, HEIGHT)}


def test_what_was_not_recorded_is_no_clip(videos, tmp_path):
    record(videos("h264"), tmp_path / "recent")
    assert cut_clip(tmp_path / "recent", EPOCH + 100, EPOCH + 101, tmp_path / "a.mp4") is None
    assert cut_clip(tmp_path / "recent", EPOCH - 100, EPOCH - 99, tmp_path / "a.mp4") is None
    assert cut_clip(tmp_path / "nothing", EPOCH, EPOCH + 1, tmp_path / "a.mp4") is None
    assert cut_clip_of_file(videos("h264"), 50, 51, tmp_path / "a.mp4") is None
    assert not (tmp_path / "a.mp4").exists()


def test_a_long_event_is_cut_after_a_minute(tmp_path):
    video = encode(tmp_path / "a.mkv", numbered(900), rate=10, options={**QUICK, "g": "10"})
    record(video, tmp_path / "recent")
    of_camera = cut_clip(tmp_path / "recent", EPOCH + 10, EPOCH + 85, tmp_path / "a.mp4")
    of_file = cut_clip_of_file(video, 10, 85, tmp_path / "b.mp4")
    for clip in (of_camera, of_file):
        assert clip.end - clip.start == pytest.approx(BEFORE + LONGEST + AFTER, abs=1.2)
    assert clip_due(10.0, None) == clip_due(10.0, 500.0) == clip_due(10.0, 70.0)


def test_large_pictures_are_reduced_where_they_are_encoded_anew(tmp_path):
    pictures = numbered(30, width=1600, height=1200)
    video = encode(tmp_path / "a.mkv", pictures, codec="mjpeg", pix_fmt="yuvj420p")
    record(video, tmp_path / "recent")
    clip = cut_clip(tmp_path / "recent", EPOCH, EPOCH + 1, tmp_path / "a.mp4")
    with av.open(str(clip.path)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (960, 720)


def test_a_clip_that_cannot_be_written_is_an_error_and_leaves_nothing(videos, tmp_path):
    for name in ("h264", "mjpeg"):
        record(videos(name), tmp_path / name)
        with _files_of_at_most(4096), pytest.raises(InvalidInputError, match=r"a\.mp4.*too large"):
            cut_clip(tmp_path / name, EPOCH + 9, EPOCH + 10, tmp_path / "a.mp4")
    assert {path.name for path in tmp_path.iterdir()} == {"h264", "mjpeg"}


class _files_of_at_most:  # noqa: N801 - reads as a statement
    """Files that this process writes have at most so many bytes, as on a full disk."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.n_bytes, self.before[1]))

    def __exit__(self, *exception: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


def test_a_full_disk_stops_recording_with_one_note_and_not_decoding(videos, tmp_path):
    """There is room again for the last ten seconds of thirty."""
    video, clock = tmp_path / "long.mkv", Clock()
    encode(video, numbered(30 * FPS), options=QUICK)
    ring, numbers = PacketRing(tmp_path / "recent", clock=clock), []
    with Reader(Source(str(video)), tap=ring) as reader:
        frames = iter(reader)
        with _files_of_at_most(4096):
            for frame in frames:
                numbers.append(number_of(frame.luma()[:, :WIDTH]))
                clock.now = EPOCH + frame.time
                if frame.time > 2 * AGAIN - 2:
                    break
        for frame in frames:
            numbers.append(number_of(frame.luma()[:, :WIDTH]))
            clock.now = EPOCH + frame.time
    assert numbers == list(range(30 * FPS))
    stopped, again = reader.notes
    assert stopped == "recording stopped, there will be no clips: File too large"
    assert again == "recording goes on"
    clip = cut_clip(tmp_path / "recent", EPOCH + 26, EPOCH + 27, tmp_path / "a.mp4")
    # It is tried every ten seconds, and only with a keyframe.
    assert EPOCH + 18 < clip.start < EPOCH + 25
    assert shown(clip.path)[0][1] / FPS == pytest.approx(clip.start - EPOCH, abs=0.1)


def live(address: str, folder: Path, n: int) -> list[LiveDocument]:
    """The first documents of a camera that is recorded."""
    stop = threading.Event()
    settings, ring = DocumentSettings(), PacketRing(folder)
    found = live_documents(Source(address), settings, stop=stop, tap=ring)
    try:
        documents = (one for one in found if isinstance(one, LiveDocument))
        return [next(documents) for _ in range(n)]
    finally:
        found.close()


def assert_on_the_same_clock(documents: list[LiveDocument], folder: Path, output: Path) -> None:
    """What a clip shows at the time of a document is what that document is of."""
    first, last = documents[1], documents[-1]
    clip = cut_clip(folder, first.time, last.time, output)
    frames = shown(clip.path)
    for document in documents[1:-1]:
        number = round(document.document.time * FPS)
        times = [clip.start + time for time, shows in frames if shows == number]
        # A frame is decoded a moment after its packet arrived.
        assert times
        assert times[0] == pytest.approx(document.time, abs=1.0)


def test_an_rtsp_camera_is_recorded_on_the_clock_of_its_documents(tmp_path):
    video = encode(tmp_path / "v.mkv", numbered(500), options={**QUICK, "tune": "zerolatency"})
    with rtsp(free_port(), video) as address:
        documents = live(address, tmp_path / "recent", 5)
    assert_on_the_same_clock(documents, tmp_path / "recent", tmp_path / "a.mp4")


def test_pictures_without_times_are_recorded_as_they_arrive(tmp_path):
    pictures = [cv2.imencode(".jpg", picture)[1].tobytes() for picture in numbered(500)]
    with motion_jpeg(pictures, fps=FPS) as address:
        documents = live(address, tmp_path / "recent", 5)
    clip = cut_clip(tmp_path / "recent", documents[0].time, documents[-1].time, tmp_path / "a.mp4")
    frames = shown(clip.path)
    assert not clip.copied
    numbers = [number for _, number in frames]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert clip.end - clip.start >= documents[-1].time - documents[0].time


def test_a_decoder_that_is_killed_leaves_all_but_the_last_moments(tmp_path):
    video = encode(tmp_path / "v.ts", numbered(500), options={**QUICK, "tune": "zerolatency"})
    stop, port = threading.Event(), free_port()
    folder = tmp_path / "recent"
    with playing(port, video):
        address = Source(f"tcp://127.0.0.1:{port}")
        found = live_documents(address, DocumentSettings(), stop=stop, tap=PacketRing(folder))
        documents = []
        while len(documents) < 4:
            one = next(found)
            documents += [one] if isinstance(one, LiveDocument) else []
        (pid,) = decoders()
        os.kill(pid, signal.SIGKILL)
        found.close()
    clip = cut_clip(folder, documents[0].time, documents[-1].time, tmp_path / "a.mp4")
    numbers = [number for _, number in shown(clip.path)]
    # The last document is complete, but for at most a second that was not on the disk yet.
    assert numbers[0] == 0
    assert numbers[-1] >= 2.5 * FPS
    assert numbers == list(range(len(numbers)))


RECORDER = """
import itertools, sys, time
from pathlib import Path
from habitus.site.packet_ring import PacketRing
from habitus.video import Reader, Source

class Clock:
    now = 1_700_000_000.0
    def __call__(self):
        return self.now

clock = Clock()
for turn in itertools.count():
    with Reader(Source(sys.argv[1]), tap=PacketRing(Path(sys.argv[2]), clock=clock)) as reader:
        for frame in reader:
            clock.now = 1_700_000_000.0 + 20 * turn + frame.time
            time.sleep(0.0001)
"""


@pytest.mark.parametrize("n_segments", [1, 2, 4])
def test_whenever_it_is_killed_every_segment_can_be_read(videos, tmp_path, start, n_segments):
    """Clips are cut while it writes, too."""
    folder = tmp_path / "recent"
    command = [sys.executable, "-c", RECORDER, videos("h264"), folder]
    process = start(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    wait_until(lambda: len(list(folder.glob("*.mkv"))) >= n_segments, "segments")
    for at in (5, 8):
        cut_clip(folder, EPOCH + at, EPOCH + at + 1, tmp_path / "a.mp4")
    process.kill()
    process.wait(LONG)
    clip = cut_clip(folder, EPOCH, EPOCH + 1000, tmp_path / "a.mp4")
    numbers = [number for _, number in shown(clip.path)] if clip else []
    assert len(numbers) >= 5 * (n_segments - 1) * FPS
    assert all((later - earlier) % (SECONDS * FPS) == 1 for earlier, later in pairwise(numbers))


def test_recording_is_no_burden_for_what_decodes(videos, tmp_path):
    """The module of the recorder loads none of the code of models."""
    code = (
        "import sys; import habitus.site.packet_ring; "
        "print([m for m in ('sklearn', 'habitus.model', 'habitus.scene') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert told.stdout.strip() == "[]"
