"""Faults of the camera are found, and not confused with traffic, light or a quiet night."""

import cv2
import numpy as np
import pytest

from habitus.corpus.documents import Condition
from habitus.ingest.clips import Document, documents
from habitus.ingest.condition import (
    COVERED_BELOW,
    DARK_AFTER,
    FROZEN_AFTER,
    FROZEN_FACTOR,
    FROZEN_STILL,
    STEADY_AFTER,
    VIEWS_REMEMBERED,
    ConditionMonitor,
    Look,
    View,
    rolled,
)
from habitus.ingest.extraction import extract_corpus
from habitus.video import Source
from reference.footage import HEIGHT, WIDTH, Drawn, encode, evenly, moving_square, texture

ROWS, COLUMNS = 36, 45
# Of means of cells, so neighbours have little in common.
SOFTNESS = 0.7
USUAL = texture(COLUMNS, ROWS, 0, SOFTNESS)
OTHER = texture(COLUMNS, ROWS, 99, SOFTNESS)


def document(thumbnail, *, change=3.0, n_frames=25):
    none = np.empty(0, dtype=np.int64)
    return Document(0, 0.0, none, none, n_frames, change, thumbnail.astype(np.uint8), None)


def noisy(picture, rng):
    return np.clip(picture + rng.normal(0, 2, picture.shape), 0, 255)


def accustomed(n=20, clip=1.0):
    """A monitor that has seen the usual view for a while."""
    monitor, rng = ConditionMonitor(clip), np.random.default_rng(0)
    assert {monitor.judge(document(noisy(USUAL, rng))) for _ in range(n)} == {Condition.USABLE}
    return monitor


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_a_frozen_picture(clip):
    monitor = accustomed(clip=clip)
    found = [monitor.judge(document(USUAL, change=0.0)) for _ in range(20)]
    before = round(FROZEN_AFTER / clip) - 1
    assert found == [Condition.USABLE] * before + [Condition.FROZEN] * (20 - before)
    assert monitor.judge(document(USUAL)) is Condition.USABLE


def test_single_frames_are_not_frozen():
    monitor = accustomed()
    found = {monitor.judge(document(USUAL, change=0.0, n_frames=1)) for _ in range(20)}
    assert found == {Condition.USABLE}


def test_identical_pictures_are_frozen_from_the_frames_on():
    pictures = moving_square(50) + [moving_square(1)[0]] * 200
    monitor = ConditionMonitor()
    found = [monitor.judge(d) for d in documents(Drawn(pictures, evenly(250)))]
    assert found[:6] == [Condition.USABLE] * 6
    assert found[8:] == [Condition.FROZEN] * 2


@pytest.mark.parametrize("level", [60, 200])
def test_a_covered_lens(level):
    monitor, rng = accustomed(), np.random.default_rng(1)
    flat = np.full((ROWS, COLUMNS), level)
    found = [monitor.judge(document(noisy(flat, rng))) for _ in range(50)]
    assert set(found) == {Condition.COVERED}
    assert monitor.judge(document(noisy(USUAL, rng))) is Condition.USABLE


@pytest.mark.parametrize("clip", [1.0, 0.5])
@pytest.mark.parametrize("level", [0, 12, 250])
def test_light_that_is_gone_or_blinds_is_a_fault_after_a_while(level, clip):
    """A camera turns to infrared, or sets its exposure, in the meantime."""
    monitor, rng = accustomed(clip=clip), np.random.default_rng(1)
    flat, while_ = np.full((ROWS, COLUMNS), level), round(DARK_AFTER / clip)
    for _ in range(2):  # every time anew
        found = [monitor.judge(document(noisy(flat, rng))) for _ in range(50)]
        assert found == [Condition.USABLE] * while_ + [Condition.COVERED] * (50 - while_)
        assert monitor.judge(document(noisy(USUAL, rng))) is Condition.USABLE


