"""Things that move through the footage, found in its documents alone.

A thing leaves, in each document, a connected patch of words of one direction; in the next document
the patch goes on ahead of where it was. Patches that follow each other like that are a track. Two
things side by side may be taken for one, and a thing that turns is followed up to the turn.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model.parameters import Array
from habitus.words import Direction, Vocabulary

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
