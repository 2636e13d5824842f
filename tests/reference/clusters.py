"""Real Dask schedulers and workers as processes, that a test can kill.

They are forked from a process that has Dask loaded, unless other packages or limits are wanted.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from distributed import Client

from habitus.jobs.fork_server import Child, ForkServer
from reference.certificates import make_certificate
from reference.processes import LONG, wait_until

LOOPBACK = "127.0.0.1"


@functools.cache
def _fork_server() -> ForkServer:
    """Where the processes of all clusters of a test's worker are forked from; ends with it."""
    server = ForkServer("reference.dask_process")
    atexit.register(server.kill)
    return server


class Forked:
    """A process that was forked, with the methods of one that was started."""

    def __init__(self, child: Child) -> None:
        self._child, self.pid = child, child.pid

    def poll(self) -> int | None:
        return self._child.exit_code

    def kill(self) -> None:
        self._child.kill()

    def wait(self) -> int | None:
        return self._child.wait(LONG)


Process = Forked | subprocess.Popen[bytes]


class Cluster:
    """A scheduler and workers; all are killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Process] = []
        self.port, self.scheme = 0, "tcp"
        self.scheduler: Process | None = None

    @property
    def address(self) -> str:
        return f"{self.scheme}://{LOOPBACK}:{self.port}"

    def start_scheduler(self, environment: dict[str, str] | None = None) -> None:
        """Start it, again at the same port if there was one."""
        told = self.folder / f"scheduler-{len(self.processes)}.json"
        self.scheduler = self._start(
            "scheduler",
            *("--host", LOOPBACK, "--port", str(self.port)),
            *("--no-dashboard", "--scheduler-file", str(told)),
            environment=environment,
        )
        wait_until(lambda: told.exists() and told.read_text().endswith("}"), "a scheduler runs")
        if not self.port:
            self.port = int(json.loads(told.read_text())["address"].rpartition(":")[2])

    def start_worker(
        self, *options: str, environment: dict[str, str] | None = None, first: str = ""
    ) -> Process:
        """Start a worker of one thread without a nanny; it is not waited for."""
        return self._start(
            "worker",
            self.address,
            *("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", LOOPBACK),
            *("--local-directory", str(self.folder / f"worker-{len(self.processes)}")),
            *options,
            environment=environment,
            first=first,
        )

    def wait_for_workers(self, n: int) -> list[str]:
        """Return the addresses of workers once there are so many."""
        with Client(self.address, timeout=LONG, set_as_default=False) as client:
            wait_until(lambda: len(client.nthreads()) == n, f"{n} workers are there")
            return list(client.nthreads())

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def _start(
        self,
        what: str,
        *arguments: str,
        environment: dict[str, str] | None = None,
        first: str = "",
    ) -> Process:
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        variables = {**os.environ, **path, **(environment or {})}
        with (self.folder / f"{what}-{len(self.processes)}.log").open("wb") as log:
            if first or "PYTHONPATH" in (environment or {}):
                process = _started(what, arguments, variables, first, log)
            else:
                job = what, arguments, variables
                child = _fork_server().fork("reference.dask_process:run", job, [log.fileno()])
                process = Forked(child)
        self.processes.append(process)
        return process


def _started(
    what: str, arguments: tuple[str, ...], variables: dict[str, str], first: str, log: BinaryIO
) -> "subprocess.Popen[bytes]":
    """Start a process that loads what its variables say, after a command of the shell."""
    command = [sys.executable, "-m", "dask", what, *arguments]
    if first:
        command = ["sh", "-c", f'{first}; exec "$@"', "sh", *command]
        # A limit on the size of files would leave half of a compiled module for all that follow.
        variables = {**variables, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=log)


@contextmanager
def cluster(
    folder: Path, n_workers: int, environment: dict[str, str] | None = None
) -> Iterator[Cluster]:
    """Give a scheduler with so many workers."""
    found = Cluster(folder)
    try:
        found.start_scheduler(environment)
        for _ in range(n_workers):
            found.start_worker()
        if n_workers:
            found.wait_for_workers(n_workers)
        yield found
    finally:
        found.end()


def encryption(folder: Path) -> dict[str, str]:
    """Make a certificate; return Dask's configuration by which all speak by it."""
    certificate, key = make_certificate(folder, f"IP:{LOOPBACK}")
    found = {"distributed.comm.default-scheme": "tls"}
    found["distributed.comm.tls.ca-file"] = str(certificate)
    for role in ("scheduler", "worker", "client"):
        found[f"distributed.comm.tls.{role}.cert"] = str(certificate)
        found[f"distributed.comm.tls.{role}.key"] = str(key)
    return found


def as_environment(configuration: dict[str, str]) -> dict[str, str]:
    """Return the variables by which processes have a configuration of Dask."""
    return {
        f"DASK_{name}".upper().replace(".", "__").replace("-", "_"): value
        for name, value in configuration.items()
    }


def kill(process: Process) -> None:
    """Kill a process as the kernel does for want of memory."""
    process.kill()
    process.wait()
