"""Watching a live source: its events as they happen, and a file of them.

Memory does not grow with time.
"""

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from habitus.arrays import Image
from habitus.corpus.clocks import NO_CLOCK, minute_of
from habitus.corpus.documents import Condition
from habitus.corpus.stands import StandingCells
from habitus.errors import FileError, InvalidInputError
from habitus.files import is_pipe
from habitus.ingest.backgrounds import Backgrounds
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import FrameSizeError, Job, has_end
from habitus.ingest.live import LiveDocument, LiveSource, Notice
from habitus.inputs import (
    camera_check,
    check_geometry,
    check_outputs,
    load_detector,
    settings_of,
)
from habitus.rarity import counted
from habitus.scene.camera_check import CameraCheck
from habitus.scene.camera_monitor import (
    REPORT_EVERY,
    CameraFault,
    FaultReports,
    SceneMonitor,
    clock_of,
)
from habitus.scene.detector import Detector, Judgement
from habitus.scene.events import Event, EventJoiner
from habitus.scene.scene_model import SceneModel
from habitus.scene.thresholds import AlarmLimit, RaisedAlarm, stretch_of
from habitus.schema import decoded
from habitus.settings import (
    Address,
    AlertSettings,
    ReadingSettings,
    check_seconds,
    check_unused,
)
from habitus.site.event_log import EventLog, Thumbnail, lines_from_the_end
from habitus.video import Source

# Seconds without a frame after which a source is connected anew, where nobody says otherwise.
PATIENCE = 10.0


class EventStarted(NamedTuple):
    """An event has started and goes on: what is known of it so far."""

    event: Event


class EventEnded(NamedTuple):
    """An event is over."""

    event: Event
    still: Image | None
    """The scene at its strongest moment, in colours at the analysed size."""


Happening = EventStarted | EventEnded | CameraFault | Notice


class CameraStore(Protocol):
    """Where a camera's documents and events go: an `Observer` has them in memory alone.

    What there is to say is returned; a `Watcher`, with its folder, says it to the server.
    """

    def take(self, arrival: LiveDocument) -> Iterable[Happening] | None:
        """Take a document."""

    def miss(self, live: LiveSource) -> Iterable[Happening] | None:
        """Note that a source is lost."""


def happenings(live: LiveSource, store: CameraStore) -> Iterator[Happening | None]:
    """Yield what happens at any camera of a site, until its source ends or is stopped.

    Between them comes None, some ten times a second, for whoever has something else to do.
    """
    while not (live.stop.is_set() or live.ended):
        for arrival in live.poll():
            if isinstance(arrival, Notice):
                yield arrival
            else:
                yield from store.take(arrival) or ()
        if live.lost_at is not None:
            yield from store.miss(live) or ()
        yield None


def watch(
    source: Address,
    model: Address | SceneModel,
    *,
    output: Address | None = None,
    stop: threading.Event | None = None,
    patience: float = PATIENCE,
    alerts: AlertSettings | float | None = None,
    force: bool = False,
    reading: ReadingSettings = ReadingSettings(),
) -> Generator[Happening, None, None]:
    """Watch a live stream, and yield what is unusual in it as it happens.

    It connects anew whenever the stream is absent, stalls, dies, or has another frame size than the
    model or too few frames per second, and goes on when it is as it was. Close the iterator, or set
    `stop` and exhaust it, to end: then no process is left. Where it is started again with the same
    `output`, the limit of alarms knows those of before.

    Parameters
    ----------
    source
        Any address that FFmpeg opens; a file; `-` for standard input.
    model
        What `learn` returned, or the file that it wrote.
    output
        File to add the events to as JSON Lines, with thumbnails in a folder beside it.
    stop
        Set it to end.
    patience
        Seconds without a frame after which to connect anew.
    alerts
        As of `detect`.
    force
        Judge whatever the camera shows. Otherwise a stream is not judged while it shows another
        scene than the model's, and a file that does is refused.
    reading
        As of `extract`: `fps`, `fast` and `other_hosts`.

    Yields
    ------
    EventStarted, EventEnded, CameraFault or Notice
        An event when it starts, the event once it is over, that nothing can be judged (after a
        while, then every hour), and what else there is to say of the source.
    """
    if output is not None and not is_pipe(output):
        check_outputs(source, model, force=force, events=output)
    check_seconds("patience", patience)
    check_unused(reading, "watching", "fps", "fast", "other_hosts")
    detector = load_detector(model, AlertSettings.of(alerts))
    (camera,) = replace(reading, timeout=patience).open(source)
    if not camera.is_live:
        check_geometry(detector.model, camera)
    found = watch_events(
        detector,
        camera,
        settings_of(detector.model),
        stop=stop or threading.Event(),
        patience=patience,
        camera=camera_check(model, detector.model, output, force),
        raised=_earlier_alarms(output, camera, detector.alerts_per_day),
    )
    if output is None:
        yield from (happening for happening in found if happening is not None)
    else:
        yield from _with_log(found, detector, Path(output))


