"""A comparison as one self-contained HTML page, as Markdown with pictures, and as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from habitus.files import written_whole
from habitus.lab.comparison.findings import (
    LEARNERS,
    RATE,
    Comparison,
    Finding,
    MethodFigures,
    best_setting,
    findings_of,
)
from habitus.lab.comparison.plots import Plot, pictures_of
from habitus.lab.comparison.protocol import (
    PAPER_AVERAGE_PRECISION,
    PAPER_DECISION_SECONDS,
    PAPER_EM_ACCURACY,
    SHORT_NAMES,
)
from habitus.rarity import HOUR, counted, duration_in_words
from habitus.reporting.page.render import Facts, stylesheet, template, version_facts

TITLES = {
    "em": "The paper: EM",
    "vb": "The paper: variational Bayes",
    "gibbs": "The paper: collapsed Gibbs sampling",
    "blocked": "Blocked Gibbs sampling, the paper's measure",
    "ours": "The default model of habitus, by measure",
    "baselines": "Baselines",
}
NONE = "-"


class Table(NamedTuple):
    """Cells of text; the first column holds names, the others numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    titled: dict[int, str]
    """Titles within the table, by the row they precede."""
    note: str = ""


def main_table(comparison: Comparison) -> Table:
    """Return the table of all methods."""
    titled: dict[int, str] = {}
    for place, row in enumerate(comparison.rows):
        if TITLES[row.group] not in titled.values():
            titled[place] = TITLES[row.group]
    return Table(
        "All methods",
        [
            *("method", "runs", "mean AP", "spread", "best", "worst", "best accuracy"),
            *(f"events at {RATE:g}/h", "ROC AUC", "learning", "per document"),
            "paper: per document",
        ],
        [_cells(row) for row in comparison.rows],
        titled,
        "AP: average precision, the area under the precision-recall curve, by scikit-learn's "
        f"average_precision_score; its chance level is {number(comparison.chance)}, the share of "
        "abnormal documents. Spread: standard deviation over runs. Best accuracy: of the best run, "
        "at the best threshold; calling every document normal gives "
        f"{number(comparison.chance_accuracy)}. Events: share found at {RATE:g} false alarms per "
        "hour, mean over runs. Times: of one core of this machine; those of the paper are of "
        "MATLAB on a laptop of 2013.",
    )


def _cells(row: MethodFigures) -> list[str]:
    of_paper = row.group in LEARNERS
    return [
        row.method.name,
        str(len(row.average_precisions)),
        number(row.mean),
        NONE if row.spread is None else number(row.spread),
        number(row.average_precisions.max()),
        number(row.average_precisions.min()),
        number(row.accuracies.max()),
        f"{100 * row.found.mean():.0f} %",
        number(row.roc_aucs.mean()),
        time(row.learning),
        time(row.deciding),
        time(PAPER_DECISION_SECONDS[row.method.samples]) if of_paper else NONE,
    ]


def average_precision_table(comparison: Comparison) -> Table:
    """Return the paper's table of the best setting of each learning algorithm."""
    best = [(group, best_setting(comparison, group)) for group in LEARNERS]
    rows = [
        [
            SHORT_NAMES[group],
            row.method.name,
            number(row.mean),
            *(f"{value:.4f}" for value in PAPER_AVERAGE_PRECISION[group]),
        ]
        for group, row in best
        if row is not None
    ]
    columns = ["algorithm", "best setting here", "here", "paper: QMUL", "paper: Idiap"]
    note = (
        "The setting of each algorithm with the largest mean average precision, as in the paper. "
        "The paper's columns are of other videos with other labels and other shares of abnormal "
        "documents: compare the order of the rows, not the figures."
    )
    return Table("Mean average precision", columns, rows, {}, note)


def accuracy_table(comparison: Comparison) -> Table:
    """Return the paper's table of the best accuracy of EM."""
    best = [float(row.accuracies.max()) for row in comparison.group("em")]
    paper = [f"{value:.4f}" for value in PAPER_EM_ACCURACY]
    cells = [["EM", number(max(best)), number(comparison.chance_accuracy), *paper]] if best else []
    columns = ["algorithm", "here", "all called normal", "paper: QMUL", "paper: Idiap"]
    note = (
        "Share of documents classified correctly at the best threshold of the best run. Where few "
        "documents are abnormal, calling all of them normal is nearly as accurate."
    )
    return Table("Best classification accuracy of EM", columns, cells, {}, note)


def in_markdown(table: Table) -> str:
    """Return a table in Markdown."""
    lines = [_line(table.columns), _line(["---"] + ["---:"] * (len(table.columns) - 1))]
    for place, row in enumerate(table.rows):
        if place in table.titled:
            lines.append(_line([f"**{table.titled[place]}**"] + [""] * (len(row) - 1)))
        lines.append(_line(row))
    return "\n".join(lines)


