"""A fine picture with depths, that standing things are drawn on."""

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.camera import NEAR, Camera
from habitus.lab.junction.layout import Points

FINE = 2
"""Each pixel is drawn as so many squared, and their mean is taken."""
INFINITE = 1e9
Floats = NDArray[np.float32]


class Canvas:
    """A fine picture with depths, that standing things are drawn on from far to near."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        shape = camera.height * FINE, camera.width * FINE
        self.picture = np.zeros((*shape, 3), np.float32)
        self.depths = np.full(shape, INFINITE, np.float32)

    def polygon(self, points: Points, colour: Points, light: float = 1.0) -> None:
        """A flat side of something, by its corners in metres."""
        inside = clipped(points, self.camera)
        if len(inside) < 3:
            return
        seen = self.camera.seen(inside)
        corners = np.round((seen[:, :2] * FINE - 0.5) * 16).astype(np.int32)
        fill = tuple(float(v) for v in colour * light)
        cv2.fillConvexPoly(self.picture, corners, fill, cv2.LINE_8, 4)
        cv2.fillConvexPoly(self.depths, corners, float(seen[:, 2].mean()), cv2.LINE_8, 4)

    def coarse(self) -> Floats:
        """Depths of whole pixels: of the farthest thing seen in each."""
        height, width = self.camera.height, self.camera.width
        parts = self.depths.reshape(height, FINE, width, FINE)
        return np.ascontiguousarray(parts.max(axis=(1, 3)))


def clipped(points: Points, camera: Camera) -> Points:
    """A polygon's part before the camera."""
    depth = (points - camera.position) @ camera.axes[2] - NEAR
    kept = []
    for i in range(len(points)):
        j = (i + 1) % len(points)
        if depth[i] > 0:
            kept.append(points[i])
        if (depth[i] > 0) != (depth[j] > 0):
            share = depth[i] / (depth[i] - depth[j])
            kept.append(points[i] + share * (points[j] - points[i]))
    return np.array(kept).reshape(-1, 3)
