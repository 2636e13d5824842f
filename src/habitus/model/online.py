"""On-line filter: evidence of each new document, given all before it, Eq. (38) to (43).

One set of parameters is the plug-in approximation, Eq. (38) and (42); several are the Monte Carlo
approximation, Eq. (40) and (43). Each set has its own belief about the behaviour. A set and a
behaviour together are a *lane*: everything below runs over lanes, so that the same lines compute
both approximations.

This is the one place where documents are scored: `TopicModel.score_samples`, the
detector, its calibration, the comparison and the tuning all call it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices, WordIds
from habitus.compiled import compiled
from habitus.errors import InvalidInputError
from habitus.model.expected_counts import Evidence
from habitus.model.messages import log_predict
from habitus.model.parameters import Parameters

# Words that a model calls impossible (bare equations, smoothing 0) are only this improbable here,
# so that every score is finite.
LEAST_PROBABILITY = 1e-300

OpeningBelief = Literal["new", "continued", "uniform"]


class Background(NamedTuple):
    """Distribution over words that every behaviour has beside its own words."""

    share: float
    """Share of all tokens that come from it."""
    probability: Array
    """p(word | background), words."""

    def mixed(self, probability: Array) -> Array:
        """Return p(word | behaviour) with the background in it: words x any number of columns."""
        return np.asarray((1 - self.share) * probability + self.share * self.probability[:, None])


class FilterTables(NamedTuple):
    """Parameters, laid out for filtering one document after the other."""

    probability: Array
    """p(word | behaviour) under each set: words x lanes, a set's behaviours side by side."""
    log_probability: Array
    """ln p(word | behaviour), words x lanes."""
    xi: Array
    """p(z_{t+1} | z_t), sets x next behaviours x behaviours."""
    log_xi: Array
    log_pi: Array
    """ln p(z_1), sets x behaviours."""


class FilterStep(NamedTuple):
    """Result of filtering one document."""

    log_evidence: float
    """ln p(x_t | x_{1:t-1}), Eq. (38); of several sets, the logarithm of their mean, Eq. (40)."""
    misfit: float
    """E_q[-ln p(x_t | z_t)] in nats: what fits no behaviour. q is the posterior over the lanes."""
    shift: float
    """KL(q || p(z_t | x_{1:t-1})) in nats: surprise of the behaviour; -log_evidence less misfit."""
    posterior: Array
    """q, p(z_t | x_{1:t}) of each lane, sets x behaviours; all lanes together sum to one."""
    log_next: Array
    """ln p(z_{t+1} | x_{1:t}) within each set, sets x behaviours."""
    surprisals: Array
    """-ln p(word | x_{1:t-1}) of each distinct word of the document."""
    n_tokens: float
    """Number of tokens of the document."""


class FilteredDocuments(NamedTuple):
    """Result of filtering all documents of a corpus, in time order."""

    log_evidence: Array
    """ln p(x_t | x_{1:t-1}) of each document; 0 for one without evidence."""
    misfit: Array
    shift: Array
    """As in `FilterStep`, one value per document."""
    predicted: Array
    """p(z_t | x_{1:t-1}), documents x behaviours; its mean over the sets for several."""
    posterior: Array
    """p(z_t | x_{1:t}), documents x behaviours."""
    surprisals: Array
    """-ln p(word | x_{1:t-1}), one value per entry of the evidence, in its order."""
    n_tokens: Array
    """Number of tokens of each document."""
    log_next: Array
    """ln p(z | all documents) of the document to come, sets x behaviours."""


def filter_tables(
    sets: Sequence[Parameters],
    background: Background | None = None,
    *,
    least_probability: float = LEAST_PROBABILITY,
) -> FilterTables:
    """Lay out one set of parameters, or posterior samples of them, for filtering.

    The distribution over words `background` is mixed into every behaviour. With a least probability
    of 0, a word that the model rules out makes its document impossible: its log evidence is minus
    infinity and it leaves the belief as predicted.
    """
    mixed = np.concatenate([parameters.word_given_behaviour for parameters in sets], axis=1)
    if background is not None:
        mixed = background.mixed(mixed)
    probability = np.ascontiguousarray(np.maximum(mixed, least_probability))
    xi = np.stack([parameters.xi for parameters in sets])
    with np.errstate(divide="ignore"):
        log_pi = np.log(np.stack([parameters.pi for parameters in sets]))
        return FilterTables(probability, np.log(probability), xi, np.log(xi), log_pi)


def log_opening(tables: FilterTables, start: OpeningBelief, belief: Array) -> Array:
    """Return ln p(z) of the first document to come, sets x behaviours.

    `belief` is that of the last document that was learnt from, for a start that is "continued".
    """
    if start == "new":
        return tables.log_pi
    if start == "uniform":
        return np.full_like(tables.log_pi, -np.log(tables.log_pi.shape[1]))
    if start == "continued":
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(tables.xi @ belief))
    raise InvalidInputError(
        f'start must be "new", "continued" or "uniform", found {start!r}', parameter="start"
    )


