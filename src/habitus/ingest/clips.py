"""Frames to documents: the visual words of each clip of a video, one document after the other."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from av.video.frame import PictureType
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.corpus.vocabulary import Vocabulary, WordKind, count_words
from habitus.errors import InvalidInputError
from habitus.schema import LONGEST_CLIP
from habitus.video import Frame, Reader, Source, motion_by, region_of, watched_cells

# Minimum number of seconds between compared frames: every second frame at 25 frames per second.
# Closer frames move too little to tell slow motion from noise, and cost twice the time.
LAG = 0.06
# Frames further apart than this are not compared: something was lost between them.
LONGEST_LAG = 0.5
# Clips that may be lost without ending a sequence; they become empty documents.
LONGEST_GAP = 10
# Containers round times: a frame that is early by this much still opens the next clip.
ROUNDING = 1e-4
# Rows and columns that a thumbnail has at least, where cells can be split for it.
FEWEST_ROWS = 24
# Intervals between frames from which the frame rate of a live stream is known, and the least
# number of them.
INTERVALS_REMEMBERED, INTERVALS_NEEDED = 250, 10


@dataclass(frozen=True)
class DocumentSettings:
    """How documents are extracted from video.

    Parameters
    ----------
    clip
        Seconds of video per document, at most a day.
    cell
        Side of a cell in pixels of the analysed frame.
    motion
        How motion is measured: "cells" or "flow"; see `habitus.video.motion`.
    words
        Which words to keep: "fine" (12 directions, 16 speeds), or sums of them: "coarse" (4
        directions, slow or fast) or "paper" (4 directions).
    mask, region
        Areas to ignore, and the only areas to watch; see `habitus.video.watched_cells`.
    still_every
        Number of documents from one colour still to the next.
    scale
        Pixels of the camera's frame per pixel of the analysed frame; by default as
        `Vocabulary.of_frame` chooses.

    Examples
    --------
    >>> DocumentSettings(clip=2.0).words
    'fine'
    """

    clip: float = 1.0
    cell: int = 8
    motion: str = "cells"
    words: WordKind = "fine"
    mask: str | None = None
    region: str | None = None
    still_every: int = 16
    scale: float | None = None

    def __post_init__(self) -> None:
        """Check the length of a clip, which times are divided by."""
        if not 0 < self.clip <= LONGEST_CLIP:
            raise InvalidInputError(
                f"clip must be above 0 and at most {LONGEST_CLIP:g} seconds, found {self.clip:g}",
                parameter="clip",
            )

    def to_json(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """Return the settings as plain values that hold on other machines.

        A mask file becomes a region: polygons around the watched cells.
        """
        watched = watched_cells(vocabulary, mask=self.mask, region=self.region)
        return {
            "clip": self.clip,
            "cell": self.cell,
            "motion": self.motion,
            "words": self.words,
            "scale": vocabulary.scale,
            "region": region_of(watched, vocabulary),
        }


class Document(NamedTuple):
    """The visual words of one clip, with what the condition of the camera is judged by."""

    number: int
    """Number of the clip within its source, from 0."""
    time: float
    """Start of the clip in seconds."""
    words: NDArray[np.int64]
    """Word ids, ascending."""
    counts: NDArray[np.int64]
    """Number of occurrences of each of these words."""
    n_frames: int
    """Number of frames in the clip."""
    change: float
    """Largest mean change between two compared frames in grey levels; 0 if all are identical."""
    thumbnail: Image
    """Mean brightness of each cell in the first frame, rows x columns; of parts of cells where
    these are few."""
    still: Image | None
    """Colour picture at the analysed size, at most the camera's; only every `still_every`
    documents."""


class FrameSource(Protocol):
    """Timed frames of one size: a `Reader`, or an object that wraps one."""

    fps: float
    width: int
    height: int

    def __iter__(self) -> Iterator[Frame]:
        """Return the frames in order of time."""
        ...


class ComparedFrame(NamedTuple):
    """A frame with the motion since the frame that it was compared with."""

    frame: Frame
    number: int
    """Number of the clip that the frame belongs to."""
    moves: NDArray[np.int16] | None
    """Motion per cell as in `CellMoves`; None if the frame was not compared."""
    change: float
    """Mean absolute difference of the two frames in grey levels."""


def vocabulary_of(frames: FrameSource, settings: DocumentSettings) -> Vocabulary:
    """Return the vocabulary for frames of this size.

    Raises
    ------
    InvalidInputError
        If a clip would hold less than two frames, or the cells do not fit the frame.
    """
    if settings.clip * frames.fps < 2 - ROUNDING:
        raise InvalidInputError(
            f"a clip must hold at least two frames: {2 / frames.fps:.3g} s at {frames.fps:.4g} "
            f"frames per second, found {settings.clip:g} s",
            parameter="clip",
        )
    return Vocabulary.of_frame(
        frames.width,
        frames.height,
        cell=settings.cell,
        scale=settings.scale,
        words=settings.words,
    )


def clip_number(time: float, clip: float) -> int:
    """Return the number of the clip that contains a time.

    It is computed from the time alone, not by counting frames: it never drifts.

    >>> clip_number(59.99999, 1.0)
    60
    """
    return int((time + ROUNDING) // clip)


class ComparisonSchedule:
    """Selects the frames to compare: the first of each clip, then one every `LAG` seconds."""

    def __init__(self, clip: float) -> None:
        self.clip, self.number, self.last = clip, -1, -np.inf

    def __call__(self, time: float) -> bool:
        """Return whether to compare the frame of this time; call it for all frames in order."""
        number = clip_number(time, self.clip)
        if number == self.number and time - self.last < LAG:
            return False
        self.number, self.last = number, time
        return True


def compare_frames(
    frames: FrameSource, settings: DocumentSettings, *, since: int = 0
) -> Iterator[ComparedFrame]:
    """Yield every frame from clip `since` on, with the motion of those that are compared.

    The first frame of a clip is always compared with the last compared frame of the clip before:
    a document does not depend on where reading started. A frame that the codec drew anew is
    compared with none, nor is any frame before it with one after it: motion starts anew with the
    next frame that is always decoded.
    """
    vocabulary = vocabulary_of(frames, settings)
    watched = watched_cells(vocabulary, mask=settings.mask, region=settings.region)
    motion = motion_by(settings.motion, vocabulary, watched)
    before: Any = None
    last, scheduled, clip = -np.inf, ComparisonSchedule(settings.clip), settings.clip
    anew = False
    for frame in frames:
        time = frame.time
        number = clip_number(time, clip)
        if number < since:
            continue
        moves, change = None, 0.0
        decoded = frame.decoded
        # A frame that others are predicted from is never skipped.
        wanted = decoded is not None and (
            scheduled(time) or (anew and decoded.pict_type != PictureType.B)
        )
        if not frame.intact or frame.redrawn:
            before, anew = None, frame.redrawn
        elif wanted:
            anew = False
            after = motion.prepare(frame)
            if before is not None and time - last <= LONGEST_LAG:
                moves, change = motion.between(before, after, time - last)
            before, last = after, time
        yield ComparedFrame(frame, number, moves, change)


def documents(
    source: Source | FrameSource,
    settings: DocumentSettings | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    prompt: bool = False,
) -> Iterator[Document]:
    """Yield the documents of a source as they are completed; memory use is constant.

    The last document is left out if the video ends before half of its clip. Up to `LONGEST_GAP`
    clips without any frame become empty documents that follow the document before them, even if
    that is the last one before `stop`.

    Parameters
    ----------
    source
        The video, or frames that are being read.
    settings
        How documents are extracted.
    start, stop
        Numbers of the first clip, and of the first clip that is not wanted.
    prompt
        Yield a document with the last frame of its clip, not with the first frame of the next
        clip, if frames arrive at a steady rate. A frame that arrives sooner after the one before
        it than any recent frame may then be left out.

    Yields
    ------
    Document
        Documents in order of time.
    """
    settings = settings or DocumentSettings()
    if isinstance(source, Source):
        with reader_from(start, source, settings) as reader:
            yield from documents(reader, settings, start=start, stop=stop, prompt=prompt)
        return
    clip: _OpenClip | None = None
    vocabulary, interval = vocabulary_of(source, settings), _FrameInterval()
    for compared in compare_frames(source, settings, since=first_needed(start, settings)):
        if clip is not None and compared.number != clip.number:
            yield from clip.finished(start, compared.number)
            clip = None
        if stop is not None and compared.number >= stop:
            return
        clip = clip or _OpenClip(compared.number, vocabulary, settings)
        clip.add(compared)
        if prompt and clip_number(interval.next(compared.frame.time), settings.clip) > clip.number:
            yield from clip.finished(start, clip.number + 1)
    if clip is not None:
        lasted = clip.last + 1 / source.fps - clip.number * settings.clip
        if lasted + ROUNDING >= settings.clip / 2:
            yield from clip.finished(start, clip.number + 1)


def first_needed(start: int, settings: DocumentSettings) -> int:
    """Return the clip to read from so that document `start` is the same as in a full run."""
    return min(start - 1, clip_number(start * settings.clip - LONGEST_LAG, settings.clip))


def reader_from(
    start: int, source: Source, settings: DocumentSettings, *, steady: bool | None = None
) -> Reader:
    """Open a reader of the frames that documents from `start` on need; for `steady` see there."""
    since = max(0, first_needed(start, settings)) * settings.clip
    pace = partial(ComparisonSchedule, settings.clip)
    return Reader(source, since=since, pace=pace, steady=steady)


class _FrameInterval:
    """Recent intervals between frames, to predict the next frame."""

    def __init__(self) -> None:
        self.last, self.intervals = -np.inf, deque[float](maxlen=INTERVALS_REMEMBERED)

    def next(self, time: float) -> float:
        """Return the earliest time of the next frame, by the shortest recent interval."""
        self.intervals.append(time - self.last)
        self.last = time
        return time + min(self.intervals) if len(self.intervals) > INTERVALS_NEEDED else time


class _OpenClip:
    """A document whose clip is being read."""

    def __init__(self, number: int, vocabulary: Vocabulary, settings: DocumentSettings) -> None:
        self.number, self.vocabulary, self.settings = number, vocabulary, settings
        self.moves: list[NDArray[np.int16]] = []
        self.n_frames, self.change, self.last, self.given = 0, 0.0, 0.0, False
        self.thumbnail: Image | None = None
        self.still: Image | None = None

    def add(self, compared: ComparedFrame) -> None:
        """Add a frame."""
        frame, _, moves, change = compared
        self.n_frames += 1
        self.last = frame.time
        if moves is not None:
            self.change = max(self.change, change)
            self.moves.append(moves)
        if self.thumbnail is None and frame.decoded is not None:
            self._keep_pictures(frame)

    def _keep_pictures(self, frame: Frame) -> None:
        """Keep a thumbnail and, if it is due, a still of the first frame."""
        v = self.vocabulary
        n = parts_of_cell(v)
        self.thumbnail = cell_brightness(frame.luma(), n * v.rows, n * v.columns, v.cell_side // n)
        if self.number % self.settings.still_every == 0:
            shrunk = max(int(v.scale), 1)
            self.still = frame.colours(v.width // shrunk, v.height // shrunk)

    def finished(self, start: int, following: int) -> Iterator[Document]:
        """Yield the document unless it was given, then empty ones for a short gap after it."""
        if self.number < start or self.thumbnail is None:
            return
        clip = self.settings.clip
        if not self.given:
            self.given = True
            words, counts = self._words()
            yield Document(
                self.number,
                self.number * clip,
                words,
                counts,
                self.n_frames,
                self.change,
                self.thumbnail,
                self.still,
            )
        if following - self.number <= LONGEST_GAP:
            none = np.empty(0, dtype=np.int64)
            for number in range(self.number + 1, following):
                yield Document(number, number * clip, none, none, 0, 0.0, self.thumbnail, None)

    def _words(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of the words that occur, and their counts."""
        if not self.moves:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        return count_words(np.stack(self.moves), self.vocabulary)


