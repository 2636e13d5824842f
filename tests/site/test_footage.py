"""Documents on disk to learn from: minutes, hours, gaps, kills, full disks."""

import os
import resource
import sys
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from habitus.corpus.clocks import minute_of
from habitus.corpus.documents import FORMAT, Condition, Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import Document, DocumentSettings
from habitus.site import footage
from habitus.site.footage import (
    MOST_HELD,
    FootageWriter,
    join_hours,
    read_footage,
    thin,
)
from reference.processes import LONG, wait_until

SETTINGS = DocumentSettings()
GRID = Vocabulary.of_frame(64, 48, words="fine", scale=1)
OTHER_GRID = Vocabulary.of_frame(64, 64, words="fine", scale=1)
START = datetime(2026, 3, 1, 10, 50, 0, tzinfo=UTC).timestamp()
HOUR = 3600
DAY = 86_400


def document(n: int, *, grid: Vocabulary = GRID, still: bool = True) -> Document:
    """A document that can be told from all others by its words."""
    words = np.array([n % 97, 100 + n // 97 % 97, 200 + n % 3])
    picture = np.full((grid.height, grid.width, 3), 40 + n % 5, dtype=np.uint8)
    thumbnail = np.zeros((grid.rows, grid.columns), dtype=np.uint8)
    counts = np.array([1, 2, 3])
    return Document(n, float(n), words, counts, 25, 1.0, thumbnail, picture if still else None)


def write(
    folder: Path,
    n: int,
    *,
    at: float = START,
    first: int = 0,
    grid: Vocabulary = GRID,
    breaks: tuple[int, ...] = (),
    conditions: dict[int, Condition] | None = None,
    settings: DocumentSettings = SETTINGS,
    **options,
) -> FootageWriter:
    """Write documents, one a second."""
    writer = FootageWriter(folder, settings, **options)
    for k in range(first, first + n):
        condition = (conditions or {}).get(k, Condition.USABLE)
        follows = k > first and k not in breaks
        writer.add(document(k, grid=grid), at + k - first, condition, grid, follows=follows)
    writer.flush()
    return writer


def same(corpus: Corpus, numbers) -> bool:
    """Whether a corpus has exactly these documents, in this order."""
    wanted = [document(n).words.tolist() for n in numbers]
    return [bag.words.tolist() for bag in corpus.bags()] == wanted


def test_documents_come_back_with_times_sequences_and_conditions(tmp_path):
    faults = {7: Condition.MOVED, 200: Condition.FROZEN}
    writer = write(tmp_path, 400, breaks=(30, 250), conditions=faults)
    corpus, notes = read_footage(tmp_path)
    assert notes == []
    assert same(corpus, range(400))
    assert corpus.times.tolist() == [START + n for n in range(400)]
    assert corpus.lengths.tolist() == [30, 220, 150]
    assert {n: Condition(c) for n, c in enumerate(corpus.conditions) if c} == faults
    assert (corpus.n_frames == 25).all()
    assert corpus.clocks.tolist() == [minute_of(START + n) for n in range(400)]
    assert (corpus.vocabulary, corpus.clip) == (GRID, 1.0)
    assert corpus.picture.shape == (GRID.height, GRID.width, 3)
    assert corpus.picture.min() >= 40
    assert corpus.settings == SETTINGS.to_json(GRID)
    assert writer.kept == (398.0, START, START + 400)


def test_a_minute_is_on_disk_as_soon_as_it_is_over(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    for n in range(61):
        writer.add(document(n), START + n, Condition.USABLE, GRID, follows=n > 0)
    (path,) = tmp_path.iterdir()
    assert path.name == "20260301T105000.corpus"
    assert len(read_footage(tmp_path).corpus) == 60
    assert writer.kept == (60.0, START, START + 60)
    assert "packing" in FORMAT.read_header(path).header, "a shard, as of an archive"
    Corpus.load(path).save(path)  # as minutes were written before
    assert len(read_footage(tmp_path).corpus) == 60


def test_hours_are_joined_and_nothing_changes(tmp_path):
    write(tmp_path, 1500, breaks=(700,))
    before = read_footage(tmp_path).corpus
    join_hours(tmp_path, START + 1500)  # the second hour is not over
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0] == "20260301T10.corpus"
    assert all(name.startswith("20260301T11") and len(name) > 20 for name in names[1:])
    join_hours(tmp_path, START + DAY)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "20260301T10.corpus",
        "20260301T11.corpus",
    ]
    after = read_footage(tmp_path).corpus
    assert same(after, range(1500))
    assert after.times.tolist() == before.times.tolist()
    assert after.lengths.tolist() == before.lengths.tolist() == [700, 800]
    assert FootageWriter(tmp_path, SETTINGS).kept == (1500.0, START, START + 1500)
    for path in tmp_path.iterdir():
        assert "packing" in FORMAT.read_header(path).header, "an hour is a shard, as of an archive"
        Corpus.load(path).save(path)  # as hours were written before
    before = read_footage(tmp_path).corpus
    assert same(before, range(1500))
    assert before.lengths.tolist() == [700, 800]


def test_joining_that_was_cut_short_counts_nothing_twice(tmp_path):
    write(tmp_path, 600)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    join_hours(tmp_path, START + DAY)
    for name, contents in list(kept.items())[3:]:  # as if it had been killed while deleting
        (tmp_path / name).write_bytes(contents)
    assert same(read_footage(tmp_path).corpus, range(600))
    assert FootageWriter(tmp_path, SETTINGS).kept.seconds == 600
    write(tmp_path, 60, at=START + 700, first=700)  # 11:01:40
    join_hours(tmp_path, START + DAY)
    assert same(read_footage(tmp_path).corpus, [*range(600), *range(700, 760)])


def test_a_restart_begins_a_sequence_and_overwrites_nothing(tmp_path):
    write(tmp_path, 50)
    write(tmp_path, 50, at=START, first=50)  # the clock was set back by 50 s
    corpus = read_footage(tmp_path).corpus
    assert len(corpus) == 100
    assert corpus.lengths.tolist() == [50, 50]


def test_what_is_excluded_is_not_there_and_a_sequence_ends(tmp_path):
    write(tmp_path, 300)
    excluded = [(START + 100, START + 105), (START + 59.5, START + 60.5)]
    corpus = read_footage(tmp_path, START + 10, START + 290, excluded).corpus
    gone = {*range(100, 105), 60}
    assert same(corpus, [n for n in range(10, 290) if n not in gone])
    assert corpus.lengths.tolist() == [50, 39, 185]


def test_of_too_many_documents_segments_are_taken_evenly(tmp_path):
    for day in range(3):
        write(tmp_path, 3600, at=START + 600 + day * DAY, first=3600 * day)
    join_hours(tmp_path, START + 5 * DAY)
    corpus = read_footage(tmp_path, most=1000).corpus
    assert len(corpus) == 1000
    per_day = np.bincount(((corpus.times - START) // DAY).astype(int))
    assert per_day.max() - per_day.min() <= 100
    assert np.count_nonzero(corpus.lengths == 100) == 8  # two are before and after a night
    begins = corpus.times[corpus.first]
    assert np.diff(begins)[np.diff(begins) < HOUR].max() <= 1300  # every eleventh or twelfth


def test_documents_of_many_words_are_fewer(tmp_path):
    write(tmp_path, 600)  # of three distinct words each
    corpus = read_footage(tmp_path, most_counts=900).corpus
    assert len(corpus) == 300
    assert corpus.counts.nnz == 900


def test_footage_is_thinned_evenly_and_learnt_from_as_before(tmp_path):
    write(tmp_path, 2 * 3600)
    before = read_footage(tmp_path).corpus
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    thin(tmp_path, 0.25, START + 4 * 3600)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 0.4 * size
    after = read_footage(tmp_path).corpus
    assert 0.2 * len(before) < len(after) < 0.3 * len(before)
    assert set(after.times) < set(before.times)
    assert after.times.max() - after.times.min() > 0.9 * 2 * 3600
    thin(tmp_path, 0.01, START + 4 * 3600)
    assert len(read_footage(tmp_path).corpus) == len(after), "less than a segment would stay"


def test_a_damaged_file_is_left_out_with_a_note(tmp_path):
    write(tmp_path, 300)
    cut, altered, *_ = sorted(tmp_path.iterdir())[1:]
    cut.write_bytes(cut.read_bytes()[:1000])
    contents = bytearray(altered.read_bytes())
    contents[-5] ^= 1
    altered.write_bytes(bytes(contents))
    corpus, notes = read_footage(tmp_path)
    assert same(corpus, [*range(60), *range(180, 300)])
    # The minutes on either side do not follow each other.
    assert corpus.lengths.tolist() == [60, 120]
    assert [note.partition(" is damaged")[0] for note in notes] == [cut.name, altered.name]
    join_hours(tmp_path, START + DAY)  # goes on, and keeps what is sound
    assert same(read_footage(tmp_path).corpus, [*range(60), *range(180, 300)])


@pytest.mark.parametrize(
    "change",
    [{"grid": OTHER_GRID}, {"settings": DocumentSettings(mask="0,0 20,0 20,20 0,20")}],
    ids=["frame size", "mask"],
)
def test_documents_of_another_kind_are_left_out_with_a_note(tmp_path, change):
    write(tmp_path, 120, **change)
    write(tmp_path, 100, at=START + 120, first=120)
    corpus, notes = read_footage(tmp_path)
    assert same(corpus, range(120, 220))
    assert notes == ["120 documents were left out: they were made with another frame size or mask"]
    join_hours(tmp_path, START + DAY)
    assert same(read_footage(tmp_path).corpus, range(120, 220))


def test_a_camera_that_changes_its_frame_size_begins_anew(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    for n in range(30):
        grid = GRID if n < 20 else OTHER_GRID
        writer.add(document(n, grid=grid), START + n, Condition.USABLE, grid)
    writer.flush()
    corpus = read_footage(tmp_path).corpus
    assert (len(corpus), corpus.vocabulary) == (10, OTHER_GRID)


def test_old_footage_is_deleted_and_foreign_files_are_not(tmp_path):
    (tmp_path / "notes.corpus").write_text("mine")
    write(tmp_path, 120, at=START - 3 * DAY)
    join_hours(tmp_path, START)
    write(tmp_path, 120, at=START - 3 * DAY + HOUR)
    writer = write(tmp_path, 120, learn_days=2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["20260301T105000.corpus", "20260301T105100.corpus", "notes.corpus"]
    assert writer.kept == (120.0, START, START + 120)


def test_footage_that_is_thinned_while_it_is_read_is_still_that_of_its_times(tmp_path, monkeypatch):
    """What was called unusual is not learnt from, wherever it is in the file by then."""
    write(tmp_path, 2 * HOUR + 600)
    join_hours(tmp_path, START + 4 * HOUR)
    files = footage._files

    def read_before(folder, notes):
        described = files(folder, notes)
        monkeypatch.undo()
        thin(folder, 0.25, START + 4 * HOUR)
        return described

    monkeypatch.setattr(footage, "_files", read_before)
    excluded = START + 1000, START + 5000
    corpus, notes = read_footage(tmp_path, excluded=[excluded])
    assert notes == []
    assert same(corpus, (corpus.times - START).astype(int))
    assert 600 < len(corpus) < 2 * HOUR / 3
    assert not ((corpus.times >= excluded[0]) & (corpus.times < excluded[1])).any()


def test_nothing_is_nothing(tmp_path):
    assert read_footage(tmp_path / "no folder") == (None, [])
    assert FootageWriter(tmp_path, SETTINGS).kept is None
    write(tmp_path, 60)
    assert read_footage(tmp_path, START + HOUR) == (None, [])


@contextmanager
def full_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_once_and_ten_minutes_wait_in_memory(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    with full_disk():
        for n in range(900):
            writer.add(document(n), START + n, Condition.USABLE, GRID, follows=n > 0)
    assert [note.partition(":")[0] for note in writer.notes] == [
        "documents to learn from wait in memory"
    ]
    writer.flush()
    assert writer.notes[1:] == ["documents to learn from are written again"]
    corpus = read_footage(tmp_path).corpus
    assert MOST_HELD <= len(corpus) <= MOST_HELD + 60
    assert same(corpus, range(900 - len(corpus), 900))
    assert len(corpus.lengths) == 1
    assert list(tmp_path.iterdir()) == [tmp_path / next(tmp_path.iterdir()).name]  # nothing partial


def test_what_was_dropped_while_the_disk_was_full_is_a_gap(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    for disk, numbers in ((nullcontext(), range(61)), (full_disk(), range(61, 900))):
        with disk:
            for n in numbers:
                writer.add(document(n), START + n, Condition.USABLE, GRID, follows=n > 0)
    writer.flush()
    corpus = read_footage(tmp_path).corpus
    before, after = corpus.lengths
    assert before == 60
    assert same(corpus, [*range(60), *range(900 - after, 900)])


def test_pictures_go_on_where_the_clock_was_set_back(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    writer.add(document(0), START + DAY, Condition.USABLE, GRID)
    for k in range(3):
        writer.add(document(1 + 5 * k), START + 10 * k, Condition.USABLE, GRID)
    writer.flush()
    assert (read_footage(tmp_path, START + DAY).corpus.picture == 40).all()
    assert (read_footage(tmp_path, START, START + HOUR).corpus.picture == 41).all()


WRITER = """
import sys, time
from pathlib import Path
from cameras.test_footage import GRID, SETTINGS, START, document
from habitus.site.footage import FootageWriter
from habitus.corpus.documents import Condition

writer = FootageWriter(Path(sys.argv[1]), SETTINGS)
for n in range(1_000_000):
    writer.add(document(n), START + n, Condition.USABLE, GRID, follows=n > 0)
"""


def test_a_file_that_was_being_written_is_no_damage(tmp_path):
    writer = FootageWriter(tmp_path, SETTINGS)
    for n in range(60):
        writer.add(document(n), START + n, Condition.USABLE, GRID, follows=n > 0)
    writer.flush()
    (tmp_path / f".habitus-{0:016x}.corpus").write_bytes(b"half")
    corpus, notes = read_footage(tmp_path)
    assert notes == []
    assert same(corpus, range(60))


def test_a_kill_at_any_moment_loses_at_most_a_minute(tmp_path, start):
    """The writer writes all the time here, so that it is killed within a file or between two."""
    code = WRITER.replace("cameras.test_footage", "test_footage")
    path = [str(Path(__file__).parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    for n_files in (1, 7, 20):
        folder = tmp_path / str(n_files)
        process = start([sys.executable, "-c", code, folder], env=environment)
        wait_until(lambda f=folder, n=n_files: len(list(f.glob("[0-9]*.corpus"))) >= n, "files")
        process.kill()
        process.wait(LONG)
        corpus, notes = read_footage(folder)
        assert notes == []
        assert len(corpus) >= 60 * n_files
        assert len(corpus) % 60 == 0
        assert same(corpus, range(len(corpus)))
        assert corpus.lengths.tolist() == [len(corpus)]
