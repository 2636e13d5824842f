"""Figures per frame and per pixel, of several clips together, as benchmarks of the field have them.

A document's score is that of each of its frames, and a document's boxes are those of each of its
frames. No clip is scaled by its own scores: one threshold holds for all.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags
from habitus.errors import InvalidInputError
from habitus.evaluation.metrics import BLOCK, Curve, Estimate, plain, ranking_estimates, roc
from habitus.scene.localisation import Box

COVERED = 0.4
"""Share of a frame's abnormal pixels that boxes must cover to locate it (Mahadevan et al. 2010)."""
N_OTHERS = 200
"""Documents whose boxes the chance of covering a frame is the mean over."""

AbnormalPixels = Mapping[int, NDArray[np.int64]]
"""Numbers of the abnormal pixels, row by row, of each frame that has any."""


class ScoredFrames(NamedTuple):
    """Frames of all clips, one clip after the other."""

    abnormality: Array
    abnormal: Flags
    """Whether each frame is labelled abnormal."""
    alarmed: Flags
    """Whether the detector called its document abnormal."""
    documents: NDArray[np.int64]
    """Number of the document of each frame."""


class PixelFigures(NamedTuple):
    """Accuracy in pixels: a frame is found only where it is alarmed and located as well."""

    n_frames: int
    """Number of frames with abnormal pixels."""
    roc_auc: float
    chance: float
    """Expected ROC AUC of random scores, with the boxes of other documents."""
    detection_rate: float
    """Share of these frames found where as large a share of the normal ones is left in peace."""
    roc: Curve
    n_alarmed: int
    """Number of these frames that the detector alarms."""
    n_met: int
    """Those of the alarmed ones whose boxes meet an abnormal pixel."""
    met_chance: float
    """Expected share of met frames with the boxes of other documents; NaN without any."""


class FrameFigures(NamedTuple):
    """Accuracy per frame, all clips together."""

    n_clips: int
    n_frames: int
    n_abnormal: int
    smoothing: float
    """Standard deviation, in seconds, of the Gaussian that scores were smoothed with; 0: none."""
    ranking: dict[str, Estimate]
    """`roc_auc` and `average_precision`."""
    equal_error_rate: float
    """Share of wrong frames where it is the same for normal and for abnormal ones."""
    roc: Curve
    pixels: PixelFigures | None
    """None without masks."""

    def to_json(self) -> dict[str, Any]:
        """Return all figures but the curves as plain values; None stands for an undefined one."""
        figures: dict[str, Any] = plain(self, "roc")
        return figures


def score_frames(
    abnormality: Array,
    alarmed: Flags,
    n_frames: NDArray[np.int64],
    clips: Sequence[Flags],
    *,
    smoothing: float = 0.0,
    clip: float = 1.0,
) -> ScoredFrames:
    """Give each frame the score and decision of its document, all clips after each other.

    `clips` says whether each frame is labelled abnormal, one array per clip; `smoothing` is the
    standard deviation, in seconds, of a Gaussian over the frames of each clip.

    >>> clips = [np.array([False, True, True])]
    >>> score_frames(np.array([1.0, 5.0]), np.array([False, True]), np.array([1, 2]), clips)[0]
    array([1., 5., 5.])
    """
    documents = np.repeat(np.arange(len(n_frames)), n_frames)
    scores = abnormality[documents]
    if smoothing:
        from scipy.ndimage import gaussian_filter1d

        ends = np.cumsum([len(flags) for flags in clips])
        rate = float(np.median(n_frames)) / clip
        scores = np.concatenate(
            [
                gaussian_filter1d(part, smoothing * rate, mode="nearest")
                for part in np.split(scores, ends[:-1])
            ]
        )
    return ScoredFrames(scores, np.concatenate(clips), alarmed[documents], documents)


def assess_frames(
    frames: ScoredFrames,
    *,
    n_clips: int,
    smoothing: float = 0.0,
    pixels: PixelFigures | None = None,
) -> FrameFigures:
    """Return the figures per frame; `smoothing` is what the scores were smoothed with."""
    scores, abnormal = frames.abnormality, frames.abnormal
    curve = roc(scores, abnormal)
    block = BLOCK * max(1, round(len(abnormal) / (frames.documents[-1] + 1)))
    ranking = ranking_estimates(scores, abnormal, block=block)
    del ranking["best_accuracy"]
    return FrameFigures(
        n_clips,
        len(abnormal),
        int(abnormal.sum()),
        smoothing,
        ranking,
        1 - _detection_rate(curve),
        curve,
        pixels,
    )


