"""One scene at several times: other traffic, closed lanes, works fences."""

import hashlib

import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.lab import LANE_NAMES, Junction
from habitus.lab.junction.layout import MOVEMENTS, point_on_arm
from habitus.lab.junction.painter import (
    FENCE_MARGIN,
    FENCE_SPAN,
    LANE_EDGES,
    VisibleBoxes,
    fences,
)
from habitus.lab.junction.recording import Simulation
from habitus.lab.junction.traffic import STEP, Lane, Snapshot, SnapshotPair
from habitus.lab.junction.vehicles import CYCLE, HEIGHT, KIND, LENGTH, LUMA, PERSON, WIDTH, X, Y

SEED = 5
"""A scene whose camera sees the north and the west arm as far as a fence stands."""
LANE_OF = {
    "ahead": "left",
    "left": "left",
    "right": "right",
    "cycle-ahead": "cycle",
    "cycle-left": "cycle",
}
"""Lane in which each normal movement arrives."""


def short(**changes):
    settings = {
        "seed": SEED,
        "seconds": 2.0,
        "width": 180,
        "height": 144,
        "fps": 5.0,
        "normal_for": 0.0,
        **changes,
    }
    return Junction(**settings)


def eventful(**changes):
    return short(**{"seconds": 160.0, "anomalies_per_hour": 300.0, **changes})


def simulation_of(**changes):
    return Simulation(short(**changes))


def frames(scene):
    """Return the brightness of all frames."""
    return np.array([frame[: scene.height] for frame in scene.frames()], dtype=float)


def digest(scene):
    found = hashlib.sha256()
    for picture in scene.frames():
        found.update(picture)
    return found.hexdigest()


def advance(simulation, seconds):
    """Move a simulation on, without drawing; yield its world."""
    pairs = simulation.pairs()
    for _ in range(round(seconds / STEP)):
        next(pairs)
        yield simulation.world


def arrived(world):
    """Return the lanes of all vehicles that are normal, with their identifiers."""
    found = {}
    for a in world.fleet[world.fleet["anomaly"] < 0]:
        arm, movement = divmod(int(a["path"]), len(MOVEMENTS))
        if MOVEMENTS[movement] in LANE_OF:
            found[int(a["id"])] = Lane(arm, LANE_OF[MOVEMENTS[movement]])
    return found


def test_a_scene_without_these_settings_is_the_one_it_was_before_they_existed():
    assert short() == short(traffic=None, closed=(), fenced=())
    world = simulation_of().world
    fronts = world.fleet["front"][np.argsort(world.fleet["id"])]
    assert len(fronts) == 20
    assert len(world.people) == 3
    np.testing.assert_allclose(fronts[:4], [118.8255, 130.2336, 99.8435, 78.4843], rtol=1e-4)
    np.testing.assert_allclose(world.signals.offset, 12.6132687, rtol=1e-7)


def test_the_same_traffic_gives_the_same_frames_and_another_others():
    found = [digest(short(traffic=traffic)) for traffic in (None, 0, 0, 1)]
    assert found[1] == found[2]
    assert len(set(found)) == 3


def test_another_traffic_is_seen_by_the_same_camera_before_the_same_backdrop():
    scenes = [short(seconds=40.0, fps=1.0, traffic=traffic) for traffic in (None, 3, 4)]
    first, *others = [frames(scene) for scene in scenes]
    for other in others:
        change = np.abs(np.median(other, axis=0) - np.median(first, axis=0))
        assert np.quantile(change, 0.9) < 5  # noise, but for lanes in which queues stand
        assert (np.abs(other[20] - first[20]) > 40).sum() > 50  # other vehicles


