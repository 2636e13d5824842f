"""The one table: what every method found, over all its runs.

What the figures say, in sentences that can come out either way.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array
from habitus.evaluation.matching import HOUR, found_at_rates
from habitus.evaluation.metrics import ScoredDocuments, average_precision, best_accuracy, roc_auc
from habitus.lab.comparison.baselines import N_TOP, SHARES, Judged, Recall, chance_of, truths_of
from habitus.lab.comparison.protocol import LOCALISED, PRIORS, SHORT, Footage, Method, Protocol
from habitus.lab.comparison.runs import Finished, Run, Store

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
    scored = [
        ScoredDocuments(run.normality, judged, footage.times, footage.corpus.clip) for run in runs
    ]
    abnormality = [each.abnormality for each in scored]
    recalls = [run.recall for run in runs if run.recall is not None]
    return Row(
        method, group, abnormality,
        np.array([average_precision(each, truth) for each in abnormality]),
        np.array([roc_auc(each, truth) for each in abnormality]),
        np.array([best_accuracy(each, truth) for each in abnormality]),
        np.array([found_at_rates(each, footage.events, (RATE,))[0].share for each in scored]),
        float(np.mean([run.learning for run in runs])),
        float(np.mean([run.deciding for run in runs])),
        Recall(*(np.mean(each, axis=0) for each in zip(*recalls, strict=True)))
        if recalls
        else None,
    )  # fmt: skip


REMARKABLE = 0.01
"""A difference in area that is worth a word, if it is also beyond two standard errors."""
LEARNERS = ("em", "vb", "gibbs")


class Finding(NamedTuple):
    """One statement."""

    claim: str
    """What is at stake."""
    agrees: bool | None
    """With the paper; None where the paper says nothing."""
    text: str


def findings_of(summary: Summary) -> list[Finding]:
    """All statements that these methods allow."""
    makers = (_priors, _approximation, _order, _variance, _measures, _baselines, _localisation)
    return [finding for make in makers for finding in make(summary)]


def best_setting(summary: Summary, group: str) -> Row | None:
    """The row of a learner with the largest mean area, as the paper picks it."""
    return max(summary.group(group), key=lambda row: row.mean, default=None)


def _error(row: Row) -> float:
    """Standard error of the mean area over runs; unknown from one run."""
    return float((row.spread or 0.0) / np.sqrt(len(row.areas)))


def _noise(a: Row, b: Row) -> str:
    """How far apart two means may be by chance; nothing where runs do not tell."""
    if a.spread is None or b.spread is None:
        return ""
    return f"; two standard errors are {_number(2 * float(np.hypot(_error(a), _error(b))))}"


def _priors(summary: Summary) -> Iterator[Finding]:
    """Hyperparameter sensitivity: how far priors move the mean area of plug-in scores."""
    moved, told = {}, []
    for group in LEARNERS:
        rows = [row for prior in PRIORS if (row := summary.row(f"{SHORT[group]} {prior} p"))]
        if len(rows) < len(PRIORS):
            continue
        low, high = (pick(rows, key=lambda row: row.mean) for pick in (min, max))
        moved[group] = high.mean - low.mean
        told.append(
            f"{SHORT[group]}'s by {_number(moved[group])} ({low.method.name} "
            f"{_number(low.mean)}, {high.method.name} {_number(high.mean)}{_noise(low, high)})"
        )
    if "em" not in moved or len(moved) < 2:
        return
    least = moved["em"] == min(moved.values())
    yield Finding(
        "EM hardly depends on the prior, VB and Gibbs do",
        least,
        f"The prior moves the mean area: {', '.join(told)}. EM is "
        f"{'the least' if least else 'not the least'} sensitive.",
    )


def _approximation(summary: Summary) -> Iterator[Finding]:
    changes: dict[str, float] = {}
    worth: dict[str, float] = {}
    for group in ("vb", "gibbs"):
        for prior in PRIORS:
            name = f"{SHORT[group]} {prior}"
            plug_in, many = summary.row(f"{name} p"), summary.row(f"{name} mc 100")
            if plug_in and many and len(plug_in.areas) == len(many.areas):
                change = many.areas - plug_in.areas
                changes[name] = float(change.mean())
                error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else 0.0
                if abs(changes[name]) > max(REMARKABLE, 2 * error):
                    worth[name] = changes[name]
    if not changes:
        return
    low, high = min(changes.values()), max(changes.values())
    told = ", ".join(f"{name} ({_signed(change)})" for name, change in worth.items())
    yield Finding(
        "Plug-in is as good as Monte Carlo",
        max(worth.values(), default=0.0) <= 0,
        f"Monte Carlo with 100 samples changes the mean area by {_signed(low)} to {_signed(high)} "
        f"against plug-in, over {len(changes)} settings; "
        + (f"beyond {REMARKABLE:g} and two standard errors: {told}." if worth
           else f"in none beyond {REMARKABLE:g} and two standard errors."),
    )  # fmt: skip


def _order(summary: Summary) -> Iterator[Finding]:
    best = {group: row for group in LEARNERS if (row := best_setting(summary, group))}
    if len(best) < 2:
        return
    ranked = sorted(best.values(), key=lambda row: -row.mean)
    close = [
        f"{a.method.name} and {b.method.name}"
        for a, b in pairwise(ranked)
        if a.mean - b.mean <= 2 * np.hypot(_error(a), _error(b))
    ]
    agrees = [row.group for row in ranked] == [group for group in LEARNERS if group in best]
    yield Finding(
        "EM is at least as good as VB, and VB as Gibbs",
        agrees,
        f"Best settings by mean area: "
        f"{', then '.join(f'{row.method.name} {_number(row.mean)}' for row in ranked)}"
        f"{' (the order of the paper)' if agrees else ' (not the order of the paper)'}."
        + (f" Within two standard errors of each other: {'; '.join(close)}." if close else ""),
    )


def _variance(summary: Summary) -> Iterator[Finding]:
    spreads = {}
    for group in LEARNERS:
        known = [row.spread for row in summary.group(group) if row.spread is not None]
        if known:
            spreads[group] = float(np.mean(known))
    if "em" not in spreads or len(spreads) < 2:
        return
    most = spreads["em"] == max(spreads.values())
    told = ", ".join(f"{SHORT[group]} {_number(spread)}" for group, spread in spreads.items())
    yield Finding(
        "Runs of EM vary more than those of VB and Gibbs",
        most,
        f"Standard deviation of the area over runs, mean over settings: {told}. EM varies "
        f"{'most' if most else 'less than another'}.",
    )


def _measures(summary: Summary) -> Iterator[Finding]:
    paper, ours = best_setting(summary, "em"), summary.row("habitus")
    if paper and ours:
        yield Finding(
            "Our measure against the paper's",
            None,
            f"What habitus does by default has a mean area of {_number(ours.mean)}, "
            f"{ours.mean / paper.mean:.1f} times that of the paper's measure on its best EM "
            f"({paper.method.name}, {_number(paper.mean)}), and finds "
            f"{_percent(ours.found.mean())} of the events at 6 false alarms an hour, "
            f"against {_percent(paper.found.mean())}. Chance is {_number(summary.chance)}.",
        )


def _baselines(summary: Summary) -> Iterator[Finding]:
    other = best_setting(summary, "baselines")
    rivals = [row for row in (best_setting(summary, "em"), summary.row("habitus")) if row]
    if other and rivals:
        told = " and ".join(
            f"{row.method.name} ({_number(row.mean)}) is "
            f"{'ahead of' if row.mean > other.mean else 'behind'} it"
            for row in rivals
        )
        yield Finding(
            "Against what one would pick instead",
            None,
            f"The best of the others by mean area is {other.method.name} "
            f"({_number(other.mean)}); {told}.",
        )


def _localisation(summary: Summary) -> Iterator[Finding]:
    row, chance = summary.row("EM H+1 p"), summary.localised_by_chance
    if row is None or row.recall is None or chance is None:
        return
    place = int(np.argmin(np.abs(np.array(SHARES) - LOCALISED[0])))
    here = float(row.recall.by_share[place])
    yield Finding(
        "The least likely words say where",
        here >= LOCALISED[1] - 0.05,
        f"Where {_percent(LOCALISED[0])} of the abnormal words could be found, "
        f"{row.method.name} finds {_percent(here)} of those (words in any order: "
        f"{_percent(float(chance.by_share[place]))}; the paper, on ten events of its own: about "
        f"{_percent(LOCALISED[1])}), over {summary.n_localised} documents.",
    )


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
