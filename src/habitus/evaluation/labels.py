"""Labels of abnormal events, the footage they refer to, and the documents and words they mark."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.scene.localisation import Box
from habitus.schema import MOST_FRAMES, shortened

if TYPE_CHECKING:
    from habitus.video import Source

# Label files round their times: labels that overlap by no more than this, in seconds, do not.
ROUNDING = 1e-6
# Share of a document that labels must cover to make it abnormal. A label shorter than a document
# marks the document that contains its midpoint, so that every label marks one.
COVERED = 0.5
# Duration in seconds given to a sighting: it marks the document that contains its time.
SIGHTING_DURATION = 1e-3


class TimeSpan(Protocol):
    """Anything with a start and an end in seconds: a label, an event."""

    @property
    def start(self) -> float:
        """Start in seconds."""
        ...

    @property
    def end(self) -> float:
        """End in seconds."""
        ...


class Sighting(NamedTuple):
    """Location of an object at one time."""

    time: float
    """Seconds of video."""
    box: Box


class Label(NamedTuple):
    """An abnormal event, as labelled by a person or known from a rendered scene."""

    start: float
    """Seconds of video."""
    end: float
    kind: str = ""
    box: Box | None = None
    """Location in pixels of the frame, around all sightings."""
    track: tuple[Sighting, ...] = ()
    """Location at each time, in time order, where known."""

    def boxes(self, start: float, end: float) -> list[Box]:
        """Return the boxes at `start` <= time < `end`; the overall box without a track."""
        inside = [sighting.box for sighting in self.track if start <= sighting.time < end]
        return inside or ([self.box] if self.box is not None and not self.track else [])

    def later(self, seconds: float) -> "Label":
        """Return the label moved to a later time."""
        track = tuple(sighting._replace(time=sighting.time + seconds) for sighting in self.track)
        return self._replace(start=self.start + seconds, end=self.end + seconds, track=track)


def parse_seconds(text: str) -> float:
    """Return the seconds of a number or of a time with colons.

    >>> parse_seconds("754.5"), parse_seconds("12:34.5"), parse_seconds("1:00:00")
    (754.5, 754.5, 3600.0)
    """
    first, *parts = (float(part) for part in text.strip().split(":"))
    if len(parts) > 2 or any(not 0 <= part < 60 for part in parts):
        raise ValueError(f"{text.strip()!r} is not a time such as 754.5, 12:34.5 or 0:12:34.5")
    seconds = first
    for part in parts:
        seconds = 60 * seconds + part
    return seconds


def labels_since(labels: Sequence[Label], time: float) -> list[Label]:
    """Return the labels that end after `time`, in order; those in progress start at `time`."""
    counted = (label._replace(start=max(label.start, time)) for label in labels if label.end > time)
    return sorted(counted, key=lambda label: label[:3])


def check_labels(
    labels: Sequence[Label],
    first: float,
    last: float,
    name: str = "labels",
    *,
    clip: float,
    size: tuple[int, int] | None = None,
) -> None:
    """Raise InvalidInputError if a label lies outside the video, or its box outside the frame.

    A label may end a document after the last, as a video does, and a box a pixel beyond the frame.
    """
    for label in labels:
        what = f"{name}: {shortened(label.kind) or 'a label'} from {label.start:g} to {label.end:g}"
        if label.end <= first or label.start >= last or label.end > last + clip:
            raise InvalidInputError(
                f"{what} s is outside the video, which runs from {first:g} to {last:g} s: is this "
                "another video, or are the times in other units?"
            )
        if size is not None and label.box is not None:
            _, _, right, bottom = label.box
            if right > size[0] + 1 or bottom > size[1] + 1:
                raise InvalidInputError(
                    f"{what} s: its box reaches to {right},{bottom}, outside the frame of "
                    f"{size[0]}x{size[1]} pixels: are these pixels of another size of the video?"
                )


def check_overlaps(labels: Sequence[Label], name: str = "labels") -> None:
    """Raise InvalidInputError if two labels of one kind overlap without different boxes.

    Two events of one kind may happen at once; one event labelled twice would count twice.
    """
    longest: dict[tuple[str, Box | str | None], Label] = {}
    for label in sorted(labels, key=lambda label: label.start):
        # The label that ends last of this kind: of any box, of none, and of the same box.
        rivals = ["any"] if label.box is None else [None, label.box]
        for rival in rivals:
            one = longest.get((label.kind, rival))
            if one is not None and label.start < one.end - ROUNDING:
                raise InvalidInputError(
                    f"{name}: {shortened(label.kind) or 'a label'} from {label.start:g} to "
                    f"{label.end:g} s overlaps the one from {one.start:g} to {one.end:g} s: merge "
                    "them, or give each its own kind or box"
                )
        for key in ((label.kind, "any"), (label.kind, label.box)):
            if key not in longest or longest[key].end < label.end:
                longest[key] = label


class LabelledFootage(NamedTuple):
    """Times of the documents and frames of the one video that labels refer to."""

    name: str
    times: Array
    """Start of each document in seconds."""
    clip: float
    """Duration of a document in seconds."""
    n_frames: NDArray[np.int64] | None = None
    """Number of frames of each document, where known."""
    size: tuple[int, int] | None = None
    """Width and height of the frame, where known."""
    uncertain_frames: int = 0
    """Number of frames that the video may have more or fewer than `n_frames` sums to."""
    n_stored: int | None = None
    """Number of frames of the video, those after its last document too, where known."""

    @property
    def end(self) -> float:
        """End of the last document in seconds."""
        return float(self.times[-1]) + self.clip

    def frame_times(self) -> Array:
        """Return start and end of each frame, frames x 2; even spacing within a document."""
        if self.n_frames is None:
            raise InvalidInputError(
                f"{self.name}: the number of frames per document is not known, so labels per frame "
                "have no times: give the video, or labels in seconds"
            )
        n = self.n_frames
        if n.sum() > MOST_FRAMES:
            raise InvalidInputError(
                f"{self.name}: labels per frame are read for at most {MOST_FRAMES} frames, found "
                f"{n.sum()}"
            )
        step = self.clip / np.maximum(n, 1)
        step[-1] = self.clip / max(n[-1], np.median(n))  # the video may end within it
        document = np.repeat(np.arange(len(n)), n)
        number = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        starts = self.times[document] + number * step[document]
        return np.stack([starts, starts + step[document]], axis=1)

    def fit_flags(self, flags: Flags, name: str) -> Flags:
        """Return one flag per frame, or raise InvalidInputError for flags of other footage.

        The end of a video is no document if it is shorter than half a clip: its flags are dropped.
        """
        n = len(self.frame_times())
        per_clip = int(np.max(self.n_frames if self.n_frames is not None else 0, initial=0))
        slack = self.uncertain_frames
        least, most = n - slack, n + slack + per_clip // 2 + 1
        if self.n_stored is not None and least <= self.n_stored <= most:
            least, most = min(n, self.n_stored), self.n_stored
        if not least <= len(flags) <= most:
            seconds = len(self.times) * self.clip
            raise InvalidInputError(
                f"{name}: labels of {len(flags)} frames, but {self.name} has {n} in {seconds:g} s "
                f"({len(flags) / seconds:.4g} labels per second, {n / seconds:.4g} frames per "
                "second): is this another video, or another frame rate?"
            )
        return np.concatenate([flags, np.zeros(max(n - len(flags), 0), dtype=np.bool_)])[:n]


def footage_of_corpus(corpus: Corpus, name: str, *, n_stored: int | None = None) -> LabelledFootage:
    """Return the document and frame times of a corpus of one video.

    Raises InvalidInputError if it is empty or its times restart, as those of several videos do.
    """
    if not len(corpus):
        raise InvalidInputError(f"{name}: the corpus has no documents")
    if (np.diff(corpus.times) <= 0).any():
        raise InvalidInputError(
            f"{name}: several videos, each with times from 0 s, so a label could be of any: "
            "give each video as a file of its own"
        )
    v = corpus.vocabulary
    size = (v.width, v.height) if v is not None else None
    return LabelledFootage(
        name, corpus.times, corpus.clip, corpus.n_frames, size, n_stored=n_stored
    )


def footage_of_video(source: "Source", clip: float) -> LabelledFootage:
    """Return the document and frame times of a video file from its container, without decoding."""
    from habitus.video import Reader, count_packets, survey

    with Reader(source) as reader:
        fps, size = reader.fps, (reader.width, reader.height)
    if source.is_live:
        raise InvalidInputError(
            f"{source.name}: it can be read only once: extract a corpus and give that"
        )
    seconds = survey(source).duration
    # As documents are made: the last one needs at least half a clip.
    times = np.arange(max(1, int(seconds / clip + 0.5)), dtype=np.float64) * clip
    edges = np.minimum(np.round(np.append(times, times[-1] + clip) * fps), round(seconds * fps))
    n_frames = np.diff(edges).astype(np.int64)
    n_stored = count_packets(source)
    return LabelledFootage(source.name, times, clip, n_frames, size, 2, n_stored)


def abnormal_documents(spans: Sequence[TimeSpan], times: Array, clip: float) -> Flags:
    """Return whether each document is abnormal according to labels or events, which may overlap.

    A document is abnormal if they cover at least half of it, or if it contains the midpoint of one
    shorter than a document.

    >>> abnormal_documents([Label(1.5, 3.2)], np.arange(4.0), 1.0)
    array([False,  True,  True, False])
    """
    if not len(spans):
        return np.zeros(len(times), dtype=np.bool_)
    starts, ends = np.array(_union(spans)).T
    # Seconds of labels up to a time: those that have started, less the rest of the last one.
    total = np.concatenate([[0.0], np.cumsum(ends - starts)])

    def labelled_until(time: Array) -> Array:
        n = np.searchsorted(starts, time, side="right")
        return np.asarray(total[n] - np.maximum(np.append(-np.inf, ends)[n] - time, 0))

    covered = labelled_until(times + clip) - labelled_until(times)
    middles = np.sort([(s.start + s.end) / 2 for s in spans if s.end - s.start < clip])
    n_middles = np.searchsorted(middles, times + clip) - np.searchsorted(middles, times)
    return np.asarray((n_middles > 0) | (covered >= COVERED * clip * (1 - 1e-9)))


def _union(spans: Sequence[TimeSpan]) -> list[tuple[float, float]]:
    """Return disjoint intervals that cover the same times."""
    union: list[tuple[float, float]] = []
    for start, end in sorted((span.start, span.end) for span in spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


class AbnormalPlace(NamedTuple):
    """A box that is abnormal from `start` to `end`, in seconds."""

    start: float
    end: float
    box: Box


def abnormal_places(labels: Iterable[Label]) -> list[AbnormalPlace]:
    """Return one place per sighting of a label, or its box for its whole duration."""
    places: list[AbnormalPlace] = []
    for label in labels:
        if label.track:
            places += (
                AbnormalPlace(time, time + SIGHTING_DURATION, box) for time, box in label.track
            )
        elif label.box:
            places.append(AbnormalPlace(label.start, label.end, label.box))
    return places


def abnormal_words(corpus: Corpus, places: Sequence[AbnormalPlace]) -> Flags:
    """Return whether each entry of `corpus.entries` is abnormal according to labels.

    A word is abnormal if the centre of its cell lies in the box of a place, and the place alone
    would make its document abnormal. None is in a corpus without a vocabulary.
    """
    counts = corpus.entries
    inside = np.zeros(len(counts.data), dtype=np.bool_)
    if corpus.vocabulary is None:
        return inside
    boxes = corpus.vocabulary.boxes(counts.indices)
    centre_x, centre_y = boxes[:, ::2].mean(axis=1), boxes[:, 1::2].mean(axis=1)
    times, clip = corpus.times, corpus.clip
    ascending = len(times) < 2 or bool((np.diff(times) > 0).all())
    for place in places:
        left, top, right, bottom = place.box
        first, end = 0, len(times)
        if ascending:  # only documents that it overlaps can be abnormal
            first, end = np.searchsorted(times, [place.start - clip, place.end]).tolist()
        for t in first + np.flatnonzero(abnormal_documents([place], times[first:end], clip)):
            here = slice(counts.indptr[t], counts.indptr[t + 1])
            x, y = centre_x[here], centre_y[here]
            inside[here] |= (left <= x) & (x < right) & (top <= y) & (y < bottom)
    return inside