def filter_document(
    log_predicted: Array, words: WordIds, counts: Array, tables: FilterTables
) -> FilterStep:
    """Filter one document: one step of the recursion of Eq. (39).

    `log_predicted` is ln p(z_t | x_{1:t-1}), sets x behaviours. A document without words carries no
    evidence: only the behaviour is predicted one step further.
    """
    return FilterStep(*_filter_document(log_predicted, words, counts, *tables[:4]))


def filter_documents(
    evidence: Evidence, tables: FilterTables, log_opening: Array | None = None
) -> FilteredDocuments:
    """Filter all documents of a corpus in order: `filter_document` in one compiled loop.

    Each sequence starts from pi, the very first document from `log_opening` where that is given.
    """
    opening = tables.log_pi if log_opening is None else log_opening
    indptr, words, counts, first, _ = evidence
    return FilteredDocuments(*_filter_documents(indptr, words, counts, first, opening, *tables))


def word_surprisals(log_predicted: Array, words: WordIds, tables: FilterTables) -> Array:
    """Return -ln p(word | x_{1:t-1}) of each word: Eq. (42), and Eq. (43) for several sets."""
    return _word_surprisals(log_predicted, words, tables.probability)


@compiled
def predicted_behaviours(log_predicted: Array) -> Array:
    """Return p(z_t | x_{1:t-1}), behaviours: `np.exp(log_predicted).mean(axis=0)`."""
    n_sets, n = log_predicted.shape
    predicted = np.zeros(n)
    for s in range(n_sets):
        for z in range(n):
            predicted[z] += np.exp(log_predicted[s, z])
    for z in range(n):
        predicted[z] /= n_sets
    return predicted


