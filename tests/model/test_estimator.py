"""scikit-learn's contract, and the laws of the estimator's own methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from habitus import (
    Corpus,
    DegenerateWarning,
    MarkovClusteringTopicModel,
    Parameters,
    Prior,
    Vocabulary,
    generate,
)
from habitus.model import Sizes, draw_parameters
from habitus.model import learning as restarts

ALGORITHMS = ("em", "vb", "gibbs", "blocked-gibbs")
QUICK = {"n_iterations": 15, "burn_in": 15, "n_samples": 2, "thinning": 5, "random_state": 0}

ORDER = "documents are in time order: what is said of one depends on those around it"
FAULT = "the check reads classifier tags of whatever has predict_proba, and fails on None itself"
EXPECTED_TO_FAIL = {
    "check_methods_sample_order_invariance": ORDER,
    "check_methods_subset_invariance": ORDER,
    "check_estimator_sparse_array": FAULT,
    "check_estimator_sparse_matrix": FAULT,
}


class OnWholeCounts(MarkovClusteringTopicModel):
    """The samplers refuse weights, which scikit-learn's checks feed: these are rounded up."""

    def _corpus(self, X, lengths, *, reset):
        corpus = super()._corpus(X, lengths, reset=reset)
        counts = corpus.counts.copy()
        counts.data = np.ceil(counts.data)
        return Corpus(counts, lengths=corpus.lengths)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(1)
    parameters = draw_parameters(Prior(alpha=0.3, beta=0.2), Sizes(30, 3, 3), rng)
    n_tokens = rng.integers(0, 60, 40)
    return generate(parameters, n_tokens, rng, lengths=[25, 15]).corpus


def small(learning, **changes):
    return MarkovClusteringTopicModel(3, 3, learning=learning, **(QUICK | changes))


@pytest.mark.parametrize("learning", ALGORITHMS)
def test_scikit_learn_contract(learning):
    kind = OnWholeCounts if learning.endswith("gibbs") else MarkovClusteringTopicModel
    model = kind(2, 2, learning=learning, min_words=0, **QUICK)
    results = check_estimator(
        model, expected_failed_checks=EXPECTED_TO_FAIL, on_skip=None, on_fail="raise"
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_TO_FAIL)
    assert sum(result["status"] == "passed" for result in results) > 30


