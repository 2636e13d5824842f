"""How usual each new document is, given those before it; where and why it is not."""

from habitus.normality.calibration import Calibration, calibrate
from habitus.normality.detector import Bag, Detector, Judgement, bags
from habitus.normality.filter import Seen, advance, tables_of, word_surprises
from habitus.normality.localisation import Box, boxes_of, least_likely, localisation_recall
from habitus.normality.measures import MEASURES

__all__ = [
    "MEASURES",
    "Bag",
    "Box",
    "Calibration",
    "Detector",
    "Judgement",
    "Seen",
    "advance",
    "bags",
    "boxes_of",
    "calibrate",
    "least_likely",
    "localisation_recall",
    "tables_of",
    "word_surprises",
]
