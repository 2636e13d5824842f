import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.report.figures.drawing import COLOURS, draw_on_axes, probable_arrows, rgb
from habitus.report.figures.scene import behaviour_pictures, draw_behaviours, topic_pictures


def test_arrows_on_axes_make_up_the_mass():
    probabilities = np.array([0.4, 0.05, 0.3, 0.05, 0.1, 0.05, 0.03, 0.02])
    for mass, n in ((0.3, 1), (0.5, 2), (0.75, 3)):
        ax = Figure().subplots()
        draw_on_axes(ax, probable_arrows(probabilities, Vocabulary(1, 2), mass))
        (collection,) = ax.collections
        assert len(collection.get_paths()) == n


def test_a_picture_is_written(tmp_path):
    path = tmp_path / "crossing.png"
    behaviours = crossing().word_given_behaviour
    draw_behaviours(path, {"truth": behaviours}, crossing_vocabulary(), title="A crossing")
    picture = imread(path)
    assert picture.shape[0] > 200
    assert picture.std() > 0.01
    assert list(tmp_path.iterdir()) == [path]


def shown(picture):
    """Directions that a picture shows arrows of."""
    return {
        direction
        for direction, colour in COLOURS.items()
        if (picture == rgb(colour)).all(axis=2).sum() > 100
    }


def test_each_behaviour_shows_its_own_motion_only(lanes):
    pictures = behaviour_pictures(lanes.model, width=480)
    assert {picture.shape for picture in pictures} == {(360, 480, 3)}
    assert sorted(map(sorted, map(shown, pictures))) == [[Direction.DOWN], [Direction.RIGHT]]
    assert len(topic_pictures(lanes.model, width=480)) == 2
