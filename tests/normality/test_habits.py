"""What a detector goes on learning, against plain NumPy and its own laws."""

import numpy as np
import pytest

from habitus import Detector, generate
from habitus.model import MarkovClusteringTopicModel
from habitus.normality import Bag, bags, calibrate
from habitus.normality.filter import advance, advance_by, tables_of
from habitus.normality.habits import REFRESH, Counts, Habits
from habitus.normality.novelty import KNOWN, novelty_of
from habitus.scenes import crossing, crossing_vocabulary
from reference.corpora import PAPER_SIZES, random_parameters

RNG = np.random.default_rng(0)
GRID = crossing_vocabulary()


def some_counts():
    known = RNG.gamma(0.3, 5, (GRID.n_words, 3))
    return Counts(known, known.sum(axis=1) * (RNG.random(GRID.n_words) < 0.05))


def some_document(n=20):
    words = np.sort(RNG.choice(GRID.n_words, n, replace=False)).astype(np.int32)
    return words, RNG.integers(1, 6, n).astype(float)


@pytest.fixture(scope="module")
def model():
    corpus = generate(crossing(), [60] * 300, np.random.default_rng(1)).corpus
    fitted = MarkovClusteringTopicModel(8, 4, n_restarts=2, random_state=0).fit(corpus)
    calibrate(fitted, corpus)
    return fitted


def test_rows_are_their_formula_and_a_distribution():
    counts = some_counts()
    habits = Habits(counts, GRID)
    rows = habits.rows(np.arange(GRID.n_words, dtype=np.int32))
    known = counts.known / counts.known.sum(axis=0)
    expected = KNOWN * known + (1 - KNOWN) * novelty_of(counts.new, GRID)[:, None]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    np.testing.assert_allclose(rows.sum(axis=0), 1, rtol=1e-12)


def test_a_step_by_rows_is_the_step_by_tables():
    parameters = random_parameters(PAPER_SIZES, 0)
    tables = tables_of([parameters])
    words, counts = np.array([3, 90, 600], dtype=np.int32), np.array([4.0, 1, 30])
    one = advance(tables.log_pi, words, counts, tables)
    other = advance_by(tables.log_pi, counts, tables.probability[words], tables)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_learning_adds_each_word_to_its_behaviours_and_what_was_new_to_the_new():
    counts = some_counts()
    habits, tables = Habits(counts, GRID), tables_of([random_parameters(PAPER_SIZES, 0)])
    n_behaviours = counts.known.shape[1]
    words, n = some_document()
    rows = habits.rows(words)
    seen = advance_by(
        np.full((1, n_behaviours), -np.log(n_behaviours)), n, rows,
        tables._replace(xi=np.full((1, 3, 3), 1 / 3), log_xi=np.full((1, 3, 3), -np.log(3))),
    )  # fmt: skip
    habits.learn(words, n, rows, seen)
    q = seen.posterior[0]
    known = counts.known.copy()
    known[words] += n[:, None] * q
    np.testing.assert_allclose(habits.known, known, rtol=1e-12)
    np.testing.assert_allclose(habits.n_known, known.sum(axis=0), rtol=1e-12)
    fresh = n * (1 - KNOWN) * novelty_of(counts.new, GRID)[words] / (rows @ q)
    assert (fresh <= n).all()
    np.testing.assert_allclose(habits.new[words], counts.new[words] + fresh, rtol=1e-12)
    total = counts.known.sum()
    share = ((1 - KNOWN) * total + fresh.sum()) / (total + n.sum())
    assert habits.share == pytest.approx(share, rel=1e-12)


def test_what_comes_again_and_again_surprises_less(model):
    words = np.flatnonzero(model.parameters_.word_given_behaviour.max(axis=1) < 1e-4)[:6]
    strange = Bag(words.astype(np.int32), np.full(len(words), 10.0))
    detector = Detector(model, measure="upheaval", threshold=-1e9)
    scores = [detector.step(strange).normality for _ in range(3 * REFRESH)]
    assert scores[0] < scores[1] < scores[REFRESH] < scores[-1]


@pytest.mark.parametrize("how", [{"adapt": False, "threshold": -1e9}, {"threshold": 1e9}])
def test_what_is_abnormal_does_not_teach_nor_does_anything_if_told_so(model, how):
    detector = Detector(model, measure="upheaval", **how)
    for document in bags(generate(crossing(), [60] * 9, np.random.default_rng(2)).corpus):
        detector.step(document)
    assert np.array_equal(detector.habits.known, model.calibration_["plug-in.known"])


def test_the_share_of_the_new_falls_where_nothing_is(model):
    corpus = generate(crossing(), [60] * 300, np.random.default_rng(2)).corpus
    detector = Detector(model, threshold=-1.0)
    for document in bags(corpus):
        detector.step(document)
    assert detector.habits.share < 1 - KNOWN


def test_a_detector_goes_on_to_the_bit_from_its_state(model, tmp_path):
    documents = list(bags(generate(crossing(), [60] * 100, np.random.default_rng(3)).corpus))
    whole = Detector(model, threshold=-1.0)
    expected = [whole.step(document).normality for document in documents]
    first = Detector(model, threshold=-1.0)
    found = [first.step(document).normality for document in documents[:45]]
    first.save_state(tmp_path / "state")
    second = Detector(model, threshold=-1.0)
    second.restore_state(tmp_path / "state")
    found += [second.step(document).normality for document in documents[45:]]
    assert found == expected
