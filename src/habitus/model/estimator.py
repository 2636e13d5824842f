"""What the estimator refuses: parameters, documents and seeds that it could not learn with.

scikit-learn's estimator contract, without a second of imports at every start.

Documents under fitted parameters: their likelihoods, and the chain's filter over them.

The model with scikit-learn's habits.
"""

import os
import warnings
from collections.abc import Mapping
from inspect import signature
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.model.expected_counts import Evidence, gather, log_likelihoods
from habitus.model.generate import generate
from habitus.model.learning import (
    LEARNERS,
    IterationCallback,
    LearningResult,
    LearningSettings,
    run_restarts,
)
from habitus.model.messages import Filtered, filter_forward, most_probable_path, smooth_backward
from habitus.model.parameters import Parameters, Prior, Sizes
from habitus.model.starts import Init, check_init

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


class Estimator:
    """What scikit-learn asks of an estimator: parameters by name, tags, a readable form.

    It stands in for `sklearn.base.BaseEstimator`, whose import brings in scipy.stats and takes
    longer than learning a scene; scikit-learn's own checks run on it in the tests. scikit-learn is
    imported when an array is passed or one of its tools is used.
    """

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the constructor's parameters by name."""
        return {name: getattr(self, name) for name in sorted(self._parameter_names())}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor by name."""
        known = self._parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise InvalidInputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Name the parameters that are not at their defaults."""
        defaults = signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Counts: no negative values, sparse matrices welcome."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, positive_only=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted once there are parameters."""
        return hasattr(self, "parameters_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or load a model"
            )

    def _corpus(self, X: Any, lengths: ArrayLike | None, *, reset: bool) -> Corpus:
        """Documents from whatever was passed; `reset` to learn them, else to be as those learnt."""
        if not isinstance(X, Corpus):
            from sklearn.utils.validation import validate_data

            counts = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False
            )
            return Corpus(counts, lengths=lengths)
        if lengths is not None:
            raise InvalidInputError("a Corpus has its own lengths: leave out lengths=")
        if reset:
            self.n_features_in_ = X.n_words
        elif X.n_words != self.n_features_in_:
            raise InvalidInputError(
                f"the corpus has a vocabulary of {X.n_words} words, the model was learnt on "
                f"{self.n_features_in_}"
            )
        return X

    def _checked(self, X: Any, lengths: ArrayLike | None) -> Corpus:
        self._check_fitted()
        return self._corpus(X, lengths, reset=False)


Start = Literal["new", "continued", "uniform"]


def likelihoods_of(
    corpus: Corpus, parameters: Parameters, *, min_words: float
) -> tuple[Evidence, Array]:
    """Evidence of a corpus, and ln p(x_t | z), documents x behaviours."""
    evidence = gather(corpus, min_words=min_words)
    return evidence, log_likelihoods(evidence, parameters.phi, parameters.theta)


def filter_corpus(
    corpus: Corpus, parameters: Parameters, opening: Array | None = None, *, min_words: float
) -> tuple[Evidence, Filtered]:
    """Evidence of a corpus, and its filter; `opening` is p(z) of the first document, else pi.

    Sequences after the first always start from pi.
    """
    evidence, log_like = likelihoods_of(corpus, parameters, min_words=min_words)
    _, _, pi, xi = parameters
    n = int(corpus.lengths[0]) if len(corpus.lengths) else 0
    sequences = (
        filter_forward(log_like[:n], evidence.first[:n], pi if opening is None else opening, xi),
        filter_forward(log_like[n:], evidence.first[n:], pi, xi),
    )
    joined = (np.concatenate(parts) for parts in zip(*sequences, strict=True))
    return evidence, Filtered(*joined)


def opening_of(start: Start, parameters: Parameters, belief: Array) -> Array:
    """p(z) of the first document to come; `belief` is that of the last one learnt from."""
    _, _, pi, xi = parameters
    if start == "new":
        return pi
    if start == "continued":
        return np.asarray(xi @ belief)
    if start == "uniform":
        return np.full_like(pi, 1 / len(pi))
    raise InvalidInputError(f'start must be "new", "continued" or "uniform", found {start!r}')


