"""Address of a video: a file, a folder or pattern of images, a camera or a stream."""

import glob
import re
from dataclasses import dataclass
from pathlib import Path

from habitus.errors import VideoError

IMAGES = frozenset([".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"])


@dataclass(frozen=True)
class Source:
    """Where a video comes from, and how it is read.

    Parameters
    ----------
    address
        A file, a folder or pattern of images, or any address that FFmpeg opens; `-` is standard
        input.
    fps
        Frames per second of images, and of streams without times.
    fast
        Skip frames that no other frame is predicted from, and the loop filter.
    timeout
        Seconds that opening or reading may take before the source counts as lost.

    Examples
    --------
    >>> Source("rtsp://me:secret@camera/1").name
    'rtsp://camera/1'
    >>> Source("rtsp://camera/1").is_live, Source("a.mp4").is_live
    (True, False)
    """

    address: str
    fps: float | None = None
    fast: bool = False
    timeout: float = 10.0

    @property
    def name(self) -> str:
        """The address without user and password, as it may be shown."""
        return re.sub(r"(?<=://)[^/?#]*@", "", self.address)

    @property
    def is_live(self) -> bool:
        """Whether it can be read only once, from now on, without seeking."""
        return "://" in self.address or self.address == "-" or self.address.startswith("/dev/")

    @property
    def is_images(self) -> bool:
        """Whether it is a folder or a pattern of images."""
        return not self.is_live and (
            Path(self.address).is_dir()
            or (glob.has_magic(self.address) and not Path(self.address).exists())
        )


def image_paths(address: str) -> list[Path]:
    """Return the images of a folder or pattern, in the order of the numbers in their names.

    Parameters
    ----------
    address
        A folder, or a pattern such as `frames/*.png`.

    Returns
    -------
    list of Path
        At least one image.

    Raises
    ------
    VideoError
        If there is none.
    """
    folder = Path(address)
    # `Path.glob` does not take absolute patterns.
    found = folder.iterdir() if folder.is_dir() else map(Path, glob.glob(address))  # noqa: PTH207
    paths = [path for path in found if path.suffix.lower() in IMAGES]
    if not paths:
        raise VideoError(f"{address}: no images ({' '.join(sorted(IMAGES))}) found")
    return sorted(paths, key=_numbers_and_text)


def _numbers_and_text(path: Path) -> list[tuple[int, str]]:
    """Return a sorting key under which `img2.png` comes before `img10.png`."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
