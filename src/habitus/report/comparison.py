"""A comparison as one HTML page that needs nothing else, and as Markdown with pictures beside."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from habitus.evaluation.comparison.findings import Finding, findings_of
from habitus.evaluation.comparison.summary import Summary
from habitus.files import written_whole
from habitus.report.comparison_figures import Picture, pictures_of
from habitus.report.comparison_table import (
    Table,
    accuracy_table,
    area_table,
    in_markdown,
    main_table,
)
from habitus.report.facts import Facts, version_facts

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
        loader=jinja2.PackageLoader("habitus.report"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    style = (Path(__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    return templates.get_template("comparison.html").render(
        **content._asdict(), verdicts=VERDICTS, style=Markup(style),  # noqa: S704
        drawings=[Markup(picture.svg) for picture in content.pictures],  # noqa: S704
    )  # fmt: skip
