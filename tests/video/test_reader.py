"""Frames of every kind of source: in time order, complete, with the drawn brightness."""

import re
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest

from habitus.errors import VideoError
from habitus.video import Reader, Source, survey
from reference.footage import FPS, HEIGHT, WIDTH, encode, limited, moving_square, texture
from reference.recordings import TS_PACKET, turned

QUIET = {"x265-params": "log-level=none", "preset": "ultrafast", "crf": "8"}
X264 = {"preset": "ultrafast", "crf": "8"}
FINE = {"qscale": "2", "b": "8000000"}
# Mean error in grey levels that a codec at high quality may leave.
CODEC_ERROR = 4.0
# What rounding alone leaves, of lossless codecs.
ROUNDING_ERROR = 1.1
# Of frame times, in seconds: containers count in milliseconds.
TICK = 0.0011
N = 30


def frames_of(source, **options):
    """Times, copies of the brightness, the reader's size and its notes."""
    source = source if isinstance(source, Source) else Source(str(source))
    with Reader(source, **options) as reader:
        found = [(f.time, f.luma()[:, : f.width].copy(), f.intact) for f in reader]
    times, lumas, intact = zip(*found, strict=True)
    return np.array(times), lumas, np.array(intact), reader


def assert_as_drawn(lumas, drawn, tolerance, *, full):
    assert len(lumas) == len(drawn)
    for luma, picture in zip(lumas, drawn, strict=True):
        expected = picture.astype(float) if full else limited(picture)
        assert luma.shape == picture.shape
        assert abs(luma - expected).mean() < tolerance


CODECS = {
    "h264": ("a.mp4", "libx264", "yuv420p", X264, CODEC_ERROR, False),
    "h264 with B-frames": (
        "a.mp4",
        "libx264",
        "yuv420p",
        {"preset": "medium", "crf": "8", "bf": "4"},
        CODEC_ERROR,
        False,
    ),
    "h264 open groups": (
        "a.mkv",
        "libx264",
        "yuv420p",
        {"x264-params": "open-gop=1:keyint=8:bframes=3", "crf": "8"},
        CODEC_ERROR,
        False,
    ),
    "hevc": ("a.mp4", "libx265", "yuv420p", QUIET, CODEC_ERROR, False),
    "mpeg4": ("a.mp4", "mpeg4", "yuv420p", FINE, CODEC_ERROR, False),
    "mpeg4 in avi": ("a.avi", "mpeg4", "yuv420p", FINE, CODEC_ERROR, False),
    "mpeg2 in ts": ("a.ts", "mpeg2video", "yuv420p", FINE, CODEC_ERROR, False),
    "mjpeg, full range": ("a.avi", "mjpeg", "yuvj420p", FINE, CODEC_ERROR, True),
    "vp9": (
        "a.webm",
        "libvpx-vp9",
        "yuv420p",
        {"deadline": "realtime", "cpu-used": "8", "crf": "4", "b": "0"},
        CODEC_ERROR,
        False,
    ),
    "ten bits, hevc": ("a.mp4", "libx265", "yuv420p10le", QUIET, CODEC_ERROR, True),
    "ten bits, h264": ("a.mp4", "libx264", "yuv420p10le", X264, CODEC_ERROR, True),
    "grey": ("a.mkv", "ffv1", "gray", {}, ROUNDING_ERROR, True),
    "444": ("a.mp4", "libx264", "yuv444p", X264, CODEC_ERROR, False),
    "rgb, h264": ("a.mp4", "libx264rgb", "rgb24", X264, CODEC_ERROR, True),
    "rgb, ffv1": ("a.mkv", "ffv1", "bgr0", {}, ROUNDING_ERROR, True),
    "rgb, png": ("a.avi", "png", "rgb24", {}, ROUNDING_ERROR, True),
}


@pytest.mark.parametrize("kind", CODECS)
def test_codecs_and_pixel_formats(tmp_path, kind):
    name, codec, pix_fmt, options, tolerance, full = CODECS[kind]
    drawn = moving_square(N)
    path = encode(tmp_path / name, drawn, codec=codec, pix_fmt=pix_fmt, options=options)
    times, lumas, intact, reader = frames_of(path)
    assert (reader.width, reader.height) == (WIDTH, HEIGHT)
    assert reader.fps == pytest.approx(FPS)
    assert reader.notes == []
    assert intact.all()
    np.testing.assert_allclose(times, np.arange(N) / FPS, atol=TICK)
    assert_as_drawn(lumas, drawn, tolerance, full=full)


