"""Corpora and parameters to compare on: tiny ones to enumerate, one of the paper's size."""

import weakref
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from habitus.corpus.documents import Corpus
from habitus.corpus.shards import CorpusFile
from habitus.corpus.vocabulary import moves_in
from habitus.model.expected_counts import Evidence, gather
from habitus.model.parameters import Concentrations, DirichletPosterior, Parameters, Prior, Sizes


def refined(corpus: Corpus, seed: int = 0) -> Corpus:
    """Return the documents in fine words drawn at random; their sums are the documents."""
    rng, coarser = np.random.default_rng(seed), corpus.vocabulary
    fine = coarser.finest
    parts = [np.flatnonzero(moves_in(fine, coarser) == m) for m in range(coarser.per_cell)]
    ids = []
    for words, counts in corpus.bags():
        tokens = np.repeat(words, counts.astype(int))
        moves = [rng.choice(parts[m]) for m in coarser.moves(tokens)]
        ids.append(coarser.cells(tokens) * fine.per_cell + np.array(moves, dtype=np.int64))
    found = Corpus.from_word_ids(ids, vocabulary=fine, lengths=corpus.lengths, times=corpus.times)
    return replace(found, conditions=corpus.conditions, settings=corpus.settings)


PAPER_SIZES = Sizes(n_words=6480, n_topics=8, n_behaviours=4)


class Tiny(NamedTuple):
    """A corpus small enough to enumerate every hidden assignment."""

    documents: tuple[tuple[int, ...], ...]
    """Word of each token, ascending within a document."""
    lengths: tuple[int, ...]
    """Documents of each sequence."""
    sizes: Sizes

    @property
    def words(self):
        """Word of each token of the corpus."""
        return np.array([x for document in self.documents for x in document], dtype=np.int64)

    @property
    def document_of_token(self):
        """Document of each token."""
        return np.repeat(np.arange(len(self.documents)), [len(d) for d in self.documents])

    @property
    def opening(self):
        """Documents that open a sequence."""
        return np.cumsum((0, *self.lengths[:-1]))

    @property
    def evidence(self) -> Evidence:
        """The same corpus as the learners see it."""
        return gather(corpus_of(self))


TINY = {
    "repeats, an empty document, two sequences": Tiny(
        ((0, 0, 2), (), (1,), (1, 2)), (3, 1), Sizes(3, 2, 2)
    ),
    "three topics, three behaviours": Tiny(((1, 1), (0,), (), (0, 3)), (2, 2), Sizes(4, 3, 3)),
    "more behaviours than lanes": Tiny(((0, 1, 1), (2,), (0,)), (3,), Sizes(3, 2, 5)),
    "ends empty, a word never seen": Tiny(((0, 0, 0, 1), (1,), ()), (1, 2), Sizes(3, 2, 3)),
    "one topic": Tiny(((0, 1), (1, 1), (0,)), (3,), Sizes(2, 1, 2)),
    "one behaviour": Tiny(((0, 1), (1, 2), (0,)), (2, 1), Sizes(3, 3, 1)),
    "one document": Tiny(((0, 0, 1, 2),), (1,), Sizes(3, 2, 2)),
}


def corpus_of(tiny: Tiny) -> Corpus:
    return Corpus.from_word_ids(tiny.documents, n_words=tiny.sizes.n_words, lengths=tiny.lengths)


def random_parameters(sizes: Sizes, seed: int) -> Parameters:
    """Every column uniform over its simplex."""
    rng = np.random.default_rng(seed)
    n_words, n_topics, n_behaviours = sizes
    return Parameters(
        phi=rng.dirichlet(np.ones(n_words), n_topics).T.copy(),
        theta=rng.dirichlet(np.ones(n_topics), n_behaviours).T.copy(),
        pi=rng.dirichlet(np.ones(n_behaviours)),
        xi=rng.dirichlet(np.ones(n_behaviours), n_behaviours).T.copy(),
    )


