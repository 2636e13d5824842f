"""Junction scenes: their settings, frames, labels, and the files they are written to."""

import csv
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import av
import av.error
import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.lab.junction.anomalies import KINDS, AnomalyScheduler
from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.painter import Painter, VisibleBoxes
from habitus.lab.junction.traffic import (
    LANE_NAMES,
    STEP,
    Lane,
    SnapshotPair,
    World,
    paired,
    random_stream,
)
from habitus.lab.junction.weather import WEATHER
from habitus.progress import Progress, ProgressCallback, ignore_progress

SMALLEST, LARGEST = 64, 7680
"""Limits of the sides of a frame, in pixels."""
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
"""Least and greatest value of each setting of a junction."""
X264_OPTIONS = {
    "preset": "veryfast",
    "crf": "23",
    "threads": "1",
    "x264-params": "ref=1:me=dia:subme=1:mbtree=0:trellis=0",
}
"""A fast motion search, as in a camera. A scene always gives the same bytes: with one thread, and
without the macroblock tree, which reads memory that nobody has written (x264 of FFmpeg 8.1)."""
KEYFRAME_SECONDS = 2.0
"""Seconds between keyframes."""
RENDERED_AHEAD = 8
"""Frames that may wait to be encoded."""

FilePath = str | os.PathLike[str]
"""Path of a file to write."""


