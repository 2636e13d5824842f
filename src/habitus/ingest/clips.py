"""Frames -> documents: the words of each clip of a video, one after the other, as it plays."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.compiled import compiled
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.video import Frame, Reader, Source, motion_by, region_of, watched_cells

# Seconds between frames that are compared, at least: every second frame at 25 a second. Nearer
# ones move too little to tell slow motion from noise, and cost twice the time.
LAG = 0.06
# Frames further apart than this are not compared: something was lost between them.
LONGEST_LAG = 0.5
# Clips that may be lost and still belong to one sequence, as empty documents.
LONGEST_GAP = 10
# Times are rounded by their containers: a frame this much early still opens the next clip.
ROUNDING = 1e-4
# Frames that the pace of a live stream is known from, and those needed to know it.
REMEMBERED, NEEDED = 250, 10


@dataclass(frozen=True)
class Settings:
    """How documents are made of video."""

    clip: float = 1.0
    """Seconds of video to a document."""
    cell: int = 8
    """Side of a cell in pixels of the analysed frame."""
    motion: str = "cells"
    """How motion is seen: "cells", "dis" or "flow", as `habitus.video.motion` has them."""
    speeds: int = 2
    """2 to tell slow from fast motion, 1 for the paper's words, which do not."""
    mask: str | None = None
    region: str | None = None
    """What not to watch, and what only, as `watched_cells` takes them."""
    still_every: int = 16
    """Documents from one still picture to the next."""

    def kept(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """The same as plain values, which hold on other machines: masks become a region."""
        watched = watched_cells(vocabulary, mask=self.mask, region=self.region)
        return {
            "clip": self.clip, "cell": self.cell, "motion": self.motion, "speeds": self.speeds,
            "region": region_of(watched, vocabulary),
        }  # fmt: skip


class Document(NamedTuple):
    """The words of one clip, and what they rest on."""

    number: int
    """Which clip of the source, from 0 on."""
    time: float
    """Start of the clip in seconds."""
    words: NDArray[np.int64]
    """Word ids, ascending."""
    counts: NDArray[np.int64]
    """How often each of them was seen."""
    n_frames: int
    """Frames of the clip."""
    change: float
    """The largest mean change between two frames, in grey levels; 0 for a frozen picture."""
    thumbnail: Image
    """Mean brightness of each cell in its first frame, rows x columns."""
    still: Image | None
    """A picture in colours at the analysed size, of every so many documents."""


class Frames(Protocol):
    """What documents are made from: a Reader, or what stands for one."""

    fps: float
    width: int
    height: int

    def __iter__(self) -> Iterator[Frame]:
        """The frames in time order."""
        ...


class Seen(NamedTuple):
    """A frame with the motion that led to it."""

    frame: Frame
    number: int
    moves: NDArray[np.int8] | None
    """Per cell as in `Moved`, or None where the frame was not compared with one before it."""
    change: float


def vocabulary_of(reader: Frames, settings: Settings) -> Vocabulary:
    """The grid for a video, or an error if its clips are too short."""
    if not np.isfinite(settings.clip) or settings.clip * reader.fps < 2 - ROUNDING:
        raise InvalidInputError(
            f"a clip must hold at least two frames: {2 / reader.fps:.3g} s at {reader.fps:.4g} "
            f"frames a second, found {settings.clip:g} s"
        )
    return Vocabulary.of_frame(
        reader.width, reader.height, cell=settings.cell, speeds=settings.speeds
    )


def clip_number(time: float, clip: float) -> int:
    """The clip that a time falls into; never drifts, as it is not summed up."""
    return int((time + ROUNDING) // clip)


class Pace:
    """Which frames are compared: the first of every clip, and every one LAG after the last such."""

    def __init__(self, clip: float) -> None:
        self.clip, self.number, self.last = clip, -1, -np.inf

    def __call__(self, time: float) -> bool:
        """Whether the frame of this time is; for all frames, in the order of time."""
        number = clip_number(time, self.clip)
        if number == self.number and time - self.last < LAG:
            return False
        self.number, self.last = number, time
        return True


def see(reader: Frames, settings: Settings, *, since: int = 0) -> Iterator[Seen]:
    """Every frame from a clip on, with the motion of those that are compared.

    The first frame of a clip is always compared with the last such of the clip before: what a
    document holds does not depend on where reading started.
    """
    vocabulary = vocabulary_of(reader, settings)
    watched = watched_cells(vocabulary, mask=settings.mask, region=settings.region)
    motion = motion_by(settings.motion, vocabulary, watched)
    before: Any = None
    last, paced, clip = -np.inf, Pace(settings.clip), settings.clip
    for frame in reader:
        time, _, _, intact, decoded = frame
        number = clip_number(time, clip)
        if number < since:
            continue
        moves, change = None, 0.0
        wanted = decoded is not None and paced(time)
        if not intact:
            before = None
        elif wanted:
            after = motion.prepare(frame)
            if before is not None and time - last <= LONGEST_LAG:
                moves, change = motion.between(before, after, time - last)
            before, last = after, time
        yield Seen(frame, number, moves, change)


def documents(
    source: Source | Frames,
    settings: Settings | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    prompt: bool = False,
) -> Iterator[Document]:
    """The documents of a source, from clip `start` to before `stop`, as they come.

    Memory does not grow with the length of the video. The last document is left out if the video
    ends before half of its clip. A few clips without any frame are empty documents, which follow
    the one before them even where that is the last before `stop`. If `prompt`, a document comes
    with the last frame of its clip and not with the next one, where frames come at a steady pace;
    a frame that is nearer to the one before it than any of late may then be left out.
    """
    settings = settings or Settings()
    if isinstance(source, Source):
        with reader_from(start, source, settings) as reader:
            yield from documents(reader, settings, start=start, stop=stop, prompt=prompt)
        return
    clip: _Clip | None = None
    vocabulary, steps = vocabulary_of(source, settings), _Steps()
    for seen in see(source, settings, since=first_needed(start, settings)):
        if clip is not None and seen.number != clip.number:
            yield from clip.finished(start, seen.number)
            clip = None
        if stop is not None and seen.number >= stop:
            return
        clip = clip or _Clip(seen.number, vocabulary, settings)
        clip.add(seen)
        if prompt and clip_number(steps.next(seen.frame.time), settings.clip) > clip.number:
            yield from clip.finished(start, clip.number + 1)
    if clip is not None:
        lasted = clip.last + 1 / source.fps - clip.number * settings.clip
        if lasted + ROUNDING >= settings.clip / 2:
            yield from clip.finished(start, clip.number + 1)


def first_needed(start: int, settings: Settings) -> int:
    """The clip to read from, so that document `start` is the same as when all are read."""
    return min(start - 1, clip_number(start * settings.clip - LONGEST_LAG, settings.clip))


class _Steps:
    """From frame to frame, of late."""

    def __init__(self) -> None:
        self.last, self.lengths = -np.inf, deque[float](maxlen=REMEMBERED)

    def next(self, time: float) -> float:
        """The earliest time for a frame to follow this one, if none comes sooner than before."""
        self.lengths.append(time - self.last)
        self.last = time
        return time + min(self.lengths) if len(self.lengths) > NEEDED else time


def reader_from(start: int, source: Source, settings: Settings) -> Reader:
    """A reader of no more than the documents from `start` on need."""
    since = max(0, first_needed(start, settings)) * settings.clip
    return Reader(source, since=since, pace=partial(Pace, settings.clip))


class _Clip:
    """A document in the making."""

    def __init__(self, number: int, vocabulary: Vocabulary, settings: Settings) -> None:
        self.number, self.vocabulary, self.settings = number, vocabulary, settings
        self.moves: list[NDArray[np.int8]] = []
        self.n_frames, self.change, self.last, self.given = 0, 0.0, 0.0, False
        self.luma: Image | None = None
        self.still: Image | None = None

    def add(self, seen: Seen) -> None:
        """Take in a frame."""
        frame, _, moves, change = seen
        self.n_frames += 1
        self.last = frame.time
        if moves is not None:
            self.change = max(self.change, change)
            self.moves.append(moves)
        if self.luma is None and frame.decoded is not None:
            self._look_at(frame)

    def _look_at(self, frame: Frame) -> None:
        """Keep small pictures of the first frame."""
        v = self.vocabulary
        self.luma = small_copy(frame.luma(), v.rows, v.columns, v.cell * v.scale)
        if self.number % self.settings.still_every == 0:
            self.still = frame.colours(v.width // v.scale, v.height // v.scale)

    def finished(self, start: int, following: int) -> Iterator[Document]:
        """The document unless it was given, and empty ones for a few clips lost after it."""
        if self.number < start or self.luma is None:
            return
        counts = np.zeros(self.vocabulary.n_words, dtype=np.int64)
        if self.moves:
            add_words(np.stack(self.moves), self.vocabulary.speeds, counts)
        words = np.flatnonzero(counts)
        clip = self.settings.clip
        if not self.given:
            self.given = True
            yield Document(
                self.number, self.number * clip, words, counts[words],
                self.n_frames, self.change, self.luma, self.still,
            )  # fmt: skip
        if following - self.number <= LONGEST_GAP:
            none = np.empty(0, dtype=np.int64)
            for number in range(self.number + 1, following):
                yield Document(number, number * clip, none, none, 0, 0.0, self.luma, None)


@compiled
def add_words(moves: NDArray[np.int8], speeds: int, counts: NDArray[np.int64]) -> None:
    """Count the word of every cell that moved; pairs of frames x rows x columns of cells."""
    flat = moves.reshape(len(moves), -1)
    for pair in range(len(flat)):
        for cell in range(flat.shape[1]):
            move = flat[pair, cell]
            if move >= 0:
                direction, fast = move % 4, move // 4
                counts[(4 * cell + direction) * speeds + fast * (speeds - 1)] += 1


@compiled
def small_copy(luma: Image, rows: int, columns: int, side: int) -> Image:
    """The mean brightness of each cell, from every fourth pixel of it."""
    small = np.empty((rows, columns), dtype=np.uint8)
    step = max(side // 4, 1)
    for r in range(rows):
        for c in range(columns):
            total, n = np.int64(0), 0
            for y in range(r * side, (r + 1) * side, step):
                for x in range(c * side, (c + 1) * side, step):
                    total += np.int64(luma[y, x])
                    n += 1
            small[r, c] = total // n
    return small
