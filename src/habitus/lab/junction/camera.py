"""The camera on its mast, which projects metres to pixels, and the daylight it records."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.lab.junction.layout import HALF_ROAD

NEAR = 0.8
"""Nothing nearer than this is drawn, in metres."""
LABEL_RANGE = 45.0
"""Distance in metres up to which anomalies start: a person there is 1/24 of the frame high."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera on a mast beside the road, which looks down at the junction."""

    position: Array
    """x, y, z in metres."""
    axes: Array
    """Shape (3, 3): right, down and forward as unit vectors in ground coordinates."""
    focal: float
    """Focal length in pixels."""
    width: int
    height: int

    @classmethod
    def random(cls, rng: np.random.Generator, width: int, height: int) -> "Camera":
        """Return a typical camera: on the pavement of a corner, some ten metres up."""
        side = rng.choice([-1.0, 1.0])
        angle = rng.integers(4) * np.pi / 2 + side * np.radians(rng.uniform(17, 38))
        away, up = rng.uniform(28, 34), rng.uniform(9.0, 13.5)
        position = np.array([away * np.cos(angle), away * np.sin(angle), up])
        ground = np.abs(position[:2])
        # the mast stands beside the road
        ground[ground.argmin()] = max(ground.min(), HALF_ROAD + 1.0)
        position[:2] = np.copysign(ground, position[:2])
        target = np.array([*rng.uniform(-2.5, 2.5, 2), 0.0])
        # keep the horizon near the upper edge at any height
        focal = rng.uniform(0.82, 0.95) * min(width, 1.25 * height)
        tilt = np.arctan2(0.5 * height * rng.uniform(0.72, 0.86), focal)
        return cls(position, _axes(target - position, tilt), float(focal), width, height)

    def project(self, points: Array) -> Array:
        """Project points (n, 3) in metres to column, row (pixels) and depth (metres).

        Pixel (0, 0) covers the square from (0, 0) to (1, 1).
        """
        right, down, depth = ((points - self.position) @ self.axes.T).T
        scale = self.focal / np.maximum(depth, NEAR)
        return np.stack([right * scale + self.width / 2, down * scale + self.height / 2, depth], 1)

    @property
    def view(self) -> Array:
        """Position, axes, focal length and centre in one vector, for kernels."""
        centre = self.width / 2, self.height / 2
        return np.array([*self.position, *self.axes.ravel(), self.focal, *centre])

    def sees(
        self, x: float, y: float, *, margin: float = 0.0, farthest: float = LABEL_RANGE
    ) -> bool:
        """Return whether a place on the ground is in the frame and near enough.

        `margin` is the least distance from the edges, as a share of the frame.
        """
        column, row, depth = self.project(np.array([[x, y, 0.7]]))[0]
        inside = (
            margin <= column / self.width <= 1 - margin
            and margin <= row / self.height <= 1 - margin
        )
        return bool(inside and NEAR < depth < farthest)

    def rays(self, subpixels: int) -> NDArray[np.float64]:
        """Return ray directions, `subpixels` x `subpixels` per pixel: (rows, columns, 3)."""
        x = (np.arange(self.width * subpixels) + 0.5) / subpixels - self.width / 2
        y = (np.arange(self.height * subpixels) + 0.5) / subpixels - self.height / 2
        right, down, forward = self.axes
        across = x[None, :, None] * right + y[:, None, None] * down
        return np.asarray(across + self.focal * forward)


def _axes(towards: Array, tilt: float) -> Array:
    """Return the camera's axes from the direction it faces and its downward tilt."""
    level = np.array([towards[0], towards[1], 0.0]) / np.hypot(towards[0], towards[1])
    forward = np.cos(tilt) * level - np.array([0.0, 0.0, np.sin(tilt)])
    right = np.array([level[1], -level[0], 0.0])
    return np.stack([right, np.cross(forward, right), forward])


class Daylight(NamedTuple):
    """Time of day and weather: the sun, its brightness, the noise of the sensor."""

    sun: NDArray[np.float64]
    """Unit vector towards the sun."""
    direct: float
    """Share of the light that comes from the sun itself: 0.05 under clouds to 0.55."""
    gain: float
    """Brightness of the picture; lower at dusk."""
    tint: NDArray[np.float64]
    """Gains of blue, green and red."""
    noise: float
    """Standard deviation of a pixel's brightness."""

    @classmethod
    def random(cls, rng: np.random.Generator) -> "Daylight":
        """Return a random bright, cloudy or low-sun hour."""
        weather = rng.choice(["bright", "cloudy", "low"], p=[0.45, 0.35, 0.2])
        height = np.radians(
            rng.uniform(*{"bright": (35, 60), "cloudy": (40, 60), "low": (20, 30)}[weather])
        )
        angle = rng.uniform(0, 2 * np.pi)
        sun = np.array(
            [np.cos(angle) * np.cos(height), np.sin(angle) * np.cos(height), np.sin(height)]
        )
        direct = {"bright": rng.uniform(0.42, 0.55), "cloudy": rng.uniform(0.04, 0.12), "low": 0.4}
        gain = {"bright": rng.uniform(0.95, 1.1), "cloudy": rng.uniform(0.8, 1.0), "low": 0.78}
        warm = {"bright": 0.03, "cloudy": -0.02, "low": 0.09}[weather]
        tint = np.array([1 - warm, 1.0, 1 + warm])
        noise = rng.uniform(1.4, 2.4) / gain[weather]
        return cls(sun, float(direct[weather]), float(gain[weather]), tint, float(noise))

    @property
    def shadow(self) -> float:
        """Share of the light that is missing in a shadow."""
        return (
            0.85 * self.direct * float(self.sun[2]) / (1 - self.direct * (1 - float(self.sun[2])))
        )
