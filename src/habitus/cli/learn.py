"""habitus learn: a model of a scene, from video or documents."""

import json
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import say


class LearningChoice(StrEnum):
    """The learning algorithms."""

    EM = "em"
    VB = "vb"
    GIBBS = "gibbs"
    BLOCKED_GIBBS = "blocked-gibbs"


@dataclass(frozen=True)
class LearningOptions(options.OptionGroup):
    """How the topic model is learnt."""

    n_topics: Annotated[
        int, typer.Option("--topics", help="Number of topics: patterns of local motion.")
    ] = 8
    n_behaviours: Annotated[
        int,
        typer.Option("--behaviours", help="Number of behaviours: phases that the scene has."),
    ] = 4
    learning: Annotated[
        LearningChoice,
        typer.Option(
            help="em: best point estimate, fastest. vb: posterior distributions. gibbs: the "
            "paper's collapsed sampler. blocked-gibbs: the same posterior, faster on millions of "
            "words."
        ),
    ] = LearningChoice.EM
    prior: Annotated[
        str,
        typer.Option(
            help="The paper's prior: 1, H or H+1; or your own values, such as `habitus tune` "
            "finds: alpha=8,beta=0.05,gamma=1,eta=1."
        ),
    ] = "H+1"
    n_restarts: Annotated[
        int,
        typer.Option(
            "--restarts", help="Independent runs; the one with the best objective is kept."
        ),
    ] = 20
    n_iterations: Annotated[
        int, typer.Option("--iterations", help="Iterations of a run of em or vb.")
    ] = 100
    tolerance: Annotated[
        float | None,
        typer.Option(help="Stop a run of em or vb once it gains less than this per word."),
    ] = None
    smoothing: Annotated[
        float, typer.Option(help="em: added to estimates that the prior lets become zero.")
    ] = 5e-6
    min_words: options.MinWords = 20
    burn_in: Annotated[int, typer.Option(help="gibbs: sweeps before the first sample.")] = 500
    n_samples: Annotated[int, typer.Option("--samples", help="gibbs: samples to keep.")] = 5
    thinning: Annotated[int, typer.Option(help="gibbs: sweeps between samples.")] = 100
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = 0


OF_THE_MODEL = {
    field.name for group in (LearningOptions, options.DocumentOptions) for field in fields(group)
}
"""Options that a model to update brings along."""


@options.command
def learn(
    context: typer.Context,
    sources: options.Footage,
    sequence: options.SequenceOptions,
    documents: options.DocumentOptions,
    learning: LearningOptions,
    reading: options.ReadingOptions,
    elsewhere: options.ClusterOptions,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Where to write the model; with --update, to MODEL if not given."
        ),
    ] = None,
    update: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Add this footage to a model; older footage is not needed. Habits and held-out "
            "scores are updated; topics and behaviours stay.",
        ),
    ] = None,
    half_life: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Older footage counts half after this much further footage, such as 12h or 14d; "
            "nothing fades if not given.",
        ),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What other cameras have in common, as habitus archive learn writes it: for a "
            "camera with a few minutes of footage.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace an output that habitus did not write; with --update: go on even if the "
            "footage does not show the scene.",
        ),
    ] = False,
    duration: options.Duration = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Learn a scene's behaviours from its normal footage, without labels.

    What little is unusual in it does no harm. A run that is cut short while it reads video goes on
    where it was. Example: habitus learn junction.mp4 -o junction.model, then:
    habitus detect later.mp4 --model junction.model

    More footage, later: habitus learn more.mp4 --update junction.model
    """
    target = _target(context, output, update)
    with progress_bars() as progress:
        scene = habitus.learn(
            sources,
            output=target,
            update=update,
            half_life=None if half_life is None else habitus.parse_duration(half_life),
            fleet=fleet,
            force=force,
            documents=None if update else documents.settings(),
            learning=habitus.LearningSettings(**learning.parameters()),
            reading=options.reading_settings(sequence, reading, elsewhere, duration=duration),
            progress=progress,
        )
    for note in scene.notes:
        say(f"note: {note}", err=True)
    if as_json:
        typer.echo(json.dumps(habitus.summarise_model(scene.model).to_json()))
        return
    say(scene.summary())
    say(f"wrote {target}; look at it with: habitus show {target}")


def _target(context: typer.Context, output: str | None, update: str | None) -> str:
    """Return where to write the model; raise where an option does not go with --update."""
    own = [] if update is None else options.given_options(context, OF_THE_MODEL)
    if own:
        raise habitus.InvalidInputError(
            f"{' '.join(own)}: the model to update has its own; leave this out or learn anew"
        )
    target = output or update
    if target is None:
        raise typer.BadParameter("say where to write the model", context, param_hint="--output")
    return target
