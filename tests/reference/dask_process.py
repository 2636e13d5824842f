"""A scheduler or worker of Dask in a process that was forked; what it needs is loaded before."""

import os
import signal

import dask
from distributed.cli import dask_scheduler, dask_worker

import habitus.site.camera_preload  # noqa: F401 - what workers learn and judge with
from habitus.jobs.fork_server import ENDINGS

COMMANDS = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}


def run(job: tuple[str, tuple[str, ...], dict[str, str]], log: int) -> None:
    """Be `dask scheduler` or `dask worker`, with these arguments and variables."""
    what, arguments, variables = job
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(variables)
    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    dask.config.refresh()
    COMMANDS[what](list(arguments), standalone_mode=False)
