"""One function for each command: video -> documents -> model -> events -> reports.

Paths may be strings. Nothing here prints: results are values, progress is told to a callback.
What decodes video, judges, draws or belongs to the laboratory is imported where it is used: no
command waits for what it does without.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.cluster import cluster_workers
from habitus.corpus import Corpus, ShardedCorpus
from habitus.corpus.clocks import clocks_since, parse_clock
from habitus.corpus.vocabulary import WordKind
from habitus.errors import InvalidInputError
from habitus.files import is_pipe, kind_of
from habitus.inputs import (
    Address,
    JudgedSource,
    aligned_labels,
    camera_check,
    check_clips,
    check_events_alone,
    check_geometry,
    check_outputs,
    check_seconds,
    document_settings,
    extract_documents,
    forget_chunks,
    further_documents,
    is_event_file,
    judge_name,
    labelled_footage,
    large_corpora,
    load_detector,
    load_fleet,
    load_scene,
    open_sources,
    parsed_labels,
    read_documents,
    settings_of,
)
from habitus.progress import ProgressCallback, ignore_progress

if TYPE_CHECKING:
    from habitus.anomaly import Acceptance, Detection, Detector, Fleet, SceneModel
    from habitus.anomaly.camera_monitor import CameraFault
    from habitus.anomaly.event_log import Picture
    from habitus.anomaly.watching import EventEnded, EventStarted
    from habitus.evaluation.assessment import Assessment
    from habitus.ingest.chunks import Extraction
    from habitus.ingest.live import Notice
    from habitus.lab.comparison.findings import Comparison
    from habitus.lab.demonstration import Demonstration
    from habitus.lab.tuning.advice import Tuning
    from habitus.reporting.summaries import CorpusSummary, ModelSummary

UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def extract(
    sources: Address | Sequence[Address],
    *,
    output: Address | None = None,
    preview: Address | None = None,
    force: bool = False,
    continued: bool = False,
    start: str | None = None,
    clip: float = 1.0,
    cell: int = 8,
    motion: str = "cells",
    words: WordKind = "fine",
    mask: str | None = None,
    region: str | None = None,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    duration: float | None = None,
    jobs: int = -1,
    cluster: str | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Extraction:
    """Turn footage of a fixed camera into documents of visual words.

    Parameters
    ----------
    sources
        Videos, folders or patterns of images, addresses that FFmpeg opens, or `-` for standard
        input. Several are several sequences, or one if `continued`.
    output
        Where to write the corpus. A run that was cut short goes on from chunks beside it.
    preview
        Where to write the footage of the first source with its words as arrows, as .mp4.
    force
        Whether to replace outputs that habitus did not write; an input is never replaced.
    continued
        Whether the sources are one video that was cut into files.
    start
        Local date and time at which the footage begins, such as "2026-11-16 13:00": habits of the
        hour are learnt from documents that have a clock. Of several sources, only where
        `continued`.
    clip
        Seconds of video per document.
    cell
        Side of a cell in pixels of the analysed frame.
    motion
        "cells" (our kernel), "dis" (OpenCV's dense flow where the picture changes) or "flow" (the
        same everywhere, as in the paper).
    words
        Which words to keep: "fine" (12 directions, 16 speeds), or sums of them: "coarse" (4
        directions, slow or fast) or "paper" (4 directions).
    mask, region
        What not to watch, and what alone to watch: a PNG of the frame's size, not black there, or
        polygons such as "0,0 90,0 90,20".
    fps
        Frames per second of images, or of streams without times.
    fast
        Skip frames that no other frame needs, and the loop filter.
    other_hosts
        Whether an http(s) or rtsp address may lead to other hosts, by redirections and playlists.
    timeout
        Seconds that an address may take to answer.
    duration
        Stop after this many seconds of video.
    jobs
        Processes; -1 for one per core. It never changes the result.
    cluster
        Workers of a Dask cluster instead: "local" for one of `jobs` processes, or the address of a
        scheduler, whose workers find the same files at the same paths. It never changes the result.
    progress
        Told how far the work is.

    Returns
    -------
    Extraction
        The corpus, and notes about the footage.
    """
    check_outputs(sources, mask, region, force=force, corpus=output, film=preview)
    check_seconds("duration", duration)
    found = open_sources(sources, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout)
    begins = None if start is None else parse_clock(start)
    if begins is not None and len(found) > 1 and not continued:
        raise InvalidInputError(
            f"one date and time cannot be the start of {len(found)} sources: extract each by "
            "itself, or as one video that was cut into files",
            parameter="start",
        )
    if preview is not None and found[0].is_live:
        raise InvalidInputError(
            f"a preview needs a file; {found[0].name} can be read only once", parameter="preview"
        )
    settings = document_settings(
        clip=clip, cell=cell, motion=motion, words=words, mask=mask, region=region
    )
    with cluster_workers(cluster, jobs) as workers:
        extraction = extract_documents(
            found, settings, output, continued, duration, jobs, progress, workers
        )
    if begins is not None:
        corpus = extraction.corpus
        dated = replace(corpus, clocks=clocks_since(begins, corpus.times))
        extraction = extraction._replace(corpus=dated)
    if output is not None:
        extraction.corpus.save(output)
        forget_chunks(output)
    if preview is not None:
        from habitus.reporting.film.annotation import write_preview

        write_preview(preview, found[0], settings, progress=progress)
    return extraction


def learn(
    sources: Address | Corpus | Sequence[Address],
    *,
    output: Address | None = None,
    update: Address | SceneModel | None = None,
    half_life: float | None = None,
    fleet: Address | Fleet | None = None,
    force: bool = False,
    n_topics: int = 8,
    n_behaviours: int = 4,
    learning: str = "em",
    prior: Any = "H+1",
    n_restarts: int = 20,
    n_iterations: int = 100,
    tolerance: float | None = None,
    smoothing: float = 5e-6,
    min_words: float = 20,
    burn_in: int = 500,
    n_samples: int = 5,
    thinning: int = 100,
    duration: float | None = None,
    continued: bool = False,
    clip: float = 1.0,
    cell: int = 8,
    motion: str = "cells",
    words: WordKind = "fine",
    mask: str | None = None,
    region: str | None = None,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
    cluster: str | None = None,
    seed: int = 0,
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
        A model, or the file of one, to add this footage to: see `SceneModel.updated`. Documents
        are made as its own were; `n_topics` to `thinning`, `clip` to `region` and `seed` are not
        used.
    half_life
        Seconds of further footage after which older footage counts half in habits. Nothing fades
        where None.
    fleet
        What other cameras have in common, or the file of it: a camera with a few minutes of
        footage takes what it cannot know yet from there.
    force
        Replace an output that habitus did not write; with `update`, go on even where the footage
        does not show the scene of the model.
    n_topics, n_behaviours, learning, prior, n_restarts, n_iterations, tolerance, smoothing,
    min_words, burn_in, n_samples, thinning
        As of `TopicModel`.
    duration
        Learn from the first N seconds only.
    continued, clip, cell, motion, words, mask, region, fps, fast, other_hosts, timeout, jobs,
    cluster
        As of `extract`.
    seed
        Same seed, same model.
    progress
        Told how far the work is.

    Returns
    -------
    SceneModel
        The model, its calibration, the documents it was learnt from and notes.
    """
    from habitus.anomaly import learn_scene

    check_outputs(sources, mask, region, fleet, force=force, model=output)
    check_seconds("half_life", half_life)
    if update is not None and fleet is not None:
        raise InvalidInputError(
            "a model to update keeps what it took from its fleet: leave this one out",
            parameter="fleet",
        )
    known = load_fleet(fleet)
    reading = {"fps": fps, "fast": fast, "other_hosts": other_hosts, "timeout": timeout}
    if update is not None:
        return _update(
            sources,
            update,
            output,
            reading,
            half_life=half_life,
            force=force,
            continued=continued,
            duration=duration,
            jobs=jobs,
            cluster=cluster,
            progress=progress,
        )
    with cluster_workers(cluster, jobs) as workers:
        corpus: Corpus | ShardedCorpus | None = large_corpora(sources, duration, **reading)
        notes: Sequence[str] = ()
        if corpus is None:
            extraction = read_documents(
                sources,
                output,
                {"clip": clip, "cell": cell, "motion": motion, "words": words, "mask": mask}
                | {"region": region},
                reading,
                continued=continued,
                duration=duration,
                jobs=jobs,
                workers=workers,
                progress=progress,
            )
            corpus, notes = extraction.corpus, extraction.notes
        scene = learn_scene(
            corpus,
            fleet=known,
            half_life=half_life,
            n_topics=n_topics,
            n_behaviours=n_behaviours,
            learning=learning,
            prior=prior,
            n_restarts=n_restarts,
            n_iterations=n_iterations,
            tolerance=tolerance,
            smoothing=smoothing,
            min_words=min_words,
            burn_in=burn_in,
            n_samples=n_samples,
            thinning=thinning,
            n_jobs=jobs,
            random_state=seed,
            workers=workers,
            progress=progress,
        )
    if output is not None:
        scene.save(output)
        forget_chunks(output)
    return replace(scene, notes=(*notes, *scene.notes))


