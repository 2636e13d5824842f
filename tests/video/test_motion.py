"""Methods of motion estimation: by name, the same interface, imports on demand."""

import os
import subprocess
import sys

import numpy as np
import pytest

from habitus.corpus import Direction, Vocabulary
from habitus.corpus.vocabulary import SPEED_BOUNDS
from habitus.errors import InvalidInputError
from habitus.video import motion_by
from reference.footage import FPS, HEIGHT, WIDTH, Drawn, evenly, moving_square, texture

GRID = Vocabulary.of_frame(WIDTH, HEIGHT)
EVERYWHERE = np.ones((GRID.rows, GRID.columns), dtype=np.bool_)
METHODS = ["cells", "flow"]


def between(name, images):
    method = motion_by(name, GRID, EVERYWHERE)
    before, after = (method.prepare(frame) for frame in Drawn(images, evenly(2)))
    return method.between(before, after, 1 / FPS)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_a_moving_square(name):
    moves, change = between(name, moving_square(2, velocity=(4, 0), start=(56, 40)))
    assert moves.dtype == np.int16
    assert moves.shape == (GRID.rows, GRID.columns)
    inside = moves[14:19, 19:23]
    assert (inside // 16 == 3 * Direction.RIGHT + 1).all()
    # 100 pixels of the camera per second, in a frame that is analysed at twice its size
    assert (inside % 16 == np.searchsorted(SPEED_BOUNDS, 200, side="right")).all()
    assert change > 0


@pytest.mark.parametrize("name", METHODS)
def test_there_is_no_motion_across_a_cut(name):
    moves, change = between(name, [texture(WIDTH, HEIGHT, seed) for seed in (0, 1)])
    assert (moves == -1).all()
    assert change == 255.0


@pytest.mark.parametrize("name", METHODS)
def test_a_frozen_picture_changes_by_exactly_zero(name):
    image = texture(WIDTH, HEIGHT, 0)
    moves, change = between(name, [image, image])
    assert (moves == -1).all()
    assert change == 0.0


def test_an_unknown_method_is_refused():
    with pytest.raises(InvalidInputError, match="cells, flow, found 'magic'") as raised:
        motion_by("magic", GRID, EVERYWHERE)
    assert raised.value.parameter == "motion"


def test_importing_video_does_not_import_opencv():
    code = "import sys, habitus.video; sys.exit('cv2' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
