"""What detect, report and the demo do alike."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.cli.inputs import read_documents
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.anomaly.detection import Detection
    from habitus.anomaly.detector import Detector
    from habitus.corpus.documents import Corpus
    from habitus.model import MarkovClusteringTopicModel
    from habitus.video import Source


def load_detector(path: Path, **how: Any) -> "Detector":
    """A detector with the model of a file."""
    from habitus.anomaly.scene_model import SceneModel

    return SceneModel.load(path).detector(**how)


def run_detection(
    detector: "Detector",
    source: "Source",
    *,
    jobs: int = -1,
    skip: float | None = None,
    share: float | None = None,
) -> "Detection":
    """Judge a video or a corpus file."""
    corpus = documents_of(detector, source, jobs=jobs)
    return judge_documents(detector, corpus, source, skip=skip, share=share)


def documents_of(detector: "Detector", source: "Source", *, jobs: int = -1) -> "Corpus":
    """All documents of a video or a corpus file, as the detector's model knows them."""
    from habitus.files import kind_of
    from habitus.pipeline import check_geometry, settings_of

    settings = None
    if source.is_live or kind_of(source.address) != "corpus":
        settings = settings_of(detector.model)
        if not source.is_live:
            check_geometry(detector.model, source)
    corpus, _ = read_documents([source], settings, None, jobs=jobs)
    if not len(corpus):
        raise InvalidInputError(f"{source.name}: no document in it")
    return corpus


def judge_documents(
    detector: "Detector",
    corpus: "Corpus",
    source: "Source",
    *,
    skip: float | None = None,
    share: float | None = None,
) -> "Detection":
    """Judge documents, those of the first `skip` seconds left out."""
    from habitus.anomaly.detection import detect_events

    if skip is not None:
        corpus = corpus.take((corpus.times >= skip).nonzero()[0])
        if not len(corpus):
            raise InvalidInputError(f"{source.name}: shorter than the {skip:g} s to skip")
    return detect_events(detector, corpus, source=source.name, share=share)


def write_scores(path: Path, detection: "Detection") -> None:
    """Write the normality of every document as CSV."""
    import csv

    from habitus.files import written_whole

    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "normality", "judged", "abnormal", "behaviour"])
        for row in zip(
            detection.corpus.times, detection.normality, detection.judged, detection.abnormal,
            detection.behaviours + 1, strict=True,
        ):  # fmt: skip
            time, normality, judged, abnormal, behaviour = row
            writer.writerow(
                [f"{time:.10g}", repr(float(normality)), int(judged), int(abnormal), behaviour]
            )


def annotate_video(
    path: Path, source: "Source", detection: "Detection", model: "MarkovClusteringTopicModel"
) -> None:
    """Write the video with its events drawn."""
    from habitus.cli.progress import video_progress_bar
    from habitus.files import kind_of
    from habitus.report.film.annotation import write_annotated

    if not source.is_live and kind_of(source.address) == "corpus":
        raise InvalidInputError(f"{source.name} is a corpus: annotating needs the video itself")
    with video_progress_bar("annotating") as progress:
        write_annotated(path, source, detection, model, progress=progress)


def write_events(
    path: Path, source: "Source", detection: "Detection", model: "MarkovClusteringTopicModel"
) -> None:
    """Write the events as JSON Lines, and thumbnails in a folder beside them."""
    from habitus.files import written_whole
    from habitus.report.figures.moments import thumbnails

    folder = path.with_name(f"{path.stem}-thumbnails")
    events = detection.events
    for k, picture in enumerate(thumbnails(detection, model, source)):
        folder.mkdir(exist_ok=True)
        name = f"{k + 1:04d}.jpg"
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(picture)
        events[k] = replace(events[k], thumbnail=f"{folder.name}/{name}")
    with written_whole(path) as temporary:
        temporary.write_text("".join(f"{event.line()}\n" for event in events))
