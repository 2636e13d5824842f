"""Whole corpora from video: in any number of processes, in one go or in several."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from habitus import Corpus
from habitus.corpus.documents import Condition, shard_bytes
from habitus.corpus.looks import SAME_LOOK, likeness, look_of
from habitus.corpus.vocabulary import N_SPEEDS, Vocabulary
from habitus.errors import InvalidInputError, VideoError
from habitus.files import FileFormat
from habitus.ingest.chunks import CHUNK, FORMAT, SECTIONS, ChunkCache, SourceChunks, chunk_size
from habitus.ingest.clips import Document, DocumentSettings
from habitus.ingest.extraction import _Recorder, extract_corpus
from habitus.ingest.live import LiveDocument
from habitus.ingest.segments import (
    DecodedSegment,
    Segment,
    SegmentPool,
    SourcePlan,
    decode_watched,
    neighbouring,
)
from habitus.jobs.workers import LocalWorkers
from habitus.lab import Junction, render
from habitus.model.expected_counts import gather
from habitus.video import Reader, Source, survey
from habitus.video.motion import least_motion
from reference.footage import FPS, HEIGHT, WIDTH, encode, moving_square, repeated, texture
from reference.motion import cell_motion, pyramid
from reference.processes import LONG, decoders, descendants, has_loaded, wait_until, workers
from reference.streams import free_port, playing, silent

X264 = {"preset": "ultrafast", "crf": "15", "g": "30"}
SHORT = DocumentSettings(clip=0.12)
"""Clips so short that half a minute has several chunks."""
SECONDS = 32
SIZE = chunk_size(round(SECONDS / SHORT.clip))
"""Documents per chunk of such a video."""
# Mean difference of the scene's picture from what was drawn: rounding of ranges, and the codec.
PICTURE_ERROR = 6.0


def same(one, other):
    return (
        np.array_equal(one.counts.indptr, other.counts.indptr)
        and np.array_equal(one.counts.indices, other.counts.indices)
        and np.array_equal(one.counts.data, other.counts.data)
        and np.array_equal(one.times, other.times)
        and np.array_equal(one.lengths, other.lengths)
        and np.array_equal(one.n_frames, other.n_frames)
        and np.array_equal(one.conditions, other.conditions)
        and np.array_equal(one.picture, other.picture)
        and one.vocabulary == other.vocabulary
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("video")
    small = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    encode(folder / "long.mp4", small, options=X264)
    encode(folder / "one.mp4", moving_square(75), options=X264)
    encode(folder / "two.mp4", moving_square(60, velocity=(0, 2), start=(56, 0)), options=X264)
    return folder


@pytest.fixture(scope="module")
def long(folder):
    return Source(str(folder / "long.mp4"))


@pytest.fixture(scope="module")
def whole(long):
    """The long video in one process."""
    found = extract_corpus([long], SHORT).corpus
    assert len(found) > 7 * SIZE
    assert found.n_tokens.min() > 0
    return found


def test_processes_do_not_change_the_result(long, whole):
    assert same(extract_corpus([long], SHORT, jobs=2).corpus, whole)


@pytest.mark.parametrize("declared", [2 * SECONDS, SECONDS / 2, 1e9, None])
def test_a_header_that_declares_another_length_changes_nothing(long, whole, monkeypatch, declared):
    class Misled(Reader):
        def __init__(self, source):
            super().__init__(source)
            assert self.declared == pytest.approx(SECONDS, abs=1 / FPS)
            self.declared = declared

    starts = []

    class Counted(SegmentPool):
        def __enter__(self):
            starts.append(len(self.segments))
            return super().__enter__()

    monkeypatch.setattr("habitus.ingest.extraction.Reader", Misled)
    monkeypatch.setattr("habitus.ingest.extraction.SegmentPool", Counted)
    assert same(extract_corpus([long], SHORT, jobs=2).corpus, whole)
    assert len(starts) == (2 if declared in (2 * SECONDS, SECONDS / 2) else 1)


def test_a_header_that_is_right_is_decoded_by_at_once(long, whole, monkeypatch):
    order = []
    seen = survey

    class Ordered(SegmentPool):
        def __enter__(self):
            order.append("decoding")
            return super().__enter__()

    def surveyed(*given, **how):
        order.append("survey")
        return seen(*given, **how)

    monkeypatch.setattr("habitus.ingest.extraction.survey", surveyed)
    monkeypatch.setattr("habitus.ingest.extraction.SegmentPool", Ordered)
    assert same(extract_corpus([long], SHORT, jobs=2).corpus, whole)
    assert order == ["decoding", "survey"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_goes_on_from_the_chunks_of_another(tmp_path, long, whole, jobs):
    output = tmp_path / "long.corpus"
    seen = []
    extract_corpus([long], SHORT, output=output, jobs=2)
    cache = ChunkCache(output)
    chunks = sorted(cache.folder.iterdir())
    assert len(chunks) == 8
    assert not output.exists()  # writing it is the caller's
    stamps = [path.stat().st_mtime_ns for path in chunks]
    chunks[-1].unlink()
    again = extract_corpus([long], SHORT, output=output, jobs=jobs, progress=seen.append)
    assert same(again.corpus, whole)
    assert sorted(cache.folder.iterdir()) == chunks
    assert [path.stat().st_mtime_ns for path in chunks[:-1]] == stamps[:-1]
    assert {p.stage for p in seen} == {"extracting"}
    assert seen[0].done >= 7 * SIZE * SHORT.clip - 1e-6  # these were not decoded again
    assert seen[-1].done <= seen[-1].total == pytest.approx(SECONDS, abs=0.1)
    assert re.fullmatch(r"\d+ frames/s, \d+ x real time", seen[-1].note)
    chunks[1].unlink()
    assert same(extract_corpus([long], SHORT, output=output, jobs=jobs).corpus, whole)
    cache.clear()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """A street as a camera sends it, large enough to be analysed as it is."""
    path = tmp_path_factory.mktemp("street") / "street.mp4"
    render(Junction(seed=5, seconds=12, normal_for=12, width=320, height=240, fps=25), path)
    return Source(str(path))


def words_of_0_1(source):
    """Words of each second as 0.1 counted them: four directions, and one bound for fast."""
    with Reader(source) as reader:
        grid = Vocabulary.of_frame(reader.width, reader.height, words="coarse")
        frames = [(f.time, pyramid(f.luma(), f.width, f.height, 1)) for f in reader]
    watched, counts = np.ones((grid.rows, grid.columns), dtype=np.bool_), {}
    for (earlier, before), (later, after) in itertools.pairwise(compared_of(frames)):
        lag, second = later - earlier, int(later)
        settings = (grid.cell // 2, least_motion(lag), np.array([31.0 * lag]))
        moves, _ = cell_motion(before, after, watched, *settings)
        rows, columns = np.nonzero(moves >= 0)
        directions, speeds = np.divmod(moves[rows, columns], N_SPEEDS)
        words = grid.words(rows, columns, directions // 3, speeds)
        counts[second] = counts.get(second, 0) + np.bincount(words, minlength=grid.n_words)
    return np.array([counts[key] for key in sorted(counts)])


def compared_of(frames):
    """Every second frame of each second, from the first on."""
    return [frame for n, frame in enumerate(frames) if n % FPS % 2 == 0]


@pytest.mark.parametrize("words", ["coarse", "paper"])
def test_coarser_words_of_decoded_video_are_sums_of_its_fine_words(street, words):
    fine = extract_corpus([street]).corpus
    summed = extract_corpus([street], DocumentSettings(words=words)).corpus
    assert fine.vocabulary.kind == "fine"
    assert fine.vocabulary.scale == 1
    assert fine.counts.nnz > summed.counts.nnz > 1000
    assert same(getattr(fine, words), summed)


def test_coarse_words_of_decoded_video_are_those_of_0_1(street):
    coarse = extract_corpus([street]).corpus.coarse
    speeds = coarse.vocabulary.places(coarse.counts.indices).speeds
    assert set(speeds) == {0, 1}
    assert np.array_equal(coarse.counts.toarray(), words_of_0_1(street))


def test_chunks_are_for_the_same_settings_only(tmp_path, folder):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    plain = extract_corpus([source], output=output).corpus
    lower = DocumentSettings(mask="0,64 159,64 159,127 0,127")
    masked = extract_corpus([source], lower, output=output).corpus
    assert masked.n_tokens.sum() < plain.n_tokens.sum()
    assert same(extract_corpus([source], output=output).corpus, plain)


@pytest.mark.parametrize("first", [None, 2.0])
def test_chunks_of_another_duration_are_not_taken_over(tmp_path, folder, first):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    then = 2.0 if first is None else None
    extract_corpus([source], output=output, duration=first)
    again = extract_corpus([source], output=output, duration=then).corpus
    assert len(again) == (3 if then is None else 2)


def test_chunks_of_another_size_are_not_taken_over(tmp_path, folder):
    """Of a longer part of one file, with everything else alike: it would lack documents."""
    cache, source = ChunkCache(tmp_path / "a.corpus"), Source(str(folder / "one.mp4"))
    short, long = (cache.of_source(source, SHORT, n_documents=n) for n in (75, 90))
    assert (short.size, long.size) == (10, 12)
    assert short.path(0) != long.path(0)
    assert long.path(0) == cache.of_source(source, SHORT, n_documents=91).path(0)


@pytest.mark.parametrize("name", ["mask", "region"])
def test_chunks_are_for_the_same_mask_file_only(tmp_path, folder, name):
    cache, source = ChunkCache(tmp_path / "a.corpus"), Source(str(folder / "one.mp4"))
    file = tmp_path / "mask.png"
    file.write_bytes(b"one")
    settings = DocumentSettings(**{name: str(file)})
    before = cache.of_source(source, settings).path(0)
    assert cache.of_source(source, settings).path(0) == before
    os.utime(file, (0, 0))  # it was drawn anew
    assert cache.of_source(source, settings).path(0) != before


def test_a_damaged_chunk_is_made_anew(tmp_path, folder):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    expected = extract_corpus([source], output=output).corpus
    (chunk,) = ChunkCache(output).folder.iterdir()
    chunk.write_bytes(chunk.read_bytes()[:-100])
    assert same(extract_corpus([source], output=output).corpus, expected)


@pytest.mark.parametrize("foreign", ["0.4", "documents", "words"])
def test_a_chunk_is_a_shard_and_no_other_file_is_trusted_as_one(tmp_path, folder, foreign):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    expected = extract_corpus([source], output=output).corpus
    (chunk,) = ChunkCache(output).folder.iterdir()
    written, shard = chunk.read_bytes(), Corpus.load(chunk)
    assert np.array_equal(shard.counts.toarray(), expected.counts.toarray())
    assert "packing" in FORMAT.read_header(chunk).header, "a shard, as of an archive or a camera"
    if foreign == "0.4":
        FileFormat("chunk", 1).write(chunk, {}, {"words": np.zeros(3, dtype=np.int32)})
    elif foreign == "documents":
        shard.save(chunk)
    else:
        sections = FORMAT._replace(layouts=None).read(chunk).tensors
        nameless = replace(shard, vocabulary=None)
        chunk.write_bytes(shard_bytes(nameless, tensors={k: sections[k] for k in SECTIONS}))
    assert same(extract_corpus([source], output=output).corpus, expected)
    assert chunk.read_bytes() == written


def test_two_extractions_to_one_file_do_not_mix(tmp_path, folder):
    """The one that ended first deleted the chunks of the other, which went on without them."""
    source, cache = Source(str(folder / "one.mp4")), ChunkCache(tmp_path / "a.corpus")
    with cache.held():
        with pytest.raises(InvalidInputError, match="another command is extracting to it"):
            extract_corpus([source], output=tmp_path / "a.corpus")
        chunk = cache.folder / "of the other.safetensors"
        chunk.touch()
        cache.clear()
        assert chunk.exists()
    expected = extract_corpus([source]).corpus
    assert same(extract_corpus([source], output=tmp_path / "a.corpus").corpus, expected)
    cache.clear()
    assert list(tmp_path.iterdir()) == []


def test_duration_ends_a_file_too(folder):
    corpus = extract_corpus([Source(str(folder / "one.mp4"))], duration=2.0).corpus
    assert corpus.times.tolist() == [0, 1]


def test_sources_are_sequences_or_one(folder):
    sources = [Source(str(folder / name)) for name in ("one.mp4", "two.mp4")]
    apart = extract_corpus(sources, jobs=2).corpus
    assert apart.lengths.tolist() == [3, 2]
    assert apart.times.tolist() == [0, 1, 2, 0, 1]
    together = extract_corpus(sources, jobs=1, continued=True).corpus
    assert together.lengths.tolist() == [5]
    assert together.times.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(apart.counts.toarray(), together.counts.toarray())
    singles = [extract_corpus([source]).corpus.counts.toarray() for source in sources]
    assert np.array_equal(apart.counts.toarray(), np.concatenate(singles))


def test_sources_of_different_sizes_are_refused(folder):
    sources = [Source(str(folder / name)) for name in ("one.mp4", "long.mp4")]
    with pytest.raises(InvalidInputError, match="96x80") as raised:
        extract_corpus(sources)
    assert "long.mp4 has" in str(raised.value)


def test_the_picture_shows_the_scene_without_what_moves(long, whole):
    assert whole.picture.shape == (80, 96, 3)
    ground = texture(96, 80, 0)[..., None].astype(float)
    error = abs(whole.picture - ground).mean(axis=2)
    assert np.median(error) < PICTURE_ERROR
    outside = np.ones((80, 96), dtype=np.bool_)
    outside[24:56] = False  # where the square passes
    assert error[outside].mean() < PICTURE_ERROR


def test_a_recording_by_day_and_by_infrared_has_two_looks(tmp_path):
    day = moving_square(250)
    lit = texture(WIDTH, HEIGHT, 9, 12.0) > 140
    night = [np.where(lit, 255 - frame // 2, 30).astype(np.uint8) for frame in moving_square(250)]
    path = encode(tmp_path / "a.mp4", day + night, options=X264)
    corpus = extract_corpus([Source(str(path))]).corpus
    assert (corpus.conditions != Condition.USABLE).sum() <= 2
    assert len(corpus.looks) == 2
    assert likeness(corpus.looks[0], day[0]) > SAME_LOOK > likeness(corpus.looks[1], day[0])
    assert likeness(corpus.looks[1], night[0]) > SAME_LOOK
    lone = encode(tmp_path / "b.mp4", day, options=X264)
    only = extract_corpus([Source(str(lone))]).corpus
    assert np.array_equal(only.looks, [look_of(only.picture)])


def test_a_corpus_file_keeps_everything(tmp_path, folder):
    source = Source(str(folder / "one.mp4"))
    corpus = extract_corpus([source]).corpus
    marked = Corpus(
        corpus.counts,
        times=corpus.times,
        lengths=corpus.lengths,
        vocabulary=corpus.vocabulary,
        n_frames=corpus.n_frames,
        conditions=[0, 2, 1],
        picture=corpus.picture,
    )
    marked.save(tmp_path / "a.corpus")
    read = Corpus.load(tmp_path / "a.corpus")
    assert same(read, marked)
    assert read.n_frames.tolist() == [25, 25, 25]
    assert read.conditions.tolist() == [0, 2, 1]
    assert read.vocabulary == Vocabulary(32, 40, 8, 0.5, WIDTH, HEIGHT, 16, 12)


def test_large_frames_are_halved(tmp_path):
    pictures = moving_square(50, width=640, height=480, side=192, velocity=(6, 0), start=(0, 160))
    path = encode(tmp_path / "a.mp4", pictures, options=X264)
    corpus = extract_corpus([Source(str(path))]).corpus
    assert corpus.vocabulary == Vocabulary(30, 40, 8, 2, 640, 480, 16, 12)
    assert corpus.picture.shape == (240, 320, 3)
    places = corpus.vocabulary.places(corpus.counts.indices)
    heavy = corpus.counts.data > 2
    assert (places.directions[heavy] == 10).mean() > 0.98
    boxes = corpus.vocabulary.boxes(corpus.counts.indices)
    assert boxes[heavy, 1].min() >= 144
    assert boxes[heavy, 3].max() <= 368


def test_faults_of_the_camera_are_found_and_told(tmp_path):
    pictures = moving_square(250) + [np.full((HEIGHT, WIDTH), 90, np.uint8)] * 75
    pictures += moving_square(75)
    path = encode(tmp_path / "a.mp4", pictures, options=X264)
    corpus, notes = extract_corpus([Source(str(path))])
    assert corpus.conditions[:10].tolist() == [Condition.USABLE] * 10
    assert corpus.conditions[10:13].tolist() == [Condition.COVERED] * 3
    assert corpus.conditions[13:].tolist() == [Condition.USABLE] * 3
    assert len(notes) == 1
    assert "covered" in notes[0]
    assert "10 s to 13 s" in notes[0]


def test_documents_with_a_fault_teach_nothing(folder):
    corpus = extract_corpus([Source(str(folder / "one.mp4"))]).corpus
    marked = Corpus(corpus.counts, lengths=[3], conditions=[0, 3, 0])
    evidence = gather(marked)
    assert evidence.n_documents == 3
    sizes = np.diff(evidence.indptr)
    assert sizes[1] == 0
    assert sizes[[0, 2]].tolist() == np.diff(corpus.counts.indptr)[[0, 2]].tolist()
    assert len(evidence.words) == len(evidence.counts) == sizes.sum()


@pytest.fixture(scope="module")
def broken(folder):
    """The same length with half a second missing where a chunk ends."""
    pictures = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    times = np.arange(len(pictures)) / FPS
    times[times >= SIZE * SHORT.clip - 1e-6] += 0.48
    return Source(str(encode(folder / "broken.mkv", pictures, times=times, options=X264)))


def test_a_gap_where_a_chunk_ends_is_kept_by_any_number_of_processes(tmp_path, broken):
    whole = extract_corpus([broken], SHORT).corpus
    assert (whole.n_frames == 0).sum() == 4
    assert whole.lengths.tolist() == [len(whole)]
    output = tmp_path / "a.corpus"
    assert same(extract_corpus([broken], SHORT, output=output, jobs=2).corpus, whole)
    first, *_ = sorted(ChunkCache(output).folder.iterdir())
    first.unlink()
    assert same(extract_corpus([broken], SHORT, output=output, jobs=1).corpus, whole)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("missing", [[], [0], [0, 1, 2], [1, 2, 5], list(range(30)), [0, 9, 10]])
def test_segments_cover_what_is_missing_once_and_nothing_else(jobs, missing):
    found = list(neighbouring([CHUNK * k for k in missing], jobs))
    covered = [k for start, stop in found for k in range(start // CHUNK, stop // CHUNK)]
    assert covered == missing
    if jobs > 1 and len(missing) == 30:
        sizes = [(stop - start) // CHUNK for start, stop in found]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-2 * jobs :] == [1] * 2 * jobs
        assert len(found) < 20


@pytest.mark.parametrize(
    ("seconds", "shares"), [(90, [48, 48]), (120, [60, 60]), (300, [152, 152])]
)
def test_a_short_video_is_shared_by_the_workers_in_few_segments(seconds, shares):
    size = chunk_size(seconds)
    found = neighbouring(range(0, seconds, size), 2, size)
    assert [stop - start for start, stop in found] == shares


@contextlib.contextmanager
def to_workers(what):
    """Send a signal to the workers as soon as one of them has decoded something."""
    sent = []

    def report(progress):
        if progress.done > 0 and not sent:
            sent.append(time.monotonic())
            for pid in workers():
                os.kill(pid, what)

    yield report
    assert sent


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="processes are listed in /proc"
)


@pytest.fixture(scope="module")
def endless(folder):
    """So much video that workers are still decoding when something happens to them."""
    pictures = moving_square(10 * FPS, width=320, height=240, side=96, start=(0, 72))
    once = encode(folder / "once.mp4", pictures, options=X264)
    return Source(str(repeated(once, folder / "endless.mp4", 30)))


@needs_proc
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_that_crashes_is_an_error_in_one_line(endless, jobs):
    with (
        to_workers(signal.SIGSEGV) as report,
        pytest.raises(VideoError, match="the decoder crashed") as raised,
    ):
        extract_corpus([endless], jobs=jobs, progress=report)
    assert len(str(raised.value).splitlines()) == 1
    assert workers() == []


@needs_proc
def test_workers_that_hang_are_ended(endless, monkeypatch):
    monkeypatch.setattr("habitus.ingest.segments.PATIENCE", 1.0)
    with (
        to_workers(signal.SIGSTOP) as report,
        pytest.raises(VideoError, match="gave no frame for 1 s and was ended"),
    ):
        extract_corpus([endless], jobs=2, progress=report)
    assert workers() == []


@needs_proc
def test_an_interrupt_ends_the_workers(endless):
    def interrupt(progress):
        if progress.done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_corpus([endless], jobs=2, progress=interrupt)
    assert workers() == []


INTERRUPTED = """
from habitus.ingest.extraction import extract_corpus
from habitus.video import Source
try:
    extract_corpus([Source({address!r})] * 50, jobs=2)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("ended")
