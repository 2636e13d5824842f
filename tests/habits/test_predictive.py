"""Predictive probabilities against exact fractions, and concentrations against enumeration."""

import itertools

import numpy as np
import pytest

from habitus.corpus import Vocabulary
from habitus.habits.counts import HabitCounts
from habitus.habits.predictive import (
    CONCENTRATIONS,
    N_LEVELS,
    ROUNDS,
    SPREADS,
    START,
    Habits,
    fit_concentrations,
    fit_young_concentrations,
)
from habitus.habits.votes import votes_of_corpus
from reference.habits import KINDS, exact_probabilities, random_corpus, random_votes, stacked

UNEVEN = {"place": (3.0, 0.3, 30.0, 1.0, 10.0), "direction": (1.0, 10.0, 3.0, 0.3, 2.0)}
UNEVEN["speed"] = (0.5, *UNEVEN["place"])


def some_counts(vocabulary, n_documents=12, seed=0):
    votes = votes_of_corpus(random_corpus(vocabulary, n_documents, seed))
    return HabitCounts.of(votes, vocabulary, n_documents)


def around(counts, spread, vocabulary):
    """Sums of counts with the weights of a Gaussian within three deviations, cell by cell."""
    reach = int(3 * spread + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / spread) ** 2)
    weights /= weights.sum()
    found = np.zeros(counts.shape)
    for one, other in itertools.product(range(vocabulary.n_cells), repeat=2):
        (y, x), (v, u) = divmod(one, vocabulary.columns), divmod(other, vocabulary.columns)
        if abs(v - y) <= reach and abs(u - x) <= reach:
            weight = weights[v - y + reach] * weights[u - x + reach]
            found[one] += 2 * np.pi * spread**2 * weight * counts[other]
    return found


def levels_of_cell(question, counts, vocabulary):
    """Counts of every level, for each cell (and each of four directions) and class."""
    cell = {"direction": counts.direction, "speed": counts.speed}.get(question)
    if cell is None:
        cell = np.stack([counts.n_documents - counts.moving, counts.moving], axis=-1)
    every = [np.broadcast_to(cell.sum(axis=0), cell.shape)]
    if question == "speed":
        every.insert(0, np.broadcast_to(cell.sum(axis=(0, 1)), cell.shape))
    every += [around(cell, spread, vocabulary) for spread in SPREADS]
    return np.stack([*every, cell])


@pytest.mark.parametrize(("directions", "speeds"), KINDS)
@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (3, 9)])
def test_probabilities_are_those_of_exact_fractions(grid, directions, speeds):
    vocabulary = Vocabulary(*grid, directions=directions, speeds=speeds)
    counts = some_counts(vocabulary)
    habits = Habits.of(counts, UNEVEN, vocabulary)
    for question, found in zip(N_LEVELS, habits, strict=True):
        levels = levels_of_cell(question, counts, vocabulary)
        for place in np.ndindex(levels.shape[1:-1]):
            own = [level[place] for level in levels]
            expected = exact_probabilities(own, UNEVEN[question])
            assert sum(expected) == 1
            if question == "place":
                expected = expected[1:]
            np.testing.assert_allclose(np.exp(-found[place]), np.float64(expected), rtol=1e-12)


def test_probabilities_add_up_to_one_however_little_was_seen():
    vocabulary = Vocabulary(3, 4, directions=12, speeds=16)
    some = some_counts(vocabulary)
    for counts in (HabitCounts.none(vocabulary), some, some.faded(1e-9), some.faded(1 / 3)):
        habits = Habits.of(counts, UNEVEN, vocabulary)
        assert all(np.isfinite(part).all() and (part >= 0).all() for part in habits)
        for part in habits[1:]:
            np.testing.assert_allclose(np.exp(-part).sum(axis=-1), 1, rtol=1e-12)


def test_no_footage_leaves_every_answer_as_likely():
    vocabulary = Vocabulary(2, 2, directions=12, speeds=16)
    habits = Habits.of(HabitCounts.none(vocabulary), UNEVEN, vocabulary)
    for part, n in zip(habits, (2, 12, 16), strict=True):
        np.testing.assert_allclose(part, np.log(n), rtol=1e-12)


def test_no_concentration_leaves_the_shares_of_the_cell():
    vocabulary = Vocabulary(2, 2)
    rng = np.random.default_rng(0)
    counts = HabitCounts.none(vocabulary)
    for _ in range(6):
        counts = counts.adding(random_votes(vocabulary, 3, rng))
    counts = counts.adding(random_votes(vocabulary, 4, rng))
    tiny = {name: (1.0,) * (n - 1) + (1e-12,) for name, n in N_LEVELS.items()}
    habits = Habits.of(counts, tiny, vocabulary)
    np.testing.assert_allclose(np.exp(-habits.place), counts.moving / 7, rtol=1e-9)
    shares = counts.direction / counts.moving[:, None]
    np.testing.assert_allclose(np.exp(-habits.direction), shares, rtol=1e-9, atol=1e-9)


def test_endless_concentration_leaves_the_shares_of_the_frame():
    vocabulary = Vocabulary(2, 3)
    counts = some_counts(vocabulary)
    strong = {name: (1e-12,) + (1e15,) * (n - 1) for name, n in N_LEVELS.items()}
    habits = Habits.of(counts, strong, vocabulary)
    share = counts.moving.sum() / (6 * counts.n_documents)
    np.testing.assert_allclose(np.exp(-habits.place), share, rtol=1e-9)
    shares = counts.direction.sum(axis=0) / counts.moving.sum()
    np.testing.assert_allclose(np.exp(-habits.direction), [shares] * 6, rtol=1e-9, atol=1e-9)


