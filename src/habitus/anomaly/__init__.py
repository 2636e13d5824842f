"""How usual each new document is, given those before it; where and why it is not."""

from habitus.anomaly.calibration import Calibration, CalibrationSettings, calibrate, held_out_folds
from habitus.anomaly.detection import Detection, detect_events
from habitus.anomaly.detector import Detector, Judgement
from habitus.anomaly.events import Event, EventJoiner, events_by_line, read_events
from habitus.anomaly.fleet import Fleet
from habitus.anomaly.habit_learning import learn_habits
from habitus.anomaly.habit_model import HabitModel
from habitus.anomaly.localisation import Box, boxes_of, least_likely, localisation_recall
from habitus.anomaly.measures import MEASURES
from habitus.anomaly.scene_model import Acceptance, SceneModel, learn_scene
from habitus.anomaly.thresholds import ExpectedAlarms

__all__ = [
    "MEASURES",
    "Acceptance",
    "Box",
    "Calibration",
    "CalibrationSettings",
    "Detection",
    "Detector",
    "Event",
    "EventJoiner",
    "ExpectedAlarms",
    "Fleet",
    "HabitModel",
    "Judgement",
    "SceneModel",
    "boxes_of",
    "calibrate",
    "detect_events",
    "events_by_line",
    "held_out_folds",
    "learn_habits",
    "learn_scene",
    "least_likely",
    "localisation_recall",
    "read_events",
]
