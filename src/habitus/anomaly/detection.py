"""A whole corpus, judged: what was unusual in it, and everything a report needs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.detector import Detector
from habitus.anomaly.events import N_TOP, Event, Joiner, Moment, clock
from habitus.anomaly.thresholds import Interval, share_threshold
from habitus.arrays import Array
from habitus.corpus.documents import Corpus


class Detection(NamedTuple):
    """What a detector found in a corpus."""

    source: str
    corpus: Corpus
    normality: Array
    """Of each document, by the measure in use; 0 where it was not judged."""
    judged: NDArray[np.bool_]
    abnormal: NDArray[np.bool_]
    behaviours: NDArray[np.int64]
    """Most probable behaviour of each document given those up to it, from 0 on."""
    misfit: Array
    """Nats a word that fit no behaviour, of each document; 0 where it was not judged."""
    shift: Array
    """Nats of a behaviour out of its turn, of each document."""
    moments: dict[int, Moment]
    """What is unusual in each abnormal document, by its number."""
    threshold: float
    events: list[Event]
    promised: Interval | None
    """Alarms that normal footage of this length would have brought, where that is known."""


def detect(
    detector: Detector,
    corpus: Corpus,
    *,
    source: str = "",
    share: float | None = None,
    n_top: int = N_TOP,
) -> Detection:
    """Judge every document, and join the abnormal ones to events.

    With `share`, that share of these very documents is abnormal, whatever the detector's threshold.
    """
    judgements = list(detector.judge(corpus))
    normality = np.array([judgement.normality for judgement in judgements])
    judged = np.array([judgement.judged for judgement in judgements], dtype=np.bool_)
    if share is not None and judged.any():
        detector.threshold = share_threshold(normality[judged], share)
    abnormal = judged & (normality < detector.threshold)
    joiner = Joiner(detector.model, source=source, n_top=n_top)
    events: list[Event | None] = []
    first, moments = corpus.first, {}
    for t, document in enumerate(corpus.bags()):
        if first[t]:
            events.append(joiner.new_sequence())
        judgement = judgements[t]._replace(abnormal=bool(abnormal[t]))
        if judgement.abnormal:
            moments[t] = joiner.moment(document, judgement)
        events.append(joiner.add(corpus.times[t], document, judgement, detector.threshold))
    events.append(joiner.close())
    return Detection(
        source, corpus, normality, judged, abnormal,
        np.array([judgement.behaviour for judgement in judgements], dtype=np.int64),
        np.array([j.seen.misfit for j in judgements]) / np.maximum(corpus.n_tokens, 1),
        np.where(judged, [judgement.seen.shift for judgement in judgements], 0.0), moments,
        detector.threshold, [event for event in events if event is not None],
        detector.alarms_expected(len(corpus) * detector.model.clip_),
    )  # fmt: skip


def summary_of(detection: Detection) -> str:
    """How many events, in how much video, beside how many normal footage brings."""
    n, seconds = len(detection.events), len(detection.corpus) * detection.corpus.clip
    found = f"{n or 'no'} event{'' if n == 1 else 's'} in {clock(seconds)} of video"
    if not detection.judged.any():
        return f"{found}: nothing moved enough to be judged"
    if n == 0:
        lowest = detection.normality[detection.judged].min()
        found += f" (lowest normality {lowest:.3g}, threshold {detection.threshold:.3g})"
    if detection.promised is None:
        return found
    low, _, high = detection.promised
    return f"{found}; normal footage of that length would bring {low:.0f} to {high:.0f}"
