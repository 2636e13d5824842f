"""Dirichlet priors of the four distributions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.model.parameters import Array, Sizes, block_shapes

Hyperparameter = float | Sequence[float] | NDArray[np.float64]


class Concentrations(NamedTuple):
    """The prior spelt out for a model: one column each, to be added to a block of counts."""

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
    """Hyperparameters, scalar (symmetric) or one value a component.

    `alpha` of theta (topics), `beta` of phi (words), `gamma` of xi (next behaviours), `eta` of pi
    (behaviours).
    """

    alpha: float | tuple[float, ...]
    beta: float | tuple[float, ...]
    gamma: float | tuple[float, ...]
    eta: float | tuple[float, ...]

    def __init__(
        self,
        alpha: Hyperparameter = 1.0,
        beta: Hyperparameter = 1.0,
        gamma: Hyperparameter = 1.0,
        eta: Hyperparameter = 1.0,
    ) -> None:
        values = {"alpha": alpha, "beta": beta, "gamma": gamma, "eta": eta}
        for name, value in values.items():
            object.__setattr__(self, name, _checked(name, value))

    @classmethod
    def of(cls, prior: "str | Prior") -> Self | "Prior":
        """Give one of the paper's types by name, one in words, or an own prior as it is.

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
                f"'alpha=8,beta=0.05' (gamma and eta, if not given, are 1), found {prior!r}"
            ) from error

    def concentrations(self, sizes: Sizes) -> Concentrations:
        """The prior as columns that broadcast against the blocks of a model of these sizes."""
        columns = {}
        shapes = block_shapes(sizes)._asdict()
        for name, block in (("beta", "phi"), ("alpha", "theta"), ("eta", "pi"), ("gamma", "xi")):
            value = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            if value.size not in (1, shapes[block][0]):
                raise InvalidInputError(
                    f"{name} must be one value or {shapes[block][0]}, found {value.size}"
                )
            columns[block] = value.reshape(-1, *[1] * (len(shapes[block]) - 1))
        return Concentrations(**columns)

    def __str__(self) -> str:
        """In words that `of` understands, where symmetric."""
        values = self.to_json().items()
        return ",".join(f"{n}={v:.4g}" if isinstance(v, float) else f"{n}={v}" for n, v in values)

    def to_json(self) -> dict[str, float | list[float]]:
        """Give the hyperparameters as plain values, for a file's header."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}


def _checked(name: str, value: Hyperparameter) -> float | tuple[float, ...]:
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be numbers above 0, found {value!r}") from error
    if found.ndim > 1 or found.size == 0 or not np.isfinite(found).all() or found.min() <= 0:
        raise InvalidInputError(
            f"{name} must be a number above 0, or a list of them, found {value!r}"
        )
    return tuple(found.tolist()) if found.ndim else float(found)


PAPER = {
    "1": Prior(alpha=1, beta=1, gamma=1, eta=1),
    "H": Prior(alpha=8, beta=0.05, gamma=1, eta=1),
    "H+1": Prior(alpha=9, beta=1.05, gamma=2, eta=2),
}
