"""How the methods are compared: the paper's section VI, as numbers."""

from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

from habitus.errors import InvalidInputError


@dataclass(frozen=True)
class Protocol:
    """What every run has in common; the defaults are the paper's.

    A run's seed depends on `seed`, on what is run and on its number alone: more runs, or fewer
    methods, leave the others as they are.
    """

    n_topics: int = 8
    n_behaviours: int = 4
    seed: int = 0
    min_words: float = 20
    """Shorter documents are called normal by every method."""
    n_iterations: int = 100
    """Of EM and VB."""
    burn_in: int = 500
    """Sweeps of Gibbs before its first sample."""
    thinning: int = 100
    """Sweeps between samples."""
    few: int = 5
    """Samples of the smaller Monte Carlo approximation."""
    many: int = 100
    """Samples of the larger one."""
    n_restarts: int = 20
    """Of our own pipeline, of which the best is kept, as `habitus learn` does."""
    n_trees: int = 300
    """Of the isolation forest."""
    lda_iterations: int = 50
    hmm_iterations: int = 50

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        for name in ("n_topics", "n_behaviours"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInputError(f"{name[2:]} must be at least 1, found {value}")
        if self.seed < 0:
            raise InvalidInputError(f"seed must be at least 0, found {self.seed}")

    def seed_of(self, kind: str, run: int) -> np.random.SeedSequence:
        """The seed of one run."""
        return np.random.SeedSequence(self.seed, spawn_key=(crc32(kind.encode()), run))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)
