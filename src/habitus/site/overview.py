"""An archive at a glance: hours read, gaps, troubles, models and alarms of every camera."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any

from habitus.rarity import DAY, HOUR, counted, duration_in_words
from habitus.scene.events import Event
from habitus.site.camera_models import Era, ModelRecord, eras_of, learnt_of
from habitus.site.pattern import CLOCK, zone_of
from habitus.site.shard_judging import judged_header, read_archive_events
from habitus.site.shard_reading import overlaps
from habitus.site.shard_store import ArchiveFolder, CameraFolder, RecordedShard
from habitus.video.source import redacted

GAP = 60.0
"""Seconds without a recording from which on they are a gap."""
LEAST_UNUSABLE = 60.0
"""Seconds of a camera that was moved, covered or frozen that are worth a line."""


def clock_in_words(clock: str) -> str:
    """Return the clock of a recording as a person writes it.

    >>> clock_in_words("2026-11-16T13-00-00")
    '2026-11-16 13:00'
    """
    day, _, time = clock.partition("T")
    return f"{day} {time[:5].replace('-', ':')}"


@dataclass(frozen=True)
class CameraOverview:
    """What an archive holds of one camera."""

    camera: str
    hours: float
    """Length of all recordings that were read."""
    recordings: int
    unread: int
    """Recordings that cannot be read."""
    first: str | None
    """Clock of the first recording; None where there is none."""
    last: str | None
    """Clock of the last one."""
    until: str | None
    """Clock at which the last one ends."""
    gaps: int
    """Times without a recording between the first and the last."""
    gap_hours: float
    n_bytes: int
    """Bytes of all shards."""
    eras: tuple[Era, ...]
    """More than one, where frame size or settings have changed."""
    learnt: ModelRecord | None
    """What the model was learnt from; None where there is no model."""
    judged_hours: float
    alarms: int
    troubles: tuple[str, ...]
    covered: dict[str, float]
    """Share of each hour that was read, by the hour: "2026-11-16T13"."""
    unread_hours: tuple[str, ...]
    """Hours of recordings that cannot be read."""

    @property
    def ends(self) -> str:
        """When the last recording ends, as a person writes it; - where there is none."""
        return clock_in_words(self.until) if self.until else "-"

    def to_json(self) -> dict[str, Any]:
        """Return the overview as plain values."""
        values = dict(vars(self))
        values["covered"] = {hour: round(share, 3) for hour, share in self.covered.items()}
        return values


@dataclass(frozen=True)
class ArchiveOverview:
    """What an archive holds."""

    folder: str
    cameras: tuple[CameraOverview, ...]
    moments: tuple[Event, ...]
    """The most unusual moments of all, the most unusual first."""

    @property
    def hours(self) -> float:
        """Length of all recordings of all cameras."""
        return sum(camera.hours for camera in self.cameras)

    @property
    def alarms(self) -> int:
        """Number of alarms."""
        return sum(moment.alarm for moment in self.moments)

    @property
    def in_trouble(self) -> list[CameraOverview]:
        """Cameras with at least one trouble."""
        return [camera for camera in self.cameras if camera.troubles]

    def summary(self) -> str:
        """Return the archive in one line."""
        cameras = counted(len(self.cameras), "camera")
        alarms = counted(self.alarms, "alarm") if self.alarms else "no alarms"
        size = sum(camera.n_bytes for camera in self.cameras)
        return (
            f"{cameras}, {self.hours:.1f} hours read ({size / 1e6:.1f} MB "
            f"of documents); {len(self.in_trouble) or 'none'} in trouble; {alarms}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the overview as plain values."""
        return {
            "habitus": "archive",
            "version": 1,
            "folder": self.folder,
            "hours": self.hours,
            "alarms": self.alarms,
            "cameras": [camera.to_json() for camera in self.cameras],
            "moments": [moment.to_json() for moment in self.moments],
        }


