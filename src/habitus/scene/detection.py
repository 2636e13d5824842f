"""A whole corpus, judged: what was unusual in it, and everything a report needs."""

import csv
import os
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags
from habitus.corpus import Corpus
from habitus.files import written_whole
from habitus.model import TopicModel
from habitus.rarity import counted
from habitus.scene.detector import Detector, JudgedCorpus
from habitus.scene.events import AbnormalWords, Event, EventJoiner, clock
from habitus.scene.habit_model import HabitModel
from habitus.scene.thresholds import CORRELATED, ExpectedAlarms, share_threshold

MOST_MOMENTS = 10
"""Moments that are ranked, unless there are more alarms."""


class EventSpan(NamedTuple):
    """The documents of an event, by number."""

    first: int
    last: int
    peak: int


@dataclass(frozen=True, eq=False)
class Detection:
    """What a detector found in a corpus."""

    source: str
    corpus: Corpus
    """The documents, in the model's words."""
    model: TopicModel
    """The model that judged."""
    normality: Array
    """Of each document, by the measure in use; 0 where it was not judged."""
    judged: Flags
    abnormal: Flags
    behaviours: NDArray[np.int64]
    """Most probable behaviour of each document given those up to it, counted from 0."""
    misfit: Array
    """Nats per word that fit no behaviour, of each document; 0 where it was not judged."""
    shift: Array
    """Nats of a behaviour out of its turn, of each document; 0 where it was not judged."""
    surprisals: Array
    """-ln p(word | x_{1:t-1}) of each entry of `corpus.entries`; 0 where it was not judged."""
    threshold: float
    abnormal_words: dict[int, AbnormalWords]
    """The least likely words of each abnormal document, by the number of the document; of each
    judged one where that was asked for."""
    events: list[Event]
    """Alarms, in order of time."""
    moments: list[Event]
    """The most unusual moments, the most unusual first: all alarms, and others up to ten."""
    expected_false_alarms: ExpectedAlarms | None
    """Alarms that normal footage of this length raises; None without a calibration."""
    habits: HabitModel | None = None
    """What judged by the measure "habits"; None by another."""
    notes: tuple[str, ...] = ()
    """What there is to say about the footage and the threshold, one line each."""

    def __repr__(self) -> str:
        return f"Detection({self.source!r}: {self.summary()})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary, and the most unusual moments."""
        rows = "".join(
            f"<tr><td>{rank}</td><td>{'alarm' if event.alarm else ''}</td>"
            f'<td style="text-align: left">{escape(event.in_words())}</td></tr>'
            for rank, event in enumerate(self.moments, start=1)
        )
        said = escape(f"{self.source}: {self.summary()}" if self.source else self.summary())
        return f"<p>{said}</p><table>{rows}</table>"

    @property
    def event_spans(self) -> list[EventSpan]:
        """Documents of each event, by number."""
        return _spans(self.events)

    @property
    def moment_spans(self) -> list[EventSpan]:
        """Documents of each moment, by number."""
        return _spans(self.moments)

    def ranking(self) -> list[str]:
        """Return one line per moment for a person: its rank, whether it is an alarm, and why."""
        wide = len(str(len(self.moments)))
        return [
            f"{rank:{wide}}  {'ALARM' if event.alarm else '     '}  {event.in_words()}"
            for rank, event in enumerate(self.moments, start=1)
        ]

    @property
    def seconds(self) -> float:
        """Length of the judged footage."""
        return len(self.corpus) * self.corpus.clip

    def summary(self) -> str:
        """Return how many alarms there were, beside how many normal footage brings."""
        n = len(self.events)
        alarms = counted(n, "alarm") if n else "no alarm"
        summary = f"{alarms} in {clock(self.seconds)} of video"
        if not self.judged.any():
            return f"{summary}: nothing moved enough to be judged"
        if n == 0:
            lowest = self.normality[self.judged].min()
            summary += f" (lowest normality {lowest:.3g}, threshold {self.threshold:.3g})"
        if self.expected_false_alarms is None:
            return summary
        expected = self.expected_false_alarms.in_words()
        return f"{summary}; normal footage of this length raises {expected} false alarms (90 %)"


