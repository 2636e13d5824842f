"""habitus tune: choosing a model without labels, and what it would find."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from habitus.cli import options
from habitus.cli.inputs import check_duration, check_output, read_documents, sources_of
from habitus.cli.learn import settings_for
from habitus.errors import InvalidInputError


def tune(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Normal footage: videos, as for extract; or corpus files that extract made.",
            metavar="VIDEO|CORPUS...",
        ),
    ],
    topics: Annotated[str, typer.Option(help="Numbers of topics to try.")] = "4,8,12,20",
    behaviours: Annotated[str, typer.Option(help="Numbers of behaviours to try.")] = "2,3,4,5,6,8",
    prior: Annotated[str, typer.Option(help="em's prior while sizes are compared.")] = "H+1",
    restarts: Annotated[int, typer.Option(help="Runs of each size on each part.")] = 3,
    min_words: Annotated[
        float, typer.Option(help="Documents with fewer words carry no evidence.")
    ] = 20,
    alerts_per_day: Annotated[
        float, typer.Option(help="Budget of alerts at which recall is estimated.")
    ] = 5.0,
    measure: options.MeasureBy = options.Measure.TAIL,
    trials: Annotated[
        int, typer.Option(help="Synthetic anomalies of each kind and strength.")
    ] = 60,
    no_hyperparameters: Annotated[
        bool, typer.Option("--no-hyperparameters", help="Leave out vb's hyperparameters.")
    ] = False,
    no_recall: Annotated[
        bool, typer.Option("--no-recall", help="Leave out what would be found.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the evidence, as .png or .svg.")
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Use the first so many seconds only.")
    ] = None,
    continued: options.Continued = False,
    clip: options.Clip = 1.0,
    cell: options.Cell = 8,
    motion: options.MotionBy = options.Motion.CELLS,
    speeds: options.Speeds = 2,
    mask: options.Mask = None,
    region: options.Region = None,
    fps: options.Fps = None,
    fast: options.Fast = False,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    seed: Annotated[int, typer.Option(help="Same seed, same advice.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Choose a model without labels, and learn beforehand what it would find.

    Numbers of behaviours and topics by how well held-out stretches of the footage are predicted;
    vb's hyperparameters by type-II maximum likelihood; and the share of anomalies, made from
    the footage's own things, that would be found at your budget of alerts.
    Example: habitus tune junction.mp4 --picture evidence.png
    """
    from habitus.cli.advice import command, tell
    from habitus.cli.progress import progress_bars
    from habitus.lab.tuning.advice import check_positive, tune_model

    check_output(picture)
    _check_suffix(picture)
    check_duration("duration", duration)
    check_positive(alerts_per_day=alerts_per_day, n_trials=trials, n_restarts=restarts)
    sizes = {"topics": _numbers("topics", topics), "behaviours": _numbers("behaviours", behaviours)}
    found = sources_of(sources, fps=fps, fast=fast, timeout=timeout)
    corpus, _ = read_documents(
        found, settings_for(found, clip, cell, motion, speeds, mask, region), None,
        continued=continued, jobs=jobs, duration=duration,
    )  # fmt: skip
    with progress_bars() as progress:
        tuning = tune_model(
            corpus, **sizes, prior=prior, n_restarts=restarts, min_words=min_words,
            hyperparameters=not no_hyperparameters, recall=not no_recall,
            alerts_per_day=alerts_per_day, measure=measure.value, n_trials=trials, jobs=jobs,
            seed=seed, progress=progress,
        )  # fmt: skip
    if picture is not None:
        from habitus.lab.tuning.picture import draw_tuning

        draw_tuning(picture, tuning, alerts_per_day)
    for note in tuning.notes:
        typer.echo(f"note: {note}", err=True)
    further = _differing(
        duration=(duration, None), continue_=(continued, False), clip=(clip, 1.0), cell=(cell, 8),
        motion=(motion.value, "cells"), speeds=(speeds, 2), mask=(mask, None),
        region=(region, None), fps=(fps, None), fast=(fast, False),
        min_words=(min_words, 20), seed=(seed, 0),
    )  # fmt: skip
    line = command(tuning, sources, further)
    if as_json:
        values = tuning.to_json()
        values["recommended"]["command"] = line
        typer.echo(json.dumps(values, allow_nan=False))
        return
    tell(tuning, line, alerts_per_day, len(corpus))
    if picture is not None:
        typer.echo(f"wrote {picture}")


def _differing(**options: tuple[Any, Any]) -> list[str]:
    """Options, each with its value and its default, as they would be given where they differ."""
    words: list[str] = []
    for name, (value, default) in options.items():
        if value != default:
            words.append("--" + name.rstrip("_").replace("_", "-"))
            words += (
                [] if value is True else [f"{value:g}" if isinstance(value, float) else str(value)]
            )
    return words


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must be whole numbers with commas between, such as 4,8,12; found {text!r}"
        ) from error


def _check_suffix(picture: Path | None) -> None:
    if picture is not None and picture.suffix.lower() not in (".png", ".svg"):
        raise InvalidInputError(f"a picture is written as .png or .svg, found {picture.name}")
