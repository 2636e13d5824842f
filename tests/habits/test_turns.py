"""Turns: labels, counts, rates and gain as they are defined, one at a time or all at once."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.corpus import Vocabulary
from habitus.habits import HabitCounts, Habits
from habitus.habits.contexts import N_CONTEXT_LEVELS, context_gain
from habitus.habits.turns import (
    BACK,
    NO_TURN,
    TurnCounts,
    fit_turns,
    gather_turns,
    turn_after,
    turn_evidence,
    turn_habits,
    turn_surprisals,
    turns_of,
)
from habitus.habits.votes import DocumentVotes, Votes
from reference.habits import random_votes

GRID = Vocabulary(3, 5, directions=12, speeds=16)
POINT = Vocabulary(1, 1)
EVEN = {"place": (1.0,) * 5, "direction": (1.0,) * 5, "speed": (1.0,) * 6}
N_TURNS = 4
flags = st.lists(st.booleans(), max_size=12)
behaviours = st.lists(st.integers(0, 2), max_size=12)


def documents(n, seed=0, vocabulary=GRID):
    rng = np.random.default_rng(seed)
    return DocumentVotes.of_documents([random_votes(vocabulary, 6, rng) for _ in range(n)])


def defined_turn(labels, first, t):
    """Behaviour two documents before, or the first of the sequence, and that of the document."""
    start = max(i for i in range(t + 1) if i == 0 or first[i])
    return 3 * labels[max(t - BACK, start)] + labels[t]


@settings(deadline=None)
@given(labels=behaviours, starts=flags)
def test_a_turn_is_the_behaviour_two_documents_before_and_the_own_one(labels, starts):
    n = min(len(labels), len(starts))
    labels, first = labels[:n], [True, *starts[1:n]][:n]
    found = turns_of(np.array(labels, dtype=int), 3, np.array(first, dtype=bool))
    assert found.tolist() == [defined_turn(labels, first, t) for t in range(n)]


@settings(deadline=None)
@given(labels=behaviours, cut=st.integers(0, 12))
def test_a_sequence_in_two_parts_has_the_turns_of_the_whole(labels, cut):
    whole, cut = np.array(labels, dtype=int), min(cut, len(labels))
    first = np.arange(len(whole)) == 0
    later = turns_of(whole[cut:], 3, first[: len(whole) - cut], whole[:cut].tolist())
    both = [*turns_of(whole[:cut], 3, first[:cut]), *later]
    one_by_one = [
        turn_after(labels[max(t - BACK, 0) : t], labels[t], 3) for t in range(len(labels))
    ]
    assert both == turns_of(whole, 3, first).tolist() == one_by_one


def test_counts_are_what_moved_at_each_turn():
    votes, turns = documents(30), np.random.default_rng(1).integers(NO_TURN, N_TURNS, 30)
    counts = TurnCounts.of(votes, turns, N_TURNS, GRID)
    moved, seen = np.zeros_like(counts.moved), np.zeros(N_TURNS)
    for t, turn in enumerate(turns):
        if turn == NO_TURN:
            continue
        seen[turn] += 1
        own = votes.of(t)
        for cell, direction in zip(own.cells, own.directions, strict=True):
            moved[cell, direction // 3, turn] += 1
    assert np.array_equal(counts.moved, moved)
    assert np.array_equal(counts.documents, seen)


def test_counts_add_and_are_taken_back_to_the_bit():
    votes, turns = documents(30), np.random.default_rng(1).integers(0, N_TURNS, 30)
    some = np.arange(11)
    whole, part, rest = (
        TurnCounts.of(votes.take(own), turns[own], N_TURNS, GRID)
        for own in (np.arange(30), some, np.arange(11, 30))
    )
    for one, other in ((part + rest, whole), (whole - part, rest)):
        assert np.array_equal(one.moved, other.moved)
        assert np.array_equal(one.documents, other.documents)
    assert np.array_equal(whole.faded(0.5).moved, whole.moved / 2)
    assert np.array_equal(whole.faded(0.5).documents, whole.documents / 2)


def test_a_moment_that_is_normal_is_so_at_every_turn():
    counts = TurnCounts.of(documents(30), np.zeros(30, dtype=int), N_TURNS, GRID)
    votes = Votes(np.array([3, 7]), np.array([0, 11]), np.array([2, 2]))
    more = counts.adding(votes, GRID)
    assert (more.documents - counts.documents == 1).all()
    added = np.zeros_like(counts.moved)
    added[3, 0], added[7, 3] = 1, 1
    assert np.array_equal(more.moved - counts.moved, added)


def test_surprisals_of_one_cell_are_as_defined():
    """On a grid of one cell all levels are that cell's: a chain of five means."""
    counts = HabitCounts.none(POINT)
    for codes, times in (([0], 30), ([1], 20), ([], 50)):
        counts = counts.adding(Votes.of_codes(np.array(codes, dtype=int), POINT), times)
    habits = Habits.of(counts, EVEN, POINT)
    moved = np.zeros((1, 4, 2))
    moved[0, 0] = 30, 0
    moved[0, 1] = 1, 19
    found = turn_surprisals(TurnCounts(moved, np.array([40.0, 60.0])), habits, (2.0,) * 5, POINT)
    weights = [1.0, 2 * np.pi * 16, 2 * np.pi * 4, 2 * np.pi, 1.0]
    for way in range(4):
        usual = np.exp(-habits.place[0] - habits.direction[0, way])
        for turn, n in enumerate((40.0, 60.0)):
            rate = 1.0
            for spread, weight in zip((0, 4, 2, 1, 0), weights, strict=True):
                near = weight * kernel_at_middle(spread) if spread else 1.0
                rate = (near * moved[0, way, turn] + 2 * rate) / (near * usual * n + 2)
            assert found[turn, 0, way] == pytest.approx(max(-log(rate), 0.0), abs=1e-12)


