"""Implants: equally many of each kind, each a change of one group of votes, within the frame."""

from typing import NamedTuple

import numpy as np
import pytest

from habitus.arrays import Indices
from habitus.corpus import Vocabulary
from habitus.habits.votes import DocumentVotes, votes_of_corpus
from habitus.scene.implants import (
    ALL_FASTER,
    FASTER,
    FEWEST_VOTES,
    KINDS,
    N_IMPLANTS,
    RADII,
    changed_votes,
    draw_sources,
)
from reference.habits import random_corpus, random_votes, stacked

FINE = Vocabulary(9, 11, directions=12, speeds=16)


class Implants(NamedTuple):
    """Votes of documents with an implant each, and the document that each was made from."""

    votes: DocumentVotes
    sources: Indices


def implant(votes, vocabulary, rng):
    """Return documents with implants; None where no document has enough motion."""
    sources = draw_sources(np.diff(votes.indptr), rng)
    if sources is None:
        return None
    return Implants(changed_votes(votes.take(sources), vocabulary, rng), sources)


@pytest.fixture(scope="module", params=["fine", "coarse", "paper", "one row"])
def made(request):
    """A vocabulary, votes and implants in them."""
    grids = {"fine": FINE, "coarse": FINE.coarse, "paper": FINE.paper, "one row": Vocabulary(1, 40)}
    vocabulary = grids[request.param]
    votes = votes_of_corpus(random_corpus(vocabulary, 60, seed=2))
    return vocabulary, votes, implant(votes, vocabulary, np.random.default_rng(0))


def pairs(made, kind):
    """Each source with what was made of it, of one kind."""
    _, votes, found = made
    for i in range(KINDS.index(kind), N_IMPLANTS, len(KINDS)):
        yield votes.of(found.sources[i]), found.votes.of(i)


def test_kinds_are_equally_many_and_sources_move_enough(made):
    _, votes, found = made
    assert found.votes.n_documents == len(found.sources) == N_IMPLANTS
    assert N_IMPLANTS % len(KINDS) == 0
    lengths = np.diff(votes.indptr)[found.sources]
    assert lengths.min() >= FEWEST_VOTES
    assert len(np.unique(found.sources)) > 10


def test_votes_are_within_the_frame_ascending_and_one_a_cell(made):
    vocabulary, _, found = made
    for t in range(N_IMPLANTS):
        cells, directions, speeds = found.votes.of(t)
        assert (np.diff(cells) > 0).all()
        assert cells[0] >= 0
        assert cells[-1] < vocabulary.n_cells
        assert ((directions >= 0) & (directions < vocabulary.directions)).all()
        assert ((speeds >= 0) & (speeds < vocabulary.speeds)).all()


def test_turned_is_one_group_turned_by_60_to_180_degrees(made):
    vocabulary, n, n_across = made[0], made[0].directions, 0
    for before, after in pairs(made, "turned"):
        assert np.array_equal(before.cells, after.cells)
        assert np.array_equal(before.speeds, after.speeds)
        changed = before.directions != after.directions
        turns = (after.directions - before.directions)[changed] % n
        assert len(np.unique(turns)) == 1
        assert min(turns[0], n - turns[0]) * 360 / n >= 60
        assert_group(before, changed, vocabulary)
        n_across += {0, n - 1} <= set(before.directions[changed])
    assert n_across > 0 or n == 4  # the last direction is beside the first


def test_faster_is_one_group_faster(made):
    vocabulary = made[0]
    steps = set()
    for before, after in pairs(made, "faster"):
        assert np.array_equal(before.cells, after.cells)
        assert np.array_equal(before.directions, after.directions)
        changed = before.speeds != after.speeds
        faster = (after.speeds - before.speeds)[changed]
        assert (faster > 0).all()
        below = after.speeds[changed] < vocabulary.speeds - 1
        steps |= set(faster[below].tolist())
        assert len(np.unique(faster[below])) <= 1
        if changed.any():
            assert_group(before, changed, vocabulary)
    if vocabulary.kind == "fine":
        assert steps == set(range(FASTER[0], FASTER[1] + 1))


def test_all_faster_is_every_vote(made):
    vocabulary, steps = made[0], set()
    for before, after in pairs(made, "all faster"):
        assert np.array_equal(before.cells, after.cells)
        assert np.array_equal(before.directions, after.directions)
        step = (after.speeds - before.speeds).max()
        expected = np.minimum(before.speeds + step, vocabulary.speeds - 1)
        assert np.array_equal(after.speeds, expected)
        steps.add(int(step))
    if vocabulary.kind == "fine":
        assert steps == set(range(ALL_FASTER[0], ALL_FASTER[1] + 1))


def test_elsewhere_is_one_group_moved_over_whatever_was_there(made):
    n_moved, shifts = 0, set()
    for before, after in pairs(made, "elsewhere"):
        own, found = ({vote[0]: vote[1:] for vote in zip(*v, strict=True)} for v in (before, after))
        new = [cell for cell in found if own.get(cell) != found[cell]]
        gone = [cell for cell in own if cell not in found]
        assert len(found) <= len(own)
        if not new:
            continue
        n_moved += 1
        moves_before, moves_new = ([v[c] for c in cells] for v, cells in ((own, own), (found, new)))
        assert all(move in moves_before for move in moves_new)
        assert len(new) <= (2 * RADII[1] + 1) ** 2
        shifts.add(int(new[0] - gone[0]) if gone else 0)
    assert n_moved > N_IMPLANTS / len(KINDS) / 2
    assert min(shifts) < 0 < max(shifts)


def assert_group(votes, changed, vocabulary):
    """Changed votes lie within reach of one of them and have nearly its direction."""
    rows, columns = np.divmod(votes.cells[changed], vocabulary.columns)
    assert np.ptp(rows) <= 2 * RADII[1]
    assert np.ptp(columns) <= 2 * RADII[1]
    n, directions = vocabulary.directions, votes.directions[changed]
    turns = abs(directions[:, None] - directions)
    turns = np.minimum(turns, n - turns)
    assert turns.max() <= 2 * (n // 12)


def test_the_same_seed_makes_the_same_implants():
    votes = votes_of_corpus(random_corpus(FINE, 60, seed=2))
    one, other, another = (implant(votes, FINE, np.random.default_rng(k)) for k in (3, 3, 4))
    assert np.array_equal(one.sources, other.sources)
    assert all(np.array_equal(a, b) for a, b in zip(one.votes, other.votes, strict=True))
    assert not np.array_equal(one.sources, another.sources)


def test_footage_is_not_changed():
    votes = votes_of_corpus(random_corpus(FINE, 30, seed=2))
    before = [part.copy() for part in votes]
    implant(votes, FINE, np.random.default_rng(0))
    assert all(np.array_equal(a, b) for a, b in zip(votes, before, strict=True))


def test_footage_with_little_motion_takes_no_implants():
    rng = np.random.default_rng(0)
    few = [random_votes(FINE, n, rng) for n in (0, 1, FEWEST_VOTES - 1)]
    assert implant(stacked(few), FINE, rng) is None
    found = implant(stacked([*few, random_votes(FINE, FEWEST_VOTES, rng)]), FINE, rng)
    assert (found.sources == 3).all()
