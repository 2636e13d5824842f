"""habitus demo: every learner against a known truth."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from habitus.evaluation.trial import Trial

NAMES = {
    "truth": "truth",
    "em": "EM",
    "vb": "VB",
    "gibbs": "Gibbs",
    "blocked-gibbs": "blocked Gibbs",
}
N_DOCUMENTS, WORDS_PER_DOCUMENT = 300, 300


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for what it makes.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Same seed, same demo.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn a small known crossing by every algorithm, and show how well each recovered it.

    Five minutes of documents are sampled from a model of a signalised crossing; the learners see
    the documents only.
    """
    from habitus.cli.progress import progress_bar
    from habitus.evaluation.trial import n_steps, run_trial
    from habitus.scenes import crossing, crossing_vocabulary

    _make_folder(output)
    with progress_bar("learning", n_steps()) as callback:
        trial = run_trial(
            crossing(),
            crossing_vocabulary(),
            n_documents=N_DOCUMENTS,
            words_per_document=WORDS_PER_DOCUMENT,
            seed=seed,
            callback=callback,
        )
    _write(trial, output)
    if as_json:
        typer.echo(json.dumps(trial.to_json()))
    else:
        _print(trial, output)


def _make_folder(output: Path) -> None:
    from habitus.errors import InvalidInputError

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot make the folder {output}: {error.strerror}") from error


def _write(trial: "Trial", output: Path) -> None:
    from habitus.report.behaviours import draw_behaviours
    from habitus.scenes import crossing_vocabulary

    trial.corpus.save(output / "crossing.corpus")
    for learning, model in trial.models.items():
        model.save(output / f"{learning}.model")
    draw_behaviours(
        output / "recovery.png",
        {NAMES[name]: matrix for name, matrix in trial.behaviours.items()},
        crossing_vocabulary(),
        title="A crossing's behaviours, true and as learnt from five minutes of documents",
        mass=0.9,
    )


def _print(trial: "Trial", output: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("learnt by")
    for heading in ("right", "behaviours off", "transitions off"):
        table.add_column(heading, justify="right")
    for row in trial.rows:
        table.add_row(
            NAMES.get(row.learning, row.learning),
            f"{row.right_share:.1%}",
            f"{row.behaviour_distance:.3f}",
            f"{row.transition_distance:.3f}",
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{len(trial.corpus)} documents of {trial.corpus.n_tokens.mean():.0f} words were sampled "
        "from a known crossing with 4 behaviours and 8 topics."
    )
    console.print(table)
    console.print(
        "right: documents given their true behaviour. off: total variation distance from the\n"
        "truth, 0 alike, 1 disjoint. Last row: plain frequencies, true behaviours being told.\n\n"
        f"open     {output / 'recovery.png'}\n"
        f"look     habitus show {output / 'em.model'}\n"
        f"learn    habitus learn {output / 'crossing.corpus'} -o my.model --learning vb"
    )
