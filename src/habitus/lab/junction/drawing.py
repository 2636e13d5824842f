"""Pictures of the world: the still picture, shadows, things, and what the sensor adds."""

import cv2
import numpy as np

from habitus.lab.junction.backdrop import CONTACT, backdrop
from habitus.lab.junction.camera import Camera
from habitus.lab.junction.fleet import LAMP, ROLES, Colours
from habitus.lab.junction.layout import Points, outward
from habitus.lab.junction.light import Daylight
from habitus.lab.junction.places import signal_poles
from habitus.lab.junction.planes import (
    NOISE_SIDE,
    darken,
    expose,
    i420,
    noise_field,
    planes,
    to_yuv,
)
from habitus.lab.junction.raster import Plane
from habitus.lab.junction.signals import Light, Signals
from habitus.lab.junction.simulation import Interval
from habitus.lab.junction.solids import solids
from habitus.lab.junction.sprites import (
    BASE,
    COS,
    HEADING,
    HEIGHT,
    KIND,
    LENGTH,
    LIT,
    N_ROLES,
    SIN,
    WIDTH,
    X,
    Y,
    cast,
    draw,
    far_to_near,
)  # fmt: skip

N_COLUMNS = LIT + 3 * N_ROLES
FLICKER = 0.004
HEADS = (3.05, 2.7, 2.35)
"""Heights of a signal's red, amber and green lamp."""
GLOWS = ((60, 60, 235), (50, 160, 240), (120, 220, 70))
SHOWN = {
    Light.RED: (True, False, False),
    Light.READY: (True, True, False),
    Light.GREEN: (False, False, True),
    Light.AMBER: (False, True, False),
}


BRAKES, FLASHING = to_yuv(np.array([50.0, 40, 215])), to_yuv(np.array([60.0, 170, 255]))


class Painter:
    """Draws states of the world as one camera sees them; the same state gives the same picture."""

    def __init__(self, camera: Camera, light: Daylight, signals: Signals, seed: int) -> None:
        self.camera, self.light, self.signals, self.seed = camera, light, signals, seed
        rng = np.random.default_rng([seed, 3])
        still = backdrop(camera, light, seed)
        self._lit, self._shaded = (i420(to_yuv(p)) for p in (still.lit, still.shaded))
        self._depths, self._coarse = still.depths, np.ascontiguousarray(still.depths[::2, ::2])
        self._noise = noise_field(rng)
        self._view = view(camera)
        self._rows = np.zeros((camera.height + 2, camera.width + 2), np.float32)
        self._mask = np.zeros((camera.height, camera.width), np.uint8)
        self._cast = light.shadow / max(light.shadow, CONTACT)
        self._lamps = _lamps(False), _lamps(True)
        self._known: dict[int, Points] = {}
        self._sun = np.array([*light.sun, light.direct])

    def picture(self, things: Points, number: int) -> Plane:
        """A frame: things as from `Interval.at`; its noise depends on its number only."""
        shadows = np.zeros_like(self._mask)
        cast(shadows, self._rows, things, self._view, self._sun, self._cast)
        soft = np.asarray(cv2.blur(shadows, (3, 3)), np.uint8)
        made = np.empty_like(self._lit)
        parts, shape = planes(made), solids()
        darken(made, self._lit, self._shaded, soft)
        order = far_to_near(things, self._view)
        draw(
            *parts, self._rows, self._depths, self._coarse, things, order, self._view, self._sun,
            shape.corners, shape.roles, shape.swings, shape.ranges,
        )  # fmt: skip
        rng = np.random.default_rng([self.seed, 4, number])
        gain = 1 + FLICKER * rng.standard_normal() + 0.02 * np.sin(number / 1700 + self.seed)
        top, left = rng.integers(NOISE_SIDE, size=2)
        expose(parts.luma, self._noise, int(top), int(left), gain, self.light.noise)
        return made

    def looks(self, interval: Interval) -> Points:
        """Rows for `sprites` of what moves in an interval, complete but for the places."""
        state = interval.before
        rows = np.zeros((len(state.ids), N_COLUMNS))
        rows[:, [LENGTH, WIDTH, HEIGHT]] = state.sizes
        rows[:, KIND] = state.kinds
        known = [self._colours(ident, interval.looks) for ident in state.ids.tolist()]
        rows[:, LIT:] = np.array(known).reshape(len(rows), -1)
        on = LIT + ROLES.index("tail") + N_ROLES * np.arange(3)
        rows[np.ix_(state.lamps & 1 > 0, on)] = BRAKES
        if state.time % 0.8 < 0.4:
            for role in ("lamp", "tail"):
                on = LIT + ROLES.index(role) + N_ROLES * np.arange(3)
                rows[np.ix_(state.lamps & 2 > 0, on)] = FLASHING
        return np.concatenate([rows, self._signal_lamps(state.time)])

    def _colours(self, ident: int, looks: dict[int, Colours]) -> Points:
        """Brightness of a thing's roles, then their colours; worked out once."""
        if ident not in self._known:
            yuv = to_yuv(looks[ident] * (self.light.gain * self.light.tint))
            self._known[ident] = yuv.T.ravel()
        return self._known[ident]

    def _signal_lamps(self, time: float) -> Points:
        """Three lamps on each pole, of which those are lit that show the way."""
        lit = [
            SHOWN[self.signals.light(k // 2, "right" if k % 2 else "ahead", time)]
            for k in range(len(self._lamps[0]) // 3)
        ]
        return np.where(np.concatenate(lit)[:, None], self._lamps[1], self._lamps[0])


def _lamps(lit: bool) -> Points:
    """Rows for `sprites` of all signals' lamps, that face those who drive in."""
    rows = np.zeros((3 * len(signal_poles()), N_COLUMNS))
    for k, row in enumerate(rows):
        u = outward(k // 6)
        row[[X, Y]] = signal_poles()[k // 3] + 0.1 * u
        row[HEADING], row[KIND], row[COS], row[SIN] = np.arctan2(u[1], u[0]), LAMP, u[0], u[1]
        row[LENGTH], row[WIDTH], row[HEIGHT], row[BASE] = 0.1, 0.34, 0.34, HEADS[k % 3]
        colour = np.array(GLOWS[k % 3] if lit else (30, 30, 30), float)
        row[LIT:] = np.repeat(to_yuv(colour), N_ROLES)
    return rows


def view(camera: Camera) -> Points:
    """A camera as the numbers that `sprites` wants."""
    centre = camera.width / 2, camera.height / 2
    return np.array([*camera.position, *camera.axes.ravel(), camera.focal, *centre])
