"""Measures against their formulas, and novelty as a distribution in its place."""

import numpy as np
import pytest

from habitus.normality import MEASURES, advance, tables_of
from habitus.normality.measures import Scale
from habitus.normality.novelty import ANYWHERE, KNOWN, novelty_of
from habitus.words import Vocabulary
from reference.corpora import PAPER_SIZES, random_parameters

SCALE = Scale(level=8.5, typical=-8.0, tail=(-1.0, 0.5), upheaval=(-20.0, 4.0))


def test_measures_are_their_formulas():
    tables = tables_of([random_parameters(PAPER_SIZES, 0)])
    rng = np.random.default_rng(1)
    words = np.sort(rng.choice(6480, 200, replace=False)).astype(np.int32)
    counts = rng.integers(1, 9, 200).astype(float)
    seen, n = advance(tables.log_pi, words, counts, tables), counts.sum()
    tail = -(counts * np.maximum(seen.surprises - 8.5, 0)).sum() / np.sqrt(n)
    upheaval = (seen.log_evidence / n + 8.0) * np.sqrt(n)
    expected = {
        "mean": seen.log_evidence / n,
        "tail": tail,
        "upheaval": upheaval,
        "either": min((tail + 1) / 0.5, (upheaval + 20) / 4 + np.log(10)),
    }
    assert expected.keys() == MEASURES.keys()
    for name, value in expected.items():
        assert MEASURES[name](seen, counts, SCALE) == pytest.approx(value, rel=1e-12)


def test_novelty_is_a_distribution_around_the_words_that_were_new():
    grid = Vocabulary(20, 30)
    counts = np.zeros(grid.n_words)
    counts[grid.words([5], [7], [2])] = 4
    share, probability = novelty_of(counts, grid)
    assert share == pytest.approx(1 - KNOWN)
    assert probability.sum() == pytest.approx(1, rel=1e-12)
    cells = probability.reshape(20, 30, 4)
    assert np.unravel_index(cells.sum(axis=2).argmax(), (20, 30)) == (5, 7)
    assert np.ptp(cells, axis=2).max() == 0  # any direction
    assert cells[19, 29, 0] == pytest.approx(ANYWHERE / grid.n_words, rel=1e-6)
    mixed = novelty_of(counts, grid).mixed(np.full((grid.n_words, 3), 1 / grid.n_words))
    np.testing.assert_allclose(mixed.sum(axis=0), 1, rtol=1e-12)
    assert np.ptp(novelty_of(counts, None).probability) == 0
