"""The demonstration: a rendered junction, learnt and judged, with all that a user would get."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from habitus.errors import InvalidInputError
from habitus.evaluation.matching import Match, match
from habitus.files import written_whole
from habitus.ingest.chunks import ChunkCache
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.jobs.workers import compile_ahead
from habitus.lab.junction.recording import Anomaly, Junction, render, write_labels
from habitus.progress import ProgressCallback, ignore_progress
from habitus.reporting.figures.moments import write_events
from habitus.reporting.film import write_annotated
from habitus.reporting.page.render import write_report
from habitus.scene import Detection, detect_events, learn_scene
from habitus.settings import LearningSettings
from habitus.version import __version__
from habitus.video import Source

NORMAL, WHOLE = 300.0, 720.0
"""Seconds to learn from, and in all."""
ANOMALIES_PER_HOUR = 60.0
ALERTS_PER_DAY = 480.0
"""The budget, 20 an hour: after five minutes of training, 6 an hour find no anomaly."""


class Demonstration(NamedTuple):
    """What happened on the junction, and what was found."""

    detection: Detection
    truth: list[Anomaly]
    """Staged anomalies, in order of time."""
    match: Match
    """Which of them were found."""
    ranked: Match
    """Which of them are among the most unusual moments, alarms or not."""
    learnt_seconds: float
    judged_seconds: float
    alerts_per_day: float = ALERTS_PER_DAY

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        found_by = self.match.found_by
        return {
            "truth": [
                {
                    "kind": event.kind,
                    "start": event.start,
                    "end": event.end,
                    "found": k is not None,
                    "rank": None if rank is None else rank + 1,
                }
                for event, k, rank in zip(self.truth, found_by, self.ranked.found_by, strict=True)
            ],
            "found": self.match.n_found,
            "false_alarms": len(self.match.false_alarms),
            "events": [event.to_json() for event in self.detection.events],
        }


def demonstrate(
    folder: Path, *, seed: int = 200, progress: ProgressCallback = ignore_progress
) -> Demonstration:
    """Render a junction, learn its first five minutes, and find what is abnormal in the rest.

    The folder gets the video, its labels, the model, the events, an annotated video and a page.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror}") from error
    compile_ahead("habitus.lab.kernels_ahead")  # while those of rendering are compiled
    scene = Junction(
        seed=seed, seconds=WHOLE, normal_for=NORMAL, anomalies_per_hour=ANOMALIES_PER_HOUR
    )
    video = folder / "junction.mp4"
    _render_once(scene, video, progress)
    write_labels(scene, folder / "junction.csv")
    source = Source(str(video))
    settings = DocumentSettings()
    corpus = extract_corpus([source], settings, output=video, jobs=-1, progress=progress).corpus
    ChunkCache(video).clear()
    learnt = learn_scene(
        corpus.take((corpus.times < NORMAL).nonzero()[0]),
        n_restarts=LearningSettings.n_restarts,
        n_jobs=-1,
        random_state=0,
        progress=progress,
    )
    learnt.save(folder / "junction.model")
    rest = corpus.take((corpus.times >= NORMAL).nonzero()[0])
    detector = learnt.detector(alerts_per_day=ALERTS_PER_DAY)
    detection = detect_events(detector, rest, source=str(video))
    truth = list(scene.truth())
    detection = _write_products(folder, detection, source, truth, seed, progress)
    alarmed, ranked = match(detection.events, truth), match(detection.moments, truth)
    return Demonstration(detection, truth, alarmed, ranked, NORMAL, WHOLE - NORMAL)


def _render_once(scene: Junction, video: Path, progress: ProgressCallback) -> None:
    """Render the scene, unless that very scene is there already."""
    note = video.with_suffix(".json")
    wanted = json.dumps({"habitus": __version__, **asdict(scene)})
    if video.is_file() and note.is_file() and note.read_text() == wanted:
        return
    if video.exists() and not note.exists():
        raise InvalidInputError(
            f"cannot write {video}: it exists and is not of a demonstration: name another folder",
            parameter="output",
        )
    render(scene, video, progress=progress)
    with written_whole(note) as temporary:
        temporary.write_text(wanted)


def _write_products(
    folder: Path,
    detection: Detection,
    source: Source,
    truth: list[Anomaly],
    seed: int,
    progress: ProgressCallback,
) -> Detection:
    """Write events, annotated video and page; the video only where it would change."""
    annotated, events = folder / "annotated.mp4", folder / "events.jsonl"
    before = events.read_text() if events.is_file() and annotated.is_file() else None
    detection = write_events(events, detection, source)
    if events.read_text() != before:
        write_annotated(annotated, detection, source, progress=progress)
    write_report(
        folder / "report.html",
        detection,
        source=source,
        video=annotated,
        commands=[f"habitus demo --seed {seed}"],
        truth=[(event.start, event.end, event.kind) for event in truth],
    )
    return detection