def parts_of_cell(vocabulary: Vocabulary) -> int:
    """Return into how many parts each side of a cell is split for a thumbnail: 1, 2 or 4.

    >>> parts_of_cell(Vocabulary.of_frame(360, 288)), parts_of_cell(Vocabulary.of_frame(128, 64))
    (1, 2)
    """
    n, v = 1, vocabulary
    while n < 4 and n * min(v.rows, v.columns) < FEWEST_ROWS and v.cell_side % (2 * n) == 0:
        n *= 2
    return n


def cell_brightness(luma: Image, rows: int, columns: int, side: int) -> Image:
    """Return the mean brightness of each cell, rounded down, from about 4 x 4 of its pixels.

    Equal to `luma[:rows * side, :columns * side].reshape(rows, side, columns, side)
    [:, ::step, :, ::step].mean(axis=(1, 3)).astype(np.uint8)` with `step = max(side // 4, 1)`.
    """
    picked = range(0, side, max(side // 4, 1))
    lines = luma[: rows * side].reshape(rows, side, -1)[:, :, : columns * side]
    across = np.zeros((rows, columns * side), dtype=np.uint16)
    for y in picked:  # one array after the other: NumPy sums over short axes slowly
        across += lines[:, y]
    total = np.zeros((rows, columns), dtype=np.uint16)
    for x in picked:
        total += across[:, x::side]
    return (total // len(picked) ** 2).astype(np.uint8)
