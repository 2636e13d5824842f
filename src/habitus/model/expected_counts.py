"""Factorised E-step, Eq. (10) to (16): expected counts of the hidden variables given a corpus.

EM, variational Bayes and the likelihoods share this one implementation. Tokens of one word in one
document have the same posterior, and a topic depends on the behaviour only, so nothing of size
tokens x topics x behaviours is needed; `docs/equations.md` derives it. Behaviours are processed
four at a time (`LANES`), so that the compiler makes one vector operation of them: arrays over words
and behaviours are padded to a multiple of four.
"""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices, WordIds
from habitus.compiled import compiled, compiled_lanes
from habitus.corpus.documents import Corpus
from habitus.errors import LearningError
from habitus.model.messages import Filtered, filter_forward, smooth_backward
from habitus.model.parameters import Parameters


class Evidence(NamedTuple):
    """Documents as the learners see them: counts by rows as in SciPy's CSR, and sequence starts."""

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


def gather(corpus: Corpus, *, min_words: float = 0) -> Evidence:
    """Return the evidence of a corpus.

    Parameters
    ----------
    corpus
        Documents in time order.
    min_words
        Documents with fewer tokens, and those during which the camera was not in order, keep their
        place in time and lose their words.

    Returns
    -------
    Evidence
        Arrays that the learners and the filter take.

    Examples
    --------
    >>> from habitus import Corpus
    >>> evidence = gather(Corpus.from_word_ids([[0, 0, 1], [2]], n_words=3), min_words=2)
    >>> evidence.counts.tolist(), evidence.n_documents
    ([2.0, 1.0], 2)
    """
    counts = corpus.counts
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
    messages: Filtered
    log_likelihood: float
    """ln p(x_{1:T}), ln K of Eq. (12)."""


def log_likelihoods(evidence: Evidence, phi: Array, theta: Array) -> Array:
    """Return ln p(x_t | z_t) of each document and behaviour: `C @ log(phi @ theta)`.

    Parameters
    ----------
    evidence
        Documents, with counts C.
    phi, theta
        Parameters.

    Returns
    -------
    Array
        Documents x behaviours; minus infinity where a word is impossible.
    """
    mixed = _mix(phi, padded(theta))
    with np.errstate(divide="ignore"):
        np.log(mixed, out=mixed)
    sums = _row_sums(evidence.indptr, evidence.words, evidence.counts, mixed)
    return np.ascontiguousarray(sums[:, : theta.shape[1]])


def expect(evidence: Evidence, parameters: Parameters, out: Array | None = None) -> EStep:
    """Run the E-step.

    Parameters
    ----------
    evidence
        Documents.
    parameters
        Parameters, or the tilde parameters of variational Bayes, which need not be normalised.
    out
        Array of phi's shape to write the counts of phi to.

    Returns
    -------
    EStep
        Expected counts, forward messages and log-likelihood.

    Raises
    ------
    LearningError
        Where a document has probability zero.
    """
    phi, theta, pi, xi = parameters
    lanes = padded(theta)
    mixed = _mix(phi, lanes)
    with np.errstate(divide="ignore"):
        log_mixed = np.log(mixed)
    if out is None:
        out = np.empty_like(phi)
    indptr, words, tokens, first, _ = evidence
    *forward, theta_counts, pi_counts, xi_counts = _expect(
        indptr, words, tokens, first, phi, lanes, pi, xi, mixed, log_mixed, out
    )
    messages = Filtered(*forward)
    log_likelihood = float(messages.log_evidence.sum())
    if log_likelihood == -np.inf:
        raise LearningError(_impossible(messages))
    theta_counts = theta_counts[:, : theta.shape[1]].copy()
    counts = ExpectedCounts(out, theta_counts, pi_counts, xi_counts)
    return EStep(counts, messages, log_likelihood)


def _impossible(messages: Filtered) -> str:
    """Return the error message for a document of probability zero."""
    document = int(np.argmin(messages.log_evidence))
    return (
        f"document {document} has probability zero under every behaviour: the start excludes its "
        "words, or hyperparameters too small for them do; use larger hyperparameters or, "
        "for EM, smoothing above 0 (5e-6 by default)"
    )


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
    indptr: Indices,
    words: WordIds,
    counts: Array,
    posterior: Array,
    n_words: int,
) -> Array:
    """Return `C.T @ posterior`, words x behaviours.

    Parameters
    ----------
    indptr, words, counts
        Documents, as in `Evidence`.
    posterior
        Documents x behaviours, padded to a multiple of LANES columns.
    n_words
        Size of the vocabulary.

    Returns
    -------
    Array
        Words x behaviours, padded likewise.
    """
    sums = np.empty((n_words, posterior.shape[1]))
    _scatter(indptr, words, counts, posterior, sums)
    return sums


@compiled_lanes
def _scatter(
    indptr: Indices,
    words: WordIds,
    counts: Array,
    posterior: Array,
    sums: Array,
) -> None:
    """`sums[:] = C.T @ posterior`."""
    width = np.uint64(posterior.shape[1])
    sums[:] = 0
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
def _expect(
    indptr: Indices,
    words: WordIds,
    counts: Array,
    first: Flags,
    phi: Array,
    theta: Array,
    pi: Array,
    xi: Array,
    mixed: Array,
    log_mixed: Array,
    word_topic: Array,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Run the E-step in one kernel, so that threads do not wait for the interpreter's lock.

    Return the messages and the counts of theta, pi and xi; `word_topic` receives those of phi, and
    `log_mixed` is overwritten. The result is one flat tuple: a NamedTuple inside it would be made
    by Python code, and Numba does not check whether Ctrl-C has interrupted that.
    """
    n = len(pi)
    sums = _row_sums(indptr, words, counts, log_mixed)
    messages = filter_forward(sums[:, :n].copy(), first, pi, xi)  # Eq. (10), (12)
    smoothed = smooth_backward(messages, first, xi)  # Eq. (11), (13), (14)
    posterior = np.zeros(sums.shape)
    for t in range(len(posterior)):
        for z in range(n):
            posterior[t, z] = smoothed.posterior[t, z]
    tokens = log_mixed
    _scatter(indptr, words, counts, posterior, tokens)
    topic_behaviour = _split(tokens, mixed, phi, theta, word_topic)  # Eq. (15), (16)
    return (
        messages.log_predicted,
        messages.log_filtered,
        messages.log_evidence,
        topic_behaviour,
        smoothed.first,
        smoothed.transitions,
    )
