"""A signalised junction, rendered: traffic, lights, people, and labelled anomalies."""

from habitus.lab.junction.anomalies import KINDS
from habitus.lab.junction.labels import Anomaly
from habitus.lab.junction.planes import to_bgr
from habitus.lab.junction.scene import Junction
from habitus.lab.junction.video import render, write_boxes, write_labels

__all__ = ["KINDS", "Anomaly", "Junction", "render", "to_bgr", "write_boxes", "write_labels"]
