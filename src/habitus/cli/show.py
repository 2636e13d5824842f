"""habitus show: what a model has learnt, as a table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from habitus.report.summary import Likely, Summary


def show(
    model: Annotated[Path, typer.Argument(help="A habitus model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a model's behaviours: how much time, how long, what follows, made of what.

    Example: habitus show scene.model
    """
    from rich.console import Console

    from habitus.model import MarkovClusteringTopicModel
    from habitus.report.summary import summarise

    summary = summarise(MarkovClusteringTopicModel.load(model))
    if as_json:
        typer.echo(json.dumps(summary.to_json()))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{summary.n_behaviours} behaviours, {summary.n_topics} topics, {summary.n_words} words; "
        f"{summary.learning}, prior {summary.prior}, best of {len(summary.restarts)} run(s)"
    )
    console.print(_table(summary))
    console.print("share: of all documents in the long run; lasts: documents, in the mean.")
    for note in summary.degenerate:
        console.print(f"note: {note}; left uniform")


def _table(summary: "Summary") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in ("behaviour", "share", "lasts"):
        table.add_column(heading, justify="right")
    table.add_column("then")
    table.add_column("heaviest topics")
    for behaviour in summary.behaviours:
        table.add_row(
            str(behaviour.number),
            f"{behaviour.share:.0%}",
            "for ever" if behaviour.duration is None else f"{behaviour.duration:.1f}",
            _listed(behaviour.successors),
            _listed(behaviour.topics),
        )
    return table


def _listed(items: "list[Likely]") -> str:
    """The first two, and others that matter too."""
    worth = [item for i, item in enumerate(items) if i < 2 or item.probability >= 0.2]
    return ", ".join(f"{item.number} ({item.probability:.0%})" for item in worth) or "-"
