"""Labels per frame or as masks: their times, and refusal of other footage."""

from time import process_time

import cv2
import numpy as np
import pytest

from habitus import Corpus, Vocabulary
from habitus.errors import InvalidInputError
from habitus.evaluation.label_files import parse_labels, read_labels
from habitus.evaluation.labels import (
    Label,
    LabelledFootage,
    abnormal_documents,
    abnormal_places,
    abnormal_words,
    footage_of_corpus,
)
from habitus.evaluation.matching import chance_of_finding, found_at_rates
from habitus.evaluation.metrics import ScoredDocuments
from habitus.lab import write_boxes

FPS = 10


def footage(seconds=20, *, tail=0, clip=1.0):
    """Return footage at ten frames per second; `tail` frames of a last document."""
    n_frames = np.array([round(FPS * clip)] * round(seconds / clip) + [tail] * (tail > 0))
    return LabelledFootage("a video", np.arange(len(n_frames)) * clip, clip, n_frames, (40, 30))


def written(path, text):
    path.write_text(text)
    return path


def flags_of(labels, n):
    """Return whether the midpoint of each frame is in a label."""
    middles = (np.arange(n) + 0.5) / FPS
    return np.array([any(la.start <= m < la.end for la in labels) for m in middles])


FORMS = {
    "lines.txt": lambda flags: "".join(f"{int(f)}\n" for f in flags),
    "row.txt": lambda flags: ",".join(str(int(f)) for f in flags),
    "ranges.txt": lambda flags: "\n".join(f"{a}:{b}" for a, b in ranges_of(flags)),
    "ucsd.m": lambda flags: (
        "TestVideoFile = {};\nTestVideoFile{end+1}.gt_frame = ["
        + ", ".join(f"{a}:{b}" for a, b in ranges_of(flags))
        + "];\n"
    ),
}


def ranges_of(flags):
    """Return first and last frame of each run of flags, from 1, by a plain loop."""
    found = []
    for k, flag in enumerate(flags, start=1):
        if flag and found and found[-1][1] == k - 1:
            found[-1][1] = k
        elif flag:
            found.append([k, k])
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tail", [0, 6])
def test_every_list_of_frames_marks_its_frames(tmp_path, form, tail):
    flags = np.random.default_rng(0).random(200 + tail) < 0.3
    labels = read_labels(written(tmp_path / form, FORMS[form](flags)), footage(tail=tail))
    assert np.array_equal(flags_of(labels, len(flags)), flags)


def test_numpy_files(tmp_path):
    flags = np.random.default_rng(1).random(200) < 0.3
    for values in (flags, flags.astype(np.uint8), flags[None].astype(float)):
        np.save(tmp_path / "gt.npy", values)
        assert np.array_equal(flags_of(read_labels(tmp_path / "gt.npy", footage()), 200), flags)
    np.save(tmp_path / "gt.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="not a NumPy file of numbers"):
        read_labels(tmp_path / "gt.npy", footage())
    with pytest.raises(InvalidInputError, match="cannot be read: No such file"):
        read_labels(tmp_path / "absent.npy", footage())
    np.save(tmp_path / "gt.npy", np.arange(200))
    with pytest.raises(InvalidInputError, match="expected one 0 or 1 per frame"):
        read_labels(tmp_path / "gt.npy", footage())


def test_one_of_several_videos_is_chosen(tmp_path):
    text = "x{end+1}.gt_frame = [60:152];\nx{end+1}.gt_frame = [50:70, 90:200];\n"
    path = written(tmp_path / "ped1.m", text)
    assert read_labels(path, footage(), line=1) == [Label(pytest.approx(5.9), pytest.approx(15.2))]
    assert len(read_labels(path, footage(), line=2)) == 2
    with pytest.raises(InvalidInputError, match="line 3 of 2 does not exist"):
        read_labels(path, footage(), line=3)


def test_a_line_is_chosen_only_in_files_with_one_video_per_line(tmp_path):
    text = "60:152\n50:70, 90:200\n"
    assert len(read_labels(written(tmp_path / "ranges.txt", text), footage(), line=2)) == 2
    np.save(tmp_path / "gt.npy", np.zeros(200))
    (tmp_path / "masks").mkdir()
    written(tmp_path / "table.csv", "start,end\n1,2\n")
    for name in ("gt.npy", "masks", "table.csv"):
        with pytest.raises(InvalidInputError, match="there is no line 1 to choose"):
            read_labels(tmp_path / name, footage(), line=1)


def test_masks_give_times_and_boxes(tmp_path):
    for k in range(200):
        mask = np.zeros((30, 40), np.uint8)
        if 42 <= k < 61:
            mask[3:9, k - 40 : k - 30] = 255
        if k == 50:
            mask[20:30, 0:5] = 1
        cv2.imwrite(str(tmp_path / f"{k + 1}.bmp"), mask)  # 2 comes before 10
    (label,) = read_labels(tmp_path, footage())
    assert (label.start, label.end) == (pytest.approx(4.2), pytest.approx(6.1))
    assert label.box == (0, 3, 30, 30)
    assert label.boxes(4.2, 4.25) == [(2, 3, 12, 9)]
    assert sorted(label.boxes(4.99, 5.01)) == [(0, 20, 5, 30), (10, 3, 20, 9)]
    assert label.boxes(9.0, 9.5) == []
    with pytest.raises(InvalidInputError, match="masks of 40x30 pixels, but a video has 360x288"):
        read_labels(tmp_path, footage()._replace(size=(360, 288)))
    with pytest.raises(InvalidInputError, match="labels of 200 frames, but a video has 500"):
        read_labels(tmp_path, footage(50))
    (tmp_path / "201.bmp").write_text("no image")
    with pytest.raises(InvalidInputError, match=r"201\.bmp: not an image"):
        read_labels(tmp_path, footage())


def test_boxes_per_frame_are_those_of_the_junction(tmp_path, scene):
    write_boxes(scene, tmp_path / "boxes.csv")
    labels = read_labels(tmp_path / "boxes.csv")
    truth = sorted(scene.truth(), key=lambda event: event.start)
    assert len(truth) == 3
    for label, event in zip(labels, truth, strict=True):
        assert (label.kind, label.box) == (event.kind, event.box)
        assert label.start == pytest.approx(event.start, abs=1e-3)
        assert label.end == pytest.approx(event.end, abs=2e-3)
        frame, *box = event.boxes[len(event.boxes) // 2].tolist()
        assert label.boxes(frame / 12.5 - 0.002, frame / 12.5 + 0.002) == [tuple(box)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "f.txt",
            "0\n" * 250,
            "labels of 250 frames, but a video has 200 in 20 s (12.5 labels "
            "per second, 10 frames per second): is this another video, or another frame rate?",
        ),
        ("f.txt", "0\n" * 199, "another frame rate?"),
        ("f.txt", "300:310", "labels of 310 frames, but a video has 200"),
        (
            "i.csv",
            "start,end,kind\n30,40,u-turn\n",
            "u-turn from 30 to 40 s is outside the video, which runs from 0 to 20 s",
        ),
    ],
)
def test_labels_of_other_footage_are_refused_in_one_line(tmp_path, name, text, message):
    with pytest.raises(InvalidInputError) as raised:
        read_labels(written(tmp_path / name, text), footage())
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_labels_of_frames_need_footage(tmp_path):
    for text in ("0 1 1", "5:9", "clip,first_frame,last_frame\na,0,1\n"):
        with pytest.raises(InvalidInputError, match="need the video that they are of"):
            read_labels(written(tmp_path / "x", text))
    bare = footage_of_corpus(Corpus(np.ones((3, 4))), "bare")
    with pytest.raises(InvalidInputError, match="number of frames per document is not known"):
        read_labels(written(tmp_path / "x", "0 1 1"), bare)


