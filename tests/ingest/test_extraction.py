"""Whole corpora from video: in any number of processes, in one go or in several."""

from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest

from habitus import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError, VideoError
from habitus.ingest.chunks import Shelf
from habitus.ingest.clips import Settings
from habitus.ingest.condition import Condition
from habitus.ingest.extraction import PART, _Crew, extract, stretches
from habitus.model.expected_counts import gather
from habitus.video import Source
from reference.footage import FPS, HEIGHT, WIDTH, encode, moving_square, texture

X264 = {"preset": "ultrafast", "crf": "15", "g": "30"}
SHORT = Settings(clip=0.12)
"""Clips so short that half a minute has several parts."""
SECONDS = 32
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
    found = extract([long], SHORT).corpus
    assert len(found) > 2 * PART
    assert found.n_tokens.min() > 0
    return found


def test_processes_do_not_change_the_result(long, whole):
    assert same(extract([long], SHORT, jobs=2).corpus, whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_goes_on_from_the_parts_of_another(tmp_path, long, whole, jobs):
    output = tmp_path / "long.corpus"
    seen = []
    extract([long], SHORT, output=output, jobs=2)
    shelf = Shelf(output)
    parts = sorted(shelf.folder.iterdir())
    assert len(parts) == 3
    assert not output.exists()  # writing it is the caller's
    stamps = [path.stat().st_mtime_ns for path in parts]
    parts[-1].unlink()
    again = extract([long], SHORT, output=output, jobs=jobs, progress=seen.append)
    assert same(again.corpus, whole)
    assert sorted(shelf.folder.iterdir()) == parts
    assert [path.stat().st_mtime_ns for path in parts[:-1]] == stamps[:-1]
    assert 0 < seen[-1].n_frames < 0.6 * SECONDS * FPS  # the rest was not decoded again
    parts[1].unlink()
    assert same(extract([long], SHORT, output=output, jobs=jobs).corpus, whole)
    shelf.clear()
    assert list(tmp_path.iterdir()) == []


def test_parts_are_for_the_same_settings_only(tmp_path, folder):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    plain = extract([source], output=output).corpus
    lower = Settings(mask="0,64 159,64 159,127 0,127")
    masked = extract([source], lower, output=output).corpus
    assert masked.n_tokens.sum() < plain.n_tokens.sum()
    assert same(extract([source], output=output).corpus, plain)


@pytest.mark.parametrize("first", [None, 2.0])
def test_parts_of_another_duration_are_not_taken_over(tmp_path, folder, first):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    then = 2.0 if first is None else None
    extract([source], output=output, duration=first)
    again = extract([source], output=output, duration=then).corpus
    assert len(again) == (3 if then is None else 2)


def test_a_damaged_part_is_made_anew(tmp_path, folder):
    source, output = Source(str(folder / "one.mp4")), tmp_path / "a.corpus"
    expected = extract([source], output=output).corpus
    (part,) = Shelf(output).folder.iterdir()
    part.write_bytes(part.read_bytes()[:-100])
    assert same(extract([source], output=output).corpus, expected)


def test_duration_ends_a_file_too(folder):
    corpus = extract([Source(str(folder / "one.mp4"))], duration=2.0).corpus
    assert corpus.times.tolist() == [0, 1]


def test_sources_are_sequences_or_one(folder):
    sources = [Source(str(folder / name)) for name in ("one.mp4", "two.mp4")]
    apart = extract(sources, jobs=2).corpus
    assert apart.lengths.tolist() == [3, 2]
    assert apart.times.tolist() == [0, 1, 2, 0, 1]
    together = extract(sources, jobs=1, continued=True).corpus
    assert together.lengths.tolist() == [5]
    assert together.times.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(apart.counts.toarray(), together.counts.toarray())
    singles = [extract([source]).corpus.counts.toarray() for source in sources]
    assert np.array_equal(apart.counts.toarray(), np.concatenate(singles))


def test_sources_of_different_sizes_are_refused(folder):
    sources = [Source(str(folder / name)) for name in ("one.mp4", "long.mp4")]
    with pytest.raises(InvalidInputError, match="96x80") as raised:
        extract(sources)
    assert "long.mp4 has" in str(raised.value)


def test_the_picture_shows_the_scene_without_what_moves(long, whole):
    assert whole.picture.shape == (80, 96, 3)
    ground = texture(96, 80, 0)[..., None].astype(float)
    error = abs(whole.picture - ground).mean(axis=2)
    assert np.median(error) < PICTURE_ERROR
    outside = np.ones((80, 96), dtype=np.bool_)
    outside[24:56] = False  # where the square passes
    assert error[outside].mean() < PICTURE_ERROR


def test_a_corpus_file_keeps_everything(tmp_path, folder):
    source = Source(str(folder / "one.mp4"))
    corpus = extract([source]).corpus
    marked = Corpus(
        corpus.counts, times=corpus.times, lengths=corpus.lengths, vocabulary=corpus.vocabulary,
        n_frames=corpus.n_frames, conditions=[0, 2, 1], picture=corpus.picture,
    )  # fmt: skip
    marked.save(tmp_path / "a.corpus")
    read = Corpus.load(tmp_path / "a.corpus")
    assert same(read, marked)
    assert read.n_frames.tolist() == [25, 25, 25]
    assert read.conditions.tolist() == [0, 2, 1]
    assert read.vocabulary == Vocabulary(16, 20, 8, 1, WIDTH, HEIGHT, speeds=2)


def test_large_frames_are_halved(tmp_path):
    pictures = moving_square(50, width=640, height=480, side=192, velocity=(6, 0), start=(0, 160))
    path = encode(tmp_path / "a.mp4", pictures, options=X264)
    corpus = extract([Source(str(path))]).corpus
    assert corpus.vocabulary == Vocabulary(30, 40, 8, 2, 640, 480, speeds=2)
    assert corpus.picture.shape == (240, 320, 3)
    places = corpus.vocabulary.places(corpus.counts.indices)
    heavy = corpus.counts.data > 2
    assert (places.directions[heavy] == 3).mean() > 0.98
    boxes = corpus.vocabulary.boxes(corpus.counts.indices)
    assert boxes[heavy, 1].min() >= 144
    assert boxes[heavy, 3].max() <= 368


def test_faults_of_the_camera_are_found_and_told(tmp_path):
    pictures = moving_square(250) + [np.full((HEIGHT, WIDTH), 10, np.uint8)] * 75
    pictures += moving_square(75)
    path = encode(tmp_path / "a.mp4", pictures, options=X264)
    corpus, notes = extract([Source(str(path))])
    assert corpus.conditions[:10].tolist() == [Condition.FINE] * 10
    assert corpus.conditions[10:13].tolist() == [Condition.COVERED] * 3
    assert corpus.conditions[13:].tolist() == [Condition.FINE] * 3
    assert len(notes) == 1
    assert "covered" in notes[0]
    assert "10 s to 13 s" in notes[0]


def test_documents_with_a_fault_teach_nothing(folder):
    corpus = extract([Source(str(folder / "one.mp4"))]).corpus
    marked = Corpus(corpus.counts, lengths=[3], conditions=[0, 3, 0])
    evidence = gather(marked)
    assert evidence.n_documents == 3
    sizes = np.diff(evidence.indptr)
    assert sizes[1] == 0
    assert sizes[[0, 2]].tolist() == np.diff(corpus.counts.indptr)[[0, 2]].tolist()
    assert len(evidence.words) == len(evidence.counts) == sizes.sum()


@pytest.fixture(scope="module")
def broken(folder):
    """The same length with half a second missing where a part ends."""
    pictures = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    times = np.arange(len(pictures)) / FPS
    times[times >= PART * SHORT.clip - 1e-6] += 0.48
    return Source(str(encode(folder / "broken.mkv", pictures, times=times, options=X264)))


def test_a_gap_where_a_part_ends_is_kept_by_any_number_of_processes(tmp_path, broken):
    whole = extract([broken], SHORT).corpus
    assert (whole.n_frames == 0).sum() == 4
    assert whole.lengths.tolist() == [len(whole)]
    output = tmp_path / "a.corpus"
    assert same(extract([broken], SHORT, output=output, jobs=2).corpus, whole)
    first, *_ = sorted(Shelf(output).folder.iterdir())
    first.unlink()
    assert same(extract([broken], SHORT, output=output, jobs=1).corpus, whole)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("missing", [[], [0], [0, 1, 2], [1, 2, 5], list(range(30)), [0, 9, 10]])
def test_stretches_cover_what_is_missing_once_and_nothing_else(jobs, missing):
    found = list(stretches([PART * k for k in missing], jobs))
    covered = [k for start, stop in found for k in range(start // PART, stop // PART)]
    assert covered == missing
    if jobs > 1 and len(missing) == 30:
        sizes = [(stop - start) // PART for start, stop in found]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-2 * jobs :] == [1] * 2 * jobs
        assert len(found) < 20


def test_compiling_is_no_silence_of_the_decoder():
    crew = object.__new__(_Crew)
    crew.beat, crew._last_beat, crew._heard = SimpleNamespace(value=0), 0, -1e9
    worker = Thread(target=Event().wait, daemon=True)
    worker.start()
    crew._check_alive([worker])  # no kernel is ready yet
    crew._warm = True
    with pytest.raises(VideoError, match="gave no frame for 60 s"):
        crew._check_alive([worker])
