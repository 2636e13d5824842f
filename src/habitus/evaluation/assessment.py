"""All figures of a detector against labels, in one result."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.frames import (
    FrameFigures,
    PixelFigures,
    ScoredFrames,
    assess_frames,
    assess_pixels,
    score_frames,
)
from habitus.evaluation.label_files import ClipRanges, Labelling, align, read_pixels
from habitus.evaluation.labels import (
    Label,
    LabelledFootage,
    abnormal_documents,
    footage_of_corpus,
    labels_since,
)
from habitus.evaluation.matching import (
    RATES,
    FoundEvents,
    chance_of_finding,
    found_at_rates,
    found_at_threshold,
)
from habitus.evaluation.metrics import (
    Curve,
    Estimate,
    ScoredDocuments,
    check_both,
    decision_estimates,
    plain,
    precision_recall,
    ranking_estimates,
    roc,
)
from habitus.evaluation.spatial_accuracy import (
    BoxHits,
    Localisation,
    box_hits,
    localise,
)
from habitus.progress import ProgressCallback
from habitus.scene.detection import Detection, detect_events
from habitus.scene.detector import Detector
from habitus.scene.events import Event

VERSION = 2
"""Version of the JSON form; 2 renamed `area` and `roc_area` to `average_precision`, `roc_auc`."""
CURVE_RATES = tuple(float(rate) for rate in np.geomspace(0.5, 60, 49))
"""False alarms per hour at which the curve of found events is computed."""
# Documents of time between two clips, so that no alarm and no label reaches from one to the next.
GAP = 10


class Assessment(NamedTuple):
    """Accuracy of a detector for documents, events and locations."""

    labels: list[Label]
    """Labels that count: those that end before the first document do not."""
    n_documents: int
    n_abnormal: int
    seconds: float
    """Duration of the footage."""
    threshold: float | None
    """Threshold of the detector; None if only its events are known."""
    documents: dict[str, Estimate]
    """`average_precision`, `roc_auc`, `best_accuracy`, `precision` and `recall`, where known."""
    chosen: FoundEvents
    """Events found at the threshold of the detector, or by the given events."""
    box_hits: BoxHits | None
    at_rates: Sequence[FoundEvents] = ()
    """Events found at each of RATES; this and what follows is empty if only events are known."""
    precision_recall: Curve | None = None
    roc: Curve | None = None
    events: Curve | None = None
    """Share of labelled events found against false alarms per hour."""
    events_chance: Curve | None = None
    localisation: Localisation | None = None
    frames: FrameFigures | None = None
    """Figures per frame and per pixel, all clips together; None but for labels of clips."""

    def kinds(self) -> dict[str, list[int]]:
        """Return the indices of the labels of each kind, kinds in alphabetical order."""
        numbers: dict[str, list[int]] = {}
        for k, label in enumerate(self.labels):
            numbers.setdefault(label.kind, []).append(k)
        return dict(sorted(numbers.items()))

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values; None stands for an undefined value."""
        return {
            "habitus": "assessment",
            "version": VERSION,
            "n_documents": self.n_documents,
            "n_abnormal": self.n_abnormal,
            "n_events": len(self.labels),
            "seconds": self.seconds,
            "threshold": self.threshold,
            "documents": plain(self.documents),
            "events": {
                "chosen": self._events_json(self.chosen),
                "at_rates": [self._events_json(events) for events in self.at_rates],
            },
            "localisation": plain(self.localisation),
            "box_hits": plain(self.box_hits),
            "frames": self.frames and self.frames.to_json(),
        }

    def _events_json(self, events: FoundEvents) -> dict[str, Any]:
        return {
            "false_alarms_per_hour": events.rate,
            "threshold": plain(events.threshold),
            "n_found": int(events.found.sum()),
            "share": events.share,
            "chance": events.chance,
            "median_delay": plain(events.median_delay),
            "n_false_alarms": events.n_false_alarms,
            "kinds": {
                kind: {"n": len(k), "n_found": int(events.found[k].sum())}
                for kind, k in self.kinds().items()
            },
        }


