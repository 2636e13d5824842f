"""Inference over the chain of behaviours, for any per-document likelihoods.

Every message is renormalised at every document, and kept in logs beside its plain value: a
document of ten thousand words does not underflow, nor does a behaviour that is a thousand nats
behind now and the only one allowed next. `xi` and `pi` need not be normalised (those of variational
Bayes are not).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.compiled import compiled

# Below this a sum of plain products may have lost terms to underflow: use logs instead.
SAFE = 1e-200


class Filtered(NamedTuple):
    """The forward pass; the paper's accented alpha, normalised."""

    log_predicted: Array
    """ln p(z_t | x_{1:t-1}), documents x behaviours."""
    log_filtered: Array
    """ln p(z_t | x_{1:t}), documents x behaviours."""
    log_evidence: Array
    """ln p(x_t | x_{1:t-1}), documents; they add up to ln K, (E:normalisation_const)."""


class Smoothed(NamedTuple):
    """The backward pass."""

    posterior: Array
    """p(z_t | x_{1:T}), documents x behaviours."""
    first: Array
    """Expected number of sequences that open with each behaviour, (E:z_t)."""
    transitions: Array
    """Expected number of steps to z' from z, next x behaviours, (E:z_t, z_t-1)."""


@compiled
def _log_sum_exp(values: Array) -> float:
    best = values.max()
    if best == -np.inf:
        return float(best)
    return float(best + np.log(np.exp(values - best).sum()))


@compiled
def log_predict(
    z_next: int, xi: Array, log_xi: Array, filtered: Array, log_filtered: Array
) -> float:
    """ln sum_z xi[z_next, z] p(z | x_{1:t}), in plain numbers where that loses nothing."""
    total = 0.0
    for z in range(len(filtered)):
        total += xi[z_next, z] * filtered[z]
    if total > SAFE:
        return float(np.log(total))
    return _log_sum_exp(log_xi[z_next] + log_filtered)


@compiled
def filter_forward(log_like: Array, first: NDArray[np.bool_], pi: Array, xi: Array) -> Filtered:
    """Predict and update, document by document: (E:alpha), and (predictive_behaviour).

    A document that every reachable behaviour makes impossible has evidence minus infinity and
    leaves the belief as predicted.
    """
    n_documents, n = log_like.shape
    log_xi = np.log(xi)
    log_predicted = np.empty((n_documents, n))
    log_filtered = np.empty((n_documents, n))
    log_evidence = np.empty(n_documents)
    filtered = np.empty(n)
    for t in range(n_documents):
        best = -np.inf
        for z in range(n):
            if first[t]:
                log_predicted[t, z] = np.log(pi[z])
            else:
                log_predicted[t, z] = log_predict(z, xi, log_xi, filtered, log_filtered[t - 1])
            log_filtered[t, z] = log_predicted[t, z] + log_like[t, z]
            best = max(best, log_filtered[t, z])
        if best == -np.inf:
            log_evidence[t] = best
            log_filtered[t] = log_predicted[t]
            filtered[:] = np.exp(log_filtered[t])
            continue
        total = 0.0
        for z in range(n):
            filtered[z] = np.exp(log_filtered[t, z] - best)
            total += filtered[z]
        log_total = np.log(total)
        log_evidence[t] = best + log_total
        for z in range(n):
            filtered[z] /= total
            # Not minus log_evidence: the difference to the best keeps all its digits.
            log_filtered[t, z] = (log_filtered[t, z] - best) - log_total
    return Filtered(log_predicted, log_filtered, log_evidence)


@compiled
def _came_from(z_next: int, xi: Array, log_filtered: Array, log_predicted: float) -> Array:
    """p(z_{t-1} | z_t = z_next, x_{1:t-1}), behaviours."""
    n = len(log_filtered)
    share = np.zeros(n)
    if log_predicted == -np.inf:
        return share
    for z in range(n):
        if xi[z_next, z] > 0:
            share[z] = np.exp(np.log(xi[z_next, z]) + log_filtered[z] - log_predicted)
    return share


