"""Events on disk: their pictures, their entries in the journal, their clips.

All of it is done by threads, so that watching never waits for a disk. What cannot be written waits
in memory. Clips that are to be cut stand in the folder `clips`, as entries of a journal, so that
the next process cuts them if this one is killed before.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from habitus.arrays import Image
from habitus.backlog import Backlog
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError
from habitus.files import write_file
from habitus.jobs.fork_server import ForkServer
from habitus.reporting.figures.drawing import EVENT, draw_boxes
from habitus.reporting.figures.moments import WIDTH, still_thumbnail
from habitus.scene.events import Event
from habitus.scene.habit_model import HabitModel
from habitus.site.journal import JournalEntry, JournalFiles, file_entry, filed_entries
from habitus.site.live_picture import jpeg
from habitus.site.packet_ring import Clip, clip_due, cut_clip, cut_clip_of_file
from habitus.site.pipe_messages import Filed, Remark, Report

# Entries that may wait with their pictures; further ones wait without.
PICTURES_WAITING = 50
# Seconds that a clip may take: beyond, there is none.
CUTTING = 120.0
# Niceness of the process that cuts a clip.
NICE = 10


class SeenEvent(NamedTuple):
    """An event to file, and what its pictures are drawn from."""

    entry: JournalEntry
    """Without files."""
    event: Event
    vocabulary: Vocabulary
    habits: HabitModel | None
    still: Image | None
    """The scene at its strongest moment."""


class ClipJob(NamedTuple):
    """A clip that is to be cut."""

    cut: Callable[[Path, float, float, Path], Clip | None]
    source: Path
    """The camera's ring of segments, or a recording."""
    start: float
    """Of the event in seconds since the epoch, or of the recording."""
    end: float
    output: Path


class Filing:
    """Writes what is known of the events of a camera's folder, and reports what is in the journal.

    Clips are cut from the ring of the camera; of a `recording`, from that file, which starts at the
    time beside it.
    """

    def __init__(
        self,
        folder: Path,
        send: Callable[[Report], None],
        fork_server: ForkServer,
        recording: tuple[Path, float] | None = None,
    ) -> None:
        self.folder, self.send, self.fork_server = folder, send, fork_server
        self.recording, self._trouble = recording, ""
        self._entries, self._clips = (
            Backlog[Callable[[], object]](lambda task: task(), note=self._say) for _ in range(2)
        )
        self._due = [(0.0, entry) for entry in self._left_over()]
        """Clips that are to be cut, as entries without a file, and when, by the monotonic clock."""

    def add(self, seen: SeenEvent) -> None:
        """File an event as it is now; once an alarm is over, its clip follows."""
        entry = seen.entry
        if entry.kind == "ended" and entry.alarm:
            clip = replace(entry, kind="clip", event={})
            wait = 0.0 if self.recording else clip_due(entry.start, entry.end) - time.time()
            if self.recording is None:  # which would be judged again, with the same events
                self._entries.add(lambda: file_entry(self.folder / "clips", clip))
            self._due.append((time.monotonic() + wait, clip))
        if len(self._entries) >= PICTURES_WAITING:
            seen = seen._replace(still=None)
        self._entries.add(lambda: self._file(seen))

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

    def _say(self, trouble: str) -> None:
        """Send a remark, once for entries and clips."""
        text = f"events cannot be written, and wait in memory: {trouble}"
        if trouble != self._trouble:
            self._trouble = trouble
            self.send(Remark(text if trouble else "events are written again", time.time()))

    def _file(self, seen: SeenEvent) -> None:
        """Write the pictures of an event, then its entry."""
        files, n_bytes = JournalFiles(), 0
        for kind, (name, data) in _pictures(seen).items():
            write_file(self.folder / "events" / name, data)
            files[kind] = name  # type: ignore[literal-required]
            n_bytes += len(data)
        self._enter(replace(seen.entry, files=files, n_bytes=n_bytes))

    def _left_over(self) -> Iterator[JournalEntry]:
        """Yield the clips that a process before this one did not cut."""
        for path, entry in filed_entries(self.folder / "clips"):
            if isinstance(entry, JournalEntry):
                yield entry
            else:
                path.unlink(missing_ok=True)

    def _cut(self, entry: JournalEntry) -> None:
        """Cut the clip of an event, then write its entry."""
        clip = self._clip(entry)
        if clip is not None:
            files = JournalFiles(clip=clip.path.name)
            at = clip.start + (self.recording[1] if self.recording else 0.0)
            self._enter(replace(entry, files=files, n_bytes=clip.n_bytes, clip_start=at))
        Path(self.folder, "clips", entry.file_name).unlink(missing_ok=True)

    def _clip(self, entry: JournalEntry) -> Clip | None:
        """Return the clip of an event, cut by a process of its own: FFmpeg may hang or crash."""
        source, starts = self.recording or (self.folder / "recent", 0.0)
        cut = cut_clip_of_file if self.recording else cut_clip
        output = self.folder / "events" / f"{entry.id}.mp4"
        output.parent.mkdir(parents=True, exist_ok=True)
        end = entry.start if entry.end is None else entry.end
        job = ClipJob(cut, source, entry.start - starts, end - starts, output)
        try:
            clip: Clip | None = self.fork_server.ask("habitus.site.filing:cut", job, within=CUTTING)
        except HabitusError as error:
            self.send(Remark(f"no clip of an event: {error}", time.time()))
            return None
        return clip

    def _enter(self, entry: JournalEntry) -> None:
        self.send(Filed(file_entry(self.folder / "journal", entry)))


def cut(job: ClipJob) -> Clip | None:
    """Cut a clip, in a process of its own."""
    os.nice(NICE)
    return job.cut(*job[1:])


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
        "thumbnail": (f"{seen.entry.id}.jpg", jpeg(plain, widest=WIDTH)),
        "heat": (f"{seen.entry.id}.heat.jpg", marked),
    }