def _earlier_alarms(
    output: Address | None, source: Source, alerts_per_day: float | None
) -> list[RaisedAlarm]:
    """Return the alarms of before that count against the budget; none of a file."""
    if output is None or is_pipe(output) or not source.is_live or alerts_per_day is None:
        return []
    return latest_alarms(Path(output), source.name, stretch_of(alerts_per_day), time.time())


def latest_alarms(path: Path, source: str, seconds: float, now: float) -> list[RaisedAlarm]:
    """Return the alarms of a source in the last `seconds`, as a file of events has them.

    Lines that are no events, such as one that was cut short, are passed over.
    """
    alarms = []
    for line in lines_from_the_end(path):
        try:
            event = decoded(line.decode(), Event)
            start = datetime.fromisoformat(event.clock or "").timestamp()
        except (FileError, ValueError):
            continue
        if start + event.end - event.start < now - seconds:  # and all lines before it
            break
        first = event.track[0].time if event.track else event.start
        ago = now - start - (first - event.start)
        if event.alarm and event.source == source and 0 <= ago < seconds:
            alarms.append(RaisedAlarm(ago, event.normality))
    return alarms


def _with_log(
    found: Iterator[Happening | None], detector: Detector, output: Path
) -> Generator[Happening, None, None]:
    """Yield what happens, and add events to a file; what cannot be written waits."""
    log = EventLog(output)
    try:
        for happening in found:
            if isinstance(happening, EventEnded):
                happening, picture = _with_thumbnail(happening, detector, output)
                log.add(happening.event.line(), picture)
            elif isinstance(happening, CameraFault):
                log.add(happening.line())
            if happening is not None:
                yield happening
            yield from (Notice(note, time.time()) for note in log.notes())
    finally:
        unwritten = log.close()
    yield from (Notice(note, time.time()) for note in log.notes())
    yield from (Notice(f"not written to {output}: {line}", time.time()) for line in unwritten)
    if unwritten:
        raise InvalidInputError(
            f"{counted(len(unwritten), 'event')} could not be written to {output}",
            parameter="output",
        )


def _with_thumbnail(
    ended: EventEnded, detector: Detector, output: Path
) -> tuple[EventEnded, Thumbnail | None]:
    """Name the picture of an event in the event, and return it encoded."""
    from habitus.reporting.figures.moments import still_thumbnail

    vocabulary = detector.model.vocabulary_
    if ended.still is None or vocabulary is None:
        return ended, None
    folder, event = output.with_name(f"{output.stem}-thumbnails"), ended.event
    begun = event.clock or f"{Path(event.source).stem}-{event.start:.3f}"
    name = f"{begun.replace(':', '')}.jpg"
    drawn = still_thumbnail(ended.event, ended.still, vocabulary, detector.habits)
    event = replace(ended.event, thumbnail=f"{folder.name}/{name}")
    return ended._replace(event=event), Thumbnail(folder / name, drawn)


def watch_events(
    detector: Detector,
    source: Source,
    settings: DocumentSettings,
    *,
    stop: threading.Event,
    patience: float = PATIENCE,
    camera: CameraCheck | None = None,
    raised: Sequence[RaisedAlarm] = (),
) -> Iterator[Happening | None]:
    """Yield what happens at the camera of a site of one, in memory, until `stop` is set.

    Times of events are seconds since the first document; `clock` is the time of day, None of a
    file. A source is found again after `patience` seconds without a frame. Where a `camera` is
    given, only views that show the scene of the model are judged; a file must show it. Alarms that
    were `raised` before count against the budget. To end, set `stop`, and exhaust or close the
    iterator.
    """
    for note in detector.notes:
        yield Notice(note, time.time())
    vocabulary = detector.model.vocabulary_
    scene = SceneMonitor(camera, source.name, clip=settings.clip, final=has_end(source))
    observer = Observer(detector, source.name, scene, live=source.is_live)
    if detector.alerts_per_day is not None:
        observer.joiner.limit = AlarmLimit(detector.alerts_per_day, raised)
    job = Job(source, replace(settings, still_every=1), expected=vocabulary)
    with LiveSource(job, patience=patience, stop=stop) as live:
        yield from happenings(live, observer)
    yield from observer.ended(observer.joiner.close())
    yield from observer.held(time.time(), every=0.0)


