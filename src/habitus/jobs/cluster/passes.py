"""Passes over shards that stay with the workers: little more than sums crosses the network.

Each worker has its own shards, neighbours of each other, and keeps what was made of them from pass
to pass. A task is an aligned block of shards, whose sum is a subtree of `TreeSum`: the sum of all
is the same to the bit, whoever summed which block. What a worker keeps is the result of a task that
is bound to it: Dask gives it free when the client ends, however it ends. Where a worker is lost,
others take over its shards.
"""

import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from habitus.corpus import Corpus, ShardedCorpus
from habitus.corpus.shards import ShardPasses, go_on
from habitus.corpus.tree_sum import Summable, TreeSum, aligned_blocks, tree_sum
from habitus.jobs.cluster.connection import SharedValue, carry_out
from habitus.jobs.workers import Task
from habitus.version import __version__

if TYPE_CHECKING:
    from habitus.jobs.cluster.pool import ClusterWorkers

BLOCKS = 2
"""Blocks of shards for each worker, about: more are spread better, fewer send fewer sums."""

R = TypeVar("R")
S = TypeVar("S", bound=Summable)
T = TypeVar("T", bound=tuple[Any, ...])


class Block(NamedTuple):
    """Shards that one task works on."""

    name: str
    """How the task is called in messages."""
    numbers: Sequence[int]


class ClusterPasses(ShardPasses[T]):
    """Passes over the shards of a corpus by workers.

    Workers find the files of the corpus at the same paths; what is made of each shard is made once,
    as far as it can be kept.
    """

    def __init__(
        self, cluster: "ClusterWorkers", corpus: ShardedCorpus, make: Callable[[Corpus], T]
    ) -> None:
        super().__init__(corpus, make)
        self._cluster = cluster
        self._pickled = pickle.dumps((replace(corpus, workers=None), make))
        self._kept: dict[str, Any] = {}
        """What each worker keeps, by its address, as a future."""
        self._workers: list[str] = []
        """Addresses in the order of their shards; a worker that comes takes the place of one that
        went, and its shards."""

    def map(
        self,
        function: Callable[[T, int], R],
        numbers: Iterable[int],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> Iterator[R]:
        """Call a pure function with what is made of shards; see `ShardPasses`."""
        chosen = list(numbers)
        self._arrange()
        runs = [list(run) for _, run in groupby(chosen, key=self._home)]
        most = self._most(len(chosen))
        blocks = [run[i : i + most] for run in runs for i in range(0, len(run), most)]
        return chain.from_iterable(self._results(list, function, blocks, check))

    def sum(
        self,
        function: Callable[[T, int], S],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> S:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        self._arrange()
        most = self._most(self.corpus.n_shards)
        blocks = [
            block for edges in pairwise(self._edges()) for block in aligned_blocks(*edges, most)
        ]
        tree: TreeSum[S] = TreeSum()
        sums = self._results(tree_sum, function, blocks, check)
        for block, part in zip(blocks, sums, strict=True):
            tree.add(part, len(block))
        return tree.total()

    def _most(self, n_shards: int) -> int:
        """Return the number of shards of a block, at most."""
        return max(1, n_shards // (BLOCKS * len(self._workers)))

    def _arrange(self) -> None:
        """Give workers that came the places of those that went."""
        present = self._cluster.workers()
        come = iter(sorted(present.keys() - set(self._workers)))
        places = [worker if worker in present else next(come, None) for worker in self._workers]
        self._workers = [worker for worker in places if worker is not None] + list(come)
        self._kept = {worker: future for worker, future in self._kept.items() if worker in present}

    def _edges(self) -> list[int]:
        """Return the number of the first shard of each worker, and the number of all shards."""
        n, places = self.corpus.n_shards, len(self._workers)
        return [n * i // places for i in range(places + 1)]

    def _home(self, number: int) -> str:
        """Return the worker that has a shard."""
        return self._workers[bisect_right(self._edges(), number) - 1]

    def _results(
        self,
        combine: Callable[[Iterable[Any]], Any],
        function: Callable[[T, int], Any],
        blocks: Sequence[Sequence[int]],
        check: Callable[[], None],
    ) -> Iterator[Any]:
        """Yield what a function gives for the shards of each block, combined, in order."""
        shared, homes = SharedValue(self._cluster, function), dict[int, str]()

        def submit(task: Task[Block]) -> Any:
            if task.number in homes:  # its worker is gone
                self._arrange()
            home = homes[task.number] = self._home(task.item.numbers[0])
            block = __version__, on_block, pickle.dumps(task.item.numbers)
            more = self._kept_by(home), shared.future(), combine
            name = combine.__name__
            return self._cluster.submit(carry_out, *block, *more, name=name, workers=[home])

        tasks = (Task(i, Block(self._name(block), block)) for i, block in enumerate(blocks))
        ready: dict[int, Any] = {}
        position = 0
        for task, result in self._cluster.results(submit, tasks, homes=homes, check=check):
            ready[task.number] = result
            while position in ready:
                yield ready.pop(position)
                position += 1

    def _kept_by(self, home: str) -> Any:
        """Return what a worker keeps, as an argument of tasks."""
        future = self._kept.get(home)
        if future is None or future.status in ("cancelled", "lost"):
            future = self._cluster.submit(WorkerShards, self._pickled, workers=[home])
            self._kept[home] = future
        return future

    def _name(self, block: Sequence[int]) -> str:
        first, last = (self.corpus.shards[number].name for number in (block[0], block[-1]))
        return first if len(block) == 1 else f"{first} to {last}"


class WorkerShards:
    """What a worker made of shards, first nothing; given to another worker, it begins anew."""

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        corpus, make = pickle.loads(pickled)  # noqa: S301 - from the client
        self.passes: ShardPasses[Any] = ShardPasses(corpus, make)

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkerShards, (self._pickled,)


def on_block(
    numbers: Sequence[int],
    shards: WorkerShards,
    function: Callable[[Any, int], Any],
    combine: Callable[[Iterable[Any]], Any],
) -> Any:
    """Combine what a function gives for each shard of a block; run by a worker."""
    return combine(shards.passes.call(function, number) for number in numbers)
