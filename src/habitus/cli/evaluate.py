"""habitus evaluate: how good a detector is, against labels."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli import options
from habitus.cli.detection import documents_of, load_detector
from habitus.cli.figures import tell
from habitus.cli.inputs import check_duration, check_output, sources_of
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.evaluation.assessment import Assessment
    from habitus.evaluation.label_files import Labelling
    from habitus.video import Source


def evaluate(
    judge: Annotated[
        Path,
        typer.Argument(
            help="What `habitus learn` wrote; or events that `habitus detect -o` wrote, for the "
            "figures that need no score of every document.",
            metavar="MODEL|EVENTS",
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(help="A video, as for extract; or a corpus file.", metavar="VIDEO|CORPUS"),
    ],
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            "-l",
            help="What is known to have happened: CSV with start,end (and kind, and "
            "left,top,right,bottom), or clip,abnormal; a list of one 0 or 1 a frame; ranges of "
            "frames; a folder of masks. All of them: docs/evaluation.md.",
        ),
    ],
    label_line: Annotated[
        int | None,
        typer.Option(help="Which video of a file that labels several, one a line; from 1 on."),
    ] = None,
    skip: Annotated[
        float | None,
        typer.Option(
            help="Leave the first so many seconds out of all figures: those it was learnt from."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the curves, as .png, .svg or .pdf.")
    ] = None,
    alerts_per_day: options.AlertsPerDay = None,
    share: options.Share = None,
    threshold: options.Threshold = None,
    measure: options.MeasureBy = options.Measure.TAIL,
    approximation: options.ApproximateBy = options.Approximation.PLUG_IN,
    samples: options.Samples = None,
    seed: Annotated[int, typer.Option(help="Of vb's posterior samples.")] = 0,
    clip: Annotated[
        float, typer.Option(help="With events and a video: seconds to a document.")
    ] = 1.0,
    fps: options.Fps = None,
    fast: options.Fast = False,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Measure a detector against labels: each figure beside what chance would give.

    How well documents are ranked, what the chosen threshold gives, how many events are found and
    how late at 1, 2, 6 and 30 false alarms an hour, and whether the place is right. Example:
    habitus evaluate junction.model later.mp4 --labels later.csv --picture curves.png
    """
    from habitus.evaluation.assessment import evaluate_model
    from habitus.evaluation.label_files import parse_labels
    from habitus.files import kind_of

    check_output(picture)
    check_duration("skip", skip)
    check_duration("clip", clip)
    if picture is not None:
        from habitus.report.figures.curves import check_picture

        check_picture(picture)
    known = parse_labels(labels, line=label_line)
    (video,) = sources_of([source], fps=fps, fast=fast, timeout=timeout)
    if kind_of(judge) is None and judge.is_file():
        _check_alone(judge, picture, threshold, share, alerts_per_day)
        found = _of_events(judge, video, known, clip=clip, skip=skip)
    else:
        detector = load_detector(
            judge, measure=measure.value, approximation=approximation.value, n_samples=samples,
            threshold=threshold, share=share, alerts_per_day=alerts_per_day, seed=seed,
        )  # fmt: skip
        corpus = documents_of(detector, video, jobs=jobs)
        found = evaluate_model(detector, corpus, known, name=video.name, skip=skip, share=share)
    if picture is not None:
        from habitus.report.figures.curves import draw_curves

        draw_curves(picture, found, title=f"{judge.name} on {Path(source).name}")
    if as_json:
        typer.echo(json.dumps(found.to_json(), allow_nan=False))
        return
    tell(found, f"{judge.name} on {Path(source).name}")
    if picture is not None:
        typer.echo(f"wrote {picture}")


def _of_events(
    file: Path, video: "Source", known: "Labelling", *, clip: float, skip: float | None
) -> "Assessment":
    from habitus.anomaly.events import read_events
    from habitus.corpus.documents import Corpus
    from habitus.evaluation.assessment import evaluate_events
    from habitus.evaluation.labels import footage_of_corpus, footage_of_video
    from habitus.files import kind_of

    events = read_events(file)
    if not video.is_live and kind_of(video.address) == "corpus":
        footage = footage_of_corpus(Corpus.load(video.address), video.name)
    else:
        footage = footage_of_video(video, clip)
    typer.echo(
        "note: events alone have no score per document, so there are no curves and no average "
        "precision",
        err=True,
    )
    return evaluate_events(events, footage, known, skip=skip)


def _check_alone(file: Path, picture: Path | None, *thresholds: float | None) -> None:
    """Refuse what events alone cannot give."""
    if picture is not None:
        raise InvalidInputError(
            f"{file}: events have no score for each document, so there is no curve to draw: give "
            "the model"
        )
    if any(threshold is not None for threshold in thresholds):
        raise InvalidInputError(
            f"{file}: these events were found at a threshold of their own: to try another, give "
            "the model"
        )
