"""How usual each new document is, given those before it; where and why it is not."""

from habitus.scene.calibration import Calibration, CalibrationSettings, calibrate, held_out_folds
from habitus.scene.detection import Detection, detect_events
from habitus.scene.detector import Detector, Judgement
from habitus.scene.events import Event, EventJoiner, events_by_line, read_events
from habitus.scene.fleet import Fleet
from habitus.scene.habit_learning import learn_habits
from habitus.scene.habit_model import HabitModel
from habitus.scene.localisation import Box, boxes_of, least_likely, localisation_recall
from habitus.scene.measures import MEASURES
from habitus.scene.scene_model import Acceptance, SceneModel, learn_scene
from habitus.scene.thresholds import ExpectedAlarms

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
