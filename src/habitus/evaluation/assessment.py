"""Everything that labels tell about a detector, in one result."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from habitus.anomaly.detection import Detection
from habitus.anomaly.detector import Detector
from habitus.arrays import Array, Flags
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import Footage, Label
from habitus.evaluation.metrics import (
    RATES,
    Curve,
    Estimate,
    FoundAt,
    Scored,
    area,
    best_accuracy,
    bootstrap,
    chance_of_events,
    check_both,
    events_found,
    found_at,
    found_by,
    precision_recall,
    roc,
    roc_area,
)
from habitus.evaluation.places import (
    BoxHits,
    Localisation,
    Placed,
    abnormal_documents,
    box_hits,
    localise,
)

CURVE_RATES = tuple(float(rate) for rate in np.geomspace(0.5, 60, 49))
"""False alarms an hour that the curve of events is drawn at."""


class Found(NamedTuple):
    """Events found at a rate of false alarms, or at the chosen threshold."""

    at: FoundAt
    chance: float
    """Share that the same scores find when they are shifted in time."""


class Assessment(NamedTuple):
    """How well abnormal documents and events are told, against labels."""

    labels: list[Label]
    """Those that count: what ended before the first document is left out."""
    n_documents: int
    n_abnormal: int
    seconds: float
    threshold: float | None
    """The chosen one; None where only events are known."""
    documents: dict[str, Estimate]
    """Area under the precision-recall curve, ROC area, best accuracy, and precision and recall at
    the chosen threshold, as far as they are known, by name."""
    chosen: Found
    """At the chosen threshold, or by the given events."""
    at_rates: list[Found]
    """At each of RATES; empty where only events are known."""
    precision_recall: Curve | None
    roc: Curve | None
    events: Curve | None
    """Share of events found over false alarms an hour."""
    events_chance: Curve | None
    localisation: Localisation | None
    box_hits: BoxHits | None

    def kinds(self) -> dict[str, list[int]]:
        """Labels of each kind, by number; kinds in the order of the alphabet."""
        names = sorted({label.kind for label in self.labels})
        return {
            name: [k for k, label in enumerate(self.labels) if label.kind == name] for name in names
        }

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values; None stands for what is not defined."""
        return {
            "habitus": "assessment",
            "version": 1,
            "n_documents": self.n_documents,
            "n_abnormal": self.n_abnormal,
            "n_events": len(self.labels),
            "seconds": self.seconds,
            "threshold": self.threshold,
            "documents": {
                name: {key: value if np.isfinite(value) else None for key, value in known.items()}
                for name, known in ((n, e._asdict()) for n, e in self.documents.items())
            },
            "events": {
                "chosen": self._found(self.chosen),
                "at_rates": [self._found(found) for found in self.at_rates],
            },
            "localisation": self.localisation and {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in self.localisation._asdict().items()
            },
            "box_hits": self.box_hits and self.box_hits._asdict(),
        }  # fmt: skip

    def _found(self, found: Found) -> dict[str, Any]:
        at = found.at
        return {
            "false_alarms_per_hour": at.rate,
            "threshold": at.threshold if np.isfinite(at.threshold) else None,
            "n_found": int(at.found.sum()),
            "share": at.share,
            "chance": found.chance,
            "median_delay": at.delay if at.found.any() else None,
            "n_false_alarms": at.n_false,
            "kinds": {
                kind: {"n": len(k), "n_found": int(at.found[k].sum())}
                for kind, k in self.kinds().items()
            },
        }


def scored_of(detection: Detection) -> Scored:
    """The scores of a detection."""
    corpus = detection.corpus
    return Scored(detection.normality, detection.judged, corpus.times, corpus.clip)


