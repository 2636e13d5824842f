"""Fixtures for tests of cameras: footage of two lanes, a model of it, a fork server."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import habitus
from habitus.jobs.fork_server import ForkServer
from reference.footage import encode
from reference.made_once import made_once
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
    made = made_once(tmp_path_factory, "lanes", lambda folder: two_lanes(folder / "lanes.mkv"))
    return made / "lanes.mkv"


@pytest.fixture(scope="session")
def turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last seconds of it: a file that plays shows again and again what goes wrong."""

    def make(folder: Path) -> None:
        encode(folder / "turn.mkv", islice(pictures(), TURN * FPS, None), rate=FPS)

    return made_once(tmp_path_factory, "turn", make) / "turn.mkv"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, video: Path) -> Path:
    """A model of what comes before something goes wrong."""

    def make(folder: Path) -> None:
        habitus.learn(
            video,
            output=folder / "model-1.habitus",
            reading=habitus.ReadingSettings(duration=WRONG[0] - 2, jobs=1),
            learning=habitus.LearningSettings(n_behaviours=2, n_restarts=1),
        )

    return made_once(tmp_path_factory, "model", make) / "model-1.habitus"
