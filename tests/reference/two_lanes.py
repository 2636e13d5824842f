"""A scene of two lanes that take turns, drawn and encoded, in which something goes wrong once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reference.footage import Picture, encode, texture

WIDTH, HEIGHT, FPS = 192, 144, 10
TURN = 6
"""Seconds that a lane has, then the other."""
WRONG = (66.0, 69.0)
"""When something goes against its lane."""
SECONDS = 76
SIDE, SPEED = 28, 4
GROUND = texture(WIDTH, HEIGHT, 0)
CAR, OTHER, WRONG_CAR = (texture(SIDE, SIDE, 1000 + n, softness=1.5) for n in range(3))


def pictures(seconds: int = SECONDS) -> Iterator[Picture]:
    """One lane to the right, one downwards, in turns; something to the left at WRONG."""
    for i in range(seconds * FPS):
        time = i / FPS
        picture = lanes_at(time)
        if WRONG[0] <= time < WRONG[1]:
            wrong_at(picture, time - WRONG[0])
        yield picture


def lanes_at(time: float) -> Picture:
    """The scene at a time in seconds, without anything wrong."""
    picture, step = GROUND.copy(), round(time * FPS) * SPEED
    if time // TURN % 2 == 0:
        _put(picture, CAR, step % (WIDTH - SIDE), 88)
    else:
        _put(picture, OTHER, 32, step % (HEIGHT - SIDE))
    return picture


def wrong_at(picture: Picture, since: float) -> None:
    """Draw what goes against its lane, so many seconds after it appeared."""
    _put(picture, WRONG_CAR, round(WIDTH - SIDE - since * 50), 30)


def _put(picture: Picture, patch: Picture, x: int, y: int) -> None:
    picture[y : y + len(patch), x : x + patch.shape[1]] = patch


def two_lanes(path: Path, seconds: int = SECONDS) -> Path:
    """Write the scene as a video."""
    return encode(path, pictures(seconds), rate=FPS)


def normal_documents(n_documents: int) -> np.ndarray:
    """Numbers of the documents before something goes wrong, with a second to spare."""
    return np.arange(min(n_documents, int(WRONG[0]) - 2))
