import cv2
import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.lab import WEATHER, Junction
from habitus.lab.junction.camera import Camera
from habitus.lab.junction.weather import Insects, Shake, Wind

SIZE = {"width": 180, "height": 144, "fps": 12.5}


def pictures(seconds=1.2, seed=22, **settings):
    """Return the brightness of all frames of a scene."""
    scene = Junction(seed, seconds, **SIZE, **settings)
    return np.array([frame[: scene.height] for frame in scene.frames()], dtype=float)


@pytest.fixture(scope="module")
def plain():
    return pictures()


@pytest.mark.parametrize("kind", WEATHER)
def test_weather_changes_frames(kind, plain):
    seconds = 6.0 if kind == "insects" else 1.2  # until the first one comes
    found = pictures(seconds, weather=(kind,))
    other = plain if kind != "insects" else pictures(seconds)
    assert np.abs(found - other).mean() > 0.05


def test_weather_is_the_same_each_time():
    """Of all kinds at once, until the first insect comes; and at night."""
    day = tuple(kind for kind in WEATHER if kind != "night")
    for seconds, kinds in ((6.0, day), (0.4, ("night",))):
        found, again = (pictures(seconds, weather=kinds) for _ in range(2))
        np.testing.assert_array_equal(found, again)


def test_traffic_and_anomalies_do_not_depend_on_the_weather():
    settings = {"seconds": 160.0, "normal_for": 5.0, "anomalies_per_hour": 300.0, "fps": 5.0}
    plain, all_ = (Junction(seed=8, **settings, weather=kinds).truth() for kinds in ((), WEATHER))
    assert len(plain) == len(all_) > 0
    for one, other in zip(plain, all_, strict=True):
        np.testing.assert_array_equal(one.boxes, other.boxes)


def test_the_night_is_dark_but_for_headlights_and_has_no_colours_in_infrared(plain):
    night = pictures(weather=("night",))
    assert np.median(night) < 0.6 * np.median(plain)
    assert night.max() > 220
    scene = Junction(22, 0.2, **SIZE, weather=("night", "insects"))
    assert all((frame[scene.height :] == 128).all() for frame in scene.frames())


@pytest.mark.parametrize("kind", ["rain", "snow"])
def test_rain_and_snow_are_bright_specks_all_over_the_picture(kind):
    one, two = pictures(0.16, density=0.0, weather=(kind,))
    specks = np.argwhere(np.abs(two - one) > 20)
    assert 0.001 < len(specks) / one.size < 0.15
    assert (specks.std(axis=0) > 0.15 * np.array(one.shape)).all()


def test_leaves_move_where_a_branch_hangs_and_the_road_stays():
    frames = pictures(2.0, density=0.0, weather=("leaves",))
    change = np.abs(frames[12] - frames[0])
    upper, lower = change[:48], change[72:]
    assert (upper > 25).sum() > 20 * ((lower > 25).sum() + 1)


def test_shadows_of_clouds_are_smooth_and_pass():
    frames = pictures(12.0, density=0.0, weather=("clouds",))
    smooth = np.array([cv2.blur(frame, (9, 9)) for frame in frames[::25]])
    assert np.ptp(smooth[:, 72:], axis=0).max() > 10  # while neighbouring frames hardly differ
    assert np.abs(cv2.blur(frames[1] - frames[0], (9, 9))).max() < 8


def test_shake_moves_the_whole_picture():
    camera = Camera.random(np.random.default_rng([22, 0]), SIZE["width"], SIZE["height"])
    still = pictures(density=0.0)
    shaken = pictures(density=0.0, weather=("shake",))
    shake = Shake(camera, Wind(np.random.default_rng([22, 8])), np.random.default_rng([22, 9]))
    for k in (2, 5, 9):
        (dx, dy), _ = cv2.phaseCorrelate(still[k], shaken[k])
        np.testing.assert_allclose((dx, dy), shake.shift(k / SIZE["fps"]), rtol=0, atol=0.25)


def test_insects_come_and_leave():
    camera = Camera.random(np.random.default_rng([22, 0]), SIZE["width"], SIZE["height"])
    insects = Insects(camera, 22)
    visits = [visit for slot in range(60) for visit in insects._visits(slot)]
    assert 30 < len(visits) < 150
    for visit in visits:
        for time in (visit.start, visit.start + visit.seconds):
            assert np.abs(visit.place(time) - 0.5).max() > 0.55  # outside the frame


@pytest.mark.parametrize("weather", [("hail",), "rain", 3])
def test_unknown_weather_raises_a_one_line_error(weather):
    with pytest.raises(InvalidInputError, match="weather") as caught:
        Junction(weather=weather)
    assert "\n" not in str(caught.value)
    assert caught.value.parameter == "weather"


def test_the_order_of_kinds_does_not_matter():
    assert Junction(weather=("snow", "night")) == Junction(weather=["night", "snow", "night"])
