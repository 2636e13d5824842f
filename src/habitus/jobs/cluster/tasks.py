"""Tasks carried out by the workers of a cluster, through the loss of workers and of the scheduler.

What a task needs beside its item is sent once: as a task of its own, whose result the workers give
each other, and which Dask makes again where the workers that had it are gone.
"""

import pickle
import queue
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from distributed import KilledWorker
from distributed.client import ClosedClientError

from habitus.corpus.shards import go_on
from habitus.errors import FileError, HabitusError, TaskError, VideoError, WorkerError
from habitus.jobs.cluster.connection import RETURN, Connection, check_own_version, worker_name
from habitus.jobs.workers import Task
from habitus.version import __version__

LOOK = 0.5
"""Seconds between two looks at the cluster while no task finishes."""
FETCH = 4.0
"""Seconds that a result may take to come at first; twice as long at each further attempt."""

T = TypeVar("T")
R = TypeVar("R")


class ClusterTasks:
    """Tasks of a cluster, from their start to their results."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._asked, self._n_threads = -LOOK, 0

    @property
    def n_at_a_time(self) -> int:
        """Threads of all workers, as of half a second ago; at least 1."""
        if time.monotonic() - self._asked > LOOK:
            self._n_threads = sum(self.connection.n_threads().values())
            self._asked = time.monotonic()
        return max(1, self._n_threads)

    def submit(
        self, function: Callable[..., Any], *arguments: Any, name: str = "", **options: Any
    ) -> Any:
        """Start a task by Dask's own means, with a key of its own.

        Dask estimates how long a task takes by its name, and leaves those that it takes for short
        with the worker that has what they need, however idle the others are.
        """
        name = name or function.__name__.strip("_")
        key = f"habitus-{name}-{uuid.uuid4().hex}"
        return self.connection.client.submit(function, *arguments, key=key, **options)

    def results(
        self,
        submit: Callable[[Task[T]], Any],
        tasks: Iterator[Task[T]],
        *,
        homes: Mapping[int, str] | None = None,
        check: Callable[[], None] = go_on,
    ) -> Iterator[tuple[Task[T], Any]]:
        """Carry out tasks, and yield each with its result as it is finished.

        `submit` starts a task; it is called again where its worker or the scheduler is gone.
        `homes` has the worker that it bound each task to, by the number of the task; where Dask
        decides, it is None, and as many as the workers have threads are started at a time. `check`
        is called now and then, and may raise to end the tasks.
        """
        again: list[Task[T]] = []
        running: dict[str, tuple[Any, Task[T]]] = {}
        finished: queue.Queue[Any] = queue.Queue()
        late: Counter[str] = Counter()
        try:
            while True:
                most = self.n_at_a_time if homes is None else sys.maxsize
                while len(running) < most and (task := again.pop() if again else next(tasks, None)):
                    future = self._started(submit, task)
                    running[future.key] = future, task
                    future.add_done_callback(finished.put)
                if not running:
                    return
                check()
                try:
                    future = finished.get(timeout=LOOK)
                except queue.Empty:
                    again += self._homeless(running, homes or {})
                    continue
                if future.key not in running:
                    continue
                _, task = running.pop(future.key)
                try:
                    result = _result(future, task, FETCH * 2 ** late[future.key])
                except TimeoutError:  # its worker died before the result was sent, or it is large
                    late[future.key] += 1
                    running[future.key] = future, task
                    future.add_done_callback(finished.put)
                    again += self._homeless(running, homes or {})
                    continue
                except (CancelledError, ClosedClientError):
                    self.connection.restore()
                    again.append(task)
                    continue
                except ImportError as error:  # not about the task
                    self.connection.n_threads()  # names the worker, where it came later
                    raise WorkerError(
                        f"a worker has no {error.name or error}: install habitus {__version__} on "
                        "all workers"
                    ) from error
                yield task, result
        finally:
            self._forget([future for future, _ in running.values()])

    def _started(self, submit: Callable[[Task[T]], Any], task: Task[T]) -> Any:
        while True:
            try:
                return submit(task)
            except (CancelledError, ClosedClientError):
                self.connection.restore()

    def _homeless(
        self, running: dict[str, tuple[Any, Task[T]]], homes: Mapping[int, str]
    ) -> list[Task[T]]:
        """Take out tasks whose worker is gone; where no worker is left, wait for others."""
        present = self.workers()
        lost = [
            (future, task)
            for future, task in running.values()
            if task.number in homes and homes[task.number] not in present
        ]
        for future, task in lost:
            del running[future.key]
            task.died()
        self._forget([future for future, _ in lost])
        return [task for _, task in lost]

    def _forget(self, futures: list[Any]) -> None:
        """Cancel tasks that nobody waits for any longer."""
        if futures and self.connection.client.status == "running":
            self.connection.client.cancel(futures, force=True)

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker, by its address; wait for one where there is none.

        WorkerError if none comes.
        """
        end = time.monotonic() + RETURN
        while not (found := self.connection.n_threads()):
            if self.connection.client.status != "running":
                self.connection.restore()
            if time.monotonic() > end:
                raise WorkerError(
                    f"the cluster at {self.connection.address} has had no workers for {RETURN:g} "
                    "s: start some, and give the same command again; it goes on from what is stored"
                )
            time.sleep(0.1)
        return found


class SharedValue:
    """Something that is sent to workers once, and again where it was lost."""

    def __init__(self, connection: Connection, value: Any) -> None:
        self._connection, self._payload = connection, pickle.dumps(value)
        self._future: Any = None

    def future(self) -> Any:
        """Return it as an argument of tasks."""
        if self._future is None or self._future.status in ("cancelled", "lost"):
            self._future = self._connection.client.submit(
                received, self._payload, key=f"habitus-sent-{uuid.uuid4().hex}"
            )
        return self._future


def received(payload: bytes) -> Any:
    """Return what was sent; run by a worker.

    A function of this room: a worker imports the room before it carries out the first task, and not
    in one thread while a task in another imports the same modules, which Python does not survive.
    """
    return pickle.loads(payload)  # noqa: S301 - from the client


def carry_out(wanted: str, function: Callable[[Any], Any], item: bytes) -> Any:
    """Call a function with an item; run by a worker."""
    check_own_version(wanted)
    with naming_worker():
        return function(pickle.loads(item))  # noqa: S301 - from the client that sent the function


@contextmanager
def naming_worker() -> Iterator[None]:
    """Say in errors about files, and in those of the machine, on which worker they came up."""
    try:
        yield
    except (FileError, VideoError) as error:
        found = type(error)(f"{error} (on worker {worker_name()})", parameter=error.parameter)
        raise found from None
    except (OSError, MemoryError) as error:
        raise WorkerError(f"worker {worker_name()}: {str(error) or 'out of memory'}") from error


def _result(future: Any, task: Task[Any], timeout: float) -> Any:
    """Return the result of a task that has ended, or raise an error of one line."""
    try:
        return future.result(timeout=timeout)
    except (HabitusError, CancelledError, ClosedClientError, TimeoutError, ImportError):
        raise
    except KilledWorker as error:
        raise TaskError(
            f"{task.name}: the workers that worked on it died, one after the other, perhaps for "
            "want of memory",
            task=task.number,
        ) from error
