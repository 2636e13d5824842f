"""Parameters Omega = {Phi, Theta, pi, Xi} of Eq. (1), their Dirichlet priors and posteriors.

Columns are distributions, as in the paper: an element is the probability of its row given its
column.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Indices
from habitus.errors import InvalidInputError


class Sizes(NamedTuple):
    """Sizes of a model."""

    n_words: int
    n_topics: int
    n_behaviours: int


class Parameters(NamedTuple):
    """Point estimates of the four distributions, Eq. (1)."""

    phi: Array
    """p(word | topic), words x topics."""
    theta: Array
    """p(topic | behaviour), topics x behaviours."""
    pi: Array
    """p(first behaviour), behaviours."""
    xi: Array
    """p(next behaviour | behaviour), next behaviours x behaviours."""

    @property
    def sizes(self) -> Sizes:
        """Numbers of words, topics and behaviours."""
        return Sizes(len(self.phi), len(self.theta), len(self.pi))

    @property
    def word_given_behaviour(self) -> Array:
        """p(word | behaviour), words x behaviours."""
        return self.phi @ self.theta

    def relabelled(self, topics: Indices, behaviours: Indices) -> Self:
        """Return the same model, in which `topics[i]` has number i and `behaviours[j]` number j."""
        return type(self)(
            phi=self.phi[:, topics],
            theta=self.theta[np.ix_(topics, behaviours)],
            pi=self.pi[behaviours],
            xi=self.xi[np.ix_(behaviours, behaviours)],
        )

    def checked(self, sizes: Sizes | None = None, *, tolerance: float = 1e-6) -> Self:
        """Return the same parameters as contiguous float64, if they are distributions.

        An `InvalidInputError` names the block at fault; sums may differ from one by `tolerance`.
        """
        blocks = _as_blocks(self, sizes)
        for name, block in blocks.items():
            if block.min() < 0 or np.abs(block.sum(axis=0) - 1).max() > tolerance:
                raise InvalidInputError(
                    f"the columns of {name} must be distributions; found a smallest value of "
                    f"{block.min():.6g} and sums from {block.sum(axis=0).min():.6g} to "
                    f"{block.sum(axis=0).max():.6g}"
                )
        return type(self)(**blocks)


class DirichletPosterior(NamedTuple):
    """q(Omega) of variational Bayes: one Dirichlet per column, Eq. (18) to (22)."""

    phi: Array
    """beta tilde of Eq. (19), words x topics."""
    theta: Array
    """alpha tilde of Eq. (20), topics x behaviours."""
    pi: Array
    """eta tilde of Eq. (21), behaviours."""
    xi: Array
    """gamma tilde of Eq. (22), next behaviours x behaviours."""

    def mean(self) -> Parameters:
        """Return the point estimates: the expected values of the parameters."""
        # Eq. (27) for phi, (28) for theta, (29) for xi, (30) for pi
        return Parameters(*(block / block.sum(axis=0) for block in self))

    def sample(self, rng: np.random.Generator) -> Parameters:
        """Return one draw of the parameters."""
        return Parameters(*(sample_dirichlet(block, rng) for block in self))

    def checked(self, sizes: Sizes | None = None) -> Self:
        """Return the same posterior as float64; an `InvalidInputError` names a block at fault."""
        blocks = _as_blocks(self, sizes)
        for name, block in blocks.items():
            if block.min() <= 0:
                raise InvalidInputError(
                    f"Dirichlet parameters of {name} must be above 0, found {block.min():.6g}"
                )
        return type(self)(**blocks)


class Assignments(NamedTuple):
    """Hidden variables of one Gibbs sample."""

    topics: NDArray[np.integer[Any]]
    """Topic of each token: document after document, words ascending within a document.

    Tokens of documents under `min_words` are left out.
    """
    behaviours: Indices
    """Behaviour of each document, short ones included."""

    def checked(self, sizes: Sizes, n_tokens: int, n_documents: int) -> Self:
        """Return the same assignments, or raise `InvalidInputError` if they do not fit."""
        wanted = (
            ("topics", self.topics, n_tokens, sizes.n_topics),
            ("behaviours", self.behaviours, n_documents, sizes.n_behaviours),
        )
        for name, labels, n, size in wanted:
            values = np.asarray(labels)
            if values.shape != (n,) or not np.issubdtype(values.dtype, np.integer):
                raise InvalidInputError(
                    f"init must give {n} {name} as whole numbers, found {values.dtype} values of "
                    f"shape {values.shape}"
                )
            if n and (values.min() < 0 or values.max() >= size):
                raise InvalidInputError(
                    f"init's {name} must run from 0 to {size - 1}, found {values.min()} to "
                    f"{values.max()}"
                )
        return type(self)(*(np.asarray(labels, dtype=np.int64) for labels in self))


class SampleChain(NamedTuple):
    """Posterior samples that one run of a sampler kept, in order."""

    samples: tuple[Parameters, ...]
    """Parameters estimated from each sample, Eq. (31) to (33)."""
    log_joint: Array
    """ln p(x, y, z) of each sample."""


def sample_dirichlet(concentration: Array, rng: np.random.Generator) -> Array:
    """Draw each column from its Dirichlet, given their concentrations."""
    draws = rng.standard_gamma(concentration)
    totals = draws.sum(axis=0)
    if np.all(totals > 0):
        return np.asarray(draws / totals)
    # Concentrations near zero can make every gamma of a column underflow: in that limit the
    # distribution has all its mass on one row, drawn in proportion to the concentrations.
    matrix = draws.reshape(len(draws), -1)
    shares = concentration.reshape(len(draws), -1)
    for column in np.flatnonzero(matrix.sum(axis=0) == 0):
        matrix[rng.choice(len(draws), p=shares[:, column] / shares[:, column].sum()), column] = 1
    return np.asarray(draws / draws.sum(axis=0))


def _as_blocks(parts: Parameters | DirichletPosterior, sizes: Sizes | None) -> dict[str, Array]:
    """Return the four blocks as finite float64 arrays of consistent shapes."""
    blocks = {
        name: np.ascontiguousarray(block, dtype=np.float64)
        for name, block in parts._asdict().items()
    }
    if sizes is None:
        if not all(block.ndim for block in blocks.values()):
            raise InvalidInputError("phi, theta, pi and xi must be arrays, found a number")
        sizes = Sizes(*(len(blocks[name]) for name in ("phi", "theta", "pi")))
    for name, shape in zip(Parameters._fields, block_shapes(sizes), strict=True):
        if blocks[name].shape != shape:
            raise InvalidInputError(f"{name} must have shape {shape}, found {blocks[name].shape}")
        if not np.isfinite(blocks[name]).all():
            raise InvalidInputError(f"{name} must be finite, found NaN or inf")
    return blocks


def block_shapes(sizes: Sizes) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of phi, theta, pi and xi in a model of these sizes."""
    n_words, n_topics, n = sizes
    return (n_words, n_topics), (n_topics, n), (n,), (n, n)


