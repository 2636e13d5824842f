"""The compiled driving kernels against the same functions run by plain Python."""

import numpy as np
import pytest

from habitus.lab.junction import vehicles
from habitus.lab.junction.layout import paths
from habitus.lab.junction.recording import Junction, Simulation
from habitus.lab.junction.traffic import PERSON_RADIUS, STEP
from habitus.lab.junction.vehicles import AMBER, CAR, GREEN, RED, new_vehicle

KERNELS = [name for name, value in vars(vehicles).items() if hasattr(value, "py_func")]
COMPILED = {name: getattr(vehicles, name) for name in KERNELS}


@pytest.fixture
def plain(monkeypatch):
    """Return the kernels as plain Python functions that call each other."""
    for name in KERNELS:
        monkeypatch.setattr(vehicles, name, getattr(vehicles, name).py_func)
    return vehicles


def assert_alike(found, expected):
    for name in vehicles.VEHICLE.names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.fixture(scope="module")
def worlds():
    """Return fleets and pedestrians of a busy junction with anomalies, at several times."""
    found = Simulation(Junction(5, density=1.5, anomalies_per_hour=300.0, normal_for=0.0))
    taken = []
    for step in range(1200):
        found.scheduler.update(found.world)
        if step % 100 == 0:
            people = [(p.x, p.y, PERSON_RADIUS) for p in found.world.people if p.crossing >= 0]
            obstacles = np.array(people).reshape(-1, 3)
            taken.append((found.world.fleet.copy(), obstacles, found.world.time))
        found.world.advance()
    return taken


def test_vehicles_move_as_in_plain_python(worlds, plain):
    moved, walkers = 0, 0
    for fleet, obstacles, time in worlds:
        expected = fleet.copy().view(np.recarray)
        plain.drive(expected, obstacles, paths(), STEP, time)
        found = fleet.copy()
        COMPILED["drive"](found, obstacles, paths(), STEP, time)
        assert_alike(found, expected)
        moved += int((found["front"] > fleet["front"]).sum())
        walkers += len(obstacles)
    assert moved > 100
    assert walkers > 0


def test_drivers_obey_signals_as_in_plain_python(worlds, plain):
    rng = np.random.default_rng(0)
    n_paths, held = len(paths().stops), 0
    for fleet, _, time in worlds:
        lights = rng.choice([RED, AMBER, GREEN], n_paths)
        left, closed = rng.uniform(0, 4, n_paths), rng.random(n_paths) < 0.2
        expected, found = fleet.copy().view(np.recarray), fleet.copy()
        plain.obey_signals(expected, lights, left, closed, paths(), time)
        COMPILED["obey_signals"](found, lights, left, closed, paths(), time)
        assert_alike(found, expected)
        waits = np.isfinite(found["stop_at"])
        np.testing.assert_array_equal(found["stop_at"][waits], paths().stops[found["path"][waits]])
        held += int(waits.sum())
    assert held > 10


def test_the_following_acceleration_is_the_intelligent_driver_model():
    fleet = new_vehicle(np.random.default_rng(1), CAR, 0, 1)
    fleet["speed"], gap, ahead = 9.0, 25.0, 7.0
    v, v0, a, b = 9.0, fleet["desired_speed"][0], fleet["max_acceleration"][0], 2.2
    desired = fleet["min_gap"][0] + v * fleet["headway"][0] + v * (v - ahead) / (2 * np.sqrt(a * b))
    expected = a * (1 - (v / v0) ** 4 - (desired / gap) ** 2)
    found = vehicles._following_acceleration(fleet[0], gap, ahead)
    assert found == pytest.approx(expected, rel=1e-12)