def evaluate_model(
    detector: Detector,
    corpus: Corpus,
    labels: Sequence[Label] | Labelling,
    *,
    name: str = "",
    n_stored: int | None = None,
    skip: float | None = None,
    share: float | None = None,
    progress: ProgressCallback | None = None,
) -> Assessment:
    """Detect events in the documents of one video and compute all figures against labels.

    Labels are in seconds, or the content of a label file (`parse_labels`); `n_stored` is the number
    of frames of the video, where known, as labels per frame are as many. The first `skip` seconds,
    such as those the model was learnt from, are left out of all figures. With `share`, this share
    of the documents is abnormal, instead of those below the detector's threshold. Progress is
    reported while chance levels are computed, the slowest part.
    """
    aligned = align(labels, footage_of_corpus(corpus, name, n_stored=n_stored))
    if skip is not None:
        corpus = corpus.take(np.flatnonzero(corpus.times >= skip))
        if not len(corpus):
            raise InvalidInputError(
                f"{name}: shorter than the {skip:g} s to skip", parameter="skip"
            )
    detection = detect_events(detector, corpus, source=name, share=share)
    return assess(detection, aligned, progress=progress)


class LabelledClip(NamedTuple):
    """One of several clips that are judged together."""

    name: str
    """Its file; the stem of the file's name is how labels and masks call it."""
    corpus: Corpus

    @property
    def footage(self) -> LabelledFootage:
        """Times of its documents and frames."""
        return footage_of_corpus(self.corpus, self.name)


def evaluate_clips(
    detector: Detector,
    clips: Sequence[LabelledClip],
    labels: ClipRanges,
    *,
    masks: Path | None = None,
    smoothing: float = 0.0,
    share: float | None = None,
    progress: ProgressCallback | None = None,
) -> Assessment:
    """Detect events in several clips of one camera and compute all figures, clips together.

    `masks` is a folder with a folder of masks for each clip, for the figures per pixel;
    `smoothing` the standard deviation, in seconds, of a Gaussian that smooths the scores of frames
    over time, for the figures per frame and per pixel alone. `share` and `progress` are as of
    `evaluate_model`. The times of the result run on from clip to clip.
    """
    labels.check_clips([clip.name for clip in clips])
    starts = _starts(clips)
    corpus = Corpus.joined(
        [
            replace(clip.corpus, times=clip.corpus.times + start)
            for clip, start in zip(clips, starts, strict=True)
        ]
    )
    aligned = [
        label.later(start)
        for clip, start in zip(clips, starts, strict=True)
        for label in labels.of(clip.name).to_labels(clip.footage)
    ]
    detection = detect_events(detector, corpus, share=share, localise_all=masks is not None)
    assessment = assess(detection, aligned, progress=progress)
    truth = [labels.of(clip.name).to_flags(clip.footage) for clip in clips]
    frames = frames_of(detection, truth, smoothing)
    pixels = None if masks is None else _assess_masks(detection, frames, clips, truth, masks)
    return assessment._replace(
        frames=assess_frames(frames, n_clips=len(clips), smoothing=smoothing, pixels=pixels)
    )


def frames_of(detection: Detection, truth: Sequence[Flags], smoothing: float = 0.0) -> ScoredFrames:
    """Return the frames of a detection on one or several clips, with the scores of their documents.

    `truth` says whether each frame is abnormal, one array per clip.
    """
    corpus = detection.corpus
    scored = ScoredDocuments(detection.normality, detection.judged, corpus.times, corpus.clip)
    if corpus.n_frames is None:
        raise InvalidInputError("the number of frames per document is not known: give the videos")
    return score_frames(
        scored.abnormality,
        detection.abnormal,
        corpus.n_frames,
        truth,
        smoothing=smoothing,
        clip=corpus.clip,
    )


def _assess_masks(
    detection: Detection,
    frames: ScoredFrames,
    clips: Sequence[LabelledClip],
    truth: Sequence[Flags],
    masks: Path,
) -> PixelFigures:
    """Return the figures per pixel, from a folder with a folder of masks for each clip."""
    size = _frame_size(detection.corpus)
    if size is None:
        raise InvalidInputError(
            "documents without places cannot be compared with masks", parameter="masks"
        )
    pixels: dict[int, NDArray[np.int64]] = {}
    n = 0
    for clip, flags in zip(clips, truth, strict=True):
        masked = read_pixels(masks / Path(clip.name).stem, len(flags), size)
        pixels |= {n + frame: where for frame, where in masked.items()}
        n += len(flags)
    boxes = {number: where.boxes for number, where in detection.abnormal_words.items()}
    return assess_pixels(frames, pixels, boxes, size)


