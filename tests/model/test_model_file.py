"""Contents of a model file: what other rooms add to them is ignored when a model is restored."""

import numpy as np
import pytest

from habitus import MarkovClusteringTopicModel
from habitus.files import Contents
from habitus.model.model_file import model_contents, restore_model

COUNTS = np.random.default_rng(0).poisson(2, (12, 24))


@pytest.mark.parametrize("learning", ["em", "vb", "gibbs", "blocked-gibbs"])
def test_contents_restore_the_model_and_foreign_entries_are_ignored(learning):
    model = MarkovClusteringTopicModel(
        3, 2, learning=learning, n_iterations=3, burn_in=3, n_samples=2, thinning=2, random_state=5
    ).fit(COUNTS)
    header, tensors = model_contents(model)
    assert not [name for name in tensors if name.startswith("calibration.")]
    back = restore_model(
        Contents(header | {"calibration": {"level": 3}}, tensors | {"calibration.x": np.ones(3)}),
        MarkovClusteringTopicModel,
    )
    assert back.get_params() == model.get_params()
    assert np.array_equal(back.score_samples(COUNTS), model.score_samples(COUNTS))
    assert len(back.samples_) == len(model.samples_)