INFRARED = np.clip(220 - 0.5 * USUAL + 25 * (texture(COLUMNS, ROWS, 7, 4.0) > 128), 0, 255)
"""The usual view with its contrast reversed, and unevenly lit."""


def test_another_light_is_no_other_view():
    monitor, rng = accustomed(), np.random.default_rng(1)
    lamp = USUAL * np.linspace(0.05, 1.4, COLUMNS)
    faint = 120 + (USUAL - USUAL.mean()) * COVERED_BELOW / 2
    for light in (INFRARED, lamp, faint, USUAL, INFRARED):
        pictures = [noisy(np.clip(light, 0, 255), rng) for _ in range(40)]
        assert {monitor.judge(document(each)) for each in pictures} == {Condition.USABLE}
    assert monitor.n_views == 1
    turned = np.roll(INFRARED, (0, 2), axis=(0, 1))
    assert monitor.judge(document(noisy(turned, rng))) is Condition.MOVED


def test_views_in_two_lights_are_of_one_scene():
    views = View(0), View(1), View(2)
    for view, picture in zip(views, (USUAL, INFRARED, OTHER), strict=True):
        for seed in range(10):
            view.add(Look.of(noisy(picture, np.random.default_rng(seed))))
    assert views[0].shows_scene_of(views[1])
    assert not views[0].shows_scene_of(views[2])


@pytest.mark.parametrize("shift", [(0, 6), (5, 0), (-4, 8)])
def test_a_moved_camera(shift):
    monitor, rng = accustomed(), np.random.default_rng(1)
    moved = np.roll(USUAL, shift, axis=(0, 1))
    assert monitor.judge(document(noisy(moved, rng))) is Condition.MOVED
    assert monitor.judge(document(noisy(USUAL, rng))) is Condition.USABLE


