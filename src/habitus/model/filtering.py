"""Documents under fitted parameters: their likelihoods, and the chain's filter over them."""

from typing import Literal

import numpy as np

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model.evidence import Evidence, gather
from habitus.model.expected_counts import log_likelihoods
from habitus.model.messages import Filtered, filter_forward
from habitus.model.parameters import Array, Parameters

Start = Literal["new", "continued", "uniform"]


def likelihoods_of(
    corpus: Corpus, parameters: Parameters, *, min_words: float
) -> tuple[Evidence, Array]:
    """Evidence of a corpus, and ln p(x_t | z), documents x behaviours."""
    evidence = gather(corpus, min_words=min_words)
    return evidence, log_likelihoods(evidence, parameters.phi, parameters.theta)


def filter_corpus(
    corpus: Corpus, parameters: Parameters, opening: Array | None = None, *, min_words: float
) -> tuple[Evidence, Filtered]:
    """Evidence of a corpus, and its filter; `opening` is p(z) of the first document, else pi.

    Sequences after the first always start from pi.
    """
    evidence, log_like = likelihoods_of(corpus, parameters, min_words=min_words)
    _, _, pi, xi = parameters
    n = int(corpus.lengths[0]) if len(corpus.lengths) else 0
    sequences = (
        filter_forward(log_like[:n], evidence.first[:n], pi if opening is None else opening, xi),
        filter_forward(log_like[n:], evidence.first[n:], pi, xi),
    )
    joined = (np.concatenate(parts) for parts in zip(*sequences, strict=True))
    return evidence, Filtered(*joined)


def opening_of(start: Start, parameters: Parameters, belief: Array) -> Array:
    """p(z) of the first document to come; `belief` is that of the last one learnt from."""
    _, _, pi, xi = parameters
    if start == "new":
        return pi
    if start == "continued":
        return np.asarray(xi @ belief)
    if start == "uniform":
        return np.full_like(pi, 1 / len(pi))
    raise InvalidInputError(f'start must be "new", "continued" or "uniform", found {start!r}')
