"""Figures of a comparison over all runs, and statements about them that can go either way."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array, Flags
from habitus.evaluation.matching import HOUR, found_at_rates
from habitus.evaluation.metrics import ScoredDocuments, average_precision, best_accuracy, roc_auc
from habitus.lab.comparison.protocol import (
    PAPER_LOCALISATION,
    PRIORS,
    SHORT_NAMES,
    ComparisonProtocol,
    Method,
    SplitFootage,
)
from habitus.lab.comparison.run_store import ComparisonStore, Repetition, RunResult
from habitus.lab.comparison.scoring import (
    N_TOP,
    SHARES,
    LocalisationRecall,
    MethodResult,
    chance_recall,
    labelled_words,
)

RATE = 6.0
"""False alarms per hour at which found events are compared: one in ten minutes."""


class MethodFigures(NamedTuple):
    """Figures of one method over its runs."""

    method: Method
    group: str
    abnormality: list[Array]
    """Abnormality of the test documents in each run, for curves."""
    average_precisions: Array
    """Average precision of each run."""
    roc_aucs: Array
    """Area under the ROC curve of each run."""
    accuracies: Array
    """Accuracy of each run at its best threshold."""
    found: Array
    """Share of events found at RATE false alarms per hour, of each run."""
    learning: float
    """Mean seconds of one core for learning."""
    deciding: float
    """Mean seconds of one core per document."""
    recall: LocalisationRecall | None
    """Localisation recall, mean over runs."""

    @property
    def mean(self) -> float:
        """Mean average precision over runs."""
        return float(self.average_precisions.mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation of the average precision over runs; None for one run."""
        if len(self.average_precisions) < 2:
            return None
        return float(self.average_precisions.std(ddof=1))

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        recall = self.recall
        return {
            "method": self.method.name,
            "what": self.method.what,
            "group": self.group,
            "runs": len(self.average_precisions),
            "mean_average_precision": self.mean,
            "spread": self.spread,
            "best": float(self.average_precisions.max()),
            "worst": float(self.average_precisions.min()),
            "average_precisions": self.average_precisions.tolist(),
            "roc_auc": float(self.roc_aucs.mean()),
            "best_accuracy": float(self.accuracies.max()),
            "mean_accuracy": float(self.accuracies.mean()),
            "events_found": float(self.found.mean()),
            "learning_seconds": self.learning,
            "decision_seconds": self.deciding,
            "localisation_by_number": None if recall is None else recall.by_number.tolist(),
            "localisation_by_share": None if recall is None else recall.by_share.tolist(),
        }


class Comparison(NamedTuple):
    """Result of a comparison: the figures of every method."""

    rows: list[MethodFigures]
    n_train: int
    n_test: int
    n_judged: int
    """Number of test documents that are long enough to judge."""
    n_abnormal: int
    n_events: int
    n_localised: int
    """Number of documents with words in a labelled box."""
    clip: float
    """Duration of a document in seconds."""
    abnormal: Flags
    """Whether each test document is abnormal."""
    protocol: ComparisonProtocol
    chance_localisation: LocalisationRecall | None
    """Expected localisation recall of words in random order."""
    notes: list[str]

    @property
    def chance(self) -> float:
        """Average precision of uninformed scores: the share of abnormal documents."""
        return self.n_abnormal / self.n_test

    @property
    def chance_accuracy(self) -> float:
        """Accuracy of calling every document normal."""
        return 1 - self.chance

    @property
    def hours(self) -> float:
        """Duration of the test part in hours."""
        return self.n_test * self.clip / HOUR

    def row(self, name: str) -> MethodFigures | None:
        """Return the figures of a method; None if it was not run."""
        return next((row for row in self.rows if row.method.name == name), None)

    def group(self, name: str) -> list[MethodFigures]:
        """Return the figures of the methods of a group."""
        return [row for row in self.rows if row.group == name]

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        recall = self.chance_localisation
        return {
            "documents": {
                "training": self.n_train,
                "judged": self.n_judged,
                "test": self.n_test,
                "abnormal": self.n_abnormal,
                "events": self.n_events,
                "hours": self.hours,
                "localised": self.n_localised,
            },
            "chance": {
                "average_precision": self.chance,
                "roc_auc": 0.5,
                "accuracy": self.chance_accuracy,
                "localisation_by_share": None if recall is None else recall.by_share.tolist(),
                "localisation_by_number": None if recall is None else recall.by_number.tolist(),
            },
            "protocol": asdict(self.protocol),
            "false_alarms_per_hour": RATE,
            "shares": list(SHARES),
            "n_top": list(N_TOP),
            "methods": [row.to_json() for row in self.rows],
            "notes": self.notes,
        }


