"""Workers of a cluster: their tasks, through the loss of workers and of the scheduler."""

import math
import pickle
import queue
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from distributed import KilledWorker
from distributed.client import ClosedClientError

from habitus.backlog import growing_wait
from habitus.corpus import Corpus, ShardedCorpus
from habitus.corpus.shards import go_on
from habitus.errors import HabitusError, TaskError, WorkerError
from habitus.jobs.cluster.connection import (
    LOCAL,
    RETURN,
    Connection,
    SharedValue,
    carry_out,
)
from habitus.jobs.cluster.passes import ClusterPasses
from habitus.jobs.workers import Task
from habitus.version import __version__

LOOK = 0.5
"""Seconds between two looks at the cluster while no task finishes."""
FETCH = 4.0
"""Seconds that a result may take to come at first; twice as long at each further attempt."""

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=tuple[Any, ...])


class ClusterWorkers(Connection):
    """Workers of a Dask cluster: what `Workers` and `PassWorkers` ask for."""

    _asked, _n_threads = -LOOK, 0
    """When the workers were counted last, and their threads then."""

    @property
    def here(self) -> bool:
        """Whether they run on this machine, and write files where it does."""
        return self.cluster == LOCAL

    def as_completed(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each item, and yield the results; see `Workers`."""
        shared = SharedValue(self, function)
        name = getattr(getattr(function, "func", function), "__name__", "task")

        def submit(task: Task[T]) -> Any:
            item = pickle.dumps(task.item)
            return self.submit(carry_out, __version__, shared.future(), item, name=name)

        tasks = (Task(number, item) for number, item in enumerate(items))
        for task, result in self.results(submit, tasks):
            yield task.number, result

    def passes(self, corpus: ShardedCorpus, make: Callable[[Corpus], M]) -> ClusterPasses[M]:
        """Return what a function makes of each shard, kept by the workers."""
        return ClusterPasses(self, corpus, make)

    @property
    def n_workers(self) -> int:
        """Tasks at a time: the threads of all workers, as of half a second ago; at least 1."""
        if time.monotonic() - self._asked > LOOK:
            self._n_threads = sum(self.n_threads().values())
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
        return self.client.submit(function, *arguments, key=key, **options)

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
                most = self.n_workers if homes is None else sys.maxsize
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
                within = growing_wait(late[future.key] + 1, FETCH, math.inf)
                try:
                    result = _result(future, task, within)
                except TimeoutError:  # its worker died before the result was sent, or it is large
                    late[future.key] += 1
                    running[future.key] = future, task
                    future.add_done_callback(finished.put)
                    again += self._homeless(running, homes or {})
                    continue
                except (CancelledError, ClosedClientError):
                    self.restore()
                    again.append(task)
                    continue
                except ImportError as error:  # not about the task
                    self.n_threads()  # names the worker, where it came later
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
                self.restore()

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
        if futures and self.client.status == "running":
            self.client.cancel(futures, force=True)

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker, by its address; wait for one where there is none.

        WorkerError if none comes.
        """
        end = time.monotonic() + RETURN
        while not (n_threads := self.n_threads()):
            if self.client.status != "running":
                self.restore()
            if time.monotonic() > end:
                raise WorkerError(
                    f"the cluster at {self.address} has had no workers for {RETURN:g} "
                    "s: start some, and give the same command again; it goes on from what is stored"
                )
            time.sleep(0.1)
        return n_threads


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
