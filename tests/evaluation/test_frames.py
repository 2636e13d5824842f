"""Figures per frame and per pixel against a plain count at every threshold."""

import cv2
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from habitus.errors import InvalidInputError
from habitus.evaluation.assessment import LabelledClip, evaluate_clips, evaluate_model
from habitus.evaluation.frames import assess_frames, assess_pixels, score_frames
from habitus.evaluation.label_files import ClipRanges, read_pixels
from habitus.scene.localisation import Box
from reference.planted import BOX, STARTS, detector_of

SIZE = (40, 30)
N_FRAMES = np.array([3, 4, 2, 5, 5, 5])


@pytest.fixture
def frames():
    """Six documents of two clips, with scores that agree with the labels in part."""
    clips = [np.arange(9) >= 5, np.isin(np.arange(15), [0, 1, 12])]
    scores = np.array([1.0, 3.0, 2.0, 5.0, 2.0, 4.0])
    return score_frames(scores, scores > 2.5, N_FRAMES, clips)


def test_a_frame_has_the_score_of_its_document(frames):
    assert frames.abnormality.tolist() == [1] * 3 + [3] * 4 + [2] * 2 + [5] * 5 + [2] * 5 + [4] * 5
    assert frames.alarmed.tolist() == (frames.abnormality > 2.5).tolist()
    found = assess_frames(frames, n_clips=2)
    assert (found.n_frames, found.n_abnormal, found.n_clips) == (24, 7, 2)
    truth, scores = frames.abnormal, frames.abnormality
    expected = roc_auc_score(truth, scores)
    assert found.ranking["roc_auc"].value == pytest.approx(expected, rel=1e-12)
    assert found.ranking["average_precision"].value == average_precision_score(truth, scores)
    assert found.ranking["average_precision"].chance == truth.mean()


def test_smoothing_stays_within_a_clip(frames):
    clips = [frames.abnormal[:9], frames.abnormal[9:]]
    constant = score_frames(
        np.array([1.0, 1.0, 1.0, 7.0, 7.0, 7.0]), np.zeros(6, bool), N_FRAMES, clips, smoothing=2.0
    )
    assert constant.abnormality == pytest.approx([1] * 9 + [7] * 15, rel=1e-9)
    step = score_frames(
        np.array([1.0, 5.0, 5.0, 7.0, 7.0, 7.0]), np.zeros(6, bool), N_FRAMES, clips, smoothing=0.5
    )
    assert (np.diff(step.abnormality[:9]) > 0).all()


def test_the_equal_error_rate_is_where_both_errors_are_equal():
    truth = np.repeat([True, False], 4)
    scores = np.array([9.0, 8.0, 7.0, 2.0, 6.0, 3.0, 1.0, 0.0])
    frames = score_frames(scores, scores > 5, np.ones(8, np.int64), [truth])
    assert assess_frames(frames, n_clips=1).equal_error_rate == pytest.approx(0.25)


def pixel_numbers(box):
    grid = np.zeros(SIZE[::-1], bool)
    grid[box.top : box.bottom, box.left : box.right] = True
    return np.flatnonzero(grid)


def test_pixels_against_a_count_at_every_threshold(frames):
    # A frame is covered by 100 %, 40 %, 30 % and 0 % of its pixels.
    true = {5: Box(0, 0, 10, 10), 6: Box(6, 0, 16, 10), 9: Box(7, 0, 17, 10), 21: Box(20, 0, 30, 5)}
    pixels = {frame: pixel_numbers(box) for frame, box in true.items()}
    boxes = {document: [Box(0, 0, 10, 10)] for document in (1, 3, 5)}
    found = assess_pixels(frames, pixels, boxes, SIZE)
    located = np.array([True, True, False, False])
    scores, normal = frames.abnormality[[5, 6, 9, 21]], frames.abnormality[~frames.abnormal]
    points = [
        ((normal >= level).mean(), ((scores >= level) & located).mean())
        for level in (np.inf, 5, 4, 3, 2, 1)
    ]
    x, y = np.array(points).T
    assert found.roc_auc == pytest.approx(float(np.trapezoid(y, x)))
    assert found.roc.y.max() == 0.5
    assert (found.n_frames, found.n_alarmed, found.n_met) == (4, 4, 3)
    assert found.met_chance == pytest.approx(
        np.mean([3 / 4 if d in boxes else 0 for d in range(6)])
    )
    assert found.chance == pytest.approx(0.5 * 0.5 * 0.5)


