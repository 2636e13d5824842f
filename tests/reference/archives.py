"""Archives to test on: short recordings of two lanes, named by camera and time."""

import os
import shutil
import time
from pathlib import Path

import cv2
import pytest

from reference.footage import Picture, encode
from reference.made_once import made_once
from reference.two_lanes import FPS, lanes_at, wrong_at

PATTERN = "{camera}/{date}/{time}.mp4"
DAY = "2026-11-16"
LENGTH = 30
"""Seconds of a recording."""
WRONG = 18.0
"""Second of a recording at which something goes against its lane, where that is wanted."""


def record(
    path: Path,
    *,
    start: float = 0.0,
    seconds: int = LENGTH,
    wrong: bool = False,
    size: tuple[int, int] | None = None,
) -> Path:
    """Write a recording of the lanes from a time on; it was last changed an hour ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encode(path, _pictures(start, seconds, wrong, size), rate=FPS)
    return settled(path)


def recorded(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of recordings to copy: two normal ones, one that goes wrong, one larger."""

    def make(folder: Path) -> None:
        record(folder / "0.mp4")
        record(folder / "1.mp4", start=LENGTH)
        record(folder / "wrong.mp4", wrong=True)
        record(folder / "large.mp4", size=(256, 192))

    return made_once(factory, "recordings", make)


def copied(archive: Path, folder: Path) -> Path:
    """Copy recordings and the archive of them; return the copy, whose patterns lead to itself."""
    shutil.copytree(archive, folder)
    settings = folder / "site/archive.json"
    settings.write_text(settings.read_text().replace(str(archive), str(folder)))
    return folder


def _pictures(start: float, seconds: int, wrong: bool, size: tuple[int, int] | None):
    for i in range(seconds * FPS):
        picture: Picture = lanes_at(start + i / FPS)
        if wrong and WRONG <= i / FPS < WRONG + 3:
            wrong_at(picture, i / FPS - WRONG)
        yield picture if size is None else cv2.resize(picture, size)


def settled(path: Path, seconds: float = 3600.0) -> Path:
    """Let a file have been changed so many seconds ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def clock(minute: int) -> str:
    """The time of a recording in its name, from its minute after noon."""
    return f"12{minute:02d}00"


def put(recordings: Path, camera: str, minute: int, source: Path) -> Path:
    """Copy a recording to where the pattern finds it."""
    path = recordings / camera / DAY / f"{clock(minute)}.mp4"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
    return settled(path)


class HereWorkers:
    """Workers without processes: tasks run where they are asked for, one after the other."""

    n_workers, here = 1, True

    def as_completed(self, function, items):
        for number, item in enumerate(items):
            yield number, function(item)

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        pass
