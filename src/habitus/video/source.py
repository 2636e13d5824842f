"""A source of video: a file, a folder or pattern of images, a camera or a stream."""

import glob
import re
from dataclasses import dataclass
from pathlib import Path

from habitus.errors import VideoError

IMAGES = frozenset([".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"])


@dataclass(frozen=True)
class Source:
    """Where video comes from."""

    address: str
    """A file, a folder or pattern of images, or any address FFmpeg opens; `-` is standard input."""
    fps: float | None = None
    """Frames a second of images, and of streams that bear no times."""
    fast: bool = False
    """Leave out frames that no other frame needs, and the loop filter."""
    timeout: float = 10.0
    """Seconds that opening or reading may take before an address counts as dead."""

    @property
    def name(self) -> str:
        """The address as it may be shown: without user and password.

        >>> Source("rtsp://me:secret@camera/1").name
        'rtsp://camera/1'
        """
        return re.sub(r"(?<=://)[^/?#]*@", "", self.address)

    @property
    def is_live(self) -> bool:
        """Whether it is read once, from now on: it can be neither sought nor read again."""
        return "://" in self.address or self.address == "-" or self.address.startswith("/dev/")

    @property
    def is_images(self) -> bool:
        """Whether it is a folder or a pattern of images."""
        return not self.is_live and (
            Path(self.address).is_dir()
            or (glob.has_magic(self.address) and not Path(self.address).exists())
        )


def image_paths(address: str) -> list[Path]:
    """Images of a folder or a pattern, in the order of the numbers in their names."""
    folder = Path(address)
    found = folder.iterdir() if folder.is_dir() else map(Path, glob.glob(address))  # noqa: PTH207
    paths = [path for path in found if path.suffix.lower() in IMAGES]
    if not paths:
        raise VideoError(f"{address}: no images ({' '.join(sorted(IMAGES))}) found")
    return sorted(paths, key=lambda path: [
        (int(part), "") if part.isdecimal() else (-1, part)
        for part in re.split(r"(\d+)", path.name)
    ])  # fmt: skip
