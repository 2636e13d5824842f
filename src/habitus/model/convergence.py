"""Posterior samples of several chains: aligned labels, and an ArviZ data set.

The posterior does not change when topics or behaviours are renumbered, so independent chains
number them differently (label switching). Two things remain comparable between chains: quantities
that do not depend on the numbers, such as the log joint, and parameters after each sample has been
renumbered to match one reference sample.
"""

from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array, Indices
from habitus.errors import InvalidInputError, MissingPackageError
from habitus.model.parameters import Parameters

DIMENSIONS = {
    "phi": ["word", "topic"],
    "theta": ["topic", "behaviour"],
    "pi": ["behaviour"],
    "xi": ["next_behaviour", "behaviour"],
}
"""Names of the dimensions of each parameter in an ArviZ data set."""


class SampleChain(NamedTuple):
    """Posterior samples that one run of a sampler kept, in order."""

    samples: tuple[Parameters, ...]
    """Parameters estimated from each sample, Eq. (31) to (33)."""
    log_joint: Array
    """ln p(x, y, z) of each sample."""


def aligned(sample: Parameters, reference: Parameters) -> Parameters:
    """Renumber topics and behaviours to match a reference of the same sizes.

    The assignment minimises the total variation distances between the paired distributions:
    p(word | topic) for topics, p(word | behaviour) for behaviours.
    """
    return sample.relabelled(
        _matching(reference.phi, sample.phi),
        _matching(reference.word_given_behaviour, sample.word_given_behaviour),
    )


def _matching(reference: Array, columns: Array) -> Indices:
    """Return the column that is matched to each column of the reference."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(total_variation(reference, columns))[1].astype(np.int64)


def total_variation(first: Array, second: Array) -> Array:
    """Return the total variation distance of each column of one matrix from each of another.

    0 for equal, 1 for disjoint distributions: columns of `first` x columns of `second`.

    Examples
    --------
    >>> total_variation(np.array([[1.0, 0.5], [0.0, 0.5]]), np.array([[0.0], [1.0]])).tolist()
    [[1.0], [0.5]]
    """
    return np.asarray(np.abs(first[:, :, None] - second[:, None, :]).sum(axis=0) / 2)


def to_arviz(
    chains: Sequence[SampleChain],
    reference: Parameters,
    parameters: Sequence[str] = Parameters._fields,
) -> Any:
    """Return samples of several chains as an ArviZ data set; see `TopicModel.to_arviz`.

    Topics and behaviours of every sample are aligned to those of `reference`.
    """
    if not any(chain.samples for chain in chains):
        raise InvalidInputError(
            'the model has no posterior samples: learn it with learning="gibbs" or "blocked-gibbs"',
            parameter="learning",
        )
    unknown = set(parameters) - set(Parameters._fields)
    if unknown:
        raise InvalidInputError(
            f"parameters must be among {', '.join(Parameters._fields)}, found "
            f"{', '.join(map(repr, sorted(unknown)))}",
            parameter="parameters",
        )
    try:
        arviz = import_module("arviz")
    except ImportError as error:
        raise MissingPackageError("posterior samples need the package arviz") from error
    log_joint = np.stack([chain.log_joint for chain in chains])
    groups = {
        "posterior": {"log_joint": log_joint} | _stacked(chains, reference, parameters),
        "sample_stats": {"lp": log_joint},
    }
    dims = {name: DIMENSIONS[name] for name in parameters}
    if "posterior" in signature(arviz.from_dict).parameters:  # before ArviZ 1
        return arviz.from_dict(**groups, dims=dims)
    return arviz.from_dict(groups, dims=dims)


def _stacked(
    chains: Sequence[SampleChain], reference: Parameters, parameters: Sequence[str]
) -> dict[str, Array]:
    """Return each block of the aligned samples, chains x samples x the shape of the block."""
    renumbered = [[aligned(sample, reference) for sample in chain.samples] for chain in chains]
    return {
        name: np.array([[getattr(sample, name) for sample in samples] for samples in renumbered])
        for name in parameters
    }
