"""Workers of a cluster on this machine, forked from a process that has loaded what they need.

A worker that dies is replaced, and all end when this process does, however it ends. None of them
imports the user's script.
"""

import asyncio
import os
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Self

import dask
from distributed import Worker

from habitus.errors import HabitusError
from habitus.jobs.fork_server import Child, ForkServer

LOOPBACK = "127.0.0.1"
# What is loaded before workers are forked. By name, as segments are a room above this one.
NEEDED = "habitus.jobs.cluster.node,habitus.ingest.segments"
# Looking at what each thread does, a hundred times a second, takes a tenth of its time.
SETTINGS = {"distributed.worker.profile.enabled": False}
# Seconds from the end of a worker to the start of the next, which may end at once as well, and
# between two looks at whether any are wanted.
PAUSE, LOOK = 0.2, 0.5


class Node:
    """So many workers of one thread each, which write to a folder while the `with` block lasts."""

    def __init__(self, n_workers: int, folder: Path) -> None:
        self._n_workers, self._folder = n_workers, folder
        self._server, self._stopping = ForkServer(NEEDED), threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._server.kill()

    def serve(self, scheduler: str) -> None:
        """Start workers that serve the scheduler of an address, and do not wait for them."""
        self._thread = threading.Thread(target=self._keep_running, args=(scheduler,), daemon=True)
        self._thread.start()

    def _keep_running(self, scheduler: str) -> None:
        """Run workers, and others in place of those that end."""
        job, workers = (scheduler, str(self._folder)), dict[Connection, Child]()
        while not self._stopping.is_set():
            with suppress(HabitusError):  # as where there is no memory: it is tried again
                while len(workers) < self._n_workers:
                    child = self._server.start_process(f"{__name__}:work", job, grace=0.0)
                    workers[child.connection] = child
            for ended in wait(list(workers), LOOK):
                workers.pop(ended).end()  # type: ignore[call-overload]
                self._stopping.wait(PAUSE)
        for child in workers.values():
            child.end()


def work(job: tuple[str, str], connection: Connection) -> None:
    """Be a worker until the scheduler goes, or whoever holds the other end of the connection."""
    scheduler, folder = job
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what Dask logs

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