def _spans(events: list[Event]) -> list[EventSpan]:
    return [
        EventSpan(event.first_document, event.last_document, event.peak_document)
        for event in events
        if event.first_document is not None
        and event.last_document is not None
        and event.peak_document is not None
    ]


def write_scores(path: str | os.PathLike[str], detection: Detection) -> None:
    """Write the normality of every document as CSV."""
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "normality", "judged", "abnormal", "behaviour"])
        for time, normality, judged, abnormal, behaviour in zip(
            detection.corpus.times,
            detection.normality,
            detection.judged,
            detection.abnormal,
            detection.behaviours + 1,
            strict=True,
        ):
            writer.writerow(
                [f"{time:.10g}", repr(float(normality)), int(judged), int(abnormal), behaviour]
            )


def detect_events(
    detector: Detector,
    corpus: Corpus,
    *,
    source: str = "",
    share: float | None = None,
    localise_all: bool = False,
) -> Detection:
    """Judge every document, and join the abnormal ones to events.

    Parameters
    ----------
    detector
        Its belief moves on past the corpus.
    corpus
        Documents in time order.
    source
        Name of the video or corpus, for the events.
    share
        Where given, this share of these very documents is abnormal, whatever the detector's
        threshold.
    localise_all
        Whether to localise every judged document, not only the abnormal ones.

    Returns
    -------
    Detection
        Scores of every document, and the events.
    """
    judgements = detector.judge_all(corpus)
    corpus = detector.model.in_own_words(corpus)
    threshold = detector.threshold
    if share is not None and judgements.judged.any():
        threshold = share_threshold(judgements.normality[judgements.judged], share)
    joiner = EventJoiner(detector, source=source)
    if share is not None:
        joiner.limit = None
    abnormal_words, events = _joined_events(joiner, corpus, judgements, threshold, localise_all)
    moments = _ranked_moments(joiner, corpus, judgements, threshold, events)
    notes = detector.notes if share is None else ()
    if joiner.limit is not None and joiner.limit.n_held:
        notes = (*notes, joiner.limit.in_words())
    filtered, judged = judgements.filtered, judgements.judged
    return Detection(
        source=source,
        corpus=corpus,
        model=detector.model,
        normality=judgements.normality,
        judged=judged,
        abnormal=judged & (judgements.normality < threshold),
        behaviours=filtered.posterior.argmax(axis=1),
        misfit=filtered.misfit / np.maximum(corpus.n_tokens, 1),
        shift=np.where(judged, filtered.shift, 0.0),
        surprisals=_entry_surprisals(corpus, judgements),
        threshold=threshold,
        abnormal_words=abnormal_words,
        events=events,
        moments=moments,
        habits=detector.habits,
        expected_false_alarms=detector.expected_alarms(
            len(corpus) * detector.model.clip_, n_judged=int(judged.sum()), threshold=threshold
        ),
        notes=notes,
    )


class UnusualDocuments(NamedTuple):
    """The most unusual documents of a corpus, before they are joined to alarms."""

    documents: list[Event]
    """Each an event of its own, in order of time; an alarm if below the detector's threshold."""
    starts: list[int]
    """Positions in the list before which a sequence starts."""
    n_judged: int


def unusual_documents(
    detector: Detector, corpus: Corpus, *, source: str = "", least: int = 0
) -> UnusualDocuments:
    """Return every document below the detector's threshold, whatever its alarms would be.

    `Joiner` makes the alarms of them, of this threshold or of any lower one, that `detect_events`
    finds. Of the most unusual documents that are further apart than those of an event, `least` are
    among them in any case.
    """
    judgements = detector.judge_all(corpus)
    corpus = detector.model.in_own_words(corpus)
    joiner = EventJoiner(detector, source=source)
    normality, first = np.where(judgements.judged, judgements.normality, np.inf), corpus.first
    wanted = normality < detector.threshold
    behaviours = judgements.filtered.posterior.argmax(axis=1)
    wanted[most_unusual(normality, joiner.join, least)] = True
    numbers = np.flatnonzero(wanted)
    documents = [
        joiner.moment(
            float(corpus.times[t]),
            corpus.bag(t),
            judgements.judgement(t, detector.threshold, explained=True),
            detector.threshold,
            number=t,
            before=-1 if first[t] else int(behaviours[t - 1]),
        )
        for t in numbers.tolist()
    ]
    sequences = np.cumsum(first)[numbers]
    return UnusualDocuments(
        [replace(one, alarm=one.normality < detector.threshold) for one in documents],
        (1 + np.flatnonzero(np.diff(sequences))).tolist(),
        int(judgements.judged.sum()),
    )


