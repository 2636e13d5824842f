"""Anomalies made from the footage's own things.

A thing is an array of words: documents x rows x columns x moves, a move being a direction and,
where that is told apart, a speed, slow and fast side by side. Functions here change where,
when and which way it moves; none of them changes how many words it has, but `weighed`.

Things that move through the footage, found in its documents alone.

A thing leaves, in each document, a connected patch of words of one direction; in the next document
the patch goes on ahead of where it was. Patches that follow each other like that are a track. Two
things side by side may be taken for one, and a thing that turns is followed up to the turn.

Where and when made anomalies are injected.

Five kinds, each made from tracks of the footage itself, and injected into a stretch that the model
at hand has not learnt from:

wrong way      a thing's path the other way, where that direction is unusual
out of place   a thing moved to where its direction is unusual, near what moves
foreign path   straight across the scene where nothing goes, of a thing's size and speed
out of turn    a thing on its own path at a time when another behaviour rules
out of order   some seconds of the whole scene replaced by those of another behaviour
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.calibration import CalibratedFold
from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.model import MarkovClusteringTopicModel

OPPOSITE = [Direction.DOWN, Direction.RIGHT, Direction.UP, Direction.LEFT]
"""Of each direction, in their order."""


def reversed_way(thing: Array) -> Array:
    """The same path the other way: last document first, every direction turned round."""
    by_direction = thing[::-1].reshape(*thing.shape[:3], len(Direction), -1)
    return np.asarray(by_direction[..., OPPOSITE, :].reshape(thing.shape))


def moved(thing: Array, rows: int, columns: int) -> Array:
    """The same thing so many cells down and to the right; what leaves the frame is lost."""
    out = np.zeros_like(thing)
    (to_rows, from_rows), (to_columns, from_columns) = (
        (slice(max(by, 0), max(n + min(by, 0), 0)), slice(max(-by, 0), max(n - max(by, 0), 0)))
        for by, n in zip((rows, columns), thing.shape[1:3], strict=True)
    )
    out[:, to_rows, to_columns] = thing[:, from_rows, from_columns]
    return out


def weighed(thing: Array, strength: float, rng: np.random.Generator) -> Array:
    """The same thing with so many times its words, rounded to whole ones by chance."""
    return np.asarray(np.floor(thing * strength + rng.random(thing.shape)))


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
    """A thing that goes straight from one place to another.

    Places are rows and columns; `speed` is cells a document, `width` cells across, `n_words` those
    of a document, spread evenly over the cells swept; `speeds` are the shares of slow and fast
    words; `shape` is rows and columns of the frame. It takes as many whole documents as the way
    needs.
    """
    way = np.asarray(end, dtype=np.float64) - start
    length = float(np.hypot(*way))
    n = max(round(length / speed), 1)
    marks = start + np.linspace(0, 1, n + 1)[:, None] * way
    cells = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    thing = np.zeros((n, *shape, len(Direction), len(speeds)))
    for k in range(n):
        swept = _distance(cells, marks[k], marks[k + 1]) <= max(width, 1.0) / 2
        thing[k, :, :, heading(way)] = n_words * swept[..., None] / max(swept.sum(), 1) * speeds
    return thing.reshape(n, *shape, -1)


def heading(way: Array) -> Direction:
    """The direction nearest to a way of rows and columns."""
    down, right = float(way[0]), float(way[1])
    if abs(down) >= abs(right):
        return Direction.DOWN if down > 0 else Direction.UP
    return Direction.RIGHT if right > 0 else Direction.LEFT


def _distance(cells: NDArray[np.int64], start: Array, end: Array) -> Array:
    """Of each cell from the line between two places."""
    way = end - start
    along = np.clip((cells - start) @ way / (way @ way), 0, 1)
    return np.asarray(np.hypot(*np.moveaxis(cells - (start + along[..., None] * way), -1, 0)))


AHEAD = np.array([(-1, 0), (0, -1), (1, 0), (0, 1)])
"""Rows and columns that a step in each direction goes."""
SMALLEST = 2
"""Cells of a patch: a person far away has no more, a single one is mostly noise."""
SHORTEST = 3
"""Documents of a track."""
LEAST_STEP, GAP, LIKENESS = 0.5, 2, 3.0
"""Cells that a patch must move ahead; cells between it and the next; ratio of their words."""


class Patch(NamedTuple):
    """A connected group of words of one direction in one document."""

    cells: NDArray[np.int64]
    """Row and column of each."""
    by_speed: Array
    """How often each moved at each speed: cells x speeds."""

    @property
    def counts(self) -> Array:
        """How often each cell moved."""
        return np.asarray(self.by_speed.sum(axis=1))

    @property
    def centre(self) -> Array:
        """Row and column of its middle, by its words."""
        return np.asarray(self.counts @ self.cells / self.counts.sum())


class Track(NamedTuple):
    """A thing on its way, a patch a document."""

    first: int
    """The document where it begins."""
    direction: Direction
    patches: list[Patch]

    @property
    def n_words(self) -> float:
        """Words that it has in a document, in the mean."""
        return float(np.mean([patch.counts.sum() for patch in self.patches]))

    @property
    def speed(self) -> float:
        """Cells that its middle goes in a document, in the mean."""
        way = self.patches[-1].centre - self.patches[0].centre
        return float(np.hypot(*way) / (len(self.patches) - 1))

    @property
    def width(self) -> float:
        """Cells across its way, in the mean over its documents."""
        across = 1 if self.direction in (Direction.UP, Direction.DOWN) else 0
        return float(np.mean([np.ptp(patch.cells[:, across]) + 1 for patch in self.patches]))

    def thing(self, vocabulary: Vocabulary) -> Array:
        """Its words: documents x rows x columns x moves."""
        words = np.zeros((len(self.patches), *vocabulary.shape))
        for k, patch in enumerate(self.patches):
            words[k, patch.cells[:, 0], patch.cells[:, 1], self.direction] = patch.by_speed
        return words.reshape(*words.shape[:3], -1)

    @property
    def speeds(self) -> Array:
        """Shares of its words that are slow and fast; one share where that is not told."""
        total = np.sum([patch.by_speed.sum(axis=0) for patch in self.patches], axis=0)
        return np.asarray(total / total.sum())


def on_the_grid(corpus: Corpus) -> Array:
    """All counts: documents x rows x columns x moves, a direction's speeds side by side."""
    v = geometry_of(corpus)
    counts: Array = corpus.counts.toarray()
    return counts.reshape(len(corpus), v.rows, v.columns, v.per_cell)


