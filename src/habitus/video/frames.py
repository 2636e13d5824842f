"""One picture of a video: its time and its brightness."""

from typing import Any, NamedTuple

import numpy as np
from av.video.plane import VideoPlane
from numpy.typing import NDArray

Image = NDArray[np.uint8]

# Formats whose first plane is the brightness in eight bits.
EIGHT_BIT_LUMA = {"gray", "nv12", "nv21", "nv16", "nv24"}
EIGHT_BIT_LUMA |= {f"yuv{j}{n}p" for j in ("", "j", "a") for n in (410, 411, 420, 422, 440, 444)}


class Frame(NamedTuple):
    """A decoded picture."""

    time: float
    """Seconds since the start of the video."""
    width: int
    height: int
    """The size of the video's first frame, to which all are brought."""
    intact: bool
    """Whether the decoder found no damage in it."""
    decoded: Any
    """PyAV's own frame; None where it was not wanted."""

    def luma(self) -> Image:
        """Brightness: rows x at least `width` columns; those beyond `width` are padding.

        Without a copy where that can be, so it is valid as long as the frame is.
        """
        return _luma(self.decoded, self.width, self.height)

    def colours(self, width: int, height: int) -> Image:
        """Red, green and blue at another size: height x width x 3."""
        picture: Image = self.decoded.to_ndarray(width=width, height=height, format="rgb24")
        return picture


def _luma(decoded: Any, width: int, height: int) -> Image:
    as_it_is = decoded.width == width and decoded.height == height
    if not as_it_is or decoded.format.name not in EIGHT_BIT_LUMA:
        decoded = decoded.reformat(width=width, height=height, format="gray")
    plane: Any = VideoPlane(decoded, 0)  # `planes` would make the other two as well, each time
    line = plane.line_size
    if line < width:  # stored upside down
        return np.ascontiguousarray(decoded.to_ndarray(format="gray"))
    return np.ndarray((height, line), np.uint8, plane)