@pytest.mark.parametrize("learning", ALGORITHMS)
def test_dense_sparse_and_corpus_give_the_same(corpus, learning):
    lengths = corpus.lengths
    fits = [
        small(learning).fit(corpus),
        small(learning).fit(corpus.counts, lengths=lengths),
        small(learning).fit(sp.coo_matrix(corpus.counts), lengths=lengths),
        small(learning).fit(corpus.counts.toarray(), lengths=lengths),
    ]
    for fit in fits[1:]:
        for one, other in zip(fits[0].parameters_, fit.parameters_, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("learning", ALGORITHMS)
def test_fitted_attributes(corpus, learning):
    model = small(learning, n_restarts=3).fit(corpus)
    for block in model.parameters_:
        np.testing.assert_allclose(block.sum(axis=0), 1, rtol=1e-12)
    n_steps = 15 if learning in ("em", "vb") else 20
    assert model.objective_.shape == (n_steps,)
    assert model.n_iter_ == n_steps
    assert model.restarts_.shape == (3,)
    assert model.restarts_.max() == model.objective_[-1]
    assert (model.posterior_ is not None) == (learning == "vb")
    assert len(model.samples_) == (2 if learning.endswith("gibbs") else 0)
    assert model.belief_.sum() == pytest.approx(1, rel=1e-12)


def test_the_first_restart_is_the_single_run(corpus):
    one = small("em").fit(corpus)
    many = small("em", n_restarts=3).fit(corpus)
    assert many.restarts_[0] == one.restarts_[0]


def test_callback_hears_every_iteration_of_every_restart(corpus):
    heard = []
    model = small("em", n_restarts=2).fit(corpus, callback=lambda i, o: heard.append((i, o)))
    assert [i for i, _ in heard] == list(range(15)) * 2
    assert {heard[14][1], heard[29][1]} == set(model.restarts_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_in_the_callback_stops_learning(corpus, n_jobs, monkeypatch):
    monkeypatch.setattr(restarts, "WORTH_A_THREAD", 0)

    def stop(iteration, objective):
        raise KeyboardInterrupt

    model = small("em", n_restarts=4, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(corpus, callback=stop)
    assert not hasattr(model, "parameters_")


def test_tolerance_stops_early(corpus):
    model = small("em", n_iterations=500, tolerance=1e-4).fit(corpus)
    gains = np.diff(model.objective_) / corpus.n_tokens[corpus.n_tokens >= 20].sum()
    assert model.n_iter_ < 500
    assert gains[-1] < 1e-4
    assert (gains[:-1] >= 1e-4).all()


def test_score_samples_is_the_mean_log_probability_of_each_document(corpus):
    model = small("em").fit(corpus)
    normality = model.score_samples(corpus)
    n_tokens = corpus.n_tokens
    short = n_tokens < 20
    assert short.any()
    assert (normality[short] == 0).all()
    assert (normality[~short] < 0).all()
    total = normality @ n_tokens
    assert model.score(corpus) == pytest.approx(total / n_tokens[~short].sum(), rel=1e-12)


def test_score_samples_does_not_look_ahead(corpus):
    model = small("vb").fit(corpus)
    whole = model.score_samples(corpus.counts)
    for n in (1, 10, 39):
        assert np.array_equal(model.score_samples(corpus.counts[:n]), whole[:n])


def test_scoring_goes_on_from_training(corpus):
    train, test = corpus.counts[:20], corpus.counts[20:]
    model = small("em").fit(train)
    whole = model.score_samples(corpus.counts)
    continued = model.score_samples(test, start="continued")
    np.testing.assert_allclose(continued, whole[20:], rtol=1e-12)
    new = model.score_samples(test)
    uniform = model.score_samples(test, start="uniform")
    assert not np.allclose(new, uniform, rtol=1e-6, atol=0) or not np.allclose(
        new, continued, rtol=1e-6, atol=0
    )


def test_sequences_are_independent(corpus):
    model = small("em").fit(corpus)
    n = corpus.lengths[0]
    together = model.score_samples(corpus)
    apart = [model.score_samples(corpus.counts[part]) for part in (slice(n), slice(n, None))]
    assert np.array_equal(together, np.concatenate(apart))
    proba = model.predict_proba(corpus)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    paths = [model.predict(corpus.counts[part]) for part in (slice(n), slice(n, None))]
    assert np.array_equal(model.predict(corpus), np.concatenate(paths))


def test_topics_of_a_document_are_features_of_a_pipeline(corpus):
    model = small("em")
    found = model.fit_transform(corpus.counts, lengths=corpus.lengths)
    assert found.shape == (len(corpus), 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(found, model.transform(corpus))
    n = corpus.lengths[0]
    apart = [model.transform(corpus.counts[part]) for part in (slice(n), slice(n, None))]
    np.testing.assert_allclose(np.concatenate(apart), found, rtol=1e-12)
    short = corpus.n_tokens < model.min_words
    expected = model.predict_proba(corpus) @ model.parameters_.theta.T
    np.testing.assert_allclose(found[short], expected[short], rtol=1e-12)
    pipeline = make_pipeline(clone(model)).set_output(transform="pandas")
    for named in (pipeline.fit_transform(corpus.counts), pipeline.transform(corpus.counts)):
        assert [*named.columns] == [f"markovclusteringtopicmodel{k}" for k in range(3)]


def test_short_documents_move_the_chain_and_nothing_else(corpus):
    """A document under min_words is worth as much as an empty one in its place."""
    emptied = corpus.counts.toarray()
    emptied[corpus.n_tokens < 20] = 0
    with_short = small("em").fit(corpus)
    without = small("em").fit(emptied, lengths=corpus.lengths)
    for one, other in zip(with_short.parameters_, without.parameters_, strict=True):
        assert np.array_equal(one, other)
    dropped = small("em").fit(emptied[corpus.n_tokens >= 20])
    assert not np.array_equal(with_short.parameters_.xi, dropped.parameters_.xi)


def test_unseen_words_are_improbable_not_impossible():
    counts = np.zeros((12, 50))
    rng = np.random.default_rng(0)
    counts[::2, :10], counts[1::2, 10:20] = rng.poisson(5, (6, 10)), rng.poisson(5, (6, 10))
    unseen = np.zeros((1, 50))
    unseen[0, 40:] = 3
    for prior in ("1", "H", "H+1"):
        model = MarkovClusteringTopicModel(2, 2, prior=prior, random_state=0).fit(counts)
        assert np.isfinite(model.score_samples(unseen)).all()
    bare = MarkovClusteringTopicModel(2, 2, prior="1", smoothing=0, random_state=0).fit(counts)
    assert bare.score_samples(unseen)[0] == -np.inf
    among = bare.score_samples(np.vstack([counts[:3], unseen, counts[4:]]))
    assert np.flatnonzero(among == -np.inf).tolist() == [3]
    assert not np.isnan(among).any()


@pytest.mark.parametrize("learning", ALGORITHMS)
@pytest.mark.parametrize(
    ("n_topics", "n_behaviours", "shape"),
    [(1, 1, (1, 4)), (1, 2, (6, 4)), (3, 1, (6, 4)), (2, 5, (6, 4)), (9, 2, (3, 1))],
)
def test_smallest_sizes(learning, n_topics, n_behaviours, shape):
    counts = np.random.default_rng(2).poisson(9, shape) + 1
    model = MarkovClusteringTopicModel(
        n_topics, n_behaviours, learning=learning, min_words=0, **QUICK
    ).fit(counts)
    for block in model.parameters_:
        assert np.isfinite(block).all()
    assert np.isfinite(model.score_samples(counts)).all()
    assert set(model.predict(counts)) <= set(range(n_behaviours))


@pytest.mark.parametrize("learning", ALGORITHMS)
def test_a_vocabulary_of_a_hundred_thousand(learning):
    counts = sp.random_array((8, 100_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    counts.data = np.ceil(counts.data * 3)
    model = MarkovClusteringTopicModel(2, 2, learning=learning, **QUICK).fit(counts)
    assert model.parameters_.phi.shape == (100_000, 2)
    assert np.isfinite(model.score_samples(counts)).all()


def test_all_documents_alike_and_a_dead_topic_is_reported():
    counts = np.tile([9.0, 9, 9, 9], (6, 1))
    start = Parameters(
        phi=np.array([[0.25, 1], [0.25, 0], [0.25, 0], [0.25, 0]]),
        theta=np.array([[1.0, 1], [0, 0]]),
        pi=np.full(2, 0.5),
        xi=np.full((2, 2), 0.5),
    )
    model = MarkovClusteringTopicModel(2, 2, prior="1", smoothing=0, init=start, n_iterations=5)
    with pytest.warns(DegenerateWarning, match="topic 2 has no words"):
        model.fit(counts)
    assert model.degenerate_ == ("topic 2 has no words",)
    np.testing.assert_allclose(model.parameters_.phi[:, 1], 0.25, rtol=1e-12)


def test_grid_search_over_the_number_of_behaviours(corpus):
    search = GridSearchCV(
        MarkovClusteringTopicModel(3, **QUICK), {"n_behaviours": [1, 3]}, cv=KFold(2)
    ).fit(corpus.counts)
    assert search.best_params_["n_behaviours"] in (1, 3)


def test_sample_follows_the_model(corpus):
    vocabulary = Vocabulary(3, 5)
    rng = np.random.default_rng(0)
    model = MarkovClusteringTopicModel(2, 2, **QUICK)
    model.fit(Corpus(rng.poisson(2, (30, vocabulary.n_words)), vocabulary=vocabulary))
    drawn, behaviours = model.sample(50, words_per_document=200, random_state=3)
    assert drawn.n_tokens.tolist() == [200] * 50
    assert drawn.vocabulary == vocabulary
    assert behaviours.shape == (50,)
    again, _ = model.sample(50, words_per_document=200, random_state=3)
    assert (drawn.counts != again.counts).nnz == 0
    assert model.sample()[0].n_tokens == [model.words_per_document_]


def test_continuing_a_chain_from_its_assignments(corpus):
    first = small("gibbs").fit(corpus)
    onward = small("gibbs", init=first.assignments_, burn_in=1, n_samples=1).fit(corpus)
    assert onward.objective_[0] > small("gibbs", init="random").fit(corpus).objective_[0]
    assert isinstance(clone(onward).init, type(first.assignments_))


def test_perplexity_is_the_geometric_mean_of_inverse_probabilities(corpus):
    model = small("em").fit(corpus)
    normality, n_tokens = model.score_samples(corpus), corpus.n_tokens
    judged = n_tokens >= 20
    expected = np.prod(np.exp(-normality) ** (n_tokens / n_tokens[judged].sum()))
    assert model.perplexity(corpus) == pytest.approx(expected, rel=1e-12)
    assert 1 < model.perplexity(corpus) < 30


def test_scikit_learn_knows_the_estimator(corpus):
    model = small("em")
    assert isinstance(model, BaseEstimator)
    tags = get_tags(model)
    assert tags.input_tags.sparse
    assert tags.input_tags.positive_only
    assert "MarkovClusteringTopicModel" in model._repr_html_()
    assert model.fit(corpus).n_features_in_ == 30


def test_unfitted(corpus):
    for method in ("top_words", "transition_graph", "to_dataframe", "to_arviz"):
        with pytest.raises(NotFittedError):
            getattr(MarkovClusteringTopicModel(), method)()
    scoring = ("score_samples", "score", "perplexity")
    for method in ("predict", "predict_proba", "transform", *scoring):
        with pytest.raises(NotFittedError):
            getattr(MarkovClusteringTopicModel(), method)(corpus)
    with pytest.raises(NotFittedError):
        MarkovClusteringTopicModel().sample()
    with pytest.raises(NotFittedError):
        MarkovClusteringTopicModel().save("nowhere.model")


@pytest.mark.parametrize("seed", [None, 7, np.random.default_rng(7), np.random.RandomState(7)])
def test_seeds_of_every_kind(corpus, seed):
    assert small("em", random_state=seed).fit(corpus).restarts_.shape == (1,)
