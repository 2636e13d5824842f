"""What the transition matrix says in plain terms."""

import numpy as np

from habitus.model.parameters import Array


def expected_durations(xi: Array) -> Array:
    """Mean number of documents a behaviour lasts once begun, 1 / (1 - xi[z, z])."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.maximum(1 - np.diag(xi), 0))


def long_run_shares(xi: Array) -> Array:
    """Share of documents of each behaviour in the long run: p with xi p = p, summing to one.

    Where the chain has several closed parts, the shortest such p.
    """
    n = len(xi)
    system = np.vstack([xi - np.eye(n), np.ones(n)])
    shares, *_ = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)
    shares = np.maximum(shares, 0)
    return np.asarray(shares / shares.sum())


def successors(xi: Array, behaviour: int) -> list[tuple[int, float]]:
    """Behaviours that follow when this one ends, most probable first, with their probabilities."""
    leave = xi[:, behaviour].copy()
    leave[behaviour] = 0
    if leave.sum() == 0:
        return []
    leave /= leave.sum()
    order = np.argsort(-leave, kind="stable")
    return [(int(z), float(leave[z])) for z in order if leave[z] > 0]
