"""A camera's documents judged by its model: alarms within the budget, and what is nearly one."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from habitus.arrays import Flags, Image
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError
from habitus.files import write_file
from habitus.ingest.live import LiveDocument
from habitus.model.online import predicted_behaviours
from habitus.scene.camera_check import CameraCheck
from habitus.scene.camera_monitor import SceneMonitor
from habitus.scene.detector import Judgement
from habitus.scene.events import Event
from habitus.scene.localisation import Box, Placement, SceneNames, place_in_words
from habitus.scene.scene_model import SceneModel
from habitus.scene.thresholds import AlarmLimit
from habitus.schema import NotNegative, Text, decoded
from habitus.site.filing import Filing, PicturedEvent
from habitus.site.journal import SiteEvent
from habitus.site.pipe_messages import AlertOrder
from habitus.site.watching import EventEnded, EventStarted, Observer
from habitus.site.zones import Zone, ZoneMap
from habitus.video import watched_cells

# Shares of the budget whose thresholds are known: what half and twice as many alerts would bring.
SHARES = 0.5, 1.0, 2.0


def as_event(values: dict[str, Any]) -> Event:
    """Return the event of plain values; FileError if it is none."""
    return decoded(json.dumps(values), Event)


def with_accepted(
    scene: SceneModel,
    accepted: Sequence[dict[str, Any]],
    counting: Callable[[], None] = lambda: None,
    *,
    known: Sequence[float] = (),
) -> tuple[SceneModel, list[float]]:
    """Return a model in which events are normal, and how often each counts, 0 if it cannot.

    Finding that out takes a fraction of a second for each, before which `counting` is called; of
    the first of them it may be known.
    """
    times: list[float] = []
    for event, often in zip_longest(accepted, known[: len(accepted)]):
        counting()
        found = 0.0
        if often != 0.0:
            with suppress(HabitusError):  # found when the camera had another frame size
                scene = scene.accept(as_event(event), times=often).scene
                found = scene.habits.accepted[-1].times if scene.habits is not None else 0.0
        times.append(found)
    return scene, times


class AcceptedTimes(TypedDict):
    """How often events that were accepted count, beside the model of a camera."""

    model: list[int]
    """Size of its file, and when it was written, in nanoseconds."""
    events: list[Text]
    """Digests of the events."""
    times: list[NotNegative]


def accepted_times_of(model: Path) -> Path:
    """Return the file beside a model that `remember` writes."""
    return model.with_suffix(".accepted")


def remember(model: Path, accepted: Sequence[dict[str, Any]], times: Sequence[float]) -> None:
    """Keep how often events count, so that nobody has to find that out again."""
    with suppress(OSError, HabitusError):  # a full disk; it is found out again
        kept = AcceptedTimes(model=_written(model), events=_digests(accepted), times=[*times])
        write_file(accepted_times_of(model), json.dumps(kept).encode())


def recall(model: Path, accepted: Sequence[dict[str, Any]]) -> list[float]:
    """Return how often the first of some events count, as far as these were remembered."""
    try:
        kept = decoded(accepted_times_of(model).read_text(encoding="utf-8"), AcceptedTimes)
        if kept["model"] != _written(model):
            return []
    except (OSError, ValueError, HabitusError):
        return []
    pairs = zip(kept["events"], _digests(accepted), kept["times"], strict=False)
    return [often for *_, often in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _written(model: Path) -> list[int]:
    found = model.stat()
    return [found.st_size, found.st_mtime_ns]


def _digests(events: Sequence[dict[str, Any]]) -> list[str]:
    texts = (json.dumps(event, sort_keys=True) for event in events)
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


class TaughtScene:
    """A model from a file in which events are normal: of more of them, only those are counted."""

    def __init__(self) -> None:
        self._latest: tuple[Path, tuple[dict[str, Any], ...], SceneModel] | None = None
        self.times: list[float] = []
        """How often each event counts."""

    def scene(
        self,
        path: Path,
        accepted: Sequence[dict[str, Any]],
        counting: Callable[[], None] = lambda: None,
    ) -> SceneModel:
        """Return the model of a file in which events are normal; see `with_accepted`."""
        further, scene, times = tuple(accepted), None, list[float]()
        if self._latest is not None:
            before, counted, latest = self._latest
            if before == path and further[: len(counted)] == counted:
                further, scene, times = further[len(counted) :], latest, self.times
        known = recall(path, accepted) if further else []
        scene, found = with_accepted(
            scene or SceneModel.load(path), further, counting, known=known[len(times) :]
        )
        self._latest, self.times = (path, tuple(accepted), scene), times + found
        if len(known) < len(self.times):
            remember(path, accepted, self.times)
        return scene


class Judging(SceneNames):
    """Judges documents by one model, and files the events that they make.

    Events are joined at the threshold of twice the budget. One is an alarm if its strongest
    document is below the threshold of the budget itself, from that document on; where zones are
    drawn, of the budget that holds where the document is unusual, unless that place is quiet.
    Sentences name zones and behaviours as people do. `new_id` makes the id of an event that starts
    at a time; `speed` is the number of seconds of video in a second; `clock` gives the local time
    by which zones have their hours, None where nobody knows it; `limit` keeps all budgets, also
    over several models. A model that cannot judge video is a HabitusError.
    """

    def __init__(
        self,
        scene: SceneModel,
        alerts: AlertOrder,
        *,
        name: str,
        filing: Filing,
        new_id: Callable[[float], str],
        speed: float = 1.0,
        clock: Callable[[float], datetime] | None = datetime.fromtimestamp,
        limit: AlarmLimit | None = None,
    ) -> None:
        vocabulary = scene.model.vocabulary_
        if vocabulary is None:
            raise InvalidInputError("the model was not learnt from video: learn the camera anew")
        self.vocabulary = vocabulary
        check = CameraCheck.of(scene.model, "the model")
        monitor = SceneMonitor(check, name, clip=scene.model.clip_)
        detector = scene.detector(alerts_per_day=alerts.alerts_per_day)
        self.observer = Observer(detector, name, monitor)
        self.observer.joiner.names = self
        self.limit = limit or AlarmLimit(alerts.alerts_per_day)
        self.observer.joiner.limit = self.limit
        self.detector, self.habits = detector, detector.habits
        self.filing, self.new_id, self.speed, self.clock = filing, new_id, speed, clock
        self.time = 0.0
        """Of the latest document, in seconds since the epoch."""
        self.thresholds: tuple[float, ...] = ()
        """Of the budget of the camera, times `SHARES`."""
        self.adjust(alerts)
        self.event: SiteEvent | None = None
        """The event under way, as it was filed last."""
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

    def adjust(self, alerts: AlertOrder) -> None:
        """Raise so many alerts per day from now on, in these zones; call behaviours so."""
        zones = ZoneMap(alerts.zones, self.vocabulary)
        budgets = {zone.name: zone.alerts_per_day or alerts.alerts_per_day for zone in zones.zones}
        bars = {
            budget: [self.detector.bar(n * budget) for n in SHARES]
            for budget in {alerts.alerts_per_day, *budgets.values()}
        }
        thresholds = {k: tuple(bar.threshold for bar in of_budget) for k, of_budget in bars.items()}
        self.zones, self.thresholds = zones, thresholds[alerts.alerts_per_day]
        self.zone_thresholds = {
            name: thresholds[budget]
            for name, budget in budgets.items()
            if budget != alerts.alerts_per_day
        }
        self.detector.threshold = max(of_budget[-1] for of_budget in thresholds.values())
        self.limit.alerts_per_day, self.limit.zone_budgets = alerts.alerts_per_day, budgets
        of_camera = bars[alerts.alerts_per_day][SHARES.index(1.0)]
        self.notes: tuple[str, ...] = (*of_camera.notes, *zones.notes)
        self.behaviour_names = dict(alerts.behaviour_names)

    def place(self, box: tuple[int, int, int, int], vocabulary: Vocabulary) -> str:
        """Say where a box is: in which zone, or which part of the picture."""
        zone = self.zones.zone_of(box)
        return f"in {zone.name}" if zone else place_in_words(box, vocabulary)

    def behaviour(self, number: int) -> str:
        """Return what people call a behaviour."""
        return self.behaviour_names.get(number, "")

    def placed(self, boxes: tuple[Box, ...]) -> Placement:
        """Return what becomes of an unusual document: by its heaviest box that is not quiet."""
        places = [self._placed(self.zones.zone_of(box)) for box in boxes] or [self._placed(None)]
        return next((place for place in places if not place.quiet), places[0])

    def _placed(self, zone: Zone | None) -> Placement:
        name = zone.name if zone else ""
        _, threshold, listed = self.zone_thresholds.get(name, self.thresholds)
        quiet = self.zones.is_quiet(zone, self.clock(self.time) if self.clock else None)
        return Placement(name, threshold, listed, quiet)

    def take(self, arrival: LiveDocument) -> Judgement | None:
        """Judge a document, and file the events that start or end with it."""
        observer, self.time = self.observer, arrival.time
        for happening in observer.take(self._within_region(arrival)):
            if isinstance(happening, EventStarted):
                earlier = happening.event.peak - happening.event.start
                self._start(happening.event, arrival.time - earlier / self.speed)
            elif isinstance(happening, EventEnded):
                self._end(happening)
        event, now = self.event, observer.joiner.open
        if event is not None and now is not None and not event.alarm and now.alarm:
            self.event = self._file(now, event.id, event.start, observer.still)
        return observer.judgement

    def end_event(self) -> None:
        """End the event under way, if there is one: what follows is another matter."""
        for ended in self.observer.ended(self.observer.joiner.close()):
            self._end(ended)

    def _start(self, event: Event, start: float) -> None:
        self.event = self._file(event, self.new_id(start), start, self.observer.still)

    def _end(self, ended: EventEnded) -> None:
        if self.event is not None:
            event = replace(ended.event, alarm=self.event.alarm)
            self._file(event, self.event.id, self.event.start, ended.still, ended=True)
        self.event = None

    def _file(
        self, event: Event, id: str, start: float, still: Image | None, *, ended: bool = False
    ) -> SiteEvent:
        """Have an event filed, with times of day; return it so."""
        half = self.zone_thresholds.get(event.zone, self.thresholds)[0]
        site_event = SiteEvent(
            id=id,
            camera_id=self.filing.folder.name,
            start=start,
            end=start + (event.end - event.start) / self.speed if ended else None,
            peak=start + (event.peak - event.start) / self.speed,
            at_half=event.alarm and event.normality < half,
            details=event,
        )
        self.filing.add(PicturedEvent(site_event, self.vocabulary, self.habits, still))
        return site_event

    def _within_region(self, arrival: LiveDocument) -> LiveDocument:
        """Return a document without the words of cells that were masked when it was learnt."""
        if self._region is None:
            return arrival
        v, document = arrival.vocabulary, arrival.document
        if self._cells is None or self._cells[0] != v:
            self._cells = v, watched_cells(v, region=self._region).reshape(-1)
        watched = self._cells[1][np.asarray(document.words) // v.per_cell]
        words, counts = document.words[watched], document.counts[watched]
        return arrival._replace(document=document._replace(words=words, counts=counts))
