"""A process that keeps workers on this machine running, and ends with the one that started it.

Started as a plain command, so that workers never import the user's script. It imports what they
need once and forks them, so that they are there in a moment. A worker that dies is replaced, and
all end when this process does, however it ends.
"""

import asyncio
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

import dask
from distributed import Worker

from habitus.jobs.fork_server import (
    ENDINGS,
    ONE_THREAD,
    PARENT_CHECK,
    end_with_parent,
    interrupts_blocked,
)

LOOPBACK = "127.0.0.1"
# What workers import first. By name, as it is a room above this one.
NEEDED = "habitus.ingest.segments"
# Elsewhere, libraries of the system may have started threads, which no fork survives.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
# Looking at what each thread does, a hundred times a second, takes a tenth of its time.
SETTINGS = {"distributed.worker.profile.enabled": False}
# Seconds from the end of a worker to the start of the next, which may end at once as well.
PAUSE = 0.2


class Node:
    """A process with workers; it is there while the `with` block is.

    Parameters
    ----------
    n_workers
        Number of workers, of one thread each.
    folder
        Where the workers put what they write.
    """

    def __init__(self, n_workers: int, folder: Path) -> None:
        self._arguments = [str(n_workers), str(folder), str(os.getpid())]

    def __enter__(self) -> Self:
        path = os.pathsep.join(filter(None, sys.path))
        with interrupts_blocked():
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "habitus.jobs.cluster.node", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
            )
        self._told: Any = self._process.stdin
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def serve(self, scheduler: str) -> None:
        """Let the workers, which are being started, serve the scheduler of an address."""
        with suppress(OSError):  # it has died: no worker will come
            self._told.write(f"{scheduler}\n".encode())
            self._told.flush()


def work(scheduler: str, folder: str, parent: int) -> None:
    """Be a worker until the scheduler goes or the parent ends."""
    end_with_parent(parent)

    async def serve() -> None:
        async with Worker(
            scheduler,
            nthreads=1,
            memory_limit=0,  # as for plain processes: the learners keep to limits of their own
            local_directory=folder,
            host=LOOPBACK,
            dashboard=False,
        ) as worker:
            await worker.finished()

    with suppress(OSError), dask.config.set(SETTINGS):  # the scheduler has gone
        asyncio.run(serve())


def keep_running(n_workers: int, scheduler: str, folder: str, parent: int) -> None:
    """Run workers, and others in place of those that end, until the parent does."""
    context: Any = mp.get_context(START_METHOD)
    workers: dict[Any, Any] = {}
    while os.getppid() == parent:
        while len(workers) < n_workers:
            worker = context.Process(target=work, args=(scheduler, folder, os.getpid()))
            worker.start()
            workers[worker.sentinel] = worker
        for sentinel in wait(list(workers), timeout=PARENT_CHECK):
            workers.pop(sentinel).join()
            time.sleep(PAUSE)
    os._exit(1)  # not to wait for the workers, which end by themselves


def main() -> None:
    """Run workers until the parent ends."""
    n_workers, folder, parent = sys.argv[1:]
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    import_module(NEEDED)
    scheduler = sys.stdin.readline().strip()
    if scheduler:
        keep_running(int(n_workers), scheduler, folder, int(parent))


if __name__ == "__main__":
    main()
