"""Judgements -> events, as they come: nothing but the strongest document is remembered."""

from dataclasses import replace

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
from habitus.normality.localisation import boxes_of, least_likely
from habitus.normality.threshold import JOIN

N_TOP = 10
"""Least likely words that an event is localised by, as in the paper."""


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

    def _event(
        self, time: float, document: Document, judgement: Judgement, threshold: float, before: int
    ) -> Event:
        counts = np.asarray(document.counts)
        top = least_likely(judgement.surprises, counts, self.n_top)
        words, weights = np.asarray(document.words)[top], judgement.surprises[top] * counts[top]
        seen, now = judgement.seen, judgement.behaviour
        turn = (
            turn_in_words(before, now, seen.shift, self.model.transitions_) if before >= 0 else None
        )
        reasons, boxes = [turn] if turn else [], []
        if self.model.vocabulary_ is not None and len(words):
            v = self.model.vocabulary_
            boxes = boxes_of(words, weights, v)
            cells, direction = heaviest(words, weights, v)
            expected = expectation(cells, self.mixed, judgement.predicted, self.usually)
            motion = f"{motion_in_words(direction, expected)}, {place_in_words(boxes[0], v)}"
            reasons.append(motion)
        return Event(
            source=self.source, start=time, end=time + self.model.clip_, peak=time,
            normality=judgement.normality, threshold=threshold, behaviour=now + 1,
            expected=tuple(judgement.predicted.tolist()), boxes=tuple(boxes),
            words=tuple(words.tolist()), surprise=-seen.log_evidence, misfit=seen.misfit,
            shift=seen.shift, explanation="; ".join(reasons) or "less usual than normal footage",
        )  # fmt: skip


def _joined(event: Event, later: Event) -> Event:
    """One event: the stronger of the two, over the time of both."""
    stronger = later if later.normality < event.normality else event
    return replace(stronger, start=event.start, end=later.end)
