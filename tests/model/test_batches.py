"""On-line EM: one batch of documents after the other."""

import numpy as np
import pytest

from habitus import Corpus, InvalidInputError, MarkovClusteringTopicModel, Parameters, generate
from habitus.corpus.shards import ShardedCorpus
from habitus.model import TopicModel, em
from habitus.model.expected_counts import ExpectedCounts
from habitus.model.parameters import Sizes, block_shapes
from reference import enumeration
from reference.corpora import TINY, random_parameters, uneven_prior

SIZES = Sizes(n_words=60, n_topics=4, n_behaviours=3)


def batches(n, seed=0, n_documents=40):
    """Batches of one scene, in which each behaviour lasts a while."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(60, 0.1), 4).T
    theta = rng.dirichlet(np.full(4, 0.3), 3).T
    xi = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    scene = Parameters(phi, theta, np.full(3, 1 / 3), xi)
    return [generate(scene, [40] * n_documents, rng).corpus for _ in range(n)]


def model(**changes):
    given = {"min_words": 0, "n_iterations": 30, "n_restarts": 5, "random_state": 0}
    return MarkovClusteringTopicModel(4, 3, **(given | changes))


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
def test_a_batch_is_averaged_with_those_before_it(tiny):
    rng, before = np.random.default_rng(3), 7.0
    parameters, prior = random_parameters(tiny.sizes, seed=4), uneven_prior(tiny.sizes)
    known = ExpectedCounts(*(rng.exponential(3.0, shape) for shape in block_shapes(tiny.sizes)))
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    own, n = enumeration.expected_counts(tiny, hidden), len(tiny.documents)
    mean, found = em.next_batch(
        em.BatchMean(known, before), tiny.evidence, parameters, prior, smoothing=0.0
    )
    weight = (n / (before + n)) ** 0.7
    assert mean.n_documents == before + n
    for old, new, blended, h, estimate in zip(known, own, mean.counts, prior, found, strict=True):
        wanted = (1 - weight) * old + weight * new / n
        np.testing.assert_allclose(blended, wanted, rtol=1e-12)
        mass = np.maximum(wanted * (before + n) + h - 1, 0)
        np.testing.assert_allclose(estimate, mass / mass.sum(axis=0), rtol=1e-9)


def test_what_a_fitted_model_knows_is_its_estimates():
    parameters = random_parameters(SIZES, seed=5)
    transitions = np.random.default_rng(6).exponential(9.0, (3, 3))
    counts, n = em.BatchMean.of(parameters, transitions, 40.0)
    for block, estimate in zip(counts[:2], parameters[:2], strict=True):
        np.testing.assert_allclose(block / block.sum(axis=0), estimate, rtol=1e-12)
        np.testing.assert_allclose(block.sum(), 40.0, rtol=1e-12)
    np.testing.assert_allclose(counts.theta.sum(axis=1), counts.phi.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(n * counts.xi, transitions, rtol=1e-12)
    seen = transitions.sum(axis=1) + parameters.pi  # documents of each behaviour: led to, or first
    np.testing.assert_allclose(n * counts.theta.sum(axis=0), 40.0 * seen, rtol=1e-12)
    np.testing.assert_allclose(n, 1 + transitions.sum(), rtol=1e-12)
    np.testing.assert_allclose(n * counts.pi, parameters.pi, rtol=1e-12)


def test_batches_are_as_good_as_all_documents_at_once():
    first, *others = batches(15)
    later = batches(16)[-1]
    online = model().partial_fit(first)
    begun = online.score(later)
    for batch in others:
        online.partial_fit(batch)
    whole = model().fit(Corpus.joined([first, *others]))
    assert online.score(later) > begun + 0.03
    assert online.score(later) > whole.score(later) - 0.02


def test_a_model_goes_on_after_fit_and_from_its_file(tmp_path):
    first, second, third = batches(3)
    fitted = model().fit(first)
    fitted.save(tmp_path / "a.model")
    loaded = MarkovClusteringTopicModel.load(tmp_path / "a.model")
    for each in (fitted, loaded):
        each.partial_fit(second).partial_fit(third)
    begun = model().partial_fit(first).partial_fit(second).partial_fit(third)
    for other in (loaded, begun):
        for one, another in zip(fitted.parameters_, other.parameters_, strict=True):
            assert np.array_equal(one, another)
    assert fitted.batches_.n_documents == pytest.approx(120)
    assert fitted.transitions_.sum() == pytest.approx(119, rel=0.03)
    np.testing.assert_allclose(fitted.belief_, fitted.predict_proba(third)[-1], rtol=1e-9)
    fitted.fit(first)
    assert fitted.batches_ is None, "nothing is left of before"


def test_a_batch_without_documents_changes_nothing():
    (first,) = batches(1)
    known = model().fit(first)
    before = known.parameters_
    assert known.partial_fit(first.take([])).parameters_ is before


def test_what_cannot_go_on_is_said(tmp_path):
    (first,) = batches(1)
    for learning in ("vb", "gibbs", "blocked-gibbs"):
        assert not hasattr(model(learning=learning), "partial_fit")
    with pytest.raises(InvalidInputError, match="partial_fit learns by \"em\", found 'vb'"):
        TopicModel(learning="vb").partial_fit(first)
    with pytest.raises(ValueError, match="60 features"):
        model().fit(first).partial_fit(first.counts[:, :50])
    first.save(tmp_path / "a.corpus")
    with pytest.raises(InvalidInputError, match="one shard after the other"):
        model().partial_fit(ShardedCorpus.open([tmp_path / "a.corpus"]))
