"""Tasks carried out by the workers of a cluster, through the loss of workers and of the scheduler.

What a task needs beside its item is sent once: as a task of its own, whose result the workers give
each other, and which Dask makes again where the workers that had it are gone.
"""

import pickle
import queue
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from distributed import KilledWorker
from distributed.client import ClosedClientError

from habitus.cluster.connection import RETURN, Connection, check_own_version, worker_name
from habitus.corpus.shards import go_on
from habitus.errors import FileError, HabitusError, VideoError, WorkerError
from habitus.workers import Task

LOOK = 0.5
"""Seconds between two looks at the cluster while no task finishes."""
AHEAD = 2
"""Tasks that wait for each thread of a worker, so that it is never idle."""

T = TypeVar("T")
R = TypeVar("R")


class ClusterTasks:
    """Tasks of a cluster, from their start to their results.

    Parameters
    ----------
    connection
        The cluster.
    """

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

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Start a task by Dask's own means, with a key of its own."""
        key = f"habitus-{function.__name__.strip('_')}-{uuid.uuid4().hex}"
        return self.connection.client.submit(function, *arguments, key=key, **options)

    def results(
        self,
        submit: Callable[[Task[T]], Any],
        tasks: Iterator[Task[T]],
        *,
        check: Callable[[], None] = go_on,
    ) -> Iterator[tuple[Task[T], Any]]:
        """Carry out tasks, and yield each with its result as it is finished.

        Parameters
        ----------
        submit
            Starts a task; called again for the same task where the scheduler was lost.
        tasks
            The tasks; some more than the workers can take are started at a time.
        check
            Called now and then; it may raise to end the tasks.
        """
        again: list[Task[T]] = []
        running: dict[str, tuple[Any, Task[T]]] = {}
        finished: queue.Queue[Any] = queue.Queue()
        try:
            while True:
                most = (1 + AHEAD) * self.n_at_a_time
                while len(running) < most and (task := again.pop() if again else next(tasks, None)):
                    future = self._started(submit, task)
                    running[future.key] = future, task
                    future.add_done_callback(finished.put)
                if not running:
                    return
                future = self._next(finished, check)
                _, task = running.pop(future.key)
                try:
                    result = _result(future, task)
                except (CancelledError, ClosedClientError):
                    self.connection.restore()
                    again.append(task)
                    continue
                yield task, result
        finally:
            futures = [future for future, _ in running.values()]
            if futures and self.connection.client.status == "running":
                self.connection.client.cancel(futures, force=True)

    def _started(self, submit: Callable[[Task[T]], Any], task: Task[T]) -> Any:
        while True:
            try:
                return submit(task)
            except (CancelledError, ClosedClientError):
                self.connection.restore()

    def _next(self, finished: "queue.Queue[Any]", check: Callable[[], None]) -> Any:
        """Wait for the next task that is finished, failed or lost."""
        alone: float | None = None
        while True:
            check()
            try:
                return finished.get(timeout=LOOK)
            except queue.Empty:
                pass
            if self.connection.n_threads():
                alone = None
                continue
            alone = alone or time.monotonic()
            if time.monotonic() - alone > RETURN:
                raise WorkerError(
                    f"the cluster at {self.connection.address} has had no workers for {RETURN:g} "
                    "s: start some, and give the same command again; it goes on from what is stored"
                )


class Sent:
    """Something that is sent to workers once, and again where it was lost.

    Parameters
    ----------
    connection
        The cluster.
    value
        What to send.
    """

    def __init__(self, connection: Connection, value: Any) -> None:
        self._connection, self._payload = connection, pickle.dumps(value)
        self._future: Any = None

    def future(self) -> Any:
        """Return it as an argument of tasks."""
        if self._future is None or self._future.status in ("cancelled", "lost"):
            self._future = self._connection.client.submit(
                pickle.loads, self._payload, key=f"habitus-sent-{uuid.uuid4().hex}"
            )
        return self._future


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


def _result(future: Any, task: Task[Any]) -> Any:
    """Return the result of a task that has ended, or raise an error of one line."""
    try:
        return future.result()
    except (HabitusError, CancelledError, ClosedClientError):
        raise
    except KilledWorker as error:
        raise WorkerError(
            f"{task.name}: the workers that worked on it died, one after the other, perhaps for "
            "want of memory"
        ) from error
    except ImportError as error:
        raise WorkerError(
            f"{task.name}: a worker has no {error.name or error}: install habitus "
            f"{version('habitus')} on all workers"
        ) from error