def sparse_parameters(sizes: Sizes, seed: int) -> Parameters:
    """As `random_parameters`, with zeros in theta, pi and xi; every word stays possible."""
    dense = random_parameters(sizes, seed)
    _, n_topics, n_behaviours = sizes
    theta, pi, xi = dense.theta.copy(), dense.pi.copy(), dense.xi.copy()
    if n_topics > 1:
        theta[0, 0] = 0
    if n_behaviours > 1:
        pi[-1] = 0
        xi[np.arange(n_behaviours), np.arange(n_behaviours)[::-1]] = 0
    return Parameters(dense.phi, theta / theta.sum(axis=0), pi / pi.sum(), xi / xi.sum(axis=0))


def unnormalised_parameters(sizes: Sizes, seed: int) -> Parameters:
    """Tilde parameters as in variational Bayes: the columns add up to less than one."""
    rng = np.random.default_rng(seed + 1)
    return Parameters(
        *(block * rng.uniform(0.2, 1.0, block.shape) for block in random_parameters(sizes, seed))
    )


PARAMETERS = {
    "dense": random_parameters,
    "with zeros": sparse_parameters,
    "unnormalised": unnormalised_parameters,
}


def random_posterior(sizes: Sizes, seed: int) -> DirichletPosterior:
    """Dirichlet parameters of every magnitude that matters."""
    rng = np.random.default_rng(seed)
    shapes = (block.shape for block in random_parameters(sizes, seed))
    return DirichletPosterior(*(np.exp(rng.uniform(-2.5, 3, shape)) for shape in shapes))


def uneven_prior(sizes: Sizes) -> Concentrations:
    """Hyperparameters that differ from component to component, some below one."""
    n_words, n_topics, n_behaviours = sizes
    return Prior(
        alpha=np.linspace(0.6, 1.5, n_topics),
        beta=np.linspace(0.3, 1.2, n_words),
        gamma=np.linspace(0.9, 0.4, n_behaviours),
        eta=np.linspace(0.5, 2.0, n_behaviours),
    ).concentrations(sizes)


def paper_corpus(seed: int) -> Corpus:
    """300 documents of 200 to 1,200 words of 6,480, in three sequences: about 220,000 tokens."""
    rng = np.random.default_rng(seed)
    n_words, n_topics, n_behaviours = PAPER_SIZES
    phi = rng.dirichlet(np.full(n_words, 0.03), n_topics)
    theta = rng.dirichlet(np.ones(n_topics), n_behaviours)
    behaviours = np.repeat(rng.integers(n_behaviours, size=60), 5)
    n_tokens = rng.integers(200, 1235, size=300)
    counts = np.stack(
        [rng.multinomial(n, theta[z] @ phi) for n, z in zip(n_tokens, behaviours, strict=True)]
    )
    return Corpus(counts, lengths=[120, 1, 179])


def close_parameters(sizes: Sizes, seed: int) -> Parameters:
    """Behaviours so much alike that long documents leave them in doubt."""
    rng = np.random.default_rng(seed)
    apart = random_parameters(sizes, seed)
    theta = 0.97 * rng.dirichlet(np.ones(sizes.n_topics))[:, None] + 0.03 * apart.theta
    return apart._replace(theta=theta)


class LoadedShards:
    """Counts the shards that are loaded from files, and how many are in memory at once.

    Parameters
    ----------
    monkeypatch
        Puts the counting in, until the test ends.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.references: list[weakref.ref] = []
        self.most = 0
        load = CorpusFile.load

        def counted(file: CorpusFile) -> Corpus:
            corpus = load(file)
            self.references.append(weakref.ref(corpus.entries.data))
            self.most = max(self.most, sum(each() is not None for each in self.references))
            return corpus

        monkeypatch.setattr(CorpusFile, "load", counted)

    def __len__(self) -> int:
        return len(self.references)

    def clear(self) -> None:
        """Count from here on."""
        self.references.clear()