Hyperparameter = float | Sequence[float] | Array
"""A symmetric hyperparameter, or one value per component."""


HYPERPARAMETERS = ("beta", "alpha", "eta", "gamma")
"""Names of the hyperparameters in the order of the blocks phi, theta, pi, xi."""


class Concentrations(NamedTuple):
    """Hyperparameters as columns that broadcast against the blocks of counts."""

    phi: Array
    """beta, words x 1 (or 1 x 1 where symmetric)."""
    theta: Array
    """alpha, topics x 1 (or 1 x 1)."""
    pi: Array
    """eta, behaviours (or 1)."""
    xi: Array
    """gamma, behaviours x 1 (or 1 x 1)."""


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the four Dirichlet priors.

    Parameters
    ----------
    alpha
        Of theta: one value, or one per topic.
    beta
        Of phi: one value, or one per word.
    gamma
        Of xi: one value, or one per next behaviour.
    eta
        Of pi: one value, or one per behaviour.

    Raises
    ------
    InvalidInputError
        Where a value is not above 0.

    Examples
    --------
    >>> Prior(alpha=8, beta=0.05)
    Prior(alpha=8.0, beta=0.05, gamma=1.0, eta=1.0)
    """

    alpha: Hyperparameter = 1.0
    beta: Hyperparameter = 1.0
    gamma: Hyperparameter = 1.0
    eta: Hyperparameter = 1.0

    def __post_init__(self) -> None:
        """Check the values: each is a number from now on, or a tuple of them."""
        for field in fields(self):
            value = _checked(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, prior: "str | Prior") -> Self | "Prior":
        """Return the prior of a name or of a text with values; a `Prior` is returned as it is.

        Names are the paper's types "1", "H" and "H+1"; of values, those left out are 1.

        Examples
        --------
        >>> Prior.of("H")
        Prior(alpha=8.0, beta=0.05, gamma=1.0, eta=1.0)
        >>> Prior.of("alpha=8,beta=0.05")
        Prior(alpha=8.0, beta=0.05, gamma=1.0, eta=1.0)
        """
        if isinstance(prior, Prior):
            return prior
        if prior in PAPER:
            return PAPER[prior]
        try:
            pairs = (part.split("=") for part in prior.split(","))
            return cls(**{name.strip(): float(value) for name, value in pairs})
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(
                f"prior must be {', '.join(map(repr, PAPER))} or values such as "
                f"'alpha=8,beta=0.05' (gamma and eta, if not given, are 1), found {prior!r}",
                parameter="prior",
            ) from error

    def concentrations(self, sizes: Sizes) -> Concentrations:
        """Return the hyperparameters as columns for a model of these sizes."""
        columns = []
        for name, (n, *other) in zip(HYPERPARAMETERS, block_shapes(sizes), strict=True):
            value = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            if value.size not in (1, n):
                raise InvalidInputError(f"{name} must be one value or {n}, found {value.size}")
            columns.append(value.reshape(-1, *[1] * len(other)))
        return Concentrations(*columns)

    def __str__(self) -> str:
        """Return a text that `of` takes, where the prior is symmetric."""
        values = self.to_json().items()
        return ",".join(f"{n}={v:.4g}" if isinstance(v, float) else f"{n}={v}" for n, v in values)

    def to_json(self) -> dict[str, float | list[float]]:
        """Return the hyperparameters as plain values, for a file's header."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}


def _checked(name: str, value: Hyperparameter) -> float | tuple[float, ...]:
    """Return a hyperparameter as a number or a tuple of them, all above 0."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be numbers above 0, found {value!r}") from error
    if values.ndim > 1 or values.size == 0 or not np.isfinite(values).all() or values.min() <= 0:
        raise InvalidInputError(
            f"{name} must be a number above 0, or a list of them, found {value!r}"
        )
    return tuple(values.tolist()) if values.ndim else float(values)


PAPER: dict[str, Prior] = {
    "1": Prior(alpha=1, beta=1, gamma=1, eta=1),
    "H": Prior(alpha=8, beta=0.05, gamma=1, eta=1),
    "H+1": Prior(alpha=9, beta=1.05, gamma=2, eta=2),
}
"""Priors of the paper's experiments, by name."""
