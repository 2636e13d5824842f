"""A rendered video of a signalised junction, with traffic and labelled anomalies."""

from habitus.lab.junction.anomalies import KINDS
from habitus.lab.junction.raster import to_bgr
from habitus.lab.junction.recording import Anomaly, Junction, render, write_boxes, write_labels
from habitus.lab.junction.traffic import LANE_NAMES
from habitus.lab.junction.weather import WEATHER

__all__ = [
    "KINDS",
    "LANE_NAMES",
    "WEATHER",
    "Anomaly",
    "Junction",
    "render",
    "to_bgr",
    "write_boxes",
    "write_labels",
]
