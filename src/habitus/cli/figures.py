"""Figures of an assessment as tables, for a person."""

from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from habitus.evaluation.assessment import Assessment
    from habitus.evaluation.matching import FoundEvents

NAMES = {
    "average_precision": "average precision (1)",
    "roc_auc": "area under ROC",
    "best_accuracy": "best accuracy (2)",
    "precision": "precision",
    "recall": "recall",
}
N_TOP = 10
"""Least likely words that a place is told from, as in the paper's example."""


def tell(found: "Assessment", what: str) -> None:
    """Print all figures."""
    from rich.console import Console

    from habitus.anomaly.events import clock

    console = Console(highlight=False, soft_wrap=True)
    n, clip = found.n_documents, found.seconds / found.n_documents
    console.print(
        f"{what}: {clock(found.seconds)} of video in {n} documents of {clip:g} s; the labels call "
        f"{found.n_abnormal} abnormal ({found.n_abnormal / n:.1%}), in {_events(len(found.labels))}"
    )
    console.print(_documents(found))
    console.print(_found(found))
    if any(found.kinds()):
        console.print(_kinds(found))
    for line in _places(found):
        console.print(line)
    for line in _notes(found):
        console.print(line, style="dim")


def _events(n: int) -> str:
    return f"{n} event{'' if n == 1 else 's'}"


def _table(*headings: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first, *others = headings
    table = Table(first, box=SIMPLE_HEAD)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _documents(found: "Assessment") -> "Table":
    table = _table("documents", "value", "chance", "90 % interval")
    for name in NAMES:
        e = found.documents.get(name)
        if e is not None:
            known = isfinite(e.low) and isfinite(e.high)  # not of a handful of documents
            interval = f"{e.low:.3f} to {e.high:.3f}" if known else "-"
            table.add_row(_name(name, found), f"{e.value:.3f}", f"{e.chance:.3f}", interval)
        elif name == "precision":  # nothing was called abnormal
            share = found.n_abnormal / found.n_documents
            table.add_row(_name(name, found), "-", f"{share:.3f}", "-")
    return table


def _name(name: str, found: "Assessment") -> str:
    if name not in ("precision", "recall"):
        return NAMES[name]
    where = "of the events" if found.threshold is None else f"at {found.threshold:.4g}"
    return f"{NAMES[name]} {where}"


def _columns(found: "Assessment") -> "list[tuple[str, FoundEvents]]":
    """What each set of found events is called."""
    chosen = "these events" if found.threshold is None else f"at {found.threshold:.4g}"
    return [*((f"{f.rate:g}/h", f) for f in found.at_rates), (chosen, found.chosen)]


def _found(found: "Assessment") -> "Table":
    allowed = "allowed" if found.at_rates else "alarms"
    table = _table(allowed, "events found", "share", "chance", "median delay", "false alarms")
    for name, at in _columns(found):
        delay = f"{at.median_delay:.1f} s" if at.found.any() else "-"
        table.add_row(
            name,
            f"{at.found.sum()} of {len(at.found)}",
            f"{at.share:.0%}",
            f"{at.chance:.0%}",
            delay,
            str(at.n_false_alarms),
        )
    return table


def _kinds(found: "Assessment") -> "Table":
    columns = _columns(found)
    table = _table("kind", "events", *(name for name, _ in columns))
    for kind, k in found.kinds().items():
        counts = (str(f.found[k].sum()) for _, f in columns)
        table.add_row(kind or "(none)", str(len(k)), *counts)
    return table


def _places(found: "Assessment") -> list[str]:
    lines = []
    if found.box_hits is not None:
        n, hits, chance = found.box_hits
        lines.append(
            f"place: a box overlaps the labelled one in {hits} of {_events(n)} found "
            f"({hits / n:.0%}; boxes at random places: {chance:.0%})"
        )
    if found.localisation is not None:
        where = found.localisation
        k = where.n_tops.index(N_TOP)
        lines.append(
            f"place: of the {N_TOP} least likely words of an abnormal document, "
            f"{where.recall[k]:.0%} of those that could be are in the labelled box (words at "
            f"random: {where.chance[k]:.0%}; {where.n_documents} documents)"
        )
    return lines


def _notes(found: "Assessment") -> list[str]:
    from habitus.anomaly.events import clock
    from habitus.evaluation.matching import HOUR

    lines = []
    if "average_precision" in found.documents:
        lines = [
            "(1) as scikit-learn's average_precision_score; chance: the share of abnormal ones",
            "(2) over all thresholds; chance: calling every document the commoner of the two",
        ]
    blind = [f"{f.rate:g}/h" for f in found.at_rates if f.rate * found.seconds < HOUR]
    if blind:
        lines.append(f"{clock(found.seconds)} is short: {', '.join(blind)} allow no false alarm")
    return [
        *lines,
        "90 % interval: bootstrap over blocks of up to 30 documents; chance of events: the same "
        "scores, shifted in time",
    ]
