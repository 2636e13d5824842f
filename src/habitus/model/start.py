"""Where learning starts: drawn around documents of the corpus, or anywhere at random."""

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.model.evidence import Evidence
from habitus.model.expected_counts import padded, scatter
from habitus.model.gibbs import draw_topics
from habitus.model.parameters import (
    Array,
    Assignments,
    DirichletPosterior,
    Parameters,
    Sizes,
    block_shapes,
    sample_dirichlet,
)
from habitus.model.prior import Concentrations

# How strongly a start follows its documents: the rest keeps every behaviour able to move.
OWN_SHARE = 0.9


def random_start(sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Every column uniform over its simplex."""
    return Parameters(*(sample_dirichlet(np.ones(shape), rng) for shape in block_shapes(sizes)))


def documents_start(evidence: Evidence, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Behaviours that look like documents far apart, topics that look like behaviours.

    Documents are so long that the first E-step all but decides every behaviour: a start that is
    equally wrong everywhere ends in a poor optimum. Seeds are drawn as in k-means++ on the square
    roots of word frequencies (Hellinger distance), every document goes to its nearest seed, and
    topics are random thinnings of what the behaviours are made of.
    """
    n_words, n_topics, n_behaviours = sizes
    behaviours = _groups(evidence, n_behaviours, rng)
    overall = behaviours.sum(axis=1, keepdims=True) + 1
    _mixed(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = rng.standard_gamma(1.0, (n_words, n_topics))
    phi *= behaviours[:, home]
    own = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    _, shape, *chain = block_shapes(sizes)
    theta, pi, xi = (sample_dirichlet(np.ones(shape), rng) for shape in (shape, *chain))
    return Parameters(_mixed(phi, overall), _mixed(own, theta), pi, xi)


def _groups(evidence: Evidence, n_groups: int, rng: np.random.Generator) -> Array:
    """Word counts of documents grouped around seeds, words x groups."""
    likeness = _likeness(evidence, _seeds(evidence, n_groups, rng))
    member = np.eye(n_groups)[likeness.argmax(axis=1)]
    groups = scatter(
        evidence.indptr, evidence.words, evidence.counts, padded(member), evidence.n_words
    )
    return groups[:, :n_groups]


def _seeds(evidence: Evidence, n_seeds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Documents far apart: each in proportion to its squared distance from those before it.

    Of a few candidates the one that leaves the least distance is taken, as in k-means++.
    """
    n_candidates = 2 + int(np.log(n_seeds))
    filled = (np.diff(evidence.indptr) > 0).astype(np.float64)
    distance = filled
    seeds = np.empty(n_seeds, dtype=np.int64)
    for i in range(n_seeds):
        weights = distance if distance.any() else filled
        candidates = rng.choice(len(weights), n_candidates, p=weights / weights.sum())
        left = np.minimum(distance[:, None], np.maximum(1 - _likeness(evidence, candidates), 0))
        best = int(left.sum(axis=0).argmin())
        seeds[i], distance = candidates[best], left[:, best]
    return seeds


def _likeness(evidence: Evidence, seeds: NDArray[np.int64]) -> Array:
    """Cosine of the square roots of word frequencies, documents x seeds."""
    return _cosines(evidence.indptr, evidence.words, evidence.counts, evidence.n_words, seeds)


@compiled
def _cosines(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Array,
    n_words: int,
    seeds: NDArray[np.int64],
) -> Array:
    """`sqrt(C / totals) @ sqrt(C[seeds] / totals[seeds]).T`; 0 for an empty document."""
    roots = np.zeros((n_words, len(seeds)))
    for s in range(len(seeds)):
        for j in range(indptr[seeds[s]], indptr[seeds[s] + 1]):
            roots[words[j], s] = np.sqrt(counts[j])
    cosines = np.zeros((len(indptr) - 1, len(seeds)))
    totals = np.zeros(len(indptr) - 1)
    for t in range(len(totals)):
        for j in range(indptr[t], indptr[t + 1]):
            totals[t] += counts[j]
            root = np.sqrt(counts[j])
            for s in range(len(seeds)):
                cosines[t, s] += root * roots[words[j], s]
    for t in range(len(totals)):
        for s in range(len(seeds)):
            if cosines[t, s] > 0:
                cosines[t, s] /= np.sqrt(totals[t]) * np.sqrt(totals[seeds[s]])
    return cosines


def posterior_around(
    parameters: Parameters, evidence: Evidence, prior: Concentrations
) -> DirichletPosterior:
    """A q(Omega) with these means, as if the corpus had been seen under them."""
    _, n_topics, n_behaviours = parameters.sizes
    n_tokens = evidence.counts.sum()
    strengths = (
        n_tokens / n_topics,
        n_tokens / n_behaviours,
        evidence.first.sum(),
        evidence.n_documents / n_behaviours,
    )
    return DirichletPosterior(
        *(h + n * block for h, n, block in zip(prior, strengths, parameters, strict=True))
    )


def assignments_under(
    parameters: Parameters, path: NDArray[np.int64], evidence: Evidence, rng: np.random.Generator
) -> Assignments:
    """Draw a topic for every token, given the behaviour of its document."""
    seed = rng.integers(2**64, dtype=np.uint64)
    topics = draw_topics(
        evidence.indptr, evidence.words, evidence.counts, path, *parameters[:2], seed
    )
    return Assignments(topics, path)


def _mixed(own: Array, rest: Array) -> Array:
    """Columns that follow `own`, with a share of `rest`; all of `rest` where `own` is empty.

    In place of `own`.
    """
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own *= share / np.where(total > 0, total, 1)
    own += (1 - share) * (rest / rest.sum(axis=0))
    return own