def overview_of(folder: ArchiveFolder, cameras: Sequence[str] = ()) -> ArchiveOverview:
    """Return what an archive holds; of all cameras if none is named."""
    wanted = folder.cameras(cameras)
    names = {camera.camera for camera in wanted}
    moments = [moment for moment in read_archive_events(folder.events) if moment.camera in names]
    shards = {camera.camera: camera.shards() for camera in wanted}
    latest = max((of_camera[-1].start for of_camera in shards.values() if of_camera), default=0.0)
    settings = folder.settings()
    zone = zone_of(settings["timezone"] if settings else None)
    overviews = [
        _camera_overview(camera, shards[camera.camera], moments, latest, zone) for camera in wanted
    ]
    return ArchiveOverview(str(folder.path), tuple(overviews), tuple(moments))


def _camera_overview(
    camera: CameraFolder,
    shards: Sequence[RecordedShard],
    moments: Sequence[Event],
    latest: float,
    zone: tzinfo | None,
) -> CameraOverview:
    between = (other.start - one.end for one, other in pairwise(shards))
    gaps = [seconds for seconds in between if seconds > GAP]
    unread, learnt, eras = camera.unread(), learnt_of(camera), tuple(eras_of(shards))
    headers = [judged_header(camera, shard.clock) for shard in shards]
    judged = sum(header["seconds"] for header in headers if header is not None)
    others = [
        f"{shard.clock}: {header['reason']}"
        for shard, header in zip(shards, headers, strict=True)
        if header is not None and header["reason"]
    ]
    return CameraOverview(
        camera=camera.camera,
        hours=sum(shard.seconds for shard in shards) / HOUR,
        recordings=len(shards),
        unread=len(unread),
        first=shards[0].clock if shards else None,
        last=shards[-1].clock if shards else None,
        until=f"{datetime.fromtimestamp(shards[-1].end, zone):{CLOCK}}" if shards else None,
        gaps=len(gaps),
        gap_hours=sum(gaps) / HOUR,
        n_bytes=sum(shard.n_bytes for shard in shards),
        eras=eras,
        learnt=learnt,
        judged_hours=judged / HOUR,
        alarms=sum(moment.alarm for moment in moments if moment.camera == camera.camera),
        troubles=(*_troubles(camera, shards, learnt, latest), *others),
        covered=covered_hours(shards, zone),
        unread_hours=tuple(sorted({clock[:13] for clock in unread})),
    )


def _troubles(
    camera: CameraFolder, shards: Sequence[RecordedShard], learnt: ModelRecord | None, latest: float
) -> Iterator[str]:
    for _, recording in sorted(camera.unread().items()):
        yield f"{redacted(recording['address'])}: {recording['reason']}"
    for clock in camera.lost(shards):
        yield f"{clock}: the documents are damaged; they are read again if the recording is there"
    yield from overlaps(shards)
    if not shards:
        return
    unusable = sum(s.clip * (s.n_documents - s.origin["usable"]) for s in shards)
    if unusable > LEAST_UNUSABLE:
        yield f"moved, covered or frozen for {duration_in_words(unusable)}"
    if latest - shards[-1].start > DAY:
        silent = duration_in_words(latest - shards[-1].start)
        yield f"silent for {silent}, since {shards[-1].clock}"
    if learnt is None:
        yield "no model yet"
    elif not learnt.get("calibrated", True):
        yield "the model is not calibrated: too little footage"


def covered_hours(shards: Sequence[RecordedShard], zone: tzinfo | None = None) -> dict[str, float]:
    """Return the share of each hour that was read, by the hour as clocks of a zone show it."""
    seconds: dict[str, float] = {}
    for shard in shards:
        start, end = shard.start, shard.end
        while start < end:
            local = datetime.fromtimestamp(start, zone)
            past = 60.0 * local.minute + local.second + 1e-6 * local.microsecond
            until = min(end, start + HOUR - past)
            key = local.strftime("%Y-%m-%dT%H")
            seconds[key] = seconds.get(key, 0.0) + until - start
            start = until
    return {hour: min(covered / HOUR, 1.0) for hour, covered in sorted(seconds.items())}
