"""The graph of the behaviour cycle."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from habitus.reporting.figures.scene import (
    INK_PLACEHOLDER,
    cycle_order,
    cycle_svg,
    draw_cycle,
    duration_text,
)

XI = np.array(
    [
        [0.9, 0.0, 0.18, 0.0],
        [0.08, 0.8, 0.0, 0.0],
        [0.0, 0.2, 0.8, 0.5],
        [0.02, 0.0, 0.02, 0.5],
    ]
)


def drawn(xi, clip=1.0):
    ax = Figure().subplots()
    draw_cycle(ax, xi, clip)
    circles = [patch for patch in ax.patches if isinstance(patch, Circle)]
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    return circles, arrows, [text.get_text() for text in ax.texts]


def test_transitions_and_durations_are_labelled():
    circles, arrows, texts = drawn(XI, clip=2.0)
    for text in ("80%", "20%", "100%", "90%", "10%", "20 s", "10 s", "4.0 s"):
        assert text in texts
    assert len(circles) == 4
    assert len(arrows) == 4 + 6  # a loop per behaviour, and the transitions


def test_rare_transitions_are_left_out():
    xi = np.array([[0.9, 0.001, 0.1], [0.096, 0.9, 0.0], [0.004, 0.099, 0.9]])
    _, arrows, texts = drawn(xi)
    assert len(arrows) == 3 + 3
    assert "4%" not in texts


def test_areas_of_circles_are_proportional_to_shares():
    xi = np.array([[0.9, 0.3], [0.1, 0.7]])
    circles, _, texts = drawn(xi)
    assert {"75%", "25%"} < set(texts)
    areas = [circle.radius**2 for circle in circles]
    assert areas[0] / areas[1] == pytest.approx(3, rel=1e-6)


def test_the_order_follows_the_cycle():
    cycle = np.eye(5)[:, [2, 3, 4, 0, 1]]
    order = cycle_order(0.9 * np.eye(5) + 0.1 * cycle)
    assert [cycle[b, a] for a, b in pairwise(order)] == [1] * 4


@pytest.mark.parametrize("xi", [np.eye(1), np.eye(3), np.array([[1.0, 0.5], [0.0, 0.5]])])
def test_behaviours_that_never_end(xi):
    _, _, texts = drawn(xi)
    assert "for ever" in texts


def test_units_of_durations():
    said = [duration_text(seconds) for seconds in (0.5, 9.94, 9.96, 75, 119, 600, np.inf)]
    assert said == ["0.5 s", "9.9 s", "10 s", "75 s", "119 s", "10 min", "for ever"]


def test_the_svg_takes_the_colour_of_the_page_and_is_reproducible(documents):
    svg = cycle_svg(documents.model)
    assert ET.fromstring(svg).tag.endswith("svg")  # noqa: S314
    assert "currentColor" in svg
    assert INK_PLACEHOLDER not in svg
    assert "<metadata" not in svg
    assert svg == cycle_svg(documents.model)
