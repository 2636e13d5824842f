"""Where and when made anomalies are injected.

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

from habitus.documents import Corpus
from habitus.evaluation.tuning.injection import moved, reversed_way, straight_path
from habitus.evaluation.tuning.tracks import Track, find_tracks, geometry_of, on_the_grid
from habitus.model import MarkovClusteringTopicModel
from habitus.model.parameters import Array
from habitus.normality.calibration import Fold
from habitus.words import Vocabulary

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


def stretch_of(fold: Fold) -> Stretch:
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
