"""What carries out tasks side by side: processes of this machine, or workers of a cluster.

A task is a module-level function, or a partial of one, called with an item. Whoever has many tasks
takes `Workers` and need not know where they run. This module knows no cluster's library.
"""

import atexit
import contextlib
import functools
import math
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from habitus.errors import HabitusError, InvalidInputError, TaskError, WorkerError
from habitus.jobs.fork_server import Child, ForkServer
from habitus.progress import report_compiling, when_compiling
from habitus.rarity import counted

ATTEMPTS = 3
"""How often a task is started before it is given up: each time, its worker died."""
# Where the kernel says how much processor time this machine's containers may use, by version.
CGROUP = Path("/sys/fs/cgroup")

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
        """Call a function with each item; yield numbers and results as they are finished.

        A worker that dies is replaced, and its task carried out again: a task should leave nothing
        half done behind. Tasks that nobody waits for any longer are ended; a cluster finishes those
        that it has begun. The function, of a module or a `functools.partial` of one, is sent to
        each worker once. Errors call items by their `name`, where they have one. TaskError if the
        worker of one task died `ATTEMPTS` times.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def number_of_workers(jobs: int) -> int:
    """Return how many processes `jobs` stands for: -1 for one per available processor."""
    if jobs < 1 and jobs != -1:
        raise InvalidInputError(
            f"jobs must be at least 1, or -1 for one per processor, found {jobs}", parameter="jobs"
        )
    return jobs if jobs > 0 else available_processors()


def available_processors() -> int:
    """Return the number of processors that this process may use, in a container too."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return max(1, math.ceil(min(len(usable) or os.cpu_count() or 1, _cgroup_quota())))


def _cgroup_quota() -> float:
    """Return the processors' worth of time that a container is limited to; infinity without."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return int(quota) / int(period)  # ValueError where it reads "max"
    with contextlib.suppress(OSError, ValueError):
        quota, period = (
            (CGROUP / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
        )
        if int(quota) > 0:
            return int(quota) / int(period)
    return math.inf


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

    def died(self, most: int = ATTEMPTS) -> None:
        """Note that the worker of this task died; raise if that happened `most` times."""
        self.attempts += 1
        if self.attempts >= most:
            raise TaskError(
                f"{self.name}: the process that worked on it died "
                f"{counted(self.attempts, 'time')}, perhaps for want of memory",
                task=self.number,
            )


_early: dict[str, ForkServer] = {}
"""Fork servers that were started before whoever needs them."""


def load_early(preload: str, *, forked: bool = False) -> None:
    """Load a module in the background for the next who asks for its fork server.

    For a command that knows what it will need, while the rest of it is imported. A process that
    nobody has used ends with this one. `forked` is as of `ForkServer.start`.
    """
    if preload not in _early:
        _early[preload] = ForkServer(preload)
        _early[preload].start(forked=forked)


def fork_server_of(preload: str) -> ForkServer:
    """Return a fork server with a module loaded: that of `load_early`, or a new one."""
    return _early.pop(preload, None) or ForkServer(preload)


@functools.cache
def compile_ahead(module: str) -> None:
    """Once kernels must be compiled, have another process compile those that are needed last.

    `module` is what it imports to do so, by name.
    """

    def start() -> None:
        with contextlib.suppress(HabitusError, OSError):  # then each is compiled when it is used
            load_early(module)

    when_compiling(start)


@atexit.register
def end_early() -> None:
    """End what `load_early` started and nobody has used."""
    while _early:
        _early.popitem()[1].kill()


class LocalWorkers:
    """Processes of this machine that need no `__main__` guard and end with the one that started it.

    They are forked when they are needed, and kept from one call to the next; one call at a time.
    The module `preload` is loaded in the background from now on; by default that of the first
    function, when it is called.

    Examples
    --------
    >>> with LocalWorkers(2) as workers:
    ...     sorted(workers.as_completed(len, ["a", "", "abc"]))
    [(0, 1), (1, 0), (2, 3)]
    """

    here = True

    def __init__(self, jobs: int = -1, *, preload: str | None = None) -> None:
        self.n_workers = number_of_workers(jobs)
        self._server: ForkServer | None = None
        self.idle: list[tuple[Child, bytes]] = []
        """Processes that have nothing to do, and the function that each has."""
        if preload is not None:
            self._server = fork_server_of(preload)
            self._server.start()

    def as_completed(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each item, and yield the results; see `Workers`."""
        with self.started(function, items) as tasks:
            while tasks.pending:
                yield from tasks.poll(None)

    def started(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        heard: Callable[[int, Any], None] = lambda number, sign: None,
        attempts: int = ATTEMPTS,
    ) -> "LocalTasks[T, R]":
        """Start to call a function with each item; see `Workers.as_completed`.

        `heard` is called with the number of a task and what it said by `report`. Tasks that are
        under way are ended with the context that is returned.
        """
        if self._server is None:
            called = function.func if isinstance(function, functools.partial) else function
            self._server = ForkServer(called.__module__)
        return LocalTasks(self, function, items, heard, attempts)

    def take(self) -> tuple[Child, bytes]:
        """Return a process that has nothing to do, and the function that it has."""
        while self.idle:
            child, function = self.idle.pop()
            if child.is_alive:
                return child, function
            child.end()
        if self._server is None:
            raise WorkerError("no task was started yet")
        return self._server.start_process("habitus.jobs.workers:work", None, grace=0.0), b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        while self.idle:
            self.idle.pop()[0].end()
        if self._server is not None:
            self._server.close()


