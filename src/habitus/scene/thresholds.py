"""Thresholds: a fixed value, a share of the documents, or a budget of alerts per day.

The budget is met with the scores of normal footage that the model has not learnt from. In the bulk
they are counted. Below a level, where too few are left to count, the excess of a score below the
level follows a generalised Pareto distribution,

    P(excess > y) = (1 + shape * y / scale) ** (-1 / shape),

as the theory of rare events has it. Its shape decides how often the extreme occurs and is never
known from few documents: it has a prior, and everything below is averaged over the posterior of
shape, scale and rate. The posterior lies on a fixed grid, so that results have no random part.

An alarm is a run of documents: runs are counted, not documents, and their lowest scores are the
excesses that the rate of alarms rests on. The survival of single documents rests on the excesses of
all of them; neighbours (`CORRELATED`) are not independent, so that their likelihood is raised to
the power groups of neighbours / documents.

A budget is a promise. Where the footage lasts as long as what the budget is for, a day or the time
that `ENOUGH` alarms take, its threshold is the highest score at which the rate of alarms is at most
the budget with a probability of `CONFIDENCE`. Shorter footage cannot promise as much: there the
expected rate is the budget. Alarms also come in bursts, such as a night with insects among quiet
ones, which a rate over weeks hides: no stretch of the footage in which the budget allows `ENOUGH`
alarms has more than `BURSTS` times as many. Footage to come may be unlike any that was learnt
from, as the first rain is: `AlarmLimit` holds the same there.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.errors import InvalidInputError
from habitus.rarity import duration_in_words

JOIN = 10
"""Usual documents of a second between two unusual ones that still belong to one event: to people,
what comes back within ten seconds is one happening."""
CORRELATED = 2
"""Usual documents between two unusual ones that still say the same: what moves is in the view for
some seconds."""
DAY = 86_400.0
SHAPE_PRIOR = (0.2, 0.2)
"""Prior of the shape of a tail, mean and standard deviation: Gaussian, within `SHAPES`. A Gaussian
tail at the levels in use looks like -0.15, an exponential one is 0, a log-normal one looks like
0.35."""
SHAPES = (-0.5, 0.9)
N_SHAPES, N_SCALES = 29, 25
NEARLY_0 = 1e-4
"""A shape that stands for 0, where the formula has a limit instead of a value."""
NEGLIGIBLE = 1e-12
"""Relative posterior density under which a point of the grid is left out."""
CONFIDENCE = 0.9
"""Probability with which a budget is kept."""
ENOUGH = 5
"""Alarms that a budget allows in footage shorter than a day that it is kept so in."""
BURSTS, N_STRETCHES = 2, 16
"""How many times the budget a stretch of normal footage may have, and the number of stretches that
long footage has at most: the busiest of many has more by chance alone."""
MOST_RANKED, N_RANKED = 4096, 128
"""Of the documents with the lowest scores, how many bursts are looked for in, and at how many
thresholds."""
TABLE = np.expm1(np.linspace(0, np.log(1e6), 257))[1:]
"""Excesses that survival is tabulated at, in units of the mean excess."""


class ExpectedAlarms(NamedTuple):
    """Expected false alarms: alarms that normal footage of a given length raises."""

    low: float
    """Lower end of the 90 % interval."""
    mean: float
    high: float
    """Upper end of the 90 % interval."""

    def in_words(self) -> str:
        """Return the interval.

        Examples
        --------
        >>> ExpectedAlarms(0.0, 4.2, 9.0).in_words()
        '0 to 9'
        >>> ExpectedAlarms(0.0, 0.1, 0.0).in_words()
        'no'
        """
        if self.low == self.high:
            return f"{self.low:g}" if self.low else "no"
        return f"{self.low:g} to {self.high:g}"


def join_of(clip: float) -> int:
    """Return how many usual documents of `clip` seconds may lie within one event.

    Examples
    --------
    >>> [join_of(clip) for clip in (0.5, 1.0, 2.0, 60.0)]
    [20, 10, 5, 0]
    """
    return round(JOIN / clip)


def runs(flags: Flags, join: int = JOIN) -> list[tuple[int, int]]:
    """Return first and last index of each run of flagged documents.

    Gaps of up to `join` documents are closed.

    Examples
    --------
    >>> runs(np.array([1, 0, 1, 0, 0, 0, 1], dtype=bool), join=2)
    [(0, 2), (6, 6)]
    """
    flagged = np.flatnonzero(flags)
    if not len(flagged):
        return []
    starts = _run_starts(flagged, join)
    ends = np.append(starts[1:], len(flagged)) - 1
    return [(int(a), int(b)) for a, b in zip(flagged[starts], flagged[ends], strict=True)]


def bisected(holds: Callable[[float], bool], low: float, high: float, rounds: int = 60) -> float:
    """Return the least number of a range from which on a condition holds, by bisection."""
    for _ in range(rounds):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def share_threshold(scores: Array, share: float) -> float:
    """Return the score below which this share of the documents lies; the paper uses 0.02."""
    if not 0 < share < 1:
        raise InvalidInputError(
            f"share must lie between 0 and 1, found {share:g}", parameter="share"
        )
    if not len(scores):
        raise InvalidInputError(
            "a share of documents needs some that are long enough to judge, found none",
            parameter="share",
        )
    return float(np.quantile(scores, share))


class ExcessPosterior(NamedTuple):
    """Posterior of a generalised Pareto distribution, on a grid of shapes and scales."""

    shape: Array
    scale: Array
    weight: Array
    """Posterior probability of each point; the sum is one."""

    @classmethod
    def of(
        cls,
        excesses: Array,
        n_independent: float | None = None,
        shape_prior: tuple[float, float] = SHAPE_PRIOR,
    ) -> "ExcessPosterior":
        """Return the posterior given at least one excess, above 0.

        The prior of the scale is 1 / scale. Its grid follows the scale that gives the observed
        median, shape by shape. The excesses are worth `n_independent` observations; all where None.
        """
        n = len(excesses) if n_independent is None else n_independent
        shape = np.linspace(*SHAPES, N_SHAPES)[:, None]
        shape = np.where(np.abs(shape) < NEARLY_0, NEARLY_0, shape)
        spread = np.linspace(-8, 8, N_SCALES) / np.sqrt(n)
        scale = np.median(excesses) * shape / np.expm1(shape * np.log(2)) * np.exp(spread)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(1 + (shape / scale)[..., None] * excesses, 0)).mean(axis=-1)
        mean, deviation = shape_prior
        log_prior = -0.5 * ((shape - mean) / deviation) ** 2
        log_posterior = log_prior - n * (np.log(scale) + (1 + 1 / shape) * logs)
        density = np.exp(log_posterior - log_posterior.max())
        kept = density > NEGLIGIBLE
        return cls(
            np.broadcast_to(shape, scale.shape)[kept],
            scale[kept],
            density[kept] / density[kept].sum(),
        )

    def survivals(self, excess: Array | float) -> Array:
        """Return P(excess > y) at each point of the grid: shape of `excess` x points."""
        base = 1 + self.shape / self.scale * np.asarray(excess)[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(-np.log(np.maximum(base, 0)) / self.shape))

    def survival(self, excess: Array | float) -> Array:
        """Return P(excess > y), the mean over the posterior."""
        return np.asarray(self.survivals(excess) @ self.weight)


@dataclass(frozen=True, eq=False)
class Tail:
    """How rare low scores are in normal footage: counted in the bulk, extrapolated beyond.

    Examples
    --------
    >>> scores = -np.random.default_rng(0).exponential(size=3600)
    >>> tail = Tail.of(scores, np.ones(3600, dtype=bool))
    >>> threshold = tail.threshold(alerts=5, n_documents=86_400)
    >>> round(tail.expected_alarms(threshold, 86_400).mean, 6)
    5.0
    """

    level: float
    """Scores below it are in the tail."""
    n_documents: int
    """Documents that were judged."""
    n_own: int
    """Those of them that are of this camera, not of a fleet."""
    thresholds: Array
    """The level and all scores above it, ascending, and one beyond: to count the runs below."""
    n_runs: Indices
    """Runs of documents below each of these."""
    peaks: ExcessPosterior
    """Excess of the lowest document of a run."""
    unit: float
    """Mean excess of these."""
    nodes: Array
    """Scores that the survival of a document is tabulated at, ascending."""
    surprisals: Array
    """-ln survival at the nodes."""
    lowest: Array
    """The lowest scores of this camera, ascending."""
    lowest_at: Indices
    """Number of the document of each of these."""
    judged_before: Indices
    """How many documents were judged before each of these."""
    join: int

    @classmethod
    def of(
        cls,
        scores: Array,
        judged: Flags,
        join: int = JOIN,
        shape_prior: tuple[float, float] = SHAPE_PRIOR,
        n_own: int | None = None,
    ) -> "Tail":
        """Return the tail of the scores of normal documents in time order.

        The tail holds the sqrt(n) lowest of n scores: ever more to estimate from, ever further
        out. Documents that were not judged separate runs, and do not count. `n_own` of those judged
        are of this camera, all where None.
        """
        times = np.flatnonzero(judged)
        if not len(times):
            raise InvalidInputError(
                "a budget of alerts needs normal footage in which something moves, found no "
                "document that is long enough to judge",
                parameter="threshold",
            )
        order = np.argsort(scores[times])
        ascending = scores[times][order]
        n_own = len(times) if n_own is None else n_own
        lowest = np.argsort(scores[times[:n_own]])[:MOST_RANKED]
        level = _level(ascending)
        n_below = _counts_below(ascending, level)
        below = times[scores[times] < level]
        excesses = level - scores[below]
        starts = _run_starts(below, join)
        peaks = np.maximum.reduceat(excesses, starts) if len(below) else excesses
        if not len(below):  # all alike: one excess of the size of the scores stands for none
            excesses = peaks = np.array([abs(level) or 1.0])
        n_independent = max(len(_run_starts(below, CORRELATED)), 1)
        every = ExcessPosterior.of(excesses, n_independent, shape_prior)
        thresholds = np.append(ascending[n_below[:-1]], np.nextafter(ascending[-1], np.inf))
        counted = -np.log((n_below[1:] + 0.5) / (len(times) + 1))
        # Where many score exactly the level, only those below it are in the tail.
        at_level = -np.log((n_below[0] + 1.5) / (len(times) + 1))
        excess, surprisals = _tail_table(every, float(excesses.mean()))
        return cls(
            level=level,
            n_documents=len(times),
            n_own=n_own,
            thresholds=thresholds,
            n_runs=_runs_of_lowest(times[order], len(scores), join)[n_below],
            peaks=ExcessPosterior.of(peaks, shape_prior=shape_prior),
            unit=float(peaks.mean()),
            nodes=np.concatenate([level - excess, thresholds[:-1]]),
            surprisals=np.concatenate([at_level + surprisals, counted]),
            lowest=scores[times[lowest]],
            lowest_at=times[lowest],
            judged_before=lowest,
            join=join,
        )

    def surprisal(self, scores: Array | float) -> Array:
        """Return -ln of the probability that a normal document scores this low, in nats.

        It never falls as the score falls, and is finite for any finite score.
        """
        surprisals = np.interp(scores, self.nodes, self.surprisals)
        beyond = np.maximum(self.nodes[0] - np.asarray(scores), 0)
        if not beyond.any():
            return np.asarray(surprisals)
        # Beyond the table survival goes on as the power of the excess that it ends with.
        first, second = self.level - self.nodes[:2]
        power = (self.surprisals[0] - self.surprisals[1]) / np.log(first / second)
        return np.asarray(surprisals + power * np.log1p(beyond / first))

    def survival(self, scores: Array | float) -> Array:
        """Return the probability that a judged document of normal footage scores this low."""
        return np.maximum(np.exp(-self.surprisal(scores)), np.finfo(np.float64).tiny)

    def threshold(self, alerts: float, n_documents: float) -> float:
        """Return the highest score below which at most `alerts` alarms come in `n_documents`.

        Of a budget beyond `most_alarms` it is the threshold of the most alarms. Where at least as
        many documents were seen, or as many as have `ENOUGH` alarms, the budget is kept with a
        probability of `CONFIDENCE`, otherwise in the mean; no stretch of them has a burst.
        """
        if not 0 < alerts < np.inf:
            raise InvalidInputError(
                f"a budget must be above 0 alerts per day and finite, found {alerts:g}",
                parameter="alerts_per_day",
            )
        in_bursts = self._burst_threshold(alerts, n_documents)
        return min(self._rate_threshold(alerts, n_documents), in_bursts)

    def _rate_threshold(self, alerts: float, n_documents: float) -> float:
        """Return the highest score at which the rate of alarms keeps a budget."""
        if not self._keeps(alerts, n_documents, int(self.n_runs[0])):
            return self._tail_threshold(alerts, n_documents)
        kept, most = int(self.n_runs[0]), int(self.n_runs.max())
        while kept < most:  # the most runs that keep the budget
            middle = (kept + most + 1) // 2
            keeps = self._keeps(alerts, n_documents, middle)
            kept, most = (middle, most) if keeps else (kept, middle - 1)
        more = np.flatnonzero(self.n_runs > kept)
        return float(self.thresholds[more[0] - 1 if len(more) else self.n_runs.argmax()])

    def least_alerts(self, score: float, n_documents: float) -> float:
        """Return the least budget whose threshold this score is below: `threshold`, the other way.

        A score that no budget makes an alarm has the largest budget that any score has.
        """
        excess = max(self.level - score, 0.0)
        last = np.searchsorted(self.thresholds, score, side="right") + 1
        n_runs = int(self.n_runs[0] if excess else self.n_runs[:last].max())

        def keeps(log_alerts: float) -> bool:
            return self._keeps(float(np.exp(log_alerts)), n_documents, n_runs, excess)

        ranked, rates = self._bursts
        above = min(int(np.searchsorted(ranked, score, side="right")), len(ranked) - 1)
        in_bursts = float(rates[above]) * n_documents
        return max(float(np.exp(bisected(keeps, -700.0, 700.0))), in_bursts)

    def expected_alarms(
        self, threshold: float, n_documents: float, *, coverage: float = 0.9
    ) -> ExpectedAlarms:
        """Return the mean number of alarms in `n_documents`, and an interval that holds it.

        The interval, of a probability of `coverage`, is that of a Poisson variable whose rate
        follows the posterior.
        """
        at = min(int(np.searchsorted(self.thresholds, threshold)), len(self.thresholds) - 1)
        counted = self.n_runs[at] + 0.5  # the posterior of the rate under Jeffreys' prior
        share, weight = self._shares(max(self.level - threshold, 0.0))
        means = counted / self.n_documents * n_documents * share
        ends = ((1 - coverage) / 2, (1 + coverage) / 2)
        low, high = (_count_quantile(means, weight, counted, end) for end in ends)
        return ExpectedAlarms(low, float(means @ weight), high)

    def most_alarms(self, n_documents: float) -> float:
        """Return the most alarms that any threshold raises in `n_documents`.

        Where more documents are abnormal, they join to fewer alarms.
        """
        return float((self.n_runs.max() + 0.5) / self.n_documents * n_documents)

    @cached_property
    def _bursts(self) -> tuple[Array, Array]:
        """Scores, ascending, and the least alarms per document that keep bursts below each.

        The latter never fall.
        """
        counts = np.unique(np.geomspace(1, len(self.lowest), N_RANKED).astype(np.int64)) - 1
        ranked = np.unique(self.lowest[counts])
        rates = []
        for n in np.searchsorted(self.lowest, ranked):
            starts = _run_starts(np.sort(self.lowest_at[:n]), self.join)
            alarms = np.sort(self.judged_before[:n])[starts]
            rates.append(_least_rate(alarms, self.n_own / N_STRETCHES))
        return ranked, np.maximum.accumulate(rates)

    def _burst_threshold(self, alerts: float, n_documents: float) -> float:
        """Return the highest score at which no burst breaks a budget; infinite where none does."""
        ranked, rates = self._bursts
        broken = np.flatnonzero(rates > alerts / n_documents)
        return float(ranked[broken[0] - 1]) if len(broken) else np.inf

    def _shares(self, excess: float) -> tuple[Array, Array]:
        """Return the share of runs that exceed the level by as much, and weights of its values."""
        if not excess:
            return np.ones(1), np.ones(1)
        return self.peaks.survivals(excess), self.peaks.weight

    def _keeps(self, alerts: float, n_documents: float, n_runs: int, excess: float = 0.0) -> bool:
        """Return whether a budget for `n_documents` is kept, where `n_runs` were seen.

        Such a run is an alarm where it reaches beyond the level by `excess`.
        """
        from scipy.special import gammainc

        share, weight = self._shares(excess)
        most, counted = alerts / n_documents * self.n_documents, n_runs + 0.5
        if n_documents > self.n_own:
            enough = ENOUGH * self.n_documents / self.n_own
            if counted * (share @ weight) <= min(most, enough):
                return True
            if most < enough:
                return False
        return bool(gammainc(counted, most / np.maximum(share, 1e-200)) @ weight >= CONFIDENCE)

    def _tail_threshold(self, alerts: float, n_documents: float) -> float:
        """Return the highest score of the tail that keeps a budget, by bisection."""

        def excess(steps: float) -> float:
            return float(self.unit * np.expm1(steps))

        n_runs = int(self.n_runs[0])
        steps = bisected(lambda s: self._keeps(alerts, n_documents, n_runs, excess(s)), 0.0, 700.0)
        return float(self.level - self.unit * np.expm1(steps))


class RaisedAlarm(NamedTuple):
    """An alarm of before."""

    ago: float
    """Seconds of footage since then."""
    normality: float
    """The lowest of its documents."""
    zone: str = ""
    """Name of the zone that it was in."""


class AlarmLimit:
    """Keeps alarms near `BURSTS` times their budget, whatever happens.

    Once there were so many in the time in which the budget allows `ENOUGH`, only what is less usual
    than all of them is an alarm: a crowd that flees on the day of the first rain still is, so that
    it is no hard cap. Zones may have budgets of their own: only alarms of the same budget count
    against each other. `raised` are alarms of before.

    Examples
    --------
    >>> limit = AlarmLimit(alerts_per_day=5)
    >>> for _ in range(100):
    ...     limit.seconds += 600
    ...     if limit.allows(-7.0):
    ...         last = limit.seconds
    >>> last, limit.allows(-9.0), limit.allows(-8.0)
    (6000.0, True, False)
    """

    def __init__(self, alerts_per_day: float, raised: Iterable[RaisedAlarm] = ()) -> None:
        self.alerts_per_day = alerts_per_day
        self.zone_budgets: dict[str, float] = {}
        """Alerts per day of zones that have a budget of their own, by name."""
        self.seconds = 0.0
        """Of footage so far."""
        self.n_held = 0
        """Documents that were no alarm because of it."""
        self._raised = sorted((-ago, normality, zone) for ago, normality, zone in raised)
        """Time, lowest normality and zone of the latest alarms."""

    def allows(self, normality: float, zone: str = "") -> bool:
        """Return whether there may be an alarm now; if so, there is one."""
        self._raised = [one for one in self._raised if one[0] > self.seconds - self._stretch(one)]
        budget = self._budget(zone)
        of_budget = [n for _, n, where in self._raised if self._budget(where) == budget]
        if len(of_budget) >= BURSTS * ENOUGH and normality >= min(of_budget):
            self.n_held += 1
            return False
        self._raised.append((self.seconds, normality, zone))
        return True

    def lower(self, normality: float) -> None:
        """Take the normality of a further document of the latest alarm."""
        if self._raised:
            seconds, lowest, zone = self._raised.pop()
            self._raised.append((seconds, min(lowest, normality), zone))

    def in_words(self) -> str:
        """Say what it has done.

        Examples
        --------
        >>> limit = AlarmLimit(alerts_per_day=5)
        >>> limit.n_held = 1
        >>> limit.in_words()[:50]
        '1 more document is below the threshold: after 10 a'
        """
        documents = f"document{' is' if self.n_held == 1 else 's are'}"
        stretch = duration_in_words(stretch_of(self.alerts_per_day))
        return (
            f"{self.n_held} more {documents} below the threshold: after {BURSTS * ENOUGH} alarms "
            f"in {stretch}, for which the budget is {ENOUGH}, only what is less usual than these "
            "is an alarm"
        )

    def _budget(self, zone: str) -> float:
        return self.zone_budgets.get(zone, self.alerts_per_day)

    def _stretch(self, raised: tuple[float, float, str]) -> float:
        return stretch_of(self._budget(raised[2]))


def stretch_of(alerts_per_day: float) -> float:
    """Return the seconds of footage in which a budget allows `ENOUGH` alarms."""
    return ENOUGH * DAY / alerts_per_day


class Bar(NamedTuple):
    """The threshold of an alert budget, and what to expect of it."""

    threshold: float
    expected: ExpectedAlarms
    """Alarms in a day of normal footage."""
    notes: tuple[str, ...] = ()
    """What there is to say about it, one line each."""


def bar_of_budget(
    tail: Tail,
    alerts_per_day: float,
    documents_per_day: float,
    *,
    reach: float = -np.inf,
    n_learnt: float | None = None,
) -> Bar:
    """Return the threshold below which normal footage raises at most a budget of alerts in a day.

    The threshold depends on tail and budget alone. Where so rare a score was never seen, it is
    extrapolated, and a note gives the uncertainty.

    Parameters
    ----------
    tail
        Of the scores of normal footage.
    alerts_per_day
        Budget.
    documents_per_day
        Judged documents in a day.
    reach
        Score that one synthetic anomaly in four is below. A threshold under it keeps the budget
        and finds few anomalies, which a note says.
    n_learnt
        Judged documents of training; those of the tail where None. With a fleet, the tail also has
        documents of other cameras.

    Examples
    --------
    >>> scores = -np.random.default_rng(0).exponential(size=300)
    >>> tail = Tail.of(scores, np.ones(300, dtype=bool))
    >>> bar = bar_of_budget(tail, 5, 86_400, reach=-12)
    >>> round(bar.expected.mean, 6)
    5.0
    >>> bar.notes[0]  # doctest: +ELLIPSIS
    '5 minutes of footage cannot tell what happens 5 times a day: expect 0 to 25 alarms ...'
    >>> bar.notes[1]
    'of synthetic anomalies one in four would be an alarm from about 95 alerts per day on'
    """
    threshold = tail.threshold(alerts_per_day, documents_per_day)
    expected = tail.expected_alarms(threshold, documents_per_day)
    notes, days = [], (n_learnt or tail.n_documents) / documents_per_day
    if days * alerts_per_day < 1:
        notes.append(
            f"{duration_in_words(days * DAY)} of footage cannot tell what happens "
            f"{alerts_per_day:g} times a day: expect {expected.in_words()} alarms in a day (90 %)"
        )
    if alerts_per_day > (most := tail.most_alarms(documents_per_day)):
        notes.append(
            f"{alerts_per_day:g} alerts per day are more than there can be, as alarms next to each "
            f"other are one: expect {float(f'{most:.3g}'):g} per day"
        )
    if threshold <= reach:
        least = _least_budget(tail, reach, documents_per_day)
        notes.append(
            "of synthetic anomalies fewer than one in four would be alarms at any budget"
            if least is None
            else "of synthetic anomalies one in four would be an alarm from about "
            f"{least:g} alerts per day on"
        )
    return Bar(threshold, expected, tuple(notes))


def _least_budget(tail: Tail, score: float, n_documents: float) -> float | None:
    """Return a budget of two digits whose threshold a score is below, the least; None if none."""
    least = tail.least_alerts(score, n_documents)
    unit = 10.0 ** (np.floor(np.log10(least)) - 1)
    for digits in (np.ceil(least / unit), np.ceil(least / unit) + 1):  # 1: rounding
        budget = float(f"{digits * unit:.2g}")
        if tail.threshold(budget, n_documents) > score:
            return budget
    return None


def _run_starts(flagged: Indices, join: int) -> Indices:
    """Return where in the ascending numbers of flagged documents a run starts."""
    return np.flatnonzero(np.diff(flagged, prepend=-join - 2) > join + 1)


def _least_rate(alarms: Indices, stretch: float) -> float:
    """Return the least budget, per document, that alarms at these documents keep in each stretch.

    A stretch is as long as the budget takes for `ENOUGH` alarms, and no shorter than `stretch`.
    """
    most = BURSTS * ENOUGH
    if len(alarms) <= most:
        return 0.0
    shortest = (alarms[most:] - alarms[:-most]).min()
    if shortest >= stretch:
        return float(ENOUGH / shortest)
    within = np.searchsorted(alarms, alarms + stretch) - np.arange(len(alarms))
    return float(within.max() / (BURSTS * stretch))


def _level(ascending: Array) -> float:
    """Return the lowest score that sqrt(n) documents, or with ties at least one, lie below."""
    n = len(ascending)
    level = ascending[min(int(np.ceil(np.sqrt(n))), n - 1)]
    if level == ascending[0]:
        above = ascending[ascending > level]
        level = above[0] if len(above) else level
    return float(level)


def _runs_of_lowest(times: Indices, n_times: int, join: int) -> Indices:
    """Return how many runs the first 0, 1, ... of these documents form.

    A document adds a run, unless flagged ones are within reach; it joins those before and after it,
    unless they are within each other's reach already.
    """
    n, reach = len(times), join + 1
    rank = np.full(n_times + 2 * reach, n)
    rank[times + reach] = np.arange(n)
    ranks = rank[reach:-reach]
    before, after = np.full(n_times, n_times + reach), np.full(n_times, n_times + reach)
    for distance in range(reach, 0, -1):
        before[rank[reach - distance : n_times + reach - distance] < ranks] = distance
        after[rank[reach + distance : n_times + reach + distance] < ranks] = distance
    within = (before <= reach).astype(np.int64) + (after <= reach) - (before + after <= reach)
    return np.concatenate([[0], np.cumsum(1 - within[times])])


def _counts_below(ascending: Array, level: float) -> Indices:
    """Return how many scores lie below the level, below each higher score, and in all."""
    first = np.searchsorted(ascending, level)
    rises = np.flatnonzero(np.diff(ascending[first:])) + 1
    return np.concatenate([[first], first + rises, [len(ascending)]])


def _tail_table(excess: ExcessPosterior, unit: float) -> tuple[Array, Array]:
    """Return excesses, descending, and -ln P(excess > y) of each."""
    survival = excess.survival(unit * TABLE)
    survival = survival[survival > NEGLIGIBLE]
    return unit * TABLE[: len(survival)][::-1], -np.log(survival[::-1])


def _count_quantile(means: Array, weight: Array, shape: float, quantile: float) -> float:
    """Return the quantile of a count: a mixture of negative binomial distributions.

    Each is Poisson with a rate that follows a gamma distribution of this shape.
    """
    from scipy.special import betainc

    def reached(count: int) -> bool:
        at_most = betainc(shape, count + 1, shape / (shape + means))
        return bool(at_most @ weight >= quantile)

    high = 1
    while not reached(high) and high < 2**60:
        high *= 2
    return float(bisect_left(range(high), True, key=reached))
