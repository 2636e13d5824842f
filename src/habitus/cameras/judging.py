"""A camera's documents judged by its model: alarms within the budget, and what is nearly one."""

import contextlib
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from habitus.anomaly.camera_check import CameraCheck
from habitus.anomaly.camera_monitor import SceneMonitor
from habitus.anomaly.detector import Judgement
from habitus.anomaly.events import Event
from habitus.anomaly.scene_model import SceneModel
from habitus.anomaly.watching import EventEnded, EventStarted, Observer
from habitus.arrays import Flags, Image
from habitus.cameras.filing import Filing, SeenEvent
from habitus.corpus.documents import Condition
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError
from habitus.ingest.live import Arrived
from habitus.model.online import predicted_behaviours
from habitus.schema import decoded
from habitus.video import watched_cells

# A budget is held unless so many times as many alarms are to be expected.
HELD_WITHIN = 1.5
# Events that may be alarms at once while the budget cannot be held.
HEAD_START = 2
DAY = 86_400.0
# Shares of the budget whose thresholds are known: what half and twice as many alerts would bring.
SHARES = 0.5, 1.0, 2.0


def load_scene(path: Path, accepted: Sequence[dict[str, Any]]) -> SceneModel:
    """Read a model, and count as normal what was accepted since it was learnt.

    Parameters
    ----------
    path
        The model as it was learnt.
    accepted
        Events, as `Event.to_json` gives them; those that do not fit the model are left out.

    Raises
    ------
    HabitusError
        If the model cannot be read.
    """
    scene = SceneModel.load(path)
    for event in accepted:
        with contextlib.suppress(HabitusError):  # found when the camera had another frame size
            scene = scene.accept(decoded(json.dumps(event), Event)).scene
    return scene


@dataclass
class _OpenEvent:
    """The event under way."""

    id: str
    start: float
    """In seconds since the epoch."""
    alarm: bool


