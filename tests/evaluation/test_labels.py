"""Documents and words that labels mark, against counts of milliseconds and of cells."""

import numpy as np
import pytest

from habitus import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.evaluation.labels import (
    AbnormalPlace,
    Label,
    Sighting,
    abnormal_documents,
    abnormal_places,
    abnormal_words,
)
from habitus.scene.localisation import Box

MS = 1000


def by_counting(labels, times, clip):
    """Mark half of the milliseconds or more, or the midpoint of a label shorter than a document."""
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
        for label in labels:
            alone = abnormal_documents([label], times, clip)
            assert np.array_equal(by_counting([label], times, clip), alone)


def test_half_a_document_is_enough_and_every_label_marks_one():
    times = np.arange(5.0)
    assert abnormal_documents([Label(1.5, 3.49)], times, 1.0).tolist() == [0, 1, 1, 0, 0]
    assert abnormal_documents([Label(2.9, 3.05)], times, 1.0).tolist() == [0, 0, 1, 0, 0]
    # Two that overlap cover no more than one.
    both = [Label(1.0, 1.3, "a"), Label(1.0, 1.3, "b"), Label(2.7, 4.0)]
    assert abnormal_documents(both, times, 1.0).tolist() == [0, 1, 0, 1, 0]
    assert not abnormal_documents([], times, 1.0).any()


GRID = Vocabulary(4, 6)  # 24 cells of 8 x 8 pixels, 4 words each
FULL = Corpus(np.ones((8, GRID.n_words)), vocabulary=GRID)  # a document a second, every word in it


def words_of(labels, corpus=FULL):
    """Return the abnormal words of each document."""
    flags, counts = abnormal_words(corpus, abnormal_places(labels)), corpus.counts
    return [
        counts.indices[a:b][flags[a:b]].tolist()
        for a, b in zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("box", "cells"),
    [
        (Box(0, 0, 8, 8), [0]),
        (Box(0, 0, 12, 12), [0]),  # right and bottom are not of the box
        (Box(0, 0, 13, 8), [0, 1]),
        (Box(4, 4, 5, 5), [0]),  # left and top are
        (Box(5, 0, 12, 8), []),  # overlaps two cells, with the middle of neither
        (Box(12, 4, 21, 13), [1, 2, 7, 8]),
    ],
)
def test_a_word_is_abnormal_if_the_centre_of_its_cell_is_in_the_box(box, cells):
    expected = [4 * cell + k for cell in cells for k in range(4)]
    assert words_of([Label(3.0, 4.0, "", box)]) == [[], [], [], expected, [], [], [], []]


def test_words_are_abnormal_while_the_label_lasts():
    track = (Sighting(2.0, Box(0, 0, 9, 8)), Sighting(5.0, Box(40, 24, 48, 32)))
    label = Label(2.0, 6.0, "", Box(0, 0, 48, 32), track)
    seen = words_of([label])
    assert seen[2] == list(range(4))
    assert seen[5] == list(range(92, 96))
    assert [len(words) for words in seen] == [0, 0, 4, 0, 0, 4, 0, 0]  # hidden meanwhile
    n_words = [len(words) for words in words_of([label._replace(track=())])]
    assert n_words == [0, 0, 96, 96, 96, 96, 0, 0]
    assert not any(words_of([label._replace(track=(), box=None)]))
    # A document belongs to a label that covers half of it, or to a short one in its middle.
    edges = words_of([Label(1.4, 2.6, "", label.box), Label(4.9, 5.05, "", label.box)])
    assert [len(words) for words in edges] == [0, 96, 96, 0, 96, 0, 0, 0]


def test_abnormal_words_are_those_of_a_loop_over_all_cells():
    rng = np.random.default_rng(0)
    corpus = Corpus(rng.poisson(0.3, (8, GRID.n_words)), vocabulary=GRID)
    for _ in range(20):
        corners = rng.integers(0, 40, (5, 2)), rng.integers(1, 20, (5, 2))
        labels = [
            Label(float(rng.integers(8)), 8.0, "", Box(*map(int, (x, y, x + w, y + h))))
            for (x, y), (w, h) in zip(*corners, strict=True)
        ]
        for t, words in enumerate(words_of(labels, corpus)):
            expected = [
                word
                for word in np.flatnonzero(corpus.counts[[t]].toarray()[0])
                for row, column in [divmod(word // 4, 6)]
                if any(
                    label.start <= t
                    and 8 * column + 4 in range(label.box.left, label.box.right)
                    and 8 * row + 4 in range(label.box.top, label.box.bottom)
                    for label in labels
                )
            ]
            assert words == expected


def test_no_word_is_abnormal_without_a_vocabulary():
    place = AbnormalPlace(0.0, 8.0, Box(0, 0, 48, 32))
    assert abnormal_words(FULL, [place]).all()
    assert not abnormal_words(Corpus(FULL.counts), [place]).any()
