"""The compiled drawing kernels against their NumPy twins.

Kernels compute in single precision and may fuse a product with the sum it feeds: a pixel may differ
by one level where rounding decides.
"""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.painter import N_COLUMNS
from habitus.lab.junction.raster import (
    Planes,
    cover,
    darken,
    expose,
    hull,
    noise_field,
    paint,
    shade,
    stencil,
)
from habitus.lab.junction.solids import (
    cast_shadows,
    draw_objects,
    draw_order,
    in_view,
    place_quad,
    project_point,
    solids,
    stencil_visible,
)
from habitus.lab.junction.vehicles import (
    CAR,
    COS,
    CYCLE,
    HEADING,
    HEIGHT,
    KIND,
    LENGTH,
    LORRY,
    LUMA,
    PERSON,
    SIN,
    TRAVELLED,
    VAN,
    WIDTH,
    X,
    Y,
)
from reference import junction_drawing as twins

SHAPE = (48, 64)
ONE_LEVEL = 1


def scratch(shape=SHAPE):
    """Return the rows that the kernels need as scratch space."""
    return np.zeros((shape[0] + 2, shape[1] + 2), np.float32)


def hull_of(points):
    return points[ConvexHull(points).vertices]


def polygons():
    """Return convex polygons: small, tall, cut by each edge of the picture, and outside it."""
    rng = np.random.default_rng(0)
    for scale in (1.5, 6.0, 20.0, 60.0):
        for _ in range(6):
            centre = rng.uniform((-10, -10), (74, 58))
            corners = hull_of(centre + scale * rng.standard_normal((4, 2)))
            if len(corners) == 4:
                yield corners.T.copy()


@pytest.mark.parametrize("n_lines", [2, 4])
def test_cover_is_the_share_of_each_pixel(n_lines):
    n_seen = 0
    for xs, ys in polygons():
        rows = scratch()
        top, bottom, left, right = cover(rows, xs, ys, 4, SHAPE, n_lines)
        bottom = max(top, bottom)  # nothing, for a polygon above the picture
        expected = twins.covered(xs, ys, SHAPE, n_lines)
        found = np.zeros(SHAPE)
        found[top:bottom] = rows[: bottom - top, : SHAPE[1]]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        outside = np.ones(SHAPE, bool)
        outside[top:bottom, left:right] = False
        assert not expected[outside].any()
        n_seen += bool(expected.any())
    assert n_seen > 10


def planes_and_depths(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(16, 236, SHAPE, dtype=np.uint8), rng.uniform(1, 9, SHAPE).astype(np.float32)


@pytest.mark.parametrize(("slope", "n_lines"), [(0.0, 4), (-1.5, 4), (0.0, 2)])
def test_paint_fills_what_is_in_front(slope, n_lines):
    plane, depths = planes_and_depths(1)
    for xs, ys in polygons():
        expected = twins.painted(plane, depths, 4.0, xs, ys, 180.0, slope, n_lines)
        rows, found = scratch(), plane.copy()
        paint(found, rows, depths, 4.0, xs, ys, 180.0, slope, n_lines)
        np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=ONE_LEVEL)
        assert not rows.any()


def test_shade_raises_a_mask():
    mask, _ = planes_and_depths(4)
    for xs, ys in polygons():
        rows, found = scratch(), mask.copy()
        shade(found, rows, xs, ys, 4, 200.0)
        expected = twins.shaded(mask, xs, ys, 200.0)
        np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=ONE_LEVEL)
        assert not rows.any()


def test_stencil_sets_a_mask():
    for xs, ys in polygons():
        rows, found = scratch(), np.zeros(SHAPE, np.uint8)
        stencil(found, rows, xs, ys, 4, 7)
        np.testing.assert_array_equal(found, twins.stencilled(np.zeros(SHAPE), xs, ys, 7))
        assert not rows.any()


def test_hull_is_the_convex_hull():
    rng = np.random.default_rng(5)
    for _ in range(20):
        points = rng.standard_normal((8, 2))
        out = np.empty((2, 9))
        size = hull(*points.T.copy(), 8, *out)
        expected = hull_of(points)
        assert size == len(expected)
        start = int(np.argmin(out[0, :size]))
        found = np.roll(out[:, :size].T, -start, axis=0)
        expected = np.roll(expected, -int(np.argmin(expected[:, 0])), axis=0)
        reverse = np.roll(expected[::-1], 1, axis=0)
        assert np.array_equal(found, expected) or np.array_equal(found, reverse)


def test_darken_blends_two_pictures():
    rng = np.random.default_rng(6)
    lit, dark = rng.integers(256, size=(2, 72, 64), dtype=np.uint8)
    mask = rng.integers(256, size=SHAPE, dtype=np.uint8)
    found, (luma, shade_, share) = lit.copy(), (p.astype(int) for p in (lit, dark, mask))
    darken(found, dark, mask)
    blend = (luma[:48] * (255 - share) + shade_[:48] * share + 127) // 255
    np.testing.assert_array_equal(found, np.concatenate([blend, lit[48:]]))


def test_expose_adds_wrapped_noise():
    noise, (luma, _) = noise_field(np.random.default_rng(7), *SHAPE), planes_and_depths(7)
    found = luma.copy()
    expose(found, noise, 500, 480, 1.1, 24.0)
    expected = twins.exposed(luma, noise, 500, 480, 1.1, 24.0)
    np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=ONE_LEVEL)
    assert (found != luma).mean() > 0.5


@pytest.fixture(scope="module")
def camera():
    return Camera.random(np.random.default_rng(8), SHAPE[1], SHAPE[0])


