"""The camera on its mast: metres on the ground -> pixels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.layout import HALF, Points

NEAR = 0.8
"""Nothing nearer than this is drawn, metres."""
FARTHEST = 45.0
"""Metres up to which an anomaly is worth a label: a person there is a 24th of the frame high."""


@dataclass(frozen=True)
class Camera:
    """A pinhole on a mast beside the road, that looks down at the junction."""

    position: Points
    """x, y, z in metres."""
    axes: Points
    """3 x 3: right, down and forward, as unit vectors of the ground's axes."""
    focal: float
    """In pixels."""
    width: int
    height: int

    @classmethod
    def drawn(cls, rng: np.random.Generator, width: int, height: int) -> "Camera":
        """A typical place: a corner's pavement, some ten metres up."""
        side = rng.choice([-1.0, 1.0])
        angle = rng.integers(4) * np.pi / 2 + side * np.radians(rng.uniform(17, 38))
        away, up = rng.uniform(28, 34), rng.uniform(9.0, 13.5)
        position = np.array([away * np.cos(angle), away * np.sin(angle), up])
        ground = np.abs(position[:2])
        ground[ground.argmin()] = max(ground.min(), HALF + 1.0)  # a mast stands beside the road
        position[:2] = np.copysign(ground, position[:2])
        target = np.array([*rng.uniform(-2.5, 2.5, 2), 0.0])
        # the horizon near the upper edge, whatever the height
        focal = rng.uniform(0.82, 0.95) * min(width, 1.25 * height)
        tilt = np.arctan2(0.5 * height * rng.uniform(0.72, 0.86), focal)
        return cls(position, _axes(target - position, tilt), float(focal), width, height)

    def seen(self, points: Points) -> Points:
        """Points x 3 in metres -> points x 3: column and row in pixels, and depth in metres.

        Pixel (0, 0) covers the square from (0, 0) to (1, 1).
        """
        right, down, depth = ((points - self.position) @ self.axes.T).T
        scale = self.focal / np.maximum(depth, NEAR)
        return np.stack([right * scale + self.width / 2, down * scale + self.height / 2, depth], 1)

    def sees(self, x: float, y: float, *, margin: float = 0.0, farthest: float = FARTHEST) -> bool:
        """Whether a place on the ground is in the frame, `margin` of its size from the edges."""
        column, row, depth = self.seen(np.array([[x, y, 0.7]]))[0]
        inside = (
            margin <= column / self.width <= 1 - margin
            and margin <= row / self.height <= 1 - margin
        )
        return bool(inside and NEAR < depth < farthest)

    def rays(self, fine: int) -> NDArray[np.float64]:
        """Directions of rays, `fine` x `fine` for each pixel: rows x columns x 3."""
        x = (np.arange(self.width * fine) + 0.5) / fine - self.width / 2
        y = (np.arange(self.height * fine) + 0.5) / fine - self.height / 2
        right, down, forward = self.axes
        across = x[None, :, None] * right + y[:, None, None] * down
        return np.asarray(across + self.focal * forward)


def _axes(towards: Points, tilt: float) -> Points:
    level = np.array([towards[0], towards[1], 0.0]) / np.hypot(towards[0], towards[1])
    forward = np.cos(tilt) * level - np.array([0.0, 0.0, np.sin(tilt)])
    right = np.array([level[1], -level[0], 0.0])
    return np.stack([right, np.cross(forward, right), forward])
