"""Synthetic anomalies, made from objects of the footage and injected into held-out segments.

An object is an array of words: documents x rows x columns x moves, a move being a direction and,
where speeds are distinguished, a speed, slow and fast side by side. Objects are found in the
documents alone: in each document an object leaves a connected patch of words of one direction, and
in the next document the patch continues ahead of where it was. Patches that follow each other like
that are a track. Two objects side by side may be taken for one, and an object that turns is
followed up to the turn.

Five kinds of anomaly:

wrong way      the path of an object reversed, where that direction is rare
out of place   an object moved to where its direction is rare, near other motion
foreign path   straight across the scene where nothing moves, with an object's size and speed
out of turn    an object on its own path during a behaviour that hardly contains it
out of order   some documents of the whole scene replaced by those of another behaviour
"""

from collections.abc import Callable
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.model import TopicModel

OPPOSITE = [Direction.DOWN, Direction.RIGHT, Direction.UP, Direction.LEFT]
"""Opposite of each direction, in their order."""


def reverse_path(words: Array) -> Array:
    """Return an object moving backwards: last document first, every direction reversed."""
    by_direction = words[::-1].reshape(*words.shape[:3], len(Direction), -1)
    return np.asarray(by_direction[..., OPPOSITE, :].reshape(words.shape))


def shift_object(words: Array, rows: int, columns: int) -> Array:
    """Return an object shifted down and to the right, in cells; words beyond the frame are lost."""
    out = np.zeros_like(words)
    (to_rows, from_rows), (to_columns, from_columns) = (
        (slice(max(by, 0), max(n + min(by, 0), 0)), slice(max(-by, 0), max(n - max(by, 0), 0)))
        for by, n in zip((rows, columns), words.shape[1:3], strict=True)
    )
    out[:, to_rows, to_columns] = words[:, from_rows, from_columns]
    return out


def scale_words(words: Array, strength: float, rng: Generator) -> Array:
    """Return an object with `strength` times its words, randomly rounded to whole numbers."""
    return np.asarray(np.floor(words * strength + rng.random(words.shape)))


def straight_path(
    start: Array,
    end: Array,
    *,
    speed: float,
    width: float,
    n_words: float,
    speeds: Array,
    shape: tuple[int, int],
) -> Array:
    """Return an object that moves straight from one cell, row and column, to another.

    `speed` is in cells per document, and the path takes a whole number of documents; `width` is in
    cells; `n_words` per document are spread evenly over the cells that are swept; `speeds` are the
    shares of slow and fast words, `shape` the rows and columns of the frame.
    """
    way = np.asarray(end, dtype=np.float64) - start
    length = float(np.hypot(*way))
    n = max(round(length / speed), 1)
    marks = start + np.linspace(0, 1, n + 1)[:, None] * way
    cells = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    words = np.zeros((n, *shape, len(Direction), len(speeds)))
    for k in range(n):
        swept = _distance(cells, marks[k], marks[k + 1]) <= max(width, 1.0) / 2
        words[k, :, :, heading(way)] = n_words * swept[..., None] / max(swept.sum(), 1) * speeds
    return words.reshape(n, *shape, -1)


def heading(way: Array) -> Direction:
    """Return the direction nearest to a vector of rows and columns."""
    down, right = float(way[0]), float(way[1])
    if abs(down) >= abs(right):
        return Direction.DOWN if down > 0 else Direction.UP
    return Direction.RIGHT if right > 0 else Direction.LEFT


def _distance(cells: NDArray[np.int64], start: Array, end: Array) -> Array:
    """Return the distance of each cell from the line between two cells."""
    way = end - start
    along = np.clip((cells - start) @ way / (way @ way), 0, 1)
    return np.asarray(np.hypot(*np.moveaxis(cells - (start + along[..., None] * way), -1, 0)))


AHEAD = np.array([(-1, 0), (0, -1), (1, 0), (0, 1)])
"""Row and column of one step in each direction."""
SMALLEST = 2
"""Fewest cells of a patch: a distant person has no more, a single cell is mostly noise."""
SHORTEST = 3
"""Fewest documents of a track."""
LEAST_STEP, GAP, LIKENESS = 0.5, 2, 3.0
"""Least step ahead and largest gap between patches, in cells; largest ratio of their words."""


