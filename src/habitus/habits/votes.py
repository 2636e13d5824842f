"""Votes: one per moving cell and document, its main direction and its median speed.

A cell is compared many times within a document. However many frames show it moving, it has one
vote: a slow lorry does not outvote a hundred cars. Single wrong vectors do not count either: a cell
votes only where it moved at least twice, for the direction that most of its words have and for the
median of their speeds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Indices
from habitus.compiled import compiled
from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.errors import InvalidInputError

LEAST_WORDS = 2
"""Words of a cell in one document from which on it votes."""
FEWEST_FRAMES = 6
"""Frames per document under which one word is enough."""
BLOCK = 4096
"""Documents whose votes are found at a time: that bounds the memory beside the corpus."""


class Votes(NamedTuple):
    """The votes of one document, in the order of cells."""

    cells: Indices
    """Numbers of the cells that moved, row by row."""
    directions: Indices
    speeds: Indices

    def codes(self, vocabulary: Vocabulary) -> Indices:
        """Return the word that each vote is for."""
        moves = self.directions * vocabulary.speeds + self.speeds
        return np.asarray(self.cells * vocabulary.per_cell + moves)

    @classmethod
    def of_codes(cls, codes: NDArray[Any], vocabulary: Vocabulary) -> "Votes":
        """Return the votes for these words; the inverse of `codes`."""
        ids = np.asarray(codes, dtype=np.int64)
        moves = vocabulary.moves(ids)
        return cls(vocabulary.cells(ids), moves // vocabulary.speeds, moves % vocabulary.speeds)


class DocumentVotes(NamedTuple):
    """The votes of many documents."""

    indptr: Indices
    """Document t has the votes from `indptr[t]` to before `indptr[t + 1]`."""
    cells: Indices
    directions: Indices
    speeds: Indices

    def of(self, t: int) -> Votes:
        """Return the votes of one document."""
        votes = slice(self.indptr[t], self.indptr[t + 1])
        return Votes(self.cells[votes], self.directions[votes], self.speeds[votes])

    def take(self, documents: NDArray[Any]) -> "DocumentVotes":
        """Return the votes of some of the documents."""
        lengths = np.diff(self.indptr)[documents]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(self.indptr[:-1][documents] - indptr[:-1], lengths)
        chosen = starts + np.arange(indptr[-1])
        return DocumentVotes(
            indptr, self.cells[chosen], self.directions[chosen], self.speeds[chosen]
        )

    @classmethod
    def of_documents(cls, documents: Sequence[Votes]) -> "DocumentVotes":
        """Return the votes of at least one document, one after the other."""
        indptr = np.concatenate([[0], np.cumsum([len(votes.cells) for votes in documents])])
        return cls(indptr, *(np.concatenate(votes) for votes in zip(*documents, strict=True)))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1


def least_words(n_frames: NDArray[Any] | None) -> int:
    """Return the words of a cell from which on it votes, by the frames of each document."""
    usual = np.inf if n_frames is None else np.median(n_frames)
    return LEAST_WORDS if usual >= FEWEST_FRAMES else 1


def known_vocabulary(corpus: Corpus | ShardedCorpus) -> Vocabulary:
    """Return the vocabulary of a corpus, or raise an error if it has none."""
    if corpus.vocabulary is None:
        raise InvalidInputError(
            "habits need a corpus with a vocabulary, which tells where a word is"
        )
    return corpus.vocabulary


def votes_of(
    words: NDArray[Any], counts: NDArray[Any], vocabulary: Vocabulary, least: int = LEAST_WORDS
) -> Votes:
    """Return the votes of one document, given its distinct words, ascending, and their counts.

    `least` are the words of a cell from which on it votes.

    Examples
    --------
    >>> vocabulary = Vocabulary(1, 2, directions=12, speeds=16)
    >>> words = vocabulary.words(0, 1, [3, 4, 4], [2, 2, 7])
    >>> [part.tolist() for part in votes_of(words, [1, 2, 1], vocabulary)]
    [[1], [4], [2]]
    """
    indptr = np.array([0, len(words)])
    given = np.asarray(words, dtype=np.int64), np.asarray(counts, dtype=np.float64)
    found = _votes(indptr, *given, vocabulary.directions, vocabulary.speeds, least)
    return Votes(*found[1:])


def votes_of_corpus(corpus: Corpus, least: int | None = None) -> DocumentVotes:
    """Return the votes of every document; none where the camera was not usable.

    `least` are the words of a cell from which on it votes; by the number of frames where None.
    """
    v = known_vocabulary(corpus)
    least = least_words(corpus.n_frames) if least is None else least
    parts = [
        _votes_of_block(corpus, start, v, least) for start in range(0, max(len(corpus), 1), BLOCK)
    ]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    cells, directions, speeds = (
        np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]
    )
    return DocumentVotes(np.concatenate([[0], np.cumsum(lengths)]), cells, directions, speeds)


def _votes_of_block(corpus: Corpus, start: int, v: Vocabulary, least: int) -> DocumentVotes:
    """Return the votes of at most `BLOCK` documents from `start` on."""
    block, counts = slice(start, start + BLOCK), corpus.entries
    indptr = counts.indptr[start : start + BLOCK + 1].astype(np.int64)
    entries = slice(indptr[0], indptr[-1])
    unusable = np.repeat(corpus.conditions[block] != Condition.USABLE, np.diff(indptr))
    data = np.where(unusable, 0.0, counts.data[entries])
    words = counts.indices[entries].astype(np.int64)
    return DocumentVotes(*_votes(indptr - indptr[0], words, data, v.directions, v.speeds, least))


@compiled
def _votes(
    indptr: Indices, words: Indices, counts: Array, n_directions: int, n_speeds: int, least: int
) -> tuple[Indices, Indices, Indices, Indices]:
    """Return `DocumentVotes` as a tuple.

    With `tokens` the words of a cell (directions x speeds) and `d = tokens.sum(axis=1)`: the
    direction is `(2 * d + np.roll(d, 1) + np.roll(d, -1)).argmax()`, or of four directions
    `d.argmax()`; the speed is the lower median of the tokens of that direction and, of
    twelve, of the two beside it.
    """
    n = len(indptr) - 1
    starts = np.zeros(n + 1, dtype=np.int64)
    cells = np.empty(len(words), dtype=np.int64)
    directions, speeds = np.empty_like(cells), np.empty_like(cells)
    per_cell, reach = n_directions * n_speeds, 1 if n_directions > 4 else 0
    # Looked up: a division for each word would take most of the time.
    direction_of = np.empty(per_cell, dtype=np.int64)
    speed_of = np.empty_like(direction_of)
    for d in range(n_directions):
        for s in range(n_speeds):
            direction_of[d * n_speeds + s], speed_of[d * n_speeds + s] = d, s
    # With the last direction before the first, and the first after the last.
    by_direction, by_speed = np.zeros(n_directions + 2), np.zeros(n_speeds)
    found = 0
    for t in range(n):
        i, end = indptr[t], indptr[t + 1]
        while i < end:
            cell, first, total = words[i] // per_cell, i, 0.0
            start = cell * per_cell
            by_direction[:] = 0.0
            while i < end and 0 <= words[i] - start < per_cell:
                by_direction[direction_of[words[i] - start] + 1] += counts[i]
                total += counts[i]
                i += 1
            if total < least:
                continue
            by_direction[0], by_direction[-1] = by_direction[-2], by_direction[1]
            best, direction = -1.0, 0
            for d in range(n_directions):
                value = 2 * by_direction[d + 1] + reach * (by_direction[d] + by_direction[d + 2])
                if value > best:
                    best, direction = value, d
            by_speed[:] = 0.0
            alike = 0.0
            for k in range(first, i):
                turn = abs(direction_of[words[k] - start] - direction)
                if min(turn, n_directions - turn) <= reach:
                    by_speed[speed_of[words[k] - start]] += counts[k]
                    alike += counts[k]
            speed, below = 0, by_speed[0]
            while below < alike / 2:
                speed += 1
                below += by_speed[speed]
            cells[found], directions[found], speeds[found] = cell, direction, speed
            found += 1
        starts[t + 1] = found
    return starts, cells[:found].copy(), directions[:found].copy(), speeds[:found].copy()
