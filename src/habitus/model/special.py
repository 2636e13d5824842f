"""Log-gamma function and its derivative: of whole arrays for VB, of single numbers for Gibbs."""

import numpy as np

from habitus.arrays import Array
from habitus.compiled import compiled

# B_{2n} / (2n (2n - 1)), the coefficients of Stirling's series for ln Gamma, and times 2n - 1,
# those of its derivative.
C0, C1, C2, C3 = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680
C4, C5, C6, C7 = 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400
D0, D1, D2, D3 = C0, 3 * C1, 5 * C2, 7 * C3
D4, D5, D6, D7 = 9 * C4, 11 * C5, 13 * C6, 15 * C7
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
SHIFT = 8.0


def log_gamma_and_digamma(x: Array) -> tuple[Array, Array]:
    """Return `scipy.special.gammaln(x), scipy.special.psi(x)` of a contiguous array x > 0.

    Both are Stirling's series at X = x + 8 (or at x, if x is 8 or more), and the recurrence back
    through P = x (x + 1) ... (x + 7). The logarithms are NumPy's, which are vectorised.
    """
    shifted, product, slope = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    _recurrence(x.reshape(-1), shifted.reshape(-1), product.reshape(-1), slope.reshape(-1))
    log_shifted, log_product = np.log(shifted), np.log(product, out=product)
    _series(
        shifted.reshape(-1), log_shifted.reshape(-1), log_product.reshape(-1), slope.reshape(-1)
    )
    return log_product, slope


@compiled
def _recurrence(x: Array, shifted: Array, product: Array, slope: Array) -> None:
    """Compute X, P and P' / P; with u = x (x + 7), P = u (u + 6) (u + 10) (u + 12)."""
    for i in range(len(x)):
        y = x[i]
        small = y < SHIFT
        u = y * (y + 7)
        low, high = u * (u + 6), (u + 10) * (u + 12)
        value = low * high
        derivative = ((2 * u + 6) * high + (2 * u + 22) * low) * (2 * y + 7)
        shifted[i] = y + SHIFT if small else y
        product[i] = value if small else 1.0
        slope[i] = derivative / value if small else 0.0


@compiled
def _series(shifted: Array, log_shifted: Array, log_product: Array, slope: Array) -> None:
    """Overwrite ln P by ln Gamma(x), and P' / P by psi(x)."""
    for i in range(len(shifted)):
        big, log_big = shifted[i], log_shifted[i]
        r = 1 / big
        s = r * r
        c = ((((((C7 * s + C6) * s + C5) * s + C4) * s + C3) * s + C2) * s + C1) * s + C0
        d = ((((((D7 * s + D6) * s + D5) * s + D4) * s + D3) * s + D2) * s + D1) * s + D0
        log_gamma = (big - 0.5) * log_big - big + HALF_LOG_TWO_PI + c * r
        log_product[i] = log_gamma - log_product[i]
        slope[i] = log_big - 0.5 * r - d * s - slope[i]


@compiled
def log_rising(x: float, n: float) -> float:
    """Return ln of x (x + 1) ... (x + n - 1): `gammaln(x + n) - gammaln(x)`, for whole n."""
    product = 1.0
    if n < SHIFT:
        for i in range(int(n)):
            product *= x + i
        return float(np.log(product))
    end = x + n
    while x < SHIFT:
        product *= x
        x += 1
    difference = _stirling(end) - _stirling(x)
    return float(difference + np.log(product)) if product != 1 else difference


@compiled
def _stirling(x: float) -> float:
    """Return `gammaln(x) - log(2 * pi) / 2`, for x >= 8."""
    r = 1 / x
    s = r * r
    c = ((((((C7 * s + C6) * s + C5) * s + C4) * s + C3) * s + C2) * s + C1) * s + C0
    return float((x - 0.5) * np.log(x) - x + c * r)
