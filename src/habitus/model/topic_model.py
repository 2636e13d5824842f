"""The Markov Clustering Topic Model: its settings, and all that is learnt."""

import os
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Array, Indices
from habitus.corpus.documents import Corpus
from habitus.corpus.looks import joined_looks
from habitus.corpus.shards import ShardedCorpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.jobs.workers import Workers
from habitus.model import em, inspection
from habitus.model.expected_counts import (
    Evidence,
    EvidenceShards,
    gather,
    log_likelihoods,
    topic_proportions,
)
from habitus.model.generate import generate
from habitus.model.learning import (
    LEARNERS,
    IterationCallback,
    LearnerSettings,
    LearningResult,
    ignore_iteration,
    n_threads_of,
    run_restarts,
)
from habitus.model.messages import filter_forward, most_probable_path, smooth_backward
from habitus.model.online import OpeningBelief, filter_documents, filter_tables, log_opening
from habitus.model.parameters import Parameters, Prior, Sizes
from habitus.model.starts import Init, check_init
from habitus.model.validation import check_parameters, check_whole, learnable, seed_of


@dataclass(eq=False)
class TopicModel:
    """Markov Clustering Topic Model of documents in time order.

    Each document has one behaviour, and the behaviours form a Markov chain. A behaviour is a
    distribution over topics, a topic a distribution over words.

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
        EM and VB stop once an iteration changes the objective by less than this per token; by
        default they run all iterations.
    n_restarts
        Number of independent runs, with seeds spawned from `random_state`. The run with the best
        final objective is kept.
    n_jobs
        Number of runs at the same time (-1: one per core). The result does not depend on it.
    smoothing
        Added to EM's estimates, which are then renormalised, inside every M-step, wherever the
        prior allows a probability of zero (a hyperparameter of at most 1). 0 for bare equations.
    min_words
        Documents with fewer tokens carry no evidence and are normal by definition; the Markov
        chain still moves one step.
    init
        Start of learning: None (around documents that are far apart), "random", or given values:
        `Parameters` (EM), `DirichletPosterior` (VB) or `Assignments` (Gibbs).
    random_state
        Seed: None, a whole number, a NumPy `Generator` or `RandomState`.
    burn_in, n_samples, thinning
        For the samplers: sweeps before the first kept sample, number of samples to keep, sweeps
        from one kept sample to the next.
    keep_chains
        For the samplers: keep the samples of all restarts in `chains_`, to compare them with each
        other. This takes `n_restarts * n_samples` copies of phi in memory and in the model's file.

    Attributes
    ----------
    parameters_ : Parameters
        phi, theta, pi and xi; for the samplers, of the last kept sample.
    objective_ : array
        Objective after each iteration: the log posterior up to a constant (EM), the evidence lower
        bound (VB), or the log joint ln p(x, y, z) (samplers).
    restarts_ : array
        Final objective of each restart.
    posterior_ : DirichletPosterior or None
        q(Omega) of VB.
    samples_ : tuple of Parameters
        Samples of the best run of a sampler, in order.
    chains_ : tuple of SampleChain
        Samples of a sampler and their log joint: of every restart with `keep_chains`, else of the
        best one alone.
    assignments_ : Assignments or None
        Hidden variables after the last sweep of the collapsed sampler: an `init` to continue from.
    batches_ : BatchMean or None
        What `partial_fit` has counted; it is not saved.
    belief_ : array
        p(behaviour of the last training document | all training documents).
    degenerate_ : tuple of str
        Topics and behaviours that no data support.
    n_features_in_ : int
        Number of words of the vocabulary.
    n_iter_ : int
        Number of iterations of the best run.
    transitions_ : array
        Expected number of transitions in training, next behaviours x behaviours.
    vocabulary_ : Vocabulary or None
        Location and direction of each word, where the corpus has them.
    clip_ : float
        Duration of a training document in seconds.
    settings_ : dict or None
        Settings by which documents were made from video, where the corpus has them.
    picture_ : array or None
        Picture of the scene, height x width x 3, where the corpus has one.
    looks_ : array
        Looks of the scene, looks x rows x columns; see `habitus.corpus.looks`.

    Examples
    --------
    >>> import habitus
    >>> documents = [[0, 0, 1], [1, 0], [2, 3, 3], [3, 2], [0, 1, 1], [2, 2, 3]]
    >>> corpus = habitus.Corpus.from_word_ids(documents, n_words=4)
    >>> model = TopicModel(2, 2, prior="1", min_words=0, random_state=0).fit(corpus)
    >>> path = model.predict(corpus)
    >>> [int(z == path[0]) for z in path]
    [1, 1, 0, 0, 1, 0]
    """

    n_topics: int = 8
    n_behaviours: int = 4
    _: KW_ONLY
    learning: str = "em"
    prior: str | Prior = "H+1"
    n_iterations: int = 100
    tolerance: float | None = None
    n_restarts: int = 1
    n_jobs: int | None = 1
    smoothing: float = 5e-6
    min_words: float = 20
    init: Init = None
    random_state: Any = None
    burn_in: int = 500
    n_samples: int = 5
    thinning: int = 100
    keep_chains: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: ArrayLike | None = None,
        callback: IterationCallback | None = None,
        workers: Workers | None = None,
    ) -> Self:
        """Learn the parameters from documents in time order.

        Parameters
        ----------
        X
            A `Corpus`, a `ShardedCorpus`, or counts, documents x words, dense or sparse.
        y
            Ignored; present for scikit-learn.
        lengths
            Number of documents of each sequence, where `X` is not a corpus; one sequence by
            default.
        callback
            Called with the iteration (from 0) and the objective after each iteration of each
            restart. An exception that it raises ends learning.
        workers
            What carries out the restarts instead of threads of this process, a restart each; of a
            `ShardedCorpus`, its `workers` do. It never changes the result.

        Returns
        -------
        TopicModel
            The fitted model itself.

        Raises
        ------
        InvalidInputError
            If a parameter or the documents cannot be used.

        Notes
        -----
        Of a `ShardedCorpus`, `n_jobs` shards are in memory at a time, and those that
        `keep_bytes` allows to keep. Sums over shards are added in a fixed order: the result
        depends on the documents, on where the shards begin (in its last digits) and on the seed.
        One shard gives what the same `Corpus` gives. Samplers take one shard only.
        """
        check_parameters(self)
        corpus = self._corpus_to_learn(X, lengths)
        evidence = learnable(
            corpus,
            min_words=self.min_words,
            n_behaviours=self.n_behaviours,
            learning=self.learning,
            n_threads=n_threads_of(self.n_jobs),
        )
        restarts = run_restarts(
            LEARNERS[self.learning],
            evidence,
            self._settings(evidence),
            callback or ignore_iteration,
            seeds=seed_of(self.random_state).spawn(self.n_restarts),
            n_jobs=self.n_jobs,
            keep_chains=self.keep_chains,
            workers=workers,
        )
        self.restarts_, self.chains_ = restarts.objectives, restarts.chains
        self._keep(restarts.best, corpus, evidence)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Self:
        """Learn from one batch of documents after the other, by on-line EM.

        The first batch is learnt as by `fit`: it should show all behaviours. Each further one costs
        one iteration, and moves the estimates towards it, by less the more came before. A model
        that was fitted or loaded goes on likewise.

        Parameters
        ----------
        X, y, lengths
            As in `fit`. A batch begins a sequence: documents before it are not continued.

        Returns
        -------
        TopicModel
            The model itself. `parameters_`, `transitions_` and `belief_` are of all batches, all
            else that was fitted is of the first.

        Raises
        ------
        InvalidInputError
            If learning is not "em".

        Examples
        --------
        >>> import habitus
        >>> model = habitus.MarkovClusteringTopicModel(2, 2, min_words=0, random_state=0)
        >>> for batch in ([[9, 0], [0, 9], [8, 1]], [[1, 8], [9, 0]]):
        ...     model = model.partial_fit(batch)
        >>> model.predict([[0, 7], [7, 0]]).tolist() == model.predict([[1, 8], [9, 0]]).tolist()
        True
        """
        if self.learning != "em":
            raise InvalidInputError(
                f'partial_fit learns by "em", found {self.learning!r}', parameter="learning"
            )
        if isinstance(X, ShardedCorpus):
            raise InvalidInputError("partial_fit takes one shard after the other", parameter="X")
        if not hasattr(self, "parameters_"):
            return self.fit(X, y, lengths=lengths)
        check_parameters(self)
        evidence = gather(self._checked(X, lengths), min_words=self.min_words)
        if evidence.n_documents:
            self._learn_batch(evidence)
        return self

    def score_samples(
        self, X: Any, *, lengths: ArrayLike | None = None, start: OpeningBelief = "new"
    ) -> Array:
        """Return the normality of each document: its mean log-probability per token.

        Parameters
        ----------
        X, lengths
            Documents in time order, as in `fit`.
        start
            Belief before the first document: "new" for pi, "continued" for a sequence that
            continues the training documents, "uniform" for equal probabilities. Sequences after the
            first start from pi.

        Returns
        -------
        array
            (1 / N_t) ln p(x_t | x_{1:t-1}) of each document: at most 0, higher for more usual
            documents. Documents under `min_words` have 0.

        Examples
        --------
        >>> from habitus import MarkovClusteringTopicModel
        >>> counts = [[9, 0], [0, 9], [8, 1], [1, 8]]
        >>> model = MarkovClusteringTopicModel(2, 2, min_words=0, random_state=0).fit(counts)
        >>> usual, unusual = model.score_samples([[9, 0], [5, 5]])
        >>> bool(usual > unusual)
        True
        """
        corpus = self._checked(X, lengths)
        log_evidence, evidence = self._log_evidence(corpus, start)
        judged = np.diff(evidence.indptr) > 0
        out = np.zeros(len(corpus))
        return np.divide(log_evidence, corpus.n_tokens, out=out, where=judged)

    def score(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> float:
        """Return the mean log-probability per token of all documents of at least `min_words`.

        0 where no document is long enough; `y` is there for scikit-learn.
        """
        log_evidence, evidence = self._log_evidence(self._checked(X, lengths))
        n_tokens = evidence.counts.sum()
        return float(log_evidence.sum() / n_tokens) if n_tokens else 0.0

    def perplexity(self, X: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the perplexity of documents: exp of minus the mean log-probability per token.

        At least 1, lower for a better fit; the vocabulary's size for uniform words.

        Examples
        --------
        >>> import habitus, numpy as np
        >>> counts = np.full((6, 4), 9)
        >>> model = habitus.MarkovClusteringTopicModel(1, 1, random_state=0).fit(counts)
        >>> round(model.perplexity(counts), 6)
        4.0
        """
        return float(np.exp(-self.score(X, lengths=lengths)))

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Indices:
        """Return the most probable sequence of behaviours (Viterbi), one for each document."""
        evidence, log_like = self._log_likelihoods(self._checked(X, lengths))
        _, _, pi, xi = self.parameters_
        path: Indices = most_probable_path(log_like, evidence.first, pi, xi)
        return path

    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> Array:
        """Return p(z_t | x_{1:T}), the posterior of the behaviours: documents x behaviours."""
        return self._smoothed(self._checked(X, lengths))[1]

    def transform(self, X: Any, *, lengths: ArrayLike | None = None) -> Array:
        """Return the topic proportions of each document: documents x topics.

        That is the mean of p(y_{t,i} | x_{1:T}) over the tokens i of document t; what its
        behaviours let expect, where it has less than `min_words`.

        Examples
        --------
        >>> import habitus
        >>> counts = [[9, 0], [0, 9], [8, 1], [1, 8]]
        >>> model = habitus.MarkovClusteringTopicModel(2, 2, min_words=0, random_state=0)
        >>> model.fit(counts).transform([[5, 5]]).shape
        (1, 2)
        """
        evidence, behaviours = self._smoothed(self._checked(X, lengths))
        return topic_proportions(evidence, self.parameters_, behaviours)

    def fit_transform(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Array:
        """Learn, and return the topic proportions of the same documents, as `transform` does."""
        return self.fit(X, y, lengths=lengths).transform(X, lengths=lengths)

    def fit_predict(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Indices:
        """Learn, and return the most probable sequence of behaviours of the same documents."""
        return self.fit(X, y, lengths=lengths).predict(X, lengths=lengths)

    def sample(
        self,
        n_documents: int = 1,
        *,
        words_per_document: int | None = None,
        random_state: Any = None,
    ) -> tuple[Corpus, Indices]:
        """Draw documents from the model.

        Parameters
        ----------
        n_documents
            Number of documents of one sequence.
        words_per_document
            Tokens of each document; the median of the training documents by default.
        random_state
            Seed, as in the constructor.

        Returns
        -------
        Corpus, array of int
            Documents, and the behaviour of each.
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

    def top_words(self, n: int = 10, *, of: inspection.WordsOf = "topics") -> inspection.TopWords:
        """Return the most probable words of each topic or behaviour.

        Parameters
        ----------
        n
            Number of words, at most the size of the vocabulary.
        of
            "topics" or "behaviours".

        Returns
        -------
        TopWords
            `words` and `probabilities`, topics (or behaviours) x n, most probable first.

        Examples
        --------
        >>> import habitus
        >>> counts = [[9, 6, 0, 0], [9, 6, 0, 0]]
        >>> model = habitus.MarkovClusteringTopicModel(
        ...     1, 1, prior="1", min_words=0, random_state=0
        ... ).fit(counts)
        >>> top = model.top_words(2)
        >>> top.words
        array([[0, 1]])
        >>> top.probabilities.round(2)
        array([[0.6, 0.4]])
        """
        self._check_fitted()
        return inspection.top_words(self.parameters_, n, of=of)

    def transition_graph(self) -> inspection.TransitionGraph:
        """Return the Markov chain of behaviours as a graph."""
        self._check_fitted()
        return inspection.transition_graph(self.parameters_.xi)

    def to_dataframe(self, of: inspection.FrameOf = "topics") -> Any:
        """Return one of the model's distributions as a pandas data frame.

        Parameters
        ----------
        of
            "topics" for p(word | topic), "behaviours" for p(word | behaviour), "mixtures" for
            p(topic | behaviour), "transitions" for p(next behaviour | behaviour).

        Returns
        -------
        pandas.DataFrame
            One column per distribution. Rows that are words have their cell and direction in the
            index, where the vocabulary is known.

        Raises
        ------
        InvalidInputError
            If `of` is none of these names.
        MissingPackageError
            If pandas is not installed.
        """
        self._check_fitted()
        return inspection.dataframe(self.parameters_, self.vocabulary_, of=of)

    def to_arviz(self, parameters: Sequence[str] = Parameters._fields) -> Any:
        """Return the samples in `chains_` as an ArviZ data set, one chain per restart.

        R-hat and effective sample sizes over several chains need `keep_chains=True` and
        `n_restarts` of at least 2. The posterior does not change when topics or behaviours are
        renumbered, so topics and behaviours of every sample are first matched to those of
        `parameters_`. `log_joint` does not depend on the numbering: its R-hat shows whether the
        chains agree at all. R-hat of the parameters is meaningful where that is near 1.

        Parameters
        ----------
        parameters
            Names of the parameters to include. phi is by far the largest.

        Returns
        -------
        arviz.InferenceData
            Group `posterior` with `log_joint` and the parameters, chains x draws x the shape of
            each; group `sample_stats` with `lp`, the log joint. A `DataTree` from ArviZ 1 on.

        Raises
        ------
        InvalidInputError
            If the model was not learnt by a sampler, or a name is not one of a parameter.
        MissingPackageError
            If ArviZ is not installed.

        Examples
        --------
        >>> import arviz, habitus, numpy as np
        >>> counts = np.random.default_rng(0).poisson(3, (12, 5))
        >>> model = habitus.MarkovClusteringTopicModel(
        ...     2, 2, learning="gibbs", n_restarts=4, keep_chains=True, burn_in=50, n_samples=20,
        ...     thinning=2, min_words=0, random_state=0,
        ... ).fit(counts)
        >>> data = model.to_arviz(parameters=("theta", "xi"))
        >>> dict(data.posterior.log_joint.sizes)
        {'chain': 4, 'draw': 20}
        >>> bool(arviz.rhat(data).log_joint < 1.2), bool(arviz.ess(data).log_joint > 4)
        (True, True)
        """
        self._check_fitted()
        return inspection.to_arviz(self.chains_, self.parameters_, parameters)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, whole or not at all."""
        from habitus.model.model_file import save_model

        self._check_fitted()
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fitted model that `save` wrote; nothing in the file is executed.

        A `FileError` says why a file is damaged, of another program, or holds no valid model.
        """
        from habitus.model.model_file import load_model

        return load_model(path, cls)

    @property
    def n_steps(self) -> int:
        """Number of iterations or sweeps of all restarts, if none stops early."""
        swept = self.burn_in + (self.n_samples - 1) * self.thinning
        return self.n_restarts * (swept if self.learning.endswith("gibbs") else self.n_iterations)

    @property
    def sizes(self) -> Sizes:
        """Sizes of the fitted model."""
        self._check_fitted()
        return self.parameters_.sizes

    def in_own_words(self, corpus: Corpus) -> Corpus:
        """Return documents in the words of the fitted model, sums of finer words where need be.

        A corpus of another grid, or of coarser words, is an `InvalidInputError`.
        """
        vocabulary, coarser = corpus.vocabulary, self.vocabulary_
        if vocabulary is not None and coarser is not None and vocabulary.refines(coarser):
            corpus = corpus.summed(coarser)
        if corpus.n_words != self.n_features_in_:
            raise InvalidInputError(
                f"the corpus has a vocabulary of {corpus.n_words} words, the model was learnt on "
                f"{self.n_features_in_}: another camera, size or cell"
            )
        return corpus

    def with_looks(self, looks: NDArray[np.uint8]) -> Self:
        """Return the model with further looks of its scene; see `joined_looks`."""
        model = copy(self)
        model.looks_ = joined_looks([*self.looks_, *looks])
        return model

    def _check_fitted(self) -> None:
        """Raise an error unless the model is fitted."""
        if not hasattr(self, "parameters_"):
            raise InvalidInputError(
                f"this {type(self).__name__} is not fitted yet: call fit, or load a model"
            )

    def _corpus(self, X: Any, lengths: ArrayLike | None, *, reset: bool) -> Corpus:
        """Return documents as a corpus; with `reset`, their coarse words are the model's."""
        if isinstance(X, ShardedCorpus):
            raise InvalidInputError(
                "only fit takes a corpus in shards: give one shard after the other, as load returns"
            )
        if not isinstance(X, Corpus):
            return self._corpus(Corpus(X, lengths=lengths), None, reset=reset)
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

    def _settings(self, evidence: EvidenceShards) -> LearnerSettings:
        """Return the settings of the learner."""
        sizes = Sizes(evidence.n_words, int(self.n_topics), int(self.n_behaviours))
        init = check_init(self.init, self.learning, sizes, evidence)
        if not (init is None or isinstance(init, str)) and self.n_restarts > 1:
            raise InvalidInputError(
                "with a given init all runs start alike: n_restarts must be 1, found "
                f"{self.n_restarts}",
                parameter="n_restarts",
            )
        return LearnerSettings(
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

    def _keep(
        self, best: LearningResult, corpus: Corpus | ShardedCorpus, evidence: EvidenceShards
    ) -> None:
        """Set the fitted attributes from the best run."""
        self.batches_: em.BatchMean | None = None
        self.parameters_ = best.parameters
        self.objective_ = best.objective
        self.posterior_ = best.posterior
        self.samples_ = best.chain.samples if best.chain else ()
        self.assignments_ = best.assignments
        self.degenerate_ = best.degenerate
        self.n_iter_ = len(best.objective)
        self.vocabulary_ = corpus.vocabulary
        self.clip_, self.settings_ = corpus.clip, corpus.settings
        self.picture_, self.looks_ = corpus.picture, corpus.looks
        n_tokens = corpus.n_tokens
        self.words_per_document_ = int(np.median(n_tokens[n_tokens > 0]))
        passage = evidence.map_reduce(partial(_passage, self.parameters_))
        self.belief_, self.transitions_ = passage.belief, passage.transitions
        if best.degenerate:
            warnings.warn(
                f"{'; '.join(best.degenerate)}: left uniform; fewer topics or behaviours, or more "
                "restarts, may fit better",
                DegenerateWarning,
                stacklevel=3,
            )

    def _learn_batch(self, evidence: Evidence) -> None:
        """Go on learning from further documents."""
        mean = self.batches_ or em.BatchMean.of(
            self.parameters_, self.transitions_, self.words_per_document_
        )
        settings = self._settings(evidence)
        self.batches_, self.parameters_ = em.next_batch(
            mean, evidence, self.parameters_, settings.prior, settings.smoothing
        )
        self.transitions_ = self.batches_.n_documents * self.batches_.counts.xi
        self.belief_ = _passage(self.parameters_, evidence).belief

    def _log_evidence(self, corpus: Corpus, start: OpeningBelief = "new") -> tuple[Array, Evidence]:
        """Return ln p(x_t | x_{1:t-1}) of each document, and the evidence of the corpus."""
        evidence = gather(corpus, min_words=self.min_words)
        # Bare estimates (smoothing 0) may rule a word out: its document then scores -inf.
        tables = filter_tables([self.parameters_], least_probability=0.0)
        opening = log_opening(tables, start, self.belief_)
        filtered = filter_documents(evidence, tables, opening)
        return filtered.log_evidence, evidence

    def _log_likelihoods(self, corpus: Corpus) -> tuple[Evidence, Array]:
        """Return the evidence of a corpus, and ln p(x_t | z_t), documents x behaviours."""
        evidence = gather(corpus, min_words=self.min_words)
        phi, theta, _, _ = self.parameters_
        return evidence, log_likelihoods(evidence, phi, theta)

    def _smoothed(self, corpus: Corpus) -> tuple[Evidence, Array]:
        """Return the evidence of a corpus, and p(z_t | x_{1:T}), documents x behaviours."""
        evidence, log_like = self._log_likelihoods(corpus)
        _, _, pi, xi = self.parameters_
        messages = filter_forward(log_like, evidence.first, pi, xi)
        return evidence, smooth_backward(messages, evidence.first, xi).posterior


@dataclass(frozen=True, eq=False)
class _Passage:
    """Behaviours of training documents under the final parameters."""

    belief: Array
    """p(behaviour of the last document | all documents)."""
    transitions: Array
    """Expected number of transitions, next behaviours x behaviours."""

    def __add__(self, other: "_Passage") -> "_Passage":
        belief = other.belief if len(other.belief) else self.belief
        return _Passage(belief, self.transitions + other.transitions)


def _passage(parameters: Parameters, shard: Evidence) -> _Passage:
    """Return the passage of one shard; without documents, it has no belief."""
    phi, theta, pi, xi = parameters
    messages = filter_forward(log_likelihoods(shard, phi, theta), shard.first, pi, xi)
    belief = np.exp(messages.log_filtered[-1]) if shard.n_documents else np.empty(0)
    return _Passage(belief, smooth_backward(messages, shard.first, xi).transitions)
