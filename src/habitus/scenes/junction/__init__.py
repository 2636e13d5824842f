"""A signalised junction, rendered: traffic, lights, people, and labelled anomalies."""

from habitus.scenes.junction.anomalies import KINDS
from habitus.scenes.junction.labels import Anomaly
from habitus.scenes.junction.planes import to_bgr
from habitus.scenes.junction.scene import Junction
from habitus.scenes.junction.video import render, write_boxes, write_labels

__all__ = ["KINDS", "Anomaly", "Junction", "render", "to_bgr", "write_boxes", "write_labels"]
