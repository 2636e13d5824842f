"""Sources of video -> a corpus: in processes that can be ended, resumable at any point."""

import multiprocessing as mp
import os
import queue
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError, VideoError
from habitus.ingest.chunks import Assembly, Extraction, Part, Shelf, part_of
from habitus.ingest.clips import Document, Settings, documents, reader_from, vocabulary_of
from habitus.ingest.live import warm_up
from habitus.video import Frame, Reader, Source, watched_cells

# Documents to a part: two minutes of video at a time.
PART = 120
# Stills that the picture of the scene is the median of, about.
STILLS = 24
# Seconds without a sign of life from a decoder before it is ended.
PATIENCE = 60.0
# Seconds that a worker without work has to end.
GRACE = 2.0


class Progress(NamedTuple):
    """How far extraction is."""

    done: float
    """Seconds of video."""
    total: float | None
    """Seconds of video in all, where known."""
    n_frames: int
    """Frames decoded in this run."""
    seen: float
    """Seconds of video decoded in this run."""


@dataclass(frozen=True)
class Plan:
    """What is known of a source before its documents are."""

    source: Source
    settings: Settings
    vocabulary: Vocabulary | None = None
    """None for a live source, which is opened once only, by the process that decodes it."""
    duration: float | None = None
    seekable: bool = False
    fps: float = 25.0


def plan(source: Source, settings: Settings) -> Plan:
    """Open a source, and check that everything fits it."""
    with Reader(source) as reader:
        vocabulary = vocabulary_of(reader, settings)
        watched_cells(vocabulary, mask=settings.mask, region=settings.region)
        if reader.duration:
            every = max(1, int(reader.duration / settings.clip / STILLS))
            settings = replace(settings, still_every=every)
        return Plan(source, settings, vocabulary, reader.duration, reader.seekable, reader.fps)