def summarise(
    store: ComparisonStore,
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    repetitions: Sequence[Repetition],
) -> Comparison:
    """Compute the figures of all finished runs, methods in the order of the table."""
    results: dict[str, list[RunResult]] = {}
    for repetition in repetitions:
        results.setdefault(repetition.run.name, []).append(store.get(repetition))
    rows, notes = [], []
    for run in dict.fromkeys(repetition.run for repetition in repetitions):
        finished = results[run.name]
        notes += [f"{run.name}: {note}" for result in finished for note in result.notes]
        for method in run.methods:
            scores = [
                result.results[method.name] for result in finished if method.name in result.results
            ]
            if scores:
                rows.append(_figures(method, run.group, scores, footage, protocol))
    labelled, abnormal = labelled_words(footage, protocol), footage.abnormal
    return Comparison(
        rows=rows,
        n_train=footage.n_train,
        n_test=footage.n_test,
        n_judged=int(footage.long_enough(protocol)[footage.n_train :].sum()),
        n_abnormal=int(abnormal.sum()),
        n_events=len(footage.events),
        n_localised=len(labelled),
        clip=footage.corpus.clip,
        abnormal=abnormal,
        protocol=protocol,
        chance_localisation=chance_recall(labelled) if labelled else None,
        notes=list(dict.fromkeys(notes)),
    )


def _figures(
    method: Method,
    group: str,
    runs: list[MethodResult],
    footage: SplitFootage,
    protocol: ComparisonProtocol,
) -> MethodFigures:
    judged, abnormal = footage.long_enough(protocol)[footage.n_train :], footage.abnormal
    scored = [
        ScoredDocuments(run.normality, judged, footage.times, footage.corpus.clip) for run in runs
    ]
    scores = [run.abnormality for run in scored]
    return MethodFigures(
        method=method,
        group=group,
        abnormality=scores,
        average_precisions=np.array([average_precision(values, abnormal) for values in scores]),
        roc_aucs=np.array([roc_auc(values, abnormal) for values in scores]),
        accuracies=np.array([best_accuracy(values, abnormal) for values in scores]),
        found=np.array([found_at_rates(run, footage.events, (RATE,))[0].share for run in scored]),
        learning=float(np.mean([run.learning for run in runs])),
        deciding=float(np.mean([run.deciding for run in runs])),
        recall=_mean_over_runs([run.recall for run in runs if run.recall is not None]),
    )


def _mean_over_runs(recalls: list[LocalisationRecall]) -> LocalisationRecall | None:
    if not recalls:
        return None
    by_number, by_share = zip(*recalls, strict=True)
    return LocalisationRecall(np.mean(by_number, axis=0), np.mean(by_share, axis=0))


NOTABLE = 0.01
"""Smallest difference in average precision that is stated, if beyond two standard errors."""
LEARNERS = ("em", "vb", "gibbs")


class Finding(NamedTuple):
    """A statement about the figures."""

    claim: str
    """Claim that is tested."""
    agrees: bool | None
    """Whether the figures agree with the paper; None for what the paper does not state."""
    text: str
    """The figures."""


def findings_of(comparison: Comparison) -> list[Finding]:
    """Return all statements that the methods of a comparison allow."""
    makers = (_priors, _approximation, _order, _variance, _measures, _baselines, _localisation)
    return [finding for make in makers for finding in make(comparison)]


def best_setting(comparison: Comparison, group: str) -> MethodFigures | None:
    """Return the method of a group with the largest mean average precision, as in the paper."""
    return max(comparison.group(group), key=lambda row: row.mean, default=None)


def _error(row: MethodFigures) -> float:
    """Return the standard error of the mean over runs; 0 for one run."""
    return float((row.spread or 0.0) / np.sqrt(len(row.average_precisions)))


def _noise(a: MethodFigures, b: MethodFigures) -> str:
    """Return two standard errors of the difference of two means, in words, if known."""
    if a.spread is None or b.spread is None:
        return ""
    return f"; two standard errors are {_number(2 * float(np.hypot(_error(a), _error(b))))}"


def _priors(comparison: Comparison) -> Iterator[Finding]:
    """Yield how much the prior changes the mean average precision of plug-in scores."""
    moved, parts = {}, []
    for group in LEARNERS:
        rows = [
            row for prior in PRIORS if (row := comparison.row(f"{SHORT_NAMES[group]} {prior} p"))
        ]
        if len(rows) < len(PRIORS):
            continue
        low, high = (pick(rows, key=lambda row: row.mean) for pick in (min, max))
        moved[group] = high.mean - low.mean
        parts.append(
            f"{SHORT_NAMES[group]} by {_number(moved[group])} ({low.method.name} "
            f"{_number(low.mean)}, {high.method.name} {_number(high.mean)}{_noise(low, high)})"
        )
    if "em" not in moved or len(moved) < 2:
        return
    least = moved["em"] == min(moved.values())
    yield Finding(
        "EM hardly depends on the prior, VB and Gibbs do",
        least,
        f"The prior changes the mean average precision: {', '.join(parts)}. EM is "
        f"{'the least' if least else 'not the least'} sensitive.",
    )


