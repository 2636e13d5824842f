"""A junction to be rendered: its settings, its frames and its truth."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.lab.junction.anomalies import KINDS
from habitus.lab.junction.backdrop import depths
from habitus.lab.junction.drawing import Painter, view
from habitus.lab.junction.labels import FEWEST, Anomaly, visible
from habitus.lab.junction.layout import Points
from habitus.lab.junction.raster import Plane
from habitus.lab.junction.simulation import Interval, Simulation
from habitus.lab.junction.solids import solids
from habitus.lab.junction.sprites import HEIGHT, KIND, LENGTH, LIT, WIDTH, far_to_near
from habitus.lab.junction.traffic import STEP

SMALLEST, LARGEST = 64, 7680
"""Sides of a frame."""


class Moment(NamedTuple):
    """A frame's number and time, and the interval of the world that it falls into."""

    number: int
    time: float
    interval: Interval
    fresh: bool
    """Whether the interval is another one than the last frame's."""


@dataclass(frozen=True)
class Junction:
    """A signalised four-arm junction seen by a camera on a mast: all from one seed.

    Frames are planar YUV 4:2:0; `to_bgr` converts them.
    """

    seed: int = 0
    seconds: float = 900.0
    width: int = 360
    height: int = 288
    fps: float = 25.0
    density: float = 1.0
    """Of the traffic: 1 is busy, 0.5 quiet, 2 jammed."""
    anomalies: tuple[str, ...] = KINDS
    """Kinds that happen; each about as often as the others."""
    anomalies_per_hour: float = 40.0
    normal_for: float = 300.0
    """Seconds at the start without anomalies."""

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "anomalies", tuple(self.anomalies))

    @property
    def n_frames(self) -> int:
        """In all."""
        return round(self.seconds * self.fps)

    def frames(self) -> Iterator[Plane]:
        """Every frame: height * 3 / 2 rows x width bytes, I420 (brightness, then both colours)."""
        simulation = self._simulation()
        painter = Painter(simulation.camera, simulation.light, simulation.world.signals, self.seed)
        rows = np.zeros((0, 0))
        for moment in self._moments(simulation):
            if moment.fresh:
                rows = painter.looks(moment.interval)
            yield painter.picture(moment.interval.at(moment.time, rows), moment.number)

    def truth(self) -> tuple[Anomaly, ...]:
        """All anomalies that are seen, in order of time; nothing is rendered for it."""
        return _truth(self)

    def _found(self) -> Iterator[tuple[int, str, list[int]]]:
        """Each anomaly's number, kind, and frame and box, frame by frame."""
        simulation = self._simulation()
        search = _Search(simulation, self.width, self.height, self.seed)
        for moment in self._moments(simulation):
            events = moment.interval.before.events
            for which in np.flatnonzero(events >= 0):
                event = int(events[which])
                box = search.box(moment, int(which))
                if box is not None:
                    yield event, simulation.director.happened[event], [moment.number, *box]

    def _simulation(self) -> Simulation:
        return Simulation.start(
            self.seed,
            (self.width, self.height),
            self.density,
            self.anomalies,
            self.anomalies_per_hour,
            self.normal_for,
        )

    def _moments(self, simulation: Simulation) -> Iterator[Moment]:
        intervals = simulation.intervals()
        at, interval = -1, None
        for number in range(self.n_frames):
            time = number / self.fps
            fresh = False
            while interval is None or (at + 1) * STEP <= time + 1e-9:
                interval, at, fresh = next(intervals), at + 1, True
            yield Moment(number, time, interval, fresh)


@lru_cache(maxsize=16)
def _truth(scene: Junction) -> tuple[Anomaly, ...]:
    boxes: dict[tuple[int, str], list[list[int]]] = {}
    for event, kind, box in scene._found():
        boxes.setdefault((event, kind), []).append(box)
    return tuple(
        _anomaly(kind, np.array(found, np.int64), scene.fps)
        for (_, kind), found in sorted(boxes.items(), key=lambda item: item[1][0])
    )


def _anomaly(kind: str, boxes: NDArray[np.int64], fps: float) -> Anomaly:
    boxes.setflags(write=False)  # all who ask for the truth share it
    return Anomaly(kind, int(boxes[0, 0]) / fps, int(boxes[-1, 0] + 1) / fps, boxes)


class _Search:
    """Finds the part of a thing that is seen in a frame."""

    def __init__(self, simulation: Simulation, width: int, height: int, seed: int) -> None:
        self.view = view(simulation.camera)
        self.depths = depths(simulation.camera, simulation.light, seed)
        self.rows = np.zeros((height + 2, width + 2), np.float32)
        self.mask = np.zeros((height, width), np.uint8)

    def box(self, moment: Moment, which: int) -> list[int] | None:
        """Left, top, right, bottom; None if it is hidden or outside."""
        things = moment.interval.at(moment.time, self._shapes(moment.interval))
        order, shape = far_to_near(things, self.view), solids()
        n, *box = visible(
            self.mask, self.rows, self.depths, things, order, which, self.view, shape.corners,
            shape.swings, shape.ranges,
        )  # fmt: skip
        return [int(side) for side in box] if n >= FEWEST else None

    def _shapes(self, interval: Interval) -> Points:
        rows = np.zeros((len(interval.before.ids), LIT))
        rows[:, [LENGTH, WIDTH, HEIGHT]] = interval.before.sizes
        rows[:, KIND] = interval.before.kinds
        return rows


def _check(scene: Junction) -> None:
    """Refuse settings that no video can have."""
    kinds: object = scene.anomalies
    if isinstance(kinds, str):
        raise InvalidInputError(
            f"anomalies of a junction are {kinds!r}: expected several kinds; try ({kinds!r},)"
        )
    unknown = [kind for kind in scene.anomalies if kind not in KINDS]
    if unknown:
        raise InvalidInputError(
            f"unknown kind of anomaly {unknown[0]!r}: choose from {', '.join(KINDS)}"
        )
    for name, low, high in LIMITS:
        value = getattr(scene, name)
        if not (
            isinstance(value, int | float | np.number)
            and math.isfinite(value)
            and low <= value <= high
        ):
            raise InvalidInputError(
                f"{name} of a junction is {value!r}: expected a number from {low:g} to {high:g}"
            )
    for name in ("seed", "width", "height"):
        value = getattr(scene, name)
        if value != int(value):
            raise InvalidInputError(f"{name} of a junction is {value!r}: expected a whole number")
    for name in ("width", "height"):
        value = getattr(scene, name)
        if value % 2:
            raise InvalidInputError(
                f"{name} of a junction is {value}: expected an even number, as H.264 needs; "
                f"try {value + 1}"
            )


LIMITS = (
    ("seed", 0, 2**63 - 1),
    ("seconds", 0.04, 7 * 86400),
    ("width", SMALLEST, LARGEST),
    ("height", SMALLEST, LARGEST),
    ("fps", 1, 240),
    ("density", 0, 5),
    ("anomalies_per_hour", 0, 360),
    ("normal_for", 0, 7 * 86400),
)
