"""Measures against their formulas, and novelty as a distribution in its place."""

import numpy as np
import pytest

from habitus.corpus.vocabulary import Vocabulary
from habitus.model.online import filter_document, filter_tables
from habitus.scene.calibration import CalibrationSettings
from habitus.scene.measures import (
    MEASURES,
    estimate_novelty_share,
    estimate_uniform_share,
    excess,
    novelty_background,
)
from reference.corpora import PAPER_SIZES, random_parameters

CONSTANTS = CalibrationSettings()
LEAST = CONSTANTS.least_uniform_share


def background(counts, grid, uniform_share=LEAST):
    return novelty_background(
        counts,
        grid,
        share=1 - CONSTANTS.known_share,
        spread=CONSTANTS.novelty_spread,
        uniform_share=uniform_share,
    )


def uniform_share(new, grid):
    return estimate_uniform_share(new, grid, spread=CONSTANTS.novelty_spread, least=LEAST)


def test_measures_are_their_formulas():
    tables = filter_tables([random_parameters(PAPER_SIZES, 0)])
    rng = np.random.default_rng(1)
    words = np.sort(rng.choice(6480, 200, replace=False)).astype(np.int32)
    counts = rng.integers(1, 9, 200).astype(float)
    found, n = filter_document(tables.log_pi, words, counts, tables), counts.sum()
    expected = {
        "mean": found.log_evidence / n,
        "tail": -(counts * np.maximum(found.surprisals - 8.5, 0)).sum() / np.sqrt(n),
    }
    assert expected.keys() == MEASURES.keys()
    for name, value in expected.items():
        assert MEASURES[name](
            found.log_evidence, n, counts, found.surprisals, 8.5
        ) == pytest.approx(value, rel=1e-12)


def test_novelty_is_a_distribution_around_the_words_that_were_new():
    grid = Vocabulary(20, 30)
    counts = np.zeros(grid.n_words)
    counts[grid.words([5], [7], [2])] = 4
    share, probability = background(counts, grid)
    assert share == pytest.approx(1 - CONSTANTS.known_share)
    assert probability.sum() == pytest.approx(1, rel=1e-12)
    cells = probability.reshape(20, 30, 4)
    assert np.unravel_index(cells.sum(axis=2).argmax(), (20, 30)) == (5, 7)
    assert np.ptp(cells, axis=2).max() == 0  # any direction
    assert cells[19, 29, 0] == pytest.approx(LEAST / grid.n_words, rel=1e-6)
    mixed = background(counts, grid).mixed(np.full((grid.n_words, 3), 1 / grid.n_words))
    np.testing.assert_allclose(mixed.sum(axis=0), 1, rtol=1e-12)
    assert np.ptp(background(counts, None).probability) == 0


@pytest.mark.parametrize("share", [0.002, 0.03, 0.2])
def test_the_share_of_new_words_is_that_of_the_mixture_they_come_from(share):
    rng, n_words = np.random.default_rng(0), 500
    known, new = rng.dirichlet(np.full(n_words, 0.1)), np.full(n_words, 1 / n_words)
    counts = rng.multinomial(200_000, share * new + (1 - share) * known).astype(float)
    found = estimate_novelty_share(counts, known, new)
    assert found == pytest.approx(share, rel=0.2)
    shares = np.linspace(0.5, 2, 31) * found
    likelihood = [counts @ np.log(each * new + (1 - each) * known) for each in shares]
    assert shares[np.argmax(likelihood)] == pytest.approx(found, rel=0.04)


def test_the_share_of_new_words_is_never_0_or_1():
    counts, likely, not_so = np.full(5, 3.0), np.full(5, 0.2), np.full(5, 1e-9)
    assert estimate_novelty_share(counts, likely, not_so) == pytest.approx(0.5 / 16, rel=1e-3)
    assert estimate_novelty_share(counts, not_so, likely) == pytest.approx(15.5 / 16, rel=1e-3)
    assert estimate_novelty_share(*np.zeros((3, 0))) == 0.5


def folds_of_new_words(grid, middles):
    """In each fold 40 new words, within two cells of its middle."""
    rng = np.random.default_rng(0)
    for row, column in middles:
        counts = np.zeros(grid.n_words)
        rows, columns = row + rng.integers(-2, 3, 40), column + rng.integers(-2, 3, 40)
        np.add.at(counts, grid.words(rows, columns, rng.integers(0, 4, 40)), 1)
        yield counts


def test_places_of_new_words_are_trusted_as_far_as_they_tell_of_others():
    grid = Vocabulary(40, 40)
    alike = list(folds_of_new_words(grid, [(10, 10)] * 6))
    assert uniform_share(alike, grid) == LEAST
    apart = list(folds_of_new_words(grid, [(5, 5), (5, 34), (34, 5), (34, 34), (20, 20)]))
    assert uniform_share(apart, grid) > 0.99
    mixed = alike[:3] + apart[1:4]
    share = uniform_share(mixed, grid)
    assert 0.3 < share < 0.7

    def log_likelihood(share):
        total = np.sum(mixed, axis=0)
        return sum(own @ np.log(background(total - own, grid, share).probability) for own in mixed)

    assert log_likelihood(share) >= max(map(log_likelihood, np.linspace(0.05, 0.95, 91)))
    assert uniform_share([np.zeros(grid.n_words)] * 3, grid) >= LEAST
    assert uniform_share(alike, None) >= LEAST


def test_the_blur_goes_on_at_the_edges_as_at_the_nearest_cell():
    """A Gaussian of the counts, the frame extended by its outermost cells, by brute force."""
    grid, spread = Vocabulary(6, 9), CONSTANTS.novelty_spread
    counts = np.zeros(grid.n_words)
    counts[grid.words([0, 5], [0, 8], [1, 3])] = [3, 1]
    cells = counts.reshape(6, 9, 4).sum(axis=2)
    reach = int(4 * spread + 0.5)
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-(steps**2) / (2 * spread**2))
    weights /= weights.sum()
    extended = np.pad(cells, reach, mode="edge")
    blurred = np.array(
        [
            [
                weights @ extended[r : r + 2 * reach + 1, c : c + 2 * reach + 1] @ weights
                for c in range(9)
            ]
            for r in range(6)
        ]
    )
    expected = np.repeat(blurred / blurred.sum() / 4, 4)
    found = background(counts, grid, 0.0).probability
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_kernel_is_its_numpy_line():
    rng = np.random.default_rng(5)
    counts, surprisals = rng.integers(1, 9, 300).astype(float), rng.gamma(9, 1, 300)
    expected = counts @ np.maximum(surprisals - 8.0, 0)
    assert excess(counts, surprisals, 8.0) == pytest.approx(expected, rel=1e-12)
