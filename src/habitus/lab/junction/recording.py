"""Junction scenes: their settings, frames, labels, and the files they are written to."""

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from queue import Queue
from threading import Event, Thread
from typing import NamedTuple

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.lab.junction.anomalies import KINDS
from habitus.lab.junction.painter import Painter, VisibleBoxes
from habitus.lab.junction.simulation import Simulation, SnapshotPair
from habitus.lab.junction.traffic import STEP

SMALLEST, LARGEST = 64, 7680
"""Sides of a frame."""
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
OPTIONS = {
    "preset": "veryfast",
    "crf": "23",
    "threads": "1",
    "x264-params": "ref=1:me=dia:subme=1:rc-lookahead=10:trellis=0",
}
"""One thread, so that the same scene gives the same bytes; a search as short as a camera's own."""
KEYFRAMES = 2.0
"""Seconds between keyframes."""
AHEAD = 32
"""Frames that may be rendered before they are encoded."""

FilePath = str | os.PathLike[str]


class Anomaly(NamedTuple):
    """Something abnormal, as long as it is seen to be."""

    kind: str
    start: float
    end: float
    """In seconds: from its first frame to the end of its last."""
    boxes: NDArray[np.int64]
    """Frames in which it is seen x 5: frame number, left, top, right, bottom, in pixels of the part
    that is seen; right and bottom are exclusive."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of all its boxes together."""
        left, top = self.boxes[:, 1:3].min(axis=0)
        right, bottom = self.boxes[:, 3:5].max(axis=0)
        return int(left), int(top), int(right), int(bottom)


class FrameTime(NamedTuple):
    """A frame's number and time, and the interval of the world that it falls into."""

    number: int
    time: float
    interval: SnapshotPair
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

    def frames(self) -> Iterator[Image]:
        """Every frame: height * 3 / 2 rows x width bytes, I420 (brightness, then both colours)."""
        simulation = self._simulation()
        painter = Painter(simulation.camera, simulation.light, simulation.world.signals, self.seed)
        rows = np.zeros((0, 0))
        for moment in self._moments(simulation):
            if moment.fresh:
                rows = painter.object_rows(moment.interval)
            yield painter.picture(moment.interval.at(moment.time, rows), moment.number)

    def truth(self) -> tuple[Anomaly, ...]:
        """All anomalies that are seen, in order of time; nothing is rendered for it."""
        return _truth(self)

    def _found(self) -> Iterator[tuple[int, str, list[int]]]:
        """Each anomaly's number, kind, and frame and box, frame by frame."""
        simulation = self._simulation()
        search = VisibleBoxes(simulation, self.width, self.height, self.seed)
        for moment in self._moments(simulation):
            events = moment.interval.before.anomalies
            for which in np.flatnonzero(events >= 0):
                event = int(events[which])
                box = search.box(moment.interval, moment.time, int(which))
                if box is not None:
                    yield event, simulation.scheduler.started[event], [moment.number, *box]

    def _simulation(self) -> Simulation:
        return Simulation.start(
            self.seed,
            (self.width, self.height),
            self.density,
            self.anomalies,
            self.anomalies_per_hour,
            self.normal_for,
        )

    def _moments(self, simulation: Simulation) -> Iterator[FrameTime]:
        intervals = simulation.intervals()
        at, interval = -1, None
        for number in range(self.n_frames):
            time = number / self.fps
            fresh = False
            while interval is None or (at + 1) * STEP <= time + 1e-9:
                interval, at, fresh = next(intervals), at + 1, True
            yield FrameTime(number, time, interval, fresh)


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


def render(
    scene: Junction, path: FilePath, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write a scene as H.264 video, whole or not at all; `progress` gets frames done and in all."""
    with written_whole(path) as temporary:
        try:
            _encode(scene, str(temporary), progress or (lambda done, total: None))
        except (av.error.FFmpegError, ValueError) as error:
            raise InvalidInputError(f"cannot write {path} as H.264 video: {error}") from error


def _encode(scene: Junction, path: str, progress: Callable[[int, int], None]) -> None:
    rate = Fraction(scene.fps).limit_denominator(1001)
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = scene.width, scene.height, "yuv420p"
        stream.gop_size = max(1, round(KEYFRAMES * scene.fps))
        stream.thread_count, stream.options = 1, dict(OPTIONS)
        for done, picture in enumerate(_ahead(scene.frames()), start=1):
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            container.mux(stream.encode(frame))
            progress(done, scene.n_frames)
        container.mux(stream.encode())


def _ahead(pictures: Iterable[Image]) -> Iterator[Image]:
    """The same, rendered in a thread of its own: kernels and encoder leave each other alone."""
    waiting: Queue[Image | BaseException | None] = Queue(AHEAD)
    over = Event()

    def work() -> None:
        try:
            for picture in pictures:
                waiting.put(picture)
                if over.is_set():
                    return
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    worker = Thread(target=work, daemon=True)
    worker.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        while worker.is_alive():
            while not waiting.empty():
                waiting.get()
            worker.join(0.01)


def write_labels(scene: Junction, path: FilePath) -> None:
    """Write a CSV table of the anomalies: when, of what kind, and the box around all its boxes."""
    rows = [(_s(a.start), _s(a.end), a.kind, *a.box) for a in scene.truth()]
    _write(path, ("start", "end", "kind", "left", "top", "right", "bottom"), rows)


def write_boxes(scene: Junction, path: FilePath) -> None:
    """Write a CSV table of the anomalies' boxes, frame by frame."""
    rows = [
        (frame, _s(frame / scene.fps), event, anomaly.kind, *box)
        for event, anomaly in enumerate(scene.truth())
        for frame, *box in anomaly.boxes.tolist()
    ]
    head = ("frame", "time", "event", "kind", "left", "top", "right", "bottom")
    _write(path, head, sorted(rows))


def _s(seconds: float) -> str:
    return f"{seconds:.3f}"


def _write(path: FilePath, head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *rows])