def assess(
    detection: Detection, labels: Sequence[Label], *, detector: Detector | None = None
) -> Assessment:
    """All figures of a detection.

    `detector` is one as it was before the first document, for the localisation recall; without it
    that is left out.
    """
    scored = scored_of(detection)
    counted = counting(labels, float(scored.times[0]))
    abnormal = abnormal_documents(counted, scored.times, scored.clip)
    check_both(abnormal)
    scores, at, v = scored.abnormality, detection.threshold, detection.corpus.vocabulary
    rates, chance_at_threshold = chance_of_events(scored, counted, (*RATES, *CURVE_RATES), at)
    found = events_found(scored, counted, (*RATES, *CURVE_RATES))
    n, x = len(RATES), np.array(CURVE_RATES)
    return Assessment(
        counted, len(abnormal), int(abnormal.sum()), scored.seconds, at,
        {**_ranking(scores, abnormal), **_calling(detection.abnormal, abnormal)},
        Found(found_at(scored, counted, at), chance_at_threshold),
        [Found(f, chance) for f, chance in zip(found[:n], rates[:n], strict=True)],
        precision_recall(scores, abnormal), roc(scores, abnormal),
        Curve(x, np.array([f.share for f in found[n:]])), Curve(x, np.array(rates[n:])),
        localise(detector, detection.corpus, counted, abnormal) if detector else None,
        box_hits(detection.events, counted, scored.clip, (v.width, v.height) if v else None),
    )  # fmt: skip


def assess_events(
    events: Sequence[Placed],
    footage: Footage,
    labels: Sequence[Label],
    *,
    skip: float | None = None,
) -> Assessment:
    """What events alone tell: they are alarms at one threshold, without a score a document.

    Neither documents nor events of the first `skip` seconds count.
    """
    times, clip = footage.times[footage.times >= (skip or 0.0)], footage.clip
    _check_events(events, footage, skip)
    events = [event for event in events if event.end > times[0]]
    counted = counting(labels, float(times[0]))
    abnormal = abnormal_documents(counted, times, clip)
    check_both(abnormal)
    called = abnormal_documents(events, times, clip)
    scored = Scored(-called.astype(np.float64), np.ones(len(times), dtype=np.bool_), times, clip)
    _, chance = chance_of_events(scored, counted, (), -0.5)
    found = Found(found_by(called, scored, counted, float("nan")), chance)
    return Assessment(
        counted, len(times), int(abnormal.sum()), scored.seconds, None,
        _calling(called, abnormal), found, [], None, None, None, None, None,
        box_hits(events, counted, clip, footage.size),
    )  # fmt: skip


def _check_events(events: Sequence[Placed], footage: Footage, skip: float | None) -> None:
    if skip is not None and skip >= footage.end:
        raise InvalidInputError(f"{footage.name}: shorter than the {skip:g} s to skip")
    late = [event.start for event in events if event.start >= footage.end]
    if late:
        raise InvalidInputError(
            f"an event at {late[0]:g} s is outside {footage.name}, which ends at {footage.end:g} "
            "s: events of another video?"
        )


def counting(labels: Sequence[Label], first: float) -> list[Label]:
    """Labels from a time on: what ended before is left out, what goes on starts there."""
    return sorted(label.since(first) for label in labels if label.end > first)


def _ranking(scores: Array, abnormal: Flags) -> dict[str, Estimate]:
    """Figures over all thresholds."""
    share = float(abnormal.mean())
    figures: dict[str, tuple[Callable[[Array, Flags], float], float]] = {
        "area": (area, share),
        "roc_area": (roc_area, 0.5),
        "best_accuracy": (best_accuracy, max(share, 1 - share)),
    }
    return {
        name: Estimate(figure(scores, abnormal), chance, *bootstrap(figure, scores, abnormal))
        for name, (figure, chance) in figures.items()
    }


def _calling(called: Flags, abnormal: Flags) -> dict[str, Estimate]:
    """Precision, if anything was called abnormal, and recall."""
    calls = called.astype(np.float64)
    figures = {"recall": (_recall, float(called.mean()))}
    if called.any():
        figures = {"precision": (_precision, float(abnormal.mean())), **figures}
    return {
        name: Estimate(figure(calls, abnormal), chance, *bootstrap(figure, calls, abnormal))
        for name, (figure, chance) in figures.items()
    }


def _precision(calls: Array, abnormal: Flags) -> float:
    return float(calls @ abnormal / calls.sum()) if calls.any() else float("nan")


def _recall(calls: Array, abnormal: Flags) -> float:
    return float(calls @ abnormal / abnormal.sum())
