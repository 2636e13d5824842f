"""Footage with known motion: textured objects before a textured wall, rendered and encoded.

Each case has objects that all move with one velocity, in pixels a frame, and enter again at the
other side. Frames are rendered at four times the resolution, so that half pixels are real.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image

WIDTH, HEIGHT, FPS = 360, 288, 25
FINE = 4
SIZES = ((64, 40), (48, 32), (40, 56))


@dataclass(frozen=True)
class Case:
    """One piece of footage."""

    name: str
    velocity: tuple[float, float]
    noise: float = 0.0
    codec: str = "libx264"
    effect: str = "none"
    n_frames: int = 50
    seed: int = 0
    size: float = 1.0
    """Of the objects, over the usual."""

    @property
    def direction(self) -> int:
        """Up, left, down, right: 0 to 3; the paper's order."""
        dx, dy = self.velocity
        if abs(dx) > abs(dy):
            return 3 if dx > 0 else 1
        return 2 if dy > 0 else 0


class Rendered(NamedTuple):
    """A frame and which of its pixels belong to an object."""

    picture: Image
    objects: NDArray[np.bool_]


def render(case: Case) -> Iterator[Rendered]:
    """All frames of a case."""
    rng = np.random.default_rng(case.seed)
    wall = _texture((HEIGHT, WIDTH), 100, 30, rng)
    things = [_thing((int(w * case.size), int(h * case.size)), rng) for w, h in SIZES]
    starts = [np.array([WIDTH, HEIGHT]) * share for share in ((0.15, 0.2), (0.5, 0.55), (0.8, 0.3))]
    for t in range(case.n_frames):
        picture, mask = wall.copy(), np.zeros((HEIGHT, WIDTH), dtype=bool)
        for thing, start in zip(things, starts, strict=True):
            _paste(picture, mask, thing, start + t * np.array(case.velocity), case.effect)
        light = _light(case.effect, t, picture)
        yield Rendered(_sensor(light, case.noise, rng), mask)


def encode(case: Case, path: Path) -> list[NDArray[np.bool_]]:
    """Write the footage as a video; gives the objects of each frame."""
    masks = []
    with av.open(str(path), "w") as container:
        stream = container.add_stream(case.codec.split()[0], rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = OPTIONS[case.codec]
        for picture, mask in render(case):
            masks.append(mask)
            frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return masks


OPTIONS = {
    "libx264": {"crf": "23", "preset": "medium"},
    "libx265": {"crf": "28", "preset": "fast", "x265-params": "log-level=none"},
    "mpeg4": {"qmin": "5", "qmax": "5"},
    "mpeg4 starved": {"b": "200000"},
}


def _texture(
    shape: tuple[int, int], level: float, contrast: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    grain = cv2.GaussianBlur(rng.standard_normal(shape), (0, 0), 2.0)
    return level + contrast * grain / grain.std()


def _thing(size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    width, height = size
    grain = cv2.GaussianBlur(rng.standard_normal((height * FINE, width * FINE)), (0, 0), 2.0 * FINE)
    return rng.uniform(70, 170) + 30 * grain / grain.std()


def _paste(
    picture: NDArray[np.float64],
    mask: NDArray[np.bool_],
    thing: NDArray[np.float64],
    at: NDArray[np.float64],
    effect: str,
) -> None:
    """Draw a thing at a place in quarters of a pixel, wrapped around the frame."""
    height, width = thing.shape[0] // FINE, thing.shape[1] // FINE
    fine = np.round(at * FINE).astype(int)
    whole, part = fine // FINE, fine % FINE
    grown = np.full(((height + 1) * FINE, (width + 1) * FINE), np.nan)
    grown[part[1] : part[1] + height * FINE, part[0] : part[0] + width * FINE] = thing
    covered = ~np.isnan(grown)
    blocks = (height + 1, FINE, width + 1, FINE)
    share = covered.reshape(blocks).mean(axis=(1, 3))
    colour = np.where(covered, grown, 0).reshape(blocks).mean(axis=(1, 3))
    y = (whole[1] + np.arange(height + 1)) % HEIGHT
    x = (whole[0] + np.arange(width + 1)) % WIDTH
    place = np.ix_(y, x)
    if effect == "shadows":
        below = np.ix_((y + 10) % HEIGHT, (x + 14) % WIDTH)
        picture[below] *= 1 - 0.4 * share
    picture[place] = picture[place] * (1 - share) + colour
    mask[place] |= share >= 0.5


def _light(effect: str, t: int, picture: NDArray[np.float64]) -> NDArray[np.float64]:
    if effect == "flicker":
        return picture * (1 + 0.03 * np.sin(2 * np.pi * 5 * t / FPS))
    if effect == "exposure":
        return picture * (1.25 if (t // 8) % 2 else 1.0)
    if effect == "dark":
        return picture * 0.2 + 8
    return picture


def _sensor(light: NDArray[np.float64], noise: float, rng: np.random.Generator) -> Image:
    seen = light + noise * rng.standard_normal(light.shape) if noise else light
    return np.clip(np.round(seen), 0, 255).astype(np.uint8)


STRAIGHT = ((1, 0), (0, 1), (-1, 0), (0, -1))
BETWEEN = ((1, 0.5), (-0.5, 1), (-1, -0.5), (0.5, -1))


def standard_cases() -> list[Case]:
    """1, 2, 4, 8 pixels a frame, four directions and four between, three levels of noise."""
    return [
        Case(f"{speed} px", (speed * x, speed * y), noise, seed=7 * i + int(noise))
        for speed in (1, 2, 4, 8)
        for i, (x, y) in enumerate(STRAIGHT + BETWEEN)
        for noise in (0.0, 4.0, 8.0)
    ]


def special_cases() -> dict[str, list[Case]]:
    """Rows of their own."""

    def each(
        name: str, speed: float, ways: tuple[tuple[float, float], ...] = STRAIGHT, **rest: object
    ) -> list[Case]:
        return [
            Case(name, (speed * x, speed * y), 4.0, seed=i, **rest) for i, (x, y) in enumerate(ways)
        ]  # type: ignore[arg-type]

    diagonal = ((1.0, 0.9), (-0.9, 1.0), (-1.0, -0.9), (0.9, -1.0))
    return {
        "diagonal, 2 px": each("diagonal", 2, diagonal),
        "slow, 0.5 px": each("slow", 0.5),
        "fast, 16 px": each("fast", 16),
        "low light": each("dark", 2, effect="dark"),
        "flicker, 3 % at 5 Hz": each("flicker", 2, effect="flicker"),
        "exposure steps of 25 %": each("exposure", 2, effect="exposure"),
        "shadows": each("shadows", 2, effect="shadows"),
        "MPEG-4 starved at 0.2 Mb/s": each("starved", 2, codec="mpeg4 starved"),
    }
