"""Abnormal documents -> events: when, where and why."""

from habitus.events.detection import Detection, detect
from habitus.events.event import SCHEMA, Event
from habitus.events.joining import Joiner, Moment

__all__ = ["SCHEMA", "Detection", "Event", "Joiner", "Moment", "detect"]
