"""A label: something that is known to have happened, when, of what kind and where.

The footage that labels are of: its documents, its frames, and when each of them is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.localisation import Box
from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.video import Source

# Ends and starts are written with some digits only: this much is no overlap.
ROUNDING = 1e-6


class Sighting(NamedTuple):
    """Where something was at a time."""

    time: float
    """In seconds of video."""
    box: Box


class Label(NamedTuple):
    """Something abnormal, as a person or the scene's own truth has it."""

    start: float
    """In seconds of video."""
    end: float
    kind: str = ""
    box: Box | None = None
    """Where, in pixels of the camera's frame; of all its time together."""
    track: tuple[Sighting, ...] = ()
    """Where at each time, in order of time, if that is known."""

    def places(self, start: float, end: float) -> list[Box]:
        """Boxes while `start` <= time < `end`; the box of all its time where no more is known."""
        seen = [sighting.box for sighting in self.track if start <= sighting.time < end]
        return seen or ([self.box] if self.box is not None and not self.track else [])

    def since(self, time: float) -> "Label":
        """The part of it from a time on."""
        return self._replace(start=max(self.start, time))


def around(boxes: Sequence[Box]) -> Box:
    """The box around all of these.

    >>> around([Box(0, 5, 10, 20), Box(3, 2, 30, 10)])
    Box(left=0, top=2, right=30, bottom=20)
    """
    left, top, right, bottom = zip(*boxes, strict=True)
    return Box(min(left), min(top), max(right), max(bottom))


def seconds_of(text: str) -> float:
    """Seconds, or a time with colons.

    >>> seconds_of("754.5"), seconds_of("12:34.5"), seconds_of("1:00:00")
    (754.5, 754.5, 3600.0)
    """
    first, *parts = (float(part) for part in text.strip().split(":"))
    if len(parts) > 2 or any(not 0 <= part < 60 for part in parts):
        raise ValueError(f"{text.strip()!r} is no time such as 754.5, 12:34.5 or 0:12:34.5")
    seconds = first
    for part in parts:
        seconds = 60 * seconds + part
    return seconds


def check_labels(labels: Sequence[Label], first: float, last: float, what: str = "labels") -> None:
    """Refuse labels that lie outside the video that they should be of."""
    for label in labels:
        if label.end <= first or label.start >= last:
            raise InvalidInputError(
                f"{what}: {label.kind or 'a label'} from {label.start:g} to {label.end:g} s is "
                f"outside the video, which runs from {first:g} to {last:g} s: another video, or "
                "other units?"
            )


def check_intervals(labels: Sequence[Label], what: str = "labels") -> None:
    """Refuse labels of one kind that overlap, unless they are of different places.

    Two things of a kind may happen at once; one thing labelled twice would count twice.
    """
    in_order = sorted(labels, key=lambda label: (label.kind, label.start, label.end))
    for k, one in enumerate(in_order):
        for other in in_order[k + 1 :]:
            if other.kind != one.kind or other.start >= one.end - ROUNDING:
                break
            if one.box == other.box or one.box is None or other.box is None:
                raise InvalidInputError(
                    f"{what}: {one.kind or 'a label'} from {other.start:g} to {other.end:g} s "
                    f"overlaps the one from {one.start:g} to {one.end:g} s: make them one, or "
                    "give each its kind or its box"
                )


class Footage(NamedTuple):
    """When documents and frames of one video are."""

    name: str
    times: Array
    """Start of each document, in seconds."""
    clip: float
    """Seconds to a document."""
    n_frames: NDArray[np.int64] | None = None
    """Frames of each document, where known."""
    size: tuple[int, int] | None = None
    """Width and height of the camera's frame, where known."""
    fewer: int = 0
    """Frames that the video may have less than `n_frames` says."""

    @property
    def end(self) -> float:
        """End of the last document."""
        return float(self.times[-1]) + self.clip

    def frames(self) -> Array:
        """Start and end of each frame in seconds, frames x 2; evenly spaced within a document."""
        if self.n_frames is None:
            raise InvalidInputError(
                f"{self.name}: nobody knows how many frames each document has, so labels a frame "
                "cannot be set to time: give the video, or intervals in seconds"
            )
        n = self.n_frames
        step = self.clip / np.maximum(n, 1)
        step[-1] = self.clip / max(n[-1], np.median(n))  # the video may end within it
        document = np.repeat(np.arange(len(n)), n)
        number = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        starts = self.times[document] + number * step[document]
        return np.stack([starts, starts + step[document]], axis=1)

    def fitted(self, flags: NDArray[np.bool_], what: str) -> NDArray[np.bool_]:
        """Flags a frame, as many as there are frames; refused where they are of other footage.

        A video's end is no document where it is shorter than half a clip: its flags fall away.
        """
        n = len(self.frames())
        per_clip = int(np.max(self.n_frames if self.n_frames is not None else 0, initial=0))
        if not n - self.fewer <= len(flags) <= n + self.fewer + per_clip // 2 + 1:
            raise InvalidInputError(
                f"{what}: labels of {len(flags)} frames, but {self.name} has {n} in "
                f"{len(self.times) * self.clip:g} s ({self._rates(len(flags), n)}): another video, "
                "or a different frame rate?"
            )
        return np.concatenate([flags, np.zeros(max(n - len(flags), 0), dtype=np.bool_)])[:n]

    def _rates(self, found: int, n: int) -> str:
        seconds = len(self.times) * self.clip
        return f"{found / seconds:.4g} labels a second, {n / seconds:.4g} frames"

    def labels(self, flags: NDArray[np.bool_]) -> list[Label]:
        """A label for each stretch of flagged frames."""
        frames, edges = self.frames(), np.diff(flags.astype(np.int8), prepend=0, append=0)
        firsts, lasts = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
        return [
            Label(float(frames[a, 0]), float(frames[b, 1]))
            for a, b in zip(firsts, lasts, strict=True)
        ]


def footage_of(corpus: Corpus, name: str) -> Footage:
    """The footage of a corpus, which must be of one video."""
    if not len(corpus):
        raise InvalidInputError(f"{name}: no document in it")
    if (np.diff(corpus.times) <= 0).any():
        raise InvalidInputError(
            f"{name}: several videos, each from 0 s on: labels could be of any; evaluate one video "
            "at a time"
        )
    v = corpus.vocabulary
    size = (v.width, v.height) if v is not None else None
    return Footage(name, corpus.times, corpus.clip, corpus.n_frames, size)


def footage_of_video(source: "Source", clip: float) -> Footage:
    """The footage of a video as its container describes it: nothing is decoded but a frame."""
    from habitus.video import Reader

    with Reader(source) as reader:
        seconds, fps, size = reader.duration, reader.fps, (reader.width, reader.height)
    if not seconds:
        raise InvalidInputError(
            f"{source.name}: does not tell how long it is: give the corpus that extract makes of it"
        )
    # As documents are made: the last one needs at least half a clip.
    times = np.arange(max(1, int(seconds / clip + 0.5)), dtype=np.float64) * clip
    edges = np.minimum(np.round(np.append(times, times[-1] + clip) * fps), round(seconds * fps))
    n_frames = np.diff(edges).astype(np.int64)
    return Footage(source.name, times, clip, n_frames, size, fewer=2)