@pytest.mark.parametrize(
    ("codec", "pix_fmt", "full"),
    [
        ("mpeg4", "yuv420p", False),
        ("ffv1", "yuv420p", False),
        ("ffv1", "yuv444p", False),
        ("ffv1", "gray", True),
        ("ffv1", "bgr0", True),
    ],
)
def test_odd_sizes(tmp_path, codec, pix_fmt, full):
    drawn = moving_square(8, width=161, height=131)
    options = FINE if codec == "mpeg4" else {}
    path = encode(tmp_path / "a.mkv", drawn, codec=codec, pix_fmt=pix_fmt, options=options)
    _, lumas, _, reader = frames_of(path)
    assert (reader.width, reader.height) == (161, 131)
    assert_as_drawn(lumas, drawn, CODEC_ERROR, full=full)


def test_colours_are_as_encoded(tmp_path):
    drawn = moving_square(3)
    path = encode(tmp_path / "a.mkv", drawn, codec="ffv1", pix_fmt="yuv444p")
    with Reader(Source(str(path))) as reader:
        colours = next(iter(reader)).colours(WIDTH, HEIGHT)
    assert colours.shape == (HEIGHT, WIDTH, 3)
    assert abs(colours - drawn[0][..., None].astype(float)).mean() < 2


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_variable_frame_rate(tmp_path, name):
    steps = np.random.default_rng(0).choice([0.02, 0.04, 0.1, 0.25], N - 1)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    path = encode(tmp_path / name, moving_square(N), times=times, options=X264)
    found, lumas, intact, _ = frames_of(path)
    np.testing.assert_allclose(found, times, atol=TICK)
    assert intact.all()
    assert len(lumas) == N


def test_times_start_at_zero_whatever_the_stream_says(tmp_path):
    times = 7.5 + np.arange(N) / FPS
    path = encode(tmp_path / "a.mkv", moving_square(N), times=times, options=X264)
    found, _, _, _ = frames_of(path)
    np.testing.assert_allclose(found, times - 7.5, atol=TICK)


def test_ntsc_rate(tmp_path):
    rate = Fraction(30000, 1001)
    path = encode(tmp_path / "a.mp4", moving_square(N), rate=rate, options=X264)
    times, _, _, reader = frames_of(path)
    assert reader.fps == pytest.approx(float(rate))
    np.testing.assert_allclose(times, np.arange(N) * 1001 / 30000, atol=TICK)


@pytest.mark.parametrize(("fps", "expected"), [(None, 25), (10.0, 10)])
def test_a_raw_stream_without_times(tmp_path, fps, expected):
    drawn = moving_square(N)
    path = encode(tmp_path / "a.h264", drawn, options=X264, format="h264")
    times, lumas, _, reader = frames_of(Source(str(path), fps=fps))
    np.testing.assert_allclose(times, np.arange(N) / expected, atol=TICK)
    assert reader.fps == expected
    assert_as_drawn(lumas, drawn, CODEC_ERROR, full=False)


SEEKING = {
    "h264": ("libx264", "a.mp4", {"preset": "medium", "g": "25", "crf": "8"}),
    "h264, far keyframes": ("libx264", "a.mp4", {"preset": "medium", "g": "250", "crf": "8"}),
    "h264 open groups": ("libx264", "a.mkv", {"x264-params": "open-gop=1:keyint=12", "crf": "8"}),
    "hevc": ("libx265", "a.mp4", {**QUIET, "g": "12", "preset": "superfast"}),
    "transport stream": ("libx264", "a.ts", {"preset": "medium", "g": "12", "crf": "8"}),
    "mpeg4 in avi": ("mpeg4", "a.avi", {**FINE, "g": "12"}),
}


@pytest.mark.parametrize("kind", SEEKING)
def test_seeking_gives_the_same_frames(tmp_path, kind):
    codec, name, options = SEEKING[kind]
    path = encode(tmp_path / name, moving_square(100), codec=codec, options=options)
    whole, lumas, _, _ = frames_of(path)
    assert survey(Source(str(path))).steady
    for since in (0.02, 0.5, 1.0, 1.62, 2.5, 3.9):
        times, some, _, _ = frames_of(path, since=since)
        assert times[0] <= since
        first = np.argmin(abs(whole - times[0]))
        wanted = whole[first:] >= since - 1e-6
        np.testing.assert_array_equal(times[wanted], whole[first:][wanted])
        for one, other in zip(np.array(some)[wanted], np.array(lumas)[first:][wanted], strict=True):
            assert np.array_equal(one, other)


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    drawn = moving_square(12)
    for i, picture in enumerate(drawn):
        assert cv2.imwrite(str(folder / f"img{i}.png"), picture)
    (folder / "notes.txt").write_text("not an image")
    return folder, drawn


