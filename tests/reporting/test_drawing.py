"""Arrows, boxes and text are where they should be, in their colours."""

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.reporting.figures.drawing import (
    COLOURS,
    EVENT,
    arrows_of,
    background,
    draw_boxes,
    draw_heat,
    draw_on_axes,
    draw_on_picture,
    draw_text,
    heaviest_words,
    probable_arrows,
    rgb,
    shortened,
    text_width,
)

GRID = Vocabulary(2, 3, 8, 2)
STEPS = {
    Direction.UP: (0, -1),
    Direction.LEFT: (-1, 0),
    Direction.DOWN: (0, 1),
    Direction.RIGHT: (1, 0),
}


def test_heaviest_words_make_up_the_mass():
    probabilities = np.array([0.4, 0.05, 0.3, 0.05, 0.1, 0.05, 0.03, 0.02])
    found = [heaviest_words(probabilities, mass).tolist() for mass in (0.3, 0.5, 0.75)]
    assert found == [[0], [0, 2], [0, 2, 4]]


@pytest.mark.parametrize("direction", Direction)
def test_an_arrow_lies_in_its_cell_and_points_in_its_direction(direction):
    (outline,) = arrows_of([GRID.words(1, 2, direction)], [1.0], GRID).outlines
    left, top, right, bottom = GRID.boxes([GRID.words(1, 2, direction)])[0]
    margin = 16 * 0.2
    assert (outline > [left - margin, top - margin]).all()
    assert (outline < [right + margin, bottom + margin]).all()
    tip, tail = outline[3], (outline[0] + outline[6]) / 2
    np.testing.assert_allclose(np.sign((tip - tail).round(9)), STEPS[direction])


def test_stronger_arrows_are_wider_and_on_top():
    words = [GRID.words(0, 0, Direction.UP), GRID.words(0, 1, Direction.UP)]
    arrows = arrows_of(words, [1.0, 0.2], GRID)
    widths = np.ptp(arrows.outlines[:, [0, 6], 0], axis=1)
    assert widths[1] > 2 * widths[0]  # the strongest is drawn last


def test_opposite_directions_lie_side_by_side():
    up, down = (
        arrows_of([GRID.words(0, 0, d)], [0.5], GRID).outlines[0, [0, 6], 0]
        for d in (Direction.UP, Direction.DOWN)
    )
    assert up.min() > down.max()


@pytest.mark.parametrize("width", [48, 480])
def test_arrows_have_their_colour_and_place_on_pictures_of_any_size(width):
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


def test_boxes_surround_their_words_with_a_dark_edge():
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


@pytest.mark.parametrize("sides", [(1, 8000), (8000, 1)])
def test_scenes_of_any_shape_have_a_picture_of_some_size(sides):
    v = Vocabulary(*sides)
    picture = background(np.zeros((9, 9, 3), dtype=np.uint8), v, 720)
    draw_heat(picture, np.ones(sides), v)
    assert picture.shape in [(2, 720, 3), (16_000, 2, 3)]


def test_drawing_nothing_is_no_error():
    picture = np.zeros((32, 48, 3), np.uint8)
    draw_on_picture(picture, arrows_of([], [], GRID), GRID)
    draw_boxes(picture, (), GRID, EVENT)
    assert not picture.any()


def test_arrows_on_axes_make_up_the_mass():
    probabilities = np.array([0.4, 0.05, 0.3, 0.05, 0.1, 0.05, 0.03, 0.02])
    for mass, n in ((0.3, 1), (0.5, 2), (0.75, 3)):
        ax = Figure().subplots()
        draw_on_axes(ax, probable_arrows(probabilities, Vocabulary(1, 2), mass))
        (collection,) = ax.collections
        assert len(collection.get_paths()) == n


def drawn_text(text, **look):
    picture = np.zeros((30, 200, 3), np.uint8)
    width = draw_text(picture, text, (4, 2), 20, **look)
    return picture, width


def test_texts_of_a_size_share_a_baseline():
    rows = [
        np.flatnonzero(drawn_text(text)[0].max(axis=(1, 2)) > 128) for text in ("ace", "Älx", "gj")
    ]
    baseline = 2 + round(0.95 * 20)
    assert rows[0].max() == rows[1].max() == baseline - 1
    assert rows[2].max() > baseline + 2  # descenders
    assert rows[1].min() < rows[0].min() - 5  # ascenders


def test_text_is_anti_aliased_in_its_colour_and_as_wide_as_measured():
    picture, width = drawn_text("behaviour 3", colour=EVENT)
    assert (picture == rgb(EVENT)).all(axis=2).sum() > 50
    assert len(np.unique(picture[..., 0])) > 20
    columns = np.flatnonzero(picture.max(axis=(0, 2)))
    assert columns.min() >= 4
    assert width - 4 <= np.ptp(columns) <= width + 1
    assert width == text_width("behaviour 3", 20)
    assert text_width("behaviour 3", 20, bold=True) > width


def test_text_outside_the_picture_is_cut_off():
    picture = np.zeros((20, 30, 3), np.uint8)
    draw_text(picture, "a text that is far too long", (10, 8), 16)
    assert picture[:8].max() == 0
    assert picture[:, :10].max() == 0
    assert picture.max() > 200
    before = picture.copy()
    draw_text(picture, "outside", (40, 30), 16)
    np.testing.assert_array_equal(picture, before)


def test_an_ellipsis_replaces_what_does_not_fit():
    text = "leftward motion where the scene is usually still"
    assert shortened(text, 16, 10_000) == text
    short = shortened(text, 16, 200)
    assert short.endswith("…")
    assert 150 < text_width(short, 16) <= 200
