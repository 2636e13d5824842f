"""habitus tune: choosing a model without labels, and what it would find."""

from __future__ import annotations

import shlex
from typing import Any

import typer
from rich.table import Table

import habitus
from habitus.cli import options
from habitus.cli.options import ALERTS, LEARNING, USUAL, option, together
from habitus.cli.screen import Screen, table
from habitus.cli.terminal import progress_bars, say, say_json, say_notes
from habitus.rarity import counted

PASSED_ON = {
    *("duration", "continued", "clip", "cell", "motion", "words", "mask", "region"),
    *("fps", "fast", "other_hosts", "min_words", "seed"),
}
"""Options that the advised `habitus learn` takes as well."""


RUNS = together(
    LEARNING,
    prior=option(USUAL, "em's prior while sizes are compared."),
    n_restarts=option(3, "Runs of each size on each fold.", "--restarts"),
    min_words=options.MIN_WORDS,
    seed=option(USUAL, "Same seed, same advice."),
)
BUDGET = together(
    ALERTS,
    alerts_per_day=option(
        ALERTS.BUDGET, "The budget at which synthetic anomalies are to be found."
    ),
    measure=option("tail", "As of detect: tail or mean.", choice=("tail", "mean")),
)
ESTIMATES = together(
    lambda trials, no_hyperparameters, no_recall: {
        "trials": 0 if no_recall else trials,
        "hyperparameters": not no_hyperparameters,
    },
    trials=option(60, "Synthetic anomalies of each kind and strength."),
    no_hyperparameters=option(False, "Leave out vb's hyperparameters.", "--no-hyperparameters"),
    no_recall=option(False, "Leave out the estimated recall.", "--no-recall"),
)


@options.command
def tune(
    *,
    context: typer.Context,
    sources: list[str] = options.FOOTAGE,
    documents: Any = options.DOCUMENTS,
    reading: habitus.ReadingSettings = options.SEVERAL,
    topics: str = option("4,8,12,20", "Numbers of topics to try."),
    behaviours: str = option("2,3,4,5,6,8", "Numbers of behaviours to try."),
    learning: habitus.LearningSettings = RUNS,
    alerts: habitus.AlertSettings = BUDGET,
    estimates: dict[str, Any] = ESTIMATES,
    picture: str | None = option(None, "Also draw the evidence, as .png, .jpg, .svg or .pdf."),
    force: bool = options.FORCE,
    as_json: bool = options.json_option("Print everything as JSON."),
) -> None:
    """Choose a model without labels, and estimate beforehand what it would find.

    Numbers of behaviours and topics by how well held-out segments of the footage are predicted;
    vb's hyperparameters by type-II maximum likelihood; and the share of synthetic anomalies, made
    from the footage's own objects, that would be found at your budget of alerts.
    Example: habitus tune junction.mp4 --picture evidence.png
    """
    with progress_bars() as progress:
        tuning = habitus.tune(
            sources,
            topics=_numbers("topics", topics),
            behaviours=_numbers("behaviours", behaviours),
            **estimates,
            picture=picture,
            force=force,
            documents=documents,
            learning=learning,
            alerts=alerts,
            reading=reading,
            progress=progress,
        )
    say_notes(tuning.notes)
    advised = learn_command(tuning, sources, options.given_options(context, PASSED_ON))
    if as_json:
        values = tuning.to_json()
        values["recommended"]["command"] = advised
        say_json(values)
        return
    _show(tuning, advised, alerts.alerts_per_day or ALERTS.BUDGET)
    if picture is not None:
        say(f"wrote {picture}")


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise habitus.InvalidInputError(
            f"{name} must be whole numbers separated by commas, such as 4,8,12; found {text!r}",
            parameter=name,
        ) from error


