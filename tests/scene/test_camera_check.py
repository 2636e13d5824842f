"""Footage of another camera is refused; light, noise, traffic and a nudge are not."""

from itertools import islice

import cv2
import numpy as np
import pytest

import habitus
from habitus.corpus.looks import LEAST_LIKENESS, likeness, look_of
from habitus.errors import InvalidInputError
from habitus.lab import Junction, render
from habitus.scene.camera_check import CameraCheck
from reference.commands import habitus as command

SEEDS = (541, 542, 546)
SMALL = {"width": 160, "height": 128, "fps": 12.5, "anomalies_per_hour": 0}


def frames(seed):
    """Return the picture of a junction, and a later frame of it."""
    scene = Junction(seed=seed, seconds=40, **SMALL)
    planes = islice(scene.frames(), 0, None, 50)
    some = [cv2.cvtColor(frame, cv2.COLOR_YUV2RGB_I420) for frame in planes]
    return np.median(some, axis=0).astype(np.uint8), some[-1]


@pytest.fixture(scope="module")
def pictures():
    return {seed: frames(seed) for seed in SEEDS}


def checking(picture, *, looks=(), beside=None):
    known = np.array([look_of(each) for each in looks or (picture,)])
    return CameraCheck(picture, known, "a.model", beside)


def noisy(picture, scale, sigma):
    noise = np.random.default_rng(0).normal(0, sigma, picture.shape)
    return np.clip(picture * scale + noise, 0, 255).astype(np.uint8)


CHANGES = {
    "another moment": lambda picture: picture,
    "night": lambda picture: noisy(picture, 0.15, 2),
    "glare": lambda picture: noisy(picture, 1.6, 0),
    "noise": lambda picture: noisy(picture, 1, 12),
    "half in shadow": lambda picture: noisy(picture, np.linspace(0.3, 1.2, 160)[:, None], 0),
    "nudged": lambda picture: np.roll(picture, (2, 3), (0, 1)),
    "doubled": lambda picture: cv2.resize(picture, None, fx=2, fy=2),
    "a quarter hidden": lambda picture: np.where(
        (np.arange(128) < 64)[:, None, None] & (np.arange(160) < 80)[:, None], 128, picture
    ).astype(np.uint8),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_same_scene_is_alike_whatever_the_light(pictures, change):
    for usual, later in pictures.values():
        assert likeness(usual, CHANGES[change](later)) > LEAST_LIKENESS + 2


def test_other_scenes_are_not_alike(pictures):
    for one, (usual, _) in pictures.items():
        for other, (_, later) in pictures.items():
            if one != other:
                assert likeness(usual, later) < LEAST_LIKENESS - 2


def test_a_plain_picture_proves_nothing(pictures):
    usual, _ = pictures[541]
    for plain in (np.zeros_like(usual), np.full_like(usual, 200)):
        assert np.isnan(likeness(usual, plain))
        assert not checking(usual).refuses(plain)
        assert checking(usual).refuses(plain, pictures[542][0])
        assert not checking(plain).refuses(usual)


def test_footage_is_refused_if_it_resembles_no_look(pictures):
    one, two, three = (pictures[seed] for seed in SEEDS)
    known = checking(one[0], looks=(one[0], two[0]))
    assert not known.refuses(one[1])
    assert not known.refuses(two[1])
    assert not known.refuses(three[1], two[1])
    assert known.refuses(three[1])


def test_both_pictures_are_written_and_named(pictures, tmp_path):
    (usual, _), (_, other) = pictures[541], pictures[542]
    check = checking(usual, beside=tmp_path / "events.jsonl")
    check.check(habitus.Corpus([[1]]), "b.mp4")
    check.check(habitus.Corpus([[1]], picture=usual), "b.mp4")
    found = habitus.Corpus([[1]], picture=other)
    with pytest.raises(InvalidInputError, match=r"b.mp4 does not show the scene that a.model") as e:
        check.check(found, "b.mp4")
    assert "likeness to its look" in str(e.value)
    for whose, picture in {"model": usual, "video": other}.items():
        path = tmp_path / f"events-scene-of-{whose}.png"
        assert str(path) in str(e.value)
        assert np.array_equal(cv2.imread(str(path))[..., ::-1], picture)
    with pytest.raises(InvalidInputError, match=r"Compare .*habitus-scene-of-model.png with"):
        checking(usual).check(found, "b.mp4")
    with pytest.raises(InvalidInputError, match=r"likeness to the nearest of its 2 looks"):
        checking(usual, looks=(usual, usual)).check(found, "b.mp4")


@pytest.fixture(scope="module")
def cameras(tmp_path_factory):
    """Videos of two junctions, and a model of the first."""
    folder = tmp_path_factory.mktemp("cameras")
    for name, seed in (("one", 541), ("two", 542)):
        render(Junction(seed=seed, seconds=30, **SMALL), folder / f"{name}.mp4")
    habitus.learn(
        folder / "one.mp4",
        output=folder / "one.model",
        learning=habitus.LearningSettings(n_restarts=1, min_words=5),
    )
    return folder


def test_every_way_to_judge_refuses_another_camera(cameras, tmp_path):
    model, other, page = cameras / "one.model", cameras / "two.mp4", tmp_path / "page.html"
    (tmp_path / "labels.csv").write_text("start,end\n3,9\n")
    judge = {"alerts": habitus.AlertSettings(share=0.05, measure="mean")}
    calls = {
        "detect": lambda **more: habitus.detect(other, model, **judge, **more),
        "report": lambda **more: habitus.report(other, model, page, **judge, **more),
        "evaluate": lambda **more: habitus.evaluate(
            model, other, tmp_path / "labels.csv", **judge, **more
        ),
        "watch": lambda **more: list(habitus.watch(str(other), model, **judge, **more)),
    }
    for call in calls.values():
        with pytest.raises(InvalidInputError, match=r"does not show the scene that one.model"):
            call()
        call(force=True)
    assert (tmp_path / "page-scene-of-video.png").is_file()


def test_the_command_says_so_in_one_line(cameras):
    given = ["detect", "two.mp4", "-m", "one.model", "-o", "e.jsonl", "--measure", "mean"]
    run = command(*given, cwd=cameras)
    assert run.returncode == 1
    assert "e-scene-of-model.png with e-scene-of-video.png" in run.stderr
    assert run.stderr.strip().endswith("(--force)")
    assert not (cameras / "e.jsonl").exists()
    assert command(*given, "--force", cwd=cameras).returncode == 0
