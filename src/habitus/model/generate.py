"""Generative process, Algorithm 1 of the paper."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from habitus.arrays import Array, Indices
from habitus.corpus.checks import checked_lengths
from habitus.corpus.documents import Corpus
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


class GeneratedCorpus(NamedTuple):
    """Generated documents and the hidden variables behind them."""

    corpus: Corpus
    assignments: Assignments


def draw_parameters(prior: Prior, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Draw parameters from their Dirichlet priors, Eq. (2): lines 1 to 7 of Algorithm 1.

    Examples
    --------
    >>> drawn = draw_parameters(Prior(), Sizes(5, 2, 3), np.random.default_rng(0))
    >>> drawn.phi.shape, drawn.xi.shape
    ((5, 2), (3, 3))
    """
    blocks = zip(prior.concentrations(sizes), block_shapes(sizes), strict=True)
    return Parameters(*(sample_dirichlet(np.broadcast_to(h, shape), rng) for h, shape in blocks))


def generate(
    parameters: Parameters,
    n_tokens: ArrayLike,
    rng: np.random.Generator,
    *,
    lengths: ArrayLike | None = None,
    vocabulary: Vocabulary | None = None,
) -> GeneratedCorpus:
    """Draw documents from given parameters: Algorithm 1 from line 8.

    Parameters
    ----------
    parameters
        Parameters to draw under.
    n_tokens
        Number of tokens of each document.
    rng
        Source of random numbers.
    lengths
        Number of documents of each sequence; one sequence by default.
    vocabulary
        What the words mean, for the corpus.

    Returns
    -------
    GeneratedCorpus
        Documents, the behaviour of each and the topic of each token.

    Raises
    ------
    InvalidInputError
        Where `n_tokens` are not whole numbers, or `lengths` do not add up to them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> parameters = draw_parameters(Prior(), Sizes(5, 2, 3), rng)
    >>> corpus, hidden = generate(parameters, [20, 30, 10], rng)
    >>> corpus.n_tokens.tolist(), hidden.behaviours.shape
    ([20.0, 30.0, 10.0], (3,))
    """
    tokens = np.atleast_1d(np.asarray(n_tokens))
    if tokens.ndim != 1 or not np.issubdtype(tokens.dtype, np.integer) or (tokens < 0).any():
        raise InvalidInputError(
            f"n_tokens must be whole numbers of at least 0, one per document, found {n_tokens!r}",
            parameter="n_tokens",
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
    return GeneratedCorpus(corpus, Assignments(topics[np.lexsort((words, document))], behaviours))


def _draw_path(parameters: Parameters, n: int, rng: np.random.Generator) -> Indices:
    """Draw the behaviours of a sequence of n documents."""
    path = np.empty(n, dtype=np.int64)
    share = parameters.pi
    for t, uniform in enumerate(rng.random(n)):
        path[t] = _inverse(np.cumsum(share), uniform)
        share = parameters.xi[:, path[t]]
    return path


def _draw_columns(matrix: Array, columns: Indices, rng: np.random.Generator) -> Indices:
    """Draw a row for each entry of `columns`, from that column's distribution."""
    rows = np.empty(len(columns), dtype=np.int64)
    for column in range(matrix.shape[1]):
        here = np.flatnonzero(columns == column)
        rows[here] = _inverse(np.cumsum(matrix[:, column]), rng.random(len(here)))
    return rows


def _inverse(cumulated: Array, uniform: ArrayLike) -> Indices:
    """Return the quantile of each uniform number, of a distribution given by its cumulated sums."""
    index = np.searchsorted(cumulated, np.asarray(uniform) * cumulated[-1], side="right")
    return np.asarray(np.minimum(index, len(cumulated) - 1))
