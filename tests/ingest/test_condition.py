"""Whether the camera's condition is told, and told from traffic and light."""

import numpy as np
import pytest

from habitus.ingest.clips import Document, documents
from habitus.ingest.condition import FROZEN_AFTER, Condition, Watch
from reference.footage import Drawn, evenly, moving_square, texture

ROWS, COLUMNS = 36, 45
# Of means of cells, so neighbours have little in common.
SOFTNESS = 0.7
USUAL = texture(COLUMNS, ROWS, 0, SOFTNESS)


def document(thumbnail, *, change=3.0, n_frames=25):
    none = np.empty(0, dtype=np.int64)
    return Document(0, 0.0, none, none, n_frames, change, thumbnail.astype(np.uint8), None)


def noisy(picture, rng):
    return np.clip(picture + rng.normal(0, 2, picture.shape), 0, 255)


def accustomed(n=20, clip=1.0):
    """A watch that has seen the usual view for a while."""
    watch, rng = Watch(clip), np.random.default_rng(0)
    assert {watch.judge(document(noisy(USUAL, rng))) for _ in range(n)} == {Condition.FINE}
    return watch


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_a_frozen_picture(clip):
    watch = accustomed(clip=clip)
    found = [watch.judge(document(USUAL, change=0.0)) for _ in range(20)]
    before = round(FROZEN_AFTER / clip) - 1
    assert found == [Condition.FINE] * before + [Condition.FROZEN] * (20 - before)
    assert watch.judge(document(USUAL)) is Condition.FINE


def test_identical_pictures_are_frozen_from_the_frames_on():
    pictures = moving_square(50) + [moving_square(1)[0]] * 200
    watch = Watch()
    found = [watch.judge(d) for d in documents(Drawn(pictures, evenly(250)))]
    assert found[:6] == [Condition.FINE] * 6
    assert found[8:] == [Condition.FROZEN] * 2


@pytest.mark.parametrize("level", [0, 12, 200])
def test_a_covered_lens(level):
    watch, rng = accustomed(), np.random.default_rng(1)
    flat = np.full((ROWS, COLUMNS), level)
    found = [watch.judge(document(noisy(flat, rng))) for _ in range(50)]
    assert set(found) == {Condition.COVERED}
    assert watch.judge(document(noisy(USUAL, rng))) is Condition.FINE


@pytest.mark.parametrize("shift", [(0, 6), (5, 0), (-4, 8)])
def test_a_moved_camera(shift):
    watch, rng = accustomed(), np.random.default_rng(1)
    moved = np.roll(USUAL, shift, axis=(0, 1))
    assert watch.judge(document(noisy(moved, rng))) is Condition.MOVED
    assert watch.judge(document(noisy(USUAL, rng))) is Condition.FINE


def test_another_scene_altogether():
    watch = accustomed()
    assert watch.judge(document(texture(COLUMNS, ROWS, 99, SOFTNESS))) is Condition.MOVED


def test_traffic_is_in_order():
    """Large things that pass: a quarter of the view is another in every document."""
    watch, rng = accustomed(), np.random.default_rng(1)
    for _ in range(60):
        picture = noisy(USUAL, rng)
        for _ in range(3):
            r, c = rng.integers(0, ROWS - 10), rng.integers(0, COLUMNS - 14)
            picture[r : r + 10, c : c + 14] = texture(14, 10, int(rng.integers(1000)), SOFTNESS)
        assert watch.judge(document(picture)) is Condition.FINE


@pytest.mark.parametrize("end", [0.45, 1.0])
def test_light_that_changes_slowly_is_in_order(end):
    """Dusk, and a shadow that wanders over the scene."""
    watch, rng = accustomed(), np.random.default_rng(1)
    across = np.linspace(0, 1, COLUMNS)[None]
    for step in np.linspace(0, 1, 120):
        shadow = np.where(across < step, 0.6, 1.0)
        picture = noisy(USUAL * (1 + (end - 1) * step) * shadow, rng)
        assert watch.judge(document(picture)) is Condition.FINE


def test_light_that_changes_at_once_is_in_order():
    watch, rng = accustomed(), np.random.default_rng(1)
    for factor, step in ((0.6, 0), (1.0, 15), (0.8, 40)):
        assert watch.judge(document(noisy(USUAL * factor + step, rng))) is Condition.FINE


def test_a_lost_document_is_not_judged():
    watch = accustomed()
    dark = document(np.zeros((ROWS, COLUMNS)), change=0.0, n_frames=0)
    assert {watch.judge(dark) for _ in range(20)} == {Condition.FINE}
