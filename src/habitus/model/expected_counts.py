"""Factorised E-step, Eq. (10) to (16): expected counts of the hidden variables given a corpus.

EM, variational Bayes and the likelihoods share this one implementation. Tokens of one word in one
document have the same posterior, and a topic depends on the behaviour only, so nothing of size
tokens x topics x behaviours is needed; `docs/equations.md` derives it. Behaviours are processed
four at a time (`LANES`), so that the compiler makes one vector operation of them: arrays over words
and behaviours are padded to a multiple of four.

Up to the split of the tokens between topics all counts are sums over documents. So a corpus may
come in shards: each is counted alone (`count_shard`), the counts are added as a fixed tree, and the
split runs once. What an E-step gives therefore depends on the shards alone, not on who counts them.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np

from habitus.arrays import Array, Flags, Indices, WordIds
from habitus.compiled import compiled, compiled_lanes
from habitus.corpus.documents import Bag, Corpus
from habitus.corpus.shards import ShardedCorpus, go_on, pick_documents, without_number
from habitus.corpus.tree_sum import Additive, Summable, Sums, tree_sum
from habitus.errors import LearningError
from habitus.model.messages import filter_forward, smooth_backward
from habitus.model.parameters import Parameters

Counted = TypeVar("Counted", bound=Summable)
R = TypeVar("R")


class Evidence(NamedTuple):
    """Documents as the learners see them: counts by rows as in SciPy's CSR, and sequence starts.

    By itself it is a corpus in one shard: it has all that learners ask of `ShardedEvidence`.
    """

    indptr: Indices
    """Position of each document's first word; one entry more than documents."""
    words: WordIds
    """Word ids, ascending within a document."""
    counts: Array
    """Number of tokens of each of these words."""
    first: Flags
    """Whether a document starts a sequence."""
    n_words: int

    @property
    def n_documents(self) -> int:
        """Number of documents, empty ones included."""
        return len(self.first)

    @property
    def shard_lengths(self) -> tuple[int, ...]:
        """Number of documents of this shard, the only one."""
        return (len(self.first),)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return int(self.first.sum())

    @property
    def n_filled(self) -> int:
        """Number of documents with words."""
        return int((np.diff(self.indptr) > 0).sum())

    @property
    def n_tokens(self) -> float:
        """Number of tokens."""
        return float(self.counts.sum())

    def map_reduce(self, function: Callable[["Evidence"], Counted]) -> Counted:
        """Return what a function gives for this shard, the only one."""
        return function(self)

    def pick(self, documents: Indices) -> list[Bag]:
        """Return documents by their numbers, in that order."""
        rows = [slice(self.indptr[t], self.indptr[t + 1]) for t in documents]
        return [Bag(self.words[row], self.counts[row]) for row in rows]

    def interruptible(self, check: Callable[[], None]) -> "Evidence":
        """Return the same documents: within a shard a pass is not ended."""
        return self


def gather(corpus: Corpus, *, min_words: float = 0) -> Evidence:
    """Return the evidence of a corpus.

    Documents with fewer tokens than `min_words`, and those during which the camera was not in
    order, keep their place in time and lose their words.

    Examples
    --------
    >>> from habitus import Corpus
    >>> evidence = gather(Corpus.from_word_ids([[0, 0, 1], [2]], n_words=3), min_words=2)
    >>> evidence.counts.tolist(), evidence.n_documents
    ([2.0, 1.0], 2)
    """
    counts = corpus.entries
    indptr = counts.indptr.astype(np.int64)
    words = counts.indices.astype(np.int32, copy=False)
    data = counts.data
    short = (corpus.n_tokens < min_words) | (corpus.conditions != 0)
    if short.any():
        lengths = np.diff(indptr)
        kept = ~np.repeat(short, lengths)
        words, data = words[kept], data[kept]
        indptr = np.concatenate([[0], np.cumsum(np.where(short, 0, lengths))])
    return Evidence(indptr, words, data, corpus.first, corpus.n_words)


