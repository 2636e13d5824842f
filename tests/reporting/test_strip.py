"""The strip under an annotated video."""

import numpy as np
import pytest

from habitus.reporting.figures.drawing import EVENT, PAPER, behaviour_colour, rgb, text_width
from habitus.reporting.film import PAST, WINDOW, Strip, window_at
from habitus.reporting.normality_chart import NormalityChart, normality_chart


def test_the_window_follows_the_time_within_the_footage():
    n = 1000
    none = np.zeros(n)
    timeline = NormalityChart(np.arange(n) + 7.0, 1.0, none, none.astype(int), none.astype(bool))
    assert window_at(7, timeline) == (7, 7 + WINDOW)
    assert window_at(1007, timeline) == (1007 - WINDOW, 1007)
    assert window_at(500, timeline)[0] == 500 - PAST * WINDOW
    short = timeline._replace(starts=timeline.starts[:60])
    assert window_at(40, short) == (7, 67)


@pytest.fixture(scope="module")
def strip(lanes):
    return Strip(normality_chart(lanes.detection), lanes.detection.event_spans, 720)


def test_behaviours_are_shown_in_their_colours(strip, lanes):
    band = strip.chart[strip.bottom + 3 :][: strip.band]
    for z in (0, 1):
        columns = (band == rgb(behaviour_colour(z))).all(axis=2).any(axis=0)
        share = (lanes.detection.behaviours == z).mean()
        assert columns.mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("repeats", [1, 3, 20])
def test_an_announcement_of_any_length_stays_in_the_line(strip, repeats):
    quiet = strip.draw(30.0, 1, None)
    text = " ".join(["leftward motion where downward motion is usual"] * repeats)
    picture = strip.draw(30.0, 1, (12, text))
    line = strip.font * 2
    np.testing.assert_array_equal(picture[line:], quiet[line:])
    ground = (picture[:line] == rgb(EVENT)).all(axis=2)
    letters = ~ground[:, ground.any(axis=0)]
    assert 0.05 < letters.mean() < 0.6
    # A margin on all sides: letters are not cut off.
    assert ground[0, -200:].all()
    assert ground[-1, -200:].all()
    assert ground[:, -strip.font // 2 :].all()


def test_the_line_of_text_starts_with_the_time(strip):
    picture = strip.draw(30.0, None, None)
    white = (picture[: strip.font * 2] == rgb(PAPER)).all(axis=2).any(axis=0)
    columns = np.flatnonzero(white)
    assert columns.min() >= 8
    assert columns.max() <= 8 + text_width("0:30", strip.font)
