"""Labelled events found at a rate of false alarms, against every threshold in plain loops."""

import numpy as np
import pytest

from habitus.evaluation.labels import Label
from habitus.evaluation.matching import (
    _at_all_thresholds,
    _spans,
    chance_of_finding,
    found_at_rates,
    found_at_threshold,
    joined_spans,
    match,
)
from habitus.evaluation.metrics import ScoredDocuments
from habitus.scene.thresholds import JOIN

RATES = (1.0, 6.0, 30.0, 60.0)


def drawn(seed, n=600):
    """Random normality, lowered during random labels; some documents are not judged."""
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.choice(np.arange(5, n - 20, 12), 12, replace=False)) + rng.random(12)
    truth = [Label(float(s), float(s + rng.uniform(0.2, 9))) for s in starts]
    normality = -rng.gamma(1.0, 1.0, n)
    for event in truth:
        normality[int(event.start) : int(event.end) + 1] -= rng.uniform(0, 4)
    judged = rng.random(n) < 0.9
    return ScoredDocuments(
        np.where(judged, normality, 0.0), judged, np.arange(float(n)), 1.0
    ), truth


def joined(scored, level):
    """Events by a plain loop: at most `JOIN` normal documents between abnormal ones."""
    alarms = []
    for t in range(len(scored.times)):
        if scored.judged[t] and scored.normality[t] < level:
            start = scored.times[t]
            if alarms and start - alarms[-1].end <= JOIN * scored.clip:
                alarms[-1] = alarms[-1]._replace(end=start + scored.clip)
            else:
                alarms.append(Label(start, start + scored.clip))
    return alarms


def covered(scored, truth, alarms):
    """Share of the documents beside labels that alarms cover, of those that any ever could."""

    def under(spans, slack=0):
        starts, ends = np.array([(e.start - slack, e.end + slack) for e in spans]).reshape(-1, 2).T
        times = scored.times[:, None]
        return ((starts < times + scored.clip) & (times < ends)).any(axis=1)

    beside = under(joined(scored, np.inf)) & ~under(truth, slack=1)
    return under(alarms)[beside].mean()


def by_trying(scored, truth, rate):
    """Most labels found before false alarms exceed the rate, or alarms cover half of all."""
    best, hours = 0, len(scored.times) * scored.clip / 3600
    for level in [-np.inf, *(np.sort(scored.normality[scored.judged]) + 1e-9)]:
        alarms = joined(scored, level)
        found = match(alarms, truth)
        if len(found.false_alarms) > rate * hours or covered(scored, truth, alarms) > 0.5:
            break
        best = max(best, found.n_found)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_found_at_rates_are_those_of_trying_every_threshold(seed):
    scored, truth = drawn(seed)
    for found in found_at_rates(scored, truth, RATES):
        assert found.found.sum() == by_trying(scored, truth, found.rate)
        assert found.n_false_alarms <= found.rate / 6  # ten minutes
        again = match(joined(scored, found.threshold), truth)
        assert found.found.tolist() == [k is not None for k in again.found_by]
        assert found.n_false_alarms == len(again.false_alarms)
    assert any(found.found.any() for found in found_at_rates(scored, truth, RATES))


def test_a_delay_runs_from_the_start_of_the_label_to_the_end_of_the_document():
    normality = np.zeros(40)
    normality[[12, 13, 30, 33]] = -1.0
    scored = ScoredDocuments(normality, np.ones(40, dtype=bool), np.arange(40.0), 1.0)
    truth = [Label(10.5, 14.0), Label(14.2, 15.0), Label(28.0, 29.5), Label(20, 22)]
    found = found_at_threshold(scored, truth, -0.5)
    assert found.found.tolist() == [True, True, True, False]
    # The second is detected before it starts, the third just after its end.
    assert found.delays[:3].tolist() == [2.5, 0.0, 3.0]
    assert np.isnan(found.delays[3])
    assert (found.median_delay, found.share, found.n_false_alarms) == (2.5, 0.75, 0)
    assert np.isnan(found_at_threshold(scored, truth, -np.inf).median_delay)


def test_a_label_between_two_documents_of_one_event_has_no_delay():
    scored = ScoredDocuments(
        np.array([-1.0, 0, 0, -1.0]), np.ones(4, dtype=bool), np.arange(4) * 2.0, 2.0
    )
    found = found_at_threshold(scored, [Label(3.5, 4.0)], -0.5)
    assert (found.found.tolist(), found.delays.tolist()) == ([True], [0.0])


def test_false_alarms_that_merge_with_true_ones_at_a_higher_threshold_still_count():
    normality = np.zeros(60)
    normality[16], normality[13], normality[40] = -5.0, -4.0, -3.0
    scored = ScoredDocuments(normality, np.ones(60, dtype=bool), np.arange(60.0), 1.0)
    truth = [Label(10.0, 12.5), Label(40.0, 41.0)]
    counts = [
        found_at_threshold(scored, truth, level).n_false_alarms for level in (-4.5, -3.5, -2.5)
    ]
    assert counts == [1, 0, 0]
    strict, loose = found_at_rates(scored, truth, (1.0, 60.0))
    assert (strict.found.sum(), loose.found.sum()) == (0, 2)


