"""The on-line filter: what each new document says, given all before it.

One set of parameters is the plug-in approximation, several are the Monte Carlo one; each set has
its own belief about the behaviour. A set and a behaviour together are a *lane*: everything below
runs over lanes, so that both approximations are the same few lines.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.model.messages import log_predict
from habitus.model.parameters import Array, Parameters
from habitus.normality.novelty import Novelty

# Words that a model calls impossible (bare equations, smoothing 0) are only this improbable here,
# so that every score is finite.
LEAST_PROBABILITY = 1e-300


class Tables(NamedTuple):
    """Parameters, laid out for one document after the other."""

    probability: Array
    """p(word | behaviour) under each set: words x lanes, a set's behaviours side by side."""
    log_probability: Array
    """Its logarithm."""
    xi: Array
    """sets x next behaviours x behaviours."""
    log_xi: Array
    log_pi: Array
    """sets x behaviours."""


class Seen(NamedTuple):
    """What a document said."""

    log_evidence: float
    """ln p(x_t | x_{1:t-1}), (online_likelihood_final); its mean over the sets for several."""
    misfit: float
    """E_q[-ln p(x_t | z_t)]: what fits no behaviour. q is the posterior over the lanes."""
    shift: float
    """KL(q || p(z_t | x_{1:t-1})): how much the behaviour surprises. Adds up with `misfit`."""
    posterior: Array
    """q, p(z_t | x_{1:t}) of each lane, sets x behaviours; all of them add up to one."""
    log_next: Array
    """ln p(z_{t+1} | x_{1:t}) within each set, sets x behaviours."""
    surprises: Array
    """-ln p(word | x_{1:t-1}) of each of its words."""
    n_tokens: float
    """Its number of words, repeats counted."""


def tables_of(sets: Sequence[Parameters], novelty: Novelty | None = None) -> Tables:
    """Tables of one or more sets of parameters of the same sizes, with their share of novelty."""
    mixed = np.concatenate([each.word_given_behaviour for each in sets], axis=1)
    if novelty is not None:
        mixed = novelty.mixed(mixed)
    probability = np.ascontiguousarray(np.maximum(mixed, LEAST_PROBABILITY))
    xi = np.stack([each.xi for each in sets])
    with np.errstate(divide="ignore"):
        log_pi = np.log(np.stack([each.pi for each in sets]))
        return Tables(probability, np.log(probability), xi, np.log(xi), log_pi)


def advance(log_predicted: Array, words: NDArray[np.int32], counts: Array, tables: Tables) -> Seen:
    """One step of the recursion (predictive_behaviour); a document without words only predicts.

    `log_predicted` is ln p(z_t | x_{1:t-1}), sets x behaviours.
    """
    return Seen(*_advance(log_predicted, words, counts, *tables[:4]))


@compiled
def _word_surprises(log_predicted: Array, words: NDArray[np.int32], probability: Array) -> Array:
    n_lanes = probability.shape[1]
    shares = np.exp(log_predicted.reshape(-1)) / log_predicted.shape[0]
    flat = probability.reshape(-1)
    surprises = np.empty(len(words))
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
        surprises[i] = -np.log((a + b) + (c + d))
    return surprises


@compiled
def _advance(
    log_predicted: Array,
    words: NDArray[np.int32],
    counts: Array,
    probability: Array,
    log_probability: Array,
    xi: Array,
    log_xi: Array,
) -> tuple[float, float, float, Array, Array, Array, float]:
    n_sets, n = log_predicted.shape
    log_prior = log_predicted.reshape(-1) - np.log(n_sets)
    log_like = _log_likelihoods(words, counts, log_probability)
    best_like = log_like.max()
    log_joint = log_prior + (log_like - best_like)
    best = log_joint.max()
    posterior = np.exp(log_joint - best)
    total = posterior.sum()
    posterior /= total
    # Relative to the best likelihood, so that a short part keeps its digits beside a long one.
    log_relative = best + np.log(total)
    misfit, shift = 0.0, 0.0
    for lane in range(len(posterior)):
        if posterior[lane] > 0:
            misfit -= posterior[lane] * log_like[lane]
            shift += posterior[lane] * (log_like[lane] - best_like - log_relative)
    if len(words) == 0:
        shift = 0.0
    joint = posterior.reshape(n_sets, n)
    log_next = _predictions(log_joint.reshape(n_sets, n), xi, log_xi)
    surprises = _word_surprises(log_predicted, words, probability)
    log_evidence, shift = best_like + log_relative, max(shift, 0.0)
    return log_evidence, misfit, shift, joint, log_next, surprises, counts.sum()


@compiled
def examine(words: NDArray[np.int32], counts: Array, n_words: int) -> tuple[float, bool]:
    """Number of words, repeats counted, and whether all ids are of the vocabulary."""
    total, known = 0.0, True
    for i in range(len(words)):
        known = known and 0 <= words[i] < n_words
        total += counts[i]
    return total, known


@compiled
def _log_likelihoods(words: NDArray[np.int32], counts: Array, log_probability: Array) -> Array:
    """ln p(x | lane): `counts @ log_probability[words]`."""
    n_lanes = np.uint64(log_probability.shape[1])
    flat = log_probability.reshape(-1)
    sums = np.zeros(log_probability.shape[1])
    for i in range(len(words)):
        start, n = np.uint64(words[i]) * n_lanes, counts[i]
        for lane in range(n_lanes):
            sums[lane] += n * flat[start + lane]
    return sums


@compiled
def _predictions(log_joint: Array, xi: Array, log_xi: Array) -> Array:
    """ln p(z_{t+1} | x_{1:t}) of each set from the unnormalised ln p(z_t, x_t) of each."""
    n_sets, n = log_joint.shape
    log_next = np.empty((n_sets, n))
    for s in range(n_sets):
        log_filtered = log_joint[s] - log_joint[s].max()
        filtered = np.exp(log_filtered)
        total = filtered.sum()
        filtered /= total
        log_filtered -= np.log(total)
        for z in range(n):
            log_next[s, z] = log_predict(z, xi[s], log_xi[s], filtered, log_filtered)
    return log_next


def word_surprises(log_predicted: Array, words: NDArray[np.int32], tables: Tables) -> Array:
    """-ln p(word | x_{1:t-1}) of each word: `-log(probability[words] @ p(lane))`."""
    return _word_surprises(log_predicted, words, tables.probability)