def _update(
    sources: Address | Corpus | Sequence[Address],
    update: Address | SceneModel,
    output: Address | None,
    reading: dict[str, Any],
    *,
    half_life: float | None,
    force: bool,
    jobs: int,
    cluster: str | None,
    progress: ProgressCallback,
    **footage: Any,
) -> SceneModel:
    """Return a model with further footage; see `learn`."""
    known = load_scene(update)
    with cluster_workers(cluster, jobs) as workers:
        extraction = further_documents(
            sources,
            known,
            output,
            reading,
            jobs=jobs,
            workers=workers,
            progress=progress,
            **footage,
        )
    corpus = extraction.corpus
    camera = camera_check(update, known.model, output, force)
    if camera is not None:
        camera.check(corpus, "the footage")
    scene = known.updated(corpus, half_life=half_life)
    if output is not None:
        scene.save(output)
        forget_chunks(output)
    return replace(scene, notes=(*extraction.notes, *scene.notes))


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
    from habitus.anomaly import Acceptance, events_by_line

    check_outputs(events, force=force, model=output)
    known, scene = events_by_line(events), load_scene(model)
    for number in numbers:
        if number not in known:
            raise InvalidInputError(
                f"{events} has no event on line {number}: it has {len(known)} event(s)",
                parameter="numbers",
            )
        event = known[number]
        scene = scene.withdraw(event) if undo else scene.accept(event).scene
    if output is not None:
        scene.save(output)
    return Acceptance(scene, scene.silenced(list(known.values())))


