"""One function for each command: video -> documents -> model -> events -> reports.

Paths may be strings. Nothing here prints: results are values, progress goes to a callback.
What decodes video, judges, draws or belongs to the laboratory is imported where it is used: no
command waits for what it does without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from habitus.corpus import Corpus, ShardedCorpus
from habitus.corpus.clocks import clocks_since, parse_clock
from habitus.errors import InvalidInputError
from habitus.files import kind_of
from habitus.inputs import (
    Ingestion,
    JudgedSource,
    camera_check,
    check_clips,
    check_events_alone,
    check_outputs,
    forget_chunks,
    is_event_file,
    judge_name,
    judged_sources,
    labelled_footage,
    large_corpora,
    load_scene,
)
from habitus.progress import ProgressCallback, ignore_progress
from habitus.rarity import counted
from habitus.settings import (
    OPENING,
    Address,
    AlertSettings,
    LearningSettings,
    ReadingSettings,
    check_seconds,
    check_unused,
)

if TYPE_CHECKING:
    from habitus.evaluation.assessment import Assessment
    from habitus.evaluation.label_files import Labelling
    from habitus.ingest.chunks import Extraction
    from habitus.ingest.clips import DocumentSettings
    from habitus.lab.comparison.findings import Comparison
    from habitus.lab.demonstration import Demonstration
    from habitus.lab.tuning.advice import Tuning
    from habitus.reporting.summaries import CorpusSummary, ModelSummary
    from habitus.scene import Acceptance, Detection, Fleet, SceneModel

UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
TUNING = LearningSettings(n_restarts=3)
"""Runs of each size on each fold are fewer than those of a model to be used."""


def extract(
    sources: Address | Sequence[Address],
    *,
    output: Address | None = None,
    preview: Address | None = None,
    force: bool = False,
    start: str | None = None,
    documents: DocumentSettings | None = None,
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> Extraction:
    """Turn footage of a fixed camera into documents of visual words.

    Parameters
    ----------
    sources
        Videos, folders or patterns of images, addresses that FFmpeg opens, or `-` for standard
        input. Several are several sequences, or one if `reading.continued`.
    output
        Where to write the corpus. A run that was cut short goes on from chunks beside it.
    preview
        Where to write the footage of the first source with its words as arrows, as .mp4.
    force
        Whether to replace outputs that habitus did not write; an input is never replaced.
    start
        Local date and time at which the footage begins, such as "2026-11-16 13:00": habits of the
        hour are learnt from documents that have a clock. Of several sources, only where they are
        one video.
    documents
        How documents are made.
    reading
        How the footage is read.
    progress
        Called with how far the work is.

    Returns
    -------
    Extraction
        The corpus, and notes about the footage.
    """
    check_outputs(sources, *_masks(documents), force=force, corpus=output, film=preview)
    opened = reading.open(sources)
    begins = None if start is None else parse_clock(start)
    if begins is not None and len(opened) > 1 and not reading.continued:
        raise InvalidInputError(
            f"one date and time cannot be the start of {len(opened)} sources: extract each by "
            "itself, or as one video that was cut into files",
            parameter="start",
        )
    if preview is not None and opened[0].is_live:
        raise InvalidInputError(
            f"a preview needs a file; {opened[0].name} can be read only once", parameter="preview"
        )
    with reading.workers() as workers:
        extraction = Ingestion(reading, workers, progress, output).extract(opened, documents)
    if begins is not None:
        corpus = extraction.corpus
        dated = replace(corpus, clocks=clocks_since(begins, corpus.times))
        extraction = extraction._replace(corpus=dated)
    if output is not None:
        extraction.corpus.save(output)
        forget_chunks(output)
    if preview is not None:
        from habitus.ingest.clips import DocumentSettings
        from habitus.reporting.film import write_preview

        write_preview(preview, opened[0], documents or DocumentSettings(), progress=progress)
    return extraction


def learn(
    sources: Address | Corpus | Sequence[Address],
    *,
    output: Address | None = None,
    update: Address | SceneModel | None = None,
    half_life: float | None = None,
    fleet: Address | Fleet | None = None,
    force: bool = False,
    documents: DocumentSettings | None = None,
    learning: LearningSettings = LearningSettings(),
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> SceneModel:
    """Learn a scene's behaviours from its normal footage, without labels, and calibrate.

    Parameters
    ----------
    sources
        Normal footage: videos as for `extract`, corpus files, or a corpus. Corpus files of more
        than 256 MB together are read one after the other, a few times, with the same result.
    output
        Where to write model and calibration.
    update
        A model, or the file of one, to add this footage to: see `SceneModel.updated`. It is made
        into documents as that of the model was, so that neither `documents` nor `learning` is used.
    half_life
        Seconds of further footage after which older footage counts half in habits. Nothing fades
        where None.
    fleet
        What other cameras have in common, or the file of it: a camera with a few minutes of
        footage takes what it cannot know yet from there.
    force
        Replace an output that habitus did not write; with `update`, go on even where the footage
        does not show the scene of the model.
    documents, reading, progress
        As of `extract`.
    learning
        How the topic model is learnt.

    Returns
    -------
    SceneModel
        The model, its calibration, the documents it was learnt from and notes.
    """
    from habitus.scene import Fleet, learn_scene

    check_outputs(sources, *_masks(documents), fleet, force=force, model=output)
    check_seconds("half_life", half_life)
    notes: Sequence[str] = ()
    if update is not None:
        if fleet is not None:
            raise InvalidInputError(
                "a model to update keeps what it took from its fleet: leave this one out",
                parameter="fleet",
            )
        if documents is not None:
            raise InvalidInputError("a model to update knows how its documents are made")
        check_unused(learning, "a model to update")
        scene, notes = _updated(sources, update, output, half_life, force, reading, progress)
    else:
        common = Fleet.load(fleet) if isinstance(fleet, str | PathLike) else fleet
        with reading.workers() as workers:
            corpus: Corpus | ShardedCorpus | None = large_corpora(sources, reading)
            if corpus is None:
                ingestion = Ingestion(reading, workers, progress, output)
                corpus, notes = ingestion.read(sources, documents)
            scene = learn_scene(
                corpus,
                fleet=common,
                half_life=half_life,
                workers=workers,
                progress=progress,
                n_jobs=reading.jobs,
                **learning.model_options(),
            )
    if output is not None:
        scene.save(output)
        forget_chunks(output)
    return replace(scene, notes=(*notes, *scene.notes))


def _updated(
    sources: Address | Corpus | Sequence[Address],
    update: Address | SceneModel,
    output: Address | None,
    half_life: float | None,
    force: bool,
    reading: ReadingSettings,
    progress: ProgressCallback,
) -> tuple[SceneModel, Sequence[str]]:
    """Return a model with further footage, and notes about that; see `learn`."""
    before = load_scene(update)
    camera = camera_check(update, before.model, output, force)
    with reading.workers() as workers:
        ingestion = Ingestion(reading, workers, progress, output)
        corpus, notes = ingestion.read_like(before.model, sources, "the footage", camera)
    return before.updated(corpus, half_life=half_life), notes


def accept(
    events: Address,
    numbers: Sequence[int],
    model: Address | SceneModel,
    *,
    output: Address | None = None,
    force: bool = False,
    undo: bool = False,
) -> Acceptance:
    """Call events normal, so that the like of them is no longer unusual; or take that back.

    Parameters
    ----------
    events
        File of events that `detect` or `watch` wrote.
    numbers
        Lines of the events in that file, counted from 1.
    model
        What `learn` returned, or the file that it wrote.
    output
        Where to write the new model.
    force
        Replace an output that habitus did not write.
    undo
        Whether to take back what was accepted: the model is then to the bit as if it never was.

    Returns
    -------
    Acceptance
        The new model, and which alarms of the file it would not raise.
    """
    from habitus.scene import Acceptance, events_by_line

    check_outputs(events, force=force, model=output)
    by_line, scene = events_by_line(events), load_scene(model)
    for number in numbers:
        if number not in by_line:
            raise InvalidInputError(
                f"{events} has no event on line {number}: it has {counted(len(by_line), 'event')}",
                parameter="numbers",
            )
        event = by_line[number]
        scene = scene.withdraw(event) if undo else scene.accept(event).scene
    if output is not None:
        scene.save(output)
    return Acceptance(scene, scene.silenced(list(by_line.values())))


def detect(
    source: Address | Corpus,
    model: Address | SceneModel,
    *,
    output: Address | None = None,
    annotate: Address | None = None,
    scores: Address | None = None,
    moments: bool = False,
    alerts: AlertSettings | float | None = None,
    force: bool = False,
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> Detection:
    """Find what is unusual in a video: when, where and why.

    Parameters
    ----------
    source
        A video as for `extract`, a corpus file, or a corpus.
    model
        What `learn` returned, or the file that it wrote.
    output
        Where to write the alarms as JSON Lines, with thumbnails in a folder beside it.
    annotate
        Where to write the video with its events drawn, as .mp4.
    scores
        Where to write the normality of every document, as CSV.
    moments
        Whether `output` also has the most unusual moments that are no alarms, with `alarm` false.
    alerts
        When a document is abnormal, or the number of alerts per day that normal footage may raise;
        5 where None. A share is one of these very documents.
    force
        Replace outputs that habitus did not write; and go on even where the footage does not show
        the scene that the model was learnt from, which is refused otherwise: both pictures are
        written, and the error names them.
    reading, progress
        As of `extract`.

    Returns
    -------
    Detection
        Scores of every document, the alarms, the most unusual moments, and notes about the footage.
    """
    check_outputs(source, model, force=force, events=output, film=annotate, scores=scores)
    settings = AlertSettings.of(alerts)
    (judged,) = judged_sources(
        [source], model, settings, reading, output=output, force=force, progress=progress
    )
    detection = judged.detect(settings.share, reading.skip)
    if output is not None:
        from habitus.reporting.figures.moments import write_events

        detection = write_events(output, detection, judged.video, moments=moments)
    if annotate is not None:
        _annotate(annotate, detection, judged, progress)
    if scores is not None:
        from habitus.scene.detection import write_scores

        write_scores(scores, detection)
    return detection


def report(
    source: Address | Corpus,
    model: Address | SceneModel,
    output: Address,
    *,
    annotate: Address | None = None,
    labels: Address | None = None,
    alerts: AlertSettings | float | None = None,
    force: bool = False,
    reading: ReadingSettings = ReadingSettings(),
    commands: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
) -> Detection:
    """Write one HTML page about a video: the scene, its behaviours, and what was unusual.

    Parameters
    ----------
    source, model, alerts, force, reading, progress
        As of `detect`.
    output
        Where to write the page: one file that needs nothing else.
    annotate
        Where to write the video with its events drawn, as .mp4; the page links into it.
    labels
        What is known to have happened, in any form that `evaluate` takes; shown on the page.
    commands
        Commands that made the page, to be shown on it.

    Returns
    -------
    Detection
        What the page shows.
    """
    from habitus.evaluation.label_files import align, parse_labels
    from habitus.evaluation.labels import footage_of_corpus
    from habitus.reporting.page.render import write_report
    from habitus.video.source import redacted_text

    check_outputs(source, model, labels, force=force, page=output, film=annotate)
    labelling = None if labels is None else parse_labels(labels)
    settings = AlertSettings.of(alerts)
    (judged,) = judged_sources(
        [source], model, settings, reading, output=output, force=force, progress=progress
    )
    truth = labelling and align(labelling, footage_of_corpus(judged.corpus, judged.name))
    detection = judged.detect(settings.share, reading.skip)
    if annotate is not None:
        _annotate(annotate, detection, judged, progress)
    write_report(
        output,
        detection,
        source=judged.video,
        video=None if annotate is None else Path(annotate),
        commands=[redacted_text(command) for command in commands],
        settings={"measure": judged.detector.measure, "approximation": settings.approximation},
        truth=[(label.start, label.end, label.kind) for label in truth or ()] or None,
    )
    return detection


def evaluate(
    judge: Address | SceneModel,
    source: Address | Corpus | Sequence[Address],
    labels: Address,
    *,
    label_line: int | None = None,
    masks: Address | None = None,
    smooth: float = 0.0,
    picture: Address | None = None,
    alerts: AlertSettings | float | None = None,
    force: bool = False,
    clip: float = 1.0,
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> Assessment:
    """Measure a detector, or events, against labels; each figure beside what chance would give.

    Parameters
    ----------
    judge
        What `learn` returned or wrote; or a file of events that `detect` wrote, for the figures
        that need no score of every document. Of moments, those that are alarms count.
    source
        As of `detect`; or several clips, with labels of the form `clip,first_frame,last_frame`.
    alerts, force, reading, progress
        As of `detect`.
    labels
        What is known to have happened: a table of intervals or boxes, flags or ranges of frames, a
        folder of masks.
    label_line
        Which video of a file that labels several, one per line, counted from 1.
    masks
        With labels of clips: a folder of `CLIP/FRAME.png`, frames from 0, not black where
        something is abnormal, for the figures per pixel.
    smooth
        With labels of clips: standard deviation, in seconds, of a Gaussian that smooths the scores
        of frames over time; 0 for none.
    picture
        Where to draw the curves, as .png, .jpg, .svg or .pdf.
    clip
        Seconds per document, where `judge` is a file of events and `source` a video.

    Returns
    -------
    Assessment
        All figures.
    """
    from habitus.evaluation.assessment import evaluate_events
    from habitus.evaluation.label_files import ClipRanges, parse_labels
    from habitus.scene import read_events

    drawn = [] if masks is None else list(Path(masks).glob("*/*"))
    check_outputs(judge, source, labels, drawn, force=force, picture=picture)
    check_seconds("clip", clip)
    settings, skip = AlertSettings.of(alerts), reading.skip
    labelling = parse_labels(labels, line=label_line)
    sources = [source] if isinstance(source, str | PathLike | Corpus) else list(source)
    of_clips = isinstance(labelling, ClipRanges) and not is_event_file(judge)
    check_clips(sources, of_clips, masks=masks, smooth=smooth, skip=skip)
    if is_event_file(judge):
        check_events_alone(judge, picture, settings, reading)
        footage = labelled_footage(sources[0], clip, reading)
        alarms = [event for event in read_events(judge) if event.alarm]
        return evaluate_events(alarms, footage, labelling, skip=skip)
    judged = judged_sources(
        sources, judge, settings, reading, output=picture, force=force, progress=progress
    )
    assessment = _assessment(judged, labelling, settings.share, skip, masks, smooth, progress)
    if picture is not None:
        from habitus.reporting.figures.curves import draw_curves

        name = judged[0].name if len(judged) == 1 else f"{len(judged)} clips"
        draw_curves(Path(picture), assessment, title=f"{judge_name(judge)} on {name}")
    return assessment


def _assessment(
    judged: Sequence[JudgedSource],
    labels: Labelling,
    share: float | None,
    skip: float | None,
    masks: Address | None,
    smooth: float,
    progress: ProgressCallback,
) -> Assessment:
    """Return all figures of a model; see `evaluate`."""
    from habitus.evaluation.assessment import LabelledClip, evaluate_clips, evaluate_model
    from habitus.evaluation.label_files import ClipRanges

    if isinstance(labels, ClipRanges):
        return evaluate_clips(
            judged[0].detector,
            [LabelledClip(clip.name, clip.corpus) for clip in judged],
            labels,
            masks=None if masks is None else Path(masks),
            smoothing=smooth,
            share=share,
            progress=progress,
        )
    (one,) = judged
    return evaluate_model(
        one.detector,
        one.corpus,
        labels,
        name=one.name,
        n_stored=one.n_stored,
        skip=skip,
        share=share,
        progress=progress,
    )


def compare(
    source: Address,
    labels: Address,
    *,
    output: Address = "comparison",
    train: float = 300.0,
    runs: int = 20,
    methods: Sequence[str] = (),
    label_line: int | None = None,
    documents: DocumentSettings | None = None,
    learning: LearningSettings = LearningSettings(),
    reading: ReadingSettings = ReadingSettings(),
    command: str = "",
    progress: ProgressCallback = ignore_progress,
) -> Comparison:
    """Rerun the paper's experiment on a labelled video, beside what one would pick instead.

    Cut short at any point, the same call goes on where it was.

    Parameters
    ----------
    source
        A labelled video as for `extract`, or a corpus file of it.
    labels, label_line
        As of `evaluate`.
    output
        Folder for the page, the Markdown file and every run's scores.
    train
        Learn from the first N seconds, judge the rest.
    runs
        Runs of each method from different random starts.
    methods
        Names of methods or groups: em, vb, gibbs (the paper's 21), blocked, ours, baselines, or one
        such as gibbs-H or lda; all where empty.
    documents, reading, progress
        As of `extract`.
    learning
        Sizes of the models, and the seed: same seed, same figures.
    command
        Command that made the comparison, to be shown on the page.

    Returns
    -------
    Comparison
        All figures, findings and notes.
    """
    from habitus.evaluation.label_files import parse_labels
    from habitus.lab.comparison.protocol import ComparisonProtocol
    from habitus.lab.comparison.results_page import write_comparison
    from habitus.lab.comparison.runs import compare_methods
    from habitus.video.source import redacted_text

    check_seconds("train", train)
    check_unused(learning, "a comparison", "n_topics", "n_behaviours", "seed")
    check_unused(reading, "a comparison", *OPENING, "jobs", "cluster")
    labelling = parse_labels(labels, line=label_line)
    (video,) = reading.open(source)
    page = Path(output, "comparison.html")
    if page.exists():
        check_outputs(source, labels, *_masks(documents), page=page)
    with reading.workers() as workers:
        comparison = compare_methods(
            video,
            labelling,
            Path(output),
            protocol=ComparisonProtocol(learning.n_topics, learning.n_behaviours, learning.seed),
            settings=documents,
            train=train,
            n_runs=runs,
            methods=methods,
            jobs=reading.jobs,
            workers=workers,
            progress=progress,
        )
    write_comparison(Path(output), comparison, source=video.name, command=redacted_text(command))
    return comparison


def tune(
    sources: Address | Corpus | Sequence[Address],
    *,
    topics: Sequence[int] = (4, 8, 12, 20),
    behaviours: Sequence[int] = (2, 3, 4, 5, 6, 8),
    trials: int = 60,
    hyperparameters: bool = True,
    picture: Address | None = None,
    force: bool = False,
    documents: DocumentSettings | None = None,
    learning: LearningSettings = TUNING,
    alerts: AlertSettings | float = AlertSettings(AlertSettings.BUDGET, measure="tail"),
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> Tuning:
    """Choose a model without labels, and estimate beforehand what it would find.

    Parameters
    ----------
    sources
        Normal footage: videos as for `extract`, corpus files, or a corpus.
    topics, behaviours
        Numbers to try.
    trials
        Synthetic anomalies of each kind and strength; 0 for no estimate of the recall.
    hyperparameters
        Whether to fit VB's hyperparameters.
    picture
        Where to draw the evidence, as .png, .jpg, .svg or .pdf.
    force
        Replace a picture that habitus did not draw.
    documents, reading, progress
        As of `extract`.
    learning
        EM's prior while sizes are compared, the runs of each size on each fold, the least number
        of words of a document, and the seed: same seed, same advice.
    alerts
        Measure, and the budget at which synthetic anomalies are to be found.

    Returns
    -------
    Tuning
        The recommended size and prior, the evidence for it, and the estimated recall.
    """
    from habitus.lab.tuning.advice import check_tuning, tune_model
    from habitus.lab.tuning.selection import SelectionRuns

    check_outputs(sources, *_masks(documents), force=force, picture=picture)
    check_unused(learning, "tuning", "prior", "n_restarts", "min_words", "seed")
    settings = AlertSettings.of(alerts)
    check_unused(settings, "tuning", "alerts_per_day", "measure")
    budget = AlertSettings.BUDGET if settings.alerts_per_day is None else settings.alerts_per_day
    check_tuning(budget, trials, learning.n_restarts)
    with reading.workers() as workers:
        extraction = Ingestion(reading, workers, progress).read(sources, documents)
        runs = SelectionRuns(
            learning.n_restarts, learning.min_words, learning.seed, reading.jobs, workers, progress
        )
        tuning = tune_model(
            extraction.corpus,
            runs,
            topics=topics,
            behaviours=behaviours,
            prior=learning.prior,
            alerts_per_day=budget,
            measure=settings.measure or "tail",
            n_trials=trials,
            hyperparameters=hyperparameters,
        )
    if picture is not None:
        from habitus.lab.tuning.picture import draw_tuning

        draw_tuning(Path(picture), tuning, budget)
    return tuning


def show(
    file: Address, *, output: Address | None = None, force: bool = False
) -> ModelSummary | CorpusSummary:
    """Return a model or a corpus in figures, and draw it as a picture where `output` is given.

    Parameters
    ----------
    file
        A model or corpus file.
    output
        Where to write the picture, as .png, .jpg, .svg or .pdf.
    force
        Replace a picture that habitus did not draw.
    """
    from habitus.reporting.summaries import summarise_corpus, summarise_model
    from habitus.scene import SceneModel

    check_outputs(file, force=force, picture=output)
    title = Path(file).name
    if kind_of(file) == "corpus":
        corpus = Corpus.load(file)
        if output is not None:
            from habitus.reporting.figures.scene import draw_corpus

            draw_corpus(Path(output), corpus, title=title)
        return summarise_corpus(corpus)
    model = SceneModel.load(file).model
    if output is not None:
        from habitus.reporting.figures.scene import draw_model

        draw_model(Path(output), model, title=title)
    return summarise_model(model)


def demo(
    output: Address = "demo", *, seed: int = 200, progress: ProgressCallback = ignore_progress
) -> Demonstration:
    """Render a junction, learn its first five minutes, and find what is abnormal in the rest.

    Parameters
    ----------
    output
        Folder for the video, the model, the events and a page about them.
    seed
        Same seed, same demonstration.
    progress
        Called with how far the work is.

    Returns
    -------
    Demonstration
        What happened, and what was found.
    """
    from habitus.lab.demonstration import demonstrate

    return demonstrate(Path(output), seed=seed, progress=progress)


def parse_duration(text: str, *, parameter: str | None = None) -> float:
    """Return the seconds of a length of time such as 300, 300s, 5min, 5:00, 1h or 14d.

    An error is about the parameter, if one is named.

    >>> [parse_duration(text) for text in ("300", "300s", "5min", "5:00", "0.5 h", "1d")]
    [300.0, 300.0, 300.0, 300.0, 1800.0, 86400.0]
    """
    from habitus.evaluation.labels import parse_seconds

    parts = re.fullmatch(r"([\d.:]+)\s*([a-z]*)", text.strip().lower())
    try:
        if parts is None or parts[2] not in UNITS:
            raise ValueError
        return parse_seconds(parts[1]) * UNITS[parts[2]]
    except ValueError:
        raise InvalidInputError(
            f"a length of time is written as 300s, 5min, 5:00 or 14d, found {text!r}",
            parameter=parameter,
        ) from None


def _masks(documents: DocumentSettings | None) -> tuple[str | None, ...]:
    """Return the files that say what is watched, if any: an output must not replace them."""
    return () if documents is None else (documents.mask, documents.region)


def _annotate(
    path: Address, detection: Detection, judged: JudgedSource, progress: ProgressCallback
) -> None:
    from habitus.reporting.film import write_annotated

    if judged.video is None:
        raise InvalidInputError(
            f"{judged.name} is a corpus: annotating needs the video itself", parameter="annotate"
        )
    write_annotated(Path(path), detection, judged.video, progress=progress)
