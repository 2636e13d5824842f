"""Distance between a learnt model and the true one, up to the order of behaviours."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.model.convergence import total_variation
from habitus.model.parameters import Parameters


class Recovery(NamedTuple):
    """Distances between a learnt model and the model that generated the data.

    Topics are not compared: with at least as many topics as behaviours, the likelihood depends on
    their mixtures p(word | behaviour) alone. Distances are means of total variation, from 0 to 1.
    """

    behaviours: NDArray[np.int64]
    """Index of the learnt behaviour that corresponds to each true one."""
    behaviour_distance: float
    transition_distance: float


def measure_recovery(truth: Parameters, learnt: Parameters) -> Recovery:
    """Match the behaviours of two models with the least total distance, and measure the distances.

    >>> from habitus.lab import crossing
    >>> truth = crossing()
    >>> learnt = truth.relabelled(list(range(8)), [2, 0, 3, 1])
    >>> measure_recovery(truth, learnt).behaviours.tolist()
    [1, 3, 0, 2]
    >>> measure_recovery(truth, learnt).behaviour_distance
    0.0
    """
    if truth.sizes.n_words != learnt.sizes.n_words or len(truth.pi) != len(learnt.pi):
        raise InvalidInputError(
            f"models to compare must have the same words and behaviours, found {truth.sizes} and "
            f"{learnt.sizes}",
            parameter="learnt",
        )
    words = total_variation(truth.word_given_behaviour, learnt.word_given_behaviour)
    from scipy.optimize import linear_sum_assignment

    _, pairs = linear_sum_assignment(words)
    xi = learnt.xi[np.ix_(pairs, pairs)]
    return Recovery(
        behaviours=pairs,
        behaviour_distance=float(words[np.arange(len(pairs)), pairs].mean()),
        transition_distance=float(np.abs(truth.xi - xi).sum(axis=0).mean() / 2),
    )