def _approximation(comparison: Comparison) -> Iterator[Finding]:
    """Yield how much Monte Carlo changes average precision against plug-in, paired by run."""
    changes: dict[str, float] = {}
    notable: dict[str, float] = {}
    for group in ("vb", "gibbs"):
        for prior in PRIORS:
            name = f"{SHORT_NAMES[group]} {prior}"
            plug_in, many = comparison.row(f"{name} p"), comparison.row(f"{name} mc 100")
            if plug_in and many and len(plug_in.average_precisions) == len(many.average_precisions):
                change = many.average_precisions - plug_in.average_precisions
                changes[name] = float(change.mean())
                error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else 0.0
                if abs(changes[name]) > max(NOTABLE, 2 * error):
                    notable[name] = changes[name]
    if not changes:
        return
    low, high = min(changes.values()), max(changes.values())
    listed = ", ".join(f"{name} ({_signed(change)})" for name, change in notable.items())
    yield Finding(
        "Plug-in is as good as Monte Carlo",
        max(notable.values(), default=0.0) <= 0,
        f"Monte Carlo with 100 samples changes the mean average precision by {_signed(low)} to "
        f"{_signed(high)} against plug-in, over {len(changes)} settings; "
        + (
            f"beyond {NOTABLE:g} and two standard errors: {listed}."
            if notable
            else f"in none beyond {NOTABLE:g} and two standard errors."
        ),
    )


def _order(comparison: Comparison) -> Iterator[Finding]:
    """Yield the order of the learning algorithms by their best settings."""
    best = {group: row for group in LEARNERS if (row := best_setting(comparison, group))}
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
        f"Best settings by mean average precision: "
        f"{', then '.join(f'{row.method.name} {_number(row.mean)}' for row in ranked)}"
        f"{' (the order of the paper)' if agrees else ' (not the order of the paper)'}."
        + (f" Within two standard errors of each other: {'; '.join(close)}." if close else ""),
    )


def _variance(comparison: Comparison) -> Iterator[Finding]:
    """Yield how much the runs of each learning algorithm vary."""
    spreads = {}
    for group in LEARNERS:
        of_group = [row.spread for row in comparison.group(group) if row.spread is not None]
        if of_group:
            spreads[group] = float(np.mean(of_group))
    if "em" not in spreads or len(spreads) < 2:
        return
    most = spreads["em"] == max(spreads.values())
    listed = ", ".join(
        f"{SHORT_NAMES[group]} {_number(spread)}" for group, spread in spreads.items()
    )
    yield Finding(
        "Runs of EM vary more than those of VB and Gibbs",
        most,
        f"Standard deviation of the average precision over runs, mean over settings: {listed}. "
        f"EM varies {'most' if most else 'less than another'}.",
    )


def _measures(comparison: Comparison) -> Iterator[Finding]:
    """Yield the default of habitus beside the best EM of the paper."""
    paper, ours = best_setting(comparison, "em"), comparison.row("habitus")
    if paper and ours:
        yield Finding(
            "The default of habitus against the paper's measure",
            None,
            f"The default of habitus has a mean average precision of {_number(ours.mean)}, "
            f"{ours.mean / paper.mean:.1f} times that of the paper's measure on its best EM "
            f"({paper.method.name}, {_number(paper.mean)}), and finds "
            f"{_percent(ours.found.mean())} of the events at 6 false alarms per hour, "
            f"against {_percent(paper.found.mean())}. Chance is {_number(comparison.chance)}.",
        )


def _baselines(comparison: Comparison) -> Iterator[Finding]:
    """Yield the best baseline beside EM and the default of habitus."""
    other = best_setting(comparison, "baselines")
    rivals = [row for row in (best_setting(comparison, "em"), comparison.row("habitus")) if row]
    if other and rivals:
        listed = " and ".join(
            f"{row.method.name} ({_number(row.mean)}) is "
            f"{'ahead of' if row.mean > other.mean else 'behind'} it"
            for row in rivals
        )
        yield Finding(
            "habitus and EM against the baselines",
            None,
            f"The best baseline by mean average precision is {other.method.name} "
            f"({_number(other.mean)}); {listed}.",
        )


def _localisation(comparison: Comparison) -> Iterator[Finding]:
    """Yield localisation recall where the paper reports it."""
    row, chance = comparison.row("EM H+1 p"), comparison.chance_localisation
    if row is None or row.recall is None or chance is None:
        return
    place = int(np.argmin(np.abs(np.array(SHARES) - PAPER_LOCALISATION[0])))
    here = float(row.recall.by_share[place])
    yield Finding(
        "The least likely words localise anomalies",
        here >= PAPER_LOCALISATION[1] - 0.05,
        f"Where N_top words can hold {_percent(PAPER_LOCALISATION[0])} of the abnormal ones, "
        f"{row.method.name} has a recall of {_percent(here)} (words in random order: "
        f"{_percent(float(chance.by_share[place]))}; the paper, on ten events of its own: about "
        f"{_percent(PAPER_LOCALISATION[1])}), over {comparison.n_localised} documents.",
    )


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
