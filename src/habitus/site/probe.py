"""Looking at what somebody gave: in a process of its own, with limits of time and memory."""

from pathlib import Path
from typing import Any, NamedTuple

from habitus.errors import HabitusError, VideoError, WorkerError
from habitus.jobs.fork_server import ForkServer

WITHIN = 120.0
"""Seconds that it may take."""
MOST_MEMORY = 4 << 30
PATIENCE = 20.0
"""Seconds that a camera has to show a picture."""
SHORTEST = 2.0
"""Seconds of a video, at least: anything shorter is a picture."""
# What the process has loaded before its time is counted.
PRELOAD = "habitus.video"


class ProbedVideo(NamedTuple):
    """What a file shows."""

    width: int
    height: int
    seconds: float


class ProbedPicture(NamedTuple):
    """What a camera shows."""

    width: int
    height: int
    jpeg: bytes


def probe(path: Path, *, within: float = WITHIN) -> ProbedVideo:
    """Return size and length of a video, whatever its name says.

    It is opened alone, by the reader that all sources are opened by. VideoError if it is no video,
    or it takes too long; the path is not shown.
    """
    video: ProbedVideo = _ask("survey_file", str(path.resolve()), within=within)
    return video


def look(address: str, *, local: bool = False, within: float = PATIENCE) -> ProbedPicture:
    """Return the first picture of a camera; VideoError if it shows none, without its password."""
    picture: ProbedPicture = _ask("first_picture", address, not local, within=within)
    return picture


def _ask(function: str, address: str, *more: Any, within: float) -> Any:
    try:
        with ForkServer(PRELOAD) as fork_server:
            return fork_server.ask(f"{__name__}:{function}", address, *more, within, within=within)
    except WorkerError:
        raise VideoError("it cannot be read: its contents end the reader") from None
    except HabitusError as error:
        raise VideoError(str(error).replace(f"{address}: ", "")) from None


def survey_file(address: str, within: float) -> ProbedVideo:
    """Return what a file shows; in a process of its own."""
    from habitus.video import Reader, Source, survey

    _limit(within)
    source = Source(address)
    with Reader(source) as reader:
        width, height = reader.width, reader.height
    seconds = survey(source).duration
    if seconds < SHORTEST:
        raise VideoError(f"it lasts {seconds:.1f} s: a video of at least {SHORTEST:g} s is needed")
    return ProbedVideo(width, height, seconds)


def first_picture(address: str, elsewhere: bool, within: float) -> ProbedPicture:
    """Return what a camera shows; in a process of its own."""
    from habitus.site.live_picture import jpeg
    from habitus.video import Reader, Source

    _limit(within)
    with Reader(Source(address, elsewhere=elsewhere)) as reader:
        still = next(iter(reader)).colours(reader.width, reader.height)
        return ProbedPicture(reader.width, reader.height, jpeg(still))


def _limit(seconds: float) -> None:
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))
