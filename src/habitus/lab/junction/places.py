"""Where buildings, trees and poles stand: nowhere that would hide the road."""

import numpy as np

from habitus.lab.junction.camera import Camera
from habitus.lab.junction.layout import HALF, PAVEMENT, STOP, Points, place
from habitus.lab.junction.standing import Block, Pole, Thing, Tree


def standing(camera: Camera, seed: int) -> list[Thing]:
    """Buildings and trees where they hide no road, and the signals' poles."""
    rng = np.random.default_rng([seed, 6])
    found: list[Thing] = []
    for arm in range(4):
        for side in (-1.0, 1.0):
            found += [b for b in _street(arm, side, rng) if not _hides(b, camera)]
            found += [t for t in _trees(arm, side, rng) if not _tree_hides(t, camera)]
    for at in signal_poles():
        found.append(Pole(at, 3.4, 0.08, np.array([70.0, 70, 70])))
    for arm in range(4):
        at = place(arm, STOP + rng.uniform(6, 12), -(HALF + 0.8))
        if np.hypot(*(at - camera.position[:2])) > 9:
            found.append(Pole(at, rng.uniform(7, 9), 0.09, np.array([110.0, 112, 112])))
    return found


def signal_poles() -> list[Points]:
    """Places of the signals: beside each stop line, on both sides of it."""
    return [place(arm, STOP - 0.6, side) for arm in range(4) for side in (HALF + 0.6, -HALF - 0.6)]


def _street(arm: int, side: float, rng: np.random.Generator) -> list[Block]:
    """Buildings along one side of an arm."""
    blocks, d = [], HALF + PAVEMENT + rng.uniform(1, 5)
    while d < 110:
        length, depth = rng.uniform(9, 20), rng.uniform(9, 14)
        start = HALF + PAVEMENT + rng.uniform(0.6, 2.5)
        a, b = place(arm, d, side * start), place(arm, d + length, side * (start + depth))
        tone = np.array([[98, 112, 140], [128, 140, 152], [150, 156, 160], [86, 98, 128]])
        colour = tone[rng.integers(4)] * rng.uniform(0.75, 1.1)
        height = 3.2 * rng.integers(2, 6) + 0.8
        blocks.append(Block(np.minimum(a, b), np.maximum(a, b), height, colour, 3.2))
        d += length + (rng.uniform(0, 7) if rng.random() < 0.4 else 0.0)
    return blocks


def _trees(arm: int, side: float, rng: np.random.Generator) -> list[Tree]:
    trees = []
    for d in np.arange(24, 80, 13.0):
        if rng.random() < 0.45:
            at = place(
                arm, d + rng.uniform(-3, 3), side * (HALF + PAVEMENT + rng.uniform(-0.6, 1.5))
            )
            height = rng.uniform(5, 9)
            n = 70
            turn, up = rng.uniform(0, 2 * np.pi, n), rng.uniform(-1, 1, n)
            wide = 0.26 * height * np.sqrt(1 - up**2) * rng.uniform(0.3, 1, n) ** 0.5
            z = height * (0.68 + 0.3 * up)
            bright = np.clip(0.85 + 0.3 * up + rng.normal(0, 0.13, n), 0.4, 1.5)
            trees.append(
                Tree(
                    at,
                    height,
                    np.stack(
                        [
                            at[0] + wide * np.cos(turn), at[1] + wide * np.sin(turn), z,
                            rng.uniform(0.35, 0.8, n), bright,
                        ],
                        axis=1,
                    ),
                )
            )  # fmt: skip
    return trees


def _watched() -> Points:
    """Places that must stay in view: the carriageways and crossings."""
    spots = [
        place(arm, d, c)
        for arm in range(4)
        for d in np.arange(0, 62, 4.0)
        for c in (-8.0, 0.0, 8.0)
    ]
    return np.array(spots)


def _hides(block: Block, camera: Camera) -> bool:
    """Whether a building stands between the camera and the road, or around the camera."""
    share = np.linspace(0, 1, 60)[:, None, None]
    low, high = block.low - 1.5, block.high + 1.5
    way = camera.position[:2] + share * (_watched() - camera.position[:2])
    drop = camera.position[2] * (1 - share[..., 0])
    within = ((way > low) & (way < high)).all(axis=2) & (drop < block.height + 1)
    return bool(within.any())


def _tree_hides(tree: Tree, camera: Camera) -> bool:
    radius = 0.34 * tree.height
    box = Block(tree.at - radius, tree.at + radius, tree.height, tree.at, 1.0)
    return _hides(box, camera)
