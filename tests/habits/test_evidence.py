"""Evidence against sums over windows as they are defined."""

import numpy as np
import pytest

from habitus.corpus import Vocabulary
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import (
    LEVEL_QUANTILE,
    RESOLUTION,
    document_evidence,
    gather_statistics,
    levels_of,
    surprisal_histograms,
)
from habitus.habits.predictive import N_LEVELS, START, Habits
from habitus.habits.votes import Votes
from reference.habits import (
    KINDS,
    cue_surprisals,
    defined_statistics,
    random_votes,
    stacked,
)

GRIDS = [(1, 1), (1, 9), (4, 3), (5, 5), (9, 12)]
LEVELS = np.array([1.0, 0.7, 0.4, 2.5])


def some_habits(vocabulary, seed):
    """Habits with which some votes exceed the levels and others do not."""
    rng = np.random.default_rng(seed)
    counts = HabitCounts.none(vocabulary)
    for _ in range(6):
        n_votes = rng.integers(0, vocabulary.n_cells + 1)
        counts = counts.adding(random_votes(vocabulary, n_votes, rng))
    return Habits.of(counts, {name: (START,) * n for name, n in N_LEVELS.items()}, vocabulary)


def some_documents(vocabulary, seed):
    """Documents with no vote, one in each corner, a few and all that the frame has."""
    rng, n = np.random.default_rng(seed), vocabulary.n_cells
    documents = [random_votes(vocabulary, k, rng) for k in (0, 1, n, n // 2, min(n, 7), 0)]
    for corner in (0, vocabulary.columns - 1, n - vocabulary.columns, n - 1):
        one = random_votes(vocabulary, 1, rng)
        documents.append(one._replace(cells=np.array([corner])))
    return documents


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("directions", "speeds"), KINDS)
def test_statistics_are_as_defined(grid, directions, speeds):
    vocabulary = Vocabulary(*grid, directions=directions, speeds=speeds)
    habits, n_reached = some_habits(vocabulary, 0), 0
    for votes in some_documents(vocabulary, 1):
        found = document_evidence(votes, habits, LEVELS, vocabulary)
        expected, by_window, excesses = defined_statistics(votes, habits, LEVELS, vocabulary)
        np.testing.assert_allclose(found.statistics, expected, rtol=1e-12, atol=0)
        np.testing.assert_array_equal(found.excesses, excesses)
        for cue, middle in enumerate(found.windows):
            heaviest = by_window[cue].max()
            np.testing.assert_allclose(by_window[cue, middle], heaviest, rtol=1e-12, atol=0)
        n_reached += (excesses > 0).any() and (excesses == 0).any()
    assert n_reached > 0 or vocabulary.n_cells == 1


@pytest.mark.parametrize("grid", GRIDS)
def test_many_documents_at_once_equal_one_at_a_time_bit_for_bit(grid):
    vocabulary = Vocabulary(*grid, directions=12, speeds=16)
    habits, documents = some_habits(vocabulary, 2), some_documents(vocabulary, 3)
    for order in (documents, documents[::-1]):
        together = gather_statistics(stacked(order), habits, LEVELS, vocabulary)
        for votes, found in zip(order, together, strict=True):
            alone = document_evidence(votes, habits, LEVELS, vocabulary)
            assert np.array_equal(alone.statistics, found)


def test_no_documents_have_no_statistics():
    vocabulary = Vocabulary(3, 3)
    found = gather_statistics(stacked([]), some_habits(vocabulary, 0), LEVELS, vocabulary)
    assert found.shape == (0, 8)


@pytest.mark.parametrize(("directions", "speeds"), KINDS)
def test_levels_are_quantiles_of_the_surprisals(directions, speeds):
    vocabulary = Vocabulary(8, 8, directions=directions, speeds=speeds)
    habits, rng = some_habits(vocabulary, 4), np.random.default_rng(5)
    documents = [random_votes(vocabulary, n, rng) for n in rng.integers(0, 65, 30)]
    values = np.concatenate([cue_surprisals(votes, habits) for votes in documents])
    parts = stacked(documents[:11]), stacked(documents[11:])
    histograms = sum(surprisal_histograms(part, habits) for part in parts)
    assert histograms.sum(axis=1).tolist() == [len(values)] * 4
    expected = np.quantile(values, LEVEL_QUANTILE, axis=0, method="inverted_cdf")
    found = levels_of(histograms)
    assert (found > expected - 1e-12).all()
    assert (found <= expected + RESOLUTION + 1e-12).all()


def test_surprisals_beyond_the_histogram_are_in_its_last_step():
    vocabulary = Vocabulary(1, 1)
    habits = Habits(np.array([1e9]), np.full((1, 4), 39.999), np.full((1, 4, 1), -0.0))
    votes = random_votes(vocabulary, 1, np.random.default_rng(0))
    histograms = surprisal_histograms(stacked([votes]), habits)
    assert histograms.argmax(axis=1).tolist() == [7999, 7999, 0, 7999]
    assert histograms.sum() == 4


def test_levels_of_nothing_are_the_least():
    assert levels_of(np.zeros((4, 8000), dtype=np.int64)).tolist() == [RESOLUTION] * 4


@pytest.mark.parametrize("side", ["left", "right", "top", "bottom"])
def test_the_heaviest_window_leaves_out_usual_votes_on_any_side(side):
    vocabulary = Vocabulary(9, 9)
    usual = np.zeros((9, 9), dtype=bool)
    usual[:, 5:] = True
    turns = {"left": 0, "bottom": 1, "right": 2, "top": 3}[side]
    cells = np.flatnonzero(np.rot90(usual, turns).ravel() | (np.arange(81) == 40))
    place = np.zeros(81)
    place[40] = 9.0
    habits = Habits(place, np.zeros((81, 4)), np.zeros((81, 4, 1)))
    votes = Votes(cells, np.zeros_like(cells), np.zeros_like(cells))
    found = document_evidence(votes, habits, LEVELS, vocabulary)
    expected, by_window, _ = defined_statistics(votes, habits, LEVELS, vocabulary)
    np.testing.assert_allclose(found.statistics, expected, rtol=1e-12, atol=0)
    middle = {"left": (4, 2), "right": (4, 6), "top": (2, 4), "bottom": (6, 4)}[side]
    assert by_window[0].reshape(9, 9)[middle] == expected[0]
    assert {divmod(int(found.windows[0]), 9)[side in ("left", "right")]} == {
        middle[side in ("left", "right")]
    }


def test_where_nothing_exceeds_the_window_is_that_of_the_first_vote():
    vocabulary = Vocabulary(4, 5)
    habits = Habits(np.zeros(20), np.zeros((20, 4)), np.zeros((20, 4, 1)))
    votes = Votes(np.array([7, 13]), np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    assert document_evidence(votes, habits, LEVELS, vocabulary).windows.tolist() == [7] * 4
    none = Votes(*(part[:0] for part in votes))
    assert document_evidence(none, habits, LEVELS, vocabulary).windows.tolist() == [0] * 4
