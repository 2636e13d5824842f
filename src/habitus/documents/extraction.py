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

from habitus.documents.assembly import Extraction, assemble
from habitus.documents.clips import Document, Settings, documents, reader_from, vocabulary_of
from habitus.documents.parts import Shelf, part_of
from habitus.errors import HabitusError, InvalidInputError, VideoError
from habitus.video import Frame, Reader, Source, watched_cells
from habitus.words import Vocabulary

# Documents to a part: two minutes of video at a time.
PART = 120
# Stills that the picture of the scene is the median of, about.
STILLS = 24
# Seconds without a sign of life from a decoder before it is ended.
PATIENCE = 60.0


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
        paths = crew.run()
        _check_alike(plans)
        parts = (map(shelf.get, found) for found in paths)
        try:
            grid = plans[0].vocabulary
            corpus, remarks = assemble(
                parts, grid, settings.clip, continued=continued,
                settings=settings.kept(grid) if grid else None,
            )  # fmt: skip
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
        self.paths: list[list[Path]] = [[] for _ in plans]
        self.context = mp.get_context("spawn")
        self.beat, self.stop = self.context.Value("q", 0), self.context.Event()
        self.results: Any = self.context.Queue()
        self.done = 0.0  # seconds of video that were on the shelf
        lengths = [min(p.duration or np.inf, duration or np.inf) for p in plans]
        self.total = None if np.inf in lengths else sum(lengths)

    def run(self) -> list[list[Path]]:
        """Paths of the parts of each source, in order."""
        _check_alike(self.plans)
        tasks = [task for number in range(len(self.plans)) for task in self._tasks(number)]
        with self._workers(tasks) as workers:
            n_tasks = len(tasks)
            while n_tasks:
                try:
                    n_tasks -= self._listen(workers)
                except KeyboardInterrupt:
                    if not any(p.source.is_live for p in self.plans) or self.stop.is_set():
                        raise
                    self.stop.set()  # what a live source gave so far is the result
        return [sorted(found) for found in self.paths]

    def _tasks(self, number: int) -> "Iterator[_Task]":
        """Stretches of a source that are not on the shelf yet; those that are are taken over."""
        planned = self.plans[number]
        source, settings = planned.source, planned.settings
        end = None if self.duration is None else int(np.ceil(self.duration / settings.clip))
        if not planned.seekable or planned.duration is None:
            yield _Task(number, source, settings, 0, end)
            return
        last = int(planned.duration / settings.clip) + 2  # durations are rounded
        for start in range(0, min(last, end or last), PART):
            path = self._path(number, start)
            if self.shelf.has(path):
                self.paths[number].append(path)
                self.done += PART * settings.clip
            elif self.jobs == 1:  # one stretch to the end: no seeking
                yield _Task(number, source, settings, start, end)
                return
            else:
                yield _Task(number, source, settings, start, min(start + PART, end or last))

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
        finally:
            for worker in workers:
                if not isinstance(worker, Thread):
                    worker.kill()
                    worker.join()
            waiting.cancel_join_thread()

    _heard, _last_beat = 0.0, -1

    def _listen(self, workers: list[Any]) -> int:
        """Take in the next message; gives the number of tasks that it ends."""
        try:
            number, kind, start, what = self.results.get(timeout=0.2)
        except queue.Empty:
            self._check_alive(workers)
            number, kind, start, what = -1, "nothing", 0, None
        if kind != "nothing" or self._heard == 0:
            self._heard = time.monotonic()
        if kind == "vocabulary":
            self.plans[number] = replace(self.plans[number], vocabulary=what)
        elif kind == "part":
            path = self._path(number, start // PART * PART)
            self.shelf.put(path, what)
            self.paths[number].append(path)
        elif kind == "done":
            self.notes += [note for note in what if note not in self.notes]
        elif kind == "failed":
            raise what
        n_frames = self.beat.value
        seen = n_frames / self.plans[0].fps
        done = min(self.done + seen, self.total or np.inf)
        self.progress(Progress(done, self.total, n_frames, seen))
        return int(kind == "done")

    def _check_alive(self, workers: list[Any]) -> None:
        if self.beat.value != self._last_beat:
            self._last_beat, self._heard = self.beat.value, time.monotonic()
        elif not any(worker.is_alive() for worker in workers) and self.results.empty():
            raise VideoError("the decoder crashed: the video is damaged beyond repair")
        elif time.monotonic() - self._heard > PATIENCE:
            raise VideoError(f"the decoder gave no frame for {PATIENCE:g} s and was ended")


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
    while (task := waiting.get()) is not None:
        try:
            results.put((task.number, "done", 0, _do(task, results, beat, stop)))
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
            if part and document.number // PART != part[0].number // PART:
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
