"""Twenty restarts of a hundred EM iterations through the estimator: two cores against one.

Not pinned, as two cores are needed. The results of both are asserted to be the same to the bit. The
note also gives what the machine allows: the same work on one core each in two processes that share
nothing, over the same work twice in one of them.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median

import numpy as np

import corpora
from habitus import Corpus, MarkovClusteringTopicModel
from report import Row, Target, main
from timing import interleave, n_cores, repeated


def measure(quick: bool) -> Iterator[Row]:
    """One row."""
    corpus = corpora.make().corpus
    n_restarts, n_iterations = (6, 30) if quick else (20, 100)
    run = partial(fit, corpus, n_restarts, n_iterations)
    check(run(n_jobs=1), run(n_jobs=2))
    sides = {str(n): repeated(partial(run, n_jobs=n), 1, time.perf_counter) for n in (2, 1)}
    rounds = interleave(sides, 2 if quick else 4)
    yield Row(
        what=f"{n_restarts} restarts of {n_iterations} EM iterations: two cores over one",
        ours=rounds.median("2"),
        peer=rounds.median("1"),
        unit="s",
        ratio=rounds.ratio("2", "1"),
        target=Target("at most", 0.6) if n_cores() > 1 else None,
        note=f"bit-identical; {rounds.spread('2', '1', unit='s')}; two processes that share "
        f"nothing reach {limit(n_restarts // 2, n_iterations, 2):.2f}",
    )


def fit(
    corpus: Corpus, n_restarts: int, n_iterations: int, *, n_jobs: int
) -> MarkovClusteringTopicModel:
    """All restarts at the default settings."""
    model = MarkovClusteringTopicModel(
        n_iterations=n_iterations, n_restarts=n_restarts, n_jobs=n_jobs, random_state=0
    )
    return model.fit(corpus)


def limit(n_restarts: int, n_iterations: int, rounds: int) -> float:
    """Time of two processes at once over twice the time of one alone."""
    job = partial(seconds, n_restarts, n_iterations)
    ratios = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        _at_once(pool, job, 2)
        for _ in range(rounds):
            alone, both = _at_once(pool, job, 1), _at_once(pool, job, 2)
            ratios.append(both / (2 * alone))
    return median(ratios)


def seconds(n_restarts: int, n_iterations: int) -> float:
    """Time of all restarts in this process."""
    corpus = corpora.make().corpus
    start = time.perf_counter()
    fit(corpus, n_restarts, n_iterations, n_jobs=1)
    return time.perf_counter() - start


def _at_once(pool: ProcessPoolExecutor, job: Callable[[], float], n: int) -> float:
    return max(future.result() for future in [pool.submit(job) for _ in range(n)])


def check(one: MarkovClusteringTopicModel, two: MarkovClusteringTopicModel) -> None:
    """Every number learnt is the same."""
    np.testing.assert_array_equal(one.restarts_, two.restarts_)
    np.testing.assert_array_equal(one.objective_, two.objective_)
    for ours, theirs in zip(one.parameters_, two.parameters_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


if __name__ == "__main__":
    main(measure)