def most_unusual(normality: Array, apart: int, n: int) -> list[int]:
    """Return the `n` lowest of these that lie further `apart`; those that are infinite never.

    Examples
    --------
    >>> most_unusual(np.array([-3, -9, -8, 0, 0, -7, np.inf]), apart=2, n=3)
    [1, 5]
    """
    left, chosen = np.array(normality), list[int]()
    while len(chosen) < n and len(left) and np.isfinite(left[t := int(left.argmin())]):
        chosen.append(t)
        left[max(t - apart, 0) : t + apart + 1] = np.inf
    return chosen


def _joined_events(
    joiner: EventJoiner,
    corpus: Corpus,
    judgements: JudgedCorpus,
    threshold: float,
    localise_all: bool,
) -> tuple[dict[int, AbnormalWords], list[Event]]:
    """Localise each abnormal document, or each judged one, and join the abnormal ones."""
    ended: list[Event | None] = []
    first, abnormal_words = corpus.first, {}
    for t, document in enumerate(corpus.bags()):
        if first[t]:
            ended.append(joiner.new_sequence())
        judgement = judgements.judgement(t, threshold, explained=localise_all)
        wanted = judgement.abnormal or (localise_all and judgement.judged)
        where = joiner.localise(document, judgement) if wanted else None
        if where is not None:
            abnormal_words[t] = where
        time = float(corpus.times[t])
        ended.append(joiner.add(time, document, judgement, threshold, number=t, where=where))
    ended.append(joiner.close())
    return abnormal_words, [event for event in ended if event is not None]


def _ranked_moments(
    joiner: EventJoiner,
    corpus: Corpus,
    judgements: JudgedCorpus,
    threshold: float,
    events: list[Event],
) -> list[Event]:
    """Return the alarms and the next most unusual documents, the most unusual first.

    Documents that would join an alarm, and neighbours of a moment that was chosen, are left out.
    """
    moments, behaviours = list(events), judgements.filtered.posterior.argmax(axis=1)
    taken = np.zeros(len(corpus), dtype=np.bool_)
    for event in events:
        if event.first_document is not None and event.last_document is not None:
            first = max(event.first_document - joiner.join, 0)
            taken[first : event.last_document + joiner.join + 1] = True
    for t in np.argsort(np.where(judgements.judged, judgements.normality, np.inf), kind="stable"):
        if len(moments) >= MOST_MOMENTS or not judgements.judged[t]:
            break
        if taken[t]:
            continue
        taken[max(t - CORRELATED, 0) : t + CORRELATED + 1] = True
        moment = joiner.moment(
            float(corpus.times[t]),
            corpus.bag(t),
            judgements.judgement(t, threshold, explained=True),
            threshold,
            number=int(t),
            before=-1 if corpus.first[t] else int(behaviours[t - 1]),
        )
        if not any(is_one_thing(moment, other) for other in moments):
            moments.append(moment)
    return sorted(moments, key=lambda event: event.normality)


def is_one_thing(event: Event, other: Event) -> bool:
    """Return whether both are of something that stands, at one time."""
    both = bool(event.standing and other.standing)
    return both and event.start < other.end and other.start < event.end


def _entry_surprisals(corpus: Corpus, judgements: JudgedCorpus) -> Array:
    """Return a surprisal for every entry of the counts, whether the model saw it or not."""
    seen = np.diff(judgements.evidence.indptr) > 0
    judged = np.repeat(seen, corpus.entries.lengths)
    surprisals = np.zeros(len(judged))
    surprisals[judged] = judgements.filtered.surprisals
    return surprisals
