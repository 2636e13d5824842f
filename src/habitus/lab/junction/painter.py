"""Frames of the simulated world, and the boxes of the objects that are visible in them."""

from typing import Any

import cv2
import numpy as np

from habitus.arrays import Array, Image
from habitus.compiled import compiled
from habitus.lab.junction.backdrop import CONTACT_SHADOW, backdrop, signal_poles, structure_depths
from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.layout import (
    CYCLE_LANE,
    HALF_ROAD,
    LANE_WIDTH,
    SignalLight,
    Signals,
    arm_direction,
    point_on_arm,
)
from habitus.lab.junction.raster import (
    NOISE_SIDE,
    darken,
    expose,
    noise_field,
    split_planes,
    stencil,
    to_i420,
    to_yuv,
)
from habitus.lab.junction.simulation import Simulation, SnapshotPair, random_stream
from habitus.lab.junction.solids import (
    BASE,
    COS,
    HEADING,
    HEIGHT,
    KIND,
    LENGTH,
    LUMA,
    N_ROLES,
    SIN,
    WIDTH,
    Solids,
    X,
    Y,
    cast_shadows,
    draw_objects,
    draw_order,
    in_view,
    place_quad,
    project_point,
    solids,
)
from habitus.lab.junction.traffic import Lane, Snapshot
from habitus.lab.junction.vehicles import FENCE, LAMP, ROLES, Colours
from habitus.lab.junction.weather import Shot, Weather

MIN_PIXELS = 16
"""Visible pixels that an object needs to count as visible: a quarter of a cell."""
N_COLUMNS = LUMA + 3 * N_ROLES
"""Columns of an object's row, colours included."""
FLICKER = 0.004
"""Standard deviation of the brightness of successive frames, as a share."""
LAMP_HEIGHTS = (3.05, 2.7, 2.35)
"""Heights of a signal's red, amber and green lamps, in metres."""
LAMP_COLOURS = ((60, 60, 235), (50, 160, 240), (120, 220, 70))
"""Colours of the lit lamps (blue, green, red)."""
LIT_LAMPS = {
    SignalLight.RED: (True, False, False),
    SignalLight.READY: (True, True, False),
    SignalLight.GREEN: (False, False, True),
    SignalLight.AMBER: (False, True, False),
}
"""Which of a signal's three lamps are lit."""
BRAKE_LIGHT, HAZARD_LIGHT = to_yuv(np.array([50.0, 40, 215])), to_yuv(np.array([60.0, 170, 255]))
"""Colours (Y, U, V) of tail lamps."""
FENCE_SPAN = (18.0, 45.0)
"""Distances from the centre between which a fence stands round a lane, in metres."""
FENCE_SIZE = (3.0, 0.1, 1.0)
"""Length, thickness and height of a board of a fence, in metres."""
FENCE_MARGIN = 0.25
"""Distance of a fence from the edges of its lane: other lanes stay free."""
FENCE_COLOURS = {"paint": (35.0, 35, 215), "second": (245.0, 245, 245)}
"""Colours (blue, green, red) of a fence's stripes, by role."""
LANE_EDGES = {
    "left": (0.5 * LANE_WIDTH, 1.5 * LANE_WIDTH),
    "right": (-0.5 * LANE_WIDTH, 0.5 * LANE_WIDTH),
    "cycle": (2 * CYCLE_LANE - HALF_ROAD, HALF_ROAD),
}
"""Right and left edge of each lane, to the left of the middle of the road, in metres."""
ANOTHER_TIME = 3600.0
"""Seconds within which the weather of a scene that is seen at another time begins."""


