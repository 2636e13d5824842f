"""What is unusual in an archive: each shard is judged once, and all cameras share one budget.

A camera's own calibration says how often its normal footage is as unusual as a moment: the expected
false alarms per day at a threshold of its normality. By that number moments of all cameras are
ranked, whatever each camera shows. It is an alarm if all cameras together, each with a threshold
there, are expected to raise no more false alarms than the budget.

What is kept of a shard are its unusual documents, each with that number, not yet joined to alarms:
these are joined when they are ranked, so that the alarms of a budget are the same whatever budgets
came before.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from typing_extensions import TypedDict

from habitus.corpus import Corpus
from habitus.errors import FileError, HabitusError, InvalidInputError
from habitus.files import write_file
from habitus.jobs.workers import Workers
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.rarity import DAY, HOUR, counted, duration_in_words
from habitus.scene import Detector, Event, SceneModel, events_by_line
from habitus.scene.camera_check import CameraCheck
from habitus.scene.detection import is_one_thing, most_unusual, unusual_documents
from habitus.scene.events import Joiner
from habitus.scene.thresholds import AlarmLimit
from habitus.schema import Count, Nats, NotNegative, Text, decoded
from habitus.settings import AlertSettings
from habitus.site.camera_models import learnt_of
from habitus.site.pattern import Recording
from habitus.site.places import at_hand
from habitus.site.shard_store import (
    ArchiveFolder,
    CameraFolder,
    like_latest,
    set_aside,
    unseen_by_worker,
)
from habitus.video import Source

CANDIDATES_PER_DAY = 24.0
"""Expected false alarms per day and camera among the documents that are kept of shards: the budget
can be raised up to this without judging anything again."""
LEAST_MOMENTS = 2
"""Documents that are kept of each shard, however usual."""
RAREST = -15
"""Thresholds are kept of budgets of 2 to this power, to the next and so on."""
MOST_MOMENTS = 30
"""Moments that are ranked, unless there are more alarms."""
MOST_PICTURES = 100
BATCH = 12
"""Shards of a camera that are judged in one task."""


class JudgedHeader(TypedDict):
    """First line about a shard that was judged."""

    habitus: Literal["judged"]
    model: Text
    """Fingerprint of the model that judged."""
    rate: NotNegative
    """Expected false alarms per day among the documents that were kept."""
    bars: list[tuple[NotNegative, Nats]]
    """Budgets that are powers of 2, ascending, and their thresholds."""
    join: Count
    """Usual documents that may lie within one event."""
    clip: NotNegative
    """Seconds of a document."""
    starts: list[Count]
    """Positions among the documents that were kept before which a sequence starts."""
    judged: Count
    """Documents that were judged."""
    seconds: NotNegative
    reason: Text
    """Why it was not judged; empty if it was."""


NOT_JUDGED: dict[str, Any] = {
    "bars": [],
    "join": 0,
    "clip": 0.0,
    "starts": [],
    "judged": 0,
    "seconds": 0.0,
    "reason": "",
}
"""What a `JudgedHeader` says of a shard that was not judged, but for the reason."""


def hours_in_words(hours: float) -> str:
    """Return the length of recordings of several cameras: days would be taken for those of a clock.

    Examples
    --------
    >>> hours_in_words(0.25), hours_in_words(4.2), hours_in_words(1920)
    ('15 minutes', '4.2 hours', '1,920 hours')
    """
    if hours < 1:
        return duration_in_words(HOUR * hours)
    return f"{hours:,.0f} hours" if hours >= 100 else f"{hours:.1f} hours"


@dataclass
class ArchiveDetection:
    """What is unusual in an archive."""

    moments: list[Event] = field(default_factory=list)
    """The most unusual moments of all, the most unusual first: all alarms, and others."""
    n_cameras: int = 0
    """Cameras that were judged."""
    n_sharing: int = 1
    """Cameras that share the budget: those that have a model, or had one."""
    seconds: float = 0.0
    """Length of what was judged, of all cameras together."""
    alerts_per_day: float = AlertSettings.BUDGET
    n_judged: int = 0
    """Shards that were judged now."""
    n_known: int = 0
    """Shards that had been judged before."""
    troubles: list[str] = field(default_factory=list)
    """What could not be judged, and why: a line each, after the camera's name."""
    notes: list[str] = field(default_factory=list)
    """What there is to say about thresholds and alarms: a line each, after the camera's name."""
    damaged: bool = False
    """Whether shards were damaged: they are set aside, and their recordings can be read again."""

    @property
    def share(self) -> float:
        """Alerts per day that each camera has of the budget."""
        return self.alerts_per_day / max(self.n_sharing, self.n_cameras, 1)

    @property
    def alarms(self) -> list[Event]:
        """The alarms, the most unusual first."""
        return [moment for moment in self.moments if moment.alarm]

    @property
    def expected_false_alarms(self) -> float:
        """Alarms that normal footage of this length raises, at most."""
        return self.share * self.seconds / DAY

    def summary(self) -> str:
        """Return how many alarms there were, beside how many normal footage brings."""
        n = len(self.alarms)
        if not self.n_cameras:
            return "no alarms: nothing could be judged"
        alarms = counted(n, "alarm") if n else "no alarms"
        return (
            f"{alarms} in {hours_in_words(self.seconds / HOUR)} of "
            f"{counted(self.n_cameras, 'camera')}; expected false alarms: "
            f"{self.expected_false_alarms:.2g} (budget {self.alerts_per_day:g} per day for all "
            "cameras)"
        )


