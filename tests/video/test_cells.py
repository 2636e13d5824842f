"""Motion per cell, on images without compression; each kernel against its NumPy twin."""

import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.video import cells
from habitus.video.cells import FLAT, LEAST_MOTION, Scratch, halve
from reference import cells as twins
from reference.footage import HEIGHT, WIDTH, moving_square, texture
from reference.footage import SIDE as SQUARE
from reference.motion import cell_motion, pyramid

CELL = 8
ROWS, COLUMNS = HEIGHT // CELL, WIDTH // CELL
START = (56, 40)
# Motion is told from a window of 16 pixels around the middle of a cell of 8.
MARGIN = 4
STEPS = {
    Direction.UP: (0, -1),
    Direction.LEFT: (-1, 0),
    Direction.DOWN: (0, 1),
    Direction.RIGHT: (1, 0),
}


def directions_between(before, after, watched=None):
    watched = np.ones((ROWS, COLUMNS), dtype=np.bool_) if watched is None else watched
    pair = [pyramid(picture, WIDTH, HEIGHT, 1) for picture in (before, after)]
    return cell_motion(*pair, watched, CELL // 2, LEAST_MOTION)


def move_of(direction):
    """The move in the middle of one of the four directions, at the lowest speed."""
    return 16 * (3 * direction + 1)


def cells_within(left, top, right, bottom):
    """Cells that lie wholly in a box of pixels."""
    found = np.zeros((ROWS, COLUMNS), dtype=np.bool_)
    rows, columns = -(-top // CELL), -(-left // CELL)
    found[rows : bottom // CELL, columns : right // CELL] = True
    return found


def square_and_touched(velocity):
    """Cells whose windows see nothing but the square in both frames, and those that see any of it.

    The square opens at START and has moved by `velocity`.
    """
    x0, y0 = START
    x1, y1 = x0 + velocity[0], y0 + velocity[1]
    left, top, right, bottom = max(x0, x1), max(y0, y1), min(x0, x1) + SQUARE, min(y0, y1) + SQUARE
    inside = cells_within(left + MARGIN, top + MARGIN, right - MARGIN, bottom - MARGIN)
    touched = np.zeros_like(inside)
    for x, y in ((x0, y0), (x1, y1)):
        touched[y // CELL : -(-(y + SQUARE) // CELL), x // CELL : -(-(x + SQUARE) // CELL)] = True
    return inside, touched


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("speed", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_moving_square_gives_its_direction_in_its_cells(direction, speed, seed):
    velocity = tuple(speed * s for s in STEPS[direction])
    found, change = directions_between(*moving_square(2, velocity=velocity, start=START, seed=seed))
    inside, touched = square_and_touched(velocity)
    assert inside.sum() >= 12
    assert (found[inside] == move_of(direction)).all()
    assert (found[~touched] == -1).all()
    assert set(np.unique(found // 48)) == {-1, direction}
    assert change > 0


def test_only_watched_cells_are_examined():
    watched = np.zeros((ROWS, COLUMNS), dtype=np.bool_)
    watched[8, 10] = True
    found, _ = directions_between(*moving_square(2, start=START), watched)
    assert found[8, 10] == move_of(Direction.RIGHT)
    assert (found >= 0).sum() == 1


def test_nothing_moves_in_a_still_scene():
    one, two = moving_square(2, velocity=(0, 0), start=START)
    found, change = directions_between(one, two)
    assert (found == -1).all()
    assert change == 0


@pytest.mark.parametrize("step", [-20, -3, 3, 20])
def test_a_change_of_brightness_is_not_motion(step):
    picture = texture(WIDTH, HEIGHT, 0).clip(20, 235)
    found, change = directions_between(picture, (picture.astype(int) + step).astype(np.uint8))
    assert (found == -1).all()
    assert change == pytest.approx(abs(step), abs=0.5)  # half a grey level of rounding


def lamp(picture, gain, radius):
    """Return a picture in which a lamp with a soft edge was switched on."""
    y, x = np.indices(picture.shape)
    spot = np.exp(-((x - 60) ** 2 + (y - 50) ** 2) / (2 * radius**2))
    return np.clip(picture * (1 + (gain - 1) * spot), 0, 255).astype(np.uint8)


def soft_scene():
    """Return a scene of areas that are smooth inside, as roads and walls are, with edges."""
    large = np.kron(np.random.default_rng(3).integers(40, 140, (6, 8)), np.ones((22, 22)))
    return (large[:HEIGHT, :WIDTH] + 0.1 * texture(WIDTH, HEIGHT, 0)).clip(0, 150).astype(np.uint8)


@pytest.mark.parametrize("change", [(1.5, 1e4), (0.7, 1e4), (1.6, 60.0), (1.6, 25.0), (0.5, 30.0)])
def test_a_change_of_light_is_not_motion(change):
    picture = soft_scene()
    found, _ = directions_between(picture, lamp(picture, *change))
    assert (found >= 0).sum() <= 2


def test_what_moves_while_a_lamp_is_switched_on_is_seen():
    one, two = moving_square(2, velocity=(3, 0), start=START)
    found, _ = directions_between(one // 2, lamp(two // 2, 1.3, 60.0))
    inside, _ = square_and_touched((3, 0))
    assert (found[inside] // 48 == Direction.RIGHT).mean() >= 0.75


def test_noise_is_not_motion():
    rng = np.random.default_rng(0)
    picture = texture(WIDTH, HEIGHT, 0).astype(float)
    one, two = (np.clip(picture + rng.normal(0, 4, picture.shape), 0, 255) for _ in range(2))
    found, _ = directions_between(one.astype(np.uint8), two.astype(np.uint8))
    assert (found >= 0).mean() < 0.01


def test_a_flat_sky_does_not_move():
    """Noise of the codec: blocks of 16 pixels, each one to three grey levels brighter."""
    rng = np.random.default_rng(0)
    one, two = moving_square(2, velocity=(3, 0), start=START)
    one[:32] = 220
    two[:32] = one[:32] + np.kron(rng.integers(1, 4, (2, 10)), np.ones((16, 16))).astype(np.uint8)
    watched = np.ones((ROWS, COLUMNS), dtype=np.bool_)
    pair = [pyramid(picture, WIDTH, HEIGHT, 1) for picture in (one, two)]
    found, unchecked = (
        cell_motion(*pair, watched, CELL // 2, LEAST_MOTION, flat=flat)[0] for flat in (FLAT, 0.0)
    )
    assert (unchecked[:4] >= 0).any()
    assert (found[:3] == -1).all()
    assert np.array_equal(found[found >= 0], unchecked[found >= 0])
    assert np.array_equal(found[5:], unchecked[5:])


def flat_patch_between(patch, flat):
    """Moves of two flat cells in a patch that goes three pixels to the right."""
    pair = []
    for x in (40, 43):
        picture = np.full((HEIGHT, WIDTH), 200, dtype=np.uint8)
        picture[40:88, x : x + 64] = patch
        pair.append(pyramid(picture, WIDTH, HEIGHT, 1))
    watched = np.ones((ROWS, COLUMNS), dtype=np.bool_)
    moves, _ = cell_motion(*pair, watched, CELL // 2, LEAST_MOTION, flat=flat)
    return moves[[7, 8], [9, 8]].tolist()


def test_the_flat_inside_of_a_vehicle_moves_with_it():
    right = [move_of(Direction.RIGHT)] * 2
    inside = 200 + 0.2 * (texture(64, 48, 7, softness=8) - 128.0)
    assert flat_patch_between(inside, 0.0) == right
    assert flat_patch_between(inside, FLAT) == [-1, -1]
    vehicle = texture(64, 48, 1000)
    vehicle[8:-8, 8:-8] = inside[8:-8, 8:-8]
    assert flat_patch_between(vehicle, FLAT) == right


@pytest.mark.parametrize(("width", "height"), [(64, 8), (8, 64), (64, 16), (16, 64), (24, 24)])
def test_motion_in_small_frames_reads_nothing_from_beyond_them(width, height):
    """Where such frames are accepted at all: what lies around them in memory must not matter."""
    try:
        grid = Vocabulary.of_frame(width, height, cell=CELL)
    except InvalidInputError:
        return
    watched = np.ones((grid.rows, grid.columns), dtype=np.bool_)
    before = texture(width, height, 0)
    found = []
    for seed in range(30):
        after = before.copy()
        after[:CELL, :CELL] = np.roll(before, 2, axis=1)[:CELL, :CELL]
        pyramids = [pyramid(picture, width, height, grid.scale) for picture in (before, after)]
        placed = [
            type(p)(*(_surrounded(level, seed, seed % 3 * k) for level in p))
            for k, p in enumerate(pyramids)
        ]
        found.append(cell_motion(*placed, watched, CELL // 2, 0.0)[0].tolist())
    assert all(directions == found[0] for directions in found)


def _surrounded(image, seed, shift):
    """The same picture, contiguous, amid memory of something else that moves by `shift`."""
    around = np.roll(texture(256, 64, seed), shift, axis=1).ravel()
    inner = around[8192 : 8192 + image.size].reshape(image.shape)
    inner[:] = image
    return inner


# Of floating-point results: the kernels expand the sums that NumPy's linear algebra computes.
RTOL = 1e-8
# Of energies, in squared grey levels: differences of large sums.
ATOL = 1e-6


@pytest.mark.parametrize(("width", "height", "padding"), [(16, 8, 0), (17, 9, 15), (160, 128, 32)])
def test_halve_equals_its_twin(width, height, padding):
    image = np.random.default_rng(0).integers(0, 256, (height, width + padding), dtype=np.uint8)
    half = np.empty((height // 2, width // 2), dtype=np.uint8)
    halve(image, half)
    assert np.array_equal(half, twins.halve(image, width, height))


@pytest.mark.parametrize("scale", [0.5, 1, 2, 4])
def test_pyramid_equals_its_twin(scale):
    image = np.random.default_rng(0).integers(0, 256, (131, 170), dtype=np.uint8)
    found, expected = pyramid(image, 161, 131, scale), twins.pyramid(image, 161, 131, scale)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("side", [2, 4, 6, 8])
def test_cell_changes_equal_their_twin(side):
    rng = np.random.default_rng(side)
    rows, columns = 5, 7
    shape = (rows * side + 1, columns * side + 3)  # more than the cells cover
    one, other = (rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(2))
    one[:side, :side], other[:side, :side] = 0, 255
    scratch = Scratch.of(rows, columns, side)
    total = cells.cell_changes(one, other, side, scratch.line, scratch.changes)
    assert scratch.changes[0, 0] == 255 * side * side
    assert np.array_equal(scratch.changes, twins.cell_changes(one, other, rows, columns, side))
    assert total == scratch.changes.sum()


def gated_by(changes, watched, least):
    """Cells that pass the gate, and the row of each in them."""
    scratch = Scratch.of(*changes.shape, 1)
    n = cells.gated_cells(changes, watched, least, scratch.slots, scratch.gated)
    return scratch.gated[:n], scratch.slots


@pytest.mark.parametrize("seed", range(20))
def test_gate_and_gated_cells_equal_their_twins(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, 2))
    changes = rng.poisson(rng.choice([2, 16, 22, 60]), shape).astype(np.int32)
    watched = rng.random(shape) < 0.8
    for least in (1.4 * 16, 0.0, float(np.median(changes))):
        gate = twins.gate(changes, least)
        found, expected = gated_by(changes, watched, least), twins.gated(changes, watched, gate)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def likeness_cases():
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 256, (70, 90), dtype=np.uint8) for _ in range(2)]
    scene = texture(90, 70, 0)
    flat = np.full((70, 90), 40, np.uint8)
    almost = flat.copy()
    almost[0, 0] += 3
    return {
        "noise": noise,
        "scene": (scene, scene),
        "brighter": (scene, (scene // 2 + 60).astype(np.uint8)),
        "negative": (scene, 255 - scene),
        "flat": (flat, almost),
        "flat and scene": (flat, scene),
        "scene and almost flat": (scene, almost),
        "white": (np.full((70, 90), 255, np.uint8), scene),
    }


@pytest.mark.parametrize("kind", likeness_cases())
def test_likeness_equals_its_twin(kind):
    one, other = likeness_cases()[kind]
    assert cells.likeness(one, other) == pytest.approx(
        twins.likeness(one, other), rel=RTOL, abs=1e-12
    )


def scenes():
    """Pairs of frames with motion of several speeds, noise, or nothing in common."""
    rng = np.random.default_rng(0)
    found = {}
    for seed, velocity in enumerate([(1, 0), (-3, 2), (0, 6), (9, -9), (-20, 4)]):
        before, after = moving_square(2, velocity=velocity, start=START, seed=seed)
        noise = rng.normal(0, 1.5 * seed, (2, *before.shape))
        found[f"square {velocity}"] = [
            np.clip(image + n, 0, 255).astype(np.uint8)
            for image, n in zip((before, after), noise, strict=True)
        ]
    scene = texture(WIDTH, HEIGHT, 5)
    one, two = moving_square(2, velocity=(2, 1), start=START, seed=6)
    found["lamp"] = [one // 2, lamp(two // 2, 1.6, 25.0)]
    found["camera shake"] = [scene, np.roll(scene, (1, -2), axis=(0, 1))]
    found["noise"] = [rng.integers(0, 256, scene.shape, dtype=np.uint8) for _ in range(2)]
    found["soft and noise"] = [scene, (scene // 2 + rng.integers(0, 90, scene.shape)).astype("u1")]
    return found


SCENES = scenes()


def levels_of(kind, scale=1):
    """Half and quarter resolution of both frames."""
    pyramids = [pyramid(image, WIDTH, HEIGHT, scale) for image in SCENES[kind]]
    return tuple(zip(*pyramids, strict=True))


def places(images, n, seed):
    """Corners of windows that can be compared, and shifts that stay inside."""
    rng = np.random.default_rng(seed)
    height, width = images[0].shape
    for _ in range(n):
        top, left = rng.integers(1, height - 9), rng.integers(1, width - 9)
        sx = rng.integers(max(-6, 1 - left), min(6, width - 9 - left) + 1)
        sy = rng.integers(max(-6, 1 - top), min(6, height - 9 - top) + 1)
        yield int(top), int(left), int(sx), int(sy)


@pytest.mark.parametrize("kind", SCENES)
def test_first_fits_equal_their_twin(kind):
    """Of one step, from nothing."""
    halves, _ = levels_of(kind)
    for place in places(halves, 60, 0):
        found = np.full((7, 1), np.inf)
        cells._refine(*halves, *place, found, 0)
        np.testing.assert_allclose(found[:, 0], twins.fit(halves, *place), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("kind", SCENES)
def test_refined_fits_equal_their_twin(kind):
    halves, _ = levels_of(kind)
    for top, left, sx, sy in places(halves, 40, 1):
        expected = twins.fit(halves, top, left, 0, 0)[None]
        found = expected.T.copy()
        cells._refine(*halves, top, left, sx, sy, found, 0)
        twins.refine(halves, top, left, sx, sy, expected, 0)
        np.testing.assert_allclose(found.T, expected, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("kind", SCENES)
def test_what_light_leaves_equals_its_twin(kind):
    halves, _ = levels_of(kind)
    for top, left, _, _ in places(halves, 60, 2):
        found = cells._left_by_light(*halves, top, left)
        expected = twins.left_by_light(halves, top, left)
        assert found == pytest.approx(expected, rel=RTOL, abs=1e-6)


@pytest.mark.parametrize("kind", SCENES)
def test_block_matches_equal_their_twin(kind):
    _, quarters = levels_of(kind)
    height, width = quarters[0].shape
    for y in range(0, height, 5):
        for x in range(0, width, 5):
            assert cells._match(*quarters, y, x) == twins.match(quarters, y, x)


def cells_above(changes, gate):
    """Cells that change more than that, and the row of each in them, as kernels take them."""
    watched = np.ones(changes.shape, dtype=np.bool_)
    return (found.astype(np.int32) for found in twins.gated(changes, watched, gate))


@pytest.mark.parametrize("side", [4, 8])
@pytest.mark.parametrize("kind", SCENES)
def test_all_fits_equal_their_twin(kind, side):
    halves, quarters = levels_of(kind)
    rows, columns = np.array(halves[0].shape) // side
    changes = twins.cell_changes(*halves, rows, columns, side).astype(np.int32)
    gated, slots = cells_above(changes, 1.4 * side**2)
    assert len(gated) > 5
    levels = (halves[0], quarters[0], halves[1], quarters[1])
    found = np.empty((7, len(gated)))
    cells.fit_all(*levels, side, len(gated), gated, slots, found)
    expected = twins.fit_all(halves, quarters, gated, slots, side)
    np.testing.assert_allclose(found.T, expected, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("seed", range(10))
def test_moves_weigh_the_fits_of_neighbours_as_their_twin(seed):
    """Neighbours disagree, and differ widely in what they leave unexplained."""
    rng = np.random.default_rng(seed)
    shape = (12, 15)
    changes = rng.integers(0, 4, shape).astype(np.int32)
    gated, slots = cells_above(changes, 0.5)
    G = rng.normal(0, 3, (len(gated), 9, 2))
    tensors = np.einsum("kni,knj->kij", G, G)
    fits = np.empty((len(gated), 7))
    fits[:, :3] = tensors[:, [0, 0, 1], [0, 1, 1]]
    fits[:, 3:5] = rng.normal(0, 2, (len(gated), 2))
    fits[:, 5] = 10 ** rng.uniform(-1, 4, len(gated))
    moved = rng.random(len(gated)) < 0.8
    fits[:, 6] = np.where(moved, 2, 1) * fits[:, 5]  # explained by half, or not at all
    bounds = np.array([0.5, 1.0, 2.0, 3.0])
    found, flags = np.full(shape, -1, dtype=np.int16), np.empty(len(gated), dtype=np.bool_)
    table = np.ascontiguousarray(fits.T)
    limits = np.array([0.0, 1.0, 0.0])
    cells.move_all(len(gated), gated, slots, table, limits, bounds, flags, found)
    assert np.array_equal(flags, moved)
    assert np.array_equal(found, twins.moves(gated, slots, fits, moved, bounds))
    moves = found[found >= 0]
    assert len(np.unique(moves // 16)) >= 10
    assert {2, 3, 4} <= set(moves % 16) <= {0, 1, 2, 3, 4}


def test_fine_directions_are_those_of_angles():
    """Every degree and, beside each bound, both sides of it."""
    angles = np.arange(360.0)
    angles = np.concatenate([angles, angles - 1e-6, angles + 1e-6])
    angles = angles[np.abs(angles % 30 - 15) > 1e-9]
    for angle in angles:
        dx, dy = -np.sin(np.radians(angle)), -np.cos(np.radians(angle))
        expected = int((angle + 45) // 30) % 12
        assert cells.fine_direction(dx, dy) == twins.fine_direction(dx, dy) == expected


def test_a_third_of_a_fine_direction_is_the_papers_direction():
    motions = np.random.default_rng(0).integers(-9, 10, (500, 2)).astype(float)
    for dx, dy in motions:
        sideways, upright = 3 if dx > 0 else 1, 2 if dy > 0 else 0
        expected = sideways if abs(dx) >= abs(dy) else upright
        assert cells.fine_direction(dx, dy) // 3 == expected


@pytest.mark.parametrize("flat", [0.0, FLAT, 400.0])
@pytest.mark.parametrize("cell", [8, 12])
@pytest.mark.parametrize("kind", SCENES)
def test_cell_motion_equals_its_twin(kind, cell, flat):
    before, after = (pyramid(image, WIDTH, HEIGHT, 1) for image in SCENES[kind])
    watched = np.random.default_rng(0).random((HEIGHT // cell, WIDTH // cell)) < 0.9
    settings = (cell // 2, LEAST_MOTION, np.array([1.0, 2.0, 5.0]), flat)
    moves, change = cell_motion(before, after, watched, *settings)
    expected_moves, expected_change = twins.cell_motion(before, after, watched, *settings)
    assert np.array_equal(moves, expected_moves)
    assert change == pytest.approx(expected_change, rel=RTOL)
    assert (moves >= 0).any() == ("noise" not in kind)