class Anomaly(NamedTuple):
    """A labelled anomaly of a `Junction`, from its first to its last visible frame.

    Attributes
    ----------
    kind
        One of `KINDS`.
    start, end
        Seconds: the start of the first frame and the end of the last.
    boxes
        Shape (visible frames, 5): frame number, then left, top, right, bottom of the visible part
        in pixels; right and bottom are exclusive.

    Examples
    --------
    >>> import numpy as np
    >>> boxes = np.array([[25, 10, 20, 30, 40], [26, 12, 20, 32, 41]])
    >>> Anomaly("u-turn", start=1.0, end=1.08, boxes=boxes).box
    (10, 20, 32, 41)
    """

    kind: str
    start: float
    end: float
    boxes: NDArray[np.int64]

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Smallest box (left, top, right, bottom) that contains all boxes."""
        left, top = self.boxes[:, 1:3].min(axis=0)
        right, bottom = self.boxes[:, 3:5].max(axis=0)
        return int(left), int(top), int(right), int(bottom)


@dataclass(frozen=True)
class Junction:
    """A rendered scene: a signalised four-arm junction, seen by a camera on a mast.

    Camera, weather, buildings, traffic and anomalies all follow from the seed; the same settings
    give the same frames and labels, bit for bit.

    Parameters
    ----------
    seed
        Seed of everything that is random.
    seconds
        Duration.
    width, height
        Size of a frame in pixels; both even.
    fps
        Frames per second.
    density
        Amount of traffic: 0.5 is quiet, 1 busy, 2 congested.
    anomalies
        Kinds of anomalies that may happen, each about equally often; see `KINDS`.
    anomalies_per_hour
        Mean rate of anomalies.
    normal_for
        Seconds at the start without anomalies.
    weather
        What else moves or is dark, any of `WEATHER`; traffic and anomalies are the same. Insects
        are meant for the night, which they make one in infrared.
    traffic
        Seed of who comes when, if the same scene is to be seen at another time; None for the
        scene's own. Camera, light, backdrop, flows and the signals' timing are those of `seed`;
        anomalies, noise and the moment of the weather are others.
    closed
        Lanes in which nobody arrives, any of `LANE_NAMES`, such as "east right" or "north cycle".
        Anomalies may use them all the same.
    fenced
        Lanes that are closed and have a works fence round them, with red and white stripes.

    Raises
    ------
    InvalidInputError
        If a setting is out of range or of the wrong type.

    Examples
    --------
    >>> scene = Junction(seed=1, seconds=2.0, width=64, height=64, fps=5.0)
    >>> scene.n_frames
    10
    >>> next(scene.frames()).shape  # planar YUV 4:2:0
    (96, 64)
    >>> scene.truth()  # too short for an anomaly
    ()
    """

    seed: int = 0
    seconds: float = 900.0
    width: int = 360
    height: int = 288
    fps: float = 25.0
    density: float = 1.0
    anomalies: tuple[str, ...] = KINDS
    anomalies_per_hour: float = 40.0
    normal_for: float = 300.0
    weather: tuple[str, ...] = ()
    traffic: int | None = None
    closed: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "anomalies", tuple(self.anomalies))
        for name in ("weather", "closed", "fenced"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return round(self.seconds * self.fps)

    def frames(self) -> Iterator[Image]:
        """Yield every frame as planar YUV 4:2:0 (I420), as encoders expect; see `to_bgr`."""
        simulation = Simulation(self)
        drawn = simulation.camera, simulation.light, simulation.world.signals, self.seed
        painter = Painter(*drawn, self.weather, traffic=self.traffic, fenced=_lanes(self.fenced))
        for number, time, pair in simulation.frames():
            yield painter.frame(pair, number, time)

    def truth(self) -> tuple[Anomaly, ...]:
        """Return the anomalies with 16 visible pixels in some frame, by time, without rendering."""
        return _truth(self)


def _lanes(names: tuple[str, ...]) -> frozenset[Lane]:
    """Return the lanes that have these names."""
    return frozenset(Lane.named(name) for name in names)


class Simulation:
    """Everything that the settings of a scene decide, before any drawing; traffic has warmed up."""

    def __init__(self, scene: Junction) -> None:
        self.scene, seed, traffic = scene, scene.seed, scene.traffic
        rng = random_stream(seed, 0)
        self.camera = Camera.random(rng, scene.width, scene.height)
        self.light = Daylight.random(rng)
        own = None if traffic is None else random_stream(seed, 1, traffic=traffic)
        closed = _lanes(scene.closed + scene.fenced)
        density, rng = scene.density, random_stream(seed, 1)
        self.world = World(rng, density, self.camera, traffic=own, closed=closed)
        self.scheduler = AnomalyScheduler(
            random_stream(seed, 2, traffic=traffic),
            scene.anomalies,
            scene.anomalies_per_hour,
            scene.normal_for,
        )
        while self.world.time < -STEP / 2:
            self.world.advance()

    def frames(self) -> Iterator[tuple[int, float, SnapshotPair]]:
        """Yield number and time of each frame, and the pair of snapshots between which it falls."""
        pairs = self.pairs()
        at, pair = 0, next(pairs)
        for number in range(self.scene.n_frames):
            time = number / self.scene.fps
            while (at + 1) * STEP <= time + 1e-9:
                pair, at = next(pairs), at + 1
            yield number, time, pair

    def pairs(self) -> Iterator[SnapshotPair]:
        """Yield pairs of successive snapshots from time 0 on, without end."""
        before = self.world.snapshot()
        while True:
            self.scheduler.update(self.world)
            self.world.advance()
            after = self.world.snapshot()
            yield paired(before, after, self.world.colours)
            before = after


@lru_cache(maxsize=16)
def _truth(scene: Junction) -> tuple[Anomaly, ...]:
    """Return the anomalies of a scene; cached, so that their boxes cannot be changed."""
    simulation = Simulation(scene)
    fenced = _lanes(scene.fenced)
    search = VisibleBoxes(simulation.camera, simulation.light, scene.seed, fenced=fenced)
    rows_of: dict[int, list[list[int]]] = {}
    for number, time, pair in simulation.frames():
        anomalies = pair.before.anomalies
        for which in np.flatnonzero(anomalies >= 0).tolist():
            box = search.box(pair, time, which)
            if box is not None:
                rows_of.setdefault(int(anomalies[which]), []).append([number, *box])
    truth = []
    for anomaly, rows in sorted(rows_of.items(), key=lambda item: item[1][0]):
        kind, boxes = simulation.scheduler.started[anomaly], np.array(rows, np.int64)
        boxes.setflags(write=False)
        truth.append(Anomaly(kind, rows[0][0] / scene.fps, (rows[-1][0] + 1) / scene.fps, boxes))
    return tuple(truth)


def _check(scene: Junction) -> None:
    """Raise an error for settings that no scene can have."""
    lists = {"anomalies": KINDS, "weather": WEATHER, "closed": LANE_NAMES, "fenced": LANE_NAMES}
    for name, known in lists.items():
        _check_kinds(name, getattr(scene, name), known)
    traffic = scene.traffic
    if traffic is not None and not (isinstance(traffic, int | np.integer) and traffic >= 0):
        raise _refused("traffic", f" is {traffic!r}: expected a whole number from 0 on, or None")
    for name, low, high in LIMITS:
        value = getattr(scene, name)
        is_number = isinstance(value, int | float | np.number) and math.isfinite(value)
        if not (is_number and low <= value <= high):
            raise _refused(name, f" is {value!r}: expected a number from {low:g} to {high:g}")
        if name in ("seed", "width", "height") and value != int(value):
            raise _refused(name, f" is {value!r}: expected a whole number")
        if name in ("width", "height") and value % 2:
            even = f"expected an even number, as H.264 needs; try {value + 1}"
            raise _refused(name, f" is {value}: {even}")


def _check_kinds(name: str, kinds: object, known: tuple[str, ...]) -> None:
    """Raise an error unless these are several of the known kinds."""
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise _refused(name, f": expected several kinds, found {kinds!r}; try ({kinds!r},)")
    for kind in kinds:
        if kind not in known:
            raise _refused(name, f": unknown kind {kind!r}; choose from {', '.join(known)}")


def _refused(name: str, text: str) -> InvalidInputError:
    return InvalidInputError(f"{name} of a junction{text}", parameter=name)


def to_bgr(picture: Image) -> Image:
    """Convert a frame of `Junction.frames` to blue, green, red: (height, width, 3), 8 bits each.

    >>> import numpy as np
    >>> to_bgr(np.full((96, 64), 128, np.uint8))[0, 0].tolist()
    [130, 130, 130]
    """
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_YUV2BGR_I420), np.uint8)


def render(scene: Junction, path: FilePath, *, progress: ProgressCallback | None = None) -> None:
    """Write a scene as H.264 video.

    The file is written completely or not at all.

    Parameters
    ----------
    scene
        Scene to render.
    path
        File to write; its suffix decides the container, such as ``.mp4``.
    progress
        Receives the stage "rendering" with the frames done and in total, after each frame.

    Raises
    ------
    InvalidInputError
        If the container cannot hold H.264 video.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> scene = Junction(seed=1, seconds=1.0, width=64, height=64, fps=5.0)
    >>> with TemporaryDirectory() as folder:
    ...     render(scene, Path(folder, "scene.mp4"))
    ...     Path(folder, "scene.mp4").stat().st_size > 0
    True
    """
    with written_whole(path) as temporary:
        try:
            _encode(scene, str(temporary), progress or ignore_progress)
        except (av.error.FFmpegError, ValueError) as error:
            raise InvalidInputError(f"cannot write {path} as H.264 video: {error}") from error


def _encode(scene: Junction, path: str, progress: ProgressCallback) -> None:
    """Encode every frame, reporting progress."""
    rate = Fraction(scene.fps).limit_denominator(1001)
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = scene.width, scene.height, "yuv420p"
        stream.gop_size = max(1, round(KEYFRAME_SECONDS * scene.fps))
        stream.thread_count, stream.options = 1, dict(X264_OPTIONS)
        with ThreadPoolExecutor(1) as pool:  # renders frames while those before are encoded
            frames, done = scene.frames(), 0
            ahead = deque(pool.submit(next, frames, None) for _ in range(RENDERED_AHEAD))
            while (picture := ahead.popleft().result()) is not None:
                ahead.append(pool.submit(next, frames, None))
                done += 1
                frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
                container.mux(stream.encode(frame))
                progress(Progress("rendering", done, scene.n_frames))
        container.mux(stream.encode())


def write_labels(scene: Junction, path: FilePath) -> None:
    """Write a CSV table of the anomalies of a scene, one row per anomaly.

    The columns are start and end in seconds, kind, and the box around the whole anomaly (left, top,
    right, bottom in pixels).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> scene = Junction(seed=1, seconds=1.0, width=64, height=64, fps=5.0)
    >>> with TemporaryDirectory() as folder:
    ...     write_labels(scene, Path(folder, "labels.csv"))
    ...     print(Path(folder, "labels.csv").read_text().strip())
    start,end,kind,left,top,right,bottom
    """
    rows = [(f"{a.start:.3f}", f"{a.end:.3f}", a.kind, *a.box) for a in scene.truth()]
    _write(path, ("start", "end", "kind", "left", "top", "right", "bottom"), rows)


def write_boxes(scene: Junction, path: FilePath) -> None:
    """Write a CSV table of the boxes of a scene's anomalies, one row per frame and anomaly.

    The columns are frame number, time in seconds, number of the anomaly (``event``), kind, and the
    box of the visible part (left, top, right, bottom in pixels).
    """
    rows = [
        (frame, f"{frame / scene.fps:.3f}", event, anomaly.kind, *box)
        for event, anomaly in enumerate(scene.truth())
        for frame, *box in anomaly.boxes.tolist()
    ]
    head = ("frame", "time", "event", "kind", "left", "top", "right", "bottom")
    _write(path, head, sorted(rows))


def _write(path: FilePath, head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Write a CSV table, completely or not at all."""
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
