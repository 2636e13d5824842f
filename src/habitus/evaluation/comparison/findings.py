"""What the figures say, in sentences that can come out either way."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from habitus.evaluation.comparison.localisation import SHARES
from habitus.evaluation.comparison.methods import PRIORS, SHORT
from habitus.evaluation.comparison.paper import LOCALISED
from habitus.evaluation.comparison.summary import Row, Summary

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
