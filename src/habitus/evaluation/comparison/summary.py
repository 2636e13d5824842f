"""The one table: what every method found, over all its runs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from habitus.evaluation.comparison.chains import Finished
from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.localisation import (
    N_TOP,
    SHARES,
    Recall,
    chance_of,
    truths_of,
)
from habitus.evaluation.comparison.methods import Method
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.comparison.scoring import Judged
from habitus.evaluation.comparison.store import Run, Store
from habitus.evaluation.measures import (
    HOUR,
    Scored,
    area,
    best_accuracy,
    events_found,
    roc_area,
)
from habitus.model.parameters import Array

RATE = 6.0
"""False alarms an hour that an operator may put up with: one in ten minutes."""


class Row(NamedTuple):
    """One method over its runs."""

    method: Method
    group: str
    abnormality: list[Array]
    """Of the documents judged, a run each: to draw curves from."""
    areas: Array
    """Under the precision-recall curve, a run each."""
    roc_areas: Array
    accuracies: Array
    """At the best of all thresholds."""
    found: Array
    """Share of events found at RATE false alarms an hour."""
    learning: float
    """Mean seconds of one core."""
    deciding: float
    """Mean seconds of one core a document."""
    recall: Recall | None
    """Of localisation, mean over runs."""

    @property
    def mean(self) -> float:
        """Mean area."""
        return float(self.areas.mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation of the area over runs; None for one run."""
        return float(self.areas.std(ddof=1)) if len(self.areas) > 1 else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.method.name, "what": self.method.what, "group": self.group,
            "runs": len(self.areas), "mean_area": self.mean, "spread": self.spread,
            "best": float(self.areas.max()), "worst": float(self.areas.min()),
            "areas": self.areas.tolist(), "roc_area": float(self.roc_areas.mean()),
            "best_accuracy": float(self.accuracies.max()),
            "mean_accuracy": float(self.accuracies.mean()),
            "events_found": float(self.found.mean()), "learning_seconds": self.learning,
            "decision_seconds": self.deciding,
            "localisation_by_number": None if self.recall is None
            else self.recall.by_number.tolist(),
            "localisation_by_share": None if self.recall is None
            else self.recall.by_share.tolist(),
        }  # fmt: skip


class Summary(NamedTuple):
    """The comparison as figures."""

    rows: list[Row]
    n_train: int
    n_test: int
    n_judged: int
    """Documents long enough to judge."""
    n_abnormal: int
    n_events: int
    n_localised: int
    """Documents of which it is known where the abnormal is."""
    clip: float
    abnormal: Any
    """Whether each document judged is abnormal, flags."""
    protocol: Protocol
    localised_by_chance: Recall | None
    notes: list[str]

    @property
    def chance(self) -> float:
        """Area under the precision-recall curve of scores that know nothing."""
        return self.n_abnormal / self.n_test

    @property
    def accuracy_by_chance(self) -> float:
        """Accuracy of calling every document normal."""
        return 1 - self.chance

    @property
    def hours(self) -> float:
        """Of footage judged."""
        return self.n_test * self.clip / HOUR

    def row(self, name: str) -> Row | None:
        """The row of a method, if it was run."""
        return next((row for row in self.rows if row.method.name == name), None)

    def group(self, name: str) -> list[Row]:
        """The rows of a group."""
        return [row for row in self.rows if row.group == name]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        chance = self.localised_by_chance
        return {
            "documents": {
                "training": self.n_train, "judged": self.n_judged, "test": self.n_test,
                "abnormal": self.n_abnormal, "events": self.n_events, "hours": self.hours,
                "localised": self.n_localised,
            },
            "chance": {
                "area": self.chance, "roc_area": 0.5, "accuracy": self.accuracy_by_chance,
                "localisation_by_share": None if chance is None else chance.by_share.tolist(),
                "localisation_by_number": None if chance is None else chance.by_number.tolist(),
            },
            "protocol": self.protocol.to_json(),
            "false_alarms_an_hour": RATE,
            "shares": list(SHARES),
            "n_top": list(N_TOP),
            "methods": [row.to_json() for row in self.rows],
            "notes": self.notes,
        }  # fmt: skip


def summarise(store: Store, footage: Footage, protocol: Protocol, runs: Sequence[Run]) -> Summary:
    """All finished runs as one table, in the order of the table of methods."""
    results: dict[str, list[Finished]] = {}
    for run in runs:
        results.setdefault(run.chain.name, []).append(store.get(run))
    rows, notes = [], []
    for chain in dict.fromkeys(run.chain for run in runs):
        finished = results[chain.name]
        notes += [f"{chain.name}: {note}" for each in finished for note in each.notes]
        for method in chain.methods:
            judged = [each.judged[method.name] for each in finished if method.name in each.judged]
            if judged:
                rows.append(_row(method, chain.group, judged, footage, protocol))
    truths, abnormal = truths_of(footage, protocol), footage.abnormal
    return Summary(
        rows, footage.n_train, footage.n_test,
        int(footage.long_enough(protocol)[footage.n_train :].sum()), int(abnormal.sum()),
        len(footage.events), len(truths), footage.corpus.clip, abnormal, protocol,
        chance_of(truths) if truths else None, list(dict.fromkeys(notes)),
    )  # fmt: skip


def _row(
    method: Method, group: str, runs: list[Judged], footage: Footage, protocol: Protocol
) -> Row:
    judged, truth = footage.long_enough(protocol)[footage.n_train :], footage.abnormal
    scored = [Scored(run.normality, judged, footage.times, footage.corpus.clip) for run in runs]
    abnormality = [each.abnormality for each in scored]
    recalls = [run.recall for run in runs if run.recall is not None]
    return Row(
        method, group, abnormality,
        np.array([area(each, truth) for each in abnormality]),
        np.array([roc_area(each, truth) for each in abnormality]),
        np.array([best_accuracy(each, truth) for each in abnormality]),
        np.array([events_found(each, footage.events, (RATE,))[0].share for each in scored]),
        float(np.mean([run.learning for run in runs])),
        float(np.mean([run.deciding for run in runs])),
        Recall(*(np.mean(each, axis=0) for each in zip(*recalls, strict=True)))
        if recalls
        else None,
    )  # fmt: skip