class Patch(NamedTuple):
    """A connected group of words of one direction in one document."""

    cells: NDArray[np.int64]
    """Row and column of each cell."""
    by_speed: Array
    """Number of words of each cell at each speed: cells x speeds."""

    @property
    def counts(self) -> Array:
        """Number of words of each cell."""
        return np.asarray(self.by_speed.sum(axis=1))

    @property
    def centre(self) -> Array:
        """Row and column of the centre of its words."""
        return np.asarray(self.counts @ self.cells / self.counts.sum())


class Track(NamedTuple):
    """An object followed through documents, one patch per document."""

    first: int
    """Document where it begins."""
    direction: Direction
    patches: list[Patch]

    @property
    def n_words(self) -> float:
        """Mean number of words per document."""
        return float(np.mean([patch.counts.sum() for patch in self.patches]))

    @property
    def speed(self) -> float:
        """Mean distance that its centre moves per document, in cells."""
        way = self.patches[-1].centre - self.patches[0].centre
        return float(np.hypot(*way) / (len(self.patches) - 1))

    @property
    def width(self) -> float:
        """Mean number of cells across its path."""
        across = 1 if self.direction in (Direction.UP, Direction.DOWN) else 0
        return float(np.mean([np.ptp(patch.cells[:, across]) + 1 for patch in self.patches]))

    def words(self, vocabulary: Vocabulary) -> Array:
        """Return its words: documents x rows x columns x moves."""
        words = np.zeros((len(self.patches), *vocabulary.shape))
        for k, patch in enumerate(self.patches):
            words[k, patch.cells[:, 0], patch.cells[:, 1], self.direction] = patch.by_speed
        return words.reshape(*words.shape[:3], -1)

    @property
    def speeds(self) -> Array:
        """Shares of its words that are slow and fast; one share without speeds."""
        total = np.sum([patch.by_speed.sum(axis=0) for patch in self.patches], axis=0)
        return np.asarray(total / total.sum())


def grid_counts(corpus: Corpus) -> Array:
    """Return all counts: documents x rows x columns x moves, speeds of a direction side by side."""
    v = vocabulary_of_corpus(corpus)
    counts: Array = corpus.counts.toarray()
    return counts.reshape(len(corpus), v.rows, v.columns, v.per_cell)


def vocabulary_of_corpus(corpus: Corpus) -> Vocabulary:
    """Return the vocabulary of a corpus; raise InvalidInputError without one."""
    if corpus.vocabulary is None:
        raise InvalidInputError(
            "this corpus has no vocabulary, so the cells of its words are not known: extract it "
            "from video, or give it a vocabulary"
        )
    return corpus.vocabulary


def find_tracks(corpus: Corpus) -> list[Track]:
    """Return all tracks of at least three documents, by direction, then by their start."""
    patches: list[list[list[Patch]]] = [[] for _ in Direction]
    for t, usable in enumerate(corpus.conditions == 0):
        counts = grid_counts(corpus.take([t]))[0].reshape(vocabulary_of_corpus(corpus).shape)
        for direction in Direction:
            patches[direction].append(find_patches(counts[:, :, direction]) if usable else [])
    groups = [_followed(patches[direction], corpus.first, direction) for direction in Direction]
    return [track for tracks in groups for track in tracks]


def find_patches(counts: Array) -> list[Patch]:
    """Return the connected groups of cells with words; cells that share a corner are connected.

    `counts` is rows x columns x speeds.
    """
    from scipy.ndimage import find_objects, label

    labels, _ = label(counts.sum(axis=2) > 0, structure=np.ones((3, 3)))
    patches = []
    for number, box in enumerate(find_objects(labels), start=1):
        rows, columns = np.nonzero(labels[box] == number)
        if len(rows) >= SMALLEST:
            cells = np.stack([rows + box[0].start, columns + box[1].start], axis=-1)
            patches.append(Patch(cells, counts[cells[:, 0], cells[:, 1]]))
    return patches


def _followed(
    patches: list[list[Patch]], first: NDArray[np.bool_], direction: Direction
) -> list[Track]:
    done, running = [], list[Track]()
    for t, here in enumerate(patches):
        ended, free = running, list(here)
        running = []
        for track in [] if first[t] else ended:
            following = _next(track.patches[-1], free, direction)
            if following is not None:
                free = [patch for patch in free if patch is not following]
                track.patches.append(following)
                running.append(track)
        done += [track for track in ended if not any(track is other for other in running)]
        running += [Track(t, direction, [patch]) for patch in free]
    tracks = [track for track in done + running if len(track.patches) >= SHORTEST]
    return sorted(tracks, key=lambda track: track.first)


