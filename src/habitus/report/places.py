"""Which documents events are made of, and what was expected of them."""

from typing import NamedTuple

import numpy as np

from habitus.events import Detection, Event
from habitus.model import MarkovClusteringTopicModel
from habitus.model.parameters import Array


class Place(NamedTuple):
    """The documents of an event, by number."""

    first: int
    last: int
    peak: int


def places_of(detection: Detection) -> list[Place]:
    """Which documents each event is made of; times alone may repeat in a further sequence."""
    times, found, after = detection.corpus.times, [], 0
    for event in detection.events:
        abnormal = detection.abnormal & (times == event.start)
        first = after + int(abnormal[after:].argmax())
        last = first
        while last + 1 < len(times) and times[last] < times[last + 1] < event.end:
            last += 1
        peak = first + int(np.abs(times[first : last + 1] - event.peak).argmin())
        found.append(Place(first, last, peak))
        after = last + 1
    return found


def expected_words(event: Event, model: MarkovClusteringTopicModel) -> Array:
    """p(word) before the strongest document of an event was seen."""
    return np.asarray(model.parameters_.word_given_behaviour @ np.array(event.expected))