def test_uneven_frame_rates_keep_frames_in_their_documents():
    uneven = footage()._replace(n_frames=np.array([10] * 9 + [5, 0, 20] + [10] * 8))
    frames = uneven.frame_times()
    assert len(frames) == 195
    assert frames[90].tolist() == [9.0, 9.2]
    assert frames[95].tolist() == [11.0, 11.05]
    documents = np.searchsorted(uneven.times, frames[:, 0], side="right") - 1
    assert np.array_equal(np.bincount(documents, minlength=20), uneven.n_frames)


def test_several_videos_at_once_are_refused():
    corpus = Corpus.joined([Corpus(np.ones((3, 4))), Corpus(np.ones((3, 4)))])
    with pytest.raises(InvalidInputError, match="give each video as a file of its own"):
        footage_of_corpus(corpus, "two")


def test_twenty_thousand_labels_take_seconds(tmp_path):
    """Fifty thousand took minutes before; processor time, so that a busy machine matters little."""
    n, rng = 22_200, np.random.default_rng(0)
    grid = Vocabulary(4, 4)
    corpus = Corpus(rng.poisson(1.0, (2000, grid.n_words)), vocabulary=grid)
    lines = [
        f"{k / 11.2:.4f},{(k + 0.4) / 11.2:.4f},kind {k % 3600},0,0,{k % 9 + 8},9" for k in range(n)
    ]
    lines = [line for k, line in enumerate(lines) if k % 1000 < 900]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["start,end,kind,left,top,right,bottom", *lines, *lines[:2000]]))
    began = process_time()
    with pytest.raises(InvalidInputError, match="overlaps"):  # the same ones again
        parse_labels(path)
    path.write_text("\n".join(["start,end,kind,left,top,right,bottom", *lines]))
    known = read_labels(path, footage_of_corpus(corpus, "it"))
    abnormal = abnormal_documents(known, corpus.times, corpus.clip)
    normality = -rng.gamma(1.0, 1.0, len(corpus)) - abnormal
    judged = np.ones(len(corpus), dtype=np.bool_)
    scored = ScoredDocuments(normality, judged, corpus.times, corpus.clip)
    found = found_at_rates(scored, known, (1.0, 60.0))
    chance = chance_of_finding(scored, known, (1.0, 60.0), -2.0)
    inside = abnormal_words(corpus, abnormal_places(known))
    assert process_time() - began < 6
    assert len(known) == 20_000
    assert found[1].share >= chance.at_rates[1] > 0
    assert inside.any()