def test_boxes_as_the_masks_are_locate_every_frame(frames):
    where = {document: Box(3 * document, 2, 3 * document + 8, 9) for document in range(6)}
    true = np.flatnonzero(frames.abnormal)
    pixels = {f: pixel_numbers(where[d]) for f, d in zip(true, frames.documents[true], strict=True)}
    found = assess_pixels(frames, pixels, {d: [box] for d, box in where.items()}, SIZE)
    assert found.roc_auc == pytest.approx(assess_frames(frames, n_clips=2).ranking["roc_auc"].value)
    assert found.detection_rate == pytest.approx(
        1 - assess_frames(frames, n_clips=2).equal_error_rate
    )
    nowhere = assess_pixels(frames, pixels, {}, SIZE)
    assert (nowhere.roc_auc, nowhere.detection_rate, nowhere.n_met) == (0, 0, 0)


def test_masks_are_read_by_the_number_of_their_frame(tmp_path):
    mask = np.zeros(SIZE[::-1], np.uint8)
    cv2.imwrite(str(tmp_path / "003.png"), mask)
    mask[2, 5:7] = 255
    for name in ("010.png", "4.png", "020.png"):
        cv2.imwrite(str(tmp_path / name), mask)
    found = read_pixels(tmp_path, 20, SIZE)
    assert {frame: where.tolist() for frame, where in found.items()} == {
        frame: [85, 86] for frame in (4, 10)
    }
    assert read_pixels(tmp_path / "absent", 20, SIZE) == {}
    with pytest.raises(InvalidInputError, match=r"40x30 pixels, but the video has 40x31"):
        read_pixels(tmp_path, 20, (40, 31))
    cv2.imwrite(str(tmp_path / "frame-1.png"), mask)
    with pytest.raises(InvalidInputError, match=r"frame-1.png: a mask is named by the number"):
        read_pixels(tmp_path, 20, SIZE)


@pytest.fixture(scope="module")
def clips(judged):
    """The planted corpus as three clips, and its labels in frames; the last clip has none."""
    parts = [judged.corpus.take(np.arange(a, b)) for a, b in ((0, 200), (200, 400), (400, 450))]
    ranges = {"a": [], "b": []}
    for start in STARTS:
        first = 25 * (start % 200)
        ranges["a" if start < 200 else "b"].append((first + 1, first + 100))
    named = zip(("x/a.mp4", "b.corpus", "c.mp4"), parts, strict=True)
    return [LabelledClip(name, part) for name, part in named], ClipRanges("labels", ranges)


def test_clips_together_are_judged_as_one_video_with_gaps(judged, clips):
    """The same documents, of which the model forgets the past where a clip starts."""
    found = evaluate_clips(detector_of(judged.model), *clips, share=0.05)
    whole = evaluate_model(detector_of(judged.model), judged.corpus, judged.labels, share=0.05)
    assert (found.n_documents, found.n_abnormal) == (whole.n_documents, whole.n_abnormal)
    assert len(found.labels) == len(whole.labels)
    assert found.chosen.found.tolist() == whole.chosen.found.tolist()
    for name, estimate in found.documents.items():
        assert estimate.value == pytest.approx(whole.documents[name].value, abs=0.01), name
    # Every document has 25 frames, all normal or all abnormal.
    for name, estimate in found.frames.ranking.items():
        assert estimate.value == pytest.approx(found.documents[name].value), name
    assert (found.frames.n_clips, found.frames.n_frames) == (3, 450 * 25)
    assert found.frames.pixels is None


def test_masks_of_clips_are_compared_with_boxes(judged, clips, tmp_path):
    v = judged.corpus.vocabulary
    mask = np.zeros((v.height, v.width), np.uint8)
    mask[BOX.top : BOX.bottom, BOX.left : BOX.right] = 255
    for clip, ranges in clips[1].ranges.items():
        (tmp_path / clip).mkdir()
        for first, last in ranges:
            for frame in range(first - 1, last):
                cv2.imwrite(str(tmp_path / clip / f"{frame:05d}.png"), mask)
    detector = detector_of(judged.model)
    pixels = evaluate_clips(detector, *clips, masks=tmp_path, share=0.05).frames.pixels
    assert pixels.n_frames == 100 * len(STARTS)
    assert pixels.n_alarmed >= 50 * len(STARTS)
    assert pixels.n_met / pixels.n_alarmed > 0.8 > 2 * pixels.met_chance
    assert pixels.chance < pixels.roc_auc


def test_labels_of_other_clips_are_refused(judged, clips):
    detector = detector_of(judged.model)
    with pytest.raises(InvalidInputError, match=r"labels of the clips y, z, but the footage is a"):
        evaluate_clips(detector, clips[0], ClipRanges("labels", {"z": [(1, 2)], "y": [(1, 2)]}))
    with pytest.raises(InvalidInputError, match="several clips are called a"):
        evaluate_clips(detector, [*clips[0], clips[0][0]], clips[1])
    with pytest.raises(InvalidInputError, match=r"labels of 5200 frames, but x/a.mp4 has 5000"):
        evaluate_clips(detector, clips[0], ClipRanges("labels", {"a": [(1, 5200)]}))
