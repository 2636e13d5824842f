"""habitus show: what a model has learnt, or what a corpus holds."""

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from habitus.report.figures.scene import Likely, Summary


def show(
    file: Annotated[Path, typer.Argument(help="A habitus model or corpus file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the picture; beside the file if not."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a model or a corpus, in words and as a picture.

    A model: how much time each behaviour takes, how long it lasts, what follows, what it is made
    of, and all of that as a picture. A corpus: all motion on the scene, words per document over
    time.
    Example: habitus show scene.model
    """
    from habitus.files import kind_of

    if kind_of(file) == "corpus":
        _show_corpus(file, output, as_json)
    else:
        _show_model(file, output, as_json)


def _show_corpus(file: Path, output: Path | None, as_json: bool) -> None:
    from habitus.corpus.documents import Corpus
    from habitus.report.figures.scene import SHORT, draw_corpus

    corpus = Corpus.load(file)
    n_tokens = corpus.n_tokens
    picture = output or file.with_name(f"{file.stem}.png")
    draw_corpus(picture, corpus, title=file.name)
    summary = {
        "documents": len(corpus),
        "sequences": len(corpus.lengths),
        "words": float(n_tokens.sum()),
        "vocabulary": corpus.n_words,
        "median_words": float(median(n_tokens)) if len(n_tokens) else 0.0,
        "short": float((n_tokens < SHORT).mean()),
        "faults": int((corpus.conditions != 0).sum()),
        "picture": str(picture),
    }
    if as_json:
        typer.echo(json.dumps(summary))
        return
    typer.echo(
        f"{summary['documents']} documents in {summary['sequences']} sequence(s), "
        f"{summary['words']:.10g} words of {summary['vocabulary']}; half of the documents have "
        f"at least {summary['median_words']:.10g}, {summary['short']:.0%} under {SHORT}"
    )
    if summary["faults"]:
        typer.echo(f"{summary['faults']} documents with the camera moved, covered or frozen")
    typer.echo(f"wrote {picture}")


def _show_model(file: Path, output: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from habitus.model import MarkovClusteringTopicModel
    from habitus.report.figures.scene import draw_model, summarise

    model = MarkovClusteringTopicModel.load(file)
    summary, picture = summarise(model), output or file.with_name(f"{file.stem}.png")
    if output is not None or not as_json:  # what asks for figures has not asked for a picture
        draw_model(picture, model, title=file.name)
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
    typer.echo(f"wrote {picture}")


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
