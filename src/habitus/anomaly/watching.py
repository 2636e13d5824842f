"""Events of a live source, as they happen: nothing grows with time."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from habitus.anomaly.detector import Detector
from habitus.anomaly.events import Event, Joiner
from habitus.arrays import Image
from habitus.errors import VideoError
from habitus.ingest.clips import Settings
from habitus.ingest.condition import Condition
from habitus.ingest.live import Arrived, Notice, live_documents
from habitus.video import Source


class Began(NamedTuple):
    """An event has begun, and goes on: what is known of it so far."""

    event: Event


class Ended(NamedTuple):
    """An event is over."""

    event: Event
    still: Image | None
    """The scene at its strongest moment, in colours at the analysed size."""


def watch(
    detector: Detector,
    source: Source,
    settings: Settings,
    *,
    stop: threading.Event,
    patience: float = 10.0,
) -> Iterator[Began | Ended | Notice]:
    """What there is to say about a live source, until `stop` is set; see `live_documents`.

    Times of events are seconds since the first document; `clock` tells the time of day.
    """
    observer = _Observer(detector, source.name)
    settings = replace(settings, still_every=1)
    arrivals = live_documents(source, settings, stop=stop, patience=patience, first_must_work=True)
    for arrival in arrivals:
        if isinstance(arrival, Notice):
            yield arrival
        else:
            yield from observer.take_in(arrival)
    yield from observer.ended(observer.joiner.close())


class _Observer:
    """A detector and a joiner, and the still of the event that goes on."""

    def __init__(self, detector: Detector, name: str) -> None:
        self.detector, self.joiner = detector, Joiner(detector.model, source=name)
        self.name = name
        self.still: Image | None = None
        self.zero: float | None = None
        self.condition = Condition.FINE

    def take_in(self, arrival: Arrived) -> Iterator[Began | Ended | Notice]:
        """Judge a document."""
        self._check(arrival)
        if self.zero is None:
            self.zero = arrival.time
        if not arrival.follows:
            self.detector.new_sequence()
            yield from self.ended(self.joiner.new_sequence())
        if arrival.condition != self.condition:
            self.condition = arrival.condition
            yield Notice(f"{self.name}: the camera is {_said(self.condition)}", arrival.time)
        document, before = arrival.document, self.joiner.open
        judgement = self.detector.step(document, fine=arrival.condition is Condition.FINE)
        over = self.joiner.add(
            arrival.time - self.zero, document, judgement, self.detector.threshold
        )
        now = self.joiner.open
        if now is not None and (before is None or now.peak != before.peak):
            self.still = document.still
        if now is not None and before is None:
            yield Began(self._timed(now))
        yield from self.ended(over)

    def ended(self, event: Event | None) -> Iterator[Ended]:
        """An event that is over, if one is."""
        if event is not None:
            yield Ended(self._timed(event), self.still)
            self.still = None

    def _timed(self, event: Event) -> Event:
        start = datetime.fromtimestamp((self.zero or 0.0) + event.start, UTC)
        return replace(event, clock=start.isoformat(timespec="milliseconds"))

    def _check(self, arrival: Arrived) -> None:
        known = self.detector.model.vocabulary_
        if known is not None and arrival.vocabulary != known:
            found = arrival.vocabulary
            raise VideoError(
                f"{self.name} has {found.width}x{found.height} pixels, the model was learnt at "
                f"{known.width}x{known.height}: learn this camera anew"
            )


def _said(condition: Condition) -> str:
    return {
        Condition.FINE: "in order again",
        Condition.MOVED: "not where it was: nothing is judged until it is back",
        Condition.COVERED: "covered, or the light is gone: nothing is judged",
        Condition.FROZEN: "frozen: nothing is judged",
    }[condition]