class Observer:
    """Judges the documents of a live source one after the other, and joins them to events.

    `scene` says whether the camera can be judged. What arrives `live` happens now; nobody knows the
    hour of a file. `joiner.open` is the event under way, `still` the picture of its strongest
    moment and `started_at` when it began to arrive, in seconds since the epoch; `condition` and
    `judgement` are of the latest document.
    """

    def __init__(
        self, detector: Detector, name: str, scene: SceneMonitor, *, live: bool = True
    ) -> None:
        self.detector, self.name, self.scene, self.live = detector, name, scene, live
        self.joiner = EventJoiner(detector, source=name)
        self.still: Image | None = None
        self.started_at = 0.0
        self.condition = Condition.USABLE
        self.judgement: Judgement | None = None
        self.faults = FaultReports(name)
        self.backgrounds: Backgrounds | None = None
        self.n_reported, self.reported_at = 0, -np.inf
        """Documents that were held back when that was reported last, and when, in seconds."""
        self.latest = 0.0
        """Start of the latest document in seconds."""

    def take(self, arrival: LiveDocument) -> Iterator[Happening]:
        """Judge a document, and yield what there is to say."""
        document, vocabulary = arrival.document, arrival.vocabulary
        if not arrival.follows:
            self.detector.new_sequence()
            self.backgrounds = None
            yield from self.ended(self.joiner.new_sequence())
        condition = self.scene.judge(document)
        if condition != self.condition:
            self.condition = condition
            yield Notice(f"{self.name}: {CONDITIONS[condition]}", arrival.time)
        fault, self.latest = self.faults.named(condition, document.n_frames), arrival.seconds
        epoch = arrival.time if self.live else None
        yield from self.faults.take(fault, arrival.seconds, epoch)
        before, usable = self.joiner.open, condition is Condition.USABLE
        clock = minute_of(arrival.time) if self.live else NO_CLOCK
        judgement = self.detector.step(
            document,
            usable=usable,
            vocabulary=vocabulary,
            clock=clock,
            standing=self._standing(arrival, condition),
        )
        self.judgement = judgement
        words = self.detector.in_model_words(document, vocabulary)
        over = self.joiner.add(arrival.seconds, words, judgement, self.detector.threshold)
        now = self.joiner.open
        if now is not None and (before is None or now.peak != before.peak):
            self.still = document.still
        if now is not None and before is None:
            self.started_at = arrival.time - (now.peak - now.start)
            yield EventStarted(self._timed(now))
        yield from self.ended(over)
        yield from self.held(arrival.time)

    def _standing(self, arrival: LiveDocument, condition: Condition) -> StandingCells:
        """Return what stands in a document."""
        if self.backgrounds is None:
            model = self.detector.model
            region = (model.settings_ or {}).get("region")
            settings = DocumentSettings(clip=model.clip_, region=region)
            self.backgrounds = Backgrounds.of(arrival.vocabulary, settings)
        return self.backgrounds.take(arrival.document, condition)

    def miss(self, live: LiveSource) -> Iterator[CameraFault]:
        """Yield what there is to say while a source is lost."""
        now, seconds = time.time(), time.monotonic() - (live.lost_at or 0.0)
        condition = "resized" if isinstance(live.error, FrameSizeError) else "absent"
        if self.faults.since is None:
            yield from self.faults.take(condition, self.latest, now - seconds)
        yield from self.faults.take(condition, self.latest + seconds, now)

    def held(self, now: float, *, every: float = REPORT_EVERY) -> Iterator[Notice]:
        """Yield what the limit has held back since it was reported, if so much time has passed."""
        limit = self.joiner.limit
        if (
            limit is None
            or limit.n_held == self.n_reported
            or self.latest - self.reported_at < every
        ):
            return
        self.n_reported, self.reported_at = limit.n_held, self.latest
        yield Notice(f"{self.name}: {limit.in_words()}", now)

    def ended(self, event: Event | None) -> Iterator[EventEnded]:
        """Yield an event that is over, if one is."""
        if event is not None:
            yield EventEnded(self._timed(event), self.still)
            self.still = None

    def _timed(self, event: Event) -> Event:
        return replace(event, clock=clock_of(self.started_at)) if self.live else event


CONDITIONS = {
    Condition.USABLE: "the camera is in order again",
    Condition.MOVED: "the camera was moved or shows another scene: nothing is judged",
    Condition.COVERED: "the camera is covered or dark: nothing is judged",
    Condition.FROZEN: "the picture is frozen: nothing is judged",
}
"""What a notice says when the condition of the camera changes."""