def held_out_likelihood(question, concentrations, folds, vocabulary):
    """ln p of each fold, vote by vote, by the habits of all others."""
    found = 0.0
    for k in range(len(folds)):
        rest = HabitCounts.none(vocabulary)
        for other in folds[:k] + folds[k + 1 :]:
            rest = rest + other
        probability = _predicted(question, rest, concentrations, vocabulary)
        found += (_seen(question, folds[k]) * np.log(probability)).sum()
    return found


def _seen(question, fold):
    if question == "place":
        return np.stack([fold.n_documents - fold.moving, fold.moving], axis=-1)
    return fold.direction if question == "direction" else fold.speed


def _predicted(question, rest, concentrations, vocabulary):
    levels = levels_of_cell(question, rest, vocabulary)
    probability = np.full(levels.shape[-1], 1 / levels.shape[-1])
    for level, concentration in zip(levels, concentrations, strict=True):
        total = level.sum(axis=-1, keepdims=True)
        probability = (level + concentration * probability) / (total + concentration)
    return probability


def climbed(likelihood, n_levels):
    """The best concentrations, one after the other, over and over."""
    best = [START] * n_levels
    for _ in range(ROUNDS):
        for level in range(n_levels):
            tried = [[*best[:level], value, *best[level + 1 :]] for value in CONCENTRATIONS]
            best = max([best, *tried], key=likelihood)
    return tuple(best)


def some_folds(vocabulary, seed):
    """Folds of footage in which cells have habits of their own."""
    rng = np.random.default_rng(seed)
    folds = []
    for _ in range(3):
        documents = []
        for _ in range(8):
            votes = random_votes(vocabulary, rng.integers(1, vocabulary.n_cells), rng)
            usual = votes.cells % vocabulary.directions
            unlike = rng.random(len(usual)) < 0.2
            documents.append(votes._replace(directions=np.where(unlike, votes.directions, usual)))
        folds.append(HabitCounts.of(stacked(documents), vocabulary, 8))
    return folds


@pytest.mark.parametrize(("directions", "speeds"), [(4, 2), (12, 16)])
@pytest.mark.parametrize("seed", range(3))
def test_concentrations_are_the_best_one_after_the_other(directions, speeds, seed):
    vocabulary = Vocabulary(3, 3, directions=directions, speeds=speeds)
    folds = some_folds(vocabulary, seed)
    found = fit_concentrations(folds, vocabulary)
    for question, n_levels in N_LEVELS.items():

        def likelihood(concentrations, question=question):
            return held_out_likelihood(question, concentrations, folds, vocabulary)

        # Ties aside, which rounding decides: as likely, to the digits that rounding leaves.
        expected = climbed(likelihood, n_levels)
        np.testing.assert_allclose(likelihood(found[question]), likelihood(expected), rtol=1e-9)
        assert likelihood(found[question]) > likelihood([START] * n_levels)
        assert set(found[question]) <= set(CONCENTRATIONS)


@pytest.mark.parametrize("seed", range(2))
def test_young_concentrations_predict_the_rest_from_each_part_best(seed):
    vocabulary = Vocabulary(3, 3, directions=12, speeds=16)
    first, second, third = some_folds(vocabulary, seed)
    total = first + second + third
    found = fit_young_concentrations([first, third], total, vocabulary)
    for question, n_levels in N_LEVELS.items():

        def likelihood(concentrations, question=question):
            return sum(
                (
                    _seen(question, rest)
                    * np.log(_predicted(question, part, concentrations, vocabulary))
                ).sum()
                for part, rest in ((first, second + third), (third, first + second))
            )

        expected = climbed(likelihood, n_levels)
        np.testing.assert_allclose(likelihood(found[question]), likelihood(expected), rtol=1e-9)
        assert likelihood(found[question]) > likelihood([START] * n_levels)
    assert found != fit_concentrations([first, second, third], vocabulary)


def test_concentrations_are_near_the_best_of_the_whole_grid():
    vocabulary = Vocabulary(2, 3)
    folds = some_folds(vocabulary, 0)
    tried = np.array(list(itertools.product(CONCENTRATIONS, repeat=5)))
    every = np.zeros(len(tried))
    for k, fold in enumerate(folds):
        rest = folds[k - 1] + folds[k - 2]
        probability = np.full((len(tried), 1, 1), 1 / 4)
        for level, c in zip(
            levels_of_cell("direction", rest, vocabulary), tried.T[..., None, None], strict=True
        ):
            probability = (level + c * probability) / (level.sum(axis=-1, keepdims=True) + c)
        every += (fold.direction * np.log(probability)).sum(axis=(1, 2))
    found = fit_concentrations(folds, vocabulary)["direction"]
    start, best = every[(tried == START).all(axis=1)], every.max()
    reached = every[(tried == found).all(axis=1)]
    assert reached - start >= 0.95 * (best - start) > 0


def test_footage_without_a_vote_keeps_the_concentrations_it_starts_with():
    vocabulary = Vocabulary(2, 2)
    folds = [HabitCounts.of(stacked([]), vocabulary, 3)] * 2
    found = fit_concentrations(folds, vocabulary)
    assert found["direction"] == (START,) * 5
    assert found["speed"] == (START,) * 6
    assert all(np.isfinite(part).all() for part in Habits.of(folds[0], found, vocabulary))
