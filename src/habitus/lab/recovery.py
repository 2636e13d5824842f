"""How close two models are, up to the names of their behaviours."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from habitus.arrays import Array
from habitus.errors import InvalidInputError
from habitus.model.parameters import Parameters


class Recovery(NamedTuple):
    """A learnt model beside the one that made the data."""

    behaviours: NDArray[np.int64]
    """The learnt behaviour that stands for each true one."""
    behaviour_distance: float
    """Mean total variation distance between p(word | behaviour) of the pairs: 0 alike, 1 disjoint.

    Topics are not compared: with at least as many topics as behaviours the likelihood depends on
    their mixtures p(word | behaviour) alone.
    """
    transition_distance: float
    """The same between the columns of xi."""


def compare(truth: Parameters, learnt: Parameters) -> Recovery:
    """Pair the behaviours so that their word distributions are closest, and measure."""
    if truth.sizes.n_words != learnt.sizes.n_words or len(truth.pi) != len(learnt.pi):
        raise InvalidInputError(
            f"models to compare must have the same words and behaviours, found {truth.sizes} and "
            f"{learnt.sizes}"
        )
    words = _distances(truth.word_given_behaviour, learnt.word_given_behaviour)
    _, pairs = linear_sum_assignment(words)
    xi = learnt.xi[np.ix_(pairs, pairs)]
    return Recovery(
        behaviours=pairs,
        behaviour_distance=float(words[np.arange(len(pairs)), pairs].mean()),
        transition_distance=float(np.abs(truth.xi - xi).sum(axis=0).mean() / 2),
    )


def _distances(first: Array, second: Array) -> Array:
    """Total variation distance of each column of one from each column of the other."""
    return np.asarray(np.abs(first[:, :, None] - second[:, None, :]).sum(axis=0) / 2)