class ShardedEvidence:
    """Evidence of a corpus in shards, with all that `Evidence` has for learners.

    Shards are loaded when a pass needs them, and gathered as `gather` does, once as far as the
    corpus allows to keep them: see `ShardCache`. `n_threads` of them are worked on at a time, and
    are in memory beside those that are kept; that never changes a result.
    """

    def __init__(self, corpus: ShardedCorpus, *, min_words: float = 0, n_threads: int = 1) -> None:
        self.corpus, self.min_words, self.n_threads = corpus, min_words, n_threads
        self._check: Callable[[], None] = go_on
        self._gathered = corpus.kept(partial(gather, min_words=min_words))

    @property
    def shard_lengths(self) -> tuple[int, ...]:
        """Number of documents of each shard."""
        return tuple(shard.n_documents for shard in self.corpus.shards)

    @property
    def n_documents(self) -> int:
        """Number of documents of all shards."""
        return self.corpus.n_documents

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.corpus.n_words

    @property
    def n_sequences(self) -> int:
        """Number of sequences of all shards."""
        return sum(n_sequences for _, n_sequences, _ in self.figures)

    @property
    def n_filled(self) -> int:
        """Number of documents with words."""
        return sum(n_filled for _, _, n_filled in self.figures)

    @property
    def n_tokens(self) -> float:
        """Number of tokens of all shards."""
        return tree_sum(n_tokens for n_tokens, _, _ in self.figures)

    @cached_property
    def figures(self) -> tuple[tuple[float, int, int], ...]:
        """Tokens, sequences and filled documents of each shard; the first use reads all."""
        return tuple(self.map(attrgetter("n_tokens", "n_sequences", "n_filled")))

    def map(self, function: Callable[[Evidence], R]) -> Iterator[R]:
        """Call a pure function with all shards, and yield the results in order."""
        return self._gathered.map(
            partial(without_number, function),
            range(self.corpus.n_shards),
            n_threads=self.n_threads,
            check=self._check,
        )

    def map_reduce(self, function: Callable[[Evidence], Counted]) -> Counted:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        return self._gathered.sum(
            partial(without_number, function), n_threads=self.n_threads, check=self._check
        )

    def pick(self, documents: Indices) -> list[Bag]:
        """Return documents by their numbers, in that order; other shards are not read."""
        starts, options = self.corpus.starts, {"n_threads": self.n_threads, "check": self._check}
        return pick_documents(self._gathered, starts, documents, _copies, **options)

    def interruptible(self, check: Callable[[], None]) -> "ShardedEvidence":
        """Return the same documents; `check`, called between shards, may raise to end a pass."""
        same = copy(self)
        same._check = check
        return same


def _copies(shard: Evidence, documents: Indices) -> list[Bag]:
    """Return documents that do not keep the shard in memory."""
    return [Bag(bag.words.copy(), bag.counts.copy()) for bag in shard.pick(documents)]


EvidenceShards = Evidence | ShardedEvidence
"""Documents to learn from, in one or several shards; a shard starts a new sequence."""

LANES = 4
# A posterior below this is taken as zero: products with it would be subnormal numbers, which take
# the processor ten times as long.
NEGLIGIBLE = 1e-250


class ExpectedCounts(NamedTuple):
    """Expected counts of the hidden variables; for a Gibbs sample, the counts themselves."""

    phi: Array
    """Tokens of word x with topic y: n_{x,y}, words x topics."""
    theta: Array
    """Tokens of topic y in documents of behaviour z: n_{y,z}, topics x behaviours."""
    pi: Array
    """Sequences that start with z: n_z, behaviours."""
    xi: Array
    """Transitions to z' from z: n_{z',z}, next behaviours x behaviours."""


class EStep(NamedTuple):
    """Result of an E-step."""

    counts: ExpectedCounts
    log_likelihood: float
    """ln p(x_{1:T}), ln K of Eq. (12)."""


class Mixture(NamedTuple):
    """Parameters as the documents of a shard need them: all that is sent to whoever counts it."""

    probability: Array
    """`phi @ theta`, words x behaviours, padded to a multiple of LANES columns."""
    log_probability: Array
    pi: Array
    xi: Array

    @classmethod
    def of(cls, parameters: Parameters) -> "Mixture":
        """Return the mixture of topics of each behaviour."""
        phi, theta, pi, xi = parameters
        probability = _mix(phi, padded(theta))
        with np.errstate(divide="ignore"):
            return cls(probability, np.log(probability), pi, xi)


@dataclass(frozen=True, eq=False)
class ShardCounts(Additive):
    """Expected counts of a shard, or of several, before tokens are split between topics."""

    tokens: Array
    """Tokens of each word in documents of each behaviour, padded as `Mixture.probability`."""
    pi: Array
    """Sequences that start with z: n_z, behaviours."""
    xi: Array
    """Transitions to z' from z: n_{z',z}, next behaviours x behaviours."""
    log_likelihood: float


def log_likelihoods(evidence: Evidence, phi: Array, theta: Array) -> Array:
    """Return ln p(x_t | z_t), documents x behaviours: `C @ log(phi @ theta)`."""
    mixed = _mix(phi, padded(theta))
    with np.errstate(divide="ignore"):
        np.log(mixed, out=mixed)
    sums = _row_sums(evidence.indptr, evidence.words, evidence.counts, mixed)
    return np.ascontiguousarray(sums[:, : theta.shape[1]])


