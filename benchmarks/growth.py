"""Ten times the documents: how much more time.

`fit` is EM through the estimator, start and all; the iterations are the learners' own steps. Each
is timed at 3000 and at 300 documents of the same make, in turn. The samplers start from the model
that made the documents, and prior H keeps them near it: a token that changes its topic costs more
than one that stays, so the sizes have to be compared where as many change; the note says how many.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import corpora
import fitted
from collapsed_sweep import moving_share
from habitus import MarkovClusteringTopicModel
from report import Row, Target, main
from timing import interleave, repeated, single_core

PRIOR, SAMPLERS_PRIOR = "H+1", "H"
TARGET = Target("at most", 11)
SMALL, LARGE = corpora.N_DOCUMENTS, 10 * corpora.N_DOCUMENTS


class Work(NamedTuple):
    """What to time, how often in a row, and something to say about it."""

    once: Callable[[], object]
    times: int
    note: str = ""


def measure(quick: bool) -> Iterator[Row]:
    """Rows: an EM fit, and an iteration of every learner."""
    single_core()
    small, large = corpora.make(SMALL), corpora.make(LARGE)
    for name, prepare in LEARNERS.items():
        more, less = prepare(large), prepare(small)
        rounds = interleave(
            {"large": repeated(*more[:2]), "small": repeated(*less[:2])}, 2 if quick else 9
        )
        yield Row(
            what=f"{name}: {LARGE} documents over {SMALL}",
            ours=rounds.median("large") * 1e3,
            peer=rounds.median("small") * 1e3,
            unit="ms",
            ratio=rounds.ratio("large", "small"),
            target=TARGET,
            note=f"{more.note} and {less.note} of tokens change topic" if more.note else "",
        )


def _fit(made: corpora.Made) -> Work:
    model = MarkovClusteringTopicModel(prior=PRIOR, n_iterations=50, random_state=0)
    return Work(partial(model.fit, made.corpus), 1)


def _em(made: corpora.Made) -> Work:
    return Work(fitted.em_step(made.corpus, PRIOR, n_before=5), 10)


def _vb(made: corpora.Made) -> Work:
    return Work(fitted.vb_step(made.corpus, PRIOR, n_before=5), 10)


def _collapsed(made: corpora.Made) -> Work:
    chain = fitted.CollapsedChain(made.corpus, SAMPLERS_PRIOR, made.parameters)
    for _ in range(20):
        chain()
    return Work(chain, 5, f"{moving_share(chain):.1%}")


def _blocked(made: corpora.Made) -> Work:
    chain = fitted.BlockedChain(made.corpus, SAMPLERS_PRIOR, made.parameters)
    for _ in range(20):
        chain()
    return Work(chain, 5)


LEARNERS: dict[str, Callable[[corpora.Made], Work]] = {
    "EM fit of 50 iterations": _fit,
    "EM iteration": _em,
    "VB iteration": _vb,
    "collapsed sweep": _collapsed,
    "blocked sweep": _blocked,
}


if __name__ == "__main__":
    main(measure)
