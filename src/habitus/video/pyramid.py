"""Smaller copies of a picture, each pixel the mean of four."""

from typing import NamedTuple

import numpy as np

from habitus.compiled import compiled
from habitus.video.frames import Image


class Pyramid(NamedTuple):
    """The analysed frame at half and at quarter resolution."""

    half: Image
    quarter: Image


def pyramid(luma: Image, width: int, height: int, scale: int) -> Pyramid:
    """Half and quarter of the analysed frame, which is the camera's frame over `scale`."""
    return Pyramid(*_pyramid(luma, width, height, scale))


@compiled
def halve(image: Image, width: int, height: int) -> Image:
    """Means of 2x2 pixels, rounded; columns of `image` beyond `width` are padding."""
    half = np.empty((height // 2, width // 2), dtype=np.uint8)
    two, one = np.uint64(2), np.uint64(1)
    for y in range(half.shape[0]):
        upper, lower, out = image[2 * y], image[2 * y + 1], half[y]
        for x in range(np.uint64(half.shape[1])):
            i = two * x
            total = (
                np.uint16(upper[i]) + np.uint16(upper[i + one])
                + np.uint16(lower[i]) + np.uint16(lower[i + one])
            )  # fmt: skip
            out[x] = np.uint8((total + np.uint16(2)) >> np.uint16(2))
    return half


@compiled
def _pyramid(luma: Image, width: int, height: int, scale: int) -> tuple[Image, Image]:
    half = halve(luma, width, height)
    while scale > 1:
        half = halve(half, half.shape[1], half.shape[0])
        scale //= 2
    return half, halve(half, half.shape[1], half.shape[0])
