"""Address of a video: a file, a folder or pattern of images, a camera or a stream."""

import glob
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from habitus.errors import InvalidInputError, VideoError

MOST = 1e6
"""Frames per second, and seconds to wait, at most."""
STANDARD_INPUT = frozenset(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
# Names of parameters in an address whose values nobody else may see, in part: "loginpas" is one.
_NAME = (
    r"([\w.-]*?(?:pas|pwd|pw\b|secret|token|key|auth|sig|sess|cred|user|usr|login|account)[\w.-]*?)"
)
# A value may hold any character: it ends where the next parameter starts. Some cameras have
# parameters in the path, as in rtsp://camera/user=admin_password=secret_channel=1.sdp
_SECRETS = re.compile(
    rf"(?<=[?&;]){_NAME}=.*?(?=[&;][a-z][\w.-]*=|$)|(?<=[/_]){_NAME}=.*?(?=[&;?_][a-z][\w.-]*=|$)",
    re.IGNORECASE,
)
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
    other_hosts
        Whether an http(s) or rtsp address may lead to other hosts, by redirections and playlists.
    elsewhere
        Whether it is opened only if it is on another machine, as `check_address` says.

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
    other_hosts: bool = False
    elsewhere: bool = False

    def __post_init__(self) -> None:
        for name, value in {"fps": self.fps, "timeout": self.timeout}.items():
            if value is not None and not 0 < value <= MOST:
                raise InvalidInputError(
                    f"{name} must be above 0 and at most {MOST:g}, found {value:g}", parameter=name
                )
        # Standard input has one name; a file that the shell opened can be sought in by its own.
        if self.address in STANDARD_INPUT or self.descriptors:
            mode, path = _mode(self.address), os.path.realpath(self.address)
            own = path if stat.S_ISREG(mode) and self.address != "-" else self.address
            object.__setattr__(self, "address", "-" if own in STANDARD_INPUT else own)

    @property
    def name(self) -> str:
        """The address without user and password, as it may be shown."""
        return redacted(self.address)

    @property
    def url(self) -> str:
        """The address as FFmpeg takes it: a colon in the name of a file is no protocol."""
        if self.address == "-":
            return "pipe:0"
        return self.address if "://" in self.address else f"file:{self.address}"

    @property
    def is_live(self) -> bool:
        """Whether it can be read only once, from now on, without seeking."""
        if "://" in self.address or self.is_pipe:
            return True
        mode = _mode(self.address)
        # Files in memory are files, there or not.
        is_device = re.match(r"/dev/(?!shm/)", self.address) is not None
        return is_device and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    @property
    def is_pipe(self) -> bool:
        """Whether it is standard input or a pipe: read once, and it ends when its writer does."""
        return self.address == "-" or stat.S_ISFIFO(_mode(self.address))

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Open files that it is read from: standard input, or such as the shell's <(...)."""
        if self.address == "-":
            return (0,)
        found = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", self.address)
        return (int(found[1]),) if found else ()

    @property
    def is_images(self) -> bool:
        """Whether it is a folder or a pattern of images."""
        return not self.is_live and (
            Path(self.address).is_dir()
            or (glob.has_magic(self.address) and not Path(self.address).exists())
        )


def redacted(address: str) -> str:
    """Return an address without user, password and other secrets, as it may be shown.

    Rather too much is left out than too little: a password may hold any character, also those that
    should have been encoded.

    Parameters
    ----------
    address
        Any address; one without "://" is a file, and stays as it is.

    Examples
    --------
    >>> redacted("rtsp://me:pa/ss@camera/1"), redacted("http://camera/live?user=me&pwd=x&channel=2")
    ('rtsp://camera/1', 'http://camera/live?user=***&pwd=***&channel=2')
    >>> redacted("2026-01-01T12:00:00.mp4")
    '2026-01-01T12:00:00.mp4'
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if re.search(r":.*\D", host) and "@" not in host:  # no port: the start of a password
        rest = rest.rpartition("@")[2]
    rest = _SECRETS.sub(lambda found: f"{found[1] or found[2]}=***", rest)
    before, _, after = rest.rpartition("@")
    with_user = ":" in before or not re.search(r"[/?#]", before)
    return scheme + separator + (after if with_user else rest)


def redacted_text(text: str) -> str:
    """Return a text with all addresses in it redacted."""
    return re.sub(r"\S+://\S+", lambda found: redacted(found[0]), text)


def _mode(address: str) -> int:
    """Return the type of a file, or 0 where there is none."""
    try:
        return os.fstat(0).st_mode if address == "-" else Path(address).stat().st_mode
    except (OSError, ValueError):
        return 0


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
