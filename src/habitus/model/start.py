"""Where learning starts: drawn around documents of the corpus, or anywhere at random."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from habitus.model.evidence import Evidence
from habitus.model.messages import draw_each
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
    roots, filled = _square_roots(evidence)
    _, seeds = kmeans_plusplus(
        roots, n_behaviours, random_state=int(rng.integers(np.iinfo(np.int32).max))
    )
    nearest = np.asarray((roots @ roots[seeds].T).todense()).argmax(axis=1)
    members = sp.csr_array(
        (np.ones(len(filled)), (nearest, filled)), shape=(n_behaviours, evidence.n_documents)
    )
    behaviours = np.asarray((members @ _matrix(evidence)).todense()).T
    overall = behaviours.sum(axis=1, keepdims=True) + 1
    behaviours = _mixed(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = behaviours[:, home] * rng.standard_gamma(1.0, (n_words, n_topics))
    own = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    anywhere = random_start(sizes, rng)
    return anywhere._replace(phi=_mixed(phi, overall), theta=_mixed(own, anywhere.theta))


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
    repeats = evidence.counts.astype(np.int64)
    words = np.repeat(evidence.words, repeats)
    behaviours = np.repeat(np.repeat(path, np.diff(evidence.indptr)), repeats)
    topics = draw_each(parameters.phi, parameters.theta, words, behaviours, rng.random(len(words)))
    return Assignments(topics, path)


def _matrix(evidence: Evidence) -> sp.csr_array:
    return sp.csr_array(
        (evidence.counts, evidence.words, evidence.indptr),
        shape=(evidence.n_documents, evidence.n_words),
    )


def _square_roots(evidence: Evidence) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """Square roots of word frequencies of documents that have words, and which these are."""
    matrix = _matrix(evidence)
    totals = np.asarray(matrix.sum(axis=1))
    filled = np.flatnonzero(totals > 0)
    return (sp.diags_array(1 / totals[filled]) @ matrix[filled]).sqrt().tocsr(), filled


def _mixed(own: Array, rest: Array) -> Array:
    """Columns that follow `own`, with a share of `rest`; all of `rest` where `own` is empty."""
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own_columns = own / np.where(total > 0, total, 1)
    return np.asarray(share * own_columns + (1 - share) * rest / rest.sum(axis=0))
