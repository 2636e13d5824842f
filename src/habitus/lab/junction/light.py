"""Time of day and weather: where the sun is, how bright it is, how noisy the sensor."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Daylight(NamedTuple):
    """What lights the scene."""

    sun: NDArray[np.float64]
    """Unit vector towards the sun."""
    direct: float
    """Share of the light that comes from the sun itself: 0.05 under clouds to 0.55."""
    gain: float
    """Of the picture: less at dusk."""
    tint: NDArray[np.float64]
    """Gains of blue, green and red."""
    noise: float
    """Standard deviation of a pixel's brightness."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Daylight":
        """A bright, cloudy or low-sun hour."""
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
        """How much of the light a shadow takes away."""
        return (
            0.85 * self.direct * float(self.sun[2]) / (1 - self.direct * (1 - float(self.sun[2])))
        )