def geometry_of(corpus: Corpus) -> Vocabulary:
    """Where words lie, or an error that says that nobody knows."""
    if corpus.vocabulary is None:
        raise InvalidInputError(
            "this corpus does not say where its words lie: make it by `habitus extract`, or give "
            "it a vocabulary"
        )
    return corpus.vocabulary


def find_tracks(corpus: Corpus) -> list[Track]:
    """All tracks of at least three documents, by direction, then in the order they begin."""
    patches: list[list[list[Patch]]] = [[] for _ in Direction]
    for t, fine in enumerate(corpus.conditions == 0):
        counts = on_the_grid(corpus.take([t]))[0].reshape(geometry_of(corpus).shape)
        for direction in Direction:
            patches[direction].append(patches_of(counts[:, :, direction]) if fine else [])
    found = [_followed(patches[direction], corpus.first, direction) for direction in Direction]
    return [track for tracks in found for track in tracks]


def patches_of(counts: Array) -> list[Patch]:
    """Connected groups of cells (corners touch) with words.

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
    found = [track for track in done + running if len(track.patches) >= SHORTEST]
    return sorted(found, key=lambda track: track.first)


def _next(patch: Patch, others: list[Patch], direction: Direction) -> Patch | None:
    """The patch that goes on where this one ends: ahead, adjoining, of about as many words."""

    def fits(other: Patch) -> bool:
        ratio = other.counts.sum() / patch.counts.sum()
        ahead = (other.centre - patch.centre) @ AHEAD[direction]
        return bool(ahead >= LEAST_STEP and 1 / LIKENESS <= ratio <= LIKENESS) and _adjoin(
            patch, other
        )

    fitting = [other for other in others if fits(other)]
    return min(
        fitting, key=lambda other: float(np.hypot(*(other.centre - patch.centre))), default=None
    )


def _adjoin(one: Patch, other: Patch) -> bool:
    gaps = np.abs(one.cells[:, None] - other.cells[None]).max(axis=2)
    return bool(gaps.min() <= GAP)


SELDOM = 0.1
"""Where a thing is abnormal, its words are at most this often as usual as on its own path."""
NEAR = 3
"""Cells around what moves that something out of place may be in."""
ORDER = 5
"""Documents of a behaviour out of order."""
TRIES = 50


class Scene(NamedTuple):
    """What anomalies are made from."""

    tracks: list[Track]
    vocabulary: Vocabulary
    usual: Array
    """Words a document: rows x columns x moves."""
    near: NDArray[np.bool_]
    """Cells on or beside usual motion: rows x columns."""

    def thing(self, k: int) -> Array:
        """The words of a track."""
        return self.tracks[k].thing(self.vocabulary)

    @property
    def typical(self) -> float:
        """Words a document of a typical thing: half of the tracks have more."""
        return float(np.median([track.n_words for track in self.tracks]))


class Stretch(NamedTuple):
    """A stretch of documents that is held out."""

    counts: Array
    """documents x rows x columns x moves."""
    path: NDArray[np.int64]
    """The most probable behaviour of each document."""
    model: MarkovClusteringTopicModel


class Injection(NamedTuple):
    """An anomaly, made and placed."""

    stretch: int
    start: int
    """Its first document within the stretch."""
    words: Array
    """documents x rows x columns x moves."""
    replaces: bool = False
    """Whether it takes the place of all other words."""


Maker = Callable[[Scene, list[Stretch], np.random.Generator], Injection | None]


def scene_of(corpus: Corpus) -> Scene:
    """Tracks of the footage, and where its words usually are (a cell around them included)."""
    from scipy.ndimage import binary_dilation, uniform_filter

    v, tracks = geometry_of(corpus), find_tracks(corpus)
    counts = np.asarray(corpus.counts.mean(axis=0)).reshape(v.rows, v.columns, -1)
    usual = uniform_filter(counts, size=(3, 3, 1), mode="constant")
    cells = usual.sum(axis=2)
    busy = cells > SELDOM * np.median(cells[cells > 0]) if (cells > 0).any() else cells > 0
    near = binary_dilation(busy, iterations=NEAR)
    return Scene(tracks, v, usual, near)


def stretch_of(fold: CalibratedFold) -> Stretch:
    """A held-out stretch as injections need it."""
    return Stretch(on_the_grid(fold.held_out), fold.model.predict(fold.held_out), fold.model)


def usualness(thing: Array, usual: Array) -> float:
    """How often the words of a thing are usually seen, in the mean over its words."""
    return float((thing.sum(axis=0) * usual).sum() / thing.sum())


def wrong_way(scene: Scene, stretches: list[Stretch], rng: np.random.Generator) -> Injection | None:
    """A thing's path the other way."""
    for k in _order(len(scene.tracks), rng):
        thing = scene.thing(k)
        turned = reversed_way(thing)
        if usualness(turned, scene.usual) <= SELDOM * usualness(thing, scene.usual):
            return _placed(turned, stretches, rng)
    return None


