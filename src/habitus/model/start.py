"""Where learning starts: drawn around documents of the corpus, or anywhere at random."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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
    behaviours = _mixed(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = behaviours[:, home] * rng.standard_gamma(1.0, (n_words, n_topics))
    own = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    anywhere = random_start(sizes, rng)
    return anywhere._replace(phi=_mixed(phi, overall), theta=_mixed(own, anywhere.theta))


def _seeds(roots: sp.csr_array, n_seeds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Documents far apart: each in proportion to its squared distance from those before it.

    Of a few candidates the one that leaves the least distance is taken, as in k-means++.
    """
    n_candidates = 2 + int(np.log(n_seeds))
    filled = (np.diff(roots.indptr) > 0).astype(np.float64)
    distance = filled
    seeds = np.empty(n_seeds, dtype=np.int64)
    for i in range(n_seeds):
        weights = distance if distance.any() else filled
        candidates = rng.choice(len(weights), n_candidates, p=weights / weights.sum())
        likeness = (roots @ roots[candidates].T).toarray()
        left = np.minimum(distance[:, None], np.maximum(1 - likeness, 0))
        best = int(left.sum(axis=0).argmin())
        seeds[i], distance = candidates[best], left[:, best]
    return seeds


def _groups(evidence: Evidence, n_groups: int, rng: np.random.Generator) -> Array:
    """Word counts of documents grouped around seeds, words x groups."""
    lengths = np.diff(evidence.indptr)
    totals = np.asarray(_rows(evidence, evidence.counts).sum(axis=1))
    shares = np.repeat(1 / np.maximum(totals, 1e-300), lengths)
    shares *= evidence.counts
    roots = _rows(evidence, np.sqrt(shares, out=shares))
    likeness = (roots @ roots[_seeds(roots, n_groups, rng)].T).toarray()
    member = np.eye(n_groups)[likeness.argmax(axis=1)]
    groups = scatter(
        evidence.indptr, evidence.words, evidence.counts, padded(member), evidence.n_words
    )
    return groups[:, :n_groups]


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


def _rows(evidence: Evidence, data: Array) -> sp.csr_array:
    """Documents x words, sharing the evidence's words."""
    indptr = evidence.indptr
    if len(data) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # SciPy would copy the words otherwise, as int64
    return sp.csr_array((data, evidence.words, indptr), shape=(len(indptr) - 1, evidence.n_words))


def _mixed(own: Array, rest: Array) -> Array:
    """Columns that follow `own`, with a share of `rest`; all of `rest` where `own` is empty."""
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own_columns = own / np.where(total > 0, total, 1)
    return np.asarray(share * own_columns + (1 - share) * rest / rest.sum(axis=0))
