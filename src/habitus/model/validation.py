"""Validation of the input of a model: parameters, seeds and documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.corpus.shards import ShardedCorpus
from habitus.errors import InvalidInputError
from habitus.model.expected_counts import EvidenceShards, ShardedEvidence, gather
from habitus.model.learning import LEARNERS
from habitus.model.parameters import Prior

# Counts are checked for fractions in chunks of this size: no second copy of a large corpus.
CHUNK = 65_536
MOST = 1_000_000_000


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`, whole ones or any; True is not taken for 1."""

    least: float
    most: float = np.inf
    whole: bool = True

    def __contains__(self, value: Any) -> bool:
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        return number and bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        end = "inf)" if self.most == np.inf else f"{self.most}]"
        return f"{'an int' if self.whole else 'a float'} in the range [{self.least}, {end}"


AT_LEAST_ONE = (Range(1, MOST),)
NOT_NEGATIVE = Range(0.0, float(MOST), whole=False)
# Assignments store a topic in 16 bits.
SIXTEEN_BITS = (Range(1, np.iinfo(np.uint16).max),)

ALLOWED: dict[str, Sequence[Any]] = {
    "n_topics": SIXTEEN_BITS,
    "n_behaviours": SIXTEEN_BITS,
    "learning": (set(LEARNERS),),
    "prior": (str, Prior),
    "n_iterations": AT_LEAST_ONE,
    "tolerance": (NOT_NEGATIVE, None),
    "n_restarts": (Range(1, 100_000),),
    "n_jobs": (Range(-MOST, -1), Range(1, MOST), None),
    "smoothing": (NOT_NEGATIVE,),
    "min_words": (NOT_NEGATIVE,),
    "random_state": (Range(0), np.random.RandomState, np.random.Generator, None),
    "burn_in": AT_LEAST_ONE,
    "n_samples": AT_LEAST_ONE,
    "thinning": AT_LEAST_ONE,
    "keep_chains": (bool, np.bool_),
}
"""Values that the parameters of a model may have: ranges, sets, types, None.

Those of `init` depend on `learning`: see `check_init`.
"""


def check_parameters(model: object) -> None:
    """Raise an error unless every parameter of a model has a value of `ALLOWED`."""
    for name, allowed in ALLOWED.items():
        value = getattr(model, name)
        if not any(_fits(value, kind) for kind in allowed):
            *others, last = map(_in_words, allowed)
            wanted = f"{', '.join(others)} or {last}" if others else last
            raise InvalidInputError(f"{name} must be {wanted}, found {value!r}", parameter=name)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind: a type, None, or something that has members."""
    if kind is None or isinstance(kind, type):
        return value is None if kind is None else isinstance(value, kind)
    return value.__hash__ is not None and value in kind


def _in_words(kind: Any) -> str:
    """Return what values of a kind are called."""
    if isinstance(kind, set):
        return f"a str among {sorted(kind)}"
    return f"a {kind.__name__}" if isinstance(kind, type) else str(kind)


def check_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Raise an error unless a value is a whole number of at least `least`."""
    if value not in Range(least):
        raise InvalidInputError(f"{name} must be {Range(least)}, found {value!r}", parameter=name)


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """Return a seed from any `random_state` that scikit-learn or NumPy would take."""
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return np.random.SeedSequence(int(random_state))
    raise InvalidInputError(
        "random_state must be None, a whole number of at least 0, a Generator or a RandomState, "
        f"found {random_state!r}",
        parameter="random_state",
    )


def learnable(
    corpus: Corpus | ShardedCorpus,
    *,
    min_words: float,
    n_behaviours: int,
    learning: str,
    n_threads: int,
) -> EvidenceShards:
    """Return the evidence of a corpus, or raise an error if it is too little to learn from.

    Samplers keep a topic for every token in memory: they do not take several shards.
    """
    if isinstance(corpus, Corpus):
        shard = gather(corpus, min_words=min_words)
        _check_filled(corpus, shard.n_filled, min_words, n_behaviours)
        if learning.endswith("gibbs"):
            _check_whole_counts(shard.counts, learning)
        return shard
    if learning.endswith("gibbs"):
        raise InvalidInputError(
            f'learning="{learning}" keeps a topic for every token in memory: {corpus.n_shards} '
            'shards are learnt by "em" or "vb"; for a sampler, join them to one corpus',
            parameter="learning",
        )
    shards = ShardedEvidence(corpus, min_words=min_words, n_threads=n_threads)
    _check_filled(corpus, shards.n_filled, min_words, n_behaviours)
    return shards


def _check_filled(
    corpus: Corpus | ShardedCorpus, n_filled: int, min_words: float, n_behaviours: int
) -> None:
    """Raise an error if too few documents have enough words."""
    if n_filled == 0:
        longest = corpus.n_tokens.max(initial=0)
        raise InvalidInputError(
            f"no document to learn from: the longest has {longest:.10g} words, min_words is "
            f"{min_words} (n_samples={len(corpus)})",
            parameter="min_words",
        )
    if n_filled < n_behaviours:
        raise InvalidInputError(
            f"n_behaviours={n_behaviours} needs at least as many documents of min_words="
            f"{min_words} words, found {n_filled} (n_samples={len(corpus)})",
            parameter="n_behaviours",
        )


def _check_whole_counts(counts: Array, learning: str) -> None:
    """Raise an error if a count is a fraction."""
    for start in range(0, len(counts), CHUNK):
        part = counts[start : start + CHUNK]
        fractions = part[part % 1 != 0]
        if len(fractions):
            raise InvalidInputError(
                f'learning="{learning}" needs whole counts, found {fractions[0]:.6g}; '
                'use "em" or "vb" for weights',
                parameter="learning",
            )