class JudgingTask(NamedTuple):
    """Shards of a camera to judge."""

    name: str
    model: str
    """File of the model."""
    fingerprint: str
    shards: tuple[tuple[str, str, str], ...]
    """Clock, file, and name of the recording of each."""
    rate: float
    """Expected false alarms per day among the documents to keep."""


class JudgedShard(NamedTuple):
    """What is unusual in a shard, as lines of its file; or that it is damaged."""

    clock: str
    lines: str = ""
    damaged: str = ""
    """Path of its file, if that cannot be read."""
    trouble: str = ""
    """Why it was not judged, where that has nothing to do with it."""


def judge_archive(
    folder: ArchiveFolder,
    cameras: Sequence[CameraFolder],
    workers: Workers,
    *,
    alerts_per_day: float = AlertSettings.BUDGET,
    again: bool = False,
    n_before: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> ArchiveDetection:
    """Judge the shards that were not judged yet, each with the model that its camera has now.

    What is unusual in each shard is written at once; `rank_moments` then finds that of all. `again`
    judges what was judged before, too, but for `n_before` shards that this run has judged already.
    """
    n_learnt = sum(learnt_of(camera) is not None for camera in folder.cameras())
    detection = ArchiveDetection(alerts_per_day=alerts_per_day, n_sharing=n_learnt)
    detection.n_judged, detection.n_known = n_before, -n_before
    share = detection.share
    tasks = [
        task
        for camera in cameras
        for task in _unjudged(camera, share, again=again, detection=detection)
    ]
    total, done = sum(len(task.shards) for task in tasks), 0
    progress(Progress("judging", 0, total))
    for number, judged in workers.as_completed(judge_shards, tasks):
        camera = folder.camera(tasks[number].name)
        for text in dict.fromkeys(shard.trouble for shard in judged if shard.trouble):
            detection.troubles.append(f"{camera.camera}: {text}")
        for shard in judged:
            if shard.trouble:
                continue
            if shard.damaged:
                if set_aside(Path(shard.damaged)):
                    detection.damaged = True
                else:
                    text = unseen_by_worker(shard.damaged)
                    detection.troubles.append(f"{camera.camera}: {text}")
                continue
            write_file(camera.judged_path(shard.clock), shard.lines.encode())
            detection.n_judged += 1
        done += len(judged)
        progress(Progress("judging", done, total, camera.camera))
    return detection


def _unjudged(
    camera: CameraFolder, share: float, *, again: bool, detection: ArchiveDetection
) -> Iterator[JudgingTask]:
    """Yield what is to be judged of a camera."""
    learnt, shards = learnt_of(camera), camera.shards()
    if learnt is None:
        detection.troubles.append(f"{camera.camera}: no model yet: learn it first")
        return
    rate, wanted = max(CANDIDATES_PER_DAY, share), []
    for shard in like_latest(shards):
        header = judged_header(camera, shard.clock)
        is_judged = header is not None and not again and header["rate"] >= share
        if is_judged and header is not None and header["reason"]:
            is_judged = header["model"] == learnt["fingerprint"]
        if is_judged:
            detection.n_known += 1
        else:
            wanted.append((shard.clock, str(shard.path.absolute()), shard.name))
    for start in range(0, len(wanted), BATCH):
        batch = tuple(wanted[start : start + BATCH])
        yield JudgingTask(
            camera.camera, str(camera.model.absolute()), learnt["fingerprint"], batch, rate
        )


def judged_header(camera: CameraFolder, clock: str) -> JudgedHeader | None:
    """Return what is known of a shard that was judged; None if it was not."""
    try:
        with camera.judged_path(clock).open(encoding="utf-8") as file:
            return decoded(file.readline(), JudgedHeader)
    except (OSError, UnicodeDecodeError, FileError):
        return None


def judge_shards(task: JudgingTask) -> list[JudgedShard]:
    """Return what is unusual in shards; run by a worker."""
    try:
        scene = SceneModel.load(task.model)
    except FileError as error:
        return [JudgedShard(clock, trouble=str(error)) for clock, _, _ in task.shards]
    try:
        detector = scene.detector(alerts_per_day=task.rate)
    except HabitusError as error:
        return [_not_judged(task, clock, str(error)) for clock, _, _ in task.shards]
    bars, judged = _bars(detector, task.rate), []
    for clock, path, source in task.shards:
        try:
            corpus = Corpus.load(path)
        except FileError:
            judged.append(JudgedShard(clock, damaged=path))
            continue
        try:
            _check_like(scene, corpus)
            judged.append(_judged(task, clock, source, corpus, detector, bars))
        except HabitusError as error:
            judged.append(_not_judged(task, clock, str(error)))
    return judged


def _bars(detector: Detector, rate: float) -> list[tuple[float, float]]:
    """Return budgets, ascending, and their thresholds: powers of 2 that do not depend on any."""
    powers = range(RAREST, math.ceil(math.log2(rate)) + 1)
    return [(2.0**power, detector.bar(2.0**power).threshold) for power in powers]


def _check_like(scene: SceneModel, corpus: Corpus) -> None:
    """Raise if a recording does not show what the model of its camera was learnt from."""
    of_model, of_shard = (
        "unknown size" if v is None else f"{v.width}x{v.height}"
        for v in (scene.model.vocabulary_, corpus.vocabulary)
    )
    if of_model != of_shard:
        raise InvalidInputError(
            f"frames of {of_shard}, those of the model are of {of_model}: learn the camera again"
        )
    check = CameraCheck.of(scene.model, "the model")
    if check is not None and check.refuses(*corpus.looks):
        raise InvalidInputError(
            "the picture does not show the scene that the model was learnt from"
        )


def _judged(
    task: JudgingTask,
    clock: str,
    source: str,
    corpus: Corpus,
    detector: Detector,
    bars: list[tuple[float, float]],
) -> JudgedShard:
    """Judge a shard, and keep what is unusual in it."""
    detector.new_sequence()
    unusual = unusual_documents(detector, corpus, source=source, least=LEAST_MOMENTS)
    values = {
        "bars": bars,
        "join": detector.join,
        "clip": detector.model.clip_,
        "starts": list(unusual.starts),
        "judged": unusual.n_judged,
        "seconds": len(corpus) * detector.model.clip_,
    }
    lines = [_first_line(task, values)]
    for document in unusual.documents:
        rate = detector.false_alarms_per_day(document.normality)
        lines.append(replace(document, camera=task.name, false_alarms_per_day=rate).line())
    return JudgedShard(clock, "".join(f"{line}\n" for line in lines))


def _not_judged(task: JudgingTask, clock: str, reason: str) -> JudgedShard:
    return JudgedShard(clock, f"{_first_line(task, {'reason': reason})}\n")


def _first_line(task: JudgingTask, values: Mapping[str, Any]) -> str:
    """Return a `JudgedHeader` as a line; other values are those of a shard that is not judged."""
    begins = {"habitus": "judged", "model": task.fingerprint, "rate": task.rate}
    return json.dumps({**begins, **NOT_JUDGED, **values})


def rank_moments(
    cameras: Sequence[CameraFolder], detection: ArchiveDetection, *, timezone: str | None = None
) -> ArchiveDetection:
    """Add the most unusual moments of all cameras, which share the budget, to what was judged."""
    judged = []
    for camera in cameras:
        headers = {}
        for path in sorted((camera.path / "judged").glob("[0-9]*.jsonl")):
            header = judged_header(camera, path.stem)
            if header is None:
                continue
            if header["reason"]:
                detection.troubles.append(f"{camera.camera}: {path.stem}: {header['reason']}")
            headers[path] = header
        seconds = sum(header["seconds"] for header in headers.values())
        detection.n_cameras += seconds > 0
        detection.seconds += seconds
        judged.append((camera.camera, headers))
    moments, share = list[Event](), detection.share
    for name, headers in judged:
        limit = AlarmLimit(share)
        for path, header in headers.items():
            moments += _moments_of(header, _events_of(path, first=2), share, limit)
        if limit.n_held:
            detection.notes.append(f"{name}: {limit.in_words()}")
    moments.sort(key=lambda moment: (_rank(moment), moment.camera, moment.start))
    zone = None if timezone is None else ZoneInfo(timezone)
    detection.moments = [
        replace(moment, clock=_iso(moment.start, zone))
        for rank, moment in enumerate(moments)
        if moment.alarm or rank < MOST_MOMENTS
    ]
    return detection


def _moments_of(
    header: JudgedHeader, documents: Sequence[Event], share: float, limit: AlarmLimit
) -> list[Event]:
    """Return the alarms of a shard, and its other moments, at a camera's share of the budget.

    They do not depend on how many more documents were kept.
    """
    if not documents:
        limit.seconds += header["seconds"]
        return []
    clip, join, rate = header["clip"], header["join"], max(CANDIDATES_PER_DAY, share)
    normality = np.full(_number(documents[-1]) + 1, np.inf)
    normality[[_number(event) for event in documents]] = [event.normality for event in documents]
    least = most_unusual(normality, join, LEAST_MOMENTS)
    of_sequence = np.searchsorted(header["starts"], np.arange(len(documents)), side="right")
    candidates = [
        _Candidate(replace(event, alarm=False), int(sequence), event.alarm and _rank(event) <= rate)
        for event, sequence in zip(documents, of_sequence, strict=True)
        if (event.alarm and _rank(event) <= rate) or _number(event) in least
    ]
    alarming = [candidate.listed and _rank(candidate.document) <= share for candidate in candidates]
    threshold = _threshold(header, candidates, alarming, share)
    moments = _joined(header, candidates, alarming, Joiner(join, clip, limit), alarms=True)

    def is_apart(document: Event) -> bool:
        number = _number(document)
        return not any(
            (one.first_document or 0) - join <= number <= (one.last_document or 0) + join
            or is_one_thing(document, one)
            for one in moments
        )

    listed = [candidate.listed and is_apart(candidate.document) for candidate in candidates]
    moments += _joined(header, candidates, listed, Joiner(join, clip, None))
    moments += [
        candidate.document
        for candidate in candidates
        if not candidate.listed and is_apart(candidate.document)
    ]
    return [replace(moment, threshold=threshold) for moment in moments]


class _Candidate(NamedTuple):
    """A document that was kept of a shard."""

    document: Event
    sequence: int
    """Number of its sequence, among those of which documents were kept."""
    listed: bool
    """Whether it is unusual enough to be listed; otherwise it is among the least of the shard."""


def _joined(
    header: JudgedHeader,
    candidates: Sequence[_Candidate],
    wanted: Sequence[bool],
    joiner: Joiner,
    *,
    alarms: bool = False,
) -> list[Event]:
    """Join the documents of a shard that are wanted to events, alarms or not."""
    joined, after, current = list[Event | None](), 0, 0
    for (document, sequence, _), abnormal in zip(candidates, wanted, strict=True):
        joined.append(joiner.skip(_number(document) - after))
        if sequence != current:
            joined.append(joiner.close())
        if abnormal:
            document = replace(document, alarm=alarms)
            joined.append(joiner.take(document, listed=not alarms))
        else:
            joined.append(joiner.skip())
        after, current = _number(document) + 1, sequence
    joined.append(joiner.skip(round(header["seconds"] / header["clip"]) - after))
    joined.append(joiner.close())
    return [event for event in joined if event is not None]


def _number(document: Event) -> int:
    """Return the number of a document in its recording."""
    return document.peak_document or 0


def _threshold(
    header: JudgedHeader, candidates: Sequence[_Candidate], alarming: Sequence[bool], share: float
) -> float:
    """Return the threshold of a budget, between those that were kept."""
    budgets, thresholds = zip(*header["bars"], strict=True)
    threshold = float(np.interp(np.log(share), np.log(budgets), thresholds))
    for candidate, below in zip(candidates, alarming, strict=True):
        normality = candidate.document.normality
        if below:
            threshold = max(threshold, float(np.nextafter(normality, np.inf)))
        else:
            threshold = min(threshold, normality)
    return threshold


def _rank(moment: Event) -> float:
    return math.inf if moment.false_alarms_per_day is None else moment.false_alarms_per_day


def _iso(seconds: float, zone: ZoneInfo | None) -> str:
    moment = datetime.fromtimestamp(seconds, zone)
    return (moment if zone is not None else moment.astimezone()).isoformat(timespec="seconds")


def note_bars(
    cameras: Sequence[CameraFolder], detection: ArchiveDetection, workers: Workers
) -> None:
    """Note what there is to say of the thresholds of cameras, as their models are now."""
    learnt = [camera for camera in cameras if learnt_of(camera) is not None]
    models = [str(camera.model.absolute()) for camera in learnt]
    for number, note in workers.as_completed(partial(bar_note, detection.share), models):
        if note:
            detection.notes.append(f"{learnt[number].camera}: {note}")


def bar_note(share: float, model: str) -> str:
    """Return what there is to say of the threshold of a model, in one line. Run by a worker."""
    try:
        return "; ".join(SceneModel.load(model).detector(alerts_per_day=share).notes)
    except HabitusError:
        return ""


class PictureTask(NamedTuple):
    """Moments of one recording to draw."""

    name: str
    """Address of the recording."""
    start: float
    """When it begins, in seconds since the epoch."""
    model: str
    events: list[tuple[Event, str]]
    """Each with the name of its picture."""


def write_moments(
    folder: ArchiveFolder,
    detection: ArchiveDetection,
    recordings: Sequence[Recording],
    workers: Workers,
    *,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write the most unusual moments in order of time, with pictures in a folder beside them.

    Pictures are cut from the recordings where these are still there, and show the model's picture
    of the scene otherwise. Those that were cut before are left as they are.
    """
    addresses = {(one.camera, one.clock): one.file.address for one in recordings}
    pictures = folder.events.with_name(f"{folder.events.stem}-thumbnails")
    names = [_picture_name(moment) for moment in detection.moments]
    wanted = [
        (moment, name)
        for moment, name in zip(detection.moments[:MOST_PICTURES], names, strict=False)
        if not (pictures / name).is_file()
    ]
    tasks = _picture_tasks(folder, wanted, addresses)
    progress(Progress("drawing", 0, len(tasks)))
    for n, (_, drawn) in enumerate(workers.as_completed(draw_moments, tasks), start=1):
        for name, contents in drawn.items():
            write_file(pictures / name, contents)
        progress(Progress("drawing", n, len(tasks)))
    detection.moments = [
        replace(moment, thumbnail=f"{pictures.name}/{name}")
        if (pictures / name).is_file()
        else moment
        for moment, name in zip(detection.moments, names, strict=True)
    ]
    in_time = sorted(detection.moments, key=lambda moment: (moment.start, moment.camera))
    write_file(folder.events, "".join(f"{moment.line()}\n" for moment in in_time).encode())
    for path in pictures.glob("*.jpg"):
        if path.name not in names:
            path.unlink(missing_ok=True)


def _picture_name(moment: Event) -> str:
    parts = [moment.camera, moment.peak, moment.normality, moment.boxes]
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=4).hexdigest()
    return f"{moment.camera}-{(moment.clock or '')[:19].replace(':', '-')}-{digest}.jpg"


def _picture_tasks(
    folder: ArchiveFolder,
    wanted: Sequence[tuple[Event, str]],
    addresses: Mapping[tuple[str, str], str],
) -> list[PictureTask]:
    """Return what is to be drawn of each recording."""
    cameras = {name: folder.camera(name) for name in sorted({event.camera for event, _ in wanted})}
    shards = {name: like_latest(camera.shards()) for name, camera in cameras.items()}
    tasks: dict[Path, PictureTask] = {}
    for event, picture in wanted:
        name = event.camera
        covering = (s for s in reversed(shards[name]) if 0 <= event.peak - s.start < s.seconds)
        if (shard := next(covering, None)) is not None:
            address = addresses.get((name, shard.clock), shard.origin["address"])
            model = str(cameras[name].model.absolute())
            task = tasks.setdefault(shard.path, PictureTask(address, shard.start, model, []))
            task.events.append((event, picture))
    return list(tasks.values())


def draw_moments(task: PictureTask) -> dict[str, bytes]:
    """Return a JPEG of each moment that can be drawn, by its name. Run by a worker."""
    from habitus.reporting.figures.moments import frame_at, still_thumbnail

    scene = SceneModel.load(task.model)
    v, middle = scene.model.vocabulary_, scene.model.clip_ / 2
    if v is None:
        return {}
    stills: list[Any] = [None] * len(task.events)
    with suppress(HabitusError, OSError), at_hand(task.name) as path:  # gone, or cannot be read
        source = Source(str(path))
        stills = [
            frame_at(source, event.peak - task.start + middle, v.width, v.height)
            for event, _ in task.events
        ]
    shown = [scene.model.picture_ if still is None else still for still in stills]
    return {
        name: still_thumbnail(event, still, v, scene.habits)
        for (event, name), still in zip(task.events, shown, strict=True)
        if still is not None
    }


def read_archive_events(path: Path) -> list[Event]:
    """Return the moments that `write_moments` wrote, the most unusual first; none if absent."""
    events = _events_of(path) if path.is_file() else []
    return sorted(events, key=lambda moment: (_rank(moment), moment.camera))


def _events_of(path: Path, *, first: int = 1) -> list[Event]:
    """Return the moments in a file from line `first` on; FileError where a line is none."""
    try:
        return list(events_by_line(path, first=first).values())
    except HabitusError as error:
        remedy = "delete the file, and the next detection writes it again"
        raise FileError(f"{error}: {remedy}") from error