@compiled
def _filter_documents(
    indptr: Indices,
    words: WordIds,
    counts: Array,
    first: Flags,
    log_opening: Array,
    probability: Array,
    log_probability: Array,
    xi: Array,
    log_xi: Array,
    log_pi: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Return the fields of `FilteredDocuments`: `_filter_document` for one document after another.

    One flat tuple: Numba would make a NamedTuple by Python code, which Ctrl-C may cut short.
    """
    n_documents, (n_sets, n) = len(first), log_pi.shape
    log_evidence, misfit, shift = (
        np.empty(n_documents),
        np.empty(n_documents),
        np.empty(n_documents),
    )
    predicted, posterior = np.zeros((n_documents, n)), np.zeros((n_documents, n))
    surprisals, n_tokens = np.empty(len(words)), np.empty(n_documents)
    log_predicted = log_opening
    for t in range(n_documents):
        if t > 0 and first[t]:
            log_predicted = log_pi
        start, end = indptr[t], indptr[t + 1]
        found = _filter_document(
            log_predicted,
            words[start:end],
            counts[start:end],
            probability,
            log_probability,
            xi,
            log_xi,
        )
        log_evidence[t], misfit[t], shift[t], by_lane, log_next, own, n_tokens[t] = found
        for i in range(start, end):
            surprisals[i] = own[i - start]
        usual = predicted_behaviours(log_predicted)
        for z in range(n):
            predicted[t, z] = usual[z]
            for s in range(n_sets):
                posterior[t, z] += by_lane[s, z]
        log_predicted = log_next
    return (log_evidence, misfit, shift, predicted, posterior, surprisals, n_tokens, log_predicted)


@compiled
def _word_surprisals(log_predicted: Array, words: WordIds, probability: Array) -> Array:
    """`-log(probability[words] @ (exp(log_predicted) / n_sets).ravel())`, Eq. (42) and (43)."""
    n_lanes, (n_sets, n) = probability.shape[1], log_predicted.shape
    shares = np.empty(n_lanes)
    for s in range(n_sets):
        for z in range(n):
            shares[s * n + z] = np.exp(log_predicted[s, z]) / n_sets
    flat = probability.reshape(-1)
    surprisals = np.empty(len(words))
    whole = np.uint64(n_lanes - n_lanes % 4)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for i in range(len(words)):
        start = np.uint64(words[i]) * np.uint64(n_lanes)
        # Four sums: the processor need not wait for one addition to begin the next.
        a = b = c = d = 0.0
        for lane in range(np.uint64(0), whole, np.uint64(4)):
            k = start + lane
            a += flat[k] * shares[lane]
            b += flat[k + one] * shares[lane + one]
            c += flat[k + two] * shares[lane + two]
            d += flat[k + three] * shares[lane + three]
        for lane in range(whole, np.uint64(n_lanes)):
            a += flat[start + lane] * shares[lane]
        surprisals[i] = -np.log((a + b) + (c + d))
    return surprisals


@compiled
def _filter_document(
    log_predicted: Array,
    words: WordIds,
    counts: Array,
    probability: Array,
    log_probability: Array,
    xi: Array,
    log_xi: Array,
) -> tuple[float, float, float, Array, Array, Array, float]:
    """Return the fields of `FilterStep`.

    With p(lane) = exp(log_predicted) / n_sets, the posterior is p(lane) p(x | lane) over its sum,
    Eq. (39), and the evidence is that sum, Eq. (38) and (40).
    """
    n_sets, n = log_predicted.shape
    log_like = _log_likelihoods(words, counts, log_probability)
    surprisals = _word_surprisals(log_predicted, words, probability)
    log_joint, posterior = np.empty((n_sets, n)), np.empty((n_sets, n))
    n_tokens, log_sets = 0.0, np.log(n_sets)
    for i in range(len(counts)):
        n_tokens += counts[i]
    best_like = best = -np.inf
    for s in range(n_sets):
        for z in range(n):
            log_prior, like = log_predicted[s, z] - log_sets, log_like[s * n + z]
            posterior[s, z] = np.exp(log_prior)
            best_like, best = max(best_like, like), max(best, log_prior + like)
    if best == -np.inf:  # impossible: carries no evidence
        log_next = _predictions(log_predicted, log_predicted, xi, log_xi)
        return -np.inf, np.inf, 0.0, posterior, log_next, surprisals, n_tokens
    best, total = -np.inf, 0.0
    for s in range(n_sets):
        for z in range(n):
            like = log_like[s * n + z] - best_like
            log_joint[s, z] = (log_predicted[s, z] - log_sets) + like
            best = max(best, log_joint[s, z])
    for s in range(n_sets):
        for z in range(n):
            posterior[s, z] = np.exp(log_joint[s, z] - best)
            total += posterior[s, z]
    # Relative to the best likelihood, so that a short part keeps its digits beside a long one.
    log_relative = best + np.log(total)
    misfit, shift = 0.0, 0.0
    for s in range(n_sets):
        for z in range(n):
            posterior[s, z] /= total  # Eq. (39)
            if posterior[s, z] > 0:
                like = log_like[s * n + z]
                misfit -= posterior[s, z] * like
                shift += posterior[s, z] * (like - best_like - log_relative)
    if len(words) == 0:
        shift = 0.0
    log_next = _predictions(log_joint, log_predicted, xi, log_xi)
    log_evidence, shift = best_like + log_relative, max(shift, 0.0)  # Eq. (38), (40)
    return log_evidence, misfit, shift, posterior, log_next, surprisals, n_tokens


@compiled
def examine(words: WordIds, counts: Array, n_words: int) -> tuple[float, bool]:
    """`counts.sum(), ((words >= 0) & (words < n_words)).all()`."""
    total, known = 0.0, True
    for i in range(len(words)):
        known = known and 0 <= words[i] < n_words
        total += counts[i]
    return total, known


@compiled
def _log_likelihoods(words: WordIds, counts: Array, log_probability: Array) -> Array:
    """`counts @ log_probability[words]`: ln p(x | lane), lanes."""
    n_lanes = np.uint64(log_probability.shape[1])
    flat = log_probability.reshape(-1)
    sums = np.zeros(log_probability.shape[1])
    for i in range(len(words)):
        start, n = np.uint64(words[i]) * n_lanes, counts[i]
        for lane in range(n_lanes):
            sums[lane] += n * flat[start + lane]
    return sums


@compiled
def _predictions(log_joint: Array, log_predicted: Array, xi: Array, log_xi: Array) -> Array:
    """`log(xi[s] @ (exp(log_joint[s]) / exp(log_joint[s]).sum()))` for each set s.

    That is ln p(z_{t+1} | x_{1:t}), the sum over z_t in Eq. (38). `log_joint` is ln p(z_t, x_t) up
    to a constant; a set under which the document is impossible keeps its prediction of z_t.
    """
    n_sets, n = log_joint.shape
    log_next, filtered, log_filtered = np.empty((n_sets, n)), np.empty(n), np.empty(n)
    for s in range(n_sets):
        best, total = -np.inf, 0.0
        for z in range(n):
            best = max(best, log_joint[s, z])
        for z in range(n):
            possible = best > -np.inf
            log_filtered[z] = log_joint[s, z] - best if possible else log_predicted[s, z]
            filtered[z] = np.exp(log_filtered[z])
            total += filtered[z]
        log_total = np.log(total)
        for z in range(n):
            filtered[z] /= total
            log_filtered[z] -= log_total
        for z in range(n):
            log_next[s, z] = log_predict(z, xi[s], log_xi[s], filtered, log_filtered)
    return log_next
