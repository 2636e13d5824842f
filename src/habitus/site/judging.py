"""A camera's documents judged by its model: alarms within the budget, and what is nearly one."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from habitus.arrays import Flags, Image
from habitus.corpus.documents import Condition
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError
from habitus.ingest.live import LiveDocument
from habitus.model.online import predicted_behaviours
from habitus.scene.camera_check import CameraCheck
from habitus.scene.camera_monitor import SceneMonitor
from habitus.scene.detector import Judgement
from habitus.scene.events import Event
from habitus.scene.scene_model import SceneModel
from habitus.schema import decoded
from habitus.site.filing import Filing, SeenEvent
from habitus.site.journal import JournalEntry
from habitus.site.watching import EventEnded, EventStarted, Observer
from habitus.video import watched_cells

# Shares of the budget whose thresholds are known: what half and twice as many alerts would bring.
SHARES = 0.5, 1.0, 2.0


def as_event(values: dict[str, Any]) -> Event:
    """Return the event of plain values; FileError if it is none."""
    return decoded(json.dumps(values), Event)


def with_accepted(scene: SceneModel, accepted: Sequence[dict[str, Any]]) -> SceneModel:
    """Return a model in which events are normal; those that it cannot count are left out."""
    for event in accepted:
        with contextlib.suppress(HabitusError):  # found when the camera had another frame size
            scene = scene.accept(as_event(event)).scene
    return scene


@dataclass
class _OpenEvent:
    """The event under way."""

    id: str
    start: float
    """In seconds since the epoch."""
    alarm: bool


class Judging:
    """Judges documents by one model, and files the events that they make.

    Events are joined at the threshold of twice the budget. One is an alarm if its strongest
    document is below the threshold of the budget itself, from that document on. `new_id` makes the
    id of an event that starts at a time; `speed` is the number of seconds of video in a second. A
    model that cannot judge video is a HabitusError.
    """

    def __init__(
        self,
        scene: SceneModel,
        alerts_per_day: float,
        *,
        name: str,
        filing: Filing,
        new_id: Callable[[float], str],
        speed: float = 1.0,
    ) -> None:
        vocabulary = scene.model.vocabulary_
        if vocabulary is None:
            raise InvalidInputError("the model was not learnt from video: learn the camera anew")
        self.vocabulary = vocabulary
        check = CameraCheck.of(scene.model, "the model")
        monitor = SceneMonitor(check, name, clip=scene.model.clip_)
        detector = scene.detector(alerts_per_day=alerts_per_day)
        self.observer = Observer(detector, name, monitor)
        self.detector, self.habits = detector, detector.habits
        self.filing, self.new_id, self.speed = filing, new_id, speed
        self.thresholds: tuple[float, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.set_budget(alerts_per_day)
        self.event: _OpenEvent | None = None
        self._region = (scene.model.settings_ or {}).get("region")
        self._cells: tuple[Vocabulary, Flags] | None = None

    @property
    def threshold(self) -> float:
        """Below which normality is an alarm."""
        return self.thresholds[SHARES.index(1.0)]

    @property
    def expected(self) -> tuple[float, ...]:
        """Probability of each behaviour in the next document."""
        return tuple(predicted_behaviours(self.detector.log_predicted).tolist())

    @property
    def condition(self) -> Condition:
        """Of the camera."""
        return self.observer.condition

    def set_budget(self, alerts_per_day: float) -> None:
        """Raise so many alerts per day from now on."""
        bars = [self.detector.bar(n * alerts_per_day) for n in SHARES]
        self.thresholds = tuple(bar.threshold for bar in bars)
        self.detector.threshold = self.thresholds[-1]
        self.notes = bars[SHARES.index(1.0)].notes

    def take(self, arrival: LiveDocument) -> Judgement | None:
        """Judge a document, and file the events that start or end with it."""
        observer = self.observer
        for happening in observer.take(self._known_places(arrival)):
            if isinstance(happening, EventStarted):
                earlier = happening.event.peak - happening.event.start
                self._start(happening.event, arrival.time - earlier / self.speed)
            elif isinstance(happening, EventEnded):
                self._end(happening)
        event, now = self.event, observer.joiner.open
        if event is not None and now is not None and not event.alarm and self._is_alarm(now):
            event.alarm = True
            self._file(event, "started", now, observer.still)
        return observer.judgement

    def end_event(self) -> None:
        """End the event under way, if there is one: what follows is another matter."""
        for ended in self.observer.ended(self.observer.joiner.close()):
            self._end(ended)

    def _start(self, event: Event, start: float) -> None:
        self.event = _OpenEvent(self.new_id(start), start, self._is_alarm(event))
        self._file(self.event, "started", event, self.observer.still)

    def _end(self, ended: EventEnded) -> None:
        if self.event is not None:
            self._file(self.event, "ended", ended.event, ended.still)
        self.event = None

    def _is_alarm(self, event: Event) -> bool:
        return event.normality < self.threshold

    def _file(
        self,
        open_event: _OpenEvent,
        kind: Literal["started", "ended"],
        event: Event,
        still: Image | None,
    ) -> None:
        """Have an event filed, with times of day."""
        start, alarm = open_event.start, open_event.alarm
        event = replace(event, alarm=alarm, threshold=self.threshold)
        entry = JournalEntry(
            id=open_event.id,
            kind=kind,
            start=start,
            end=start + (event.end - event.start) / self.speed if kind == "ended" else None,
            peak=start + (event.peak - event.start) / self.speed,
            alarm=alarm,
            event=event.to_json(),
            thresholds=self.thresholds,
        )
        self.filing.add(SeenEvent(entry, event, self.vocabulary, self.habits, still))

    def _known_places(self, arrival: LiveDocument) -> LiveDocument:
        """Return a document without the words of cells that were masked when it was learnt."""
        if self._region is None:
            return arrival
        v, document = arrival.vocabulary, arrival.document
        if self._cells is None or self._cells[0] != v:
            self._cells = v, watched_cells(v, region=self._region).reshape(-1)
        watched = self._cells[1][np.asarray(document.words) // v.per_cell]
        words, counts = document.words[watched], document.counts[watched]
        return arrival._replace(document=document._replace(words=words, counts=counts))
