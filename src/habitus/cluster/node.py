"""A process that keeps workers on this machine running, and ends with the one that started it.

Started as a plain command, so that workers never import the user's script. Each worker is a process
of its own, looked after by one of Dask's nannies in this process: a worker that dies is replaced,
and all end when this process does, however it ends.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

from distributed import Nanny

from habitus.workers import ONE_THREAD, end_with_parent, interrupts_blocked

LOOPBACK = "127.0.0.1"


@contextmanager
def node(scheduler: str, n_workers: int, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Give a process with workers of a scheduler; it is ended with the block.

    Parameters
    ----------
    scheduler
        Address of the scheduler.
    n_workers
        Number of workers, of one thread each.
    folder
        Where the workers put what they write.
    """
    arguments = [scheduler, str(n_workers), str(folder), str(os.getpid())]
    with interrupts_blocked():
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "habitus.cluster.node", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def _keep_running(scheduler: str, n_workers: int, folder: str) -> None:
    async with AsyncExitStack() as stack:
        nannies = [
            Nanny(
                scheduler,
                nthreads=1,
                memory_limit=0,  # as for plain processes: the learners keep to limits of their own
                local_directory=folder,
                host=LOOPBACK,
                env=ONE_THREAD,
                dashboard=False,
            )
            for _ in range(n_workers)
        ]
        await asyncio.gather(*(stack.enter_async_context(nanny) for nanny in nannies))
        await asyncio.gather(*(nanny.finished() for nanny in nannies))


def main() -> None:
    """Run workers until the parent ends."""
    scheduler, n_workers, folder, parent = sys.argv[1:]
    end_with_parent(int(parent))
    with suppress(OSError):  # the scheduler has gone
        asyncio.run(_keep_running(scheduler, int(n_workers), folder))


if __name__ == "__main__":
    main()
