"""Learnt parameters for people and other tools: top words, transitions, data frames, samples."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Indices
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError, optional_package
from habitus.model.parameters import Parameters, SampleChain

WordsOf = Literal["topics", "behaviours"]
FrameOf = Literal["topics", "behaviours", "mixtures", "transitions"]


class TopWords(NamedTuple):
    """Most probable words of each topic or behaviour, most probable first."""

    words: Indices
    """Word ids, topics (or behaviours) x n."""
    probabilities: Array
    """p(word | topic) or p(word | behaviour) of each of them, of the same shape."""


class Successor(NamedTuple):
    """A behaviour that follows another once that one ends."""

    behaviour: int
    probability: float
    """p(next behaviour | the behaviour ends here)."""


class TransitionGraph(NamedTuple):
    """The Markov chain of behaviours as a graph."""

    probabilities: Array
    """p(next behaviour | behaviour), next behaviours x behaviours: the paper's Xi."""
    expected_durations: Array
    """Mean number of consecutive documents of each behaviour; infinite if it is never left."""
    long_run_shares: Array
    """Share of documents of each behaviour in the stationary distribution."""
    successors: tuple[tuple[Successor, ...], ...]
    """Behaviours that follow each behaviour, most probable first; none if it is never left."""


def top_words(parameters: Parameters, n: int = 10, *, of: WordsOf = "topics") -> TopWords:
    """Return the `n` most probable words of each topic or behaviour.

    Equal probabilities are in the order of the ids.
    """
    distributions = word_distributions(parameters, of)
    n_words = len(distributions)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= n_words:
        raise InvalidInputError(
            f"n must be a whole number from 1 to {n_words}, found {n!r}", parameter="n"
        )
    words = np.argsort(-distributions, axis=0, kind="stable")[:n].T.astype(np.int64)
    return TopWords(words, np.take_along_axis(distributions.T, words, axis=1))


def word_distributions(parameters: Parameters, of: WordsOf) -> Array:
    """Return p(word | topic) or p(word | behaviour), one column each."""
    if of == "topics":
        return parameters.phi
    if of == "behaviours":
        return parameters.word_given_behaviour
    raise InvalidInputError(f'of must be "topics" or "behaviours", found {of!r}', parameter="of")


def transition_graph(xi: Array) -> TransitionGraph:
    """Return the transition matrix together with what follows from it.

    Examples
    --------
    >>> import numpy as np
    >>> graph = transition_graph(np.array([[0.75, 0.5], [0.25, 0.5]]))
    >>> graph.expected_durations
    array([4., 2.])
    >>> graph.long_run_shares.round(3)
    array([0.667, 0.333])
    >>> graph.successors[0]
    (Successor(behaviour=1, probability=1.0),)
    """
    return TransitionGraph(
        probabilities=xi,
        expected_durations=expected_durations(xi),
        long_run_shares=long_run_shares(xi),
        successors=tuple(successors(xi, z) for z in range(len(xi))),
    )


