import numpy as np
import pytest

from habitus.lab.junction.anomalies import KINDS
from habitus.lab.junction.layout import MOVEMENTS, SignalLight, Signals, paths
from habitus.lab.junction.recording import Junction, Simulation
from habitus.lab.junction.traffic import STEP, is_on_road

TOUCH = 0.05
"""Metres by which bounding boxes may overlap: vehicles have round corners."""


def simulation(seed, *, density=1.0, kinds=KINDS, per_hour=90.0, normal_for=20.0):
    rates = {"anomalies": kinds, "anomalies_per_hour": per_hour, "normal_for": normal_for}
    return Simulation(Junction(seed, density=density, **rates))


def advance(found, seconds):
    for _ in range(round(seconds / STEP)):
        found.scheduler.update(found.world)
        found.world.advance()
        yield found.world


def overlap(a, b):
    """Return the overlap of two boxes along the axis where it is least."""
    centre = np.array([b["x"] - a["x"], b["y"] - a["y"]])
    least = np.inf
    for heading in (a["heading"], b["heading"]):
        for axis in (
            np.array([np.cos(heading), np.sin(heading)]),
            np.array([-np.sin(heading), np.cos(heading)]),
        ):
            reach = sum(
                0.5 * v["length"] * abs(axis @ [np.cos(v["heading"]), np.sin(v["heading"])])
                + 0.5 * v["width"] * abs(axis @ [-np.sin(v["heading"]), np.cos(v["heading"])])
                for v in (a, b)
            )
            least = min(least, reach - abs(axis @ centre))
    return least


@pytest.mark.parametrize(("seed", "density"), [(0, 1.0), (1, 1.0), (2, 1.6)])
def test_vehicles_never_overlap(seed, density):
    for world in advance(simulation(seed, density=density), 150):
        fleet = world.fleet
        apart = np.hypot(fleet["x"][:, None] - fleet["x"], fleet["y"][:, None] - fleet["y"])
        near = apart < 0.5 * (fleet["length"][:, None] + fleet["length"]) + 0.6
        for i, j in zip(*np.nonzero(np.triu(near, 1)), strict=True):
            assert overlap(fleet[i], fleet[j]) <= TOUCH, (world.time, fleet["id"][[i, j]])


def test_only_drivers_who_ignore_signals_pass_a_red_light():
    fronts, crossed = {}, 0
    for world in advance(simulation(5), 200):
        for a in world.fleet:
            stop = world.paths.stops[a["path"]]
            passes = fronts.get(int(a["id"]), np.inf) <= stop < a["front"]
            fronts[int(a["id"])] = float(a["front"])
            if passes:
                crossed += 1
                arm, movement = divmod(int(a["path"]), len(MOVEMENTS))
                light = world.signals.light(arm, MOVEMENTS[movement], world.time)
                red = light in (SignalLight.RED, SignalLight.READY)
                assert not red or a["ignores_signals"], (world.time, a["id"])
    assert crossed > 30


def test_pedestrians_start_to_cross_only_in_their_phase():
    found = simulation(3, kinds=())
    began = 0
    before = set()
    for world in advance(found, 150):
        now = {p.id for p in world.people if is_on_road(p)}
        since = (world.time + world.signals.offset) % world.signals.cycle - world.signals.starts[3]
        if now - before:
            began += 1
            assert -STEP <= since <= world.signals.greens[3] + 2.0
        before = now
    assert began > 1


def test_traffic_flows_and_queues():
    speeds, n_vehicles = [], []
    for world in advance(simulation(7, kinds=()), 200):
        n_vehicles.append(len(world.fleet))
        speeds.extend(world.fleet["speed"])
    assert 8 < np.mean(n_vehicles) < 60
    standing = np.mean(np.array(speeds) < 0.2)
    assert 0.1 < standing < 0.8
    assert np.max(speeds) < 16


def test_no_anomaly_in_the_normal_part():
    found = simulation(2, normal_for=120.0, per_hour=200.0)
    for world in advance(found, 119):
        assert not found.scheduler.started
        assert not (world.fleet["anomaly"] >= 0).any()


def test_a_cycle_has_four_phases_and_crossing_roads_never_both_have_green():
    signals = Signals.random(np.random.default_rng(0))
    times = np.arange(0, signals.cycle, 0.1)
    assert {signals.phase(t) for t in times} == {0, 1, 2, 3}
    for t in times:
        lit = [[signals.light(arm, m, t) for m in ("ahead", "right")] for arm in range(4)]
        moving = [
            any(light in (SignalLight.GREEN, SignalLight.AMBER) for light in arm) for arm in lit
        ]
        assert not ((moving[0] or moving[2]) and (moving[1] or moving[3]))
        if signals.walk(t):
            assert not any(moving)


def test_paths_lead_from_lane_to_lane():
    found = paths()
    for arm in range(4):
        ahead = arm * len(MOVEMENTS)
        start, end = found.points[ahead, 0], found.points[ahead, -1]
        assert np.hypot(*(start + end)) < 8  # opposite arms
        assert np.isnan(found.zones[ahead, ahead]).all()
    steps = np.hypot(*np.diff(found.points, axis=1).transpose(2, 0, 1))
    assert steps.max() < 0.51
