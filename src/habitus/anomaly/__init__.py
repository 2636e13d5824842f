"""How usual each new document is, given those before it; where and why it is not."""

from habitus.anomaly.calibration import Calibration, calibrate
from habitus.anomaly.detector import Detector, Judgement
from habitus.anomaly.localisation import Box, boxes_of, least_likely, localisation_recall
from habitus.anomaly.measures import MEASURES

__all__ = [
    "MEASURES",
    "Box",
    "Calibration",
    "Detector",
    "Judgement",
    "advance",
    "boxes_of",
    "calibrate",
    "least_likely",
    "localisation_recall",
]