@compiled
def smooth_backward(messages: Filtered, first: NDArray[np.bool_], xi: Array) -> Smoothed:
    """Posteriors given all documents, from the forward messages alone.

    p(z_t, z_{t-1} | x_{1:T}) = p(z_t | x_{1:T}) p(z_{t-1} | z_t, x_{1:t-1}): the same as the
    paper's product of both messages, but a sum of positive terms that are at most one.
    """
    n_documents, n = messages.log_filtered.shape
    posterior = np.zeros((n_documents, n))
    first_counts = np.zeros(n)
    transitions = np.zeros((n, n))
    filtered = np.exp(messages.log_filtered)
    inverse = np.exp(-messages.log_predicted)
    limit = 1 / SAFE
    for t in range(n_documents - 1, -1, -1):
        if t == n_documents - 1 or first[t + 1]:
            posterior[t] = filtered[t]
        if first[t]:
            first_counts += posterior[t]
            continue
        for z_next in range(n):
            here = posterior[t, z_next]
            if here == 0:
                continue
            if inverse[t, z_next] < limit:
                scale = here * inverse[t, z_next]
                for z in range(n):
                    pair = scale * xi[z_next, z] * filtered[t - 1, z]
                    transitions[z_next, z] += pair
                    posterior[t - 1, z] += pair
            else:
                pairs = here * _came_from(
                    z_next, xi, messages.log_filtered[t - 1], messages.log_predicted[t, z_next]
                )
                transitions[z_next] += pairs
                posterior[t - 1] += pairs
    return Smoothed(posterior, first_counts, transitions)


@compiled
def sample_backward(
    messages: Filtered, first: NDArray[np.bool_], xi: Array, uniforms: Array
) -> NDArray[np.int64]:
    """One path of behaviours from p(z_{1:T} | x_{1:T}), a uniform number a document."""
    n_documents = len(uniforms)
    path = np.empty(n_documents, dtype=np.int64)
    for t in range(n_documents - 1, -1, -1):
        if t == n_documents - 1 or first[t + 1]:
            share = np.exp(messages.log_filtered[t])
        else:
            z_next = path[t + 1]
            share = _came_from(
                z_next, xi, messages.log_filtered[t], messages.log_predicted[t + 1, z_next]
            )
        path[t] = draw(share, uniforms[t])
    return path


@compiled
def draw(weights: Array, uniform: float) -> int:
    """Place of a draw in proportion to `weights`; `uniform` lies in [0, 1)."""
    left = uniform * weights.sum()
    last = 0
    for i in range(len(weights)):
        if weights[i] > 0:
            last = i
            left -= weights[i]
            if left < 0:
                break
    return last


@compiled
def draw_log(log_weights: Array, uniform: float) -> int:
    """Place of a draw in proportion to the exponentials of `log_weights`."""
    best = log_weights.max()
    weights = np.empty(len(log_weights))
    for i in range(len(log_weights)):
        weights[i] = np.exp(log_weights[i] - best)
    return draw(weights, uniform)


@compiled
def most_probable_path(
    log_like: Array, first: NDArray[np.bool_], pi: Array, xi: Array
) -> NDArray[np.int64]:
    """argmax over z_{1:T} of p(z_{1:T}, x_{1:T}) (Viterbi); the lowest number wins a tie."""
    n_documents, n = log_like.shape
    log_pi, log_xi = np.log(pi), np.log(xi)
    came_from = np.zeros((n_documents, n), dtype=np.int64)
    score = np.zeros(n)
    path = np.empty(n_documents, dtype=np.int64)
    ends = np.empty(n_documents, dtype=np.int64)
    for t in range(n_documents):
        arrived = log_pi.copy()
        if not first[t]:
            for z in range(n):
                steps = log_xi[z] + score
                came_from[t, z] = steps.argmax()
                arrived[z] = steps[came_from[t, z]]
        score = arrived + log_like[t]
        if score.max() == -np.inf:
            score = arrived  # impossible under every behaviour: carries no evidence
        score = score - score.max()
        ends[t] = score.argmax()
    for t in range(n_documents - 1, -1, -1):
        if t == n_documents - 1 or first[t + 1]:
            path[t] = ends[t]
        else:
            path[t] = came_from[t + 1, path[t + 1]]
    return path