@pytest.mark.parametrize("pattern", ["", "img*.png", "img?*.*"])
def test_images_in_the_order_of_their_numbers(images, pattern):
    folder, drawn = images
    address = str(folder / pattern) if pattern else str(folder)
    times, lumas, intact, _ = frames_of(Source(address, fps=10))
    np.testing.assert_allclose(times, np.arange(12) / 10, atol=1e-12)
    assert survey(Source(address, fps=10)).duration == pytest.approx(1.2)
    assert intact.all()
    assert_as_drawn(lumas, drawn, ROUNDING_ERROR, full=True)


def test_images_from_the_middle_on(images):
    folder, drawn = images
    times, lumas, _, _ = frames_of(Source(str(folder), fps=5), since=1.8)
    assert times[0] <= 1.8
    assert_as_drawn(lumas, drawn[round(times[0] * 5) :], ROUNDING_ERROR, full=True)


def test_images_need_frames_per_second(images):
    with pytest.raises(VideoError, match="give fps") as raised:
        Reader(Source(str(images[0])))
    assert raised.value.parameter == "fps"


def test_a_damaged_image_and_one_of_another_size(images):
    folder, _ = images
    (folder / "img3.png").write_bytes(b"not a PNG at all")
    cv2.imwrite(str(folder / "img5.png"), texture(80, 64, 0))
    times, lumas, intact, reader = frames_of(Source(str(folder), fps=10))
    np.testing.assert_allclose(times, np.delete(np.arange(12), 3) / 10, atol=1e-12)
    assert {luma.shape for luma in lumas} == {(HEIGHT, WIDTH)}
    assert not intact[4]  # the fifth of those left
    assert any("img3.png" in note for note in reader.notes)
    assert any("img5.png" in note for note in reader.notes)


def audio(path, codec, layout="mono"):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=8000, layout=layout)
        tone = (8000 * np.sin(np.arange(8000) / 5)).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(tone, format="s16", layout=layout)
        frame.sample_rate, frame.pts = 8000, 0
        resampled = av.AudioResampler(format=stream.format, layout=layout, rate=8000)
        for part in resampled.resample(frame):
            container.mux(stream.encode(part))
        container.mux(stream.encode())
    return path


def bad_sources(folder):
    (folder / "empty.mp4").touch()
    (folder / "text.mp4").write_text("Some text, not a video.\n" * 200)
    (folder / "text.txt").write_text("Some text, not a video.\n" * 200)
    (folder / "nothing").mkdir()
    whole = encode(folder / "whole.mp4", moving_square(N), options=X264).read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "noise.mp4").write_bytes(np.random.default_rng(0).bytes(20_000))
    audio(folder / "sound.wav", "pcm_s16le")
    audio(folder / "sound.mp4", "aac")
    return folder


BAD = [
    "absent.mp4",
    "empty.mp4",
    "text.mp4",
    "text.txt",
    "nothing",
    "cut.mp4",
    "noise.mp4",
    "sound.wav",
    "sound.mp4",
    "no*.png",
]


@pytest.mark.parametrize("name", BAD)
def test_sources_without_video_give_an_error_of_one_line(tmp_path, name):
    bad_sources(tmp_path)
    with pytest.raises(VideoError) as raised:
        Reader(Source(str(tmp_path / name), fps=25))
    assert len(str(raised.value).splitlines()) == 1
    assert name in str(raised.value)


@pytest.mark.parametrize("name", ["a.mkv", "a.ts", "a.mp4"])
def test_damage_in_the_middle_loses_only_some_frames(tmp_path, name):
    drawn = moving_square(100)
    options = {"preset": "ultrafast", "g": "10", "crf": "15"}
    path = encode(tmp_path / name, drawn, options=options)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = np.random.default_rng(0).bytes(3000)
    path.write_bytes(bytes(data))
    times, lumas, _, _ = frames_of(path)
    assert (np.diff(times) > 0).all()
    numbers = np.round(times * FPS).astype(int)
    for part in (numbers < 30, numbers >= 80):
        assert part.sum() >= 15
        for n, luma in zip(numbers[part], np.array(lumas)[part], strict=True):
            assert abs(luma - limited(drawn[n])).mean() < CODEC_ERROR


def test_a_stream_that_damage_makes_up_takes_nothing_away(tmp_path):
    path = encode(tmp_path / "a.ts", moving_square(100), options={**X264, "g": "10"})
    data = bytearray(path.read_bytes())
    starts = [at for at in range(0, len(data), TS_PACKET) if data[at + 1 : at + 3] == b"\x41\x00"]
    data[starts[50] + 2] ^= 0x55  # the number of the stream that the packet belongs to
    path.write_bytes(bytes(data))
    times, _, _, reader = frames_of(path)
    assert len(times) >= 90
    assert times[-1] == pytest.approx(99 / FPS)
    assert survey(reader.source).duration == pytest.approx(4.0)


