"""Labels: what is known to have happened, in any of the forms that it comes in."""

from habitus.evaluation.labels.footage import Footage, footage_of, footage_of_video
from habitus.evaluation.labels.label import (
    Label,
    Sighting,
    check_intervals,
    check_labels,
    seconds_of,
)
from habitus.evaluation.labels.reading import Labelling, align, parse_labels, read_labels

__all__ = [
    "Footage",
    "Label",
    "Labelling",
    "Sighting",
    "align",
    "check_intervals",
    "check_labels",
    "footage_of",
    "footage_of_video",
    "parse_labels",
    "read_labels",
    "seconds_of",
]