def _starts(clips: Sequence[LabelledClip]) -> list[float]:
    """Return where each clip starts in seconds, if they follow each other with gaps."""
    starts = [0.0]
    for _, corpus in clips[:-1]:
        starts.append(starts[-1] + float(corpus.times[-1]) + (1 + GAP) * corpus.clip)
    return starts


def evaluate_events(
    events: Sequence[Event],
    footage: LabelledFootage,
    labels: Sequence[Label] | Labelling,
    *,
    skip: float | None = None,
) -> Assessment:
    """Compute the figures that events alone allow: without a score per document, no ranking.

    Labels are as of `evaluate_model`; documents and events of the first `skip` seconds do not
    count.
    """
    aligned = align(labels, footage)
    _check_events(events, footage, skip)
    times, clip = footage.times[footage.times >= (skip or 0.0)], footage.clip
    events = [event for event in events if event.end > times[0]]
    counted = labels_since(aligned, float(times[0]))
    abnormal = abnormal_documents(counted, times, clip)
    check_both(abnormal)
    decided = abnormal_documents(events, times, clip)
    judged = np.ones(len(times), dtype=np.bool_)
    scored = ScoredDocuments(-decided.astype(np.float64), judged, times, clip)
    chance = chance_of_finding(scored, counted, (), -0.5, None)
    events_found = found_at_threshold(scored, counted, -0.5)
    return Assessment(
        labels=counted,
        n_documents=len(times),
        n_abnormal=int(abnormal.sum()),
        seconds=scored.seconds,
        threshold=None,
        documents=decision_estimates(decided, abnormal),
        chosen=events_found._replace(chance=chance.at_threshold, threshold=float("nan")),
        box_hits=box_hits(events, counted, clip, footage.size),
    )


def assess(
    detection: Detection, labels: Sequence[Label], *, progress: ProgressCallback | None = None
) -> Assessment:
    """Compute all figures of a detection on one video against labels in seconds.

    Raises InvalidInputError if the labels mark no document, or every document, abnormal.
    """
    corpus, threshold = detection.corpus, detection.threshold
    scored = ScoredDocuments(detection.normality, detection.judged, corpus.times, corpus.clip)
    counted = labels_since(labels, float(corpus.times[0]))
    abnormal = abnormal_documents(counted, corpus.times, corpus.clip)
    check_both(abnormal)
    rates, n = (*RATES, *CURVE_RATES), len(RATES)
    at_rates = found_at_rates(scored, counted, rates)
    chance = chance_of_finding(scored, counted, rates, threshold, progress)
    chosen = found_at_threshold(scored, counted, threshold)
    return Assessment(
        labels=counted,
        n_documents=len(abnormal),
        n_abnormal=int(abnormal.sum()),
        seconds=scored.seconds,
        threshold=threshold,
        documents={
            **ranking_estimates(scored.abnormality, abnormal),
            **decision_estimates(detection.abnormal, abnormal),
        },
        chosen=chosen._replace(chance=chance.at_threshold),
        at_rates=[
            events._replace(chance=share)
            for events, share in zip(at_rates[:n], chance.at_rates[:n], strict=True)
        ],
        precision_recall=precision_recall(scored.abnormality, abnormal),
        roc=roc(scored.abnormality, abnormal),
        events=Curve(np.array(CURVE_RATES), np.array([events.share for events in at_rates[n:]])),
        events_chance=Curve(np.array(CURVE_RATES), np.array(chance.at_rates[n:])),
        localisation=localise(corpus, detection.surprisals, abnormal & detection.judged, counted),
        box_hits=box_hits(detection.events, counted, corpus.clip, _frame_size(corpus)),
    )


def _frame_size(corpus: Corpus) -> tuple[int, int] | None:
    v = corpus.vocabulary
    return (v.width, v.height) if v is not None else None


def _check_events(events: Sequence[Event], footage: LabelledFootage, skip: float | None) -> None:
    """Raise InvalidInputError for events outside the footage, or a `skip` beyond its end."""
    if skip is not None and skip >= footage.end:
        raise InvalidInputError(
            f"{footage.name}: shorter than the {skip:g} s to skip", parameter="skip"
        )
    for event in events:
        if event.end <= 0 or event.start >= footage.end or event.end > footage.end + footage.clip:
            raise InvalidInputError(
                f"an event from {event.start:g} to {event.end:g} s is outside {footage.name}, "
                f"which ends at {footage.end:g} s: are these the events of another video?"
            )
