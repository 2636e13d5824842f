"""Effective sample size of a chain, and whether it looks stationary."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Trace(NamedTuple):
    """What a chain's values say about themselves."""

    mean: float
    sd: float
    size: int
    effective: float
    """Number of independent draws whose mean would be as precise."""
    uncertainty: float
    """Relative standard error of `effective`."""
    drift: float
    """Difference between the means of both halves, in its standard errors."""

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.sd / math.sqrt(self.effective)


def summary(values: ArrayLike) -> Trace:
    """Mean, effective sample size and drift of a chain after its burn-in."""
    chain = np.asarray(values, dtype=np.float64)
    early, late = np.array_split(chain, 2)
    sd = float(chain.std())
    effective, uncertainty = effective_size(chain)
    # Each half has half the effective draws, so their difference twice the error of the mean.
    drift = float(late.mean() - early.mean()) / (2 * sd / math.sqrt(effective))
    return Trace(float(chain.mean()), sd, len(chain), effective, uncertainty, drift)


def effective_size(chain: NDArray[np.float64]) -> tuple[float, float]:
    """n over the integrated autocorrelation time, by Geyer's initial monotone sequence.

    Sums of autocorrelations at lags 2k and 2k + 1 are positive and fall in theory (for a reversible
    chain; a sweep in fixed order nearly is): they are added up to the first that is not positive,
    each limited to the one before. Beside it, its relative standard error by Sokal's formula,
    sqrt(2 (2 M + 1) / n) for sums that end at lag M.
    """
    n = len(chain)
    spectrum = np.fft.rfft(chain - chain.mean(), 2 * n)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    pairs = (covariance / covariance[0])[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: negative[0]] if negative.size else pairs
    time = 2 * np.minimum.accumulate(kept).sum() - 1
    return float(n / max(time, 1 / n)), math.sqrt(2 * (4 * len(kept) + 1) / n)


def difference(a: Trace, b: Trace) -> float:
    """Difference between the means of two chains, in its standard errors."""
    return (a.mean - b.mean) / float(np.hypot(a.error, b.error))


def check() -> None:
    """On a chain of known autocorrelation the estimate is right to a tenth."""
    rng, factor, n = np.random.default_rng(0), 0.9, 100_000
    chain, noise = np.zeros(n), rng.standard_normal(n)
    for i in range(1, n):
        chain[i] = factor * chain[i - 1] + noise[i]
    exact = n * (1 - factor) / (1 + factor)
    found, uncertainty = effective_size(chain)
    assert abs(found / exact - 1) < 0.1
    assert 0.01 < uncertainty < 0.1
