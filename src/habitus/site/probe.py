"""Looking at what somebody gave: in a process of its own, with limits of time and memory."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from habitus.errors import HabitusError, VideoError

WITHIN = 120.0
"""Seconds that it may take."""
MOST_MEMORY = 4 << 30
PATIENCE = 20.0
"""Seconds that a camera has to show a picture."""
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
    return ProbedVideo(**_asked({"address": str(path.resolve())}, within, "the file was not read"))


class ProbedPicture(NamedTuple):
    """What a camera shows."""

    width: int
    height: int
    jpeg: bytes


def look(address: str, *, local: bool = False, within: float = PATIENCE) -> ProbedPicture:
    """Return the first picture of a camera; VideoError if it shows none, without its password."""
    question = {"address": address, "picture": True, "elsewhere": not local}
    answer = _asked(question, within, "no picture came")
    return ProbedPicture(**answer | {"jpeg": base64.b64decode(answer["jpeg"])})


def _asked(question: dict[str, Any], within: float, late: str) -> dict[str, Any]:
    """Return what a process of its own says; the address is not among its arguments."""
    command = [sys.executable, "-m", "habitus.site.probe", str(within)]
    asked = json.dumps(question)
    try:
        done = subprocess.run(  # noqa: S603
            command, input=asked, capture_output=True, text=True, timeout=within, check=False
        )
    except subprocess.TimeoutExpired:
        raise VideoError(f"{late} within {within:g} s") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise VideoError("it cannot be read: its contents end the reader") from None
    if "error" in answer:
        raise VideoError(answer["error"])
    return answer


def _survey(address: str) -> dict[str, Any]:
    from habitus.video import Reader, Source, survey

    source = Source(address)
    with Reader(source) as reader:
        width, height = reader.width, reader.height
    seconds = survey(source).duration
    if seconds < SHORTEST:
        raise VideoError(f"it lasts {seconds:.1f} s: a video of at least {SHORTEST:g} s is needed")
    return ProbedVideo(width, height, seconds)._asdict()


def _picture(address: str, *, elsewhere: bool) -> dict[str, Any]:
    from habitus.site.live_picture import jpeg
    from habitus.video import Reader, Source

    with Reader(Source(address, elsewhere=elsewhere)) as reader:
        still = next(iter(reader)).colours(reader.width, reader.height)
        encoded = base64.b64encode(jpeg(still)).decode()
        return {"width": reader.width, "height": reader.height, "jpeg": encoded}


def _limit(seconds: float) -> None:
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def main(within: str) -> None:
    """Write what the address on standard input shows to standard output, as JSON."""
    from habitus.video import Reader  # noqa: F401 - loaded before memory is limited

    question = json.load(sys.stdin)
    address = question["address"]
    _limit(float(within))
    try:
        if question.get("picture"):
            answer = _picture(address, elsewhere=question["elsewhere"])
        else:
            answer = _survey(address)
    except HabitusError as error:
        answer = {"error": str(error).replace(f"{address}: ", "")}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