def expected_durations(xi: Array) -> Array:
    """Return `1 / (1 - diag(xi))`: the mean number of consecutive documents of each behaviour.

    It is infinite for a behaviour that is never left.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.maximum(1 - np.diag(xi), 0))


def long_run_shares(xi: Array) -> Array:
    """Return the stationary distribution of the behaviours: p with `xi @ p = p`.

    Where the Markov chain has several closed classes, it is the solution of smallest norm.
    """
    n = len(xi)
    system = np.vstack([xi - np.eye(n), np.ones(n)])
    shares, *_ = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)
    shares = np.maximum(shares, 0)
    return np.asarray(shares / shares.sum())


def successors(xi: Array, behaviour: int) -> tuple[Successor, ...]:
    """Return the behaviours that follow one when it ends, most probable first; maybe none."""
    leave = xi[:, behaviour].copy()
    leave[behaviour] = 0
    if leave.sum() == 0:
        return ()
    leave /= leave.sum()
    order = np.argsort(-leave, kind="stable")
    return tuple(Successor(int(z), float(leave[z])) for z in order if leave[z] > 0)


def dataframe(
    parameters: Parameters, vocabulary: Vocabulary | None = None, *, of: FrameOf = "topics"
) -> Any:
    """Return one of the model's distributions as a pandas data frame, one column per distribution.

    Topics, behaviours and words are numbered from 0. A vocabulary adds the cell and the direction
    of each word to the index of words.
    """
    frames: dict[str, tuple[Array, str, str]] = {
        "topics": (parameters.phi, "word", "topic"),
        "behaviours": (parameters.word_given_behaviour, "word", "behaviour"),
        "mixtures": (parameters.theta, "topic", "behaviour"),
        "transitions": (parameters.xi, "next_behaviour", "behaviour"),
    }
    if of not in frames:
        raise InvalidInputError(
            f"of must be one of {', '.join(map(repr, frames))}, found {of!r}", parameter="of"
        )
    pd = optional_package("pandas", "A data frame")
    values, rows, columns = frames[of]
    index: Any = pd.RangeIndex(len(values), name=rows)
    if rows == "word" and vocabulary is not None:
        index = pd.MultiIndex.from_frame(pd.DataFrame(_described_words(vocabulary)))
    names = pd.RangeIndex(values.shape[1], name=columns)
    return pd.DataFrame(values, index=index, columns=names)


def _described_words(vocabulary: Vocabulary) -> dict[str, NDArray[Any]]:
    """Return id, cell, direction and speed of every word; no speed where words know none."""
    words = np.arange(vocabulary.n_words)
    rows, columns, directions, speeds = np.unravel_index(words, vocabulary.shape)
    names = np.array([direction.name.lower() for direction in Direction])
    described: dict[str, NDArray[Any]] = {"word": words, "row": rows, "column": columns}
    described["direction"] = names[directions]
    if vocabulary.speeds > 1:
        described["speed"] = np.array(["slow", "fast"])[speeds]
    return described


ALIKE = 0.85
"""Likeness from which on two behaviours are the same one: see `matched_behaviours`."""


def matched_behaviours(before: Parameters, after: Parameters) -> dict[int, int]:
    """Return which behaviour of another model of the same words is each one, where there is one.

    Behaviours are as alike as their words, by the Bhattacharyya coefficient, the sum of
    sqrt(p(word) q(word)). They are assigned one to one such that all are most alike together; of
    these pairs, those that are alike enough count.

    Examples
    --------
    >>> phi = np.array([[0.9, 0.0], [0.1, 0.2], [0.0, 0.8]])
    >>> swapped = Parameters(phi[:, ::-1], np.eye(2), np.full(2, 0.5), np.full((2, 2), 0.5))
    >>> one = swapped._replace(phi=phi)
    >>> matched_behaviours(one, swapped)
    {0: 1, 1: 0}
    """
    from scipy.optimize import linear_sum_assignment

    old, new = (np.sqrt(each.word_given_behaviour) for each in (before, after))
    likeness = old.T @ new
    pairs = zip(*linear_sum_assignment(likeness, maximize=True), strict=True)
    return {int(k): int(n) for k, n in pairs if likeness[k, n] >= ALIKE}


DIMENSIONS = {
    "phi": ["word", "topic"],
    "theta": ["topic", "behaviour"],
    "pi": ["behaviour"],
    "xi": ["next_behaviour", "behaviour"],
}
"""Names of the dimensions of each parameter in an ArviZ data set."""


def aligned(sample: Parameters, reference: Parameters) -> Parameters:
    """Renumber topics and behaviours to match a reference of the same sizes.

    The posterior does not change when they are renumbered, so independent chains number them
    differently (label switching).
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
    arviz = optional_package("arviz", "A data set of posterior samples")
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
