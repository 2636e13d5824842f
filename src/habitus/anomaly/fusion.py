"""Fusion of cues: what each says in nats of rarity, weighed by what it finds in this scene.

Each statistic of a document has a rarity, -ln of the probability that normal footage reaches it:
its `Tail`. A statistic that finds many implants at a small rate of false alarms deserves more trust
in this scene than one that finds none: its trust is the square root of the share that it finds,
half-way between trusting all alike and in proportion.
The score of a document is the largest product of rarity and trust, and that score has a tail of its
own: the normality of a document is ln p of normal footage scoring as high.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from habitus.anomaly.thresholds import JOIN, Tail
from habitus.arrays import Array, Flags, Indices
from habitus.compiled import compiled
from habitus.habits.evidence import STATISTICS

FALSE_ALARMS = 0.005
"""Share of normal documents that each statistic may call abnormal where its trust is measured."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """Rarity of documents, given their statistics.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> normal = rng.exponential(size=(2000, 8))
    >>> fusion = Fusion.of(normal, np.ones(2000, dtype=bool), normal[:200] + 9.0)
    >>> normality = fusion.normality(rng.exponential(size=(2000, 8)))
    >>> 80 < (normality < np.log(0.05)).sum() < 120
    np.True_
    """

    statistics: Array
    """Of held-out documents in time order: documents x `STATISTICS`."""
    judged: Flags
    trust: Array
    """Weight of each statistic: the square root of the share of implants that it finds."""
    join: int = JOIN

    @classmethod
    def of(
        cls, statistics: Array, judged: Flags, implanted: Array | None, join: int = JOIN
    ) -> "Fusion":
        """Return the fusion for held-out statistics, and those of documents with implants.

        Every statistic is trusted alike where no implant could be made, or none was found.
        """
        trust = np.ones(len(STATISTICS))
        if implanted is not None and judged.any():
            tails = _tails(statistics, judged, join)
            rarity = np.stack(
                [tail.surprisal(-column) for tail, column in zip(tails, implanted.T, strict=True)]
            )
            found = (rarity > -np.log(FALSE_ALARMS)).mean(axis=1)
            trust = np.sqrt(found) if found.any() else trust
        return cls(statistics, judged, trust, join)

    @cached_property
    def tails(self) -> tuple[Tail, ...]:
        """The tail of each statistic."""
        return _tails(self.statistics, self.judged, self.join)

    @cached_property
    def held_out(self) -> Array:
        """Normality of the held-out documents in time order; 0 where not judged."""
        return np.where(self.judged, self.normality(self.statistics), 0.0)

    def rarities(self, statistics: Array) -> Array:
        """Return trust times rarity of each statistic, in nats: documents x `STATISTICS`."""
        out = np.empty(statistics.shape)
        _look_up(statistics, *self._tables, self.trust, out)
        return out

    def normality(self, statistics: Array) -> Array:
        """Return ln of the probability that normal documents are as unusual: 0 or less."""
        score = self.rarities(statistics).max(axis=1, initial=0.0)
        out = np.empty((len(score), 1))
        _look_up(score[:, None], *self._score_tables, np.ones(1), out)
        return -out[:, 0]

    @cached_property
    def _tables(self) -> tuple[Indices, Array, Array, Array]:
        return _stacked(self.tails)

    @cached_property
    def _score_tables(self) -> tuple[Indices, Array, Array, Array]:
        score = self.rarities(self.statistics).max(axis=1, initial=0.0)
        return _stacked((Tail.of(-score, self.judged, self.join),))


def _tails(statistics: Array, judged: Flags, join: int) -> tuple[Tail, ...]:
    return tuple(Tail.of(-column, judged, join) for column in statistics.T)


def _stacked(tails: tuple[Tail, ...]) -> tuple[Indices, Array, Array, Array]:
    """Return the tables of tails one after the other, over values that grow with rarity."""
    indptr = np.concatenate([[0], np.cumsum([len(tail.nodes) for tail in tails])])
    nodes = np.concatenate([-tail.nodes[::-1] for tail in tails])
    surprisals = np.concatenate([tail.surprisals[::-1] for tail in tails])
    return indptr, nodes, surprisals, np.array([tail.level for tail in tails])


@compiled
def _look_up(
    values: Array,
    indptr: Indices,
    nodes: Array,
    surprisals: Array,
    levels: Array,
    weights: Array,
    out: Array,
) -> None:
    """Assign `weights[k] * tails[k].surprisal(-values[:, k])` to each column `k` of `out`."""
    for k in range(values.shape[1]):
        start, end = indptr[k], indptr[k + 1]
        own, table = nodes[start:end], surprisals[start:end]
        last = len(own) - 1
        for t in range(len(values)):
            value = values[t, k]
            at = np.searchsorted(own, value)
            if at == 0:
                found = table[0]
            elif at <= last:
                share = (value - own[at - 1]) / (own[at] - own[at - 1])
                found = table[at - 1] + share * (table[at] - table[at - 1])
            else:
                first, second = levels[k] + own[last], levels[k] + own[last - 1]
                power = (table[last] - table[last - 1]) / np.log(first / second)
                found = table[last] + power * np.log1p((value - own[last]) / first)
            out[t, k] = weights[k] * found
