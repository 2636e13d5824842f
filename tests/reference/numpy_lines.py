"""NumPy twins of the compiled kernels of `habitus.model`: the line that each docstring states."""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp, psi


def counts_matrix(evidence):
    """C, documents x words."""
    shape = (evidence.n_documents, evidence.n_words)
    return csr_array((evidence.counts, evidence.words, evidence.indptr), shape=shape).toarray()


# habitus.model.messages


def log_predict(xi, log_filtered):
    """ln p(z_next | x_{1:t}) of each z_next."""
    with np.errstate(divide="ignore"):
        return logsumexp(np.log(xi) + log_filtered, axis=1)


def draw(weights, uniform):
    """Index of the weight under which `uniform` falls, weights of zero left out."""
    positive = np.flatnonzero(weights > 0)
    cumulated = np.cumsum(weights[positive])
    place = np.searchsorted(cumulated, uniform * weights.sum(), side="right")
    return int(positive[min(place, len(positive) - 1)])


def draw_log(log_weights, uniform):
    return draw(np.exp(log_weights - log_weights.max()), uniform)


# habitus.model.em


def to_mode(counts, hyperparameter, smoothing):
    """Eq. (6) to (9) and the smoothing after it; columns without mass become uniform."""
    positive = np.maximum(counts + (hyperparameter[:, None] - 1), 0)
    dead = positive.sum(axis=0) == 0
    positive[:, dead] = 1
    mode = positive / positive.sum(axis=0)
    added = smoothing if hyperparameter.min() <= 1 else 0.0
    return (mode + added) / (mode + added).sum(axis=0), dead


def log_powers(block, hyperparameter):
    exponent = np.broadcast_to(hyperparameter[:, None] - 1, block.shape)
    return float((exponent * np.log(block, where=exponent != 0, out=np.zeros_like(block))).sum())


# habitus.model.vb


def divergence(concentration, hyperparameter):
    """The sum of `(c - h) * (psi(c) - psi(total)) - gammaln(c)`."""
    expected_log = psi(concentration) - psi(concentration.sum(axis=0))
    added = concentration - hyperparameter[:, None]
    return float((added * expected_log - gammaln(concentration)).sum())


# habitus.model.gibbs


def spell(evidence):
    """Word of each token, and where each document starts."""
    words = np.repeat(evidence.words, evidence.counts.astype(int))
    n_tokens = counts_matrix(evidence).sum(axis=1).astype(int)
    return words, np.concatenate([[0], np.cumsum(n_tokens)])


def count(words, starts, first, topics, behaviours, sizes):
    """n_xy, n_yz, n_z, n_z'z, and the tokens of each topic in each document."""
    n_words, n_topics, n_behaviours = sizes
    document = np.repeat(np.arange(len(first)), np.diff(starts))
    phi = np.zeros((n_words, n_topics))
    theta = np.zeros((n_topics, n_behaviours))
    document_topics = np.zeros((len(first), n_topics))
    np.add.at(phi, (words, topics), 1)
    np.add.at(theta, (topics, behaviours[document]), 1)
    np.add.at(document_topics, (document, topics), 1)
    pi = np.bincount(behaviours[first], minlength=n_behaviours)
    xi = np.zeros((n_behaviours, n_behaviours))
    later = np.flatnonzero(~first)
    np.add.at(xi, (behaviours[later], behaviours[later - 1]), 1)
    return phi, theta, pi, xi, document_topics


def uniform(seed, i):
    """SplitMix64 in whole numbers of any size."""
    whole = 2**64
    x = (int(seed) + i * 0x9E3779B97F4A7C15) % whole
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % whole
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % whole
    return ((x ^ (x >> 31)) >> 11) * 2.0**-53


def draw_topics(words, document, path, phi, theta, seed):
    """A topic of each token, in proportion to phi[word] * theta[:, behaviour]."""
    return np.array(
        [
            draw(phi[x] * theta[:, path[t]], uniform(seed, i))
            for i, (x, t) in enumerate(zip(words, document, strict=True))
        ]
    )


# habitus.model.online


def log_likelihoods(words, counts, log_probability):
    return counts @ log_probability[words]


def word_surprisals(log_predicted, words, probability):
    return -np.log(probability[words] @ (np.exp(log_predicted.ravel()) / len(log_predicted)))


def predictions(log_joint, xi):
    """ln p(z_{t+1} | x_{1:t}) of each set."""
    normalised = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    return np.stack([log_predict(each, row) for each, row in zip(xi, normalised, strict=True)])


def examine(words, counts, n_words):
    return counts.sum(), ((words >= 0) & (words < n_words)).all()


# habitus.model.starts


def cosines(evidence, seeds):
    """`sqrt(C / totals) @ sqrt(C[seeds] / totals[seeds]).T`; 0 for an empty document."""
    C = counts_matrix(evidence)
    totals = C.sum(axis=1, keepdims=True)
    roots = np.sqrt(np.divide(C, totals, out=np.zeros_like(C), where=totals > 0))
    return roots @ roots[seeds].T