def comparison_table(comparison: Comparison) -> str:
    """Return the main table with the columns that fit a terminal."""
    table = main_table(comparison)
    kept = [0, 2, 3, 4, 5, 7, 9, 10]
    cells = [[row[i] for i in kept] for row in (table.columns, *table.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(kept))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        )
        for row in cells
    ]
    return "\n".join(
        [*lines, f"chance level of AP, average precision: {number(comparison.chance)}"]
    )


def number(value: float) -> str:
    """Return a number with three decimals."""
    return f"{value:.3f}"


def time(seconds: float) -> str:
    """Return a duration with its unit.

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


VERDICTS = {True: "as in the paper", False: "not as in the paper", None: "not in the paper"}


class Content(NamedTuple):
    """Content of the page and of the Markdown file."""

    source: str
    headline: str
    lead: str
    findings: list[Finding]
    tables: list[Table]
    pictures: list[Plot]
    facts: Facts
    notes: list[str]
    command: str


def write_comparison(
    folder: Path, comparison: Comparison, *, source: str, command: str = ""
) -> Path:
    """Write comparison.html, comparison.md and pictures into a folder; return the page's path."""
    content = content_of(comparison, source, command)
    page = folder / "comparison.html"
    for picture in content.pictures:
        with written_whole(folder / f"{picture.name}.png") as temporary:
            temporary.write_bytes(picture.png)
    for path, text in ((page.with_suffix(".md"), markdown(content)), (page, html(content))):
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return page


def content_of(comparison: Comparison, source: str, command: str) -> Content:
    """Return the content of page and Markdown file."""
    tables = average_precision_table(comparison), accuracy_table(comparison)
    return Content(
        source,
        f"{len(comparison.rows)} methods of anomaly detection",
        lead(comparison),
        findings_of(comparison),
        [main_table(comparison), *(table for table in tables if table.rows)],
        pictures_of(comparison),
        facts(comparison),
        comparison.notes,
        command,
    )


def lead(comparison: Comparison) -> str:
    """Return a summary in two sentences."""
    best = max(comparison.rows, key=lambda row: row.mean)
    judged = duration_in_words(comparison.hours * HOUR)
    return (
        f"All methods learn from {comparison.n_train} documents and judge {comparison.n_test} "
        f"({judged}), of which {comparison.n_abnormal} are labelled abnormal, in "
        f"{counted(comparison.n_events, 'event')}. {best.method.name} has the largest mean "
        f"average precision: {best.mean:.3f}, where chance is {comparison.chance:.3f}."
    )


def facts(comparison: Comparison) -> Facts:
    """Return the settings of the comparison, by name."""
    protocol = comparison.protocol
    return [
        (
            "documents",
            f"{comparison.n_train} to learn from and {comparison.n_test} to judge, of "
            f"{comparison.clip:g} s",
        ),
        (
            "too short to judge",
            f"{comparison.n_test - comparison.n_judged} (under "
            f"{protocol.min_words:g} words): called normal by every method",
        ),
        ("topics, behaviours", f"{protocol.n_topics}, {protocol.n_behaviours}"),
        ("EM, VB", f"{protocol.n_iterations} iterations"),
        (
            "Gibbs",
            f"{protocol.burn_in} sweeps of burn-in, samples {protocol.thinning} sweeps "
            f"apart; plug-in takes the first sample, Monte Carlo the first {protocol.few}, or all "
            f"{protocol.many}",
        ),
        (
            "habitus",
            f"EM with prior H+1, the best of {protocol.n_restarts} restarts, measures "
            "calibrated on held-out folds of the training documents",
        ),
        ("filter", "continues from the last training document"),
        ("seed", str(protocol.seed)),
        *version_facts(),
    ]


def markdown(content: Content) -> str:
    """Return the text of the Markdown file."""
    parts = [f"# {content.headline}", content.lead]
    if content.source:
        parts.append(f"Footage: `{content.source}`")
    if content.findings:
        lines = [f"- **{f.claim}** ({VERDICTS[f.agrees]}). {f.text}" for f in content.findings]
        parts += ["## Findings", "\n".join(lines)]
    for table in content.tables:
        parts += [f"## {table.title}", in_markdown(table), table.note]
    for picture in content.pictures:
        parts += [f"## {picture.title}", f"![{picture.title}]({picture.name}.png)", picture.caption]
    parts.append("## Settings")
    if content.command:
        parts.append(f"    {content.command}")
    parts.append("\n".join(f"- {name}: {value}" for name, value in content.facts))
    parts += [f"Note: {note}." for note in content.notes]
    return "\n\n".join(parts) + "\n"


def html(content: Content) -> str:
    """Return the text of the page."""
    return template("habitus.lab.comparison", "comparison.html").render(
        **content._asdict(),
        verdicts=VERDICTS,
        style=Markup(stylesheet()),  # noqa: S704
        drawings=[Markup(picture.svg) for picture in content.pictures],  # noqa: S704
    )