def row(kind, x, y, heading, size):
    """Return the row of an object with distinct colours of its roles."""
    made = np.zeros(N_COLUMNS)
    made[[KIND, X, Y, HEADING, COS, SIN]] = kind, x, y, heading, np.cos(heading), np.sin(heading)
    made[[LENGTH, WIDTH, HEIGHT]], made[TRAVELLED] = size, 0.3
    made[LUMA:] = np.linspace(40, 200, N_COLUMNS - LUMA)
    return made


@pytest.fixture(scope="module")
def objects(camera):
    """Return objects in view, some of which hide others."""
    made = np.stack(
        [
            row(CAR, 0.0, 0.0, 0.3, (4.2, 1.8, 1.5)),
            row(LORRY, 6.0, 3.0, 1.2, (9.0, 2.4, 3.5)),
            row(VAN, -3.0, 6.0, -0.8, (5.5, 2.0, 2.3)),
            row(CYCLE, 2.0, -5.0, 2.0, (1.8, 0.6, 1.8)),
            row(PERSON, -4.0, -3.0, 0.0, (0.45, 0.5, 1.8)),
        ]
    )
    assert all(in_view(obj, camera.view) for obj in made)
    return made


def test_points_are_projected_as_by_the_camera(camera):
    points = np.random.default_rng(9).uniform((-15, -15, 0), (15, 15, 4), (20, 3))
    found = [project_point(camera.view, *point) for point in points]
    np.testing.assert_allclose(found, camera.project(points), rtol=1e-9)


def test_quadrilaterals_are_scaled_turned_and_moved(objects):
    shapes, out = solids(), np.empty((4, 3))
    for obj in objects:
        for q in range(*shapes.ranges[int(obj[KIND])]):
            place_quad(obj, shapes.corners[q], shapes.swings[q], out)
            expected = twins.corners_of(obj, shapes.corners[q], shapes.swings[q])
            np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


def test_the_draw_order_is_by_distance_for_objects_far_apart(camera):
    apart = np.stack([row(PERSON, x, 4.0 * x, 0.0, (0.45, 0.5, 1.8)) for x in range(-4, 5)])
    away = np.hypot(*(apart[:, [X, Y]] - camera.position[:2]).T)
    found = draw_order(apart, camera.view)
    np.testing.assert_array_equal(found, np.argsort(-away))


def test_a_person_behind_the_near_end_of_a_lorry_is_drawn_before_it(camera):
    """The person is nearer to the camera than the middle of the lorry, which stands in front."""
    towards = np.arctan2(camera.position[1], camera.position[0])
    slanted = towards + np.pi / 4
    along = np.array([np.cos(slanted), np.sin(slanted)])
    away = np.array([-along[1], along[0]])  # the camera is on the other side
    lorry = row(LORRY, 0.0, 0.0, slanted, (10.6, 2.5, 3.5))
    person = row(PERSON, *(4.0 * along + 1.8 * away), 0.0, (0.45, 0.5, 1.8))
    distances = [np.hypot(*(camera.position[:2] - obj[[X, Y]])) for obj in (lorry, person)]
    assert distances[1] < distances[0]
    assert draw_order(np.stack([lorry, person]), camera.view).tolist() == [1, 0]


def test_objects_are_drawn_from_far_to_near(camera, objects):
    view, shapes = camera.view, solids()
    light = Daylight.random(np.random.default_rng(1))
    sun = np.array([*light.sun, light.direct])
    luma, depths = planes_and_depths(10)
    depths = depths + 30  # some pixels are hidden by structures
    blue, red = luma[::2, ::2].copy(), luma[1::2, ::2].copy()
    coarse = np.ascontiguousarray(depths[::2, ::2])
    order = draw_order(objects, view)
    expected = twins.drawn((luma, blue, red), depths, coarse, objects, order, camera, sun, shapes)
    before = luma.copy()
    rows = scratch()
    draw_objects(Planes(luma, blue, red), rows, depths, coarse, objects, order, view, sun, shapes)
    for found, wanted in zip((luma, blue, red), expected, strict=True):
        np.testing.assert_allclose(found.astype(int), wanted, rtol=0, atol=2 * ONE_LEVEL)
    assert (luma != before).sum() > 50


@pytest.mark.parametrize("strength", [0.05, 0.7])
def test_shadows_are_cast_away_from_the_sun(camera, objects, strength):
    sun, rows, found = np.array([0.5, 0.3, 0.8, 0.5]), scratch(), np.zeros(SHAPE, np.uint8)
    cast_shadows(found, rows, objects, camera.view, sun, strength)
    expected = twins.cast(SHAPE, objects, camera, sun, strength, hull_of)
    np.testing.assert_allclose(found.astype(int), expected, rtol=0, atol=ONE_LEVEL)
    assert found.max() == 255


def test_what_is_visible_of_an_object_is_marked(camera, objects):
    view, shapes = camera.view, solids()
    order = draw_order(objects, view)
    for which in range(len(objects)):
        mask = np.zeros(SHAPE)
        for i in order[list(order).index(which) :]:
            for q in range(*shapes.ranges[int(objects[i, KIND])]):
                corners = twins.corners_of(objects[i], shapes.corners[q], shapes.swings[q])
                xs, ys, _ = camera.project(corners).T
                mask = twins.stencilled(mask, xs, ys, 1 if i == which else 2)
        found = np.zeros(SHAPE, np.uint8)
        stencil_visible(found, scratch(), objects, order, which, view, shapes)
        np.testing.assert_array_equal(found, mask)
