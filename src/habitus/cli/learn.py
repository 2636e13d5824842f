"""habitus learn: a model of a scene, from video or documents."""

from typing import Any

import typer

import habitus
from habitus.cli import options
from habitus.cli.options import LEARNING, USUAL, option, together
from habitus.cli.terminal import progress_bars, say, say_json, say_notes

TOPIC_MODEL = together(
    LEARNING,
    n_topics=option(USUAL, "Number of topics: patterns of local motion.", "--topics"),
    n_behaviours=option(USUAL, "Number of behaviours: phases the scene has.", "--behaviours"),
    learning=option(
        USUAL,
        "em: best point estimate, fastest. vb: posterior distributions. gibbs: the paper's "
        "collapsed sampler. blocked-gibbs: the same posterior, faster on millions of words.",
        choice=("em", "vb", "gibbs", "blocked-gibbs"),
    ),
    prior=option(
        USUAL,
        "The paper's prior: 1, H or H+1; or your own values, such as `habitus tune` finds: "
        "alpha=8,beta=0.05,gamma=1,eta=1.",
    ),
    n_restarts=option(
        USUAL, "Independent runs; the one with the best objective is kept.", "--restarts"
    ),
    n_iterations=option(USUAL, "Iterations of a run of em or vb.", "--iterations"),
    tolerance=option(
        None, "Stop a run of em or vb once it gains less than this per word, in nats."
    ),
    smoothing=option(USUAL, "em: added to estimates that the prior lets become zero."),
    min_words=options.MIN_WORDS,
    burn_in=option(USUAL, "gibbs: sweeps before the first sample."),
    n_samples=option(USUAL, "gibbs: samples to keep.", "--samples"),
    thinning=option(USUAL, "gibbs: sweeps between samples."),
    seed=option(USUAL, "Same seed, same model."),
)
OF_THE_MODEL = {*TOPIC_MODEL.options, *options.DOCUMENTS.options}
"""Options that a model to update brings along."""


@options.command
def learn(
    *,
    context: typer.Context,
    sources: list[str] = options.FOOTAGE,
    output: str | None = option(
        None, "Where to write the model; with --update, to MODEL if not given.", "--output", "-o"
    ),
    update: str | None = option(
        None,
        "Add this footage to a model; older footage is not needed. Habits and held-out scores are "
        "updated; topics and behaviours stay.",
        metavar="MODEL",
    ),
    half_life: str | None = option(
        None,
        "Older footage counts half after this much further footage, such as 12h or 14d; nothing "
        "fades if not given.",
        metavar="TIME",
    ),
    fleet: str | None = option(
        None,
        "What other cameras have in common, as habitus archive learn writes it: for a camera with "
        "a few minutes of footage.",
        metavar="FILE",
    ),
    documents: Any = options.DOCUMENTS,
    learning: habitus.LearningSettings = TOPIC_MODEL,
    reading: habitus.ReadingSettings = options.SEVERAL,
    force: bool = option(
        False,
        "Replace an output that habitus did not write; with --update: go on even if the footage "
        "does not show the scene.",
        "--force",
    ),
    as_json: bool = options.json_option("Print a summary as JSON."),
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
            half_life=_seconds(half_life),
            fleet=fleet,
            force=force,
            documents=None if update else documents,
            learning=learning,
            reading=reading,
            progress=progress,
        )
    say_notes(scene.notes)
    if as_json:
        say_json(habitus.summarise_model(scene.model).to_json())
        return
    say(scene.summary())
    say(f"wrote {target}; look at it with: habitus show {target}")


def _seconds(half_life: str | None) -> float | None:
    return None if half_life is None else habitus.parse_duration(half_life, parameter="half_life")


def _target(context: typer.Context, output: str | None, update: str | None) -> str:
    """Return where to write the model; raise where an option does not go with --update."""
    refused = [] if update is None else options.given_options(context, OF_THE_MODEL)
    if refused:
        raise habitus.InvalidInputError(
            f"{' '.join(refused)}: the model to update has its own; leave this out or learn anew"
        )
    target = output or update
    if target is None:
        raise typer.BadParameter("say where to write the model", context, param_hint="--output")
    return target
