"""Validation of the input of an estimator: parameters, seeds and documents."""

import re
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import validate_data

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.corpus.shards import ShardedCorpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.model.expected_counts import EvidenceShards, gather
from habitus.model.learning import LEARNERS
from habitus.model.parameters import Prior
from habitus.model.sharded_evidence import ShardedEvidence

# Counts are checked for fractions in chunks of this size: no second copy of a large corpus.
CHUNK = 65_536
MESSAGE = re.compile(
    r"The '(?P<name>\w+)' parameter of \w+ must be (?P<wanted>.*)\. Got (?P<found>.*) instead\.",
    re.DOTALL,
)


class WholeNumbers(Interval):  # type: ignore[misc]  # scikit-learn is not typed
    """Interval of integers that, unlike scikit-learn's, does not take True for 1."""

    def __init__(self, least: int | None, most: int | None = None) -> None:
        closed = "both" if None not in (least, most) else "right" if least is None else "left"
        super().__init__(Integral, least, most, closed=closed)

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value lies in the interval."""
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


MOST = 1_000_000_000
AT_LEAST_ONE = [WholeNumbers(1, MOST)]
NOT_NEGATIVE = Interval(Real, 0, MOST, closed="both")

PARAMETER_CONSTRAINTS: dict[str, list[Any] | str] = {
    # Assignments store a topic in 16 bits.
    "n_topics": [WholeNumbers(1, np.iinfo(np.uint16).max)],
    "n_behaviours": [WholeNumbers(1, np.iinfo(np.uint16).max)],
    "learning": [StrOptions(set(LEARNERS))],
    "prior": [str, Prior],
    "n_iterations": AT_LEAST_ONE,
    "tolerance": [NOT_NEGATIVE, None],
    "n_restarts": [WholeNumbers(1, 100_000)],
    "n_jobs": [WholeNumbers(-MOST, -1), WholeNumbers(1, MOST), None],
    "smoothing": [NOT_NEGATIVE],
    "min_words": [NOT_NEGATIVE],
    "init": "no_validation",  # what is allowed depends on `learning`: see `check_init`
    "random_state": [WholeNumbers(0), np.random.RandomState, np.random.Generator, None],
    "burn_in": AT_LEAST_ONE,
    "n_samples": AT_LEAST_ONE,
    "thinning": AT_LEAST_ONE,
    "keep_chains": ["boolean"],
}
"""Values that the parameters of `MarkovClusteringTopicModel` may have."""


def invalid_input(error: InvalidParameterError) -> InvalidInputError:
    """Return scikit-learn's error as one of habitus, with the same facts."""
    facts = MESSAGE.fullmatch(str(error))
    if facts is None:
        return InvalidInputError(str(error))
    name, wanted, found = facts["name"], facts["wanted"], facts["found"]
    return InvalidInputError(f"{name} must be {wanted}, found {found}", parameter=name)


def check_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Raise an error unless a value is a whole number of at least `least`."""
    wanted = WholeNumbers(least)
    if not wanted.is_satisfied_by(value):
        raise InvalidInputError(f"{name} must be {wanted}, found {value!r}", parameter=name)


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


class CorpusEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """A scikit-learn estimator that takes a `Corpus` or counts, and raises errors of habitus."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor by name.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        MarkovClusteringTopicModel
            The model itself.

        Raises
        ------
        InvalidInputError
            If there is no parameter of that name.
        """
        known = self._get_param_names()
        for name in params:
            if name not in known:
                raise InvalidInputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}",
                    parameter=name,
                )
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _validate_params(self) -> None:
        """Check all parameters by `_parameter_constraints`; the constructor only stores them."""
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            raise invalid_input(error) from error

    def _check_fitted(self) -> None:
        """Raise an error unless the model is fitted."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or load a model"
            )

    vocabulary_: Vocabulary | None

    def in_own_words(self, corpus: Corpus) -> Corpus:
        """Return documents in the words of the fitted model, sums of finer words where need be.

        Parameters
        ----------
        corpus
            Documents in the model's words, or in finer words of the same grid.

        Returns
        -------
        Corpus
            Documents in the model's words.

        Raises
        ------
        InvalidInputError
            If the corpus has another vocabulary.
        """
        found, known = corpus.vocabulary, self.vocabulary_
        if found is not None and known is not None and found.refines(known):
            corpus = corpus.summed(known)
        if corpus.n_words != self.n_features_in_:
            raise InvalidInputError(
                f"the corpus has a vocabulary of {corpus.n_words} words, the model was learnt on "
                f"{self.n_features_in_}: another camera, size or cell"
            )
        return corpus

    def _corpus(self, X: Any, lengths: ArrayLike | None, *, reset: bool) -> Corpus:
        """Return documents as a corpus; with `reset`, their coarse words are the model's."""
        if isinstance(X, ShardedCorpus):
            raise InvalidInputError(
                "only fit takes a corpus in shards: give one shard after the other, as load returns"
            )
        if not isinstance(X, Corpus):
            # COO stays as it is: scikit-learn would sum entries of one count in their own type.
            counts = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=["csr", "coo"],
                dtype=np.float64,
                ensure_all_finite=False,
            )
            return Corpus(counts, lengths=lengths)
        if lengths is not None:
            raise InvalidInputError(
                "a Corpus has its own lengths: leave out lengths", parameter="lengths"
            )
        if not reset:
            return self.in_own_words(X)
        self.n_features_in_ = X.coarse.n_words
        return X.coarse

    def _corpus_to_learn(self, X: Any, lengths: ArrayLike | None) -> Corpus | ShardedCorpus:
        """Return documents to learn from; a single shard is loaded."""
        if not isinstance(X, ShardedCorpus):
            return self._corpus(X, lengths, reset=True)
        if X.n_shards == 1:
            return self._corpus(X.load(0), lengths, reset=True)
        if lengths is not None:
            raise InvalidInputError(
                "a ShardedCorpus has its own lengths: leave out lengths", parameter="lengths"
            )
        self.n_features_in_ = X.coarse.n_words
        return X.coarse

    def _checked(self, X: Any, lengths: ArrayLike | None) -> Corpus:
        """Return documents as a corpus of the vocabulary that the model was fitted on."""
        self._check_fitted()
        return self._corpus(X, lengths, reset=False)


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
