"""Fusion of cues: what each says in nats of rarity, weighed by what it finds in this scene.

Each statistic of a document has a rarity, -ln of the probability that normal footage reaches it:
its `Tail`. A statistic that finds many implants at a small rate of false alarms deserves more trust
in this scene than one that finds none: its trust is the cube root of the share that it finds (at
least what it finds by chance), between trusting all alike and in proportion. The score of a
document is the largest product of rarity and trust, plus a tenth (less with little footage) of the
rarity of its normality by the topic model, `tail`: what moves as it does elsewhere or at another
time is unusual for the behaviour alone. Where behaviours take turns, as far as turns predict
held-out footage, three tenths of it are added, and 0.15 of the rarity by the turn: what is a little
unusual anyway, and out of its turn, is more than either. What stands is one of the products, where
it would find most things that have stood for a minute anywhere. That score has a tail of its own:
the normality of a document is ln p of normal footage scoring as high.

A few minutes of footage show neither tails nor trust. A prior of other cameras may complete them:
values that normal documents of a fleet reach stand beside the camera's own, and shares of implants
are weighed with those of the fleet. Statistics of different cameras are compared in units of their
medians.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.compiled import compiled
from habitus.scene.implants import KINDS
from habitus.scene.thresholds import JOIN, SHAPE_PRIOR, Tail, bisected

EXPONENTIAL = (0.0, 0.1)
"""Prior of the shape of a tail of nats, the score and the surprisal of what stands: a probability
of exp(-x) is reached exp(-x) of the time."""
FALSE_ALARMS = 0.005
"""Share of normal documents that each statistic may call abnormal where its trust is measured."""
HIGHEST = 1e6
"""Scores are searched up to this."""
BEHAVIOUR_TRUST, FEW = 0.1, 50
"""Trust in the topic model with much footage where nobody takes turns, and the number of documents
that gives half of it: a model of 20 documents knows no behaviours."""
REACHED = 0.75
"""Share of the implants whose score lies under `Fusion.reach`."""


N_KINDS = len(KINDS) + 1
FULL_GAIN = 0.1
"""Nats per moving cell from which on a cue of the hour is trusted as any other."""
LEAST_GAIN, FULL_TURN_GAIN = 0.25, 0.45
"""Nats per moving cell from which on behaviours take turns, and wholly. Where nobody takes turns,
what moves goes on moving for some seconds: that alone brings 0.0 to 0.2 on walkways and in crowds;
traffic lights bring 0.4 to 0.7."""
TURNING_TRUST, TURN_TRUST = 0.3, 0.15
"""Where they do, trust in the topic model with much footage, and in the turn."""
LEAST_STANDING, FULL_STANDING = 0.5, 0.9
"""Shares of implants that stand, from which on standing is a cue, and is trusted as any other:
junctions with long queues have .3 to .5, a road and a plaza over .9."""
NOTHING = 0.01
"""Statistics in units of their medians are not distinguished below this."""
UNLIKE, MOST_COMPARED = 2.0, 300
"""Distance from which on a camera is not like a fleet, and the documents that it is measured with
at most: young junctions are at most 1.3 from other junctions, a walkway is 2.6 from them."""


_Tables = tuple[Indices, Array, Array, Array]
"""See `_stacked`."""


class ImplantStatistics(NamedTuple):
    """Documents with an implant each, by habits that have not seen them."""

    statistics: Array
    """Documents x `STATISTICS`."""
    sources: Indices
    """Number of the held-out document that each was put into."""


class CueColumns(NamedTuple):
    """What each cue says of documents in time order; None of what is no cue."""

    statistics: Array
    """Documents x statistics: those of `STATISTICS`, then of `HOUR_STATISTICS` where the hour is a
    cue."""
    behaviours: Array | None = None
    """Normality by the topic model, 0 where it did not judge."""
    turn_scans: Array | None = None
    """Evidence by the turn."""
    standing: Array | None = None
    """Statistic of what stands."""

    def taken(self, documents: Indices) -> "CueColumns":
        """Return what is said of some documents."""
        return CueColumns._make(None if one is None else one[documents] for one in self)

    def latest(self, further: "CueColumns", most: int) -> "CueColumns":
        """Return what is said of these documents, then of further ones; of the last so many."""
        pairs = zip(self, further, strict=True)
        return CueColumns._make(
            None if one is None else np.concatenate([one, other])[-most:] for one, other in pairs
        )


class FusionPrior(NamedTuple):
    """What other cameras say of statistics and scores, in units of the median of a camera."""

    statistics: Array
    """What normal documents reach, in equal steps of probability: documents x `STATISTICS`."""
    scores: Array
    """Likewise the score, one for each of these documents."""
    found: Array
    """Share of implants that each statistic finds."""
    reach: float
    """See `Fusion.reach`."""

    def fits(self, statistics: Array) -> bool:
        """Return whether held-out documents of a camera are spread like those of the fleet.

        The measure is that of Kolmogorov and Smirnov: the largest difference of the cumulative
        shares times sqrt(n), with n documents or `MOST_COMPARED`, in the mean over statistics.
        """
        n, worth = len(statistics), len(self.statistics)
        scaled = np.maximum(statistics / median_units(statistics), NOTHING)
        fleet = np.maximum(self.statistics, NOTHING)
        apart = [
            abs(
                np.searchsorted(np.sort(theirs), column, side="right") / worth
                - np.searchsorted(np.sort(column), column, side="right") / n
            ).max()
            for theirs, column in zip(fleet.T, scaled.T, strict=True)
        ]
        return bool(np.sqrt(min(n, MOST_COMPARED)) * np.mean(apart) < UNLIKE)

    def blended(self, own: Array | float, fleet: Array | float, n_documents: int) -> Array:
        """Return the mean of own and fleet's value, each by the documents that it rests on."""
        worth = len(self.statistics)
        return np.asarray((n_documents * own + worth * fleet) / (n_documents + worth))