class MarkovClusteringTopicModel(Estimator):
    """A Markov Clustering Topic Model of documents in time order.

    A behaviour per document, behaviours form a Markov chain, a behaviour is a distribution over
    topics, a topic is a distribution over words.

    Parameters
    ----------
    n_topics, n_behaviours
        Sizes of the model.
    learning
        "em" (maximum a posteriori), "vb" (variational Bayes), "gibbs" (the paper's collapsed
        sampler) or "blocked-gibbs" (same posterior; a sweep does not grow with the tokens).
    prior
        One of the paper's types "1", "H", "H+1", or a `Prior`.
    n_iterations
        Iterations of EM and VB.
    tolerance
        EM and VB stop once an iteration changes the objective by less than this a word; never by
        default.
    n_restarts
        Independent runs from seeds spawned from `random_state`; the best final objective is kept.
    n_jobs
        Runs at a time (-1: one a core). The result does not depend on it.
    smoothing
        Added to EM's estimates, which are then renormalised, inside every M-step, wherever the
        prior allows a probability of zero (a hyperparameter of at most 1). 0 for bare equations.
    min_words
        Shorter documents are normal by default and carry no evidence; the chain still moves.
    init
        Where to start: None (around documents that are far apart), "random" (anywhere), or a given
        point: `Parameters` (EM), `DirichletPosterior` (VB) or `Assignments` (Gibbs).
    random_state
        Seed: None, a whole number, a NumPy `Generator` or `RandomState`.
    burn_in, n_samples, thinning
        Gibbs: sweeps before the first kept sample, samples kept, and sweeps between them.

    Attributes
    ----------
    parameters_ : Parameters
        phi, theta, pi, xi; of the last kept sample for Gibbs.
    objective_ : array
        One value an iteration: EM's log posterior (up to the prior's constant), VB's evidence lower
        bound, Gibbs' log joint ln p(x, y, z).
    restarts_ : array
        Final objective of each restart.
    posterior_ : DirichletPosterior or None
        VB's q(Omega).
    samples_ : tuple of Parameters
        Gibbs' kept samples.
    assignments_ : Assignments or None
        Hidden variables at the end of the collapsed sampler: an `init` to go on from.
    belief_ : array
        p(behaviour) of the last training document, given all up to it.
    degenerate_ : tuple of str
        Topics and behaviours that ended without data of their own.
    n_iter_ : int
        Iterations run.
    transitions_ : array
        Expected number of steps to each behaviour from each in training, next x behaviours.
    vocabulary_ : Vocabulary or None
        What the words mean, if the corpus said so.
    clip_ : float
        Seconds to a training document.
    settings_ : dict or None
        How the documents were made of video, if the corpus said so.
    picture_ : array or None
        The scene, if the corpus showed it: height x width x 3.
    calibration_ : dict of arrays
        What normal footage scores, once `habitus.anomaly.calibrate` has found out; empty before.

    Examples
    --------
    >>> import habitus
    >>> documents = [[0, 0, 1], [1, 0], [2, 3, 3], [3, 2], [0, 1, 1], [2, 2, 3]]
    >>> corpus = habitus.Corpus.from_word_ids(documents, n_words=4)
    >>> model = habitus.MarkovClusteringTopicModel(
    ...     2, 2, prior="1", min_words=0, random_state=0
    ... ).fit(corpus)
    >>> path = model.predict(corpus)
    >>> [int(z == path[0]) for z in path]
    [1, 1, 0, 0, 1, 0]
    """

    def __init__(
        self,
        n_topics: int = 8,
        n_behaviours: int = 4,
        *,
        learning: str = "em",
        prior: str | Prior = "H+1",
        n_iterations: int = 100,
        tolerance: float | None = None,
        n_restarts: int = 1,
        n_jobs: int | None = 1,
        smoothing: float = 5e-6,
        min_words: float = 20,
        init: Init = None,
        random_state: Any = None,
        burn_in: int = 500,
        n_samples: int = 5,
        thinning: int = 100,
    ) -> None:
        self.n_topics = n_topics
        self.n_behaviours = n_behaviours
        self.learning = learning
        self.prior = prior
        self.n_iterations = n_iterations
        self.tolerance = tolerance
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.smoothing = smoothing
        self.min_words = min_words
        self.init = init
        self.random_state = random_state
        self.burn_in = burn_in
        self.n_samples = n_samples
        self.thinning = thinning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: ArrayLike | None = None,
        callback: IterationCallback | None = None,
    ) -> Self:
        """Learn the parameters from documents in time order.

        `X` is a Corpus or counts (documents x words, dense or sparse) with the `lengths` of its
        sequences; `callback(iteration, objective)` is told of every iteration of every restart.
        """
        check_parameters(self.get_params())
        corpus = self._corpus(X, lengths, reset=True)
        evidence = learnable(
            corpus,
            min_words=self.min_words, n_behaviours=self.n_behaviours, learning=self.learning,
        )  # fmt: skip
        settings = self._settings(evidence)
        best, self.restarts_, _ = run_restarts(
            LEARNERS[self.learning],
            evidence,
            settings,
            callback or _silent,
            seeds=seed_of(self.random_state).spawn(self.n_restarts),
            n_jobs=self.n_jobs,
        )
        self._keep(best, corpus)
        return self

    def score_samples(
        self, X: Any, *, lengths: ArrayLike | None = None, start: Start = "new"
    ) -> Array:
        """Normality of each document, given those before it: (1 / N) ln p(x_t | x_{1:t-1}).

        At most 0, the higher the more usual; documents under `min_words` are normal: 0. The first
        sequence starts from pi ("new"), goes on from the last training document ("continued") or
        starts "uniform"; further ones start from pi.
        """
        corpus = self._checked(X, lengths)
        opening = opening_of(start, self.parameters_, self.belief_)
        evidence, messages = self._filter(corpus, opening)
        judged = np.diff(evidence.indptr) > 0
        out = np.zeros(len(corpus))
        return np.divide(messages.log_evidence, corpus.n_tokens, out=out, where=judged)

    def score(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> float:
        """Mean log-probability a word, over all documents long enough to judge."""
        corpus = self._checked(X, lengths)
        evidence, messages = self._filter(corpus)
        n_tokens = evidence.counts.sum()
        return float(messages.log_evidence.sum() / n_tokens) if n_tokens else 0.0

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> NDArray[np.int64]:
        """The most probable path of behaviours (Viterbi)."""
        corpus = self._checked(X, lengths)
        evidence, log_like = likelihoods_of(corpus, self.parameters_, min_words=self.min_words)
        _, _, pi, xi = self.parameters_
        path: NDArray[np.int64] = most_probable_path(log_like, evidence.first, pi, xi)
        return path

    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> Array:
        """p(behaviour of each document | all documents), documents x behaviours."""
        corpus = self._checked(X, lengths)
        evidence, messages = self._filter(corpus)
        return smooth_backward(messages, evidence.first, self.parameters_.xi).posterior

    def fit_predict(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Any:
        """Learn, and give the most probable path of behaviours of the same documents."""
        return self.fit(X, y, lengths=lengths).predict(X, lengths=lengths)

    def sample(
        self,
        n_documents: int = 1,
        *,
        words_per_document: int | None = None,
        random_state: Any = None,
    ) -> tuple[Corpus, NDArray[np.int64]]:
        """Draw documents from the model: a corpus, and the behaviour of each document.

        Documents are as long as the training documents were in the median, unless told.
        """
        self._check_fitted()
        length = self.words_per_document_ if words_per_document is None else words_per_document
        check_whole("n_documents", n_documents)
        check_whole("words_per_document", length, least=0)
        drawn = generate(
            self.parameters_,
            np.full(n_documents, length),
            np.random.default_rng(seed_of(random_state)),
            vocabulary=self.vocabulary_,
        )
        return drawn.corpus, drawn.assignments.behaviours

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safe file, whole or not at all."""
        from habitus.model.model_file import save_model

        self._check_fitted()
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MarkovClusteringTopicModel":
        """Read a fitted model; nothing in the file is ever executed."""
        from habitus.model.model_file import load_model

        return load_model(path)

    @property
    def n_steps(self) -> int:
        """Iterations or sweeps that `fit` runs in all, if none stops early."""
        swept = self.burn_in + (self.n_samples - 1) * self.thinning
        return self.n_restarts * (swept if self.learning.endswith("gibbs") else self.n_iterations)

    @property
    def sizes(self) -> Sizes:
        """Sizes of the fitted model."""
        self._check_fitted()
        return self.parameters_.sizes

    def _settings(self, evidence: Evidence) -> LearningSettings:
        sizes = Sizes(evidence.n_words, int(self.n_topics), int(self.n_behaviours))
        init = check_init(self.init, self.learning, sizes, evidence)
        if not (init is None or isinstance(init, str)) and self.n_restarts > 1:
            raise InvalidInputError(
                "a given init starts every run alike: n_restarts must be 1, found "
                f"{self.n_restarts}"
            )
        return LearningSettings(
            sizes=sizes,
            prior=Prior.of(self.prior).concentrations(sizes),
            n_iterations=int(self.n_iterations),
            tolerance=self.tolerance,
            smoothing=float(self.smoothing),
            burn_in=int(self.burn_in),
            n_samples=int(self.n_samples),
            thinning=int(self.thinning),
            init=init,
        )

    def _keep(self, best: LearningResult, corpus: Corpus) -> None:
        self.parameters_ = best.parameters
        self.objective_ = best.objective
        self.posterior_ = best.posterior
        self.samples_ = best.chain.samples if best.chain else ()
        self.assignments_ = best.assignments
        self.degenerate_ = best.degenerate
        self.n_iter_ = len(best.objective)
        self.vocabulary_ = corpus.vocabulary
        self.clip_, self.settings_ = corpus.clip, corpus.settings
        self.picture_ = corpus.picture
        self.calibration_: dict[str, Array] = {}
        self.words_per_document_ = int(np.median(corpus.n_tokens[corpus.n_tokens > 0]))
        evidence, messages = self._filter(corpus)
        self.belief_ = np.exp(messages.log_filtered[-1])
        xi = self.parameters_.xi
        self.transitions_ = smooth_backward(messages, evidence.first, xi).transitions
        if best.degenerate:
            warnings.warn(
                f"{'; '.join(best.degenerate)}: left uniform; fewer topics or behaviours, or more "
                "restarts, may fit better",
                DegenerateWarning,
                stacklevel=3,
            )

    def _filter(self, corpus: Corpus, opening: Array | None = None) -> tuple[Evidence, Filtered]:
        return filter_corpus(corpus, self.parameters_, opening, min_words=self.min_words)


def _silent(iteration: int, objective: float) -> None:
    """Tell nobody."""
