"""Events of a live source, as they happen; memory does not grow with time."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from habitus.anomaly.camera_check import CameraCheck, FirstStills
from habitus.anomaly.detector import Detector
from habitus.anomaly.events import Event, EventJoiner
from habitus.arrays import Image
from habitus.corpus.documents import Condition
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.live import Arrived, LiveSource, Notice
from habitus.video import Source


class EventStarted(NamedTuple):
    """An event has started and goes on: what is known of it so far."""

    event: Event


class EventEnded(NamedTuple):
    """An event is over."""

    event: Event
    still: Image | None
    """The scene at its strongest moment, in colours at the analysed size."""


def watch_events(
    detector: Detector,
    source: Source,
    settings: DocumentSettings,
    *,
    stop: threading.Event,
    patience: float = 10.0,
    camera: CameraCheck | None = None,
) -> Iterator[EventStarted | EventEnded | Notice | None]:
    """Yield the events of a live source as they start and end, until `stop` is set.

    Between them comes None, some ten times a second, for whoever has something else to do. Times of
    events are seconds since the first document; `clock` is the time of day.

    Parameters
    ----------
    detector
        Judges the documents.
    source
        Camera, stream or file; it is found again when it is lost, see `LiveSource`.
    settings
        How documents are made from video.
    stop
        Set it, and exhaust or close the iterator, to end: then no process is left.
    patience
        Seconds without a frame after which to connect anew.
    camera
        Where given, the first stills must show the scene of the model.
    """
    for note in detector.notes:
        yield Notice(note, time.time())
    observer = _Observer(detector, source.name, camera)
    known = detector.model.vocabulary_
    with LiveSource(source, settings, patience=patience, expected=known, stop=stop) as live:
        while not (stop.is_set() or live.ended):
            for arrival in live.poll():
                if isinstance(arrival, Notice):
                    yield arrival
                else:
                    yield from observer.take(arrival)
            yield None
    yield from observer.ended(observer.joiner.close())


class _Observer:
    """A detector and a joiner, and the still of the event under way."""

    def __init__(self, detector: Detector, name: str, camera: CameraCheck | None) -> None:
        self.detector, self.name = detector, name
        self.first_stills = FirstStills(camera, name)
        self.joiner = EventJoiner(detector, source=name)
        self.still: Image | None = None
        self.started_at = 0.0
        """When the event under way began to arrive, in seconds since the epoch."""
        self.condition = Condition.USABLE

    def take(self, arrival: Arrived) -> Iterator[EventStarted | EventEnded | Notice]:
        """Judge a document, and yield what there is to say."""
        self.first_stills.take(arrival.document.still)
        if not arrival.follows:
            self.detector.new_sequence()
            yield from self.ended(self.joiner.new_sequence())
        if arrival.condition != self.condition:
            self.condition = arrival.condition
            yield Notice(f"{self.name}: {CONDITIONS[self.condition]}", arrival.time)
        document, vocabulary, before = arrival.document, arrival.vocabulary, self.joiner.open
        usable = arrival.condition is Condition.USABLE
        judgement = self.detector.step(document, usable=usable, vocabulary=vocabulary)
        words = self.detector.in_model_words(document, vocabulary)
        over = self.joiner.add(arrival.seconds, words, judgement, self.detector.threshold)
        now = self.joiner.open
        if now is not None and (before is None or now.peak != before.peak):
            self.still = document.still
        if now is not None and before is None:
            self.started_at = arrival.time
            yield EventStarted(self._timed(now))
        yield from self.ended(over)

    def ended(self, event: Event | None) -> Iterator[EventEnded]:
        """Yield an event that is over, if one is."""
        if event is not None:
            yield EventEnded(self._timed(event), self.still)
            self.still = None

    def _timed(self, event: Event) -> Event:
        start = datetime.fromtimestamp(self.started_at, UTC)
        return replace(event, clock=start.isoformat(timespec="milliseconds"))


CONDITIONS = {
    Condition.USABLE: "the camera is in order again",
    Condition.MOVED: "the camera was moved: nothing is judged until it is back",
    Condition.COVERED: "the camera is covered or dark: nothing is judged",
    Condition.FROZEN: "the picture is frozen: nothing is judged",
}
"""What a notice says when the condition of the camera changes."""
