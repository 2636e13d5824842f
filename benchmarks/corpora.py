"""Synthetic corpora of the paper's size, and larger ones of the same make."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from habitus import Corpus, Parameters

N_WORDS, N_TOPICS, N_BEHAVIOURS = 6480, 8, 4
N_DOCUMENTS, TOKENS_PER_DOCUMENT = 300, 717
SEED = 0

# Concentrations that spread a document's 717 tokens over as many words as the paper's video does:
# 300 documents have some 130,000 non-zero counts.
TOPIC_CONCENTRATION, BEHAVIOUR_CONCENTRATION, STAY = 0.02, 0.5, 0.9


class Made(NamedTuple):
    """A corpus and its size in the terms of the table."""

    corpus: Corpus
    parameters: Parameters
    """Of the model that made it."""
    n_tokens: int
    n_entries: int
    """Non-zero counts."""
    n_bytes: int
    """Of the sparse matrix: data, indices and indptr."""


def make(
    n_documents: int = N_DOCUMENTS,
    tokens_per_document: float = TOKENS_PER_DOCUMENT,
    n_words: int = N_WORDS,
    seed: int = SEED,
) -> Made:
    """Documents from a Markov Clustering Topic Model, the same for the same arguments.

    The model depends on `seed` and `n_words` alone, so that corpora of several sizes have the same
    topics and behaviours. Lengths are Poisson.
    """
    for_model, for_documents = np.random.SeedSequence(seed).spawn(2)
    parameters = _parameters(n_words, np.random.default_rng(for_model))
    shares = (parameters.phi @ parameters.theta).T
    shares /= shares.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(for_documents)
    lengths = rng.poisson(tokens_per_document, n_documents)
    path = _path(n_documents, rng)
    rows = [
        sp.csr_array(rng.multinomial(n, shares[z]).astype(np.float64)[None])
        for n, z in zip(lengths, path, strict=True)
    ]
    counts = sp.csr_array(sp.vstack(rows, format="csr"))
    n_bytes = counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes
    return Made(Corpus(counts), parameters, int(counts.sum()), counts.nnz, n_bytes)


def _parameters(n_words: int, rng: np.random.Generator) -> Parameters:
    n = N_BEHAVIOURS
    phi = rng.dirichlet(np.full(n_words, TOPIC_CONCENTRATION), N_TOPICS).T
    theta = rng.dirichlet(np.full(N_TOPICS, BEHAVIOUR_CONCENTRATION), n).T
    xi = np.where(np.eye(n, dtype=bool), STAY, (1 - STAY) / (n - 1))
    return Parameters(np.ascontiguousarray(phi), np.ascontiguousarray(theta), np.full(n, 1 / n), xi)


def _path(n_documents: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Behaviours that stay with probability STAY, and else change to any other."""
    moves = np.where(
        rng.random(n_documents) < STAY, 0, rng.integers(1, N_BEHAVIOURS, size=n_documents)
    )
    moves[:1] = rng.integers(N_BEHAVIOURS)
    return np.cumsum(moves) % N_BEHAVIOURS
