"""The figure of the evidence shows the figures that were found."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from habitus.lab.tuning.advice import Hyperparameters, Tuning
from habitus.lab.tuning.picture import (
    draw_bound,
    draw_hyperparameters,
    draw_recall,
    draw_sizes,
    draw_tuning,
)
from habitus.lab.tuning.recall import FoundShare, RecallEstimate
from habitus.lab.tuning.selection import Prediction, choose, grid
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
    shares = [
        FoundShare("wrong way", s, 5.0, n, 40, 0) for s, n in ((0.5, 4), (1.0, 21), (2.0, 40))
    ]
    shares += [FoundShare("out of turn", strength, 5.0, 0, 0, 0) for strength in (0.5, 1.0, 2.0)]
    return RecallEstimate([*shares, FoundShare("out of order", None, 5.0, 0, 40, 0)], 99, 80.0)


def tuning(gain=0.0):
    return Tuning(
        choice(), Hyperparameters(fit(), choice().predictions[0], gain, 0.01), recall(), []
    )


def axes():
    return Figure().subplots()


def test_lines_error_bars_ring_and_dotted_line_are_those_of_the_predictions():
    ax, found = axes(), choice()
    draw_sizes(ax, found)
    drawn = [line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 2]
    means = np.array([p.mean for p in found.predictions]).reshape(3, 2)
    for row in means:
        assert any(np.array_equal(row, line) for line in drawn)
    level = found.predictions[found.best].mean
    assert any(np.array_equal([level, level], line) for line in drawn)
    (bars, *_) = [each for each in ax.containers if each.get_label() == "2"]
    segments = bars.lines[2][0].get_segments()
    assert [np.ptp(bar[:, 1]) / 2 for bar in segments] == pytest.approx(
        [found.shortfall(k).standard_error for k in (0, 1)], rel=1e-9
    )
    ring = [line for line in ax.get_lines() if line.get_markersize() == 15]
    assert [line.get_ydata()[0] for line in ring] == [found.predictions[found.chosen].mean]


def test_bars_are_shares_and_kinds_without_trials_are_left_out():
    ax = axes()
    draw_recall(ax, recall(), 5.0)
    assert [bar.get_width() for bar in ax.patches] == [4 / 40, 21 / 40, 1.0, 0.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["wrong way", "out of order"]


def test_the_bound_and_each_hyperparameter_are_drawn_over_iterations():
    ax = axes()
    draw_bound(ax, fit())
    assert np.array_equal(ax.get_lines()[0].get_ydata(), np.linspace(-900.0, -800.0, 18))
    ax = axes()
    draw_hyperparameters(ax, fit())
    assert len(ax.get_lines()) == 4
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"alpha 2", "beta 3", "gamma 4", "eta 1"}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_result_gives_the_same_file(tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        draw_tuning(file, tuning(), 5.0)
    assert files[0].read_bytes() == files[1].read_bytes()
    draw_tuning(files[0], tuning()._replace(recall=None, hyperparameters=None), 5.0)
    assert files[0].read_bytes() != files[1].read_bytes()
