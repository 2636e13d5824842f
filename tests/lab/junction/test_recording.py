import hashlib
import os
import subprocess
import sys

import av
import cv2
import numpy as np
import pytest

from habitus.errors import HabitusError, InvalidInputError
from habitus.lab import KINDS, Junction, render, to_bgr, write_boxes, write_labels
from habitus.progress import Progress


def short(**changes):
    settings = {
        "seed": 1,
        "seconds": 2.0,
        "width": 180,
        "height": 144,
        "normal_for": 0.0,
        **changes,
    }
    return Junction(**settings)


def digest(scene):
    found = hashlib.sha256()
    for picture in scene.frames():
        found.update(picture)
    return found.hexdigest()


def test_the_same_seed_gives_the_same_frames_and_another_seed_others():
    assert digest(short()) == digest(short()) != digest(short(seed=2))


def test_the_first_frames_do_not_depend_on_the_length():
    long = short(seconds=3.0).frames()
    for picture in short(seconds=1.0).frames():
        np.testing.assert_array_equal(picture, next(long))


def test_frames_move_but_the_background_stays():
    pictures = [to_bgr(p).astype(float) for p in short(seconds=12.0, seed=3).frames()]
    assert pictures[0].shape == (144, 180, 3)
    change = np.abs(pictures[-1] - pictures[0]).mean(axis=2)
    assert np.median(change) < 8  # noise and flicker only
    assert (change > 40).sum() > 30  # something moved


