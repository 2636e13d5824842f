import cv2
import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.report.figures.drawing import (
    COLOURS,
    EVENT,
    arrows_of,
    draw_boxes,
    draw_on_picture,
    heaviest_words,
    rgb,
)

GRID = Vocabulary(2, 3, 8, 2)
WAYS = {
    Direction.UP: (0, -1),
    Direction.LEFT: (-1, 0),
    Direction.DOWN: (0, 1),
    Direction.RIGHT: (1, 0),
}


def test_the_heaviest_words_make_up_the_mass():
    probabilities = np.array([0.4, 0.05, 0.3, 0.05, 0.1, 0.05, 0.03, 0.02])
    found = [heaviest_words(probabilities, mass).tolist() for mass in (0.3, 0.5, 0.75)]
    assert found == [[0], [0, 2], [0, 2, 4]]


@pytest.mark.parametrize("direction", Direction)
def test_an_arrow_is_in_its_cell_and_points_where_the_word_goes(direction):
    (outline,) = arrows_of([GRID.words(1, 2, direction)], [1.0], GRID).outlines
    left, top, right, bottom = GRID.boxes([GRID.words(1, 2, direction)])[0]
    margin = 16 * 0.2
    assert (outline > [left - margin, top - margin]).all()
    assert (outline < [right + margin, bottom + margin]).all()
    tip, tail = outline[3], (outline[0] + outline[6]) / 2
    np.testing.assert_allclose(np.sign((tip - tail).round(9)), WAYS[direction])


def test_the_stronger_the_wider_and_on_top():
    words = [GRID.words(0, 0, Direction.UP), GRID.words(0, 1, Direction.UP)]
    arrows = arrows_of(words, [1.0, 0.2], GRID)
    widths = np.ptp(arrows.outlines[:, [0, 6], 0], axis=1)
    assert widths[1] > 2 * widths[0]  # the strongest is drawn last


def test_opposite_ways_lie_side_by_side():
    up, down = (
        arrows_of([GRID.words(0, 0, d)], [0.5], GRID).outlines[0, [0, 6], 0]
        for d in (Direction.UP, Direction.DOWN)
    )
    assert up.min() > down.max()


@pytest.mark.parametrize("width", [48, 480])
def test_on_a_picture_of_any_size_arrows_have_their_colour_and_place(width):
    picture = np.full((width * 2 // 3, width, 3), 128, np.uint8)
    words = [GRID.words(0, 0, Direction.RIGHT), GRID.words(1, 2, Direction.UP)]
    draw_on_picture(picture, arrows_of(words, [1, 1], GRID), GRID)
    for word, place in zip(words, ((0, 0), (1, 2)), strict=True):
        direction = Direction(int(word) % 4)
        cell = width // 3
        row, column = (n * cell for n in place)
        here = np.abs(picture.astype(int) - rgb(COLOURS[direction])).sum(axis=2) < 20
        inside = here[row : row + cell, column : column + cell].sum()
        assert inside > 0.1 * cell**2
        assert inside > 0.95 * here.sum()


def test_boxes_surround_their_words_in_a_colour_and_a_dark_edge():
    picture = np.full((320, 480, 3), 128, np.uint8)
    draw_boxes(picture, [(16, 8, 32, 24)], GRID, EVENT)
    yellow = (picture == rgb(EVENT)).all(axis=2)
    half = 80  # a cell, in pixels of this picture
    rows, columns = np.nonzero(yellow)
    found = (columns.min(), rows.min(), columns.max(), rows.max())
    np.testing.assert_allclose(found, (160 - half, 0, 320 + half, 240 + half - 1), atol=4)
    assert (picture[80:240, 160:320] == 128).all()
    around = cv2.dilate(yellow.astype(np.uint8), np.ones((5, 5))) > 0
    assert (picture[around & ~yellow].sum(axis=1) < 3 * 128).any()


def test_nothing_to_draw_is_no_error():
    picture = np.zeros((32, 48, 3), np.uint8)
    draw_on_picture(picture, arrows_of([], [], GRID), GRID)
    draw_boxes(picture, (), GRID, EVENT)
    assert not picture.any()