def topic_proportions(evidence: Evidence, parameters: Parameters, behaviours: Array) -> Array:
    """Return the mean over tokens of p(y | x, z), averaged over behaviours: documents x topics.

    `behaviours` are p(z) of each document. A document without words has the topics of these.
    """
    from scipy.sparse import csr_array

    phi, theta, _, _ = parameters
    mixed = parameters.word_given_behaviour[evidence.words]
    topics = np.zeros((evidence.n_documents, len(theta)))
    for z, weights in enumerate(behaviours.T):
        # A behaviour that rules a word out has no weight in its document.
        possible = mixed[:, z] > 0
        tokens = np.divide(evidence.counts, mixed[:, z], out=np.zeros(len(mixed)), where=possible)
        shape = (evidence.n_documents, evidence.n_words)
        words = csr_array((tokens, evidence.words, evidence.indptr), shape=shape)
        topics += weights[:, None] * theta[:, z] * (words @ phi)
    without = topics.sum(axis=1) == 0
    topics[without] = behaviours[without] @ theta.T
    return np.asarray(topics / topics.sum(axis=1, keepdims=True))


def expect(
    evidence: EvidenceShards, sets: Sequence[Parameters], outs: Sequence[Array] | None = None
) -> list[EStep]:
    """Run the E-steps of several sets of parameters in one pass over the documents.

    The counts of phi are written to `outs` where given. VB passes its tilde parameters, which need
    not be normalised. A document of probability zero raises a `LearningError`.
    """
    mixtures = [Mixture.of(parameters) for parameters in sets]
    counted = evidence.map_reduce(partial(_count_each, mixtures))
    outs = outs or [np.empty_like(parameters.phi) for parameters in sets]
    return [_divided(*parts) for parts in zip(counted.parts, mixtures, sets, outs, strict=True)]


def _count_each(mixtures: Sequence[Mixture], shard: Evidence) -> Sums[ShardCounts]:
    return Sums(tuple(count_shard(shard, mixture) for mixture in mixtures))


def count_shard(shard: Evidence, mixture: Mixture) -> ShardCounts:
    """Return the part of the E-step that adds up over shards."""
    indptr, words, counts, first, _ = shard
    _, log_probability, pi, xi = mixture
    tokens, pi_counts, xi_counts, log_evidence = _count(
        indptr, words, counts, first, log_probability, pi, xi
    )
    log_likelihood = float(log_evidence.sum())
    if log_likelihood == -np.inf:
        raise LearningError(
            f"document {int(np.argmin(log_evidence))} has probability zero under every behaviour: "
            "the start excludes its words, or hyperparameters too small for them do; use larger "
            "hyperparameters or, for EM, smoothing above 0 (5e-6 by default)"
        )
    return ShardCounts(tokens, pi_counts, xi_counts, log_likelihood)


def _divided(
    counted: ShardCounts, mixture: Mixture, parameters: Parameters, word_topic: Array
) -> EStep:
    """Split the tokens of all shards between topics; `word_topic` receives the counts of phi."""
    phi, theta, _, _ = parameters
    topic_behaviour = _split(counted.tokens, mixture.probability, phi, padded(theta), word_topic)
    theta_counts = topic_behaviour[:, : theta.shape[1]].copy()
    counts = ExpectedCounts(word_topic, theta_counts, counted.pi, counted.xi)
    return EStep(counts, counted.log_likelihood)