class LocalTasks(Generic[T, R]):
    """Tasks under way on processes of this machine; see `LocalWorkers.started`."""

    def __init__(
        self,
        workers: LocalWorkers,
        function: Callable[[T], R],
        items: Iterable[T],
        heard: Callable[[int, Any], None],
        attempts: int,
    ) -> None:
        self._workers, self._heard, self._attempts = workers, heard, attempts
        self._function = pickle.dumps(function)
        self._tasks = (Task(number, item) for number, item in enumerate(items))
        self._again: list[Task[T]] = []
        self._running: dict[Any, tuple[Task[T], Child]] = {}

    @property
    def pending(self) -> bool:
        """Whether there are tasks that are not finished."""
        self._fill()
        return bool(self._running)

    def poll(self, within: float | None) -> Iterator[tuple[int, R]]:
        """Yield the numbers and results of tasks that are finished, at the latest after a while.

        None waits for as long as it takes until one of the tasks says something.
        """
        self._fill()
        for ready in wait(list(self._running), within):
            task, child = self._running[ready]
            try:
                answer, value = child.connection.recv()
            except (EOFError, OSError):
                del self._running[ready]
                child.end()
                task.died(self._attempts)
                self._again.append(task)
                continue
            if answer is Answer.COMPILING:
                report_compiling()
            elif answer is Answer.SIGN:
                self._heard(task.number, value)
            else:
                del self._running[ready]
                self._workers.idle.append((child, self._function))
                if answer is Answer.ERROR:
                    raise value
                yield task.number, value

    def _fill(self) -> None:
        """Give tasks to processes until all are busy, or none is left."""
        while len(self._running) < self._workers.n_workers:
            task = self._again.pop() if self._again else next(self._tasks, None)
            if task is None:
                return
            child, function = self._workers.take()
            self._running[child.connection] = task, child
            new = None if function is self._function else self._function
            with contextlib.suppress(OSError):  # it died, which is noticed where it should answer
                child.connection.send((new, task.item))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        while self._running:
            _, (_, child) = self._running.popitem()
            child.end()


class Answer(Enum):
    """What a process says of its task."""

    SIGN = 0
    """It is under way; see `report`."""
    COMPILING = 1
    """Kernels are compiled."""
    RESULT = 2
    ERROR = 3


_say: Callable[[Answer, Any], None] | None = None
"""In a process that carries out tasks: how to talk to whoever waits for them."""


def report(sign: Any) -> None:
    """Say something, from within a task that runs in a process of `LocalWorkers`; see `started`."""
    if _say is not None:
        _say(Answer.SIGN, sign)


def work(job: None, connection: Connection) -> None:
    """Be a process that carries out tasks until nobody is at the other end of the connection."""
    global _say
    lock = threading.Lock()

    def say(answer: Answer, value: Any) -> None:
        with lock:
            connection.send((answer, value))

    _say = say
    when_compiling(lambda: say(Answer.COMPILING, None))
    function: Any = None  # it comes with the first task
    with contextlib.suppress(EOFError, OSError):  # whoever waited has gone
        while True:
            new, item = connection.recv()
            try:
                if new is not None:
                    function = pickle.loads(new)  # noqa: S301 - from our own process
                say(Answer.RESULT, function(item))
            except Exception as error:
                say(Answer.ERROR, _portable(error))


def _portable(error: Exception) -> Exception:
    """Return an error as it can be sent, with what led to it if it was not expected."""
    if not isinstance(error, HabitusError):
        error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:
        return WorkerError(f"{type(error).__name__}: {error}")
    return error