def assess_pixels(
    frames: ScoredFrames,
    pixels: AbnormalPixels,
    boxes: Mapping[int, Sequence[Box]],
    size: tuple[int, int],
) -> PixelFigures:
    """Return the figures per pixel, as Mahadevan et al. (2010) define them.

    A frame with abnormal pixels is found at a threshold if it is alarmed and its boxes cover at
    least 40 % of these pixels. A frame without is a false alarm if it is alarmed. Frames that are
    labelled abnormal but have no such pixel do not count. Pixels are those of a frame by its number
    over all clips, boxes those of a document; `size` is width and height of a frame.
    """
    true = np.array(sorted(pixels), dtype=np.int64)
    masked = np.isin(np.arange(len(frames.abnormal)), true)
    normal = frames.abnormality[~frames.abnormal & ~masked]
    if not len(true) or not len(normal):
        raise InvalidInputError(
            f"masks of {len(true)} frames beside {len(normal)} normal ones: figures per pixel need "
            "both",
            parameter="masks",
        )
    covered = _coverage(true, pixels, frames.documents[true], boxes, size)
    documents = np.unique(frames.documents)
    others = documents[:: -(-len(documents) // N_OTHERS)]
    foreign = np.stack(
        [_coverage(true, pixels, np.full(len(true), other), boxes, size) for other in others]
    )
    scores, alarmed = frames.abnormality[true], frames.alarmed[true]
    curve = _located_roc(scores, covered >= COVERED, normal)
    return PixelFigures(
        len(true),
        float(np.trapezoid(curve.y, curve.x)),
        float((foreign >= COVERED).mean() / 2),
        _detection_rate(curve),
        curve,
        int(alarmed.sum()),
        int((alarmed & (covered > 0)).sum()),
        float((foreign[:, alarmed] > 0).mean()) if alarmed.any() else float("nan"),
    )


def _coverage(
    frames: NDArray[np.int64],
    pixels: AbnormalPixels,
    documents: NDArray[np.int64],
    boxes: Mapping[int, Sequence[Box]],
    size: tuple[int, int],
) -> Array:
    """Return the share of the abnormal pixels of each frame in the boxes of a document each."""
    drawn: dict[int, Flags] = {}
    shares = []
    for frame, document in zip(frames.tolist(), documents.tolist(), strict=True):
        if document not in drawn:
            drawn = {document: _drawn(boxes.get(document, ()), size)}
        shares.append(drawn[document][pixels[frame]].mean())
    return np.array(shares)


def _drawn(boxes: Sequence[Box], size: tuple[int, int]) -> Flags:
    """Return whether each pixel is in a box, row by row."""
    inside = np.zeros(size[::-1], dtype=np.bool_)
    for left, top, right, bottom in boxes:
        inside[top:bottom, left:right] = True
    return inside.reshape(-1)


def _located_roc(scores: Array, located: Flags, normal: Array) -> Curve:
    """Return the ROC curve of frames of which only those that are located can be found."""
    if not located.any():
        return Curve(np.array([0.0, 1.0]), np.zeros(2))
    truth = np.repeat([True, False], [int(located.sum()), len(normal)])
    curve = roc(np.concatenate([scores[located], normal]), truth)
    return Curve(curve.x, curve.y * located.mean())


def _detection_rate(curve: Curve) -> float:
    """Return the true positive rate where it equals 1 - the false positive rate."""
    beyond = int(np.flatnonzero(curve.y >= 1 - curve.x)[0])  # the last point has x = 1
    if beyond == 0:
        return float(curve.y[0])
    (x0, x1), (y0, y1) = curve.x[beyond - 1 : beyond + 1], curve.y[beyond - 1 : beyond + 1]
    step = (1 - x0 - y0) / (x1 - x0 + y1 - y0)
    return float(y0 + step * (y1 - y0))
