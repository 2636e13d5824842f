"""Recordings to shards: what is new is read, by workers, where it lies.

A worker opens a recording in its place (one that is elsewhere is copied to a temporary file) and
returns the bytes of its shard. Whoever called the workers writes them.
"""

import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from habitus.corpus.clocks import clocks_since
from habitus.corpus.documents import Condition, shard_bytes
from habitus.errors import InvalidInputError, TaskError, VideoError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_file
from habitus.jobs.workers import Workers
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.rarity import HOUR, counted
from habitus.scene.events import clock
from habitus.schema import shortened
from habitus.site.pattern import CLOCK, Recording
from habitus.site.places import FoundFile, at_hand, look_at
from habitus.site.shard_store import (
    ArchiveFolder,
    ArchiveSettings,
    CameraFolder,
    Origin,
    RecordedShard,
    RecordingFile,
    UnreadRecording,
    is_of,
)
from habitus.video import Source
from habitus.video.mask import is_file
from habitus.video.source import redacted_text

SETTLED = 30.0
"""Seconds for which a recording must not have changed before it is read."""
UNFINISHED = 86_400.0
"""Seconds for which a recording without an index may be one that is still being written."""
TRY_AGAIN = 72_000.0
"""Seconds, less than a day, after which a recording that could not be read is tried again: it may
have been the machine's fault."""
OVERLAP = 60.0
"""Seconds by which a recording may last into the next one: some recorders let them overlap."""
# Containers whose index is written last, and the name that it has.
CAMERA = "{camera}"


class ReadingTask(NamedTuple):
    """A recording to read."""

    recording: Recording
    settings: DocumentSettings
    fast: bool
    made: str

    @property
    def name(self) -> str:
        """Address of the recording, as it may be shown."""
        return self.recording.name


class ReadRecording(NamedTuple):
    """A recording that was read, or why not."""

    contents: bytes = b""
    """What the file of its shard holds; empty where it was not read."""
    seconds: float = 0.0
    reason: str = ""
    later: bool = False
    """Whether the reason may be gone by the next run."""


@dataclass
class Reading:
    """What reading came to."""

    n_read: int = 0
    n_known: int = 0
    """Recordings that had been read before."""
    seconds: float = 0.0
    """Length of what was read."""
    n_bytes: int = 0
    """Bytes of shards that workers sent."""
    waiting: list[str] = field(default_factory=list)
    """Recordings that are left for the next run, and why: a line each, after the camera's name."""

    def summary(self) -> str:
        """Return what was read, in one line."""
        text = f"read {counted(self.n_read, 'recording')}, {self.seconds / HOUR:.1f} hours"
        if self.n_read:
            text += f", into {self.n_bytes / 1e6:.1f} MB of documents"
        return f"{text}; {self.n_known} known before"


def camera_settings(settings: DocumentSettings, camera: str) -> DocumentSettings:
    """Return the settings of one camera: {camera} in the name of a mask stands for its name.

    A camera without such a file has no mask.
    """

    def of_camera(mask: str | None) -> str | None:
        if mask is None or CAMERA not in mask:
            return mask
        file = mask.replace(CAMERA, camera)
        return file if Path(file).is_file() else None

    return replace(settings, mask=of_camera(settings.mask), region=of_camera(settings.region))