class Painter:
    """Draws frames of the world as one camera sees them; the same input gives the same frame.

    `traffic` is the seed of noise and of the moment of the weather, if the scene is seen at another
    time; a fence stands round the lanes that are `fenced`.
    """

    def __init__(
        self,
        camera: Camera,
        light: Daylight,
        signals: Signals,
        seed: int,
        weather: tuple[str, ...] = (),
        *,
        traffic: int | None = None,
        fenced: frozenset[Lane] = frozenset(),
    ) -> None:
        self._weather = Weather(weather, camera, light, seed) if weather else None
        light = self._weather.light if self._weather else light
        self.camera, self.light, self.signals, self.seed = camera, light, signals, seed
        self.traffic = traffic
        self._weather_start = 0.0
        if traffic is not None:
            later = random_stream(seed, 7, traffic=traffic)
            self._weather_start = later.uniform(0, ANOTHER_TIME)
        rng = np.random.default_rng([seed, 3])
        still = backdrop(camera, light, seed)
        self._lit, self._shaded = (to_i420(to_yuv(p)) for p in (still.lit, still.shaded))
        self._depths, self._coarse = still.depths, np.ascontiguousarray(still.depths[::2, ::2])
        self._noise = noise_field(rng)
        self._view = view_vector(camera)
        self._rows = np.zeros((camera.height + 2, camera.width + 2), np.float32)
        self._mask = np.zeros((camera.height, camera.width), np.uint8)
        self._cast_strength = light.shadow / max(light.shadow, CONTACT_SHADOW)
        self._lamps = _lamps(False), _lamps(True)
        self._fences = _painted(fences(fenced), light)
        self._colours_by_id: dict[int, Array] = {}
        self._sun = np.array([*light.sun, light.direct])

    def picture(self, objects: Array, number: int, time: float = 0.0) -> Image:
        """Draw a frame of objects (see `SnapshotPair.at`).

        Its noise depends only on its number, its weather only on its time.
        """
        shadows = np.zeros_like(self._mask)
        cast_shadows(shadows, self._rows, objects, self._view, self._sun, self._cast_strength)
        soft = np.asarray(cv2.blur(shadows, (3, 3)), np.uint8)
        picture = np.empty_like(self._lit)
        parts = split_planes(picture)
        darken(picture, self._lit, self._shaded, soft)
        order = draw_order(objects, self._view)
        draw_objects(
            parts,
            self._rows,
            self._depths,
            self._coarse,
            objects,
            order,
            self._view,
            self._sun,
            solids(),
        )
        if self._weather:
            moment = self._weather_start + time
            self._weather.draw(Shot(parts, self._depths, objects, moment))
        rng = random_stream(self.seed, 4, number, traffic=self.traffic)
        gain = 1 + FLICKER * rng.standard_normal() + 0.02 * np.sin(number / 1700 + self.seed)
        top, left = rng.integers(NOISE_SIDE, size=2)
        expose(parts.luma, self._noise, int(top), int(left), gain, self.light.noise)
        return picture

    def object_rows(self, pair: SnapshotPair) -> Array:
        """Return a row per object of a pair of snapshots, complete except for the poses."""
        snapshot = pair.before
        rows = _shapes(snapshot, N_COLUMNS)
        colours = [self._colours_of(object_id, pair.colours) for object_id in snapshot.ids.tolist()]
        rows[:, LUMA:] = np.array(colours).reshape(len(rows), 3 * N_ROLES)
        on = LUMA + ROLES.index("tail") + N_ROLES * np.arange(3)
        rows[np.ix_(snapshot.lamps & 1 > 0, on)] = BRAKE_LIGHT
        if snapshot.time % 0.8 < 0.4:
            for role in ("lamp", "tail"):
                on = LUMA + ROLES.index(role) + N_ROLES * np.arange(3)
                rows[np.ix_(snapshot.lamps & 2 > 0, on)] = HAZARD_LIGHT
        return np.concatenate([rows, self._signal_lamps(snapshot.time), self._fences])

    def _colours_of(self, object_id: int, colours: dict[int, Colours]) -> Array:
        """Return the brightness of an object's roles, then their colours; computed once."""
        if object_id not in self._colours_by_id:
            yuv = to_yuv(colours[object_id] * (self.light.gain * self.light.tint))
            self._colours_by_id[object_id] = yuv.T.ravel()
        return self._colours_by_id[object_id]

    def _signal_lamps(self, time: float) -> Array:
        """Return the rows of the signal lamps, lit as at a time."""
        lit = [
            LIT_LAMPS[self.signals.light(k // 2, "right" if k % 2 else "ahead", time)]
            for k in range(len(self._lamps[0]) // 3)
        ]
        return np.where(np.concatenate(lit)[:, None], self._lamps[1], self._lamps[0])


def _lamps(lit: bool) -> Array:
    """Return the rows of all signal lamps, which face the drivers who enter."""
    rows = np.zeros((3 * len(signal_poles()), N_COLUMNS))
    for k, row in enumerate(rows):
        u = arm_direction(k // 6)
        row[[X, Y]] = signal_poles()[k // 3] + 0.1 * u
        row[HEADING], row[KIND], row[COS], row[SIN] = np.arctan2(u[1], u[0]), LAMP, u[0], u[1]
        row[LENGTH], row[WIDTH], row[HEIGHT], row[BASE] = 0.1, 0.34, 0.34, LAMP_HEIGHTS[k % 3]
        colour = np.array(LAMP_COLOURS[k % 3] if lit else (30, 30, 30), float)
        row[LUMA:] = np.repeat(to_yuv(colour), N_ROLES)
    return rows


def fences(lanes: frozenset[Lane]) -> Array:
    """Return the rows of the boards that stand round lanes, without colours."""
    rows = [board for lane in sorted(lanes) for board in _boards(lane)]
    return np.array(rows).reshape(-1, LUMA)


def _boards(lane: Lane) -> list[Array]:
    """Return the rows of the boards round a lane: along both sides, and across both ends."""
    (near, far), (length, thick, height) = FENCE_SPAN, FENCE_SIZE
    right, left = LANE_EDGES[lane.name]
    right, left = right + FENCE_MARGIN, left - FENCE_MARGIN
    middles = np.arange(near + 0.5 * length, far, length)
    along, across = arm_direction(lane.arm), point_on_arm(lane.arm, 0.0, 1.0)
    places = [(d, side, along, length) for side in (right, left) for d in middles]
    places += [(d, 0.5 * (left + right), across, left - right) for d in FENCE_SPAN]
    rows = []
    for distance, side, u, long in places:
        row = np.zeros(LUMA)
        row[[X, Y]], row[KIND] = point_on_arm(lane.arm, distance, side), FENCE
        row[HEADING], row[COS], row[SIN] = np.arctan2(u[1], u[0]), u[0], u[1]
        row[LENGTH], row[WIDTH], row[HEIGHT] = long, thick, height
        rows.append(row)
    return rows


def _painted(boards: Array, light: Daylight) -> Array:
    """Return the rows of boards with their colours."""
    colours = np.zeros((3, N_ROLES))
    for role, colour in FENCE_COLOURS.items():
        colours[:, ROLES.index(role)] = to_yuv(np.array(colour) * light.gain * light.tint)
    return np.hstack([boards, np.tile(colours.ravel(), (len(boards), 1))])


def view_vector(camera: Camera) -> Array:
    """Return a camera as the vector that the kernels of `solids` expect."""
    centre = camera.width / 2, camera.height / 2
    return np.array([*camera.position, *camera.axes.ravel(), camera.focal, *centre])


@compiled
def visible_extent(
    mask: Image,
    rows: Any,
    depths: Any,
    objects: Array,
    order: Any,
    which: int,
    view: Array,
    shapes: Solids,
) -> tuple[int, int, int, int, int]:
    """Return the number of visible pixels of an object and their box; `mask` stays zero.

    Equals `_count_and_box` of a mask on which `stencil` wrote 1 for the object `which` and 2 for
    all that come later in `order`.
    """
    xs, ys, at = np.empty(4), np.empty(4), np.empty((4, 3))
    found, reach = False, 0.0
    for i in order:
        found = found or i == which
        obj = objects[i]
        if not found or not in_view(obj, view):
            continue
        if i == which:
            _, _, reach = project_point(view, obj[X], obj[Y], 0.0)
        first, last = shapes.ranges[int(obj[KIND])]
        for q in range(first, last):
            place_quad(obj, shapes.corners[q], shapes.swings[q], at)
            for k in range(4):
                xs[k], ys[k], _ = project_point(view, at[k, 0], at[k, 1], at[k, 2])
            # nearer objects overwrite the mask with 2
            stencil(mask, rows, xs, ys, 4, 1 if i == which else 2)
    return _count_and_box(mask, depths, reach - 1.0)


@compiled
def _count_and_box(mask: Image, depths: Any, reach: float) -> tuple[int, int, int, int, int]:
    """Return count and box of a mask's ones in front of all structures; clear the mask.

    Equals ``ys, xs = nonzero((mask == 1) & (depths > reach))`` with ``len(xs), xs.min(), ys.min(),
    xs.max() + 1, ys.max() + 1``.
    """
    height, width = mask.shape
    n, left, top, right, bottom = 0, width, height, 0, 0
    for y in range(height):
        for x in range(width):
            if mask[y, x] == 1 and depths[y, x] > reach:
                n += 1
                left, right = min(left, x), max(right, x + 1)
                top, bottom = min(top, y), max(bottom, y + 1)
            mask[y, x] = 0
    return n, left, top, right, bottom


class VisibleBoxes:
    """Finds the visible part of an object in a frame."""

    def __init__(
        self,
        simulation: Simulation,
        width: int,
        height: int,
        seed: int,
        *,
        fenced: frozenset[Lane] = frozenset(),
    ) -> None:
        self.view = view_vector(simulation.camera)
        self.depths = structure_depths(simulation.camera, simulation.light, seed)
        self.rows = np.zeros((height + 2, width + 2), np.float32)
        self.mask = np.zeros((height, width), np.uint8)
        self._fences = fences(fenced)

    def box(self, pair: SnapshotPair, time: float, which: int) -> list[int] | None:
        """Return left, top, right, bottom; None if the object is hidden or outside."""
        shapes = np.concatenate([_shapes(pair.before, LUMA), self._fences])
        objects = pair.at(time, shapes)
        order = draw_order(objects, self.view)
        n, *box = visible_extent(
            self.mask, self.rows, self.depths, objects, order, which, self.view, solids()
        )
        return [int(side) for side in box] if n >= MIN_PIXELS else None


def _shapes(snapshot: Snapshot, n_columns: int) -> Array:
    """Return a row per object, complete except for poses and colours."""
    rows = np.zeros((len(snapshot.ids), n_columns))
    rows[:, [LENGTH, WIDTH, HEIGHT]] = snapshot.sizes
    rows[:, KIND] = snapshot.kinds
    return rows