def test_frames_lost_where_nothing_tells_the_order_move_no_later_ones(tmp_path):
    options = {"preset": "medium", "g": "20", "crf": "12", "bf": "3"}
    drawn = moving_square(100)
    path = encode(tmp_path / "a.avi", drawn, options=options)
    data, at = bytearray(path.read_bytes()), 0
    for n in range(60):
        at = data.index(b"00dc", at + 4)
        if n in (45, 46, 50):
            size = int.from_bytes(data[at + 4 : at + 8], "little")
            data[at + 8 : at + 8 + size] = bytes(size)
    path.write_bytes(bytes(data))
    times, lumas, _, reader = frames_of(path)
    assert len(times) == 97
    assert reader.notes == ["3 damaged packets were skipped"]
    np.testing.assert_allclose(times[-40:], np.arange(60, 100) / FPS, atol=TICK)
    for luma, picture in zip(lumas[-40:], drawn[-40:], strict=True):
        assert abs(luma - limited(picture)).mean() < CODEC_ERROR


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_recording_is_turned_as_it_is_to_be_shown(tmp_path, quarters):
    drawn = moving_square(10)
    path = turned(encode(tmp_path / "a.mp4", drawn, options=X264), quarters)
    upright = [np.rot90(picture, -quarters) for picture in drawn]
    times, lumas, intact, reader = frames_of(path)
    assert (reader.height, reader.width) == upright[0].shape
    assert intact.all()
    assert len(times) == 10
    assert_as_drawn(lumas, upright, CODEC_ERROR, full=False)
    with Reader(Source(str(path))) as reader:
        colours = next(iter(reader)).colours(reader.width // 2, reader.height // 2)
    small = cv2.resize(np.ascontiguousarray(upright[0]), colours.shape[1::-1])
    assert abs(colours.mean(axis=2) - small).mean() < 2 * CODEC_ERROR


def test_a_truncated_file_gives_its_complete_frames(tmp_path):
    path = encode(tmp_path / "a.mkv", moving_square(100), options={**X264, "g": "10"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    times, _, _, _ = frames_of(path)
    assert 40 <= len(times) <= 80
    np.testing.assert_allclose(times, np.arange(len(times)) / FPS, atol=TICK)


def test_a_change_of_frame_size_is_noted_and_resized(tmp_path):
    small = moving_square(20, width=96, height=80, side=32)
    for name, drawn in (("one.h264", moving_square(20)), ("two.h264", small)):
        encode(tmp_path / name, drawn, options=X264, format="h264")
    path = tmp_path / "both.h264"
    path.write_bytes(b"".join((tmp_path / n).read_bytes() for n in ("one.h264", "two.h264")))
    times, lumas, intact, reader = frames_of(path)
    assert len(times) == 40
    assert (np.diff(times) > 0).all()
    assert {luma.shape for luma in lumas} == {(HEIGHT, WIDTH)}
    assert np.flatnonzero(~intact).tolist() == [20]  # not to be compared with the one before
    assert len(reader.notes) == 1
    assert "160x128 to 96x80" in reader.notes[0]


def test_fast_reading_skips_frames_and_keeps_their_times(tmp_path):
    options = {"preset": "medium", "crf": "12", "bf": "2", "x264-params": "b-adapt=0:b-pyramid=0"}
    path = encode(tmp_path / "a.mp4", moving_square(60), options=options)
    whole, _, _, _ = frames_of(path)
    times, _, _, _ = frames_of(Source(str(path), fast=True))
    assert 15 <= len(times) <= 30
    assert np.isin(np.round(times * FPS), np.round(whole * FPS)).all()
    assert (np.diff(times) > 0).all()


def test_error_messages_hide_passwords():
    with pytest.raises(VideoError) as raised:
        Reader(Source("tcp://user:secret@127.0.0.1:9/x", timeout=1.0))
    assert "secret" not in str(raised.value)
    assert "127.0.0.1:9" in str(raised.value)


@pytest.mark.parametrize("codecs", [("libx264", "mpeg2video"), ("mpeg2video", "libx264")])
def test_a_codec_that_changes_within_a_transport_stream(tmp_path, codecs):
    parts = [
        encode(tmp_path / f"{codec}.ts", moving_square(50), codec=codec, options={"g": "12"})
        for codec in codecs
    ]
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    with Reader(Source(str(both))) as reader:
        n_frames = sum(frame.decoded is not None for frame in reader)
    names = [codec.removeprefix("lib").replace("x264", "h264") for codec in codecs]
    assert n_frames >= 98  # the parser of one codec does not see where a picture of the other ends
    assert any(
        re.match(f"the codec changes from {names[0]} to {names[1]} at 2.0. s", note)
        for note in reader.notes
    ), reader.notes