@pytest.mark.parametrize("size", [(480, 384), (240, 426), (64, 64)])
def test_any_size_shows_the_same_scene(size):
    width, height = size
    picture = next(Junction(seed=1, seconds=1.0, width=width, height=height).frames())
    assert picture.shape == (height * 3 // 2, width)
    assert picture[:height].std() > 10


@pytest.fixture(scope="module")
def eventful():
    scene = Junction(
        seed=4,
        seconds=300.0,
        normal_for=30.0,
        anomalies_per_hour=180.0,
        fps=12.5,
        width=180,
        height=144,
    )
    return scene, scene.truth()


def test_several_kinds_happen_with_valid_times_and_boxes(eventful):
    scene, truth = eventful
    assert len({anomaly.kind for anomaly in truth}) >= 4
    assert [a.start for a in truth] == sorted(a.start for a in truth)
    for anomaly in truth:
        assert anomaly.kind in KINDS
        assert 30.0 <= anomaly.start < anomaly.end <= scene.seconds
        frames, left, top, right, bottom = anomaly.boxes.T
        assert (np.diff(frames) > 0).all()
        assert frames[0] == round(anomaly.start * scene.fps)
        assert frames[-1] + 1 == round(anomaly.end * scene.fps)
        assert (left >= 0).all()
        assert (top >= 0).all()
        assert (left < right).all()
        assert (top < bottom).all()
        assert (right <= scene.width).all()
        assert (bottom <= scene.height).all()


def test_truth_is_the_same_each_time(eventful):
    scene, truth = eventful
    again = Junction(**{**scene.__dict__, "seconds": 100.0}).truth()
    for first, second in zip(truth, again, strict=False):
        if first.end < 100:
            assert first[:3] == second[:3]
            np.testing.assert_array_equal(first.boxes, second.boxes)


def test_a_box_contains_motion(eventful):
    scene, truth = eventful
    anomaly = next(a for a in truth if a.kind != "breakdown" and len(a.boxes) > 20)
    frame, left, top, right, bottom = anomaly.boxes[len(anomaly.boxes) // 2]
    wanted = {int(frame), int(frame) + 12}
    pictures = [p for k, p in _until(scene, max(wanted)) if k in wanted]
    change = cv2.absdiff(*[p[: scene.height] for p in pictures])
    assert change[top:bottom, left:right].mean() > 2 * np.median(change) + 2


def _until(scene, last):
    for number, picture in enumerate(scene.frames()):
        yield number, picture
        if number == last:
            return


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_occurs(kind):
    scene = Junction(
        seed=8, seconds=160.0, anomalies=(kind,), normal_for=5.0, anomalies_per_hour=300, fps=5.0
    )
    truth = scene.truth()
    assert truth
    assert {anomaly.kind for anomaly in truth} == {kind}


def test_no_anomalies_without_kinds_or_rate():
    assert short(seconds=60.0, anomalies=()).truth() == ()
    assert short(seconds=60.0, anomalies_per_hour=0).truth() == ()


def test_video_is_h264_with_the_right_frames(tmp_path):
    scene, seen = short(fps=12.5), []
    for name in ("a.mp4", "b.mp4"):
        render(scene, tmp_path / name, progress=seen.append)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()
    assert seen[: scene.n_frames] == [Progress("rendering", k + 1, 25) for k in range(25)]
    with av.open(str(tmp_path / "a.mp4")) as container:
        stream = container.streams.video[0]
        decoded = [frame.to_ndarray(format="gray") for frame in container.decode(stream)]
        assert stream.codec_context.name == "h264"
        assert float(stream.average_rate) == 12.5
    assert len(decoded) == 25
    original = next(scene.frames())[:144].astype(float)
    assert np.abs(decoded[0] - original).mean() < 20


def test_label_files_contain_the_truth(tmp_path, eventful):
    scene, truth = eventful
    write_labels(scene, tmp_path / "labels.csv")
    write_boxes(scene, tmp_path / "boxes.csv")
    labels = (tmp_path / "labels.csv").read_text().splitlines()
    assert labels[0] == "start,end,kind,left,top,right,bottom"
    assert len(labels) == 1 + len(truth)
    first = labels[1].split(",")
    assert first[2] == truth[0].kind
    assert [int(v) for v in first[3:]] == list(truth[0].box)
    boxes = (tmp_path / "boxes.csv").read_text().splitlines()
    assert boxes[0] == "frame,time,event,kind,left,top,right,bottom"
    assert len(boxes) == 1 + sum(len(a.boxes) for a in truth)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seconds": -1}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"width": 361}, "even"),
        ({"height": 20}, "height"),
        ({"fps": 0}, "fps"),
        ({"density": -0.1}, "density"),
        ({"anomalies": ("parade",)}, "parade"),
        ({"anomalies": "u-turn"}, "kinds"),
        ({"anomalies_per_hour": 1e6}, "anomalies_per_hour"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"seconds": "ten"}, "seconds"),
    ],
)
def test_bad_settings_raise_a_one_line_error(changes, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        short(**changes)
    assert "\n" not in str(caught.value)
    assert caught.value.parameter == next(iter(changes))


def test_an_unwritable_file_raises_a_one_line_error(tmp_path):
    with pytest.raises(HabitusError, match="cannot write"):
        render(short(), tmp_path / "nowhere" / "scene.mp4")
    with pytest.raises(HabitusError, match="cannot write"):
        render(short(), tmp_path / "scene.xyz")
    assert list(tmp_path.iterdir()) == []


def test_the_model_of_a_crossing_needs_neither_opencv_nor_pyav():
    code = (
        "import sys; from habitus.lab import crossing; "
        "assert not {'cv2', 'av'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_video_does_not_depend_on_what_is_left_in_memory(tmp_path):
    render_it = (
        "import sys; from habitus.lab import Junction, render; "
        "render(Junction(seed=200, seconds=4.0, normal_for=300.0), sys.argv[1])"
    )
    videos = []
    for fill in ("0", "1"):  # the C library fills memory with this before it is handed out
        full = {"MALLOC_PERTURB_": fill, "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
        videos.append(tmp_path / f"{fill}.mp4")
        command = [sys.executable, "-c", render_it, str(videos[-1])]
        subprocess.run(command, env={**os.environ, **full}, check=True)
    assert videos[0].read_bytes() == videos[1].read_bytes()
