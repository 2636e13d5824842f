"""What detect, report and the demo do alike."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.cli.inputs import read_documents
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.events import Detection
    from habitus.normality import Detector
    from habitus.video import Source


def load_detector(path: Path, **how: Any) -> "Detector":
    """A detector with the model of a file."""
    from habitus.model import MarkovClusteringTopicModel
    from habitus.normality import Detector

    return Detector(MarkovClusteringTopicModel.load(path), **how)


def run_detection(
    detector: "Detector",
    source: "Source",
    *,
    jobs: int = -1,
    skip: float | None = None,
    share: float | None = None,
) -> "Detection":
    """Judge a video or a corpus file."""
    from habitus.events import detect
    from habitus.files import kind_of
    from habitus.pipeline import check_geometry, settings_of

    settings = None
    if source.is_live or kind_of(source.address) != "corpus":
        settings = settings_of(detector.model)
        if not source.is_live:
            check_geometry(detector.model, source)
    corpus, _ = read_documents([source], settings, None, jobs=jobs)
    if skip is not None:
        corpus = corpus.take((corpus.times >= skip).nonzero()[0])
        if not len(corpus):
            raise InvalidInputError(f"{source.address}: shorter than the {skip:g} s to skip")
    return detect(detector, corpus, source=source.address, share=share)


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


def write_events(path: Path, detection: "Detection") -> None:
    """Write the events as JSON Lines, whole or not at all."""
    from habitus.files import written_whole

    with written_whole(path) as temporary:
        temporary.write_text("".join(f"{event.line()}\n" for event in detection.events))
