"""Fork servers that are kept from one command to the next: a test's worker loads libraries once.

A process that is forked from one has the folder, the variables, the limits and the standard error
that its parent has then, as if the fork server had been started for it.
"""

import contextlib
import functools
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from habitus.jobs.fork_server import SMALL, Child, ForkServer, _call

LOADED = "reference.loaded"
OURS = ("habitus.ingest", "habitus.lab", "habitus.site")
"""Whose functions workers are started for: all are forked from one fork server."""
LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


class KeptForkServer(ForkServer):
    """A fork server that whoever it was started for does not end."""

    def close(self) -> None:
        """Leave it to `end`."""

    kill = close

    def end(self) -> None:
        super().close()

    def fork(self, target: str, job: Any, descriptors: Sequence[int] = ()) -> Child:
        limits = {limit: resource.getrlimit(limit) for limit in LIMITS}
        started = target, job, _folder(), {**os.environ, **SMALL}, limits
        return super().fork("reference.kept_forks:run", started, [2, *descriptors])


def _folder() -> str | None:
    with contextlib.suppress(FileNotFoundError):
        return str(Path.cwd())
    return None


def run(started: tuple[str, Any, str | None, dict[str, str], dict[int, Any]], *files: int) -> None:
    """Call what was asked for, as a process that was started just now."""
    target, job, folder, variables, limits = started
    errors, *handed = files
    os.dup2(errors, 2)
    os.close(errors)
    if folder is not None:
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for limit, values in limits.items():
        resource.setrlimit(limit, values)
    _call(target, job, *handed)


@pytest.fixture(scope="session", autouse=True)
def kept_fork_servers() -> Iterator[None]:
    """Workers of this machine, and decoders, are forked from fork servers that are kept."""
    kept: list[KeptForkServer] = []

    @functools.cache
    def server_with(preload: str) -> ForkServer:
        kept.append(KeptForkServer(preload))
        return kept[-1]

    def server(preload: str) -> ForkServer:
        return server_with(LOADED if preload.startswith(OURS) else preload)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("habitus.jobs.workers.ForkServer", server)
        yield
    for each in kept:
        each.end()


@pytest.fixture
def own_fork_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and decoders have fork servers of their own, for tests of their start and end."""
    monkeypatch.setattr("habitus.jobs.workers.ForkServer", ForkServer)