def padded(matrix: Array) -> Array:
    """Append columns of zeros up to a multiple of LANES."""
    rows, columns = matrix.shape
    lanes = np.zeros((rows, -(-columns // LANES) * LANES))
    lanes[:, :columns] = matrix
    return lanes


@compiled_lanes
def _mix(phi: Array, theta: Array) -> Array:
    """`phi @ theta`, words x behaviours."""
    n_words, n_topics = phi.shape
    width = np.uint64(theta.shape[1])
    mixed = np.empty((n_words, theta.shape[1]))
    flat, weights = mixed.reshape(-1), theta.reshape(-1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for w in range(n_words):
        for q in range(np.uint64(0), width, np.uint64(LANES)):
            a = b = c = d = 0.0
            for k in range(n_topics):
                p = phi[w, k]
                i = np.uint64(k) * width + q
                a += p * weights[i]
                b += p * weights[i + one]
                c += p * weights[i + two]
                d += p * weights[i + three]
            i = np.uint64(w) * width + q
            flat[i] = a
            flat[i + one] = b
            flat[i + two] = c
            flat[i + three] = d
    return mixed


@compiled_lanes
def _row_sums(indptr: Indices, words: WordIds, counts: Array, values: Array) -> Array:
    """`C @ values`, documents x behaviours; two running sums per lane hide the adder's latency."""
    n_documents = len(indptr) - 1
    width = np.uint64(values.shape[1])
    sums = np.empty((n_documents, values.shape[1]))
    flat, out = values.reshape(-1), sums.reshape(-1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for t in range(n_documents):
        start, stop = indptr[t], indptr[t + 1]
        for q in range(np.uint64(0), width, np.uint64(LANES)):
            a = b = c = d = 0.0
            e = f = g = h = 0.0
            for j in range(start, stop - 1, 2):
                i = np.uint64(words[j]) * width + q
                n = counts[j]
                a += n * flat[i]
                b += n * flat[i + one]
                c += n * flat[i + two]
                d += n * flat[i + three]
                i = np.uint64(words[j + 1]) * width + q
                n = counts[j + 1]
                e += n * flat[i]
                f += n * flat[i + one]
                g += n * flat[i + two]
                h += n * flat[i + three]
            if (stop - start) % 2:
                i = np.uint64(words[stop - 1]) * width + q
                n = counts[stop - 1]
                a += n * flat[i]
                b += n * flat[i + one]
                c += n * flat[i + two]
                d += n * flat[i + three]
            i = np.uint64(t) * width + q
            out[i] = a + e
            out[i + one] = b + f
            out[i + two] = c + g
            out[i + three] = d + h
    return sums


@compiled_lanes
def scatter(
    indptr: Indices, words: WordIds, counts: Array, posterior: Array, n_words: int
) -> Array:
    """Return `C.T @ posterior`, words x behaviours, both padded to a multiple of LANES columns."""
    sums = np.zeros((n_words, posterior.shape[1]))
    width = np.uint64(posterior.shape[1])
    flat, shares = sums.reshape(-1), posterior.reshape(-1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for t in range(len(indptr) - 1):
        for q in range(np.uint64(0), width, np.uint64(LANES)):
            i = np.uint64(t) * width + q
            a = shares[i] if shares[i] > NEGLIGIBLE else 0.0
            b = shares[i + one] if shares[i + one] > NEGLIGIBLE else 0.0
            c = shares[i + two] if shares[i + two] > NEGLIGIBLE else 0.0
            d = shares[i + three] if shares[i + three] > NEGLIGIBLE else 0.0
            for j in range(indptr[t], indptr[t + 1]):
                i = np.uint64(words[j]) * width + q
                n = counts[j]
                flat[i] += n * a
                flat[i + one] += n * b
                flat[i + two] += n * c
                flat[i + three] += n * d
    return sums


@compiled_lanes
def _split(tokens: Array, mixed: Array, phi: Array, theta: Array, word_topic: Array) -> Array:
    """Return `theta * (phi.T @ R)` with `R = tokens / mixed` where not 0: Eq. (15), summed.

    Also `word_topic[:] = phi * (R @ theta.T)`: Eq. (16), summed over the tokens of each word.
    """
    n_words, n_topics = phi.shape
    width = np.uint64(theta.shape[1])
    word_topic[:] = 0
    topic_behaviour = np.zeros((n_topics, theta.shape[1]))
    flat, mix = tokens.reshape(-1), mixed.reshape(-1)
    weights, sums = theta.reshape(-1), topic_behaviour.reshape(-1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for w in range(n_words):
        for q in range(np.uint64(0), width, np.uint64(LANES)):
            i = np.uint64(w) * width + q
            a = flat[i] / mix[i] if flat[i] > 0 else 0.0
            b = flat[i + one] / mix[i + one] if flat[i + one] > 0 else 0.0
            c = flat[i + two] / mix[i + two] if flat[i + two] > 0 else 0.0
            d = flat[i + three] / mix[i + three] if flat[i + three] > 0 else 0.0
            if a + b + c + d == 0:
                continue
            for k in range(n_topics):
                p = phi[w, k]
                i = np.uint64(k) * width + q
                word_topic[w, k] += p * (
                    (weights[i] * a + weights[i + one] * b)
                    + (weights[i + two] * c + weights[i + three] * d)
                )
                sums[i] += p * a
                sums[i + one] += p * b
                sums[i + two] += p * c
                sums[i + three] += p * d
    topic_behaviour *= theta
    return topic_behaviour


@compiled
def _count(
    indptr: Indices,
    words: WordIds,
    counts: Array,
    first: Flags,
    log_mixed: Array,
    pi: Array,
    xi: Array,
) -> tuple[Array, Array, Array, Array]:
    """Count the documents of a shard in one kernel, so that threads do not wait for each other.

    Return `C.T @ posterior`, the counts of pi and xi, and the log evidence of each.
    """
    n = len(pi)
    sums = _row_sums(indptr, words, counts, log_mixed)
    messages = filter_forward(sums[:, :n].copy(), first, pi, xi)  # Eq. (10), (12)
    smoothed = smooth_backward(messages, first, xi)  # Eq. (11), (13), (14)
    posterior = np.zeros(sums.shape)
    for t in range(len(posterior)):
        for z in range(n):
            posterior[t, z] = smoothed.posterior[t, z]
    tokens = scatter(indptr, words, counts, posterior, len(log_mixed))
    return tokens, smoothed.first, smoothed.transitions, messages.log_evidence