def learn_command(tuning: habitus.Tuning, sources: list[str], further: list[str]) -> str:
    """Return the command line that learns what is recommended."""
    advice = tuning.recommended
    size = f"--behaviours {advice.n_behaviours} --topics {advice.n_topics}"
    parts = ["habitus", "learn", *map(shlex.quote, map(habitus.redacted, sources)), size]
    if (advice.learning, advice.prior) != ("em", "H+1"):
        parts += ["--learning", advice.learning, "--prior", shlex.quote(str(advice.prior))]
    return " ".join([*parts, *map(shlex.quote, further), "-o scene.model"])


def _show(tuning: habitus.Tuning, command_line: str, budget: float) -> None:
    """Print sizes, hyperparameters, the command to learn with, and the recall estimate."""
    console, choice = Screen(), tuning.choice
    best = choice.candidates[choice.best]
    worse = choice.shortfall(choice.chosen)
    why = (
        f"(<): the simplest within one standard error of the best (*), {best.n_behaviours} and "
        f"{best.n_topics}; paired difference {worse.mean:.3f}, error {worse.standard_error:.3f}"
    )
    if choice.chosen == choice.best:
        why = "(*<): the best; no simpler one is within one standard error of it"
    console.print(f"held-out log-likelihood, nats per word ({tuning.n_documents} documents)\n")
    console.print(_sizes_table(choice))
    console.print(
        f"size     {counted(choice.candidate.n_behaviours, 'behaviour')}, "
        f"{counted(choice.candidate.n_topics, 'topic')} {why}"
    )
    if tuning.hyperparameters is not None:
        console.print(_prior_in_words(tuning.hyperparameters))
    console.print(f"learn    {command_line}")
    if tuning.recall is not None:
        console.print(
            f"\nsynthetic anomalies found at {budget:g} alerts per day, by size "
            f"({counted(tuning.recall.n_tracks, 'track')} to make them from; a typical one has "
            f"{tuning.recall.typical:.0f} words per document)\n"
        )
        console.print(_recall_table(tuning.recall, budget))
        console.print(habitus.recall_in_words(tuning.recall, budget))


def _prior_in_words(fitted: habitus.Hyperparameters) -> str:
    bound = fitted.fit.objective
    verdict = (
        "better by more than one standard error: use it"
        if fitted.worth_it
        else "not better than em by more than one standard error: keep em"
    )
    return (
        f"prior    {fitted.fit.prior} for vb, where its ELBO is highest ({bound[-1, -1]:,.0f} "
        f"nats, {bound[-1, -1] - bound[0, 0]:,.0f} above the start)\n"
        f"         held-out gain over em {fitted.gain:+.3f} nats per word, error "
        f"{fitted.error:.3f}: {verdict}"
    )


def _sizes_table(choice: habitus.Choice) -> Table:
    topics = sorted({candidate.n_topics for candidate in choice.candidates})
    rows = table("behaviours", *(f"{n} topics" for n in topics), left=())
    for z in sorted({candidate.n_behaviours for candidate in choice.candidates}):
        cells = [_cell(choice, k) for k, c in enumerate(choice.candidates) if c.n_behaviours == z]
        rows.add_row(str(z), *cells)
    return rows


def _cell(choice: habitus.Choice, k: int) -> str:
    marks = ("*" if k == choice.best else "") + ("<" if k == choice.chosen else "")
    return f"{choice.predictions[k].mean:.3f}{marks:2}"


def _recall_table(recall: habitus.RecallEstimate, budget: float) -> Table:
    shares = [share for share in recall.shares if share.alerts_per_day == budget]
    strengths = sorted({share.strength for share in shares if share.strength is not None})
    rows = table("kind", *(f"x {strength:g}" for strength in strengths))
    for kind in dict.fromkeys(share.kind for share in shares):
        cells = [_found(s) for s in shares if s.kind == kind]
        # A kind without a size stands under 1.
        rows.add_row(kind, *(["", cells[0], ""] if len(cells) == 1 else cells))
    return rows


def _found(share: habitus.FoundShare) -> str:
    if not share.n_trials:
        return "no occasion"
    low, high = share.interval
    return f"{share.share:.0%} ({low:.0%} to {high:.0%})"
