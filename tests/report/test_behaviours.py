import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from habitus.report.behaviours import draw_arrows, draw_behaviours
from habitus.scenes import crossing, crossing_vocabulary
from habitus.words import Direction, Vocabulary


def arrows(probabilities, vocabulary, mass):
    ax = Figure().subplots()
    draw_arrows(ax, np.asarray(probabilities), vocabulary, mass=mass)
    return sum(len(quiver.U) for quiver in ax.collections)


def test_arrows_make_up_the_mass():
    vocabulary = Vocabulary(1, 2)
    probabilities = np.array([0.4, 0.05, 0.3, 0.05, 0.1, 0.05, 0.03, 0.02])
    assert [arrows(probabilities, vocabulary, mass) for mass in (0.3, 0.5, 0.75)] == [1, 2, 3]


def test_arrows_point_where_the_word_goes():
    vocabulary = Vocabulary(2, 3)
    for direction, (dx, dy) in {
        Direction.UP: (0, -1),
        Direction.LEFT: (-1, 0),
        Direction.DOWN: (0, 1),
        Direction.RIGHT: (1, 0),
    }.items():
        probabilities = np.zeros(vocabulary.n_words)
        probabilities[vocabulary.words(1, 2, direction)] = 1
        ax = Figure().subplots()
        draw_arrows(ax, probabilities, vocabulary, mass=0.5)
        (quiver,) = ax.collections
        assert (np.sign(quiver.U[0]), np.sign(quiver.V[0])) == (dx, dy)
        middle = np.array([quiver.X[0] + quiver.U[0] / 2, quiver.Y[0] + quiver.V[0] / 2])
        assert np.abs(middle - [2, 1]).max() < 0.5


def test_a_picture_is_written(tmp_path):
    path = tmp_path / "crossing.png"
    behaviours = crossing().word_given_behaviour
    draw_behaviours(path, {"truth": behaviours}, crossing_vocabulary(), title="A crossing")
    picture = imread(path)
    assert picture.shape[0] > 200
    assert picture.std() > 0.01
    assert list(tmp_path.iterdir()) == [path]
