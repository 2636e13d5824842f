"""Twenty restarts of a hundred EM iterations through the estimator: two cores against one.

Not pinned, as two cores are needed. The results of both are asserted to be the same to the bit.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

import corpora
from habitus import Corpus, MarkovClusteringTopicModel
from report import Row, Target, main
from timing import interleave, n_cores, repeated


def measure(quick: bool) -> Iterator[Row]:
    """One row."""
    corpus = corpora.make().corpus
    n_restarts, n_iterations = (8, 50) if quick else (20, 100)
    run = partial(fit, corpus, n_restarts, n_iterations)
    check(run(n_jobs=1), run(n_jobs=2))
    sides = {str(n): repeated(partial(run, n_jobs=n), 1) for n in (2, 1)}
    rounds = interleave(sides, 3 if quick else 7)
    yield Row(
        what=f"{n_restarts} restarts of {n_iterations} EM iterations: two cores over one",
        ours=rounds.median("2"),
        peer=rounds.median("1"),
        unit="s",
        ratio=rounds.ratio("2", "1"),
        target=Target("at most", 0.6) if n_cores() > 1 else None,
        note=f"bit-identical; {rounds.spread('2', '1', unit='s')}"
        + ("" if n_cores() > 1 else "; this machine has one core: nothing to be gained"),
    )


def fit(
    corpus: Corpus, n_restarts: int, n_iterations: int, *, n_jobs: int
) -> MarkovClusteringTopicModel:
    """All restarts at the default settings."""
    model = MarkovClusteringTopicModel(
        n_iterations=n_iterations, n_restarts=n_restarts, n_jobs=n_jobs, random_state=0
    )
    return model.fit(corpus)


def check(one: MarkovClusteringTopicModel, two: MarkovClusteringTopicModel) -> None:
    """Every number learnt is the same."""
    np.testing.assert_array_equal(one.restarts_, two.restarts_)
    np.testing.assert_array_equal(one.objective_, two.objective_)
    for ours, theirs in zip(one.parameters_, two.parameters_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


if __name__ == "__main__":
    main(measure)
