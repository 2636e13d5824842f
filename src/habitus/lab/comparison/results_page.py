"""The tables of a comparison, as cells of text: for a page, a Markdown file and a terminal.

A comparison as one HTML page that needs nothing else, and as Markdown with pictures beside.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from habitus.files import written_whole
from habitus.lab.comparison.findings import (
    LEARNERS,
    RATE,
    Finding,
    Row,
    Summary,
    best_setting,
    findings_of,
)
from habitus.lab.comparison.plots import Picture, pictures_of
from habitus.lab.comparison.protocol import DECIDING, EM_ACCURACY, MEAN_AREA, SHORT
from habitus.report.page.render import Facts, stylesheet, version_facts

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


VERDICTS = {True: "as in the paper", False: "not as in the paper", None: "beyond the paper"}


class Content(NamedTuple):
    """What page and Markdown file both say."""

    source: str
    headline: str
    lead: str
    findings: list[Finding]
    tables: list[Table]
    pictures: list[Picture]
    facts: Facts
    notes: list[str]
    command: str


def write_comparison(folder: Path, summary: Summary, *, source: str, command: str = "") -> Path:
    """Write comparison.html, comparison.md and its pictures into a folder; gives the page."""
    content = content_of(summary, source, command)
    page = folder / "comparison.html"
    for picture in content.pictures:
        with written_whole(folder / f"{picture.name}.png") as temporary:
            temporary.write_bytes(picture.png)
    for path, text in ((page.with_suffix(".md"), markdown(content)), (page, html(content))):
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return page


def content_of(summary: Summary, source: str, command: str) -> Content:
    """Everything there is to say."""
    tables = [table for table in (area_table(summary), accuracy_table(summary)) if table]
    return Content(
        source, f"{len(summary.rows)} ways to find what is not usual", lead(summary),
        findings_of(summary), [main_table(summary), *(table for table in tables if table.rows)],
        pictures_of(summary), facts(summary), summary.notes, command,
    )  # fmt: skip


def lead(summary: Summary) -> str:
    """What was compared on what."""
    best = max(summary.rows, key=lambda row: row.mean)
    return (
        f"Learnt from {summary.n_train} documents, then judged {summary.n_test} "
        f"({summary.hours * 60:.0f} minutes), of which {summary.n_abnormal} are labelled abnormal, "
        f"in {summary.n_events} events. The largest mean area under the precision-recall curve is "
        f"that of {best.method.name}: {best.mean:.3f}, where chance is {summary.chance:.3f}."
    )


def facts(summary: Summary) -> Facts:
    """How it was compared."""
    protocol = summary.protocol
    return [
        ("documents", f"{summary.n_train} to learn from, {summary.n_test} to judge, of "
         f"{summary.clip:g} s"),
        ("too short to judge", f"{summary.n_test - summary.n_judged} (under "
         f"{protocol.min_words:g} words): called normal by every method"),
        ("topics, behaviours", f"{protocol.n_topics}, {protocol.n_behaviours}"),
        ("EM, VB", f"{protocol.n_iterations} iterations"),
        ("Gibbs", f"{protocol.burn_in} sweeps of burn-in, samples {protocol.thinning} sweeps "
         f"apart; plug-in takes the first sample, Monte Carlo the first {protocol.few}, or all "
         f"{protocol.many}"),
        ("habitus", f"EM with prior H+1, the best of {protocol.n_restarts} starts, measures "
         "calibrated on held-out stretches of the training documents"),
        ("filter", "goes on from the last training document"),
        ("seed", str(protocol.seed)),
        *version_facts(),
    ]  # fmt: skip


def markdown(content: Content) -> str:
    """The Markdown file."""
    main, *others = content.tables
    parts = [f"# {content.headline}", content.lead]
    if content.source:
        parts.append(f"Footage: `{content.source}`")
    parts += _told(content.findings)
    parts += [f"## {main.title}", in_markdown(main), main.note]
    for table in others:
        parts += [f"## {table.title}", in_markdown(table), table.note]
    for picture in content.pictures:
        parts += [f"## {picture.title}", f"![{picture.title}]({picture.name}.png)",
                  picture.caption]  # fmt: skip
    parts.append("## How it was made")
    if content.command:
        parts.append(f"    {content.command}")
    parts.append("\n".join(f"- {name}: {value}" for name, value in content.facts))
    parts += [f"Note: {note}." for note in content.notes]
    return "\n\n".join(parts) + "\n"


def _told(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return []
    lines = [f"- **{f.claim}** ({VERDICTS[f.agrees]}). {f.text}" for f in findings]
    return ["## What this says", "\n".join(lines)]


def html(content: Content) -> str:
    """The page."""
    import jinja2
    from markupsafe import Markup

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("habitus.lab.comparison"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    return templates.get_template("comparison.html").render(
        **content._asdict(), verdicts=VERDICTS, style=Markup(stylesheet()),  # noqa: S704
        drawings=[Markup(picture.svg) for picture in content.pictures],  # noqa: S704
    )  # fmt: skip
