"""A detection gone over again for what its events leave out: every document, not the strongest."""

from typing import NamedTuple

import numpy as np

from habitus.events import Detection, Event
from habitus.model import MarkovClusteringTopicModel
from habitus.model.parameters import Array
from habitus.normality.detector import Bag, Detector, bags
from habitus.normality.localisation import Box, boxes_of, least_likely


class Place(NamedTuple):
    """The documents of an event, by number."""

    first: int
    last: int
    peak: int


class Moment(NamedTuple):
    """What is unusual in a document: its least likely words and boxes around them."""

    words: tuple[int, ...]
    boxes: tuple[Box, ...]


class Retraced(NamedTuple):
    """What every document of a detection showed."""

    places: list[Place]
    """Of each event."""
    moments: dict[int, Moment]
    """Of each abnormal document."""
    misfit: Array
    """Nats a word that fit no behaviour, of each document; 0 where it was not judged."""
    shift: Array
    """Nats of a behaviour out of its turn, of each document."""


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


def retrace(detection: Detection, model: MarkovClusteringTopicModel) -> Retraced:
    """Judge the documents once more, by the model's own parameters."""
    corpus = detection.corpus
    detector = Detector(model, measure="mean", threshold=detection.threshold)
    misfit, shift = np.zeros(len(corpus)), np.zeros(len(corpus))
    moments: dict[int, Moment] = {}
    n_tokens = np.maximum(corpus.n_tokens, 1)
    for t, (document, judgement) in enumerate(
        zip(bags(corpus), detector.judge(corpus), strict=True)
    ):
        if judgement.judged:
            misfit[t], shift[t] = judgement.seen.misfit / n_tokens[t], judgement.seen.shift
        if detection.abnormal[t] and judgement.judged:
            moments[t] = _moment(document, judgement.surprises, detection, model)
    places = places_of(detection)
    for event, place in zip(detection.events, places, strict=True):
        moments[place.peak] = Moment(event.words, event.boxes)  # as it was reported
    return Retraced(places, moments, misfit, shift)


def _moment(
    document: Bag, surprises: Array, detection: Detection, model: MarkovClusteringTopicModel
) -> Moment:
    n_top = max((len(event.words) for event in detection.events), default=0)
    top = least_likely(surprises, np.asarray(document.counts), max(n_top, 1))
    words = np.asarray(document.words)[top]
    weights = surprises[top] * np.asarray(document.counts)[top]
    boxes = boxes_of(words, weights, model.vocabulary_) if model.vocabulary_ else []
    return Moment(tuple(words.tolist()), tuple(boxes))


def expected_words(event: Event, model: MarkovClusteringTopicModel) -> Array:
    """p(word) before the strongest document of an event was seen."""
    return np.asarray(model.parameters_.word_given_behaviour @ np.array(event.expected))
