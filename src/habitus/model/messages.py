"""Messages along the chain of behaviours, for any per-document likelihoods: Eq. (10) to (14).

Every message is renormalised at every document and kept both in logs and as a probability. So a
document of ten thousand words does not underflow, and neither does a behaviour that is a thousand
nats less probable now but the only one allowed next. `xi` and `pi` need not be normalised (those of
variational Bayes are not).
"""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.compiled import compiled

# Below this a sum of products may have lost terms to underflow: use logs instead.
SAFE = 1e-200


class ForwardMessages(NamedTuple):
    """Result of the forward pass: the messages of Eq. (10), normalised."""

    log_predicted: Array
    """ln p(z_t | x_{1:t-1}), documents x behaviours."""
    log_filtered: Array
    """ln p(z_t | x_{1:t}), documents x behaviours."""
    log_evidence: Array
    """ln p(x_t | x_{1:t-1}), documents; they add up to ln K of Eq. (12)."""


class SmoothingResult(NamedTuple):
    """Result of the backward pass."""

    posterior: Array
    """p(z_t | x_{1:T}), documents x behaviours."""
    first: Array
    """Expected number of sequences that start with each behaviour, Eq. (13) summed."""
    transitions: Array
    """Expected number of transitions to z' from z, next x behaviours, Eq. (14) summed."""


@compiled
def log_predict(
    z_next: int, xi: Array, log_xi: Array, filtered: Array, log_filtered: Array
) -> float:
    """Return `logsumexp(log_xi[z_next] + log_filtered)`, without logs where that is as exact."""
    total = 0.0
    for z in range(len(filtered)):
        total += xi[z_next, z] * filtered[z]
    if total > SAFE:
        return float(np.log(total))
    best = -np.inf
    for z in range(len(filtered)):
        best = max(best, log_xi[z_next, z] + log_filtered[z])
    if best == -np.inf:
        return best
    total = 0.0
    for z in range(len(filtered)):
        total += np.exp(log_xi[z_next, z] + log_filtered[z] - best)
    return float(best + np.log(total))


@compiled
def filter_forward(log_like: Array, first: Flags, pi: Array, xi: Array) -> ForwardMessages:
    """Run the forward pass: predict and update, document by document.

    `log_like` is ln p(x_t | z_t), documents x behaviours; `first` are starts of sequences. A
    document that is impossible under every reachable behaviour has a log evidence of minus
    infinity and leaves p(z_t) as predicted.
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
            log_filtered[t, z] = log_predicted[t, z] + log_like[t, z]  # Eq. (10)
            best = max(best, log_filtered[t, z])
        if best == -np.inf:
            log_evidence[t] = best
            for z in range(n):
                log_filtered[t, z] = log_predicted[t, z]
                filtered[z] = np.exp(log_filtered[t, z])
            continue
        total = 0.0
        for z in range(n):
            filtered[z] = np.exp(log_filtered[t, z] - best)
            total += filtered[z]
        log_total = np.log(total)
        log_evidence[t] = best + log_total  # Eq. (12), one factor of K per document
        for z in range(n):
            filtered[z] /= total
            # Not minus log_evidence: the difference to `best` keeps all its digits.
            log_filtered[t, z] = (log_filtered[t, z] - best) - log_total
    return ForwardMessages(log_predicted, log_filtered, log_evidence)


@compiled
def _came_from(z_next: int, xi: Array, log_filtered: Array, log_predicted: float) -> Array:
    """Return p(z_{t-1} | z_t = z_next, x_{1:t-1}), behaviours."""
    n = len(log_filtered)
    share = np.zeros(n)
    if log_predicted == -np.inf:
        return share
    for z in range(n):
        if xi[z_next, z] > 0:
            share[z] = np.exp(np.log(xi[z_next, z]) + log_filtered[z] - log_predicted)
    return share


@compiled
def smooth_backward(messages: ForwardMessages, first: Flags, xi: Array) -> SmoothingResult:
    """Run the backward pass: posteriors given all documents, from the forward messages alone.

    Instead of the backward messages of Eq. (11), p(z_t, z_{t-1} | x_{1:T}) is computed as
    p(z_t | x_{1:T}) p(z_{t-1} | z_t, x_{1:t-1}): the same as the product of both messages in
    Eq. (14), but a sum of positive terms that are at most one.
    """
    n_documents, n = messages.log_filtered.shape
    posterior = np.zeros((n_documents, n))
    first_counts = np.zeros(n)
    transitions = np.zeros((n, n))
    filtered = np.exp(messages.log_filtered)
    inverse = np.exp(-messages.log_predicted)
    limit = 1 / SAFE
    for t in range(n_documents - 1, -1, -1):
        for z in range(n):
            if t == n_documents - 1 or first[t + 1]:
                posterior[t, z] = filtered[t, z]
            if first[t]:
                first_counts[z] += posterior[t, z]  # Eq. (13)
        if first[t]:
            continue
        for z_next in range(n):
            here = posterior[t, z_next]
            if here == 0:
                continue
            if inverse[t, z_next] < limit:
                scale = here * inverse[t, z_next]
                for z in range(n):
                    pair = scale * xi[z_next, z] * filtered[t - 1, z]  # Eq. (14)
                    transitions[z_next, z] += pair
                    posterior[t - 1, z] += pair
            else:
                pairs = here * _came_from(
                    z_next, xi, messages.log_filtered[t - 1], messages.log_predicted[t, z_next]
                )
                for z in range(n):
                    transitions[z_next, z] += pairs[z]
                    posterior[t - 1, z] += pairs[z]
    return SmoothingResult(posterior, first_counts, transitions)


@compiled
def sample_backward(messages: ForwardMessages, first: Flags, xi: Array, uniforms: Array) -> Indices:
    """Draw a path of behaviours from p(z_{1:T} | x_{1:T}), with one uniform number per document."""
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
    """Return `searchsorted(cumsum(weights), uniform * weights.sum(), "right")`: one draw.

    `uniform` lies in [0, 1). An index of weight zero is never drawn.
    """
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
    """Return `draw(exp(log_weights - log_weights.max()), uniform)`."""
    best = log_weights.max()
    weights = np.empty(len(log_weights))
    for i in range(len(log_weights)):
        weights[i] = np.exp(log_weights[i] - best)
    return draw(weights, uniform)


@compiled
def most_probable_path(log_like: Array, first: Flags, pi: Array, xi: Array) -> Indices:
    """Return the path z_{1:T} of highest p(z_{1:T}, x_{1:T}) (Viterbi), the lowest of a tie."""
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
            score = arrived  # impossible under every behaviour: no evidence
        score = score - score.max()
        ends[t] = score.argmax()
    for t in range(n_documents - 1, -1, -1):
        if t == n_documents - 1 or first[t + 1]:
            path[t] = ends[t]
        else:
            path[t] = came_from[t + 1, path[t + 1]]
    return path