def out_of_place(
    scene: Scene, stretches: list[Stretch], rng: np.random.Generator
) -> Injection | None:
    """A thing moved to where its direction is unusual, in the frame and near what moves."""
    for k in _order(len(scene.tracks), rng):
        thing = scene.thing(k)
        limit = SELDOM * usualness(thing, scene.usual)
        for rows, columns in _shifts(thing, rng):
            shifted = moved(thing, rows, columns)
            cells = shifted.sum(axis=(0, 3)) > 0
            if scene.near[cells].all() and usualness(shifted, scene.usual) <= limit:
                return _placed(shifted, stretches, rng)
    return None


def foreign_path(
    scene: Scene, stretches: list[Stretch], rng: np.random.Generator
) -> Injection | None:
    """Straight across the scene where nothing goes, as wide and fast as a thing."""
    places = np.argwhere(scene.near)
    for k in _order(len(scene.tracks), rng):
        track, limit = scene.tracks[k], SELDOM * usualness(scene.thing(k), scene.usual)
        for _ in range(TRIES):
            start, end = places[rng.choice(len(places), 2)].astype(np.float64)
            n = np.hypot(*(end - start)) / track.speed
            if not 2.5 <= n < 12:
                continue
            path = straight_path(
                start, end, speed=track.speed, width=track.width, n_words=track.n_words,
                speeds=track.speeds, shape=(scene.vocabulary.rows, scene.vocabulary.columns),
            )  # fmt: skip
            if usualness(path, scene.usual) <= limit:
                return _placed(path, stretches, rng)
    return None


