"""Fixtures for tests of cameras: footage of two lanes, a model of it, a fork server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import habitus
from habitus.fork_server import ForkServer
from reference.two_lanes import WRONG, two_lanes


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
def model(video: Path) -> Path:
    """A model of what comes before something goes wrong."""
    path = video.with_name("model-1.habitus")
    habitus.learn(video, output=path, duration=WRONG[0] - 2, n_behaviours=2, n_restarts=1, jobs=1)
    return path