class Ration:
    """The budget of a model that knows too little to hold it by a threshold.

    What a few minutes have shown cannot tell what happens a few times a day: by its threshold there
    may be an alarm each minute. Here only the most unusual events of the last day are alarms: two,
    and as many more as the budget allows for the time watched.

    Examples
    --------
    >>> ration = Ration()
    >>> for time, normality in enumerate([-4.0, -5.0, -3.0]):
    ...     ration.add(float(time), normality)
    >>> ration.threshold(5), ration.threshold(2 * 86_400)
    (-4.0, inf)
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.now = 0.0
        self.peaks: deque[tuple[float, float]] = deque()
        """Time and normality of each event of the last day, without the one under way."""

    def add(self, now: float, normality: float) -> None:
        """Take an event that is over."""
        self.watch(now)
        self.peaks.append((now, normality))

    def watch(self, now: float) -> None:
        """Let time pass."""
        self.now = max(now, self.now)
        self.since = now if self.since is None else self.since
        while self.peaks and self.peaks[0][0] < self.now - DAY:
            self.peaks.popleft()

    def threshold(self, alerts_per_day: float) -> float:
        """Return below which normality the next event is an alarm."""
        watched = 0.0 if self.since is None else min(self.now - self.since, DAY)
        n = HEAD_START + int(alerts_per_day * watched / DAY)
        lowest = sorted(normality for _, normality in self.peaks)
        return lowest[n - 1] if n <= len(lowest) else np.inf


class Judging:
    """Judges documents by one model, and files the events that they make.

    Events are joined at the threshold of twice the budget. One is an alarm if its strongest
    document is below the threshold of the budget itself, from that document on; where the model
    cannot hold the budget, a `Ration` does.

    Parameters
    ----------
    scene
        The model.
    alerts_per_day
        Alert budget.
    name
        Of the camera.
    filing
        Takes the events.
    new_id
        Makes the id of an event that starts at a time.
    speed
        Seconds of video in a second.

    Raises
    ------
    HabitusError
        If the model cannot judge video.
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
        known = scene.model.vocabulary_
        if known is None:
            raise InvalidInputError("the model was not learnt from video: learn the camera anew")
        picture, self.vocabulary = scene.model.picture_, known
        check = None if picture is None else CameraCheck(picture, "the model")
        monitor = SceneMonitor(check, name, clip=scene.model.clip_)
        detector = scene.detector(alerts_per_day=alerts_per_day)
        self.observer = Observer(detector, name, monitor)
        self.detector, self.habits, self.notes = detector, detector.habits, detector.notes
        self.ration: Ration | None = None
        self.filing, self.new_id, self.speed = filing, new_id, speed
        self.thresholds: tuple[float, ...] = ()
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
        self.alerts_per_day, detector = alerts_per_day, self.detector
        self.thresholds = self._calibrated = tuple(
            detector.threshold_of(n * alerts_per_day) for n in SHARES
        )
        detector.threshold = self.thresholds[-1]
        expected = detector.alerts_expected(alerts_per_day)
        if expected <= HELD_WITHIN * alerts_per_day:
            self.ration, self.notes = None, detector.notes
            return
        self.ration = self.ration or Ration()
        self.notes = (
            f"{alerts_per_day:g} alerts per day cannot be held with so little footage: until more "
            "is learnt, the most unusual events are alarms",
        )

    def take(self, arrival: Arrived) -> Judgement | None:
        """Judge a document, and file the events that start or end with it."""
        observer = self.observer
        if self.ration is not None:
            self.ration.watch(arrival.time)
            self.thresholds = tuple(
                min(known, self.ration.threshold(n * self.alerts_per_day))
                for n, known in zip(SHARES, self._calibrated, strict=True)
            )
        for happening in observer.take(self._known_places(arrival)):
            if isinstance(happening, EventStarted):
                self._start(happening.event, arrival.time)
            elif isinstance(happening, EventEnded):
                self._end(happening)
        event, now = self.event, observer.joiner.open
        if event is not None and now is not None and not event.alarm and self._is_alarm(now):
            event.alarm = True
            self.filing.started(self._seen(event, now, observer.still))
        return observer.judgement

    def end_event(self) -> None:
        """End the event under way, if there is one: what follows is another matter."""
        for ended in self.observer.ended(self.observer.joiner.close()):
            self._end(ended)

    def _start(self, event: Event, start: float) -> None:
        self.event = _OpenEvent(self.new_id(start), start, self._is_alarm(event))
        self.filing.started(self._seen(self.event, event, self.observer.still))

    def _end(self, ended: EventEnded) -> None:
        if self.event is not None:
            if self.ration is not None:
                self.ration.add(self.event.start, ended.event.normality)
            self.filing.ended(self._seen(self.event, ended.event, ended.still))
        self.event = None

    def _is_alarm(self, event: Event) -> bool:
        return event.normality < self.threshold

    def _seen(self, open_event: _OpenEvent, event: Event, still: Image | None) -> SeenEvent:
        """Return an event as it is filed, with times of day."""
        start = open_event.start
        return SeenEvent(
            open_event.id,
            replace(event, alarm=open_event.alarm, threshold=self.threshold),
            start,
            start + (event.end - event.start) / self.speed,
            start + (event.peak - event.start) / self.speed,
            self.thresholds,
            self.vocabulary,
            self.habits,
            still,
        )

    def _known_places(self, arrival: Arrived) -> Arrived:
        """Return a document without the words of cells that were masked when it was learnt."""
        if self._region is None:
            return arrival
        v, document = arrival.vocabulary, arrival.document
        if self._cells is None or self._cells[0] != v:
            self._cells = v, watched_cells(v, region=self._region).reshape(-1)
        known = self._cells[1][np.asarray(document.words) // v.per_cell]
        words, counts = document.words[known], document.counts[known]
        return arrival._replace(document=document._replace(words=words, counts=counts))
