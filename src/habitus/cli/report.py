"""habitus report: one HTML page about a video."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from habitus.cli import options
from habitus.cli.detection import annotate_video, documents_of, judge_documents, load_detector
from habitus.cli.inputs import check_duration, check_output, sources_of


def report(
    source: Annotated[
        str,
        typer.Argument(help="A video, as for extract; or a corpus file.", metavar="VIDEO|CORPUS"),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="What `habitus learn` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.")],
    annotate: Annotated[
        Path | None,
        typer.Option(help="Also write the video with its events drawn, as .mp4, and link into it."),
    ] = None,
    skip: Annotated[
        float | None, typer.Option(help="Do not judge the first so many seconds.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="What is known to have happened, as for evaluate: shown too."),
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
) -> None:
    """Write a page about a video: the scene, its behaviours, and what was not usual.

    One file that needs nothing else. Example:
    habitus report later.mp4 --model junction.model -o report.html --annotate annotated.mp4
    """
    from habitus.evaluation.label_files import align, parse_labels
    from habitus.evaluation.labels import footage_of_corpus
    from habitus.report.page.render import write_report

    check_output(output, annotate)
    known = parse_labels(labels) if labels is not None else None
    check_duration("skip", skip)
    detector = load_detector(
        model, measure=measure.value, approximation=approximation.value, n_samples=samples,
        threshold=threshold, share=share, alerts_per_day=alerts_per_day, seed=seed,
    )  # fmt: skip
    (video,) = sources_of([source], fps=fps, fast=fast, timeout=timeout)
    corpus = documents_of(detector, video, jobs=jobs)
    truth = align(known, footage_of_corpus(corpus, video.name)) if known else []
    detection = judge_documents(detector, corpus, video, skip=skip, share=share)
    if annotate is not None:
        annotate_video(annotate, video, detection, detector.model)
    write_report(
        output, detection, detector.model, source=video, video=annotate,
        commands=[shlex.join(["habitus", *sys.argv[1:]])],
        settings={"measure": measure.value, "approximation": approximation.value},
        truth=[(label.start, label.end, label.kind) for label in truth] or None,
    )  # fmt: skip
    typer.echo(f"{len(detection.events)} event(s); wrote {output}")
