"""habitus show: what a model has learnt, or what a corpus holds."""

from pathlib import Path

import habitus
from habitus.cli import options
from habitus.cli.options import argument, option
from habitus.cli.screen import Screen, table
from habitus.cli.terminal import say, say_json
from habitus.rarity import counted


@options.command
def show(
    *,
    file: str = argument("A habitus model or corpus file.", "MODEL|CORPUS"),
    output: str | None = option(
        None, "Where to write the picture; beside the file if not.", "--output", "-o"
    ),
    force: bool = options.FORCE,
    as_json: bool = options.json_option("Print everything as JSON."),
) -> None:
    """Show a model or a corpus, in words and as a picture.

    A model: how much time each behaviour takes, how long it lasts, what follows, what it is made
    of, and all of that as a picture. A corpus: all motion on the scene, words per document over
    time. With --json a picture is drawn only where --output asks for it.
    Example: habitus show scene.model
    """
    beside = str(Path(file).with_name(f"{Path(file).stem}.png"))
    picture = output or (None if as_json else beside)
    summary = habitus.show(file, output=picture, force=force)
    if as_json:
        say_json(summary.to_json())
        return
    if isinstance(summary, habitus.CorpusSummary):
        _show_corpus(summary)
    else:
        _show_model(summary)
    say(f"wrote {picture}")


def _show_corpus(summary: "habitus.CorpusSummary") -> None:
    say(
        f"{counted(summary.documents, 'document')} in {counted(summary.sequences, 'sequence')}, "
        f"{summary.words:.10g} words of a vocabulary of {summary.vocabulary}; half of the "
        f"documents have at least {summary.median_words:.10g}, {summary.short:.0%} under 20"
    )
    if summary.faults:
        say(f"{counted(summary.faults, 'document')} with the camera moved, covered or frozen")


def _show_model(summary: "habitus.ModelSummary") -> None:
    console = Screen()
    console.print(
        f"{counted(summary.n_behaviours, 'behaviour')}, {counted(summary.n_topics, 'topic')}, "
        f"{counted(summary.n_words, 'word')}; {summary.learning}, prior {summary.prior}, best of "
        f"{counted(len(summary.restarts), 'run')}"
    )
    rows = table("behaviour", "share", "lasts", "then", "heaviest topics", left=(3, 4))
    for behaviour in summary.behaviours:
        rows.add_row(
            str(behaviour.number),
            f"{behaviour.share:.0%}",
            "for ever"
            if behaviour.duration is None
            else f"{behaviour.duration * summary.clip:.1f} s",
            _listed(behaviour.successors),
            _listed(behaviour.topics),
        )
    console.print(rows)
    console.print("share: of the time in the long run; lasts: in the mean.")
    for note in summary.degenerate:
        console.print(f"note: {note}; left uniform")


def _listed(items: "list[habitus.Likely]") -> str:
    """Return the first two, and others of at least 20 %."""
    worth = [item for i, item in enumerate(items) if i < 2 or item.probability >= 0.2]
    return ", ".join(f"{item.number} ({item.probability:.0%})" for item in worth) or "-"
