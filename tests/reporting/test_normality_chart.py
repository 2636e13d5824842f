"""Timelines, and the chart of the page."""

import numpy as np

from habitus import Corpus, MarkovClusteringTopicModel
from habitus.reporting.normality_chart import (
    THRESHOLD_HEIGHT,
    WIDTH,
    chart_heights,
    chart_of,
    equal_runs,
    normality_chart,
)
from habitus.scene.detection import Detection


def test_heights_keep_the_order_and_meet_at_the_threshold():
    normality = np.linspace(-500, 2, 400)
    heights = chart_heights(normality, -7.0, np.ones(400, bool))
    assert (np.diff(heights) >= 0).all()
    assert heights.min() >= 0
    assert heights.max() == 1
    at_threshold = chart_heights(np.array([-7.0, 2.0]), -7.0, np.ones(2, bool))[0]
    np.testing.assert_allclose(at_threshold, THRESHOLD_HEIGHT, rtol=1e-12)
    assert ((heights < THRESHOLD_HEIGHT) == (normality < -7.0)).all()


def test_unjudged_documents_have_no_height():
    heights = chart_heights(np.array([0.0, -3.0, 0.0]), -1.0, np.array([True, True, False]))
    assert np.isnan(heights).tolist() == [False, False, True]


def detection_of(times, lengths):
    n = len(times)
    corpus = Corpus(np.ones((n, 4)), times=times, lengths=lengths)
    model = MarkovClusteringTopicModel()
    return Detection(
        source="x",
        corpus=corpus,
        model=model,
        normality=np.zeros(n),
        judged=np.ones(n, bool),
        abnormal=np.zeros(n, bool),
        behaviours=np.zeros(n, int),
        misfit=np.zeros(n),
        shift=np.zeros(n),
        surprisals=np.zeros(4 * n),
        threshold=-1.0,
        abnormal_words={},
        events=[],
        moments=[],
        expected_false_alarms=None,
    )


def test_times_increase_across_sequences():
    again = normality_chart(detection_of([0, 1, 2, 0, 1], [3, 2]))
    assert again.starts.tolist() == [0, 1, 2, 3, 4]
    gap = normality_chart(detection_of([10, 11, 50, 51], [2, 2]))
    assert (gap.begin, gap.end) == (10, 52)


def test_runs_cover_everything_once():
    rng = np.random.default_rng(0)
    values, breaks = rng.integers(0, 3, 200), rng.random(200) < 0.1
    found = equal_runs(values, breaks)
    assert [t for a, b, _ in found for t in range(a, b + 1)] == list(range(200))
    for a, b, value in found:
        assert (values[a : b + 1] == value).all()
        assert not breaks[a + 1 : b + 1].any()


def test_the_curve_of_long_footage_keeps_its_least_normal_document():
    n = 50_000
    found = detection_of(np.arange(n), [n])
    found.normality[31_234] = -9.0
    chart = chart_of(found, normality_chart(found), None)
    assert len(chart.curve) < 100_000
    points = [tuple(map(float, point.split())) for point in chart.curve[1:].split("L")]
    x, _ = max(points, key=lambda point: point[1])
    assert abs(x - WIDTH * 31_234 / n) < 1


def test_ticks_are_few_and_round(lanes):
    for n in (5, 90, 1200, 86_400, 700_000):
        found = detection_of(np.arange(n), [n])
        ticks = chart_of(found, normality_chart(found), None).ticks
        assert 1 < len(ticks) <= 9
        assert ticks[0].text == "0:00"
