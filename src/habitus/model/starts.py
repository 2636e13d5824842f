"""Starting points of the learners: given, around documents of the corpus, or at random.

Learning finds a local optimum near its start, so the start decides much of the result.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Indices, WordIds
from habitus.compiled import compiled
from habitus.corpus.documents import Bag
from habitus.corpus.tree_sum import Sums
from habitus.errors import InvalidInputError
from habitus.model.expected_counts import Evidence, EvidenceShards, log_likelihoods, padded, scatter
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
MOST_SEEDED = 1 << 17
"""Documents that seeds are drawn from at most: of more, every second, third, ... of each shard."""


def check_init(init: Init, learning: str, sizes: Sizes, evidence: EvidenceShards) -> Init:
    """Return the given start as it will be used, in float64 or int64 arrays.

    An `InvalidInputError` names the type that the learner takes, or what does not fit.
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
        return init.checked(sizes, int(evidence.n_tokens), evidence.n_documents)
    return init.checked(sizes)


def start_parameters(
    init: Init, evidence: EvidenceShards, sizes: Sizes, rngs: Sequence[np.random.Generator]
) -> list[Parameters]:
    """Return the parameters that each run starts from; the runs share passes over the shards."""
    if isinstance(init, Parameters):
        return [init for _ in rngs]
    if init == "random":  # every column uniform on its simplex
        shapes = block_shapes(sizes)
        return [
            Parameters(*(sample_dirichlet(np.ones(shape), rng) for shape in shapes)) for rng in rngs
        ]
    return documents_starts(evidence, sizes, rngs)


def start_posteriors(
    init: Init,
    evidence: EvidenceShards,
    sizes: Sizes,
    prior: Concentrations,
    rngs: Sequence[np.random.Generator],
) -> list[DirichletPosterior]:
    """Return q(Omega) that each run of variational Bayes starts from."""
    if isinstance(init, DirichletPosterior):
        return [init for _ in rngs]
    starts = start_parameters(init, evidence, sizes, rngs)
    return [posterior_around(start, evidence, prior) for start in starts]


def start_assignments(
    init: Init, evidence: Evidence, sizes: Sizes, rng: np.random.Generator
) -> Assignments:
    """Return the hidden variables that the collapsed sampler starts from."""
    if isinstance(init, Assignments):
        return init
    if init == "random":
        _, n_topics, n_behaviours = sizes
        return Assignments(
            rng.integers(n_topics, size=int(evidence.counts.sum()), dtype=np.uint16),
            rng.integers(n_behaviours, size=evidence.n_documents),
        )
    (start,) = documents_starts(evidence, sizes, [rng])
    log_like = log_likelihoods(evidence, start.phi, start.theta)
    path: Indices = most_probable_path(log_like, evidence.first, start.pi, start.xi)
    return assignments_under(start, path, evidence, rng)


def documents_starts(
    evidence: EvidenceShards, sizes: Sizes, rngs: Sequence[np.random.Generator]
) -> list[Parameters]:
    """Return behaviours that resemble documents far apart, and topics that resemble behaviours.

    Documents are so long that the first E-step all but decides every behaviour: a start that is
    equally wrong everywhere ends in a poor optimum. Seeds are drawn as in k-means++ on the square
    roots of word frequencies (Hellinger distance), every document joins its nearest seed, and each
    topic is a random thinning of the words of one behaviour. No parameter is zero.

    Every distance belongs to one document, and counts of a group are whole numbers: the start is to
    the bit the same however the documents are sharded, up to `MOST_SEEDED` of them. Of more, seeds
    are drawn from as many, and it depends on the shards too. Runs share passes over shards.
    """
    groups = _groups(evidence, sizes.n_behaviours, rngs)
    return [_around(counts, sizes, rng) for counts, rng in zip(groups, rngs, strict=True)]


