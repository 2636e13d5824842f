"""Workers of a cluster, as those see them who have tasks or passes over shards."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from habitus.corpus import Corpus, ShardedCorpus
from habitus.jobs.cluster.connection import LOCAL, Connection
from habitus.jobs.cluster.passes import ClusterPasses
from habitus.jobs.cluster.tasks import ClusterTasks, SharedValue, carry_out
from habitus.jobs.workers import Task
from habitus.version import __version__

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=tuple[Any, ...])


class ClusterWorkers:
    """Workers of a Dask cluster: what `Workers` and, for passes over shards, `Engine` ask for."""

    def __init__(self, cluster: str, jobs: int = -1) -> None:
        self.connection = Connection(cluster, jobs)
        self._tasks = ClusterTasks(self.connection)

    def __enter__(self) -> Self:
        self.connection.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.__exit__(*exception)

    @property
    def n_workers(self) -> int:
        """Tasks at a time: the threads of all workers that are there now, at least 1."""
        return self._tasks.n_at_a_time

    @property
    def here(self) -> bool:
        """Whether they run on this machine, and write files where it does."""
        return self.connection.cluster == LOCAL

    def as_completed(
        self, function: Callable[[T], R], items: Iterable[T]
    ) -> Iterator[tuple[int, R]]:
        """Call a function with each item, and yield the results; see `Workers`."""
        shared, own = SharedValue(self.connection, function), __version__
        name = getattr(getattr(function, "func", function), "__name__", "task")

        def submit(task: Task[T]) -> Any:
            item = pickle.dumps(task.item)
            return self._tasks.submit(carry_out, own, shared.future(), item, name=name)

        tasks = (Task(number, item) for number, item in enumerate(items))
        for task, result in self._tasks.results(submit, tasks):
            yield task.number, result

    def passes(self, corpus: ShardedCorpus, make: Callable[[Corpus], M]) -> ClusterPasses[M]:
        """Return what a function makes of each shard, kept by the workers; see `Engine`."""
        return ClusterPasses(self._tasks, corpus, make)
