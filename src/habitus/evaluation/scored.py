"""Judged documents of one video, as all measures take them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.model.parameters import Array

Flags = NDArray[np.bool_]


class Scored(NamedTuple):
    """Documents of one video in time order, judged."""

    normality: Array
    judged: Flags
    times: Array
    """Start of each, in seconds."""
    clip: float
    """Seconds to a document."""

    @property
    def abnormality(self) -> Array:
        """The higher the more abnormal; documents that were not judged lie below all others."""
        if not self.judged.any():
            return np.zeros(len(self.normality))
        return -np.where(self.judged, self.normality, self.normality[self.judged].max())

    @property
    def seconds(self) -> float:
        """Of footage."""
        return len(self.times) * self.clip

    def below(self, threshold: float) -> Flags:
        """Documents that are abnormal at a threshold."""
        return np.asarray(self.judged & (self.normality < threshold))

    def shifted(self, n: int) -> "Scored":
        """The same scores, each `n` documents later and the last ones first."""
        return self._replace(normality=np.roll(self.normality, n), judged=np.roll(self.judged, n))
