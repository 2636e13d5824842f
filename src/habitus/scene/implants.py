"""Implants: synthetic anomalies in the votes of held-out footage, to see what each cue would find.

Things that move alike, a few cells wide, are turned, sped up or moved elsewhere; or everything in
the frame is sped up. Nothing is known of the anomalies to come: the four kinds are equally many.
"""

import numpy as np

from habitus.arrays import Array, Indices
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.votes import DocumentVotes, Votes

KINDS = ("turned", "faster", "elsewhere", "all faster")
N_IMPLANTS = 800
FEWEST_VOTES = 6
"""Votes of a document from which on it takes an implant."""
RADII = (1, 3)
"""Least and largest distance, in cells, of a group's cells from its middle."""
FASTER, ALL_FASTER = (2, 5), (2, 4)
"""Classes of speed that a group, and everything, is sped up by; a class is a factor of 1.25."""


def draw_sources(n_votes: Indices, rng: np.random.Generator) -> Indices | None:
    """Choose the documents to change, given the votes that each has; None where none is fit."""
    able = np.flatnonzero(n_votes >= FEWEST_VOTES)
    return rng.choice(able, N_IMPLANTS) if len(able) else None


def draw_hours(documents: Array, n: int, rng: np.random.Generator) -> Indices:
    """Choose hours for `n` documents, as if they were of these: any that footage is known of."""
    return np.asarray(rng.choice(np.flatnonzero(documents), n))


def draw_places(
    documents: Indices, moving: Array, v: Vocabulary, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Choose documents for things that stand, and the cells that these stand around.

    Things stand where something moves, and not at the border of the frame.
    """
    inside = np.zeros((v.rows, v.columns), dtype=np.bool_)
    inside[1:-1, 1:-1] = True
    busy = inside.ravel() & (moving > 0)
    places = np.flatnonzero(busy if busy.any() else inside)
    return rng.choice(documents, N_IMPLANTS), rng.choice(places, N_IMPLANTS)


def changed_votes(
    votes: DocumentVotes, vocabulary: Vocabulary, rng: np.random.Generator
) -> DocumentVotes:
    """Return documents with one change each, of one kind after the other."""
    made = [
        _changed(votes.of(i), KINDS[i % len(KINDS)], vocabulary, rng)
        for i in range(votes.n_documents)
    ]
    return DocumentVotes.of_documents(made)


def _changed(votes: Votes, kind: str, v: Vocabulary, rng: np.random.Generator) -> Votes:
    """Return the votes of a document with one change."""
    cells, directions, speeds = (part.copy() for part in votes)
    fastest = v.speeds - 1
    if kind == "all faster":
        steps = rng.integers(ALL_FASTER[0], ALL_FASTER[1] + 1)
        return Votes(cells, directions, np.minimum(speeds + steps, fastest))
    group = _group(votes, v, rng)
    if kind == "turned":
        turn = rng.integers(max(v.directions // 6, 1), v.directions // 2 + 1)
        directions[group] = (directions[group] + rng.choice([-1, 1]) * turn) % v.directions
    elif kind == "faster":
        steps = rng.integers(FASTER[0], FASTER[1] + 1)
        speeds[group] = np.minimum(speeds[group] + steps, fastest)
    else:
        rows, columns = cells[group] // v.columns, cells[group] % v.columns
        down = rng.integers(-rows.min(), v.rows - rows.max())
        right = rng.integers(-columns.min(), v.columns - columns.max())
        there = (rows + down) * v.columns + columns + right
        kept = ~group & ~np.isin(cells, there)
        order = np.argsort(np.concatenate([cells[kept], there]), kind="stable")
        cells = np.concatenate([cells[kept], there])[order]
        directions = np.concatenate([directions[kept], directions[group]])[order]
        speeds = np.concatenate([speeds[kept], speeds[group]])[order]
    return Votes(cells, directions, speeds)


def _group(votes: Votes, v: Vocabulary, rng: np.random.Generator) -> Indices:
    """Return which votes are near one of them and alike in direction."""
    rows, columns = votes.cells // v.columns, votes.cells % v.columns
    middle, radius = rng.integers(len(rows)), rng.integers(RADII[0], RADII[1] + 1)
    turn = abs(votes.directions - votes.directions[middle])
    alike = np.minimum(turn, v.directions - turn) <= v.directions // 12
    distance = np.maximum(abs(rows - rows[middle]), abs(columns - columns[middle]))
    return np.asarray(alike & (distance <= radius))