"""


@needs_proc
def test_ctrl_c_shows_nothing_of_the_workers(endless, start):
    """A terminal sends it to all processes, here while what the workers need is imported."""
    process = start(
        [sys.executable, "-c", INTERRUPTED.format(address=endless.address)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    loaded = "the fork server imports NumPy"
    wait_until(lambda: any(has_loaded(pid, "numpy") for pid in descendants(process.pid)), loaded)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=LONG)
    assert (output, errors) == ("interrupted\n", "")


@needs_proc
def test_no_process_is_left(folder):
    extract_corpus([Source(str(folder / "one.mp4"))], jobs=2)
    assert workers() == []


CLIP = 0.2


@pytest.fixture(scope="module")
def stream(folder):
    """Twelve seconds as a camera sends them."""
    options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "15", "g": "5"}
    return encode(folder / "camera.ts", moving_square(12 * FPS), options=options)


@pytest.fixture(scope="module")
def recorded(stream):
    """The same footage as a file."""
    return extract_corpus([Source(str(stream))], DocumentSettings(clip=CLIP)).corpus


def assert_start_of(corpus, whole):
    n = len(corpus)
    assert np.array_equal(corpus.times, whole.times[:n])
    assert np.array_equal(corpus.n_frames[:-1], whole.n_frames[: n - 1])
    assert np.array_equal(corpus.counts[: n - 1].toarray(), whole.counts[: n - 1].toarray())


def test_a_live_source_ends_after_its_duration(stream, recorded):
    port, seen = free_port(), []
    with playing(port, stream):
        source, settings = Source(f"tcp://127.0.0.1:{port}"), DocumentSettings(clip=CLIP)
        corpus, notes = extract_corpus([source], settings, duration=3.0, progress=seen.append)
    assert notes == []
    assert len(corpus) == 15
    assert_start_of(corpus, recorded)
    assert seen[-1].done == seen[-1].total == 3.0


def test_a_stream_that_ends_gives_all_its_documents(stream, recorded):
    port = free_port()
    with playing(port, stream, fps=200):
        source = Source(f"tcp://127.0.0.1:{port}")
        corpus = extract_corpus([source], DocumentSettings(clip=CLIP)).corpus
    assert np.array_equal(corpus.counts.toarray(), recorded.counts.toarray())


def test_live_sources_and_files_are_extracted_together(folder, stream, recorded):
    port = free_port()
    with playing(port, stream, fps=200):
        sources = [Source(f"tcp://127.0.0.1:{port}") for _ in range(2)]
        sources.insert(1, Source(str(folder / "one.mp4")))
        corpus = extract_corpus(sources, DocumentSettings(clip=CLIP), jobs=2).corpus
    assert corpus.lengths.tolist() == [60, 15, 60]
    for start in (0, 75):
        part = corpus.counts[start : start + 60].toarray()
        assert np.array_equal(part, recorded.counts.toarray())


def test_an_interrupt_ends_a_live_source_with_what_it_gave(stream, recorded):
    """The last document is one of half a clip or more, as at the end of a file."""
    port, interrupts = free_port(), []

    def interrupt(progress):
        if progress.done >= 2 and not interrupts:
            interrupts.append(progress)
            raise KeyboardInterrupt

    with playing(port, stream):
        source = Source(f"tcp://127.0.0.1:{port}")
        corpus = extract_corpus([source], DocumentSettings(clip=CLIP), progress=interrupt).corpus
    assert 10 <= len(corpus) < len(recorded)
    assert_start_of(corpus, recorded)
    assert decoders() == []


def test_a_second_interrupt_is_raised():
    def interrupt(progress):
        raise KeyboardInterrupt

    with silent() as camera, pytest.raises(KeyboardInterrupt):
        extract_corpus([Source(camera.address)], progress=interrupt)
    assert decoders() == []


def assert_resumed(corpus, notes, whole, said):
    """All that was asked for, in two sequences; each is footage from its start, at its time."""
    assert len(corpus) == 20
    first, second = corpus.lengths
    parts = corpus.counts[:first].toarray(), corpus.counts[first:].toarray()
    for part, n in zip(parts, (first, second), strict=True):
        # What was left of a clip that was cut may be a document too.
        assert np.array_equal(part[: n - 1], whole.counts[: n - 1].toarray())
    assert (np.diff(corpus.times) >= CLIP - 1e-9).all()
    start, end = corpus.times[first - 1] + CLIP, corpus.times[first]
    assert end > start
    (note,) = (note for note in notes if "no video from" in note)
    assert said in note
    assert note.endswith(f": no video from {start:g} s to {end:g} s")
    assert decoders() == []


def test_a_live_source_that_is_lost_is_waited_for(stream, recorded):
    port, cameras = free_port(), []

    def cut(progress):
        if progress.done >= 1.6 and len(cameras) == 1:
            cameras.pop().close()
            cameras.extend([None, None])
        elif "waiting for" in progress.note and len(cameras) == 2:
            camera = contextlib.ExitStack()
            camera.enter_context(playing(port, stream))
            cameras.append(camera)

    with contextlib.ExitStack() as camera:
        camera.enter_context(playing(port, stream))
        cameras.append(camera)
        source, settings = Source(f"tcp://127.0.0.1:{port}"), DocumentSettings(clip=CLIP)
        found = extract_corpus([source], settings, duration=4.0, progress=cut)
    cameras[-1].close()
    assert len(cameras) == 3
    assert_resumed(*found, recorded, "the stream ended")


@needs_proc
@pytest.mark.parametrize(
    ("by", "said"), [(signal.SIGSTOP, "no data for 2 s"), (signal.SIGKILL, "crashed")]
)
def test_a_decoder_of_a_live_source_that_hangs_or_crashes(stream, recorded, by, said):
    port, sent = free_port(), []

    def harm(progress):
        if progress.done > 1 and not sent:
            sent.extend(decoders())
            for pid in sent:
                os.kill(pid, by)

    with playing(port, stream):
        source = Source(f"tcp://127.0.0.1:{port}", timeout=2.0)
        found = extract_corpus([source], DocumentSettings(clip=CLIP), duration=4.0, progress=harm)
    assert len(sent) == 1
    assert_resumed(*found, recorded, said)


def test_a_sequence_that_comes_at_once_or_too_early_does_not_follow(tmp_path):
    source, settings, grid = Source("tcp://camera"), DocumentSettings(), Vocabulary(2, 2)
    recorder = _Recorder(SourcePlan(source, settings, SourceChunks(tmp_path, "a", None)))
    none, cells = np.empty(0, dtype=np.int64), np.zeros((2, 2), dtype=np.uint8)
    # Numbers start from 0 at each connection; three of them come 2, 3 and 7.5 s after the first.
    for seconds, number in ((0, 0), (1, 1), (2, 0), (3, 0), (4, 1), (7.5, 0)):
        document = Document(number, float(number), none, none, 25, 1.0, cells, None)
        recorder._add(LiveDocument(document, number > 0, 0.0, seconds, grid))
    recorder.writer.flush()
    (chunk,) = map(recorder.plan.chunks.get, recorder.writer.starts)
    assert [found.number for found in chunk.documents()] == [0, 1, 3, 5, 6, 10]
    assert [note.rpartition(": ")[2] for note in recorder.notes] == [
        "no video from 2 s to 3 s",
        "no video from 4 s to 5 s",
        "no video from 7 s to 10 s",
    ]


def test_an_interrupt_while_a_live_source_is_waited_for(stream, recorded):
    port = free_port()
    with contextlib.ExitStack() as camera:
        camera.enter_context(playing(port, stream))

        def interrupt(progress):
            if progress.done >= 1:
                camera.close()
            if "waiting for" in progress.note:
                raise KeyboardInterrupt

        source, settings = Source(f"tcp://127.0.0.1:{port}"), DocumentSettings(clip=CLIP)
        corpus = extract_corpus([source], settings, duration=10.0, progress=interrupt).corpus
    assert 5 <= len(corpus) < 50
    assert_start_of(corpus, recorded)
    assert decoders() == []


def test_a_pipe_that_ends_too_early_is_told(stream):
    code = (
        "from habitus.ingest.clips import DocumentSettings\n"
        "from habitus.ingest.extraction import extract_corpus\n"
        "from habitus.video import Source\n"
        "corpus, notes = extract_corpus([Source('-')], DocumentSettings(), duration=60.0)\n"
        "print(len(corpus), *notes)\n"
    )
    with stream.open("rb") as video:
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, stdin=video, capture_output=True, text=True, check=True)
    assert run.stdout == "12 -: ended after 12 s, 60 s were asked for\n"


def test_no_source_is_an_error():
    with pytest.raises(InvalidInputError, match="no video"):
        extract_corpus([])


def test_compiling_is_no_silence_of_the_decoder(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.ingest.segments.PATIENCE", -1.0)  # any silence is too long
    plan = SourcePlan(Source("a.mp4"), SHORT, SourceChunks(tmp_path, "a", None), None)
    with LocalWorkers(1) as processes:
        pool = SegmentPool([plan], processes)
        pool._tasks = processes.started(time.sleep, [LONG])
        with pool:  # no worker has compiled its kernels yet
            pool._hear(0, DecodedSegment())
            with pytest.raises(VideoError, match="gave no frame"):
                pool.watch(within=0.0)


def test_a_file_that_hangs_in_this_very_process_is_an_error(tmp_path, monkeypatch):
    """A pipe with the name of a file: whoever opens it waits for a writer that never comes."""
    video = encode(tmp_path / "video.mp4", [np.zeros((64, 64), np.uint8)] * 50)
    monkeypatch.setattr("habitus.ingest.segments.PATIENCE", 0.5)
    source, settings = Source(str(video)), DocumentSettings()
    cached = ChunkCache(tmp_path / "corpus").of_source(source, settings)
    segment = Segment(SourcePlan(source, settings, cached, 2), 0, None)
    assert decode_watched(segment, {}.__setitem__).n_frames >= 50
    video.unlink()
    os.mkfifo(video)
    with pytest.raises(VideoError, match=r"video\.mp4: the decoder gave no frame for 0\.5 s"):
        decode_watched(segment, {}.__setitem__)
    os.close(os.open(video, os.O_RDWR | os.O_NONBLOCK))  # whoever waits goes on


def test_a_worker_that_fails_gives_no_whole_segment(tmp_path):
    plan = SourcePlan(Source("none.mp4"), SHORT, SourceChunks(tmp_path, "a", None), None)
    with (
        LocalWorkers(1) as processes,
        SegmentPool([plan], processes) as pool,
        pytest.raises(VideoError, match=r"none\.mp4"),
    ):
        list(pool.chunks(plan))
