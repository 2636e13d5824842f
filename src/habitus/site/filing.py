"""Events on disk: their pictures, their entries in the journal, their clips.

All of it is done by threads, so that watching never waits for a disk. What cannot be written waits
in memory. Clips that are to be cut stand in the folder `clips`, as entries of a journal, so that
the next process cuts them if this one is killed before.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from habitus.arrays import Image
from habitus.backlog import Backlog
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError
from habitus.files import written_whole
from habitus.jobs.fork_server import ForkServer
from habitus.reporting.figures.drawing import EVENT, draw_boxes
from habitus.reporting.figures.moments import WIDTH, still_thumbnail
from habitus.scene.events import Event
from habitus.scene.habit_model import HabitModel
from habitus.site.journal import JournalEntry, JournalFiles, file_entry, filed_entries
from habitus.site.packet_ring import Clip, clip_due, cut_clip, cut_clip_of_file
from habitus.site.pipe_messages import Filed, Remark, Report
from habitus.site.sight import jpeg

# Entries that may wait with their pictures; further ones wait without.
PICTURES_WAITING = 50
# Seconds that a clip may take: beyond, there is none.
CUTTING = 120.0
# Niceness of the process that cuts a clip.
NICE = 10


@dataclass(frozen=True)
class SeenEvent:
    """An event, as it is filed."""

    id: str
    event: Event
    """With `alarm` and `threshold` by the budget."""
    start: float
    """In seconds since the epoch, as are `end` and `peak`."""
    end: float
    peak: float
    thresholds: tuple[float, ...]
    """At half the budget, the budget, and twice the budget."""
    vocabulary: Vocabulary
    habits: HabitModel | None
    still: Image | None
    """The scene at its strongest moment."""

    def entry(self, *, over: bool, files: JournalFiles, n_bytes: int) -> JournalEntry:
        """Return what is known of it now."""
        return JournalEntry(
            self.id,
            "ended" if over else "started",
            self.start,
            self.end if over else None,
            self.peak,
            self.event.alarm,
            self.event.to_json(),
            files,
            n_bytes,
            self.thresholds,
        )


class ClipJob(NamedTuple):
    """A clip that is to be cut."""

    source: Path
    """The camera's ring of segments, or a recording."""
    start: float
    """Of the event in seconds since the epoch, or of the recording."""
    end: float
    output: Path