def extract(
    sources: Sequence[Source],
    settings: Settings | None = None,
    *,
    output: Path | None = None,
    continued: bool = False,
    jobs: int = 1,
    duration: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Extraction:
    """Make a corpus of video.

    Several sources are several sequences, or one if `continued`. With `output`, parts are kept
    beside it until the corpus is whole, and a run that was cut short goes on from them; writing
    the corpus is the caller's. The result does not depend on `jobs`. `duration` ends a live source
    after so many seconds of video. Decoding runs in processes of its own, which are ended when
    they hang.
    """
    settings = settings or Settings()
    with _shelf(output) as shelf:
        plans = [plan(s, settings) if not s.is_live else Plan(s, settings) for s in sources]
        crew = _Crew(plans, shelf, jobs, duration, progress or (lambda _: None))
        assembly = Assembly(settings, continued=continued)
        with crew.at_work():
            for number in range(len(plans)):
                assembly.add(crew.parts(number))
        _check_alike(plans)
        try:
            corpus, remarks = assembly.finished(plans[0].vocabulary)
        except VideoError as error:
            raise VideoError(f"{', '.join(s.name for s in sources)}: {error}") from None
        return Extraction(corpus, crew.notes + remarks)


@contextmanager
def _shelf(output: Path | None) -> Iterator[Shelf]:
    """Where parts are kept: beside the corpus, or for this run only."""
    if output is not None:
        yield Shelf(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Shelf(Path(folder, "corpus"))


def _check_alike(plans: Sequence[Plan]) -> None:
    known = [(p.source.name, p.vocabulary) for p in plans if p.vocabulary]
    for address, grid in known:
        first, usual = known[0]
        if grid != usual:
            raise InvalidInputError(
                f"{address} has {grid.width}x{grid.height} pixels, {first} {usual.width}x"
                f"{usual.height}: extract them apart"
            )


class _Crew:
    """Processes that turn stretches of video into parts."""

    def __init__(
        self,
        plans: list[Plan],
        shelf: Shelf,
        jobs: int,
        duration: float | None,
        progress: Callable[[Progress], None],
    ) -> None:
        self.plans, self.shelf, self.duration, self.progress = plans, shelf, duration, progress
        self.jobs = jobs if jobs > 0 else max(1, len(os.sched_getaffinity(0)))
        self.notes: list[str] = []
        self.ready: list[dict[int, Path]] = [{} for _ in plans]
        self.pending: list[dict[int, float]] = [{} for _ in plans]
        self.workers: list[Any] = []
        self.context = mp.get_context("spawn")
        self.beat, self.stop = self.context.Value("q", 0), self.context.Event()
        self.results: Any = self.context.Queue()
        self.done = 0.0  # seconds of video that were on the shelf
        lengths = [min(p.duration or np.inf, duration or np.inf) for p in plans]
        self.total = None if np.inf in lengths else sum(lengths)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Have the workers do what is not on the shelf yet."""
        _check_alike(self.plans)
        tasks = [task for number in range(len(self.plans)) for task in self._tasks(number)]
        for task in tasks:
            self.pending[task.number][task.start] = np.inf if task.stop is None else task.stop
        with self._workers(tasks) as self.workers:
            if any(p.source.is_live for p in self.plans):
                self._listen_to_the_end()
            yield

    def _listen_to_the_end(self) -> None:
        while any(self.pending):
            try:
                self._listen(self.workers)
            except KeyboardInterrupt:
                if self.stop.is_set():
                    raise
                self.stop.set()  # what a live source gave so far is the result

    def parts(self, number: int) -> Iterator[Part]:
        """The parts of a source, in order, as they come: a stretch's own come in order."""
        ready, pending = self.ready[number], self.pending[number]
        while ready or pending:
            following = min(ready, default=np.inf)
            if following < (pending[min(pending)] if pending else np.inf):
                yield self.shelf.get(ready.pop(int(following)))
            else:
                self._listen(self.workers)

    def _tasks(self, number: int) -> "Iterator[_Task]":
        """Stretches of a source that are not on the shelf yet; those that are are taken over."""
        planned = self.plans[number]
        source, settings = planned.source, planned.settings
        end = None if self.duration is None else int(np.ceil(self.duration / settings.clip))
        if not planned.seekable or planned.duration is None:
            yield _Task(number, source, settings, 0, end)
            return
        last = int(planned.duration / settings.clip) + 2  # durations are rounded
        starts = range(0, min(last, end or last), PART)
        for start in starts:
            path = self._path(number, start)
            if self.shelf.has(path):
                self.ready[number][start] = path
                self.done += PART * settings.clip
        missing = [start for start in starts if start not in self.ready[number]]
        for start, stop in stretches(missing, self.jobs):
            yield _Task(number, source, settings, start, end if stop > starts[-1] else stop)

    def _path(self, number: int, start: int) -> Path:
        planned = self.plans[number]
        end = None if self.duration is None else int(np.ceil(self.duration / planned.settings.clip))
        stop = end if end is not None and end < start + PART else None
        return self.shelf.path(planned.source, planned.settings, start, stop)

    @contextmanager
    def _workers(self, tasks: "list[_Task]") -> Iterator[list[Any]]:
        waiting: Any = self.context.Queue()
        n = min(self.jobs, len(tasks))
        for task in [*tasks, *[None] * n]:
            waiting.put(task)
        arguments = (waiting, self.results, self.beat, self.stop)
        if any(task.source.address == "-" for task in tasks):  # only we have standard input
            workers: list[Any] = [Thread(target=_work, args=(*arguments, False), daemon=True)]
        else:
            workers = [
                self.context.Process(target=_work, args=arguments, daemon=True) for _ in range(n)
            ]
        for worker in workers:
            worker.start()
        try:
            yield workers
            for worker in workers:
                worker.join(GRACE)  # all is done: they end by themselves
        finally:
            for worker in workers:
                if not isinstance(worker, Thread):
                    worker.kill()
                    worker.join()
            waiting.cancel_join_thread()

    _heard, _last_beat, _warm = 0.0, -1, False

    def _listen(self, workers: list[Any]) -> None:
        """Take in the next message."""
        try:
            number, kind, start, what = self.results.get(timeout=0.2)
        except queue.Empty:
            self._check_alive(workers)
            number, kind, start, what = -1, "nothing", 0, None
        if kind != "nothing" or self._heard == 0:
            self._heard = time.monotonic()
        if kind == "vocabulary":
            self.plans[number] = replace(self.plans[number], vocabulary=what)
        elif kind == "warm":
            self._warm = True
        elif kind == "part":
            path = self._path(number, start // PART * PART)
            self.shelf.put(path, what)
            self.ready[number][start // PART * PART] = path
        elif kind == "done":
            del self.pending[number][start]
            self.notes += [note for note in what if note not in self.notes]
        elif kind == "failed":
            raise what
        n_frames = self.beat.value
        seen = n_frames / self.plans[0].fps
        done = min(self.done + seen, self.total or np.inf)
        self.progress(Progress(done, self.total, n_frames, seen))

    def _check_alive(self, workers: list[Any]) -> None:
        if self.beat.value != self._last_beat:
            self._last_beat, self._heard = self.beat.value, time.monotonic()
        elif not any(worker.is_alive() for worker in workers) and self.results.empty():
            raise VideoError("the decoder crashed: the video is damaged beyond repair")
        elif self._warm and time.monotonic() - self._heard > PATIENCE:
            raise VideoError(f"the decoder gave no frame for {PATIENCE:g} s and was ended")


def stretches(missing: Sequence[int], jobs: int) -> Iterator[tuple[int, int]]:
    """Start and end of stretches of neighbouring parts, long ones first, short ones at the end.

    Each costs a search for its start, so there should be few; but all workers should end together.
    """
    i = 0
    while i < len(missing):
        left = len(missing) - i
        n = left if jobs == 1 else max(1, left // (2 * jobs))
        while missing[i + n - 1] != missing[i] + (n - 1) * PART:  # not over what is on the shelf
            n -= 1
        yield missing[i], missing[i] + n * PART
        i += n


class _Task(NamedTuple):
    number: int
    source: Source
    settings: Settings
    start: int
    stop: int | None


def _work(waiting: Any, results: Any, beat: Any, stop: Any, alone: bool = True) -> None:
    """A worker process: tasks in, parts out."""
    if alone:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
        Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    warm = False
    while (task := waiting.get()) is not None:
        try:
            if not warm:
                warm_up(task.settings)
                results.put((task.number, "warm", 0, None))
                warm = True
            results.put((task.number, "done", task.start, _do(task, results, beat, stop)))
        except HabitusError as error:
            results.put((task.number, "failed", 0, error))
        except OSError as error:  # a compiled kernel that a full disk does not take, for one
            failure = VideoError(f"{task.source.name}: decoding failed: {error}")
            results.put((task.number, "failed", 0, failure))


def _end_with(parent: int) -> None:
    """End this process once its parent has gone, however that went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _do(task: _Task, results: Any, beat: Any, stop: Any) -> list[str]:
    with reader_from(task.start, task.source, task.settings) as reader:
        if task.source.is_live:
            results.put((task.number, "vocabulary", 0, vocabulary_of(reader, task.settings)))
        counted = _Counted(reader, beat, stop)
        part: list[Document] = []
        for document in documents(counted, task.settings, start=task.start, stop=task.stop):
            # Documents of a gap stay with the one before it, wherever reading started or stopped.
            if part and document.n_frames and document.number // PART != part[0].number // PART:
                results.put((task.number, "part", part[0].number, part_of(part)))
                part = []
            part.append(document)
        if part:
            results.put((task.number, "part", part[0].number, part_of(part)))
        return [f"{task.source.name}: {note}" for note in reader.notes]


class _Counted:
    """A reader that shows signs of life, and ends when told to."""

    def __init__(self, reader: Reader, beat: Any, stop: Any) -> None:
        self.reader, self.beat, self.stop = reader, beat, stop
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height

    def __iter__(self) -> Iterator[Frame]:
        for n, frame in enumerate(self.reader):
            if n % 16 == 0:
                if self.stop.is_set():
                    return
                with self.beat.get_lock():
                    self.beat.value += 16
            yield frame
