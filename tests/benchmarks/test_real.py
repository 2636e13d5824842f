"""The benchmark on real footage, on two tiny rendered data sets in its two layouts."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from habitus.lab import Junction, to_bgr

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real.py"
FPS, SECONDS, SIZE = 12.5, 40, (160, 128)
FRAMES = int(SECONDS * FPS)
ABNORMAL = (250, 437)


def run(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def rendered(*paths):
    """Write normal clips, one after the other of one camera."""
    seconds = len(paths) * SECONDS
    scene = {"seed": 305, "anomalies_per_hour": 0, "width": 160, "height": 128, "fps": FPS}
    frames = Junction(seconds=seconds, **scene).frames()
    for path in paths:
        out = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), FPS, SIZE)
        for frame in islice(frames, FRAMES):
            out.write(to_bgr(frame))
        out.release()


def cut(video, path, change):
    """Copy a video frame by frame; frames that `change` returns None for are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    given = cv2.VideoCapture(str(video))
    out = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), FPS, SIZE)
    number = 0
    while (frame := given.read()[1]) is not None:
        changed = change(number, frame)
        if changed is not None:
            out.write(changed)
        number += 1
    out.release()
    return path


def with_a_square(number, frame):
    """A square that crosses the sky, where nothing moves otherwise, in the abnormal frames."""
    if ABNORMAL[0] <= number <= ABNORMAL[1]:
        left = 3 * (number - ABNORMAL[0]) % (SIZE[0] - 24)
        frame[2:26, left : left + 24 : 2] = 255
        frame[2:26, left + 1 : left + 24 : 2] = 0
    return frame


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """One data set with masks, one of a scene of two clips; each clip's second part is abnormal."""
    folder = tmp_path_factory.mktemp("real")
    usual, unusual = folder / "one" / "training", folder / "one" / "testing"
    usual.mkdir(parents=True)
    rendered(usual / "00.mp4", usual / "01.mp4")
    cut(usual / "00.mp4", unusual / "00.mp4", lambda _, frame: frame)
    cut(usual / "01.mp4", unusual / "01.mp4", with_a_square)
    rows = f"clip,first_frame,last_frame\n01,{ABNORMAL[0]},{ABNORMAL[1]}\n"
    (folder / "one" / "abnormal_frames.csv").write_text(rows)
    mask = np.zeros(SIZE[::-1], np.uint8)
    mask[2:26] = 255
    (folder / "one" / "masks" / "01").mkdir(parents=True)
    for frame in range(ABNORMAL[0], ABNORMAL[1] + 1):
        cv2.imwrite(str(folder / "one" / "masks" / "01" / f"{frame:03d}.png"), mask)
    for k in range(2):
        cut(usual / f"0{k}.mp4", folder / "two" / "scene1" / f"c{k}.mp4", with_a_square)
    rows = "".join(f"c{k},{ABNORMAL[0]},{ABNORMAL[1]}\n" for k in range(2))
    (folder / "two" / "abnormal_frames.csv").write_text(f"clip,first_frame,last_frame\n{rows}")
    return folder


def test_two_layouts_give_one_table_each(footage, tmp_path):
    given = ("--measure", "habits", "tail", "--baselines", "amount", "--runs", 1)
    written = ("--smooth", 0.5, "--json", tmp_path / "figures.json")
    made = run(footage, *given, *written)
    assert made.returncode == 0, made.stderr
    found = json.loads((tmp_path / "figures.json").read_text())
    assert list(found) == ["one", "two, scene1"]
    n_abnormal = ABNORMAL[1] - ABNORMAL[0] + 1
    for name, share in {"one": n_abnormal / FRAMES / 2, "two, scene1": n_abnormal / FRAMES}.items():
        rows = found[name]
        assert rows["chance"]["average precision"] == pytest.approx(share, abs=0.01)
        assert rows["amount"]["ROC AUC"] > 0.8
        assert rows["habitus, habits (default)"]["ROC AUC"] > 0.8
        assert rows["amount"]["pixel ROC AUC"] is None
        assert f"## {name}\n" in made.stdout
    assert "2 clips, 1000 frames; learnt from 80 documents" in made.stdout
    assert "learnt from 20 documents" in made.stdout
    assert "Gaussian of 0.5 s" in made.stdout
    (ours,) = (row for name, row in found["one"].items() if name.startswith("habitus, tail"))
    assert ours["ROC AUC"] > 0.9
    assert ours["box"] is None  # no alarm after a minute of training
    assert found["one"]["habitus, habits (default)"]["pixel detection"] > 0.3


def test_a_folder_of_another_layout_is_refused(tmp_path):
    made = run(tmp_path)
    assert made.returncode == 1
    assert "no abnormal_frames.csv beside training/ and testing/" in made.stderr