class Filing:
    """Writes what is known of a camera's events, and tells which files are in the journal.

    Parameters
    ----------
    folder
        Of the camera.
    tell
        Takes reports.
    fork_server
        Forks the processes that cut clips.
    recording
        The file that is judged, of which clips are cut, and when it starts; None for a camera.
    """

    def __init__(
        self,
        folder: Path,
        tell: Callable[[Report], None],
        fork_server: ForkServer,
        recording: tuple[Path, float] | None = None,
    ) -> None:
        self.folder, self.tell, self.fork_server, self.recording = (
            folder,
            tell,
            fork_server,
            recording,
        )
        self._entries = Backlog(self._written)
        self._clips = Backlog(self._written)
        self._due = [(0.0, entry) for entry in self._left_over()]
        """Clips that are to be cut, as entries without a file, and when, by the monotonic clock."""
        self._trouble = ""

    def started(self, seen: SeenEvent) -> None:
        """File an event that goes on; again, if it became an alarm."""
        self._add(seen, over=False)

    def ended(self, seen: SeenEvent) -> None:
        """File an event that is over; its clip follows if it is an alarm."""
        if seen.event.alarm:
            clip = replace(seen.entry(over=True, files={}, n_bytes=0), kind="clip", event={})
            wait = 0.0 if self.recording else clip_due(seen.start, seen.end) - time.time()
            if self.recording is None:  # which would be judged again, with the same events
                self._entries.add(lambda: self._file_due(clip))
            self._due.append((time.monotonic() + wait, clip))
        self._add(seen, over=True)

    def tick(self, *, at_once: bool = False) -> None:
        """Have clips cut that are due; or all, as they are."""
        now = time.monotonic()
        due = [clip for at, clip in self._due if at_once or at <= now]
        self._due = [(at, clip) for at, clip in self._due if not (at_once or at <= now)]
        for clip in due:
            self._clips.add(lambda clip=clip: self._cut(clip))  # type: ignore[misc]

    @property
    def is_busy(self) -> bool:
        """Whether something is to be written yet, or a clip to be cut."""
        return bool(self._due) or len(self._entries) > 0 or len(self._clips) > 0

    def close(self, *, within: float) -> None:
        """Write what waits, clips too, in some seconds."""
        until = time.monotonic() + within
        self.tick(at_once=True)
        for backlog in (self._entries, self._clips):
            backlog.close(within=max(0.0, until - time.monotonic()))

    def _add(self, seen: SeenEvent, *, over: bool) -> None:
        if len(self._entries) >= PICTURES_WAITING:
            seen = replace(seen, still=None, habits=None)
        self._entries.add(lambda: self._file(seen, over=over))

    def _written(self, task: Callable[[], None]) -> None:
        """Do a task; say once that it cannot be done for now."""
        try:
            task()
        except (OSError, InvalidInputError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            if reason != self._trouble:
                text = f"events cannot be written, and wait in memory: {reason}"
                self.tell(Remark(text, time.time()))
            self._trouble = reason
            raise OSError(reason) from error
        if self._trouble:
            self._trouble = ""
            self.tell(Remark("events are written again", time.time()))

    def _file(self, seen: SeenEvent, *, over: bool) -> None:
        """Write the pictures of an event, then its entry."""
        pictures = _pictures(seen) if seen.still is not None else {}
        files, n_bytes = JournalFiles(), 0
        (self.folder / "events").mkdir(parents=True, exist_ok=True)
        for kind, (name, data) in pictures.items():
            with written_whole(self.folder / "events" / name) as temporary:
                temporary.write_bytes(data)
            files[kind] = name  # type: ignore[literal-required]
            n_bytes += len(data)
        self._enter(seen.entry(over=over, files=files, n_bytes=n_bytes))

    def _left_over(self) -> Iterator[JournalEntry]:
        """Yield the clips that a process before this one did not cut."""
        for path, entry in filed_entries(self.folder / "clips"):
            if isinstance(entry, JournalEntry):
                yield entry
            else:
                path.unlink(missing_ok=True)

    def _file_due(self, clip: JournalEntry) -> None:
        file_entry(self.folder / "clips", clip)

    def _cut(self, entry: JournalEntry) -> None:
        """Cut the clip of an event, then write its entry."""
        clip = self._clip(entry)
        if clip is not None:
            files = JournalFiles(clip=clip.path.name)
            self._enter(replace(entry, files=files, n_bytes=clip.n_bytes))
        Path(self.folder, "clips", entry.file_name).unlink(missing_ok=True)

    def _clip(self, entry: JournalEntry) -> Clip | None:
        """Return the clip of an event, cut by a process of its own: FFmpeg may hang or crash."""
        source, starts = self.recording or (self.folder / "recent", 0.0)
        output = self.folder / "events" / f"{entry.id}.mp4"
        end = entry.start if entry.end is None else entry.end
        job = ClipJob(source, entry.start - starts, end - starts, output)
        target = "cut_from_file" if self.recording else "cut_from_ring"
        try:
            child = self.fork_server.start_process(f"habitus.site.filing:{target}", job)
        except HabitusError as error:
            self.tell(Remark(f"no clip of an event: {error}", time.time()))
            return None
        found: Clip | str | None = f"it was not cut within {CUTTING:g} s"
        try:
            if child.connection.poll(CUTTING):
                found = child.connection.recv()
        except (EOFError, OSError):
            found = "its process ended"
        child.kill()
        if isinstance(found, str):
            self.tell(Remark(f"no clip of an event: {found}", time.time()))
        return found if isinstance(found, Clip) else None

    def _enter(self, entry: JournalEntry) -> None:
        self.tell(Filed(file_entry(self.folder / "journal", entry)))


def cut_from_ring(job: ClipJob, connection: Connection) -> None:
    """Cut a clip from the ring of a camera, in a process of its own; send it, or why not."""
    _cut_and_send(cut_clip, job, connection)


def cut_from_file(job: ClipJob, connection: Connection) -> None:
    """Cut a clip from a recording, in a process of its own; send it, or why not."""
    _cut_and_send(cut_clip_of_file, job, connection)


def _cut_and_send(
    cut: Callable[[Path, float, float, Path], Clip | None], job: ClipJob, connection: Connection
) -> None:
    os.nice(NICE)
    try:
        connection.send(cut(*job))
    except (HabitusError, OSError) as error:
        connection.send(str(error))


def _pictures(seen: SeenEvent) -> dict[str, tuple[str, bytes]]:
    """Return the pictures of an event: plain with its boxes, and with all marks."""
    still, v = seen.still, seen.vocabulary
    if still is None:
        return {}
    size = (WIDTH, max(1, round(WIDTH * v.height / v.width)))
    plain = np.asarray(cv2.resize(still, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    draw_boxes(plain, seen.event.boxes, v, EVENT)
    marked = still_thumbnail(seen.event, still, v, seen.habits)
    return {
        "thumbnail": (f"{seen.id}.jpg", jpeg(plain, widest=WIDTH)),
        "heat": (f"{seen.id}.heat.jpg", marked),
    }
