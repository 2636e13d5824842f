"""What the estimator refuses: parameters, documents and seeds that it could not learn with."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model.evidence import Evidence, gather
from habitus.model.learning import LEARNERS
from habitus.model.parameters import Array

CHUNK = 65_536


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Constructors only store: everything is checked here, but `prior`, `init` and the seed."""
    whole = ("n_topics", "n_behaviours", "n_iterations", "n_restarts", "burn_in", "n_samples",
             "thinning")  # fmt: skip
    for name in whole:
        check_whole(name, parameters[name])
    _check_number("smoothing", parameters["smoothing"])
    _check_number("min_words", parameters["min_words"])
    if parameters["tolerance"] is not None:
        _check_number("tolerance", parameters["tolerance"])
    if parameters["n_topics"] > np.iinfo(np.uint16).max:
        raise InvalidInputError(f"n_topics must be at most 65535, found {parameters['n_topics']}")
    if parameters["learning"] not in LEARNERS:
        raise InvalidInputError(
            f"learning must be one of {', '.join(LEARNERS)}, found {parameters['learning']!r}"
        )
    n_jobs = parameters["n_jobs"]
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise InvalidInputError(
            f"n_jobs must be None or a whole number other than 0, found {n_jobs!r}"
        )


def check_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Refuse what is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidInputError(
            f"{name} must be a whole number of at least {least}, found {value!r}"
        )


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise InvalidInputError(f"{name} must be a number of at least 0, found {value!r}")


def learnable(corpus: Corpus, *, min_words: float, n_behaviours: int, learning: str) -> Evidence:
    """The evidence of a corpus, or an error if there is too little of it to learn from."""
    evidence = gather(corpus, min_words=min_words)
    n_filled = int((np.diff(evidence.indptr) > 0).sum())
    longest = corpus.n_tokens.max(initial=0)
    if n_filled == 0:
        raise InvalidInputError(
            f"no document to learn from: the longest has {longest:.10g} words, min_words is "
            f"{min_words} (n_samples={len(corpus)})"
        )
    if n_filled < n_behaviours:
        raise InvalidInputError(
            f"n_behaviours={n_behaviours} needs at least as many documents of min_words="
            f"{min_words} words, found {n_filled} (n_samples={len(corpus)})"
        )
    if learning.endswith("gibbs"):
        _check_whole_counts(evidence.counts, learning)
    return evidence


def _check_whole_counts(counts: Array, learning: str) -> None:
    for start in range(0, len(counts), CHUNK):
        part = counts[start : start + CHUNK]
        odd = part[part % 1 != 0]
        if len(odd):
            raise InvalidInputError(
                f'learning="{learning}" needs whole counts, found {odd[0]:.6g}; '
                'use "em" or "vb" for weights'
            )


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """One seed from whatever scikit-learn or NumPy would take."""
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
        f"found {random_state!r}"
    )
