"""What carries out tasks side by side: processes of this machine, or workers of a cluster.

A task is a module-level function, or a partial of one, called with an item. Whoever has many tasks
takes `Workers` and need not know where they run. This module knows no cluster's library.
"""

import contextlib
import multiprocessing as mp
import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Generic, Protocol, Self, TypeVar

import joblib
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

from habitus.errors import WorkerError

ATTEMPTS = 3
"""How often a task is started before it is given up: each time, its worker died."""
# Seconds between two looks at whether the parent process is alive.
PARENT_CHECK = 0.5
# Signals that end a command: by the terminal, by whoever started it, or with the session.
ENDINGS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
# Variables of libraries that would otherwise use every core in each process; one thread each also
# makes results independent of the number of processes.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)

T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """What carries out tasks, here or elsewhere; it works while the `with` block does."""

    @property
    def n_workers(self) -> int:
        """Tasks at a time."""
        ...

    @property
    def here(self) -> bool:
        """Whether they run on this machine, and write files where it does."""
        ...

    def as_completed(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each item, and yield the results as they are finished.

        A worker that dies is replaced, and its task carried out again: a task should leave nothing
        half done behind. Tasks that nobody waits for any longer are ended; a cluster finishes those
        that it has begun.

        Parameters
        ----------
        function
            Module-level function, or a `functools.partial` of one: it is sent to each worker once.
        items
            What to call it with, in the order of starting. Their `name`, where they have one, is
            what errors call them by.

        Yields
        ------
        tuple
            Number of the item and what the function returned.

        Raises
        ------
        WorkerError
            If the worker of one task died `ATTEMPTS` times.
        HabitusError
            Whatever a task raised.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def number_of_workers(jobs: int) -> int:
    """Return how many processes `jobs` stands for: below 1, one per available processor."""
    return jobs if jobs > 0 else int(joblib.cpu_count())


def open_workers(cluster: str | None = None, jobs: int = -1) -> Workers:
    """Return processes of this machine, or the workers of a cluster.

    Parameters
    ----------
    cluster
        None for plain processes, "local" for a Dask cluster on this machine, otherwise the address
        of a Dask scheduler.
    jobs
        Number of processes on this machine; below 1, one per available processor.
    """
    if cluster is None:
        return LocalWorkers(jobs)
    # By name: the room above this module, and only for those who asked for a cluster.
    found: Workers = import_module("habitus.cluster").ClusterWorkers(cluster, jobs)
    return found


@contextlib.contextmanager
def cluster_workers(cluster: str | None, jobs: int = -1) -> Iterator[Workers | None]:
    """Give the workers of a cluster while the block runs; None where no cluster is named."""
    if cluster is None:
        yield None
        return
    with open_workers(cluster, jobs) as workers:
        yield workers


@dataclass
class Task(Generic[T]):
    """An item that a function is called with, and how often that was tried."""

    number: int
    item: T
    attempts: int = 0

    @property
    def name(self) -> str:
        """How the task is called in messages."""
        return str(getattr(self.item, "name", f"task {self.number}"))

    def died(self) -> None:
        """Note that the worker of this task died; raise if that happened too often."""
        self.attempts += 1
        if self.attempts >= ATTEMPTS:
            raise WorkerError(
                f"{self.name}: the process that worked on it died {self.attempts} times, perhaps "
                "for want of memory"
            )


class LocalWorkers:
    """Processes of this machine that need no `__main__` guard and end with the one that started it.

    They are started when they are needed, and kept from one call to the next. One call at a time.

    Parameters
    ----------
    jobs
        Number of processes; below 1, one per available processor.

    Examples
    --------
    >>> with LocalWorkers(2) as workers:
    ...     sorted(workers.as_completed(len, ["a", "", "abc"]))
    [(0, 1), (1, 0), (2, 3)]
    """

    here = True

    def __init__(self, jobs: int = -1) -> None:
        self.n_workers = number_of_workers(jobs)
        self._processes = [_Process() for _ in range(self.n_workers)]

    def as_completed(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each item, and yield the results; see `Workers`."""
        payload = pickle.dumps(function)
        tasks = (Task(number, item) for number, item in enumerate(items))
        again: list[Task[T]] = []
        idle = list(self._processes)
        running: dict[Future[R], tuple[Task[T], _Process]] = {}
        try:
            while True:
                while idle and (task := again.pop() if again else next(tasks, None)):
                    process = idle.pop()
                    running[process.submit(payload, task.item)] = task, process
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, process = running.pop(future)
                    idle.append(process)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        process.end()
                        task.died()
                        again.append(task)
                        continue
                    yield task.number, result
        finally:
            for _, process in running.values():
                process.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.end()


class _Process:
    """One process, started with its first task and again after it was ended.

    A pool of one: where a process dies, it is known what it was working on.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, payload: bytes, item: Any) -> Future[Any]:
        """Start a task."""
        try:
            return self._submit(payload, item)
        except BrokenProcessPool:  # it died while it had nothing to do
            self.end()
            return self._submit(payload, item)

    def _submit(self, payload: bytes, item: Any) -> Future[Any]:
        if self._pool is None:
            start_resource_tracker()
            self._pool = ProcessPoolExecutor(
                1, initializer=end_with_parent, initargs=(os.getpid(),), env=ONE_THREAD
            )
        with interrupts_blocked():
            task: Future[Any] = self._pool.submit(_call, payload, item)
        return task

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self._pool is not None:
            end_pool(self._pool)
            self._pool = None


def end_pool(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they are doing."""
    with warnings.catch_warnings():
        # Without psutil and pgrep, loky warns that it cannot look for processes of workers.
        warnings.simplefilter("ignore")
        pool.shutdown(wait=True, kill_workers=True)


def start_resource_tracker() -> None:
    """Start it now: loky would do so with the first process, which unblocks interrupts."""
    if os.name == "posix":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()


def _call(payload: bytes, item: Any) -> Any:
    return _unpickled(payload)(item)


@lru_cache(maxsize=1)
def _unpickled(payload: bytes) -> Callable[[Any], Any]:
    """Return a function that was sent; the same object as long as the same is sent."""
    function: Callable[[Any], Any] = pickle.loads(payload)  # noqa: S301 - from our parent
    return function


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Start processes that never see what ends the parent, where signals can be blocked.

    The parent handles them, and ends its processes. A process inherits the signal mask of the
    thread that starts it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(pid: int) -> None:
    """Make this process ignore what ends its parent, and end it when its parent has ended.

    `pid` is the process id of the parent. A thread watches: FFmpeg may never return.
    """
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(pid,), daemon=True).start()


def _watch_parent(pid: int) -> None:
    if os.name == "posix":
        while os.getppid() == pid:
            time.sleep(PARENT_CHECK)
        os._exit(1)
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
