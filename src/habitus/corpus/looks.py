"""Looks of a scene: small pictures of it by day, at night, by lamps; and whether two show one view.

Light changes the brightness of a picture, hides edges and reverses their contrast; where the edges
are, and along which lines they run, it leaves alone. Pictures are therefore compared by the
orientation of their edges, modulo 180 degrees (A. J. Fitch et al., "Orientation correlation",
2002), by a correlation over all shifts that is whitened in part, so that only what coincides
exactly makes a peak (C. D. Kuglin and D. C. Hines, "The phase correlation image alignment method",
1975). How high a peak is by chance is seen in the same two pictures at wrong shifts: pictures of
one view fit best at about no shift, by a margin; pictures of two views fit as well anywhere.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Image

GRID = (96, 128)
"""Rows and columns of a look."""
MOST_LOOKS = 8
"""Looks that a scene is known by, at most."""
LEAST_LIKENESS = 9.0
"""Pictures of one view are at least as alike."""
SAME_LOOK = 30.0
"""Pictures that are as alike are one look."""
REACH, NUDGED = 2, 4
"""Largest shift between two pictures of one view, in pixels of the grid, each way; and of one view
by a camera that was nudged, for which twice the evidence is asked."""
# Rows and columns over which the usual gradient around a pixel is taken, as a standard deviation.
AROUND = 6.0
# Grey levels per pixel that count as noise beside it.
NOISE = 0.5
# Share of pixels with an edge below which a picture is too plain to tell one view from another.
LEAST_DETAIL = 0.1
# Share of the picture's side along which it fades out: its border would be an edge of its own.
FADE = 0.1
# Weights of red, green and blue in brightness.
LUMA = np.array([0.299, 0.587, 0.114])


class Edges(NamedTuple):
    """What a picture is compared by."""

    spectrum: NDArray[np.complex128]
    """Fourier transform of the orientations of its edges."""
    plain: bool
    """Whether it is too plain or dark to tell one view from another."""


def look_of(picture: Image) -> Image:
    """Return a picture (rows x columns, or x 3) as a look: its brightness, averaged to the grid."""
    if picture.shape == GRID:
        return picture
    (_, _, *colours), (n, m) = picture.shape, GRID
    rows = _means(picture @ LUMA if colours else picture, n)
    means = _means(rows.T, m).T
    return np.asarray(
        np.ceil(means - 0.5 - 1e-6), dtype=np.uint8
    )  # whatever the last bit of a half


def likeness(one: Image, other: Image) -> float:
    """Return how surely two pictures of any size show one view, whatever the light.

    That is the correlation at the best shift of at most `REACH`, less that at the best of all
    larger shifts, in standard deviations over those; or half of that for `NUDGED`. NaN if a picture
    is too plain or dark to tell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> street, other = rng.integers(0, 256, (2, 60, 80, 3), dtype=np.uint8)
    >>> likeness(street, 200 - street // 2) > LEAST_LIKENESS > likeness(street, other)
    True
    """
    return alike(edges_of(look_of(one)), edges_of(look_of(other)))


def best_likeness(known: Iterable[Edges], seen: Iterable[Edges]) -> float:
    """Return the likeness of the two most alike pictures of two scenes.

    It is NaN if there are no two that can be compared.
    """
    likenesses = (alike(*pair) for pair in product(known, seen))
    return max((value for value in likenesses if not np.isnan(value)), default=float("nan"))


def joined_looks(looks: Iterable[Image]) -> NDArray[np.uint8]:
    """Return looks, in order of time, without those that are nearly alike: at most `MOST_LOOKS`.

    Of two looks that are one, the later stays. Where there are too many, the one that was not seen
    for the longest goes. What was joined before and is followed by others is joined as all at once
    would be.
    """
    kept: list[tuple[Image, Edges]] = []
    for look in looks:
        edges = edges_of(look)
        others = [each for each in kept if _closeness(each[1], edges) < SAME_LOOK]
        kept = [*others, (look, edges)][-MOST_LOOKS:]
    return np.array([look for look, _ in kept], dtype=np.uint8).reshape(-1, *GRID)


def looks_of(stills: Iterable[Image]) -> NDArray[np.uint8]:
    """Return the looks among stills of a scene, in order of time: medians of those that are one.

    A look is seen at least twice, unless none is; and it shows the view of the look that is seen
    most, or it is of another scene.
    """
    groups: list[list[Image]] = []
    edges: list[Edges] = []
    for still in map(look_of, stills):
        own = edges_of(still)
        close = [_closeness(each, own) for each in edges]
        best = int(np.argmax(close)) if close else -1
        if close and close[best] >= SAME_LOOK:
            groups[best].append(still)
        else:
            groups, edges = [*groups, [still]], [*edges, own]
    return _medians(groups)


def median_picture(pictures: Sequence[Image | Array]) -> Array:
    """Return the median of pictures of one size, pixel by pixel.

    Equals `np.median(pictures, axis=0)`. Pairs of pictures are exchanged, all pixels at once, until
    they are in order (K. E. Batcher, "Sorting networks and their applications", 1968): NumPy sorts
    each pixel by itself, which takes twenty times as long.

    Examples
    --------
    >>> median_picture(np.array([[[9, 1]], [[4, 8]], [[5, 3]]], dtype=np.uint8))
    array([[5., 3.]])
    """
    ordered, n = list(pictures), len(pictures)
    for i, j, lower, higher in _needed_exchanges(n):
        one, other = ordered[i], ordered[j]
        if lower:
            ordered[i] = np.minimum(one, other)
        if higher:
            ordered[j] = np.maximum(one, other)
    return (ordered[(n - 1) // 2].astype(np.float64) + ordered[n // 2]) / 2


@cache
def _needed_exchanges(n: int) -> list[tuple[int, int, bool, bool]]:
    """Return those of `_exchanges` that the median depends on, and on which of their results."""
    needed, found = {(n - 1) // 2, n // 2}, []
    for i, j in reversed(_exchanges(n)):
        if i in needed or j in needed:
            found.append((i, j, i in needed, j in needed))
            needed |= {i, j}
    return found[::-1]


@cache
def _exchanges(n: int) -> list[tuple[int, int]]:
    """Return pairs of `n` positions; whatever is exchanged in their order is sorted in the end.

    Batcher's merge exchange: runs of every second, fourth, eighth... position are merged.
    """
    pairs = []
    widest = 1 << max(n - 1, 0).bit_length() >> 1
    part = widest
    while part:
        apart, offset, following = part, 0, widest
        while True:
            pairs += [(i, i + apart) for i in range(n - apart) if i & part == offset]
            if following == part:
                break
            apart, offset, following = following - part, part, following >> 1
        part >>= 1
    return pairs


def _medians(groups: list[list[Image]]) -> NDArray[np.uint8]:
    """Return the median of each group that is a look of the largest one's scene."""
    most = max(groups, key=len, default=[])
    often = [group for group in groups if group is most or len(group) > 1]
    medians = [median_picture(group).astype(np.uint8) for group in often]
    main = next((i for i, group in enumerate(often) if group is most), 0)
    return joined_looks(
        look
        for i, look in enumerate(medians)
        if i == main or likeness(look, medians[main]) >= LEAST_LIKENESS
    )


def edges_of(picture: Image | Array) -> Edges:
    """Return what a picture, its brightness, is compared by; it stays in its size.

    With g the gradient of a pixel as a complex number and e² the mean of |g|² around it plus that
    of noise, the orientation of an edge is g² / (|g|² + e²): its angle is twice that of the edge,
    its length at most 1.
    """
    rows, columns = picture.shape
    down, across = np.gradient(picture.astype(np.float64))
    gradient = across + 1j * down
    energy = across**2 + down**2
    around = _weights(rows) @ energy @ _weights(columns).T + NOISE**2
    orientation = gradient**2 / (energy + around) * _fading(rows)[:, None] * _fading(columns)
    plain = float((energy > around).mean()) < LEAST_DETAIL
    return Edges(np.fft.fft2(orientation - orientation.mean()), plain)


def alike(one: Edges, other: Edges) -> float:
    """Return the likeness of two looks by their edges; see `likeness`."""
    correlation = _correlated(one, other)
    return max(_margin(correlation, REACH), _margin(correlation, NUDGED) / 2)


def compared(one: Edges, other: Edges, reach: int) -> float:
    """Return how surely two pictures of one size show one view, by their edges.

    That is the correlation at the best shift within reach (pixels, each way), less that at the best
    of all larger shifts, in standard deviations over those; below 0 where they fit better at any of
    these. NaN if one is plain.
    """
    return _margin(_correlated(one, other), reach)


def _correlated(one: Edges, other: Edges) -> Array | None:
    """Return the correlation at each shift, whitened in part; None if one is plain."""
    if one.plain or other.plain:
        return None
    cross = one.spectrum * other.spectrum.conj()
    return np.asarray(np.fft.ifft2(cross / np.sqrt(np.abs(cross) + 1e-9)).real)


def _margin(likeness: Array | None, reach: int) -> float:
    """Return by how much the best shift within reach is better than others; see `compared`."""
    if likeness is None:
        return float("nan")
    shift = _shifts(*likeness.shape)
    best, elsewhere = likeness[shift <= reach].max(), likeness[shift > reach].max()
    far = likeness[shift > 2 * reach + 2]  # the foot of a peak belongs to it
    beaten = elsewhere if elsewhere > best else far.max()
    return float((best - beaten) / (far.std() + 1e-12))


def _closeness(one: Edges, other: Edges) -> float:
    """Return the likeness of two looks; 0 if one is plain, as close as can be if both are."""
    if one.plain and other.plain:
        return np.inf
    return float(np.nan_to_num(alike(one, other)))


def _means(rows: Image | Array, n: int) -> Array:
    """Return the means of `n` equal parts of all rows: `_averages(n, len(rows)) @ rows`.

    Where parts end between rows, groups of rows are averaged alike, each by itself.
    """
    size, columns = rows.shape
    groups = gcd(n, size)
    grouped = rows.reshape(groups, size // groups, columns)
    return (_averages(n // groups, size // groups) @ grouped).reshape(n, columns)


@cache
def _averages(n: int, size: int) -> Array:
    """Return the share of each of `size` pixels in each of `n` equal parts of them."""
    edges = np.linspace(0, size, n + 1)[:, None]
    pixels = np.arange(size)
    covered = np.clip(edges[1:] - pixels, 0, 1) - np.clip(edges[:-1] - pixels, 0, 1)
    return np.asarray(covered / covered.sum(axis=1, keepdims=True))


@cache
def _weights(n: int) -> Array:
    """Return Gaussian weights of `n` pixels around each of them; rows sum to 1."""
    apart = np.arange(n)[:, None] - np.arange(n)
    weights = np.exp(-0.5 * (apart / AROUND) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@cache
def _fading(n: int) -> Array:
    """Return the weight of each of `n` pixels in a row: 1, and falling to 0 towards both ends."""
    depth = (np.minimum(np.arange(n), np.arange(n)[::-1]) + 0.5) / (FADE * n)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.minimum(depth, 1)))


@cache
def _shifts(rows: int, columns: int) -> NDArray[np.int64]:
    """Return the shift that each value of a correlation belongs to, the larger of both ways."""
    down, across = (np.minimum(np.arange(n), n - np.arange(n)) for n in (rows, columns))
    return np.asarray(np.maximum(down[:, None], across))