def out_of_turn(
    scene: Scene, stretches: list[Stretch], rng: np.random.Generator
) -> Injection | None:
    """A thing on its own path while a behaviour rules that hardly has such words."""
    for k in _order(len(scene.tracks), rng):
        thing = scene.thing(k)
        words = thing.sum(axis=0).reshape(-1)
        for which in _order(len(stretches), rng):
            stretch = stretches[which]
            shares = words @ stretch.model.parameters_.word_given_behaviour
            wrong = shares[stretch.path] <= SELDOM * shares.max()
            starts = _starts(wrong, min(len(thing), len(wrong)))
            if len(starts):
                return Injection(int(which), int(rng.choice(starts)), thing[: len(wrong)])
    return None


def out_of_order(
    scene: Scene, stretches: list[Stretch], rng: np.random.Generator
) -> Injection | None:
    """Some documents of one behaviour in the midst of another that it hardly follows."""
    for which, source in _pairs(len(stretches), rng):
        stretch, other = stretches[which], stretches[source]
        path = stretch.model.predict(other.counts.reshape(len(other.counts), -1))
        for z in range(len(stretch.model.parameters_.pi)):
            here = _starts(stretch.path == z, ORDER + 1) + 1  # one of its own goes before
            turns = stretch.model.parameters_.xi[path, z]
            there = [t for t in _starts(path != z, ORDER) if turns[t] <= SELDOM]
            if len(here) and there:
                begin = int(rng.choice(there))
                words = other.counts[begin : begin + ORDER]
                return Injection(which, int(rng.choice(here)), words, replaces=True)
    return None


KINDS: dict[str, Maker] = {
    "wrong way": wrong_way,
    "out of place": out_of_place,
    "foreign path": foreign_path,
    "out of turn": out_of_turn,
    "out of order": out_of_order,
}
WHOLE = "out of order"
"""The kind that is of the whole scene: it has no strength."""


def injected(stretch: Stretch, injection: Injection, words: Array) -> Array:
    """The stretch with an anomaly in it; `words` are those of the injection, as they weigh."""
    counts = stretch.counts.copy()
    here = slice(injection.start, injection.start + len(words))
    counts[here] = words if injection.replaces else counts[here] + words
    return counts


def _placed(thing: Array, stretches: list[Stretch], rng: np.random.Generator) -> Injection:
    """At any time of any stretch; cut to its length where it is longer."""
    which = int(rng.integers(len(stretches)))
    n = len(stretches[which].counts)
    words = thing[:n]
    return Injection(which, int(rng.integers(n - len(words) + 1)), words)


def _order(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permutation(n)


def _pairs(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """All pairs of two different stretches, in any order."""
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    return [pairs[k] for k in rng.permutation(len(pairs))]


def _shifts(thing: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the shifts by whole cells that keep a thing in the frame."""
    rows, columns = np.nonzero(thing.sum(axis=(0, 3)))
    height, width = thing.shape[1:3]
    down = rng.integers(-rows.min(), height - rows.max(), TRIES)
    right = rng.integers(-columns.min(), width - columns.max(), TRIES)
    return np.stack([down, right], axis=-1)


def _starts(flags: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """Where n flags in a row begin."""
    if n > len(flags):
        return np.empty(0, dtype=np.int64)
    runs = np.lib.stride_tricks.sliding_window_view(flags, n)
    return np.flatnonzero(runs.all(axis=1))
