"""Laboratory: scenes with known truth, the comparison of methods, and tuning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from habitus.lab.crossing import crossing, crossing_vocabulary

if TYPE_CHECKING:
    from habitus.lab.junction.anomalies import KINDS
    from habitus.lab.junction.recording import (
        Anomaly,
        Junction,
        render,
        to_bgr,
        write_boxes,
        write_labels,
    )
    from habitus.lab.junction.traffic import LANE_NAMES
    from habitus.lab.junction.weather import WEATHER

__all__ = [
    "KINDS",
    "LANE_NAMES",
    "WEATHER",
    "Anomaly",
    "Junction",
    "crossing",
    "crossing_vocabulary",
    "render",
    "to_bgr",
    "write_boxes",
    "write_labels",
]


def __getattr__(name: str) -> Any:
    """Import the junction on first use, as it needs OpenCV, PyAV and compiled kernels."""
    if name not in __all__:
        raise AttributeError(f"module 'habitus.lab' has no attribute {name!r}")
    return getattr(import_module("habitus.lab.junction.recording"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
