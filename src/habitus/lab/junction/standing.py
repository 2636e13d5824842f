"""What stands in the scene: buildings, trees, poles."""

from typing import NamedTuple

import cv2
import numpy as np

from habitus.lab.junction.camera import Camera
from habitus.lab.junction.canvas import FINE, Canvas
from habitus.lab.junction.layout import Points
from habitus.lab.junction.light import Daylight


class Block(NamedTuple):
    """A building: a box with windows."""

    low: Points
    high: Points
    """Opposite corners on the ground."""
    height: float
    colour: Points
    floor: float

    def distance(self, camera: Camera) -> float:
        """From the camera, of its middle."""
        return float(np.hypot(*((self.low + self.high) / 2 - camera.position[:2])))

    @property
    def corners(self) -> Points:
        """On the ground, anticlockwise."""
        (x0, y0), (x1, y1) = self.low, self.high
        return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """Its walls that face the camera, with windows and a cornice."""
        for i in range(4):
            a, b = self.corners[i], self.corners[(i + 1) % 4]
            normal = np.array([(b - a)[1], -(b - a)[0]]) / np.hypot(*(b - a))
            if (canvas.camera.position[:2] - a) @ normal <= 0:
                continue
            direct = max(0.0, float(normal @ light.sun[:2]))
            self._wall(canvas, a, b, 0.95 - light.direct * 0.75 + light.direct * direct)

    def _wall(self, canvas: Canvas, a: Points, b: Points, light: float) -> None:
        canvas.polygon(_upright(a, b, 0, self.height), self.colour, light)
        canvas.polygon(_upright(a, b, self.height - 0.5, self.height), self.colour * 1.15, light)
        n = max(1, int(np.hypot(*(b - a)) / 3.0))
        glass = np.array([92.0, 84, 76])
        for storey in range(int(self.height / self.floor)):
            low = storey * self.floor + (0.4 if storey == 0 else 0.9)
            for k in range(n):
                wide = 0.12 if storey == 0 else 0.27
                start, end = a + (b - a) * (k + wide) / n, a + (b - a) * (k + 1 - wide) / n
                shade = 0.75 + 0.5 * ((k * 7 + storey * 5) % 8) / 8
                pane = _upright(start, end, low, (storey + 1) * self.floor - 0.6)
                canvas.polygon(pane, glass * shade, light)


class Tree(NamedTuple):
    """A trunk and a crown of leaves."""

    at: Points
    height: float
    blobs: Points
    """Leaves x 5: x, y, z, radius, brightness."""

    def distance(self, camera: Camera) -> float:
        """From the camera."""
        return float(np.hypot(*(self.at - camera.position[:2])))

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """Trunk, then leaves from far to near."""
        pole = Pole(self.at, 0.5 * self.height, 0.16, np.array([52.0, 60, 70]))
        pole.draw(canvas, light)
        away = np.hypot(*(self.blobs[:, :2] - canvas.camera.position[:2]).T)
        for x, y, z, radius, bright in self.blobs[np.argsort(-away)]:
            column, row, depth = canvas.camera.seen(np.array([[x, y, z]]))[0]
            if depth < 2:
                continue
            centre = round(float(column * FINE) * 16), round(float(row * FINE) * 16)
            size = round(radius * canvas.camera.focal / depth * FINE * 16)
            colour = np.array([52.0, 92, 66]) * bright
            cv2.circle(canvas.picture, centre, size, tuple(colour.tolist()), -1, cv2.LINE_8, 4)
            cv2.circle(canvas.depths, centre, size, float(depth), -1, cv2.LINE_8, 4)


class Pole(NamedTuple):
    """A post: of a lamp, of a signal."""

    at: Points
    height: float
    radius: float
    colour: Points

    def distance(self, camera: Camera) -> float:
        """From the camera."""
        return float(np.hypot(*(self.at - camera.position[:2])))

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """As a strip that faces the camera."""
        across = canvas.camera.axes[0][:2] * self.radius
        shade = 1.0 - 0.4 * light.direct
        canvas.polygon(
            _upright(self.at - across, self.at + across, 0, self.height), self.colour, shade
        )


def _upright(a: Points, b: Points, low: float, high: float) -> Points:
    return np.array([(*a, low), (*b, low), (*b, high), (*a, high)])


Thing = Block | Tree | Pole
