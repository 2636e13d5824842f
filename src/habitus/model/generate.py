"""The generative process, Algorithm 1 of the paper."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.corpus.documents import Corpus, checked_lengths
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.model.parameters import (
    Assignments,
    Parameters,
    Prior,
    Sizes,
    block_shapes,
    sample_dirichlet,
)


class Generated(NamedTuple):
    """Documents, and the hidden variables that made them."""

    corpus: Corpus
    assignments: Assignments


def draw_parameters(prior: Prior, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Lines 1 to 7: parameters from their Dirichlet priors."""
    blocks = zip(prior.concentrations(sizes), block_shapes(sizes), strict=True)
    return Parameters(*(sample_dirichlet(np.broadcast_to(h, shape), rng) for h, shape in blocks))


def generate(
    parameters: Parameters,
    n_tokens: ArrayLike,
    rng: np.random.Generator,
    *,
    lengths: ArrayLike | None = None,
    vocabulary: Vocabulary | None = None,
) -> Generated:
    """Lines 8 on: behaviours along the chain, a topic and then a word for each token.

    `n_tokens` gives the number of tokens of each document, `lengths` the number of documents of
    each sequence.
    """
    tokens = np.atleast_1d(np.asarray(n_tokens))
    if tokens.ndim != 1 or not np.issubdtype(tokens.dtype, np.integer) or (tokens < 0).any():
        raise InvalidInputError(
            f"n_tokens must be whole numbers of at least 0, one a document, found {n_tokens!r}"
        )
    sequences = checked_lengths(lengths, len(tokens))
    behaviours = np.concatenate(
        [np.empty(0, dtype=np.int64), *(_draw_path(parameters, n, rng) for n in sequences)]
    )
    topics = _draw_columns(parameters.theta, np.repeat(behaviours, tokens), rng)
    words = _draw_columns(parameters.phi, topics, rng)
    document = np.repeat(np.arange(len(tokens)), tokens)
    corpus = Corpus.from_word_ids(
        np.split(words, np.cumsum(tokens)[:-1]),
        n_words=parameters.sizes.n_words,
        lengths=sequences,
        vocabulary=vocabulary,
    )
    return Generated(corpus, Assignments(topics[np.lexsort((words, document))], behaviours))


def _draw_path(parameters: Parameters, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    path = np.empty(n, dtype=np.int64)
    share = parameters.pi
    for t, uniform in enumerate(rng.random(n)):
        path[t] = _inverse(np.cumsum(share), uniform)
        share = parameters.xi[:, path[t]]
    return path


def _draw_columns(
    matrix: NDArray[np.float64], columns: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A row for each entry of `columns`, from that column's distribution."""
    rows = np.empty(len(columns), dtype=np.int64)
    for column in range(matrix.shape[1]):
        here = np.flatnonzero(columns == column)
        rows[here] = _inverse(np.cumsum(matrix[:, column]), rng.random(len(here)))
    return rows


def _inverse(cumulated: NDArray[np.float64], uniform: ArrayLike) -> NDArray[np.int64]:
    """The place of each uniform number in a distribution given by its cumulated sums."""
    place = np.searchsorted(cumulated, np.asarray(uniform) * cumulated[-1], side="right")
    return np.asarray(np.minimum(place, len(cumulated) - 1))