def _next(patch: Patch, others: list[Patch], direction: Direction) -> Patch | None:
    """Return the patch that continues this one: ahead, near, with a similar number of words."""

    def fits(other: Patch) -> bool:
        ratio = other.counts.sum() / patch.counts.sum()
        ahead = (other.centre - patch.centre) @ AHEAD[direction]
        if ahead < LEAST_STEP or not 1 / LIKENESS <= ratio <= LIKENESS:
            return False
        return bool(np.abs(patch.cells[:, None] - other.cells[None]).max(axis=2).min() <= GAP)

    fitting = [other for other in others if fits(other)]
    return min(
        fitting, key=lambda other: float(np.hypot(*(other.centre - patch.centre))), default=None
    )


RARE = 0.1
"""Rate of an anomaly's words in the footage, relative to those of its object, at most."""
NEAR = 3
"""Distance in cells from other motion within which an anomaly may be placed."""
ORDER = 5
"""Documents that are replaced out of order."""
TRIES = 50


class Scene(NamedTuple):
    """Objects of the footage, and where its words usually are."""

    tracks: list[Track]
    vocabulary: Vocabulary
    usual: Array
    """Mean number of words per document, smoothed: rows x columns x moves."""
    near: NDArray[np.bool_]
    """Cells on or near usual motion: rows x columns."""

    def words(self, k: int) -> Array:
        """Return the words of a track."""
        return self.tracks[k].words(self.vocabulary)

    @property
    def typical(self) -> float:
        """Median number of words per document of a track."""
        return float(np.median([track.n_words for track in self.tracks]))


class HeldOutSegment(NamedTuple):
    """Consecutive documents, and a model that has not learnt from them."""

    counts: Array
    """Documents x rows x columns x moves."""
    path: NDArray[np.int64]
    """Most probable behaviour of each document."""
    model: TopicModel


class Injection(NamedTuple):
    """A synthetic anomaly at its place in a segment."""

    segment: int
    """Index of the segment."""
    start: int
    """Its first document within the segment."""
    words: Array
    """Documents x rows x columns x moves."""
    replaces: bool = False
    """Whether it replaces all other words."""


Segments = list[HeldOutSegment]
AnomalyMaker = Callable[[Scene, Segments, Generator], Injection | None]


def observe_scene(corpus: Corpus) -> Scene:
    """Find the tracks of the footage and where its words usually are, smoothed over one cell."""
    from scipy.ndimage import binary_dilation, uniform_filter

    v, tracks = vocabulary_of_corpus(corpus), find_tracks(corpus)
    counts = np.asarray(corpus.counts.mean(axis=0)).reshape(v.rows, v.columns, -1)
    usual = uniform_filter(counts, size=(3, 3, 1), mode="constant")
    cells = usual.sum(axis=2)
    busy = cells > RARE * np.median(cells[cells > 0]) if (cells > 0).any() else cells > 0
    near = binary_dilation(busy, iterations=NEAR)
    return Scene(tracks, v, usual, near)


def held_out_segment(model: TopicModel, corpus: Corpus) -> HeldOutSegment:
    """Return documents that a model has not learnt from, with their most probable behaviours."""
    return HeldOutSegment(grid_counts(corpus), model.predict(corpus), model)


def usual_rate(words: Array, usual: Array) -> float:
    """Return how often the words of an object usually occur, mean over its words."""
    return float((words.sum(axis=0) * usual).sum() / words.sum())


def wrong_way(scene: Scene, segments: Segments, rng: Generator) -> Injection | None:
    """Return an object moving backwards where that direction is rare; None if there is none."""
    for k in rng.permutation(len(scene.tracks)):
        words = scene.words(k)
        turned = reverse_path(words)
        if usual_rate(turned, scene.usual) <= RARE * usual_rate(words, scene.usual):
            return _placed(turned, segments, rng)
    return None


def out_of_place(scene: Scene, segments: Segments, rng: Generator) -> Injection | None:
    """Return an object shifted to where its direction is rare, near other motion."""
    for k in rng.permutation(len(scene.tracks)):
        words = scene.words(k)
        limit = RARE * usual_rate(words, scene.usual)
        for rows, columns in _shifts(words, rng):
            shifted = shift_object(words, rows, columns)
            cells = shifted.sum(axis=(0, 3)) > 0
            if scene.near[cells].all() and usual_rate(shifted, scene.usual) <= limit:
                return _placed(shifted, segments, rng)
    return None


