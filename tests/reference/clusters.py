"""Real Dask schedulers and workers as processes, that a test can kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

from reference.certificates import make_certificate
from reference.processes import LONG, wait_until

LOOPBACK = "127.0.0.1"


class Cluster:
    """A scheduler and workers; all are killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.port, self.scheme = 0, "tcp"
        self.scheduler: subprocess.Popen[bytes] | None = None

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
    ) -> "subprocess.Popen[bytes]":
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
    ) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", what, *arguments]
        if first:
            command = ["sh", "-c", f'{first}; exec "$@"', "sh", *command]
        with (self.folder / f"{what}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.processes.append(process)
        return process


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


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process as the kernel does for want of memory."""
    process.send_signal(signal.SIGKILL)
    process.wait()
