"""Fixtures for tests of cameras: footage of two lanes, a model of it, a fork server."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import habitus
from habitus.jobs.fork_server import ForkServer
from reference.footage import encode
from reference.two_lanes import FPS, WRONG, pictures, two_lanes

TURN = int(WRONG[0]) - 12
"""Second of the scene from which on it plays."""


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Where processes of cameras are forked from, for all tests of a worker."""
    with ForkServer("reference.one_priority") as fork_server:
        yield fork_server


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene of two lanes in which something goes wrong once."""
    return two_lanes(tmp_path_factory.mktemp("video") / "lanes.mkv")


@pytest.fixture(scope="session")
def turn(video: Path) -> Path:
    """The last seconds of it: a file that plays shows again and again what goes wrong."""
    last = islice(pictures(), TURN * FPS, None)
    return encode(video.with_name("turn.mkv"), last, rate=FPS)


@pytest.fixture(scope="session")
def model(video: Path) -> Path:
    """A model of what comes before something goes wrong."""
    path = video.with_name("model-1.habitus")
    habitus.learn(
        video,
        output=path,
        reading=habitus.ReadingSettings(duration=WRONG[0] - 2, jobs=1),
        learning=habitus.LearningSettings(n_behaviours=2, n_restarts=1),
    )
    return path