def foreign_path(scene: Scene, segments: Segments, rng: Generator) -> Injection | None:
    """Return a straight path where nothing moves, with the size and speed of an object."""
    places = np.argwhere(scene.near)
    for k in rng.permutation(len(scene.tracks)):
        track, limit = scene.tracks[k], RARE * usual_rate(scene.words(k), scene.usual)
        for _ in range(TRIES):
            start, end = places[rng.choice(len(places), 2)].astype(np.float64)
            n = np.hypot(*(end - start)) / track.speed
            if not 2.5 <= n < 12:
                continue
            path = straight_path(
                start,
                end,
                speed=track.speed,
                width=track.width,
                n_words=track.n_words,
                speeds=track.speeds,
                shape=(scene.vocabulary.rows, scene.vocabulary.columns),
            )
            if usual_rate(path, scene.usual) <= limit:
                return _placed(path, segments, rng)
    return None


def out_of_turn(scene: Scene, segments: Segments, rng: Generator) -> Injection | None:
    """Return an object on its own path during a behaviour that hardly has its words."""
    for k in rng.permutation(len(scene.tracks)):
        words = scene.words(k)
        total = words.sum(axis=0).reshape(-1)
        for which in rng.permutation(len(segments)):
            segment = segments[which]
            shares = total @ segment.model.parameters_.word_given_behaviour
            wrong = shares[segment.path] <= RARE * shares.max()
            starts = _starts(wrong, min(len(words), len(wrong)))
            if len(starts):
                return Injection(int(which), int(rng.choice(starts)), words[: len(wrong)])
    return None


def out_of_order(scene: Scene, segments: Segments, rng: Generator) -> Injection | None:
    """Return documents of one behaviour within another that it hardly ever follows."""
    pairs = list(permutations(range(len(segments)), 2))
    for k in rng.permutation(len(pairs)):
        which, source = pairs[k]
        segment, other = segments[which], segments[source]
        path = segment.model.predict(other.counts.reshape(len(other.counts), -1))
        for z in range(len(segment.model.parameters_.pi)):
            here = _starts(segment.path == z, ORDER + 1) + 1  # after one of its own
            turns = segment.model.parameters_.xi[path, z]
            there = [t for t in _starts(path != z, ORDER) if turns[t] <= RARE]
            if len(here) and there:
                begin = int(rng.choice(there))
                words = other.counts[begin : begin + ORDER]
                return Injection(which, int(rng.choice(here)), words, replaces=True)
    return None


KINDS: dict[str, AnomalyMaker] = {
    "wrong way": wrong_way,
    "out of place": out_of_place,
    "foreign path": foreign_path,
    "out of turn": out_of_turn,
    "out of order": out_of_order,
}
WHOLE_SCENE = "out of order"
"""The kind that replaces the whole scene: it has no strength."""


def inject(segment: HeldOutSegment, injection: Injection, words: Array) -> Array:
    """Return the counts of a segment with an anomaly of these, perhaps scaled, words."""
    counts = segment.counts.copy()
    here = slice(injection.start, injection.start + len(words))
    counts[here] = words if injection.replaces else counts[here] + words
    return counts


def _placed(words: Array, segments: Segments, rng: Generator) -> Injection:
    """Return an injection at a random time of a random segment, cut to its length."""
    which = int(rng.integers(len(segments)))
    n = len(segments[which].counts)
    words = words[:n]
    return Injection(which, int(rng.integers(n - len(words) + 1)), words)


def _shifts(words: Array, rng: Generator) -> NDArray[np.int64]:
    """Return random shifts by whole cells that keep an object in the frame."""
    rows, columns = np.nonzero(words.sum(axis=(0, 3)))
    height, width = words.shape[1:3]
    down = rng.integers(-rows.min(), height - rows.max(), TRIES)
    right = rng.integers(-columns.min(), width - columns.max(), TRIES)
    return np.stack([down, right], axis=-1)


def _starts(flags: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """Return where `n` consecutive flags begin."""
    if n > len(flags):
        return np.empty(0, dtype=np.int64)
    runs = np.lib.stride_tricks.sliding_window_view(flags, n)
    return np.flatnonzero(runs.all(axis=1))
