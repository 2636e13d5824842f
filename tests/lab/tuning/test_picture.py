"""The picture of the evidence: what is drawn is what was found."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from habitus.lab.tuning.advice import Hyperparameters, Tuning, command, edge_note, in_words
from habitus.lab.tuning.picture import (
    draw_bound,
    draw_hyperparameters,
    draw_recall,
    draw_sizes,
    draw_tuning,
)
from habitus.lab.tuning.recall import Recall, Share
from habitus.lab.tuning.selection import Candidate, Prediction, choose, grid
from habitus.model import MarkovClusteringTopicModel, Prior
from habitus.model.hyperparameters import HyperparameterFit


def choice():
    rng = np.random.default_rng(0)
    candidates = grid([4, 8], [2, 3, 4])
    n_tokens = np.full(20, 500.0)
    found = [
        Prediction(n_tokens * (-7 - 0.1 * (4 - c.n_behaviours)) + rng.normal(0, 60, 20), n_tokens)
        for c in candidates
    ]
    return choose(candidates, found, 100)


def fit():
    course = {name: np.geomspace(1, k + 2, 9) for k, name in enumerate(("alpha", "beta", "gamma"))}
    bounds = np.linspace(-900.0, -800.0, 18).reshape(9, 2)
    prior = Prior(alpha=2, beta=3, gamma=4)
    course |= {"eta": np.ones(9)}
    return HyperparameterFit(prior, MarkovClusteringTopicModel(), bounds, course)


def recall():
    shares = [Share("wrong way", s, 5.0, n, 40, 0) for s, n in ((0.5, 4), (1.0, 21), (2.0, 40))]
    shares += [Share("out of turn", strength, 5.0, 0, 0, 0) for strength in (0.5, 1.0, 2.0)]
    return Recall([*shares, Share("out of order", None, 5.0, 0, 40, 0)], 99, 80.0)


def tuning(gain=0.0):
    return Tuning(
        choice(), Hyperparameters(fit(), choice().predictions[0], gain, 0.01), recall(), []
    )


def axes():
    return Figure().subplots()


def test_lines_errors_ring_and_the_dotted_line_are_the_predictions():
    ax, found = axes(), choice()
    draw_sizes(ax, found)
    drawn = [line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 2]
    means = np.array([p.mean for p in found.predictions]).reshape(3, 2)
    for row in means:
        assert any(np.array_equal(row, line) for line in drawn)
    best = found.predictions[found.best]
    level = best.mean - best.standard_error
    assert any(np.array_equal([level, level], line) for line in drawn)
    ring = [line for line in ax.get_lines() if line.get_markersize() == 15]
    assert [line.get_ydata()[0] for line in ring] == [found.predictions[found.chosen].mean]


def test_bars_are_shares_and_what_had_no_occasion_is_left_out():
    ax = axes()
    draw_recall(ax, recall(), 5.0)
    assert [bar.get_width() for bar in ax.patches] == [4 / 40, 21 / 40, 1.0, 0.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["wrong way", "out of order"]


def test_the_course_of_the_bound_and_of_each_hyperparameter():
    ax = axes()
    draw_bound(ax, fit())
    assert np.array_equal(ax.get_lines()[0].get_ydata(), np.linspace(-900.0, -800.0, 18))
    ax = axes()
    draw_hyperparameters(ax, fit())
    assert len(ax.get_lines()) == 4
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"alpha 2", "beta 3", "gamma 4", "eta 1"}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_advice_gives_the_same_file(tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        draw_tuning(file, tuning(), 5.0)
    assert files[0].read_bytes() == files[1].read_bytes()
    draw_tuning(files[0], tuning()._replace(recall=None, hyperparameters=None), 5.0)
    assert files[0].read_bytes() != files[1].read_bytes()


def test_the_recommendation_in_words_and_as_a_command():
    chosen = choice().candidate
    size = f"--behaviours {chosen.n_behaviours} --topics {chosen.n_topics}"
    assert command(tuning(), ["a b.mp4"]) == f"habitus learn 'a b.mp4' {size} -o scene.model"
    assert tuning(gain=0.02).recommended == Candidate(
        chosen.n_topics, chosen.n_behaviours, "vb", "alpha=2,beta=3,gamma=4,eta=1"
    )
    assert command(tuning(gain=0.02), ["x"]) == (
        f"habitus learn x {size} --learning vb --prior alpha=2,beta=3,gamma=4,eta=1 -o scene.model"
    )
    told = in_words(recall(), 5.0)
    assert told == (
        "at 5 alerts a day this camera would catch 5 of 10 wrong-way drivers and 0 of 10 times "
        "that the whole scene is out of order"
    )


def test_footage_without_any_occasion_is_told_of():
    none = Recall([Share("out of turn", 1.0, 5.0, 0, 0, 0)], 99, 80.0)
    assert in_words(none, 5.0) == "no anomaly could be made from this footage"


def test_an_edge_is_told_of():
    found = choice()
    assert found.candidates[found.best].n_behaviours == 4
    assert "try --behaviours 4,6,8" in edge_note(found)
    inside = choose(found.candidates[:4], found.predictions[:2] * 2, 100)
    assert inside.candidates[inside.best].n_behaviours == 2
    assert edge_note(inside) is None
