"""Events on disk: their pictures, their files in the journal, their clips.

All of it is done by threads, so that watching never waits for a disk. What cannot be written waits
in memory. Events whose clips are to be cut stand in the folder `clips`, as in a journal, so that
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
from habitus.scene.habit_model import HabitModel
from habitus.site.journal import SiteEvent, file_event, filed_events
from habitus.site.live_picture import jpeg
from habitus.site.packet_ring import Clip, clip_due, cut_clip, cut_clip_of_file
from habitus.site.pipe_messages import NewEntry, Remark, Report

# Entries that may wait with their pictures; further ones wait without.
PICTURES_WAITING = 50
# Seconds that a clip may take: beyond, there is none.
CUTTING = 120.0
# Niceness of the process that cuts a clip.
NICE = 10
# How the names of pictures end.
SUFFIXES = {"thumbnail": "jpg", "heat": "heat.jpg"}


class PicturedEvent(NamedTuple):
    """An event to file, and what its pictures are drawn from."""

    site_event: SiteEvent
    """Without files."""
    vocabulary: Vocabulary
    habits: HabitModel | None
    still: Image | None
    """The scene at its strongest moment."""


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
        self._due = [(0.0, event) for event in self._left_over()]
        """Events whose clips are to be cut, and when, by the monotonic clock."""

    def add(self, pictured: PicturedEvent) -> None:
        """File an event as it is now; once an alarm is over, its clip follows."""
        event = pictured.site_event
        if event.kind == "ended" and event.alarm:
            clip = replace(event, details=None)
            wait = 0.0 if self.recording else clip_due(event.start, event.end) - time.time()
            if self.recording is None:  # which would be judged again, with the same events
                self._entries.add(lambda: file_event(self.folder / "clips", clip))
            self._due.append((time.monotonic() + wait, clip))
        if len(self._entries) >= PICTURES_WAITING:
            pictured = pictured._replace(still=None)
        self._entries.add(lambda: self._file(pictured))

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

    def _file(self, pictured: PicturedEvent) -> None:
        """Write the pictures of an event, then what is known of it."""
        event = pictured.site_event
        for name, picture in _pictures(pictured).items():
            path = self.folder / "events" / f"{event.id}.{SUFFIXES[name]}"
            write_file(path, picture)
            event = replace(event, **{name: path.name}, n_bytes=event.n_bytes + len(picture))  # type: ignore[arg-type]
        self._enter(event)

    def _left_over(self) -> Iterator[SiteEvent]:
        """Yield the events whose clips a process before this one did not cut."""
        for path, event in filed_events(self.folder / "clips"):
            if isinstance(event, SiteEvent):
                yield event
            else:
                path.unlink(missing_ok=True)

    def _cut(self, event: SiteEvent) -> None:
        """Cut the clip of an event, then write that it is there."""
        clip = self._clip(event)
        if clip is not None:
            at = clip.start + (self.recording[1] if self.recording else 0.0)
            name, n_bytes = clip.path.name, clip.n_bytes
            clipped = replace(event, details=None, clip=name, clip_start=at, n_bytes=n_bytes)
            self._enter(clipped)
        for path in Path(self.folder, "clips").glob(f"*-{event.id}-*"):
            path.unlink(missing_ok=True)

    def _clip(self, event: SiteEvent) -> Clip | None:
        """Return the clip of an event, cut by a process of its own: FFmpeg may hang or crash."""
        source, starts = self.recording or (self.folder / "recent", 0.0)
        output = self.folder / "events" / f"{event.id}.mp4"
        output.parent.mkdir(parents=True, exist_ok=True)
        end = event.start if event.end is None else event.end
        job = source, event.start - starts, end - starts, output
        try:
            clip: Clip | None = self.fork_server.ask(f"{__name__}:cut", *job, within=CUTTING)
        except HabitusError as error:
            self.send(Remark(f"no clip of an event: {error}", time.time()))
            return None
        return clip

    def _enter(self, event: SiteEvent) -> None:
        self.send(NewEntry(file_event(self.folder / "journal", event)))


def cut(source: Path, start: float, end: float, output: Path) -> Clip | None:
    """Cut a clip from the ring of a camera, a folder, or from a recording; in a process of its own.

    Times are seconds since the epoch, or of the recording.
    """
    os.nice(NICE)
    return (cut_clip_of_file if source.is_file() else cut_clip)(source, start, end, output)


def _pictures(pictured: PicturedEvent) -> dict[str, bytes]:
    """Return the pictures of an event: plain with its boxes, and with all marks."""
    event, still, v = pictured.site_event.details, pictured.still, pictured.vocabulary
    if event is None or still is None:
        return {}
    size = (WIDTH, max(1, round(WIDTH * v.height / v.width)))
    plain = np.asarray(cv2.resize(still, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    draw_boxes(plain, event.boxes, v, EVENT)
    marked = still_thumbnail(event, still, v, pictured.habits)
    return {"thumbnail": jpeg(plain, widest=WIDTH), "heat": marked}
