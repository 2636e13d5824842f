"""Starting points of the learners: given, around documents of the corpus, or at random.

Learning finds a local optimum near its start, so the start decides much of the result.
"""

import numpy as np

from habitus.arrays import Array, Indices, WordIds
from habitus.compiled import compiled
from habitus.errors import InvalidInputError
from habitus.model.expected_counts import Evidence, log_likelihoods, padded, scatter
from habitus.model.gibbs import draw_topics
from habitus.model.messages import most_probable_path
from habitus.model.parameters import (
    Assignments,
    Concentrations,
    DirichletPosterior,
    Parameters,
    Sizes,
    block_shapes,
    sample_dirichlet,
)

Init = Parameters | DirichletPosterior | Assignments | str | None
"""Start of learning: None (around documents that are far apart), "random", or a given one."""

# Share of a start that follows its documents; the rest keeps every word possible everywhere.
OWN_SHARE = 0.9


def check_init(init: Init, learning: str, sizes: Sizes, evidence: Evidence) -> Init:
    """Return the given start as it will be used.

    Parameters
    ----------
    init
        None, "random", or a start of the type that the learner takes.
    learning
        Name of the learner.
    sizes, evidence
        What a given start must fit.

    Returns
    -------
    Init
        `init`, as float64 or int64 arrays.

    Raises
    ------
    InvalidInputError
        Names the type that the learner takes, or what does not fit.
    """
    if init is None or (isinstance(init, str) and init == "random"):
        return init
    wanted = {"em": Parameters, "vb": DirichletPosterior}.get(learning, Assignments)
    if not isinstance(init, wanted) or isinstance(init, str):
        raise InvalidInputError(
            f'init for learning="{learning}" must be None, "random" or {wanted.__name__}, '
            f"found {init if isinstance(init, str) else type(init).__name__}",
            parameter="init",
        )
    if isinstance(init, Assignments):
        return init.checked(sizes, int(evidence.counts.sum()), evidence.n_documents)
    return init.checked(sizes)


def start_parameters(
    init: Init, evidence: Evidence, sizes: Sizes, rng: np.random.Generator
) -> Parameters:
    """Return the parameters to start from.

    Parameters
    ----------
    init
        Given parameters, "random", or None for a start around documents.
    evidence, sizes
        Documents to learn from, and sizes of the model.
    rng
        Source of random numbers.

    Returns
    -------
    start : Parameters
        Start of EM and of the blocked sampler.
    """
    if isinstance(init, Parameters):
        return init
    if init == "random":
        return random_start(sizes, rng)
    return documents_start(evidence, sizes, rng)


def start_posterior(
    init: Init, evidence: Evidence, sizes: Sizes, prior: Concentrations, rng: np.random.Generator
) -> DirichletPosterior:
    """Return q(Omega) to start from.

    Parameters
    ----------
    init
        A given posterior, or as in `start_parameters`.
    evidence, sizes, rng
        As in `start_parameters`.
    prior
        Hyperparameters of the four distributions.

    Returns
    -------
    DirichletPosterior
        Start of variational Bayes.
    """
    if isinstance(init, DirichletPosterior):
        return init
    return posterior_around(start_parameters(init, evidence, sizes, rng), evidence, prior)


def start_assignments(
    init: Init, evidence: Evidence, sizes: Sizes, rng: np.random.Generator
) -> Assignments:
    """Return the hidden variables to start from.

    Parameters
    ----------
    init
        Given assignments, "random", or None for draws under a start around documents.
    evidence, sizes, rng
        As in `start_parameters`.

    Returns
    -------
    Assignments
        Start of the collapsed sampler.
    """
    if isinstance(init, Assignments):
        return init
    if init == "random":
        _, n_topics, n_behaviours = sizes
        return Assignments(
            rng.integers(n_topics, size=int(evidence.counts.sum()), dtype=np.uint16),
            rng.integers(n_behaviours, size=evidence.n_documents),
        )
    start = documents_start(evidence, sizes, rng)
    log_like = log_likelihoods(evidence, start.phi, start.theta)
    path: Indices = most_probable_path(log_like, evidence.first, start.pi, start.xi)
    return assignments_under(start, path, evidence, rng)


