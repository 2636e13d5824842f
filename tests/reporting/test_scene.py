"""Figures of models and corpora."""

import copy

import numpy as np
from matplotlib.image import imread

from habitus import MarkovClusteringTopicModel
from habitus.corpus.vocabulary import Direction
from habitus.model.inspection import long_run_shares
from habitus.model.parameters import Parameters
from habitus.reporting.figures.drawing import COLOURS, FAULT, rgb
from habitus.reporting.figures.scene import (
    _panel_groups,
    behaviour_captions,
    behaviour_pictures,
    draw_corpus,
    draw_model,
)


def test_a_figure_of_a_model(lanes, documents, tmp_path):
    plain = MarkovClusteringTopicModel(2, 3, random_state=0)
    plain.fit(np.random.default_rng(0).poisson(4, (40, 9)))
    sizes = {}
    for name, model in (("lanes", lanes.model), ("crossing", documents.model), ("plain", plain)):
        draw_model(tmp_path / f"{name}.png", model, title=name)
        picture = imread(tmp_path / f"{name}.png")
        assert picture.std() > 0.05
        sizes[name] = picture.shape[:2]
    assert sizes["plain"][0] < sizes["lanes"][0]
    assert sizes["plain"][1] < sizes["crossing"][1]
    assert len(list(tmp_path.iterdir())) == 3


def test_topics_that_no_behaviour_uses_are_not_drawn(lanes):
    """They are of all words alike, and looked as if everything moved everywhere."""
    model = lanes.model
    phi, theta, pi, xi = model.parameters_
    phi = np.column_stack((phi, np.full(len(phi), 1 / len(phi))))
    theta = np.vstack((theta * 0.999, np.full(theta.shape[1], 0.001)))
    model = copy.copy(model)
    model.parameters_ = Parameters(phi, theta, pi, xi)
    group = _panel_groups(model)[1]
    assert group.names == ["topic 1", "topic 2"]
    assert group.words.shape == (len(phi), 2)
    assert group.heading.startswith("Topics (1 more are not used): ")


def test_captions_give_share_and_duration(lanes):
    model = lanes.model
    shares = long_run_shares(model.parameters_.xi)
    for caption, share in zip(behaviour_captions(model), shares, strict=True):
        assert caption.startswith(f"{share:.0%} of the time, mean duration ")
        assert caption.endswith(" s")


def shown(picture):
    """Return the directions of the arrows in a picture."""
    return {
        direction
        for direction, colour in COLOURS.items()
        if (picture == rgb(colour)).all(axis=2).sum() > 100
    }


def test_each_behaviour_shows_its_own_motion_only(lanes):
    pictures = behaviour_pictures(lanes.model, width=480)
    assert {picture.shape for picture in pictures} == {(360, 480, 3)}
    assert sorted(map(sorted, map(shown, pictures))) == [[Direction.DOWN], [Direction.RIGHT]]


def test_a_figure_of_a_corpus_shows_motion_and_faults(lanes, tmp_path):
    draw_corpus(tmp_path / "lanes.png", lanes.corpus, title="lanes")
    picture = (imread(tmp_path / "lanes.png")[..., :3] * 255).round().astype(np.uint8)
    assert {Direction.DOWN, Direction.RIGHT, Direction.LEFT} <= shown(picture)
    assert not (np.abs(picture.astype(int) - rgb(FAULT)).max(axis=2) < 10).any()