def kernel_at_middle(spread):
    """The middle weight of a Gaussian kernel that is cut off at three deviations, in two axes."""
    x = np.arange(-round(3 * spread), round(3 * spread) + 1)
    weights = np.exp(-0.5 * (x / spread) ** 2)
    return (weights[len(x) // 2] / weights.sum()) ** 2


def alternating(n, seed, *, turns):
    """Documents in which the left half moves up at turn 0, and the right half down at turn 1."""
    rng, made = np.random.default_rng(seed), []
    for turn in turns:
        columns = np.arange(GRID.n_cells) % GRID.columns
        mine = np.flatnonzero((columns < 2) if turn == 0 else (columns > 2))
        cells = mine[rng.random(len(mine)) < 0.5]
        made.append(
            Votes(cells, np.full(len(cells), 1 if turn == 0 else 7), np.full(len(cells), 5))
        )
    return DocumentVotes.of_documents(made)


@pytest.fixture(scope="module")
def lights():
    """Parts of footage whose two halves take turns: votes, turns and counts."""
    turns = np.arange(200) // 10 % 2
    votes = alternating(200, 0, turns=turns)
    return votes, turns


def parts_of(votes, turns, n=5):
    for own in np.array_split(np.arange(len(turns)), n):
        yield (
            TurnCounts.of(votes.take(own), turns[own], 2, GRID),
            HabitCounts.of(votes.take(own), GRID, len(own)),
        )


def fitted(votes, turns):
    by_turn, by_place = zip(*parts_of(votes, turns), strict=True)
    total = HabitCounts.total(by_place)
    return fit_turns(by_turn, [Habits.of(total - own, EVEN, GRID) for own in by_place], GRID)


def test_turns_predict_what_takes_turns_and_nothing_else(lights):
    votes, turns = lights
    known, guessed = (
        fitted(votes, turns),
        fitted(votes, np.random.default_rng(3).permutation(turns)),
    )
    assert len(known.concentrations) == N_CONTEXT_LEVELS
    assert known.gain == pytest.approx(log(2), abs=0.02)  # one bit: which half it is
    assert guessed.gain < 0.02


def test_the_gain_is_that_of_the_likelihood():
    rates, moved, expected = (np.random.default_rng(k).random((3, 4)) + 0.1 for k in range(3))
    poisson = moved * np.log(rates * expected) - rates * expected
    unmoved = moved * np.log(expected) - expected
    assert context_gain(rates, moved, expected) == pytest.approx((poisson - unmoved).sum())


def test_one_document_is_gathered_as_many_are(lights):
    votes, turns = lights
    counts = TurnCounts.of(votes, turns, 2, GRID)
    habits = Habits.of(HabitCounts.of(votes, GRID, len(turns)), EVEN, GRID)
    surprisals = turn_surprisals(counts, habits, (1.0,) * 5, GRID)
    by_turn = turn_habits(surprisals, GRID)
    swapped = np.where(np.arange(200) == 7, NO_TURN, 1 - turns)
    scans = gather_turns(votes, by_turn, swapped, GRID)
    usual = gather_turns(votes, by_turn, turns, GRID)
    assert scans[7] == 0
    assert scans[np.diff(votes.indptr) > 3].min() >= 0
    assert np.median(scans) > 20 * max(np.median(usual), 0.01)
    for t in (0, 55, 199):
        found = turn_evidence(votes.of(t), by_turn[swapped[t]], GRID)
        assert found.statistics.tolist() == [scans[t]]
        own = surprisals[swapped[t]][votes.of(t).cells, votes.of(t).directions // 3]
        assert np.array_equal(found.excesses[:, 0], own)