def test_another_traffic_keeps_flows_and_timing_but_not_the_moment():
    own, other = (simulation_of(traffic=traffic) for traffic in (None, 0))
    np.testing.assert_array_equal(own.camera.position, other.camera.position)
    np.testing.assert_array_equal(own.light.sun, other.light.sun)
    np.testing.assert_array_equal(own.world.flows.rates, other.world.flows.rates)
    np.testing.assert_array_equal(own.world.flows.waves[:, 0], other.world.flows.waves[:, 0])
    assert own.world.flows.people == other.world.flows.people
    assert own.world.signals.greens == other.world.signals.greens
    assert own.world.signals.offset != other.world.signals.offset
    assert own.scheduler.rng.random() != other.scheduler.rng.random()


def test_another_traffic_has_other_noise():
    own, other = (frames(short(density=0.0, traffic=traffic))[:, :20] for traffic in (1, 2))
    assert (own != other).mean() > 0.5


def test_another_traffic_has_other_anomalies():
    own, other = (eventful(seconds=60.0, traffic=traffic).truth() for traffic in (1, 2))
    assert own
    assert other
    assert [a[:3] for a in own] != [a[:3] for a in other]


@pytest.mark.parametrize("kind", ["clouds", "rain", "insects"])
def test_the_weather_of_another_time_is_another(kind):
    own, other = (
        frames(short(seconds=4.0, density=0.0, weather=(kind,), traffic=traffic))
        for traffic in (1, 2)
    )
    assert (np.abs(other - own) > 12).mean() > 0.001  # noise is 2


def test_the_weather_of_a_time_is_the_same_again():
    kinds = ("clouds", "rain", "insects")
    own, again = (
        frames(short(seconds=4.0, density=0.0, weather=kinds, traffic=1)) for _ in range(2)
    )
    np.testing.assert_array_equal(own, again)


@pytest.mark.parametrize("setting", ["closed", "fenced"])
def test_nobody_arrives_in_a_closed_lane(setting):
    names = ("north right", "west left", "south cycle")
    shut = {Lane(1, "right"), Lane(2, "left"), Lane(3, "cycle")}
    seen = {}
    settings = {"anomalies": ("wrong-way",), "density": 1.5, setting: names}
    simulation = Simulation(eventful(**settings))
    for world in advance(simulation, 240):
        seen |= arrived(world)
    assert simulation.scheduler.started  # whose end opens lanes that were paused
    assert len(set(seen.values())) > 6  # the others are in use
    assert not shut & set(seen.values())


def test_drivers_do_not_pass_a_broken_vehicle_by_a_closed_lane():
    def sideways(**changes):
        settings = {"anomalies": ("breakdown",), "density": 1.5, "traffic": 0}
        simulation = Simulation(eventful(**settings, **changes))
        return any(
            (world.fleet["target_lateral"] != world.fleet["usual_lateral"]).any()
            for world in advance(simulation, 240)
        )

    assert sideways()
    assert not sideways(closed=[name for name in LANE_NAMES if name.endswith("right")])


def test_all_lanes_may_be_closed():
    simulation = simulation_of(closed=LANE_NAMES, anomalies=())
    for world in advance(simulation, 60):
        assert len(world.fleet) == 0
    assert world.people


def test_a_night_is_almost_empty_and_anomalies_still_happen():
    scene = eventful(density=0.05, anomalies=("u-turn", "pavement"))
    simulation = Simulation(scene)
    assert np.mean([len(world.fleet) for world in advance(simulation, 120)]) < 4
    assert scene.truth()
    assert len(frames(short(density=0.05, weather=("night",)))) == 10


@pytest.mark.parametrize("name", ["west left", "west right", "west cycle"])
def test_a_fence_changes_the_picture_only_near_its_lane(name):
    closed, fenced = (frames(short(**{key: (name,)})) for key in ("closed", "fenced"))
    change = np.abs(np.median(fenced, axis=0) - np.median(closed, axis=0)) > 25
    assert change.sum() > 60
    rows, columns = np.nonzero(change)
    camera = simulation_of().camera
    near = camera.project(_corners(Lane.named(name)))
    assert columns.min() >= near[:, 0].min() - 3
    assert columns.max() <= near[:, 0].max() + 3
    assert rows.min() >= near[:, 1].min() - 3
    assert rows.max() <= near[:, 1].max() + 3


