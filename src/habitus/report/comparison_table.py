"""The tables of a comparison, as cells of text: for a page, a Markdown file and a terminal."""

from collections.abc import Sequence
from typing import NamedTuple

from habitus.evaluation.comparison.findings import LEARNERS, best_setting
from habitus.evaluation.comparison.methods import SHORT
from habitus.evaluation.comparison.paper import DECIDING, EM_ACCURACY, MEAN_AREA
from habitus.evaluation.comparison.summary import RATE, Row, Summary

TITLES = {
    "em": "The paper's: EM",
    "vb": "The paper's: variational Bayes",
    "gibbs": "The paper's: collapsed Gibbs sampling",
    "blocked": "Our blocked sampler, the paper's measure",
    "ours": "habitus, as it learns and judges by default, by measure",
    "baselines": "What one would pick instead",
}
NONE = "-"


class Table(NamedTuple):
    """Cells; the first column is text, the others are numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    titled: dict[int, str]
    """Titles within the table, by the row that they stand before."""
    note: str = ""


def main_table(summary: Summary) -> Table:
    """All methods over all runs."""
    rows: list[list[str]] = []
    titled: dict[int, str] = {}
    for row in summary.rows:
        titled.setdefault(len(rows), "")
        if TITLES[row.group] not in titled.values():
            titled[len(rows)] = TITLES[row.group]
        rows.append(_cells(row))
    return Table(
        "All methods",
        ["method", "runs", "mean area", "spread", "best", "worst", "best accuracy",
         f"events at {RATE:g}/h", "ROC area", "learning", "a decision", "paper: a decision"],
        rows,
        {place: title for place, title in titled.items() if title},
        "Area: under the precision-recall curve, by scikit-learn's average_precision_score; its "
        f"chance level is {number(summary.chance)}, the share of abnormal documents. Spread: "
        "standard deviation over runs. Best accuracy: of the best run, at the best threshold; "
        f"calling every document normal gives {number(summary.accuracy_by_chance)}. Events: share "
        f"found, mean over runs, when {RATE:g} false alarms an hour are allowed. Times: of one "
        "core of this machine; the paper's are of MATLAB on a laptop of 2013.",
    )  # fmt: skip


def _cells(row: Row) -> list[str]:
    of_paper = row.group in LEARNERS
    return [
        row.method.name, str(len(row.areas)), number(row.mean),
        NONE if row.spread is None else number(row.spread), number(row.areas.max()),
        number(row.areas.min()), number(row.accuracies.max()),
        f"{100 * row.found.mean():.0f} %", number(row.roc_areas.mean()), time(row.learning),
        time(row.deciding), time(DECIDING[row.method.samples]) if of_paper else NONE,
    ]  # fmt: skip


def area_table(summary: Summary) -> Table | None:
    """The paper's table "mean area": the best setting of each learner."""
    best = [(group, best_setting(summary, group)) for group in LEARNERS]
    rows = [
        [SHORT[group], row.method.name, number(row.mean), *map(_four, MEAN_AREA[group])]
        for group, row in best
        if row is not None
    ]
    columns = ["learner", "best setting here", "here", "paper: QMUL", "paper: Idiap"]
    note = (
        "Of each learner the setting with the largest mean area, as in the paper. Its columns are "
        "of other videos with other labels and other shares of abnormal documents: the order of "
        "rows may be compared, the figures not."
    )
    return Table("Mean area under the precision-recall curve", columns, rows, {}, note)


def accuracy_table(summary: Summary) -> Table | None:
    """The paper's table "accuracy": the best of EM."""
    rows = summary.group("em")
    if not rows:
        return None
    best = max(float(row.accuracies.max()) for row in rows)
    cells = [number(best), number(summary.accuracy_by_chance), *map(_four, EM_ACCURACY)]
    columns = ["learner", "here", "all called normal", "paper: QMUL", "paper: Idiap"]
    note = (
        "Share of documents classified rightly at the best threshold of the best run. Where few "
        "documents are abnormal, calling all of them normal is nearly as accurate."
    )
    return Table("Best classification accuracy of EM", columns, [["EM", *cells]], {}, note)


def in_markdown(table: Table) -> str:
    """A table of Markdown."""
    lines = [_line(table.columns), _line(["---"] + ["---:"] * (len(table.columns) - 1))]
    for place, row in enumerate(table.rows):
        if place in table.titled:
            lines.append(_line([f"**{table.titled[place]}**"] + [""] * (len(row) - 1)))
        lines.append(_line(row))
    return "\n".join(lines)


def in_terminal(summary: Summary) -> str:
    """The main table, narrow enough for a terminal."""
    table = main_table(summary)
    kept = [0, 2, 3, 4, 5, 7, 9, 10]
    cells = [[row[i] for i in kept] for row in (table.columns, *table.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(kept))]
    lines = [
        "  ".join([row[0].ljust(widths[0])]
                  + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)])
        for row in cells
    ]  # fmt: skip
    return "\n".join([*lines, f"chance level of the area: {number(summary.chance)}"])


def number(value: float) -> str:
    """Three decimals."""
    return f"{value:.3f}"


def _four(value: float) -> str:
    return f"{value:.4f}"


def time(seconds: float) -> str:
    """A length of time with its unit.

    >>> time(0.000014), time(0.0044), time(0.333), time(31.41), time(0)
    ('14 us', '4.4 ms', '333 ms', '31.4 s', '0 us')
    """
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} us"
    if seconds < 1:
        return f"{1e3 * seconds:.{1 if seconds < 0.1 else 0}f} ms"
    return f"{seconds:.{1 if seconds < 100 else 0}f} s"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
