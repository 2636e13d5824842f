"""Recordings with faults: words and times are those of the clean file, whatever is decoded."""

from functools import cache

import numpy as np
import pytest

from habitus.evaluation.labels import footage_of_video
from habitus.ingest.chunks import chunk_size
from habitus.ingest.clips import DocumentSettings, documents
from habitus.ingest.extraction import extract_corpus
from habitus.video import Reader, Source, survey
from reference.footage import FPS, encode, moving_square
from reference.recordings import TS_CLOCK, TS_SECOND, in_avi, joined, remuxed, restamped

SECONDS = 10
# Packet at which recordings are cut, and the document that starts with it.
CUT, AFTER = 125, 5
HOUR, YEAR = 3600, 365 * 86_400
CODECS = {
    "h264": ("libx264", {"preset": "ultrafast", "g": "25", "crf": "12"}),
    "h264, B": ("libx264", {"preset": "medium", "g": "25", "bf": "3", "crf": "12"}),
    "hevc, B": (
        "libx265",
        {"preset": "fast", "x265-params": "log-level=none:keyint=25:bframes=4:open-gop=0"},
    ),
    "mpeg2, B": (
        "mpeg2video",
        {"bf": "2", "g": "25", "flags": "+cgop", "sc_threshold": "1000000000", "b": "2000000"},
    ),
    "mpeg4, B": ("mpeg4", {"bf": "2", "g": "25", "b": "2000000"}),
}
IN_STREAMS = [name for name in CODECS if name != "mpeg4, B"]
"""Codecs that repeat their headers, so that their packets can be moved to a transport stream."""
CONTAINERS = ["mp4", "mov", "mkv", "ts", "avi", "flv"]
NOT_THERE = {("mpeg2, B", "flv"), ("mpeg4, B", "flv"), ("mpeg4, B", "ts")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A function that gives a clean recording of a codec, and its documents."""

    @cache
    def made(codec):
        folder, (encoder, options) = tmp_path_factory.mktemp("clean"), CODECS[codec]
        pictures = moving_square(SECONDS * FPS)
        path = encode(folder / "clean.mp4", pictures, codec=encoder, options=options)
        found = decoded(path)
        assert [d.n_frames for d in found] == [FPS] * SECONDS
        assert all(len(d.words) > 50 for d in found)
        return path, found

    return made


def decoded(path, notes=None):
    """Documents of a recording, all frames of which are decoded."""
    with Reader(Source(str(path))) as reader:
        found = list(documents(reader))
    if notes is not None:
        notes += reader.notes
    return found


def spared(path):
    """Documents of a recording without decoding the frames that are not compared."""
    return list(documents(Source(str(path))))


def assert_as_clean(path, expected, *, after=None, gap=0):
    """Words and times are as expected; the document `after` a cut may miss the motion across it."""
    notes = []
    for found in (decoded(path, notes), spared(path)):
        kept = [d for d in found if d.n_frames]
        shifts = [gap if after is not None and d.number >= after else 0 for d in expected]
        numbers = [d.number + shift for d, shift in zip(expected, shifts, strict=True)]
        assert [d.number for d in kept] == numbers
        for one, other in zip(kept, expected, strict=True):
            assert one.n_frames == other.n_frames
            if other.number == after:
                assert 0.8 * other.counts.sum() < one.counts.sum() <= other.counts.sum()
            else:
                assert np.array_equal(one.words, other.words)
                assert np.array_equal(one.counts, other.counts)
    return notes


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_same_words_and_times_in_any_container(tmp_path, clean, codec, container):
    if (codec, container) in NOT_THERE:
        return
    master, expected = clean(codec)
    path = tmp_path / f"a.{container}"
    if container != "avi":
        remuxed(master, path)
    elif codec in IN_STREAMS:
        fourcc = {"hevc, B": b"HEVC", "mpeg2, B": b"MPG2"}.get(codec, b"H264")
        in_avi(remuxed(master, tmp_path / "a.ts"), path, fourcc)
    else:
        encoder, options = CODECS[codec]
        encode(path, moving_square(SECONDS * FPS), codec=encoder, options=options)
    assert assert_as_clean(path, expected) == []


# Seconds by which the second part is moved.
JOINS = {"on": 0, "anew": -SECONDS / 2, "earlier": -2.5}


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("codec", IN_STREAMS)
def test_cat_of_two_transport_streams(tmp_path, clean, codec, join):
    (master, expected), shift = clean(codec), JOINS[join]
    one = remuxed(master, tmp_path / "one.ts", last=CUT)
    two = remuxed(master, tmp_path / "two.ts", first=CUT, shift=lambda _: shift)
    path = joined(tmp_path / "both.ts", one, two)
    notes = assert_as_clean(path, expected, after=AFTER)
    assert all(note.startswith("the time jumps by") for note in notes)
    assert join == "on" or len(notes) == 1


JUMPS = {"+5 s": 5, "+5 min": 300, "+5 h": 5 * HOUR, "-3 s": -3, "-5 h": -5 * HOUR}


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("codec", IN_STREAMS)
def test_a_clock_that_jumps(tmp_path, clean, codec, jump):
    (master, expected), seconds = clean(codec), JUMPS[jump]
    path = remuxed(master, tmp_path / "a.ts")
    restamped(path, lambda n, pts: pts + (seconds * TS_SECOND if n >= CUT else 0))
    (note,) = assert_as_clean(path, expected, after=AFTER, gap=max(0, seconds))
    assert f"jumps by {seconds:+g} s at {5 + max(0, seconds):.2f} s" in note


@pytest.mark.parametrize("codec", IN_STREAMS)
def test_a_clock_that_starts_again_at_zero_as_it_should(tmp_path, clean, codec):
    master, expected = clean(codec)
    path = restamped(remuxed(master, tmp_path / "a.ts"), lambda _, pts: pts - 5 * TS_SECOND)
    assert assert_as_clean(path, expected) == []


@pytest.mark.parametrize("wrong", [5 * HOUR, -5 * HOUR, 3, -3])
@pytest.mark.parametrize("codec", IN_STREAMS)
def test_single_wrong_timestamps_move_nothing(tmp_path, clean, codec, wrong):
    master, expected = clean(codec)
    for number in (100, 101, 103):  # a keyframe, one predicted from it, one between
        path = remuxed(master, tmp_path / "a.ts")
        restamped(path, lambda n, pts, at=number: pts + (wrong * TS_SECOND if n == at else 0))
        (note,) = assert_as_clean(path, expected)
        assert note.startswith("1 frame had a wrong timestamp")


@pytest.mark.parametrize("codec", ["h264", "h264, B"])
def test_times_at_random_end_in_documents(tmp_path, clean, codec):
    """No time is true, so none is expected: but all frames are there, whichever are decoded."""
    path, rng = remuxed(clean(codec)[0], tmp_path / "a.ts"), np.random.default_rng(0)
    restamped(path, lambda n, pts: int(rng.integers(TS_CLOCK)))
    for found in (decoded(path), spared(path)):
        assert sum(d.n_frames for d in found) > 0.9 * SECONDS * FPS
        assert found[-1].number < 2 * SECONDS


FAR = {
    "from 1970 to 2026": lambda n: 56 * YEAR if n >= CUT else 0,
    "near the end of all clocks": lambda n: 2**62 / 1e6,
}


@pytest.mark.parametrize("clock", FAR)
def test_work_follows_packets_not_what_is_declared(tmp_path, clean, clock):
    master, expected = clean("h264, B")
    path = remuxed(master, tmp_path / "a.mkv", shift=FAR[clock])
    source = Source(str(path))
    assert survey(source).duration == pytest.approx(SECONDS, abs=0.1)
    assert len(footage_of_video(source, 1.0).times) == SECONDS
    corpus, notes = extract_corpus([source], jobs=2)
    assert corpus.times.tolist() == [d.time for d in expected]
    assert corpus.n_frames.tolist() == [FPS] * SECONDS
    assert len(notes) == (clock in list(FAR)[:1])


def test_a_survey_reads_no_further_than_it_must(clean):
    source = Source(str(clean("h264")[0]))
    assert survey(source) == (pytest.approx(SECONDS), True)
    assert survey(source, until=2.0).duration == pytest.approx(2.0, abs=0.1)


def test_processes_do_not_change_the_result_of_a_join(tmp_path):
    """Nobody can seek in it: the same times are there twice."""
    pictures = moving_square(32 * FPS, width=96, height=80, side=32, start=(0, 24))
    parts = [pictures[: 12 * FPS], pictures[12 * FPS :]]
    options = {"preset": "medium", "crf": "15", "g": "30"}
    paths = [encode(tmp_path / f"{n}.ts", part, options=options) for n, part in enumerate(parts)]
    source = Source(str(joined(tmp_path / "both.ts", *paths)))
    assert not survey(source).steady
    settings = DocumentSettings(clip=0.12)
    one, two = (extract_corpus([source], settings, jobs=jobs).corpus for jobs in (1, 2))
    assert len(one) > 2 * chunk_size(None)
    np.testing.assert_allclose(one.times, np.arange(len(one)) * 0.12)
    assert (one.counts != two.counts).nnz == 0
    assert np.array_equal(one.times, two.times)
    assert one.n_frames.sum() == two.n_frames.sum() == 32 * FPS


def test_a_time_in_a_join_is_found(tmp_path, clean):
    master, expected = clean("h264, B")
    one = remuxed(master, tmp_path / "one.ts", last=CUT)
    path = joined(tmp_path / "both.ts", one, one)
    source = Source(str(path))
    with Reader(source, since=7.0) as reader:
        later = next(frame for frame in reader if frame.time >= 7.0).luma().copy()
    with Reader(source) as reader:
        earlier = next(frame for frame in reader if frame.time >= 2.0).luma().copy()
    assert np.array_equal(later, earlier)
    assert len(expected) == len(spared(path))