def test_a_fence_is_dark_at_night():
    settings = {"density": 0.0, "anomalies": (), "weather": ("night",)}
    plain, fenced = (
        frames(short(fenced=lanes, **settings)).mean(axis=0) for lanes in ((), ("west left",))
    )
    assert 10 < (fenced - plain).max() < 80  # it has no headlights


def _corners(lane):
    """Return the corners of the box that boards and their shadows are in."""
    boards = fences(frozenset([lane]))
    low, high = boards[:, [X, Y]].min(axis=0) - 1.5, boards[:, [X, Y]].max(axis=0) + 1.5
    ends = zip(low, high, strict=True)
    return np.array(np.meshgrid(*ends, [0.0, 1.0])).reshape(3, -1).T


@pytest.mark.parametrize("name", LANE_NAMES)
def test_a_fence_stands_within_its_lane(name):
    lane = Lane.named(name)
    boards = fences(frozenset([lane]))
    turned = boards[:, X] + 1j * boards[:, Y]
    turned *= (-1j) ** lane.arm  # the arm now points east
    right, left = LANE_EDGES[lane.name]
    assert (turned.real >= FENCE_SPAN[0]).all()
    assert (turned.real <= FENCE_SPAN[1]).all()
    assert (-turned.imag > right).all()
    assert (-turned.imag < left).all()
    assert (boards[:, HEIGHT] == 1.0).all()


def test_vehicles_of_other_lanes_do_not_touch_a_fence():
    simulation = simulation_of(fenced=("west right",), anomalies=(), density=1.5)
    right, left = LANE_EDGES["right"]
    for world in advance(simulation, 120):
        fleet = world.fleet[world.fleet["kind"] != CYCLE]
        there = (fleet["x"] < -FENCE_SPAN[0]) & (fleet["x"] > -FENCE_SPAN[1])
        side = fleet["y"][there]  # to the left of a driver from the west
        room = 0.5 * fleet["width"][there]
        assert ((side - room > left - 0.3) | (side + room < right + 0.3)).all()


def test_a_fence_hides_the_legs_of_a_person_behind_it():
    simulation = simulation_of(width=720, height=576)
    lane = Lane(2, "left")
    x, y = point_on_arm(lane.arm, 25.0, LANE_EDGES[lane.name][0] + FENCE_MARGIN + 0.5)
    assert simulation.camera.position[1] < y  # the camera is on the other side of the boards
    one, rows = np.ones(1, np.int64), np.zeros((1, LUMA))
    rows[0, [X, Y, LENGTH, WIDTH, HEIGHT, KIND]] = x, y, 0.45, 0.5, 1.8, PERSON
    person = Snapshot(0.0, one, rows, 0 * one, -one)
    heights = []
    for fenced in (frozenset(), frozenset([lane])):
        search = VisibleBoxes(simulation.camera, simulation.light, SEED, fenced=fenced)
        _, top, _, bottom = search.box(SnapshotPair(person, person, {}), 0.0, 0)
        heights.append(bottom - top)
    assert 0.2 * heights[0] < heights[1] < 0.8 * heights[0]


def test_the_order_of_lanes_does_not_matter():
    one, two = short(closed=("west left", "east right")), short(closed=["east right", "west left"])
    assert one == two


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traffic": -1}, "traffic"),
        ({"traffic": 0.5}, "whole number"),
        ({"traffic": "monday"}, "monday"),
        ({"closed": ("up left",)}, "up left"),
        ({"closed": ("east ahead",)}, "choose from east left"),
        ({"closed": "east right"}, "kinds"),
        ({"closed": 3}, "kinds"),
        ({"fenced": ("north",)}, "north"),
        ({"fenced": "north cycle"}, "kinds"),
    ],
)
def test_bad_settings_raise_a_one_line_error(changes, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        short(**changes)
    assert "\n" not in str(caught.value)
    assert caught.value.parameter == next(iter(changes))