def random_start(sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Draw every column uniformly from its simplex."""
    return Parameters(*(sample_dirichlet(np.ones(shape), rng) for shape in block_shapes(sizes)))


def documents_start(evidence: Evidence, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Return behaviours that resemble documents far apart, and topics that resemble behaviours.

    Documents are so long that the first E-step all but decides every behaviour: a start that is
    equally wrong everywhere ends in a poor optimum. Seeds are drawn as in k-means++ on the square
    roots of word frequencies (Hellinger distance), every document joins its nearest seed, and each
    topic is a random thinning of the words of one behaviour.

    Parameters
    ----------
    evidence
        Documents to learn from.
    sizes
        Numbers of words, topics and behaviours.
    rng
        Source of random numbers.

    Returns
    -------
    start : Parameters
        Parameters without zeros.
    """
    n_words, n_topics, n_behaviours = sizes
    behaviours = _groups(evidence, n_behaviours, rng)
    overall = behaviours.sum(axis=1, keepdims=True) + 1
    _mix_in(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = rng.standard_gamma(1.0, (n_words, n_topics))
    phi *= behaviours[:, home]
    own = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    _, *shapes = block_shapes(sizes)
    theta, pi, xi = (sample_dirichlet(np.ones(shape), rng) for shape in shapes)
    return Parameters(_mix_in(phi, overall), _mix_in(own, theta), pi, xi)


def _groups(evidence: Evidence, n_groups: int, rng: np.random.Generator) -> Array:
    """Return the word counts of documents grouped around seeds, words x groups."""
    likeness = _likeness(evidence, _seeds(evidence, n_groups, rng))
    member = np.eye(n_groups)[likeness.argmax(axis=1)]
    groups = scatter(
        evidence.indptr, evidence.words, evidence.counts, padded(member), evidence.n_words
    )
    return groups[:, :n_groups]


def _seeds(evidence: Evidence, n_seeds: int, rng: np.random.Generator) -> Indices:
    """Draw documents far apart: each in proportion to its squared distance from those before it.

    Of several candidates the one that leaves the smallest sum of distances is taken, as in
    k-means++.
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


def _likeness(evidence: Evidence, seeds: Indices) -> Array:
    """Return the cosine of the square roots of word frequencies, documents x seeds."""
    return _cosines(evidence.indptr, evidence.words, evidence.counts, evidence.n_words, seeds)


@compiled
def _cosines(indptr: Indices, words: WordIds, counts: Array, n_words: int, seeds: Indices) -> Array:
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


def _mix_in(own: Array, rest: Array) -> Array:
    """Mix a share of `rest` into the columns of `own`, in place; only `rest` where `own` is 0."""
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own *= share / np.where(total > 0, total, 1)
    own += (1 - share) * (rest / rest.sum(axis=0))
    return own


def posterior_around(
    parameters: Parameters, evidence: Evidence, prior: Concentrations
) -> DirichletPosterior:
    """Return q(Omega) with these means, as concentrated as if learnt from the corpus.

    Parameters
    ----------
    parameters
        Means.
    evidence
        Documents to learn from.
    prior
        Hyperparameters of the four distributions.

    Returns
    -------
    DirichletPosterior
        Start of variational Bayes.
    """
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
    parameters: Parameters, path: Indices, evidence: Evidence, rng: np.random.Generator
) -> Assignments:
    """Draw a topic for every token, given the behaviour of its document.

    Parameters
    ----------
    parameters
        Parameters to draw under.
    path
        Behaviour of each document.
    evidence
        Documents to learn from.
    rng
        Source of random numbers.

    Returns
    -------
    Assignments
        Start of the collapsed sampler.
    """
    seed = rng.integers(2**64, dtype=np.uint64)
    topics = draw_topics(
        evidence.indptr, evidence.words, evidence.counts, path, *parameters[:2], seed
    )
    return Assignments(topics, path)