def digest_of(settings: DocumentSettings, fast: bool) -> str:
    """Return a digest of how documents are made: shards of another one are made anew."""
    values = asdict(settings) | {"still_every": None, "fast": fast}
    for name in ("mask", "region"):
        if values[name] and is_file(values[name]):
            values[name] = hashlib.blake2b(Path(values[name]).read_bytes()).hexdigest()
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def read_new(
    folder: ArchiveFolder,
    recordings: Sequence[Recording],
    settings: ArchiveSettings | None,
    workers: Workers,
    *,
    settled: float = SETTLED,
    before: Reading | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Reading:
    """Read the recordings that have no shard, or another one than they had, and write each shard.

    `recordings` are all of the cameras that are wanted; where an archive does not know how they are
    read, none is. Those that have changed within `settled` seconds are left for later. What this
    run has read `before` is added to.
    """
    if settings is None:
        return Reading()
    reading = before or Reading()
    reading.n_known, reading.waiting = -reading.n_read, []
    tasks = list(_new(folder, recordings, settings, settled, reading))
    progress(Progress("reading", 0, len(tasks)))
    started = time.monotonic()
    for n, (number, read) in enumerate(_each_read(workers, tasks), start=1):
        _keep(folder, tasks[number], read, reading)
        speed = reading.seconds / max(time.monotonic() - started, 1e-3)
        note = f"{reading.seconds / HOUR:.1f} hours of video, {speed:.0f} x real time"
        progress(Progress("reading", n, len(tasks), note))
    return reading


def _new(
    folder: ArchiveFolder,
    recordings: Sequence[Recording],
    settings: ArchiveSettings,
    settled: float,
    reading: Reading,
) -> Iterator[ReadingTask]:
    """Yield what is to be read, and note what is known and what may be read later."""
    now, fast = time.time(), settings["fast"]
    of_archive = DocumentSettings(**settings["documents"])
    for camera, group in groupby(recordings, key=lambda recording: recording.camera):
        documents = camera_settings(of_archive, camera)
        made, stored = digest_of(documents, fast), folder.camera(camera)
        shards = {shard.clock: shard for shard in stored.shards()}
        of_camera = list(group)
        _forget_renamed(stored, shards, of_camera)
        unread = _still_there(stored, of_camera)
        for recording in of_camera:
            shard, failed = shards.get(recording.clock), unread.get(recording.clock)
            before: list[RecordingFile] = [shard.origin] if shard else []
            if failed is not None and abs(now - failed["tried"]) < TRY_AGAIN:
                before.append(failed)
            if any(is_of(file, recording, made) for file in before):
                reading.n_known += 1
            elif _ago(recording.file, now) < settled:
                reading.waiting.append(_later(recording, f"changed less than {settled:g} s ago"))
            else:
                yield ReadingTask(recording, documents, fast, made)


def _ago(file: FoundFile, now: float) -> float:
    """Return the seconds since a file was changed, or until then; a recorder's clock may be wrong.

    Infinite where the place does not say.
    """
    return math.inf if file.changed is None else abs(now - file.changed)


def _forget_renamed(
    camera: CameraFolder, shards: dict[str, RecordedShard], recordings: Sequence[Recording]
) -> None:
    """Delete the shards of recordings that have another time now: they are read there."""
    clocks = {recording.clock for recording in recordings}
    elsewhere = {
        recording.file.identity for recording in recordings if recording.clock not in shards
    }
    for shard in list(shards.values()):
        identity = shard.origin["size"], shard.origin["version"]
        if shard.clock not in clocks and identity in elsewhere and identity[1]:
            camera.delete_shard(shard.clock)
            del shards[shard.clock]


def _still_there(
    camera: CameraFolder, recordings: Sequence[Recording]
) -> dict[str, UnreadRecording]:
    """Return the recordings that cannot be read; those that were deleted are forgotten."""
    unread, clocks = camera.unread(), {recording.clock for recording in recordings}
    there = {clock: recording for clock, recording in unread.items() if clock in clocks}
    if there != unread:
        camera.put_unread(there)
    return there


def _later(recording: Recording, reason: str) -> str:
    return f"{recording.camera}: {recording.name}: {reason}; left for the next run"


def _each_read(
    workers: Workers, tasks: Sequence[ReadingTask]
) -> Iterator[tuple[int, ReadRecording]]:
    """Yield what workers read; a recording whose worker dies each time is not read."""
    left = dict(enumerate(tasks))
    while left:
        numbers = list(left)
        try:
            for i, read in workers.as_completed(read_recording, [left[n] for n in numbers]):
                del left[numbers[i]]
                yield numbers[i], read
        except TaskError as error:
            fatal = numbers[error.task]
            reason = str(error).removeprefix(f"{left.pop(fatal).name}: ")
            yield fatal, ReadRecording(reason=reason)


def _keep(folder: ArchiveFolder, task: ReadingTask, read: ReadRecording, reading: Reading) -> None:
    """Write the shard of a recording, or why there is none."""
    recording, camera = task.recording, folder.camera(task.recording.camera)
    if read.later:
        reading.waiting.append(_later(recording, read.reason))
        return
    unread = camera.unread()
    if read.contents:
        camera.put_shard(recording.clock, read.contents)
        reading.n_read, reading.seconds = reading.n_read + 1, reading.seconds + read.seconds
        reading.n_bytes += len(read.contents)
        if unread.pop(recording.clock, None) is not None:
            camera.put_unread(unread)
        return
    reason = shortened(read.reason, 500)
    unread[recording.clock] = {**_file(task), "tried": time.time(), "reason": reason}
    camera.put_unread(unread)


def read_recording(task: ReadingTask) -> ReadRecording:
    """Return the shard of a recording; run by a worker."""
    recording = task.recording
    try:
        with at_hand(recording.file.address) as path:
            try:
                corpus, notes = extract_file(Source(str(path), fast=task.fast), task.settings)
            except (VideoError, InvalidInputError) as error:
                return _failed(recording, path, error)
        now = look_at(recording.file.address)
    except (OSError, InvalidInputError) as error:  # no room for a copy, or nobody answers
        reason = getattr(error, "strerror", None) or str(error)
        return ReadRecording(reason=f"cannot be read here: {reason}", later=True)
    if now is None or now.identity != recording.file.identity:
        return ReadRecording(reason="it changed while it was read", later=True)
    remarks = [note.removeprefix(f"{path}: ") for note in notes]
    clocks = clocks_since(datetime.strptime(recording.clock, CLOCK), corpus.times)
    corpus = replace(corpus, times=corpus.times + recording.start, clocks=clocks)
    origin: Origin = {
        **_file(task),
        "usable": int((corpus.conditions == Condition.USABLE).sum()),
        "notes": [shortened(remark, 500) for remark in remarks],
    }
    return ReadRecording(shard_bytes(corpus, {"recording": origin}), len(corpus) * corpus.clip)


def _file(task: ReadingTask) -> RecordingFile:
    file = task.recording.file
    return {
        "address": file.address,
        "size": file.size,
        "version": file.version,
        "start": task.recording.start,
        "made": task.made,
    }


def _failed(recording: Recording, path: Path, error: Exception) -> ReadRecording:
    """Return why a recording has no shard: it is being written, or damaged."""
    from habitus.video.opening import lacks_index

    try:
        with path.open("rb") as file:
            file.read(1)
    except FileNotFoundError:
        return ReadRecording(reason="it is gone", later=True)
    except OSError as fault:
        return ReadRecording(reason=f"cannot be read here: {fault.strerror}", later=True)
    if lacks_index(path):
        young = _ago(recording.file, time.time()) < UNFINISHED
        reason = "it has no index: " + ("still being written" if young else "it was cut short")
        return ReadRecording(reason=reason, later=young)
    reason = str(error).replace(f"{path}: ", "").replace(str(path), recording.name)
    return ReadRecording(reason=redacted_text(reason))


def overlaps(shards: Sequence[RecordedShard]) -> Iterator[str]:
    """Say which times of a camera two recordings are of; shards are in order of time."""
    for one, other in pairwise(shards):
        if one.end - other.start > OVERLAP:
            yield (
                f"times overlap: {one.name} lasts {clock(one.seconds)}, but {other.name} begins "
                f"{clock(other.start - one.start)} after it: name the start of recordings in the "
                "pattern, or remove a copy; where clocks were put back, let recordings keep their "
                "time of change"
            )
