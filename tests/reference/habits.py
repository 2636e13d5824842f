"""Habits as they are defined: plain Python and whole arrays, and a process that makes votes."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.contexts import context_gain
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import CUES, FRAME_VOTES, POWER, REACH, WINDOW_VOTES
from habitus.habits.hours import hour_rates
from habitus.habits.votes import DocumentVotes, Votes

KINDS = [(4, 1), (4, 2), (12, 16), (12, 1), (4, 16)]
"""Directions and speeds that vocabularies have."""


def random_corpus(vocabulary: Vocabulary, n_documents: int, seed: int, share=0.3) -> Corpus:
    """Documents of random words, alike within a cell; some documents are empty."""
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(n_documents):
        moving = rng.random(vocabulary.n_cells) < share * rng.integers(0, 3)
        cells = np.repeat(np.flatnonzero(moving), rng.integers(1, 8, moving.sum()))
        near = rng.integers(vocabulary.directions, size=vocabulary.n_cells)[cells]
        directions = (near + rng.integers(-2, 3, len(cells))) % vocabulary.directions
        speeds = rng.integers(vocabulary.speeds, size=len(cells))
        documents.append((cells * vocabulary.directions + directions) * vocabulary.speeds + speeds)
    return Corpus.from_word_ids(documents, vocabulary=vocabulary)


def defined_votes(words, counts, vocabulary: Vocabulary, least: int) -> list[tuple[int, int, int]]:
    """Cell, direction and speed of each vote of a document, word by word."""
    tokens = defaultdict(list)
    for word, count in zip(words, counts, strict=True):
        cell, move = divmod(int(word), vocabulary.per_cell)
        tokens[cell] += [divmod(move, vocabulary.speeds)] * int(count)
    n, beside = vocabulary.directions, vocabulary.directions == 12
    votes = []
    for cell, moves in sorted(tokens.items()):
        if len(moves) < least:
            continue
        ways = [direction for direction, _ in moves]
        neighbours = [
            ways.count((d - 1) % n) + ways.count((d + 1) % n) if beside else 0 for d in range(n)
        ]
        support = [2 * ways.count(d) + neighbours[d] for d in range(n)]
        direction = support.index(max(support))
        alike = {direction, (direction - 1) % n, (direction + 1) % n} if beside else {direction}
        speeds = sorted(speed for d, speed in moves if d in alike)
        votes.append((cell, direction, speeds[(len(speeds) - 1) // 2]))
    return votes


def random_votes(vocabulary: Vocabulary, n_votes: int, rng: np.random.Generator) -> Votes:
    """Votes of random cells for random moves."""
    cells = np.sort(rng.choice(vocabulary.n_cells, n_votes, replace=False))
    return Votes(
        cells.astype(np.int64),
        rng.integers(vocabulary.directions, size=n_votes),
        rng.integers(vocabulary.speeds, size=n_votes),
    )


def stacked(votes: list[Votes]) -> DocumentVotes:
    """The votes of several documents as one value."""
    indptr = np.cumsum([0, *(len(each.cells) for each in votes)])
    parts = zip(*votes, strict=True) if votes else ([np.empty(0, dtype=np.int64)],) * 3
    return DocumentVotes(indptr, *(np.concatenate(part) for part in parts))


def cue_surprisals(votes: Votes, habits):
    """Surprisal of each vote by each cue: votes x cues."""
    coarse = votes.directions // (habits.direction.shape[1] // 4)
    single = (
        habits.place[votes.cells],
        habits.direction[votes.cells, votes.directions],
        habits.speed[votes.cells, coarse, votes.speeds],
    )
    return np.stack([*single, sum(single)], axis=1).reshape(-1, len(CUES))


def defined_statistics(votes: Votes, habits, levels, vocabulary: Vocabulary):
    """Statistics of a document, the heaviest value of each window and the excesses."""
    excesses = np.maximum(cue_surprisals(votes, habits) - levels, 0)
    n_rows, n_columns = vocabulary.rows, vocabulary.columns
    rows, columns = np.divmod(votes.cells, n_columns)
    statistics, by_window = [], []
    for cue in range(len(CUES)):
        windows = np.zeros((n_rows, n_columns))
        for y in range(n_rows):
            for x in range(n_columns):
                inside = (abs(rows - y) <= REACH) & (abs(columns - x) <= REACH)
                gathered = excesses[inside, cue].sum()
                windows[y, x] = gathered / (inside.sum() + WINDOW_VOTES) ** POWER
        everything = excesses[:, cue].sum() / (len(rows) + FRAME_VOTES) ** POWER
        statistics += [windows.max(), everything]
        by_window.append(windows.ravel())
    return np.array(statistics), np.array(by_window), excesses


def exact_probabilities(levels, concentrations):
    """Predictive probabilities of nested Dirichlet levels, as fractions.

    The levels are counts of classes, from the frame to the cell, each a list of whole numbers or
    of floating-point numbers, which are taken as the fractions that they are.
    """
    n = len(levels[0])
    probability = [Fraction(1, n)] * n
    for counts, concentration in zip(levels, concentrations, strict=True):
        c, whole = Fraction(concentration), [Fraction(float(count)) for count in counts]
        probability = [
            (own + c * wider) / (sum(whole) + c)
            for own, wider in zip(whole, probability, strict=True)
        ]
    return probability


class VoteProcess:
    """Normal footage of a known kind: each cell moves by chance, in its own way, document by
    document independently."""

    def __init__(self, vocabulary: Vocabulary, seed: int, share: float = 0.15) -> None:
        rng, v = np.random.default_rng(seed), vocabulary
        self.vocabulary = v
        self.place = share * rng.beta(2, 4, v.n_cells) * 3
        self.direction = rng.dirichlet(np.full(v.directions, 0.3), v.n_cells)
        self.speed = rng.dirichlet(np.full(v.speeds, 0.5), v.n_cells)

    def corpus(self, n_documents: int, rng: np.random.Generator) -> Corpus:
        """Return documents in which every vote is two tokens of one word."""
        v, documents = self.vocabulary, []
        for _ in range(n_documents):
            cells = np.flatnonzero(rng.random(v.n_cells) < self.place)
            directions = _drawn(self.direction[cells], rng)
            speeds = _drawn(self.speed[cells], rng)
            words = (cells * v.directions + directions) * v.speeds + speeds
            documents.append(np.repeat(words, 2))
        return Corpus.from_word_ids(documents, vocabulary=v)


def _drawn(probabilities, rng):
    """Return one class for each row of probabilities."""
    ends = np.cumsum(probabilities, axis=1)
    return (rng.random((len(ends), 1)) * ends[:, -1:] > ends).sum(axis=1)


def hour_gain(
    counts: HabitCounts,
    further: HabitCounts,
    place: Array,
    concentrations: Sequence[float],
    vocabulary: Vocabulary,
) -> float:
    """Return the nats per moving cell by which the hour predicts further footage better."""
    rates = hour_rates(counts, place, concentrations, vocabulary)
    expected = further.hour_documents[:, None] * np.exp(-place)
    return context_gain(rates, further.hours.T, expected) / max(float(further.hours.sum()), 1.0)
