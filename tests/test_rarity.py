"""How rare a moment is, in words."""

import numpy as np
import pytest

from habitus import Corpus, Detector, MarkovClusteringTopicModel
from habitus.corpus import Vocabulary
from habitus.rarity import NormalFootage, duration_in_words, rarity_in_words
from habitus.scene import learn_scene

TWO_HOURS = NormalFootage(7200.0, 0.5, -8.0)


@pytest.mark.parametrize(
    ("normality", "probability", "words"),
    [
        (-0.6, 0.5, "no rarer than most of normal footage"),
        (-1.4, 0.25, "about once in 8 seconds of normal footage"),
        (-5.0, 0.002, "about once in 17 minutes of normal footage"),
        # The tail says ten hours, but two hours had something as rare.
        (-8.0, 1 / 18_000, "about once in 2 hours of normal footage"),
        # Beyond all that was learnt from, the extrapolated tail ranks.
        (
            -8.1,
            1 / 18_000,
            "rarer than anything in the 2 hours learnt from, about once in 10 hours",
        ),
        (-9.0, 1e-5, "rarer than anything in the 2 hours learnt from, about once in 2.3 days"),
        (-8.1, 1 / 900, "rarer than anything in the 2 hours learnt from, about once in 2 hours"),
        (-40.0, 1e-15, "rarer than anything in the 2 hours learnt from, less than once in a year"),
    ],
)
def test_rarity(normality, probability, words):
    assert rarity_in_words(normality, probability, TWO_HOURS) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (7200, "2 hours"),
        (40_000, "11 hours"),
        (200_000, "2.3 days"),
    ],
)
def test_durations(seconds, words):
    assert duration_in_words(seconds) == words


def test_a_detector_says_how_rare_by_the_footage_it_learnt_from():
    """Something moves in every other document; only judged ones count."""
    v = Vocabulary.of_frame(64, 64)
    rng = np.random.default_rng(0)
    words = [
        v.words(4, rng.permutation(8)[: rng.integers(4, 8)], rng.integers(0, 4)) for _ in range(100)
    ]
    documents = [np.repeat(own, 6) if t % 2 else own[:0] for t, own in enumerate(words)]
    corpus = Corpus.from_word_ids(documents, n_words=v.n_words, vocabulary=v)
    detector = learn_scene(corpus, n_topics=2, n_behaviours=1, n_restarts=1).detector()
    normal = detector.normal_footage
    assert (normal.seconds, normal.judged_per_second) == (100.0, 0.5)
    held_out = detector.habits.fusion.held_out
    assert normal.lowest == pytest.approx(held_out[detector.habits.fusion.judged].min(), rel=1e-9)
    assert detector.rarity(np.log(0.1)) == "about once in 20 seconds of normal footage"
    assert detector.rarity(normal.lowest - 1).startswith("rarer than anything in the 100 seconds")


def test_nothing_is_said_without_a_calibration():
    counts = np.random.default_rng(0).poisson(3, (60, 12))
    model = MarkovClusteringTopicModel(2, 2, random_state=0).fit(Corpus(counts))
    detector = Detector(model, measure="mean", threshold=-1.0)
    assert detector.rarity(-3.0) == ""