@dataclass(frozen=True, eq=False)
class Fusion:
    """Rarity of documents, given their statistics.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> normal = rng.exponential(size=(2000, 8))
    >>> implanted = ImplantStatistics(normal[:200] + 9.0, np.arange(200))
    >>> fusion = Fusion.of(CueColumns(normal), np.ones(2000, dtype=bool), implanted)
    >>> normality = fusion.normality(CueColumns(rng.exponential(size=(2000, 8))))
    >>> 80 < (normality < np.log(0.05)).sum() < 120
    np.True_
    """

    statistics: Array
    """Of held-out documents in time order, as are `behaviours`, `turn_scans` and `standing`: see
    `CueColumns`."""
    judged: Flags
    trust: Array
    """Weight of each statistic: the cube root of the share of implants that it finds."""
    reach: float = np.inf
    """Score that one implant in four exceeds: what an anomaly can be expected to reach."""
    join: int = JOIN
    behaviours: Array | None = None
    """None where there is no calibrated topic model."""
    fleet_statistics: Array | None = None
    """Statistics of normal documents of other cameras, in the units of this one."""
    fleet_scores: Array | None = None
    """Likewise scores."""
    turn_scans: Array | None = None
    turn_gain: float = 0.0
    """Nats per moving cell by which the turn predicts held-out footage."""
    standing: Array | None = None
    standing_trust: float = 0.0
    """Its weight: see `trusting_standing`."""

    @classmethod
    def of(
        cls,
        cues: CueColumns,
        judged: Flags,
        implanted: ImplantStatistics | None,
        join: int = JOIN,
        prior: FusionPrior | None = None,
        turn_gain: float = 0.0,
        standing_implants: Array | None = None,
    ) -> "Fusion":
        """Return the fusion for cues of held-out documents, and statistics of implants.

        Every statistic is trusted alike where no implant could be made, or none was found.
        """
        alike = cls(
            judged=judged,
            trust=np.ones(cues.statistics.shape[1]),
            join=join,
            turn_gain=turn_gain,
            **cues._asdict(),
        )
        if standing_implants is not None and judged.any():
            alike = alike.trusting_standing(standing_implants)
        if implanted is None or not judged.any():
            return alike
        n = int(judged.sum())
        if prior is not None:
            units = median_units(cues.statistics[judged])
            alike = replace(alike, fleet_statistics=prior.statistics * units)
        shares = (alike.rarities(implanted.statistics) > -np.log(FALSE_ALARMS)).mean(axis=0)
        if prior is not None:
            shares = prior.blended(shares, prior.found, n)
        # By chance a statistic finds as many; with little footage to judge by, fewer are found.
        trust = np.cbrt(np.maximum(shares, FALSE_ALARMS))
        fusion = replace(alike, trust=trust) if shares.any() else alike
        # An implant makes no document more usual: by all else it is as unusual as it was.
        without = alike.cues.taken(implanted.sources)
        scores = fusion.scores(without._replace(statistics=implanted.statistics))
        reach = float(np.quantile(scores, REACHED))
        if prior is None:
            return replace(fusion, reach=reach)
        unit = float(median_units(fusion.held_out_scores[judged]))
        return replace(
            fusion,
            reach=float(prior.blended(reach, prior.reach * unit, n)),
            fleet_scores=prior.scores * unit,
        )

    def beside(self, statistics: Array, implanted: Array, gain: float, n_days: int) -> "Fusion":
        """Return the fusion with the hour as a further cue.

        Of all implants, those at another hour are one kind more, and the only one that it finds.
        After n days, the next is unlike all of them with a probability of 1 / (n + 1), and says
        nothing then: it is trusted n / (n + 1). `gain` is that of `ContextFit` on held-out days.
        """
        alone = replace(
            self, statistics=statistics, trust=np.ones(statistics.shape[1]), fleet_statistics=None
        )
        shares = (alone.rarities(implanted) > -np.log(FALSE_ALARMS)).mean(axis=0) / N_KINDS
        predicts = min(gain / FULL_GAIN, 1.0) * n_days / (n_days + 1)
        trust = predicts * np.cbrt(np.maximum(shares, FALSE_ALARMS))
        return replace(
            self,
            statistics=np.hstack([self.statistics, statistics]),
            trust=np.concatenate([self.trust, trust]),
        )

    def trusting_standing(self, implanted: Array) -> "Fusion":
        """Return the fusion with trust in what stands, given the statistics of implants.

        It is trusted by the share of these that it finds: no other statistic could find them.
        Where normal footage has things that stand as long as most of them, standing is no cue:
        that is asked of a tail that may be heavy, as where there are queues some stand longer than
        any before.
        """
        heavy = None if self.standing is None else self._tables_of(-self.standing)
        rarities = _rarities(implanted, heavy, 1.0)
        share = float((rarities > -np.log(FALSE_ALARMS)).mean())
        finds = min((share - LEAST_STANDING) / (FULL_STANDING - LEAST_STANDING), 1.0)
        if finds <= 0:
            return replace(self, standing=None)
        return replace(self, standing_trust=finds * float(np.cbrt(share)))

    @property
    def cues(self) -> CueColumns:
        """What is known of the held-out documents."""
        return CueColumns(self.statistics, self.behaviours, self.turn_scans, self.standing)

    @cached_property
    def tails(self) -> tuple[Tail, ...]:
        """The tail of each statistic."""
        fleet = () if self.fleet_statistics is None else -self.fleet_statistics.T
        return tuple(
            self._tail(-column, theirs)
            for column, theirs in zip_longest(
                self.statistics.T, fleet
            )  # of hours, a fleet has none
        )

    @cached_property
    def held_out(self) -> Array:
        """Normality of the held-out documents in time order; 0 where not judged."""
        return np.where(self.judged, self.normality_of_scores(self.held_out_scores), 0.0)

    @cached_property
    def held_out_scores(self) -> Array:
        """Score of the held-out documents in time order."""
        return self.scores(self.cues)

    def rarities(self, statistics: Array) -> Array:
        """Return trust times rarity of each statistic, in nats: documents x statistics."""
        out = np.empty(statistics.shape)
        _look_up(statistics, *self._tables, self.trust, out)
        return out

    @cached_property
    def turns_predict(self) -> float:
        """How far behaviours take turns: 0 where they do not, 1 where they wholly do."""
        return min(max((self.turn_gain - LEAST_GAIN) / (FULL_TURN_GAIN - LEAST_GAIN), 0.0), 1.0)

    @cached_property
    def behaviour_trust(self) -> float:
        """Weight of the topic model."""
        n = int(self.judged.sum())
        further = (TURNING_TRUST - BEHAVIOUR_TRUST) * self.turns_predict
        return (BEHAVIOUR_TRUST + further) * n / (n + FEW)

    def behaviour_rarities(self, behaviours: Array) -> Array:
        """Return trust times rarity of normalities by the topic model, in nats."""
        return _rarities(-behaviours, self._behaviour_tables, self.behaviour_trust)

    @cached_property
    def turn_trust(self) -> float:
        """Weight of the turn."""
        n = int(self.judged.sum())
        return TURN_TRUST * self.turns_predict * n / (n + FEW)

    def turn_rarities(self, scans: Array) -> Array:
        """Return trust times rarity of evidence by the turn, in nats."""
        return _rarities(scans, self._turn_tables, self.turn_trust)

    def standing_rarities(self, statistics: Array) -> Array:
        """Return trust times rarity of what stands, in nats."""
        return _rarities(statistics, self._standing_tables, self.standing_trust)

    def scores(self, cues: CueColumns) -> Array:
        """Return the score of documents: the largest rarity, plus those of behaviours and turn."""
        scores = np.asarray(self.rarities(cues.statistics).max(axis=1, initial=0.0))
        if cues.standing is not None:
            scores = np.maximum(scores, self.standing_rarities(cues.standing))
        if cues.behaviours is not None:
            scores = scores + self.behaviour_rarities(cues.behaviours)
        return scores if cues.turn_scans is None else scores + self.turn_rarities(cues.turn_scans)

    def normality(self, cues: CueColumns) -> Array:
        """Return ln of the probability that normal documents are as unusual: 0 or less."""
        return self.normality_of_scores(self.scores(cues))

    def normality_of_scores(self, scores: Array) -> Array:
        """Return the normality of documents with these scores."""
        return -_rarities(scores, self._score_tables, 1.0)

    def score_of_normality(self, normality: float) -> float:
        """Return the least score of this normality or less: the inverse of the above."""

        def reached(score: float) -> bool:
            return not self.normality_of_scores(np.array([score]))[0] > normality

        high = 1.0
        while high < HIGHEST and not reached(high):
            high *= 2
        return bisected(reached, 0.0, high, rounds=80)

    @cached_property
    def tail(self) -> Tail:
        """The tail of minus the score of normal footage."""
        fleet = None if self.fleet_scores is None else -self.fleet_scores
        return self._tail(-self.held_out_scores, fleet, EXPONENTIAL)

    def _tail(
        self, scores: Array, fleet: Array | None, shape_prior: tuple[float, float] = SHAPE_PRIOR
    ) -> Tail:
        """Return the tail of own documents, beside which those of a fleet stand one by one."""
        judged = self.judged
        if fleet is not None:
            apart = np.zeros((len(fleet), self.join + 2))
            apart[:, -1] = fleet
            scores = np.concatenate([scores, apart.ravel()])
            judged = np.concatenate([judged, (np.arange(apart.size) + 1) % (self.join + 2) == 0])
        return Tail.of(scores, judged, self.join, shape_prior, int(self.judged.sum()))

    @cached_property
    def _tables(self) -> _Tables:
        return _stacked(self.tails)

    @cached_property
    def _behaviour_tables(self) -> _Tables | None:
        return None if self.behaviours is None else self._tables_of(self.behaviours)

    @cached_property
    def _turn_tables(self) -> _Tables | None:
        return None if self.turn_scans is None else self._tables_of(-self.turn_scans)

    @cached_property
    def _standing_tables(self) -> _Tables | None:
        return None if self.standing is None else self._tables_of(-self.standing, EXPONENTIAL)

    def _tables_of(self, scores: Array, shape_prior: tuple[float, float] = SHAPE_PRIOR) -> _Tables:
        return _stacked((Tail.of(scores, self.judged, self.join, shape_prior),))

    @cached_property
    def _score_tables(self) -> _Tables:
        return _stacked((self.tail,))


