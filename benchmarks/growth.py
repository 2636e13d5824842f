"""Ten times the documents: how much more time.

`fit` is EM through the estimator, start and all; the iterations are the learners' own steps. Each
is timed at 3000 and at 300 documents of the same make, in turn. The samplers start from a VB fit:
far from the posterior more tokens change topic, which costs more, and longer at the larger size.
"""

from collections.abc import Callable, Iterator
from functools import partial

import corpora
import fitted
from habitus import Corpus, MarkovClusteringTopicModel
from report import Row, Target, main
from timing import interleave, repeated, single_core

PRIOR = "H+1"
TARGET = Target("at most", 11)
SMALL, LARGE = corpora.N_DOCUMENTS, 10 * corpora.N_DOCUMENTS


def measure(quick: bool) -> Iterator[Row]:
    """Rows: an EM fit, and an iteration of every learner."""
    single_core()
    small, large = corpora.make(SMALL).corpus, corpora.make(LARGE).corpus
    learners: dict[str, tuple[Callable[[Corpus], Callable[[], object]], int]] = {
        "EM fit of 50 iterations": (_fit, 1),
        "EM iteration": (partial(fitted.em_step, prior=PRIOR, n_before=5), 10),
        "VB iteration": (partial(fitted.vb_step, prior=PRIOR, n_before=5), 10),
        "collapsed sweep": (partial(_chain, fitted.CollapsedChain), 5),
        "blocked sweep": (partial(_chain, fitted.BlockedChain), 5),
    }
    for name, (prepare, times) in learners.items():
        sides = {
            "large": repeated(prepare(large), times),
            "small": repeated(prepare(small), times),
        }
        rounds = interleave(sides, 3 if quick else 9)
        yield Row(
            what=f"{name}: {LARGE} documents over {SMALL}",
            ours=rounds.median("large") * 1e3,
            peer=rounds.median("small") * 1e3,
            unit="ms",
            ratio=rounds.ratio("large", "small"),
            target=TARGET,
        )


def _fit(corpus: Corpus) -> Callable[[], object]:
    model = MarkovClusteringTopicModel(prior=PRIOR, n_iterations=50, random_state=0)
    return partial(model.fit, corpus)


def _chain(
    kind: type[fitted.CollapsedChain] | type[fitted.BlockedChain], corpus: Corpus
) -> Callable[[], object]:
    model = MarkovClusteringTopicModel(learning="vb", prior=PRIOR, n_iterations=150, random_state=0)
    chain = kind(corpus, PRIOR, model.fit(corpus).parameters_)
    for _ in range(20):
        chain()
    return chain


if __name__ == "__main__":
    main(measure)
