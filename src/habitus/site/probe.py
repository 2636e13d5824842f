"""Looking at a file that somebody sent: in a process of its own, with limits of time and memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from habitus.errors import HabitusError, VideoError

WITHIN = 120.0
"""Seconds that it may take."""
MOST_MEMORY = 4 << 30
SHORTEST = 2.0
"""Seconds of a video, at least: anything shorter is a picture."""


class ProbedVideo(NamedTuple):
    """What a file shows."""

    width: int
    height: int
    seconds: float


def probe(path: Path, *, within: float = WITHIN) -> ProbedVideo:
    """Return size and length of a video, whatever its name says.

    It is opened alone, by the reader that all sources are opened by. VideoError if it is no video,
    or it takes too long; the path is not shown.
    """
    command = [sys.executable, "-m", "habitus.site.probe", str(path.resolve()), str(within)]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VideoError(f"the file was not understood within {within:g} s") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise VideoError("the file cannot be read: its contents end the reader") from None
    if "error" in answer:
        raise VideoError(answer["error"])
    return ProbedVideo(**answer)


def _look(path: str) -> ProbedVideo:
    from habitus.video import Reader, Source, survey

    source = Source(path)
    with Reader(source) as reader:
        width, height = reader.width, reader.height
    seconds = survey(source).duration
    if seconds < SHORTEST:
        raise VideoError(f"it lasts {seconds:.1f} s: a video of at least {SHORTEST:g} s is needed")
    return ProbedVideo(width, height, seconds)


def _limit(seconds: float) -> None:
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def main(path: str, within: str) -> None:
    """Write what a file shows to standard output, as JSON."""
    from habitus.video import Reader  # noqa: F401 - loaded before memory is limited

    _limit(float(within))
    try:
        answer = dict(_look(path)._asdict())
    except HabitusError as error:
        answer = {"error": str(error).replace(f"{path}: ", "")}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