def of_cells(picture, degrees):
    """Cells of a picture of 8x8 pixels each that is turned about its centre, by OpenCV."""
    size = picture.shape[1], picture.shape[0]
    middle = (size[0] - 1) / 2, (size[1] - 1) / 2
    turn = cv2.getRotationMatrix2D(middle, degrees, 1.0)
    whole = cv2.warpAffine(picture, turn, size, borderMode=cv2.BORDER_REPLICATE)
    return whole.reshape(ROWS, 8, COLUMNS, 8).mean(axis=(1, 3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("degrees", "found"), [(1, "USABLE"), (3, "MOVED"), (6, "MOVED")])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_camera_that_is_rolled_about_its_lens(seed, degrees, found, side):
    """Its centre stays as it was; so does the view in another light."""
    scene = texture(8 * COLUMNS, 8 * ROWS, seed, 12.0).astype(np.float64)
    monitor, rng = ConditionMonitor(), np.random.default_rng(seed)
    for light in (1.0, 0.7):
        usual = light * of_cells(scene, 0)
        for _ in range(20):
            assert monitor.judge(document(noisy(usual, rng))) is Condition.USABLE
    turned = light * of_cells(scene, side * degrees)
    assert monitor.judge(document(noisy(turned, rng))) is Condition[found]
    assert monitor.judge(document(noisy(usual, rng))) is Condition.USABLE


@pytest.mark.parametrize("shape", [(36, 45), (7, 4), (2, 2), (1, 5)])
def test_rolled_pictures_are_those_of_opencv(shape):
    picture = np.random.default_rng(0).integers(0, 256, shape).astype(np.float64)
    middle = (shape[1] - 1) / 2, (shape[0] - 1) / 2
    turn = cv2.getRotationMatrix2D(middle, 5.0, 1.0)
    expected = cv2.warpAffine(picture, turn, shape[::-1], borderMode=cv2.BORDER_REPLICATE)
    # OpenCV rounds places to 1/32 of a pixel.
    np.testing.assert_allclose(rolled(picture, 5.0), expected, rtol=0, atol=255 / 16)


def test_another_scene_altogether():
    monitor = accustomed()
    assert monitor.judge(document(texture(COLUMNS, ROWS, 99, SOFTNESS))) is Condition.MOVED


def test_traffic_is_in_order():
    """Large things that pass: a quarter of the view is another in every document."""
    monitor, rng = accustomed(), np.random.default_rng(1)
    for _ in range(60):
        picture = noisy(USUAL, rng)
        for _ in range(3):
            r, c = rng.integers(0, ROWS - 10), rng.integers(0, COLUMNS - 14)
            picture[r : r + 10, c : c + 14] = texture(14, 10, int(rng.integers(1000)), SOFTNESS)
        assert monitor.judge(document(picture)) is Condition.USABLE


@pytest.mark.parametrize("end", [0.45, 1.0])
def test_light_that_changes_slowly_is_in_order(end):
    """Dusk, and a shadow that wanders over the scene."""
    monitor, rng = accustomed(), np.random.default_rng(1)
    across = np.linspace(0, 1, COLUMNS)[None]
    for step in np.linspace(0, 1, 120):
        shadow = np.where(across < step, 0.6, 1.0)
        picture = noisy(USUAL * (1 + (end - 1) * step) * shadow, rng)
        assert monitor.judge(document(picture)) is Condition.USABLE


def test_light_that_changes_at_once_is_in_order():
    monitor, rng = accustomed(), np.random.default_rng(1)
    for factor, step in ((0.6, 0), (1.0, 15), (0.8, 40)):
        assert monitor.judge(document(noisy(USUAL * factor + step, rng))) is Condition.USABLE


def test_a_black_picture_stays_covered_though_it_never_changes():
    monitor, black = accustomed(), np.zeros_like(USUAL)
    found = [monitor.judge(document(black, change=0.0)) for _ in range(round(2 * FROZEN_STILL))]
    assert Condition.FROZEN not in found
    assert found[-1] is Condition.COVERED


@pytest.mark.parametrize("change", [0.001, 0.05])
def test_a_quiet_night_is_not_frozen(change):
    """A picture that hardly changes comes from a camera that works."""
    monitor = accustomed()
    found = {monitor.judge(document(USUAL, change=change)) for _ in range(60)}
    assert found == {Condition.USABLE}


def test_one_change_within_the_limit_shows_that_the_camera_works():
    """Codecs skip what is still: identical frames for less than FROZEN_AFTER, again and again."""
    monitor = accustomed()
    still = round(FROZEN_AFTER) - 1
    changes = ([0.0] * still + [0.01]) * 10
    assert {monitor.judge(document(USUAL, change=c)) for c in changes} == {Condition.USABLE}
    found = [monitor.judge(document(USUAL, change=0.0)) for _ in range(round(FROZEN_STILL))]
    assert found == [Condition.USABLE] * (len(found) - 1) + [Condition.FROZEN]


def test_identical_frames_are_frozen_if_they_last_longer_than_they_did_before():
    """A codec that leaves out all noise: half a minute of identical frames, again and again."""
    monitor, half = accustomed(), round(FROZEN_STILL / 2)
    monitor.judge(document(USUAL, change=0.01))
    for _ in range(3):
        found = {monitor.judge(document(USUAL, change=0.0)) for _ in range(half)}
        assert found == {Condition.USABLE}
        assert monitor.judge(document(USUAL, change=0.3)) is Condition.USABLE
    limit = round(FROZEN_FACTOR * half)
    found = [monitor.judge(document(USUAL, change=0.0)) for _ in range(limit)]
    assert found == [Condition.USABLE] * (limit - 1) + [Condition.FROZEN]


def test_noise_that_a_codec_left_out_once_may_be_left_out_for_longer():
    """The next identical frames are no fault, though all that changes is well above noise."""
    monitor = accustomed()
    for still in (round(FROZEN_AFTER) - 1, round(FROZEN_STILL) - 1):
        changes = [0.0] * still + [0.3]
        assert {monitor.judge(document(USUAL, change=c)) for c in changes} == {Condition.USABLE}


def test_a_freeze_that_ends_with_a_jump_allows_no_longer_one():
    monitor = accustomed()
    for _ in range(3):
        found = [monitor.judge(document(USUAL, change=0.0)) for _ in range(round(FROZEN_AFTER))]
        assert found[-1] is Condition.FROZEN
        assert monitor.judge(document(USUAL, change=20.0)) is Condition.USABLE


def night(n, seed=0):
    """A dark scene without motion: sensor noise of one grey level in few pixels."""
    dark, rng = texture(WIDTH, HEIGHT, 0) // 8, np.random.default_rng(seed)
    noisy_pixels = (rng.random(dark.shape) < 0.02 for _ in range(n))
    return [np.where(pixels, dark + 1, dark).astype(np.uint8) for pixels in noisy_pixels]


def test_an_encoded_quiet_night_is_not_frozen(tmp_path):
    """The codec skips most of the noise: what is left is far below a grey level, but not 0."""
    options = {"preset": "fast", "crf": "12", "g": "1000"}
    path = encode(tmp_path / "night.mp4", night(500), options=options)
    found = list(documents(Source(str(path))))
    assert len(found) == 20
    assert 0 < min(d.change for d in found) < max(d.change for d in found) < 0.1
    monitor = ConditionMonitor()
    assert {monitor.judge(d) for d in found} == {Condition.USABLE}


def test_a_lost_document_is_not_judged():
    monitor = accustomed()
    dark = document(np.zeros((ROWS, COLUMNS)), change=0.0, n_frames=0)
    assert {monitor.judge(dark) for _ in range(20)} == {Condition.USABLE}


def conditions(monitor, pictures, seed=3):
    rng = np.random.default_rng(seed)
    return [monitor.judge(document(noisy(picture, rng))) for picture in pictures]


STEADY = round(STEADY_AFTER)


@pytest.mark.parametrize("level", [0, 16, 255])
@pytest.mark.parametrize("seconds", [1, 5, 60])
def test_a_black_beginning_is_not_the_usual_view(level, seconds):
    monitor = ConditionMonitor()
    plain = np.full((ROWS, COLUMNS), level)
    found = [monitor.judge(document(plain)) for _ in range(seconds)]
    assert set(found) == {Condition.COVERED}
    assert set(conditions(monitor, [USUAL] * 30)) == {Condition.USABLE}


def test_a_frozen_beginning_is_not_the_usual_view():
    monitor = ConditionMonitor()
    found = [monitor.judge(document(OTHER, change=0.0)) for _ in range(round(FROZEN_STILL))]
    assert found == [Condition.USABLE] * (len(found) - 1) + [Condition.FROZEN]
    assert set(conditions(monitor, [USUAL] * 30)) == {Condition.USABLE}


@pytest.mark.parametrize("seconds", [5, 40, 300])
@pytest.mark.parametrize(
    "other", [OTHER, np.roll(USUAL, (1, 1), axis=(0, 1))], ids=["another scene", "a shift"]
)
def test_a_steady_view_becomes_the_usual_one(other, seconds):
    monitor = ConditionMonitor()
    assert set(conditions(monitor, [other] * seconds)) == {Condition.USABLE}
    found = conditions(monitor, [USUAL] * (2 * STEADY))
    assert found == [Condition.MOVED] * (STEADY - 1) + [Condition.USABLE] * (STEADY + 1)
    assert monitor.view == 1
    assert conditions(monitor, [other, USUAL]) == [Condition.USABLE] * 2  # both are known now


def test_traffic_does_not_keep_a_view_from_becoming_usual():
    monitor, rng = accustomed(), np.random.default_rng(1)
    found = []
    for second in range(2 * STEADY):
        blocked = second % 4 == 3
        picture = texture(COLUMNS, ROWS, int(rng.integers(1000, 2000)), SOFTNESS)
        found.append(monitor.judge(document(noisy(picture if blocked else OTHER, rng))))
    assert Condition.USABLE not in found[: STEADY - 1]
    assert found[-4:-1] == [Condition.USABLE] * 3


def test_views_that_change_all_the_time_never_become_usual():
    monitor = accustomed()
    pictures = [texture(COLUMNS, ROWS, 500 + n, SOFTNESS) for n in range(3 * STEADY)]
    assert set(conditions(monitor, pictures)) == {Condition.MOVED}
    assert conditions(monitor, [USUAL]) == [Condition.USABLE]


def test_a_lorry_that_stands_before_the_lens():
    """It becomes the usual view at last, but the scene is known when it drives off."""
    monitor = accustomed()
    lorry = conditions(monitor, [OTHER] * (STEADY + 30))
    assert lorry[STEADY:] == [Condition.USABLE] * 30
    assert set(conditions(monitor, [USUAL] * 10)) == {Condition.USABLE}


def test_a_view_is_steady_only_where_the_usual_one_is_not_seen_meanwhile():
    monitor = accustomed()
    for _ in range(3):
        assert set(conditions(monitor, [OTHER] * (STEADY - 1))) == {Condition.MOVED}
        assert conditions(monitor, [USUAL]) == [Condition.USABLE]


def test_a_view_that_is_missed_longer_than_it_was_seen_makes_room_for_another():
    monitor, third = accustomed(), texture(COLUMNS, ROWS, 500, SOFTNESS)
    assert set(conditions(monitor, [OTHER] * 10)) == {Condition.MOVED}
    assert conditions(monitor, [third] * 2 * STEADY).index(Condition.USABLE) == 10 + STEADY


def test_the_scene_of_most_documents_counts():
    monitor = ConditionMonitor()
    views = []
    for picture, seconds in ((OTHER, 30), (USUAL, 200), (np.roll(USUAL, (1, 1), axis=(0, 1)), 100)):
        for condition in conditions(monitor, [picture] * seconds):
            views += [monitor.view] * (condition is Condition.USABLE)
    assert set(views) == {0, 1, 2}
    assert monitor.foreign(views) == {0}


def test_what_is_remembered_does_not_grow(monkeypatch):
    assert VIEWS_REMEMBERED < 1000
    monkeypatch.setattr("habitus.ingest.condition.VIEWS_REMEMBERED", 6)
    monitor = accustomed()
    for n in range(6 + 5):
        conditions(monitor, [texture(COLUMNS, ROWS, 300 + n, SOFTNESS)] * STEADY)
    assert len(monitor.views) == 6


BEGINNINGS = {
    "black": np.zeros((HEIGHT, WIDTH), np.uint8),
    "dark": texture(WIDTH, HEIGHT, 5) // 30,
    "a test card": texture(WIDTH, HEIGHT, 6),
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_recording_with_a_bad_beginning_is_of_use(tmp_path, beginning):
    """Ten seconds of something else, then three minutes of the scene."""
    rng = np.random.default_rng(0)
    card = [
        np.clip(beginning + rng.integers(0, 2, beginning.shape), 0, 255).astype(np.uint8)
        for _ in range(100)
    ]
    drawn = card + moving_square(1800)
    path = encode(tmp_path / "v.mp4", drawn, rate=10, options={"preset": "ultrafast"})
    corpus, notes = extract_corpus([Source(str(path))])
    usable = corpus.conditions == Condition.USABLE
    assert not usable[:10].any()
    assert usable[10 + STEADY :].all()
    assert any("these documents are neither learnt from nor scored" in note for note in notes)


def test_local_detail_is_the_difference_from_the_mean_of_neighbours():
    picture = USUAL.astype(np.uint8)
    padded = np.pad(picture.astype(float), 2, mode="edge")
    means = [
        [padded[row : row + 5, column : column + 5].mean() for column in range(COLUMNS)]
        for row in range(ROWS)
    ]
    assert np.array_equal(Look.of(picture).detail, picture - np.array(means))
