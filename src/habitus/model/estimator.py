"""The model with scikit-learn's habits."""

import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.documents import Corpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.model.checking import check_parameters, check_whole, learnable, seed_of
from habitus.model.contract import Estimator
from habitus.model.evidence import Evidence
from habitus.model.filtering import Start, filter_corpus, likelihoods_of, opening_of
from habitus.model.generate import generate
from habitus.model.learning import LEARNERS, Callback, Init, Learnt, Settings, check_init
from habitus.model.messages import Filtered, most_probable_path, smooth_backward
from habitus.model.parameters import Array, Sizes
from habitus.model.prior import Prior
from habitus.model.restarts import best_of_restarts


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
        What normal footage scores, once `habitus.normality.calibrate` has found out; empty before.

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
        callback: Callback | None = None,
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
        best, self.restarts_ = best_of_restarts(
            LEARNERS[self.learning], evidence, settings, callback or _silent,
            seeds=seed_of(self.random_state).spawn(self.n_restarts), n_jobs=self.n_jobs,
        )  # fmt: skip
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
        from habitus.model.files import save_model

        self._check_fitted()
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MarkovClusteringTopicModel":
        """Read a fitted model; nothing in the file is ever executed."""
        from habitus.model.files import load_model

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

    def _settings(self, evidence: Evidence) -> Settings:
        sizes = Sizes(evidence.n_words, int(self.n_topics), int(self.n_behaviours))
        init = check_init(self.init, self.learning, sizes, evidence)
        if not (init is None or isinstance(init, str)) and self.n_restarts > 1:
            raise InvalidInputError(
                "a given init starts every run alike: n_restarts must be 1, found "
                f"{self.n_restarts}"
            )
        return Settings(
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

    def _keep(self, best: Learnt, corpus: Corpus) -> None:
        self.parameters_ = best.parameters
        self.objective_ = best.objective
        self.posterior_ = best.posterior
        self.samples_ = best.samples
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
