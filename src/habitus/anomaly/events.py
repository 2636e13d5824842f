"""An event: successive abnormal documents, joined; one line of JSON each.

Judgements -> events, as they come: nothing but the strongest document is remembered.

Events read back from the lines of JSON that `habitus detect` and `watch` wrote.

Events in words, for a person.
"""

import json
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from habitus.anomaly.detector import Document, Judgement
from habitus.anomaly.localisation import (
    Box,
    boxes_of,
    expectation,
    heaviest,
    least_likely,
    motion_in_words,
    place_in_words,
    turn_in_words,
)
from habitus.anomaly.thresholds import JOIN
from habitus.errors import FileError, InvalidInputError
from habitus.model import MarkovClusteringTopicModel
from habitus.model.inspection import long_run_shares

SCHEMA = 1


@dataclass(frozen=True)
class Event:
    """Something that was not usual: when, where and why."""

    source: str
    """The video, stream or corpus it was seen in."""
    start: float
    """Seconds of video."""
    end: float
    peak: float
    """Start of the strongest document, in seconds of video."""
    normality: float
    """Of the strongest document, by the measure in use: the lower the less usual."""
    threshold: float
    """Documents below it are abnormal."""
    behaviour: int
    """Of the strongest document, counted from 1."""
    expected: tuple[float, ...]
    """Probability of each behaviour before the strongest document was seen."""
    boxes: tuple[Box, ...]
    """Where, in pixels of the camera's frame: left, top, right, bottom; the strongest first."""
    words: tuple[int, ...]
    """The least likely words of the strongest document, the least likely first."""
    surprise: float
    """Of the strongest document, -ln p(x_t | x_{1:t-1}), in nats: misfit plus shift."""
    misfit: float
    """The part of it that fits no behaviour."""
    shift: float
    """The part of it that is a behaviour out of its turn."""
    explanation: str
    clock: str | None = None
    """Date and time of the start (ISO 8601), for a live source."""
    thumbnail: str | None = None
    """A picture of the strongest moment, beside the events' file."""

    def to_json(self) -> dict[str, Any]:
        """Give the event as plain values, with the version of their meaning."""
        return {"habitus": "event", "version": SCHEMA, **asdict(self)}

    def line(self) -> str:
        """One line of JSON Lines."""
        return json.dumps(self.to_json(), allow_nan=False)


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
        top = least_likely(judgement.surprisals, counts, self.n_top)
        words, weights = np.asarray(document.words)[top], judgement.surprisals[top] * counts[top]
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


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a file of JSON Lines, in order of time; refused if any line is none."""
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: neither a habitus model nor a file of events") from error
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    events = [_event(file, number, line) for number, line in numbered]
    return sorted(events, key=lambda event: event.start)


def _event(file: Path, number: int, line: str) -> Event:
    try:
        values: Any = json.loads(line)
        if values["habitus"] != "event":
            raise ValueError("not an event")
        if values["version"] > SCHEMA:
            raise FileError(
                f"{file}, line {number}: an event of version {values['version']}, this habitus "
                f"reads up to {SCHEMA}: upgrade habitus"
            )
        known = {field.name: values[field.name] for field in fields(Event)}
        known["boxes"] = tuple(Box(*map(int, box)) for box in known["boxes"])
        for name in ("expected", "words"):
            known[name] = tuple(known[name])
        for name in ("start", "end", "peak"):
            known[name] = float(known[name])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{file}, line {number}: not an event as `habitus detect -o` writes it"
        ) from error
    return Event(**known)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds of video.

    >>> clock(59.6), clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def in_words(event: Event) -> str:
    """When and why, in one line."""
    return f"{clock(event.start)}-{clock(event.end)}  {event.explanation}"
