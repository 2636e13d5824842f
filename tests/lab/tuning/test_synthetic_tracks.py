"""Objects drawn on the grid cell by cell, and found again as tracks."""

import numpy as np
import pytest

from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Direction
from habitus.errors import InvalidInputError
from habitus.lab.tuning.synthetic import find_patches, find_tracks, grid_counts
from reference.traffic import COLUMNS, ROWS, STEP, VOCABULARY, traffic


def corpus_of(counts, **options):
    return Corpus(counts.reshape(len(counts), -1), vocabulary=VOCABULARY, **options)


def one_object(n_documents=5, direction=Direction.RIGHT, step=3):
    """Return two rows by three columns that move without a gap, with 10, 11, ... words per cell."""
    counts = np.zeros((n_documents, ROWS, COLUMNS, 4))
    for k in range(n_documents):
        column = 2 + k * step if direction == Direction.RIGHT else 20 - k * step
        counts[k, 7:9, column : column + 3, direction] = 10 + k
    return counts


@pytest.mark.parametrize("direction", [Direction.RIGHT, Direction.LEFT])
def test_an_object_is_followed_from_its_first_document_to_its_last(direction):
    counts = one_object(direction=direction)
    counts[2, 1, 1, direction] = 5  # noise
    (track,) = find_tracks(corpus_of(counts))
    assert (track.first, track.direction, len(track.patches)) == (0, direction, 5)
    assert track.n_words == 6 * 12
    assert track.speed == pytest.approx(3, rel=1e-12)
    assert track.width == 2
    counts[2, 1, 1, direction] = 0
    assert np.array_equal(track.words(VOCABULARY), counts)


def test_motion_against_its_own_direction_or_on_the_spot_is_no_track():
    backwards = one_object()[::-1]
    assert find_tracks(corpus_of(backwards)) == []
    assert find_tracks(corpus_of(one_object(step=0))) == []


def test_a_new_sequence_and_an_unusable_camera_end_a_track():
    counts = np.concatenate([one_object(7)])
    assert len(find_tracks(corpus_of(counts, lengths=[2, 5]))[0].patches) == 5
    covered = corpus_of(counts, conditions=[0, 0, 0, 0, 1, 0, 0])
    assert [len(track.patches) for track in find_tracks(covered)] == [4]


def test_a_gap_of_three_cells_or_another_size_is_another_object():
    apart = one_object(4, step=3)
    apart[2:] = np.roll(apart[2:], 3, axis=2)
    assert find_tracks(corpus_of(apart)) == []
    swollen = one_object(4)
    swollen[2:] *= 4
    assert find_tracks(corpus_of(swollen)) == []


def test_patches_touch_by_corners_and_are_not_too_small():
    counts = np.zeros((6, 6))
    counts[[0, 1, 2], [0, 1, 2]] = 1, 2, 3
    counts[5, 0] = 9
    (patch,) = find_patches(np.stack([counts / 4, 3 * counts / 4], axis=-1))
    assert patch.by_speed[:, 0].tolist() == [0.25, 0.5, 0.75]
    assert patch.cells.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert patch.counts.tolist() == [1, 2, 3]
    np.testing.assert_allclose(patch.centre, [8 / 6, 8 / 6], rtol=1e-12)


def test_the_objects_of_two_lanes_are_found_with_their_speed():
    tracks = find_tracks(traffic(160))
    assert {track.direction for track in tracks} == {Direction.RIGHT, Direction.DOWN}
    assert len(tracks) >= 20
    assert np.median([track.speed for track in tracks]) == pytest.approx(STEP, rel=0.1)


def test_counts_lie_on_the_grid_by_their_words():
    word = int(VOCABULARY.words(3, 7, Direction.DOWN))
    corpus = Corpus.from_word_ids([[word, word]], vocabulary=VOCABULARY)
    assert grid_counts(corpus)[0, 3, 7, Direction.DOWN] == 2
    with pytest.raises(InvalidInputError, match="this corpus has no vocabulary"):
        find_tracks(Corpus(np.ones((3, 4))))
