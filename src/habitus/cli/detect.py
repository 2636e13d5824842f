"""habitus detect: what was not usual in a video."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli import options
from habitus.cli.detection import (
    annotate_video,
    load_detector,
    run_detection,
    write_events,
    write_scores,
)
from habitus.cli.inputs import check_duration, check_output, sources_of

if TYPE_CHECKING:
    from habitus.anomaly.detection import Detection


def detect(
    source: Annotated[
        str,
        typer.Argument(help="A video, as for extract; or a corpus file.", metavar="VIDEO|CORPUS"),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="What `habitus learn` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the events here, as JSON Lines."),
    ] = None,
    annotate: Annotated[
        Path | None, typer.Option(help="Also write the video with its events drawn, as .mp4.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Also write the normality of every document, as CSV.")
    ] = None,
    skip: Annotated[
        float | None, typer.Option(help="Do not judge the first so many seconds.")
    ] = None,
    alerts_per_day: options.AlertsPerDay = None,
    share: options.Share = None,
    threshold: options.Threshold = None,
    measure: options.MeasureBy = options.Measure.TAIL,
    approximation: options.ApproximateBy = options.Approximation.PLUG_IN,
    samples: options.Samples = None,
    seed: Annotated[int, typer.Option(help="Of vb's posterior samples.")] = 0,
    fps: options.Fps = None,
    fast: options.Fast = False,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the events as JSON Lines, one a line.")
    ] = False,
) -> None:
    """Find what is not usual in a video: when, where and why.

    Example: habitus detect later.mp4 --model junction.model -o events.jsonl
    """
    check_output(output, annotate, scores)
    check_duration("skip", skip)
    detector = load_detector(
        model, measure=measure.value, approximation=approximation.value, n_samples=samples,
        threshold=threshold, share=share, alerts_per_day=alerts_per_day, seed=seed,
    )  # fmt: skip
    (video,) = sources_of([source], fps=fps, fast=fast, timeout=timeout)
    detection = run_detection(detector, video, jobs=jobs, skip=skip, share=share)
    if output is not None:
        write_events(output, video, detection, detector.model)
    if annotate is not None:
        annotate_video(annotate, video, detection, detector.model)
    if scores is not None:
        write_scores(scores, detection)
    _tell(detection, output, as_json)


def _tell(detection: "Detection", output: Path | None, as_json: bool) -> None:
    from habitus.anomaly.events import in_words

    if as_json:
        for event in detection.events:
            typer.echo(event.line())
        return
    for event in detection.events:
        typer.echo(in_words(event))
    typer.echo(detection.summary())
    if output is not None:
        typer.echo(f"wrote {output}")
