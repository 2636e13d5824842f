"""Frames of the simulated world, and the boxes of the objects that are visible in them."""

import cv2
import numpy as np

from habitus.arrays import Array, Image
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
    to_i420,
    to_yuv,
)
from habitus.lab.junction.solids import (
    cast_shadows,
    draw_objects,
    draw_order,
    project_point,
    solids,
    stencil_visible,
)
from habitus.lab.junction.traffic import Lane, SnapshotPair, random_stream
from habitus.lab.junction.vehicles import (
    BASE,
    COS,
    FENCE,
    HEADING,
    HEIGHT,
    KIND,
    LAMP,
    LENGTH,
    LUMA,
    N_ROLES,
    ROLES,
    SIN,
    WIDTH,
    Colours,
    X,
    Y,
)
from habitus.lab.junction.weather import Shot, daylight, effects

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
        light = daylight(weather, light)
        self.light, self.signals, self.seed, self.traffic = light, signals, seed, traffic
        self._effects = effects(weather, camera, seed)
        self._weather_start = 0.0
        if traffic is not None:
            later = random_stream(seed, 7, traffic=traffic)
            self._weather_start = later.uniform(0, ANOTHER_TIME)
        rng = np.random.default_rng([seed, 3])
        still = backdrop(camera, light, seed)
        self._lit, self._shaded = (to_i420(to_yuv(p)) for p in (still.lit, still.shaded))
        self._depths, self._coarse = still.depths, np.ascontiguousarray(still.depths[::2, ::2])
        self._noise = noise_field(rng, camera.height, camera.width)
        self._view = camera.view
        self._rows = np.zeros((camera.height + 2, camera.width + 2), np.float32)
        self._cast_strength = light.shadow / max(light.shadow, CONTACT_SHADOW)
        self._lamps = _lamps(False), _lamps(True)
        self._fences = _painted(fences(fenced), light)
        self._colours_by_id: dict[int, Array] = {}
        self._pair: SnapshotPair | None = None
        self._objects = np.zeros((0, N_COLUMNS))
        self._sun = np.array([*light.sun, light.direct])

    def frame(self, pair: SnapshotPair, number: int, time: float) -> Image:
        """Draw a frame between two snapshots.

        Its noise depends only on its number, its weather only on its time.
        """
        if pair is not self._pair:
            self._pair, self._objects = pair, self._object_rows(pair)
        return self._picture(pair.at(time, self._objects), number, time)

    def _picture(self, objects: Array, number: int, time: float) -> Image:
        """Draw a frame of objects."""
        shadows = np.zeros(self._depths.shape, np.uint8)
        cast_shadows(shadows, self._rows, objects, self._view, self._sun, self._cast_strength)
        picture = self._lit.copy()
        darken(picture, self._shaded, np.asarray(cv2.blur(shadows, (3, 3)), np.uint8))
        parts = split_planes(picture)
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
        shot = Shot(parts, self._depths, objects, self._weather_start + time)
        for draw in self._effects:
            draw(shot)
        rng = random_stream(self.seed, 4, number, traffic=self.traffic)
        gain = 1 + FLICKER * rng.standard_normal() + 0.02 * np.sin(number / 1700 + self.seed)
        top, left = rng.integers(NOISE_SIDE, size=2)
        expose(parts.luma, self._noise, int(top), int(left), gain, self.light.noise)
        return picture

    def _object_rows(self, pair: SnapshotPair) -> Array:
        """Return a row per object of a pair of snapshots, with colours; then lamps and fences."""
        snapshot = pair.before
        colours = [self._colours_of(object_id, pair.colours) for object_id in snapshot.ids.tolist()]
        rows = np.hstack([snapshot.rows, np.array(colours).reshape(-1, 3 * N_ROLES)])
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
    rows = []
    for k in range(3 * len(signal_poles())):
        u = arm_direction(k // 6)
        lamp = _row(LAMP, signal_poles()[k // 3] + 0.1 * u, u, (0.1, 0.34, 0.34))
        lamp[BASE] = LAMP_HEIGHTS[k % 3]
        colour = np.array(LAMP_COLOURS[k % 3] if lit else (30, 30, 30), float)
        rows.append(np.append(lamp, np.repeat(to_yuv(colour), N_ROLES)))
    return np.array(rows)


def _row(kind: int, place: Array, u: Array, size: tuple[float, float, float]) -> Array:
    """Return the row of an object that stands along the unit vector `u`, without colours."""
    row = np.zeros(LUMA)
    row[KIND], row[[X, Y]], row[[LENGTH, WIDTH, HEIGHT]] = kind, place, size
    row[HEADING], row[[COS, SIN]] = np.arctan2(u[1], u[0]), u
    return row


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
    return [
        _row(FENCE, point_on_arm(lane.arm, distance, side), u, (long, thick, height))
        for distance, side, u, long in places
    ]


def _painted(boards: Array, light: Daylight) -> Array:
    """Return the rows of boards with their colours."""
    colours = np.zeros((3, N_ROLES))
    for role, colour in FENCE_COLOURS.items():
        colours[:, ROLES.index(role)] = to_yuv(np.array(colour) * light.gain * light.tint)
    return np.hstack([boards, np.tile(colours.ravel(), (len(boards), 1))])


class VisibleBoxes:
    """Finds the visible part of an object in a frame."""

    def __init__(
        self, camera: Camera, light: Daylight, seed: int, *, fenced: frozenset[Lane] = frozenset()
    ) -> None:
        self.view, self.depths = camera.view, structure_depths(camera, light, seed)
        self.rows = np.zeros((camera.height + 2, camera.width + 2), np.float32)
        self.fences = fences(fenced)

    def box(self, pair: SnapshotPair, time: float, which: int) -> list[int] | None:
        """Return left, top, right, bottom; None if the object is hidden or outside."""
        objects = pair.at(time, np.concatenate([pair.before.rows, self.fences]))
        order, mask = draw_order(objects, self.view), np.zeros(self.depths.shape, np.uint8)
        stencil_visible(mask, self.rows, objects, order, which, self.view, solids())
        reach = project_point(self.view, objects[which, X], objects[which, Y], 0.0)[2] - 1.0
        ys, xs = np.nonzero((mask == 1) & (self.depths > reach))
        if len(xs) < MIN_PIXELS:
            return None
        return [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1]
