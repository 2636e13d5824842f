"""A sweep of the collapsed sampler against tomotopy's LDA, in time per token.

tomotopy runs LDAModel with k = 8 on one worker, the same tokens, the same alpha and eta (beta, as
we call it) and no tuning of hyperparameters, which would cost it extra. Both first run a burn-in:
how often tokens still change topic decides the cost of a sweep, so that share is reported. Our
counts and log joint are checked against a fresh count of the assignments, and tomotopy's
number of tokens against ours.
"""

from collections.abc import Iterator

import numpy as np
import tomotopy

import corpora
import fitted
from habitus.model.gibbs import Tokens
from habitus.model.parameters import PAPER
from report import Row, Target, main, progress
from timing import Side, interleave, repeated, single_core

PRIORS = ("H", "H+1")
N_TIMED = 20


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a prior."""
    single_core()
    made = corpora.make()
    burn_in = 50 if quick else 400
    for prior in PRIORS:
        progress(f"burn-in of {burn_in} sweeps, prior {prior}, tomotopy on {tomotopy.isa}")
        ours = fitted.CollapsedChain(made.corpus, prior, fitted.start(made.corpus))
        for _ in range(burn_in):
            ours()
        theirs = tomotopy_model(ours.tokens, prior)
        theirs.train(burn_in, workers=1)
        moved = moving_share(ours)
        sides = {"ours": repeated(ours, N_TIMED), "tomotopy": trained(theirs)}
        rounds = interleave(sides, 3 if quick else 15)
        ours.check()
        assert theirs.num_words == sum(theirs.get_count_by_topics()) == made.n_tokens
        yield Row(
            what=f"collapsed sweep, prior {prior}: time per token over tomotopy's LDA",
            ours=rounds.median("ours") / made.n_tokens * 1e9,
            peer=rounds.median("tomotopy") / made.n_tokens * 1e9,
            unit="ns",
            ratio=rounds.ratio("ours", "tomotopy"),
            target=Target("at most", 0.5),
            note=f"{moved:.1%} of our tokens change topic in a sweep",
        )


def tomotopy_model(tokens: Tokens, prior: str) -> tomotopy.LDAModel:
    """LDA of the same tokens, at the same hyperparameters."""
    model = tomotopy.LDAModel(
        k=corpora.N_TOPICS, alpha=PAPER[prior].alpha, eta=PAPER[prior].beta, seed=1
    )
    model.optim_interval = 0
    for words in np.split(tokens.words, tokens.starts[1:-1]):
        model.add_doc([str(word) for word in words])
    return model


def trained(model: tomotopy.LDAModel) -> Side:
    """Seconds a sweep of tomotopy, from some sweeps of one call."""
    once = repeated(lambda: model.train(N_TIMED, workers=1), 1)
    return lambda: once() / N_TIMED


def moving_share(chain: fitted.CollapsedChain) -> float:
    """Share of tokens with another topic after a sweep."""
    before = chain.state.assignments.topics.copy()
    chain()
    return float(np.mean(before != chain.state.assignments.topics))


if __name__ == "__main__":
    main(measure)
