"""The model by brute force: every topic and behaviour assignment of a tiny corpus.

Nothing here is clever. Sums run over all assignments of the full likelihood, Eq. (2).
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from habitus.model.parameters import Concentrations, DirichletPosterior, Parameters
from reference.corpora import Tiny


class Hidden(NamedTuple):
    """Every assignment of the hidden variables, with its weight."""

    paths: np.ndarray
    """Behaviour of each document, paths x documents."""
    topics: np.ndarray
    """Topic of each token, assignments x tokens."""
    joint: np.ndarray
    """p(x, y, z), paths x assignments."""

    @property
    def evidence(self) -> float:
        """p(x)."""
        return float(self.joint.sum())

    @property
    def posterior(self) -> np.ndarray:
        """p(y, z | x), paths x assignments."""
        return self.joint / self.joint.sum()

    @property
    def path_posterior(self) -> np.ndarray:
        """p(z_{1:T} | x), paths."""
        return self.posterior.sum(axis=1)


class Counts(NamedTuple):
    """Expected counts of the hidden variables."""

    phi: np.ndarray
    theta: np.ndarray
    pi: np.ndarray
    xi: np.ndarray


def every_path(tiny: Tiny) -> np.ndarray:
    n_behaviours = tiny.sizes.n_behaviours
    return np.array(list(product(range(n_behaviours), repeat=len(tiny.documents))), dtype=int)


def every_topics(tiny: Tiny) -> np.ndarray:
    found = list(product(range(tiny.sizes.n_topics), repeat=len(tiny.words)))
    return np.array(found, dtype=int).reshape(len(found), len(tiny.words))


def enumerate_hidden(tiny: Tiny, parameters: Parameters) -> Hidden:
    """p(x, y, z | Omega) of every y and z."""
    phi, theta, _, _ = parameters
    paths, topics = every_path(tiny), every_topics(tiny)
    joint = np.empty((len(paths), len(topics)))
    for p, path in enumerate(paths):
        behaviour_of_token = path[tiny.document_of_token]
        tokens = phi[tiny.words, topics] * theta[topics, behaviour_of_token]
        joint[p] = chain_probability(tiny, path, parameters) * tokens.prod(axis=1)
    return Hidden(paths, topics, joint)


def chain_probability(tiny: Tiny, path: np.ndarray, parameters: Parameters) -> float:
    """p(z_{1:T})."""
    probability = 1.0
    for t, z in enumerate(path):
        if t in tiny.opening:
            probability *= parameters.pi[z]
        else:
            probability *= parameters.xi[z, path[t - 1]]
    return probability


def behaviour_posterior(hidden: Hidden, n_behaviours: int) -> np.ndarray:
    """p(z_t | x), documents x behaviours."""
    posterior = np.zeros((hidden.paths.shape[1], n_behaviours))
    for path, weight in zip(hidden.paths, hidden.path_posterior, strict=True):
        for t, z in enumerate(path):
            posterior[t, z] += weight
    return posterior


def pair_posteriors(hidden: Hidden, n_behaviours: int) -> np.ndarray:
    """p(z_t = z', z_{t-1} = z | x), documents x z' x z; the first document's are zero."""
    posterior = np.zeros((hidden.paths.shape[1], n_behaviours, n_behaviours))
    for path, weight in zip(hidden.paths, hidden.path_posterior, strict=True):
        for t in range(1, len(path)):
            posterior[t, path[t], path[t - 1]] += weight
    return posterior


def token_posteriors(tiny: Tiny, hidden: Hidden) -> np.ndarray:
    """p(y_i, z_t | x), tokens x topics x behaviours."""
    _, n_topics, n_behaviours = tiny.sizes
    posterior = np.zeros((len(tiny.words), n_topics, n_behaviours))
    for path, weights in zip(hidden.paths, hidden.posterior, strict=True):
        for i, t in enumerate(tiny.document_of_token):
            for y in range(n_topics):
                posterior[i, y, path[t]] += weights[hidden.topics[:, i] == y].sum()
    return posterior


def expected_counts(tiny: Tiny, hidden: Hidden) -> Counts:
    """E[n | x] of each of the four counts."""
    n_words, n_topics, n_behaviours = tiny.sizes
    counts = Counts(
        np.zeros((n_words, n_topics)),
        np.zeros((n_topics, n_behaviours)),
        np.zeros(n_behaviours),
        np.zeros((n_behaviours, n_behaviours)),
    )
    for x, joint in zip(tiny.words, token_posteriors(tiny, hidden), strict=True):
        counts.phi[x] += joint.sum(axis=1)
        counts.theta[:] += joint
    behaviours = behaviour_posterior(hidden, n_behaviours)
    pairs = pair_posteriors(hidden, n_behaviours)
    for t in range(len(tiny.documents)):
        if t in tiny.opening:
            counts.pi[:] += behaviours[t]
        else:
            counts.xi[:] += pairs[t]
    return counts


class OnLine(NamedTuple):
    """Result of filtering up to each document, by one enumeration per document."""

    predicted: np.ndarray
    """p(z_t | x_{1:t-1}), documents x behaviours."""
    filtered: np.ndarray
    """p(z_t | x_{1:t}), documents x behaviours."""
    log_evidence: np.ndarray
    """ln p(x_t | x_{1:t-1}), documents."""


def on_line(tiny: Tiny, parameters: Parameters) -> OnLine:
    predicted, filtered, log_evidence = [], [], []
    for start, length in zip(tiny.opening, tiny.lengths, strict=True):
        before = 1.0
        for t in range(start, start + length):
            seen = tiny.documents[start : t + 1]
            unseen = enumerate_hidden(_alone((*seen[:-1], ()), tiny), parameters)
            now = enumerate_hidden(_alone(seen, tiny), parameters)
            # Not divided by its sum: with tilde parameters a prediction is not a distribution.
            arrived = behaviour_posterior(unseen, tiny.sizes.n_behaviours)[-1] * unseen.evidence
            predicted.append(arrived / before)
            filtered.append(behaviour_posterior(now, tiny.sizes.n_behaviours)[-1])
            log_evidence.append(np.log(now.evidence) - np.log(before))
            before = now.evidence
    return OnLine(np.array(predicted), np.array(filtered), np.array(log_evidence))


def _alone(documents: tuple[tuple[int, ...], ...], tiny: Tiny) -> Tiny:
    return Tiny(documents, (len(documents),), tiny.sizes)


def most_probable_path(tiny: Tiny, parameters: Parameters) -> np.ndarray:
    """argmax over z of p(z, x), topics summed out."""
    hidden = enumerate_hidden(tiny, parameters)
    return hidden.paths[hidden.path_posterior.argmax()]


def evidence_lower_bound(tiny: Tiny, q: DirichletPosterior, prior: Concentrations) -> float:
    """E_q[ln p(x, y, z, Omega)] - E_q[ln q(y, z)] - E_q[ln q(Omega)], with q(y, z) of Eq. (51)."""
    expected_log = [psi(block) - psi(block.sum(axis=0)) for block in q]
    hidden = enumerate_hidden(tiny, Parameters(*(np.exp(block) for block in expected_log)))
    q_hidden = hidden.posterior
    # E_q(Omega)[ln p(x, y, z | Omega)] is the logarithm of the joint at the tilde parameters.
    bound = float((q_hidden * (np.log(hidden.joint) - np.log(q_hidden))).sum())
    for block, hyperparameter, logs in zip(q, prior, expected_log, strict=True):
        h = np.broadcast_to(hyperparameter, block.shape)
        bound += _expected_log_density(h, logs) - _expected_log_density(block, logs)
    return bound


def _expected_log_density(concentration: np.ndarray, expected_log: np.ndarray) -> float:
    """E[ln Dir(column; concentration)], all columns together."""
    constant = gammaln(concentration.sum(axis=0)) - gammaln(concentration).sum(axis=0)
    return float(np.sum(constant + ((concentration - 1) * expected_log).sum(axis=0)))


def log_collapsed(tiny: Tiny, topics: np.ndarray, path: np.ndarray, prior: Concentrations) -> float:
    """ln p(x, y, z) with the parameters integrated out, by the chain rule.

    Each draw has the predictive probability (n + h) / (sum of n + sum of h) of what came before.
    """
    urns = Urns(tiny, prior)
    log_joint = 0.0
    for t, z in enumerate(path):
        if t in tiny.opening:
            log_joint += urns.draw("pi", z, 0)
        else:
            log_joint += urns.draw("xi", z, path[t - 1])
    for x, y, t in zip(tiny.words, topics, tiny.document_of_token, strict=True):
        log_joint += urns.draw("theta", y, path[t]) + urns.draw("phi", x, y)
    return log_joint


class Urns:
    """A Polya urn for each column of each block."""

    def __init__(self, tiny: Tiny, prior: Concentrations) -> None:
        n_words, n_topics, n_behaviours = tiny.sizes
        shapes = {
            "phi": (n_words, n_topics),
            "theta": (n_topics, n_behaviours),
            "pi": (n_behaviours, 1),
            "xi": (n_behaviours, n_behaviours),
        }
        self.balls = {
            name: np.array(np.broadcast_to(getattr(prior, name).reshape(-1, 1), shape))
            for name, shape in shapes.items()
        }

    def draw(self, name: str, row: int, column: int) -> float:
        """ln of the predictive probability of a row, which is then added to the urn."""
        urn = self.balls[name][:, column]
        probability = urn[row] / urn.sum()
        urn[row] += 1
        return float(np.log(probability))


def enumerate_collapsed(tiny: Tiny, prior: Concentrations) -> Hidden:
    """p(x, y, z), parameters integrated out, of every y and z."""
    paths, topics = every_path(tiny), every_topics(tiny)
    joint = [[np.exp(log_collapsed(tiny, y, z, prior)) for y in topics] for z in paths]
    return Hidden(paths, topics, np.array(joint))


def topic_conditional(
    tiny: Tiny, topics: np.ndarray, path: np.ndarray, i: int, prior: Concentrations
) -> np.ndarray:
    """p(y_i | x, all other topics, all behaviours)."""
    log_joint = []
    for y in range(tiny.sizes.n_topics):
        changed = topics.copy()
        changed[i] = y
        log_joint.append(log_collapsed(tiny, changed, path, prior))
    return _normalised(np.array(log_joint))


def behaviour_conditional(
    tiny: Tiny, topics: np.ndarray, path: np.ndarray, t: int, prior: Concentrations
) -> np.ndarray:
    """p(z_t | x, all topics, all other behaviours)."""
    log_joint = []
    for z in range(tiny.sizes.n_behaviours):
        changed = path.copy()
        changed[t] = z
        log_joint.append(log_collapsed(tiny, topics, changed, prior))
    return _normalised(np.array(log_joint))


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()