def test_one_event_over_all_documents_does_not_find_every_label():
    """Without a limit, the highest threshold would find all labels by a single event."""
    rng = np.random.default_rng(0)
    scored = ScoredDocuments(-rng.random(600), np.ones(600, dtype=bool), np.arange(600.0), 1.0)
    truth = [Label(100, 102), Label(300, 302), Label(500, 502)]
    assert found_at_threshold(scored, truth, 1.0).share == 1.0
    assert found_at_rates(scored, truth, (6.0,))[0].share < 1.0


@pytest.mark.parametrize("rate", [1.0, 6.0, 600.0])
def test_scores_that_tell_no_document_from_another_find_nothing(rate):
    constant = ScoredDocuments(np.zeros(600), np.ones(600, bool), np.arange(600.0), 1.0)
    truth = [Label(100, 102), Label(300, 302), Label(500, 502)]
    coin = constant._replace(normality=-(np.arange(600) % 2.0))  # all documents, once joined
    for scored in (constant, coin, constant._replace(judged=np.arange(600) < 550)):
        (found,) = found_at_rates(scored, truth, (rate,))
        assert (found.found.sum(), found.threshold, found.n_false_alarms) == (0, -np.inf, 0)
        assert chance_of_finding(scored, truth, (rate,), -np.inf).at_rates == [0.0]


def test_an_alarm_may_last_for_less_than_half_of_the_time_beside_labels():
    truth = [Label(100, 102), Label(300, 302)]
    for length, n_found in ((290, 1), (310, 0)):
        scored = ScoredDocuments(
            np.where(np.arange(600) < length, -1.0, 0.0), np.ones(600, bool), np.arange(600.0), 1.0
        )
        assert found_at_rates(scored, truth, (6.0,))[0].found.sum() == n_found


def test_a_gap_in_the_times_separates_events():
    times = np.array([0.0, 1.0, 30.0, 31.0])
    scored = ScoredDocuments(np.zeros(4), np.ones(4, dtype=bool), times, 1.0)
    assert joined_spans(np.ones(4, dtype=bool), scored) == [(0.0, 2.0), (30.0, 32.0)]


def test_chance_is_the_share_that_uninformed_scores_find():
    rng = np.random.default_rng(1)
    shares, chances = [], []
    for seed in range(12):
        scored, truth = drawn(seed)
        scored = scored._replace(normality=-rng.gamma(1.0, 1.0, len(scored.times)))
        (found,) = found_at_rates(scored, truth, (60.0,))
        (chance,), _ = chance_of_finding(scored, truth, (60.0,), -np.inf)
        shares.append(found.share)
        chances.append(chance)
    assert np.mean(shares) == pytest.approx(np.mean(chances), abs=0.12)
    scored, truth = drawn(0)
    (found,) = found_at_rates(scored, truth, (60.0,))
    (chance,), _ = chance_of_finding(scored, truth, (60.0,), -np.inf)
    assert chance < found.share


def test_events_match_labels_where_they_overlap():
    labels = [Label(10, 14), Label(30, 31), Label(50, 60)]
    events = [Label(13, 15), Label(14, 16), Label(31.5, 33), Label(40, 41)]
    found = match(events, labels)
    assert found.found_by == [0, 2, None]
    assert found.false_alarms == [3]
    assert found.n_found == 2


@pytest.mark.parametrize("seed", range(30))
def test_every_threshold_finds_what_joined_events_find(seed):
    """Documents of any length with gaps of any size, some not judged; labels that overlap."""
    rng = np.random.default_rng(seed)
    clip = float(rng.choice([0.4, 1.0, 5.0]))
    times = np.cumsum(clip * rng.choice([1.0, 1.0, 1.0, 1.3, 4.0], 60))
    scored = ScoredDocuments(
        rng.integers(-9, 0, 60).astype(float), rng.random(60) < 0.8, times, clip
    )
    starts = rng.uniform(times[0], times[-1], rng.integers(0, 9))
    truth = [Label(s, s + float(rng.exponential(2 * clip)) + 0.01) for s in starts]
    found = _at_all_thresholds(scored, _spans(truth))
    for level, n_found, n_false_alarms, _ in zip(*found, strict=True):
        events = joined_spans(scored.below(level), scored)
        expected = match(events, truth)
        assert (n_found, n_false_alarms) == (expected.n_found, len(expected.false_alarms))
        at = found_at_threshold(scored, truth, level)
        assert at.found.tolist() == [k is not None for k in expected.found_by]
        assert at.n_false_alarms == n_false_alarms


@pytest.mark.parametrize(("clip", "n_events"), [(0.5, 1), (1.0, 1), (2.0, 2)])
def test_ten_seconds_join_whatever_the_length_of_a_document(clip, n_events):
    normality = np.zeros(40)
    normality[[12, 20]] = -1.0
    scored = ScoredDocuments(normality, np.ones(40, dtype=bool), np.arange(40.0) * clip, clip)
    assert len(joined_spans(normality < -0.5, scored)) == n_events
    found = _at_all_thresholds(scored, _spans([Label(0.0, 0.1)]))
    assert found.n_false_alarms[1] == n_events
