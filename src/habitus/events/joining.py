"""Judgements -> events, as they come: nothing but the strongest document is remembered."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from habitus.events.event import Event
from habitus.model import MarkovClusteringTopicModel
from habitus.model.chain import long_run_shares
from habitus.normality.detector import Document, Judgement
from habitus.normality.explanation import (
    expectation,
    heaviest,
    motion_in_words,
    place_in_words,
    turn_in_words,
)
from habitus.normality.localisation import Box, boxes_of, least_likely
from habitus.normality.threshold import JOIN

N_TOP = 10
"""Least likely words that an event is localised by, as in the paper."""


class Moment(NamedTuple):
    """What is unusual in a document."""

    words: tuple[int, ...]
    """Its least likely words, the least likely first."""
    weights: tuple[float, ...]
    """What each of them surprises, all its occurrences together."""
    boxes: tuple[Box, ...]


class Joiner:
    """Joins abnormal documents that follow each other, up to `join` usual ones between them."""

    def __init__(
        self,
        model: MarkovClusteringTopicModel,
        *,
        source: str = "",
        n_top: int = N_TOP,
        join: int = JOIN,
    ) -> None:
        self.model, self.source, self.n_top, self.join = model, source, n_top, join
        self.mixed = model.parameters_.word_given_behaviour
        self.usually = long_run_shares(model.parameters_.xi)
        self.open: Event | None = None
        """The event that goes on, if one does."""
        self.quiet = 0
        self.before = -1

    def add(
        self, time: float, document: Document, judgement: Judgement, threshold: float
    ) -> Event | None:
        """Take in the next document; gives the event that it ended, if it did."""
        time, before = float(time), self.before
        self.before = judgement.behaviour
        if judgement.abnormal:
            self.quiet = 0
            event = self._event(time, document, judgement, threshold, before)
            self.open = event if self.open is None else _joined(self.open, event)
            return None
        self.quiet += 1
        return self.close() if self.quiet > self.join else None

    def new_sequence(self) -> Event | None:
        """What comes next does not follow; gives the event that ends with that."""
        self.before = -1
        return self.close()

    def close(self) -> Event | None:
        """End the event that goes on, if one does, and give it."""
        ended, self.open = self.open, None
        self.quiet = 0
        return ended

    def moment(self, document: Document, judgement: Judgement) -> Moment:
        """Where a document is unusual."""
        counts = np.asarray(document.counts)
        top = least_likely(judgement.surprises, counts, self.n_top)
        words, weights = np.asarray(document.words)[top], judgement.surprises[top] * counts[top]
        v = self.model.vocabulary_
        boxes = boxes_of(words, weights, v) if v is not None else []
        return Moment(tuple(words.tolist()), tuple(weights.tolist()), tuple(boxes))

    def _event(
        self, time: float, document: Document, judgement: Judgement, threshold: float, before: int
    ) -> Event:
        where, seen = self.moment(document, judgement), judgement.seen
        turn = turn_in_words(before, judgement.behaviour, seen.shift, self.model.transitions_)
        reasons = [reason for reason in (turn, self._motion(where, judgement)) if reason]
        return Event(
            source=self.source, start=time, end=time + self.model.clip_, peak=time,
            normality=judgement.normality, threshold=threshold, behaviour=judgement.behaviour + 1,
            expected=tuple(judgement.predicted.tolist()), boxes=where.boxes, words=where.words,
            surprise=-seen.log_evidence, misfit=seen.misfit, shift=seen.shift,
            explanation="; ".join(reasons) or "less usual than normal footage",
        )  # fmt: skip

    def _motion(self, where: Moment, judgement: Judgement) -> str | None:
        v = self.model.vocabulary_
        if v is None or not where.boxes:
            return None
        cells, move = heaviest(np.array(where.words), np.array(where.weights), v)
        expected = expectation(cells, self.mixed, judgement.predicted, self.usually, v)
        return f"{motion_in_words(move, expected)}, {place_in_words(where.boxes[0], v)}"


def _joined(event: Event, later: Event) -> Event:
    """One event: the stronger of the two, over the time of both."""
    stronger = later if later.normality < event.normality else event
    return replace(stronger, start=event.start, end=later.end)
