"""The rule from labels to documents, against a count of every millisecond."""

import numpy as np
import pytest

from habitus.evaluation.labels.label import Label
from habitus.evaluation.truth import abnormal_documents

MS = 1000


def by_counting(labels, times, clip):
    """Half of the milliseconds at least, or the middle of a label shorter than a document."""
    end = round((times[-1] + clip) * MS)
    marked = np.zeros(end + 60 * MS, dtype=bool)
    for label in labels:
        marked[round(label.start * MS) : round(label.end * MS)] = True
    found = []
    for time in times:
        a, b = round(time * MS), round((time + clip) * MS)
        half = 2 * marked[a:b].sum() >= b - a
        short = any(
            label.end - label.start < clip
            and 2 * a <= round((label.start + label.end) * MS) < 2 * b
            for label in labels
        )
        found.append(half or short)
    return np.array(found)


@pytest.mark.parametrize("clip", [0.5, 1.0, 2.0])
def test_documents_are_those_a_count_of_milliseconds_gives(clip):
    rng = np.random.default_rng(0)
    times = np.delete(np.arange(40) * clip, [7, 8, 20])  # with gaps
    for _ in range(50):
        starts = rng.integers(0, round(38 * clip * MS), 6) / MS
        lengths = rng.integers(1, round(3 * clip * MS), 6) / MS
        # Whole milliseconds: what is compared are the rules, not roundings.
        labels = [
            Label(float(s), round(float(s + d), 3)) for s, d in zip(starts, lengths, strict=True)
        ]
        expected = by_counting(labels, times, clip)
        assert np.array_equal(abnormal_documents(labels, times, clip), expected)


def test_just_half_is_enough_and_no_label_is_lost():
    times = np.arange(5.0)
    assert abnormal_documents([Label(1.5, 3.49)], times, 1.0).tolist() == [0, 1, 1, 0, 0]
    assert abnormal_documents([Label(2.9, 3.05)], times, 1.0).tolist() == [0, 0, 1, 0, 0]
    # Two that overlap cover no more than one.
    both = [Label(1.0, 1.3, "a"), Label(1.0, 1.3, "b"), Label(2.7, 4.0)]
    assert abnormal_documents(both, times, 1.0).tolist() == [0, 1, 0, 1, 0]
    assert not abnormal_documents([], times, 1.0).any()