def _around(behaviours: Array, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Return parameters around the word counts of groups of documents, words x behaviours."""
    n_words, n_topics, n_behaviours = sizes
    overall = behaviours.sum(axis=1, keepdims=True) + 1
    _mix_in(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = rng.standard_gamma(1.0, (n_words, n_topics))
    phi *= behaviours[:, home]
    home_shares = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    _, *shapes = block_shapes(sizes)
    theta, pi, xi = (sample_dirichlet(np.ones(shape), rng) for shape in shapes)
    return Parameters(_mix_in(phi, overall), _mix_in(home_shares, theta), pi, xi)


def _groups(
    evidence: EvidenceShards, n_groups: int, rngs: Sequence[np.random.Generator]
) -> list[Array]:
    """Return the word counts of documents grouped around the seeds of each run: words x groups."""
    documents = evidence.pick(np.concatenate(_seeds(evidence, n_groups, rngs)))
    seeds = [
        _Roots.of(documents[i : i + n_groups], evidence.n_words)
        for i in range(0, len(documents), n_groups)
    ]
    counted = evidence.map_reduce(partial(_group_shard, seeds))
    return [groups[:, :n_groups] for groups in counted.parts]


def _group_shard(seeds: Sequence["_Roots"], shard: Evidence) -> Sums[Array]:
    """Return the word counts of the documents that are nearest to each seed, for each run."""
    groups = []
    for roots in seeds:
        (cosines,) = _cosines_of(roots, 1, shard)
        member = np.eye(roots.values.shape[1])[cosines.argmax(axis=1)]
        groups.append(
            scatter(shard.indptr, shard.words, shard.counts, padded(member), shard.n_words)
        )
    return Sums(tuple(groups))


def _seeds(
    evidence: EvidenceShards, n_seeds: int, rngs: Sequence[np.random.Generator]
) -> list[Indices]:
    """Draw documents far apart: each in proportion to its squared distance from those before it.

    Of several candidates the one that leaves the smallest sum of distances is taken, as in
    k-means++. The distances of all documents that take part are known before a draw: each shard
    gives those of its own, in order.
    """
    n_candidates = 2 + int(np.log(n_seeds))
    stride = -(-evidence.n_documents // MOST_SEEDED) or 1
    numbers = _every(evidence.shard_lengths, stride)
    filled = np.concatenate(evidence.map_reduce(partial(_filled, stride)))
    distances, seeds = [filled for _ in rngs], np.empty((len(rngs), n_seeds), dtype=np.int64)
    for i in range(n_seeds):
        drawn = []
        for distance, rng in zip(distances, rngs, strict=True):
            weights = distance if distance.any() else filled
            drawn.append(rng.choice(len(weights), n_candidates, p=weights / weights.sum()))
        likeness = _likeness(evidence, numbers[np.concatenate(drawn)], stride)
        for r, candidates in enumerate(drawn):
            cosines = likeness[:, r * n_candidates : (r + 1) * n_candidates]
            left = np.minimum(distances[r][:, None], np.maximum(1 - cosines, 0))
            best = int(left.sum(axis=0).argmin())
            seeds[r, i], distances[r] = numbers[candidates[best]], left[:, best]
    return list(seeds)


def _every(shard_lengths: Sequence[int], stride: int) -> Indices:
    """Return the numbers of every `stride`-th document of each shard."""
    starts = np.cumsum([0, *shard_lengths])
    parts = [np.arange(a, b, stride) for a, b in pairwise(starts)]
    return np.concatenate(parts)


def _filled(stride: int, shard: Evidence) -> list[Array]:
    """Return 1 for each document with words, 0 for others."""
    return [(np.diff(shard.indptr)[::stride] > 0).astype(np.float64)]


def _likeness(evidence: EvidenceShards, seeds: Indices, stride: int = 1) -> Array:
    """Return the cosine of the square roots of word frequencies, documents x seeds."""
    roots = _Roots.of(evidence.pick(seeds), evidence.n_words)
    return np.concatenate(evidence.map_reduce(partial(_cosines_of, roots, stride)))


class _Roots(NamedTuple):
    """Square roots of the word counts of some documents."""

    values: Array
    """Words x documents."""
    totals: Array
    """Tokens of each document."""

    @classmethod
    def of(cls, documents: Sequence[Bag], n_words: int) -> "_Roots":
        values, totals = np.zeros((n_words, len(documents))), np.zeros(len(documents))
        for s, (words, counts) in enumerate(documents):
            values[words, s] = np.sqrt(counts)
            totals[s] = np.cumsum(counts)[-1] if len(counts) else 0.0  # added one by one
        return cls(values, totals)


def _cosines_of(roots: _Roots, stride: int, shard: Evidence) -> list[Array]:
    return [_cosines(shard.indptr, shard.words, shard.counts, roots.values, roots.totals, stride)]


@compiled
def _cosines(
    indptr: Indices, words: WordIds, counts: Array, roots: Array, seed_totals: Array, stride: int
) -> Array:
    """`sqrt(C / totals)[::stride] @ (roots / sqrt(seed_totals))`; 0 for an empty document."""
    n_seeds = len(seed_totals)
    n = (len(indptr) - 1 + stride - 1) // stride
    cosines = np.zeros((n, n_seeds))
    totals = np.zeros(n)
    for i in range(n):
        for j in range(indptr[i * stride], indptr[i * stride + 1]):
            totals[i] += counts[j]
            root = np.sqrt(counts[j])
            for s in range(n_seeds):
                cosines[i, s] += root * roots[words[j], s]
    for i in range(n):
        for s in range(n_seeds):
            if cosines[i, s] > 0:
                cosines[i, s] /= np.sqrt(totals[i]) * np.sqrt(seed_totals[s])
    return cosines


def _mix_in(own: Array, rest: Array) -> Array:
    """Mix a share of `rest` into the columns of `own`, in place; only `rest` where `own` is 0."""
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own *= share / np.where(total > 0, total, 1)
    own += (1 - share) * (rest / rest.sum(axis=0))
    return own


def posterior_around(
    parameters: Parameters, evidence: EvidenceShards, prior: Concentrations
) -> DirichletPosterior:
    """Return q(Omega) with these means, as concentrated as if learnt from the corpus."""
    _, n_topics, n_behaviours = parameters.sizes
    n_tokens = evidence.n_tokens
    strengths = (
        n_tokens / n_topics,
        n_tokens / n_behaviours,
        evidence.n_sequences,
        evidence.n_documents / n_behaviours,
    )
    return DirichletPosterior(
        *(h + n * block for h, n, block in zip(prior, strengths, parameters, strict=True))
    )


def assignments_under(
    parameters: Parameters, path: Indices, evidence: Evidence, rng: np.random.Generator
) -> Assignments:
    """Draw a topic for every token, given the behaviour of its document."""
    seed = rng.integers(2**64, dtype=np.uint64)
    topics = draw_topics(
        evidence.indptr, evidence.words, evidence.counts, path, *parameters[:2], seed
    )
    return Assignments(topics, path)