def median_units(values: Array) -> Array:
    """Return the median of each column; where that is 0 its mean, and 1 where that is 0 too.

    Examples
    --------
    >>> median_units(np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [9.0, 3.0, 0.0]]))
    array([2., 1., 1.])
    """
    median, mean = np.median(values, axis=0), values.mean(axis=0)
    return np.where(median > 0, median, np.where(mean > 0, mean, 1.0))


def _rarities(values: Array, tables: _Tables | None, trust: float) -> Array:
    """Return trust times rarity of values that grow with it; 0 where there is no tail."""
    if tables is None:
        return np.zeros(len(values))
    out = np.empty((len(values), 1))
    _look_up(values[:, None], *tables, np.array([trust]), out)
    return out[:, 0]


def _stacked(tails: tuple[Tail, ...]) -> _Tables:
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
        start, last = indptr[k], indptr[k + 1] - 1
        for t in range(len(values)):
            value = values[t, k]
            # The first node that is not below the value, by bisection; NaN is beyond all.
            at, end = start, last + 1
            while at < end:
                middle = (at + end) // 2
                if nodes[middle] >= value:
                    end = middle
                else:
                    at = middle + 1
            if at == start:
                surprisal = surprisals[start]
            elif at <= last:
                share = (value - nodes[at - 1]) / (nodes[at] - nodes[at - 1])
                surprisal = surprisals[at - 1] + share * (surprisals[at] - surprisals[at - 1])
            else:
                first, second = levels[k] + nodes[last], levels[k] + nodes[last - 1]
                power = (surprisals[last] - surprisals[last - 1]) / np.log(first / second)
                surprisal = surprisals[last] + power * np.log1p((value - nodes[last]) / first)
            out[t, k] = weights[k] * surprisal