def detect(
    source: Address | Corpus,
    model: Address | SceneModel,
    *,
    output: Address | None = None,
    annotate: Address | None = None,
    scores: Address | None = None,
    moments: bool = False,
    skip: float | None = None,
    alerts_per_day: float | None = None,
    share: float | None = None,
    threshold: float | None = None,
    measure: str | None = None,
    approximation: Any = "plug-in",
    n_samples: int | None = None,
    seed: int = 0,
    force: bool = False,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
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
    skip
        Skip the first N seconds.
    alerts_per_day, share, threshold, measure, approximation, n_samples, seed
        As of `Detector`; `share` is a share of these very documents.
    force
        Replace outputs that habitus did not write; and go on even where the footage does not show
        the scene that the model was learnt from, which is refused otherwise: both pictures are
        written, and the error names them.
    fps, fast, other_hosts, timeout, jobs
        As of `extract`.
    progress
        Told how far the work is.

    Returns
    -------
    Detection
        Scores of every document, the alarms, the most unusual moments, and notes about the footage.
    """
    check_outputs(source, model, force=force, events=output, film=annotate, scores=scores)
    check_seconds("skip", skip)
    detector = load_detector(
        model, alerts_per_day, share, threshold, measure, approximation, n_samples, seed
    )
    camera = camera_check(model, detector.model, output, force)
    judged = JudgedSource(
        source, detector, camera, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout
    )
    judged.read(jobs=jobs, progress=progress)
    detection = judged.detect(skip=skip, share=share)
    if output is not None:
        from habitus.reporting.figures.moments import write_events

        detection = write_events(output, detection, judged.video, moments=moments)
    if annotate is not None:
        _annotate(annotate, detection, judged, progress)
    if scores is not None:
        from habitus.anomaly.detection import write_scores

        write_scores(scores, detection)
    return detection


def watch(
    source: Address,
    model: Address | SceneModel,
    *,
    output: Address | None = None,
    stop: threading.Event | None = None,
    patience: float = 10.0,
    alerts_per_day: float | None = None,
    share: float | None = None,
    threshold: float | None = None,
    measure: str | None = None,
    approximation: Any = "plug-in",
    n_samples: int | None = None,
    seed: int = 0,
    force: bool = False,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
) -> Generator[EventStarted | EventEnded | CameraFault | Notice, None, None]:
    """Watch a live stream, and yield what is unusual in it as it happens.

    It connects anew whenever the stream is absent, stalls, dies, or has another frame size than the
    model or too few frames per second, and goes on when it is as it was. Close the iterator, or set
    `stop` and exhaust it, to end: then no process is left.

    Parameters
    ----------
    source
        Any address that FFmpeg opens; a file; `-` for standard input.
    model
        What `learn` returned, or the file that it wrote.
    output
        File to add the events to as JSON Lines, with thumbnails in a folder beside it.
    stop
        Set it to end.
    patience
        Seconds without a frame after which to connect anew.
    alerts_per_day, share, threshold, measure, approximation, n_samples, seed
        As of `Detector`.
    force
        Judge whatever the camera shows. Otherwise a stream is not judged while it shows another
        scene than the model's, and a file that does is refused.
    fps, fast, other_hosts
        As of `extract`.

    Yields
    ------
    EventStarted, EventEnded, CameraFault or Notice
        An event when it starts, the event once it is over, that nothing can be judged (after a
        while, then every hour), and what else there is to say of the source.
    """
    from habitus.anomaly.watching import watch_events

    if output is not None and not is_pipe(output):
        check_outputs(source, model, force=force, events=output)
    check_seconds("patience", patience)
    detector = load_detector(
        model, alerts_per_day, share, threshold, measure, approximation, n_samples, seed
    )
    (camera,) = open_sources(source, fps=fps, fast=fast, other_hosts=other_hosts, timeout=patience)
    if not camera.is_live:
        check_geometry(detector.model, camera)
    happenings = watch_events(
        detector,
        camera,
        document_settings(**settings_of(detector.model)),
        stop=stop or threading.Event(),
        patience=patience,
        camera=camera_check(model, detector.model, output, force),
    )
    if output is None:
        yield from (happening for happening in happenings if happening is not None)
    else:
        yield from _logged(happenings, detector, Path(output))


def report(
    source: Address | Corpus,
    model: Address | SceneModel,
    output: Address,
    *,
    annotate: Address | None = None,
    labels: Address | None = None,
    skip: float | None = None,
    alerts_per_day: float | None = None,
    share: float | None = None,
    threshold: float | None = None,
    measure: str | None = None,
    approximation: Any = "plug-in",
    n_samples: int | None = None,
    seed: int = 0,
    force: bool = False,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
    commands: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
) -> Detection:
    """Write one HTML page about a video: the scene, its behaviours, and what was unusual.

    Parameters
    ----------
    source, model, skip, alerts_per_day, share, threshold, measure, approximation, n_samples, seed,
    force, fps, fast, other_hosts, timeout, jobs, progress
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
    from habitus.reporting.page.render import write_report
    from habitus.video.source import redacted_text

    check_outputs(source, model, labels, force=force, page=output, film=annotate)
    check_seconds("skip", skip)
    known = parsed_labels(labels)
    detector = load_detector(
        model, alerts_per_day, share, threshold, measure, approximation, n_samples, seed
    )
    camera = camera_check(model, detector.model, output, force)
    judged = JudgedSource(
        source, detector, camera, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout
    )
    corpus = judged.read(jobs=jobs, progress=progress)
    truth = aligned_labels(known, corpus, judged.name)
    detection = judged.detect(skip=skip, share=share)
    if annotate is not None:
        _annotate(annotate, detection, judged, progress)
    write_report(
        output,
        detection,
        source=judged.video,
        video=None if annotate is None else Path(annotate),
        commands=[redacted_text(command) for command in commands],
        settings={"measure": detector.measure, "approximation": approximation},
        truth=[(label.start, label.end, label.kind) for label in truth] or None,
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
    skip: float | None = None,
    alerts_per_day: float | None = None,
    share: float | None = None,
    threshold: float | None = None,
    measure: str | None = None,
    approximation: Any = "plug-in",
    n_samples: int | None = None,
    seed: int = 0,
    force: bool = False,
    clip: float = 1.0,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
    cluster: str | None = None,
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
    skip, alerts_per_day, share, threshold, measure, approximation, n_samples, seed, force, fps,
    fast, other_hosts, timeout, jobs, progress
        As of `detect`.
    cluster
        As of `extract`.
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
    from habitus.anomaly import read_events
    from habitus.evaluation.assessment import (
        LabelledClip,
        evaluate_clips,
        evaluate_events,
        evaluate_model,
    )
    from habitus.evaluation.label_files import ClipRanges, parse_labels

    drawn = [] if masks is None else list(Path(masks).glob("*/*"))
    check_outputs(judge, source, labels, drawn, force=force, picture=picture)
    check_seconds("skip", skip)
    check_seconds("clip", clip)
    known = parse_labels(labels, line=label_line)
    sources = [source] if isinstance(source, str | PathLike | Corpus) else list(source)
    of_clips = isinstance(known, ClipRanges) and not is_event_file(judge)
    check_clips(sources, of_clips, masks=masks, smooth=smooth, skip=skip)
    if is_event_file(judge):
        check_events_alone(judge, picture, threshold, share, alerts_per_day)
        footage = labelled_footage(
            sources[0], clip, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout
        )
        alarms = [event for event in read_events(judge) if event.alarm]
        return evaluate_events(alarms, footage, known, skip=skip)
    detector = load_detector(
        judge, alerts_per_day, share, threshold, measure, approximation, n_samples, seed
    )
    camera = camera_check(judge, detector.model, picture, force)
    judged = [
        JudgedSource(
            each, detector, camera, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout
        )
        for each in sources
    ]
    with cluster_workers(cluster, jobs) as workers:
        corpora = [each.read(jobs=jobs, workers=workers, progress=progress) for each in judged]
    name = judged[0].name if len(judged) == 1 else f"{len(judged)} clips"
    if isinstance(known, ClipRanges):
        found = evaluate_clips(
            detector,
            [LabelledClip(each.name, corpus) for each, corpus in zip(judged, corpora, strict=True)],
            known,
            masks=None if masks is None else Path(masks),
            smoothing=smooth,
            share=share,
            progress=progress,
        )
    else:
        found = evaluate_model(
            detector,
            corpora[0],
            known,
            name=name,
            n_stored=judged[0].n_stored,
            skip=skip,
            share=share,
            progress=progress,
        )
    if picture is not None:
        from habitus.reporting.figures.curves import draw_curves

        draw_curves(Path(picture), found, title=f"{judge_name(judge)} on {name}")
    return found


def compare(
    source: Address,
    labels: Address,
    *,
    output: Address = "comparison",
    train: float = 300.0,
    n_topics: int = 8,
    n_behaviours: int = 4,
    runs: int = 20,
    methods: Sequence[str] = (),
    label_line: int | None = None,
    clip: float = 1.0,
    cell: int = 8,
    motion: str = "cells",
    words: WordKind = "fine",
    mask: str | None = None,
    region: str | None = None,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
    cluster: str | None = None,
    seed: int = 0,
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
    n_topics, n_behaviours
        Sizes of the models.
    runs
        Runs of each method from different random starts.
    methods
        Names of methods or groups: em, vb, gibbs (the paper's 21), blocked, ours, baselines, or one
        such as gibbs-H or lda; all where empty.
    clip, cell, motion, words, mask, region, fps, fast, other_hosts, timeout, jobs,
    cluster
        As of `extract`.
    seed
        Same seed, same figures.
    command
        Command that made the comparison, to be shown on the page.
    progress
        Told how far the work is.

    Returns
    -------
    Comparison
        All figures, findings and notes.
    """
    from habitus.evaluation.label_files import parse_labels
    from habitus.lab.comparison.results_page import write_comparison
    from habitus.lab.comparison.runs import compare_methods
    from habitus.video.source import redacted_text

    check_seconds("train", train)
    known = parse_labels(labels, line=label_line)
    (video,) = open_sources(source, fps=fps, fast=fast, other_hosts=other_hosts, timeout=timeout)
    settings = document_settings(
        clip=clip, cell=cell, motion=motion, words=words, mask=mask, region=region
    )
    page = Path(output, "comparison.html")
    if page.exists():
        check_outputs(source, labels, mask, region, page=page)
    with cluster_workers(cluster, jobs) as workers:
        comparison = compare_methods(
            video,
            known,
            Path(output),
            settings=settings,
            train=train,
            n_topics=n_topics,
            n_behaviours=n_behaviours,
            n_runs=runs,
            methods=methods,
            jobs=jobs,
            workers=workers,
            seed=seed,
            progress=progress,
        )
    write_comparison(Path(output), comparison, source=video.name, command=redacted_text(command))
    return comparison


def tune(
    sources: Address | Corpus | Sequence[Address],
    *,
    topics: Sequence[int] = (4, 8, 12, 20),
    behaviours: Sequence[int] = (2, 3, 4, 5, 6, 8),
    prior: Any = "H+1",
    n_restarts: int = 3,
    min_words: float = 20,
    alerts_per_day: float = 5.0,
    measure: str = "tail",
    trials: int = 60,
    hyperparameters: bool = True,
    recall: bool = True,
    picture: Address | None = None,
    force: bool = False,
    duration: float | None = None,
    continued: bool = False,
    clip: float = 1.0,
    cell: int = 8,
    motion: str = "cells",
    words: WordKind = "fine",
    mask: str | None = None,
    region: str | None = None,
    fps: float | None = None,
    fast: bool = False,
    other_hosts: bool = False,
    timeout: float = 10.0,
    jobs: int = -1,
    cluster: str | None = None,
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Tuning:
    """Choose a model without labels, and estimate beforehand what it would find.

    Parameters
    ----------
    sources
        Normal footage: videos as for `extract`, corpus files, or a corpus.
    topics, behaviours
        Numbers to try.
    prior
        EM's prior while sizes are compared.
    n_restarts
        Runs of each size on each fold.
    min_words
        Documents with fewer words carry no evidence.
    alerts_per_day, measure
        As of `Detector`: the budget at which synthetic anomalies are to be found.
    trials
        Synthetic anomalies of each kind and strength.
    hyperparameters, recall
        Whether to fit VB's hyperparameters, and to estimate the recall.
    picture
        Where to draw the evidence, as .png, .jpg, .svg or .pdf.
    force
        Replace a picture that habitus did not draw.
    duration, continued, clip, cell, motion, words, mask, region, fps, fast, other_hosts, timeout,
    jobs, cluster
        As of `learn`.
    seed
        Same seed, same advice.
    progress
        Told how far the work is.

    Returns
    -------
    Tuning
        The recommended size and prior, the evidence for it, and the estimated recall.
    """
    from habitus.lab.tuning.advice import check_positive, tune_model

    check_outputs(sources, mask, region, force=force, picture=picture)
    check_positive(alerts_per_day=alerts_per_day, n_trials=trials, n_restarts=n_restarts)
    with cluster_workers(cluster, jobs) as workers:
        extraction = read_documents(
            sources,
            None,
            {"clip": clip, "cell": cell, "motion": motion, "words": words, "mask": mask}
            | {"region": region},
            {"fps": fps, "fast": fast, "other_hosts": other_hosts, "timeout": timeout},
            continued=continued,
            duration=duration,
            jobs=jobs,
            workers=workers,
            progress=progress,
        )
        tuning = tune_model(
            extraction.corpus,
            topics=topics,
            behaviours=behaviours,
            prior=prior,
            n_restarts=n_restarts,
            min_words=min_words,
            alerts_per_day=alerts_per_day,
            measure=measure,
            n_trials=trials,
            hyperparameters=hyperparameters,
            recall=recall,
            jobs=jobs,
            workers=workers,
            seed=seed,
            progress=progress,
        )
    if picture is not None:
        from habitus.lab.tuning.picture import draw_tuning

        draw_tuning(Path(picture), tuning, alerts_per_day)
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
    from habitus.anomaly import SceneModel
    from habitus.reporting.summaries import summarise_corpus, summarise_model

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
        Told how far the work is.

    Returns
    -------
    Demonstration
        What happened, and what was found.
    """
    from habitus.lab.demonstration import demonstrate

    return demonstrate(Path(output), seed=seed, progress=progress)


def parse_duration(text: str) -> float:
    """Return the seconds of a length of time such as 300, 300s, 5min, 5:00, 1h or 14d.

    Examples
    --------
    >>> [parse_duration(text) for text in ("300", "300s", "5min", "5:00", "0.5 h", "1d")]
    [300.0, 300.0, 300.0, 300.0, 1800.0, 86400.0]
    """
    from habitus.evaluation.labels import parse_seconds

    found = re.fullmatch(r"([\d.:]+)\s*([a-z]*)", text.strip().lower())
    try:
        if found is None or found[2] not in UNITS:
            raise ValueError
        return parse_seconds(found[1]) * UNITS[found[2]]
    except ValueError:
        raise InvalidInputError(
            f"a length of time is written as 300s, 5min, 5:00 or 14d, found {text!r}"
        ) from None


def _annotate(
    path: Address, detection: Detection, judged: JudgedSource, progress: ProgressCallback
) -> None:
    from habitus.reporting.film.annotation import write_annotated

    if judged.video is None:
        raise InvalidInputError(
            f"{judged.name} is a corpus: annotating needs the video itself", parameter="annotate"
        )
    write_annotated(Path(path), detection, judged.video, progress=progress)


def _logged(
    happenings: Iterator[EventStarted | EventEnded | CameraFault | Notice | None],
    detector: Detector,
    output: Path,
) -> Generator[EventStarted | EventEnded | CameraFault | Notice, None, None]:
    """Yield what happens, and add events to a file; what cannot be written waits."""
    from habitus.anomaly.camera_monitor import CameraFault
    from habitus.anomaly.event_log import EventLog
    from habitus.anomaly.watching import EventEnded
    from habitus.ingest.live import Notice

    log = EventLog(output)
    try:
        for happening in happenings:
            if isinstance(happening, EventEnded):
                happening, picture = _with_thumbnail(happening, detector, output)
                log.add(happening.event.line(), picture)
            elif isinstance(happening, CameraFault):
                log.add(happening.line())
            if happening is not None:
                yield happening
            yield from (Notice(note, time.time()) for note in log.notes())
    finally:
        unwritten = log.close()
    yield from (Notice(note, time.time()) for note in log.notes())
    yield from (Notice(f"not written to {output}: {line}", time.time()) for line in unwritten)
    if unwritten:
        raise InvalidInputError(
            f"{len(unwritten)} event(s) could not be written to {output}", parameter="output"
        )


def _with_thumbnail(
    ended: EventEnded, detector: Detector, output: Path
) -> tuple[EventEnded, Picture | None]:
    """Name the picture of an event in the event, and return it encoded."""
    from habitus.anomaly.event_log import Picture
    from habitus.reporting.figures.moments import still_thumbnail

    vocabulary = detector.model.vocabulary_
    if ended.still is None or vocabulary is None:
        return ended, None
    folder = output.with_name(f"{output.stem}-thumbnails")
    name = f"{(ended.event.clock or '').replace(':', '')}.jpg"
    drawn = still_thumbnail(ended.event, ended.still, vocabulary, detector.habits)
    event = replace(ended.event, thumbnail=f"{folder.name}/{name}")
    return ended._replace(event=event), Picture(folder / name, drawn)
