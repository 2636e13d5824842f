"""What a sampler must agree with in the long run: the enumerated posterior."""

import numpy as np

from reference.corpora import Tiny
from reference.enumeration import Hidden, enumerate_collapsed
from reference.joint_distribution import standard_error_of_chain


def assert_agrees_with_posterior(tiny: Tiny, prior, paths: np.ndarray, samples: list) -> None:
    """Frequencies of paths, mean counts and their mean squares, within 4.5 standard errors."""
    hidden = enumerate_collapsed(tiny, prior)
    visited = (paths[:, None, :] == hidden.paths).all(axis=2).astype(float)
    phi, theta = (np.stack([s[k] for s in samples]).reshape(len(samples), -1) for k in (0, 1))
    found = np.concatenate([visited, phi, phi**2, theta, theta**2], axis=1)
    expected = np.concatenate([hidden.path_posterior, *count_moments(tiny, hidden)])
    varying = found.std(axis=0) > 0
    np.testing.assert_allclose(found[:, ~varying].mean(axis=0), expected[~varying], atol=1e-9)
    error = standard_error_of_chain(found[:, varying])
    scores = (found[:, varying].mean(axis=0) - expected[varying]) / error
    assert np.abs(scores).max() < 4.5


def count_moments(tiny: Tiny, hidden: Hidden) -> list[np.ndarray]:
    """E[n_xy], E[n_xy^2], E[n_yz] and E[n_yz^2] over every assignment."""
    n_words, n_topics, n_behaviours = tiny.sizes
    shapes = [(n_words, n_topics)] * 2 + [(n_topics, n_behaviours)] * 2
    moments = [np.zeros(shape) for shape in shapes]
    for path, weights in zip(hidden.paths, hidden.posterior, strict=True):
        for topics, weight in zip(hidden.topics, weights, strict=True):
            phi, theta = np.zeros(shapes[0]), np.zeros(shapes[2])
            np.add.at(phi, (tiny.words, topics), 1)
            np.add.at(theta, (topics, path[tiny.document_of_token]), 1)
            for moment, term in zip(moments, (phi, phi**2, theta, theta**2), strict=True):
                moment += weight * term
    return [moment.ravel() for moment in moments]
