"""Whether a live camera can be judged, and that it is told where it cannot."""

import json

import numpy as np
import pytest

from habitus.corpus.documents import Condition
from habitus.corpus.looks import look_of
from habitus.errors import InvalidInputError
from habitus.ingest.clips import Document
from habitus.ingest.condition import STEADY_AFTER
from habitus.scene.camera_check import CameraCheck
from habitus.scene.camera_monitor import (
    FIRST_REPORT,
    N_STILLS,
    REPORT_EVERY,
    FaultReports,
    SceneMonitor,
)
from reference.footage import texture

WIDTH, HEIGHT, CELL = 320, 240, 8
USABLE, MOVED, COVERED = Condition.USABLE, Condition.MOVED, Condition.COVERED
SCENE, OTHER, THIRD = (texture(WIDTH, HEIGHT, seed, softness=6.0) for seed in range(3))
BLACK = np.zeros_like(SCENE)


def document(picture, seed):
    noise = np.random.default_rng(seed).normal(0, 2, picture.shape)
    seen = np.clip(picture + noise * (picture.std() > 0), 0, 255).astype(np.uint8)
    rows, columns = HEIGHT // CELL, WIDTH // CELL
    cells = seen.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3)).astype(np.uint8)
    none = np.empty(0, dtype=np.int64)
    return Document(seed, 0.0, none, none, 25, 3.0, cells, np.stack([seen] * 3, axis=-1))


class Judged:
    """A camera that is shown pictures."""

    def __init__(self, **options):
        looks = options.pop("looks", [look_of(SCENE)])
        check = CameraCheck(np.stack([SCENE] * 3, axis=-1), np.array(looks), "a.model")
        self.scene, self.n = SceneMonitor(check, "camera", **options), 0

    def __call__(self, picture, n):
        self.n += n
        return [self.scene.judge(document(picture, seed)) for seed in range(self.n - n, self.n)]


@pytest.mark.parametrize("light", [1.0, 0.4])
def test_the_scene_of_the_model_is_usable_at_once(light):
    judged = Judged()
    assert set(judged(SCENE * light, 20)) == {USABLE}
    assert not judged.scene.stills  # what is known to be the scene is not compared again


@pytest.mark.parametrize("picture", [SCENE, OTHER])
def test_any_look_of_the_scene_is_usable_at_once(picture):
    assert set(Judged(looks=[look_of(SCENE), look_of(OTHER)])(picture, 20)) == {USABLE}


@pytest.mark.parametrize("seconds", [5, 90])
@pytest.mark.parametrize("card", [OTHER, BLACK], ids=["a test card", "black"])
def test_a_bad_beginning_does_not_blind_it(card, seconds):
    judged = Judged()
    judged(card, seconds)
    found = judged(SCENE, 20)
    assert found[N_STILLS:] == [USABLE] * (20 - N_STILLS)


def test_another_scene_is_never_usable():
    judged = Judged()
    assert judged(OTHER, 30)[N_STILLS:] == [MOVED] * (30 - N_STILLS)
    assert USABLE not in judged(THIRD, round(STEADY_AFTER) + 30)
    assert judged(SCENE, 10)[N_STILLS:] == [USABLE] * (10 - N_STILLS)


def test_a_camera_that_is_shifted_a_little_goes_on():
    """By one cell each way: another view, but the scene of the model."""
    judged = Judged()
    judged(SCENE, 20)
    found = judged(np.roll(SCENE, (CELL, CELL), axis=(0, 1)), 20)
    assert found == [MOVED] * (N_STILLS - 1) + [USABLE] * (21 - N_STILLS)  # one still proves little


def test_a_camera_that_is_turned_and_turned_back():
    judged = Judged()
    judged(SCENE, 20)
    assert set(judged(OTHER, round(STEADY_AFTER) + 30)) == {MOVED}
    assert set(judged(SCENE, 5)) == {USABLE}


def test_a_cover_with_a_pattern_is_not_taken_for_the_scene():
    """It is steady, but too plain to be compared."""
    judged = Judged()
    judged(SCENE, 20)
    cloth = 60 + 8 * np.sin(np.linspace(0, 7, WIDTH))[None] * np.ones((HEIGHT, 1))
    assert USABLE not in judged(cloth, round(STEADY_AFTER) + 30)
    assert set(judged(SCENE, 5)) == {USABLE}


def test_a_file_of_another_scene_is_refused():
    judged = Judged(final=True)
    assert judged(OTHER, N_STILLS - 1) == [USABLE] * (N_STILLS - 1)
    with pytest.raises(InvalidInputError, match=r"camera does not show the scene that a\.model"):
        judged(OTHER, 1)


def test_faults_are_told_after_a_while_every_hour_and_at_the_end():
    reports, told = FaultReports("camera"), []
    conditions = [None] * 5 + ["covered"] * 5 + [None] + ["moved"] * 7300 + [None] * 3
    for second, condition in enumerate(conditions):
        told += [(second, fault) for fault in reports.take(condition, second, 1e9 + second)]
    start = 11
    first = start + FIRST_REPORT
    expected = [first, first + REPORT_EVERY, first + 2 * REPORT_EVERY, start + 7300]
    assert [second for second, _ in told] == expected
    assert [fault.over for _, fault in told] == [False, False, False, True]
    assert {fault.clock for _, fault in told} == {"2001-09-09T01:46:51.000+00:00"}
    assert json.loads(told[-1][1].line()) == {
        "habitus": "fault",
        "version": 1,
        "source": "camera",
        "clock": "2001-09-09T01:46:51.000+00:00",
        "start": 11,
        "seconds": 7300,
        "condition": "moved",
        "over": True,
        "explanation": "judged again, after 7300 s in which nothing was",
    }
