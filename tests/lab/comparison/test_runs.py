"""Learning runs against the estimator, the detector, and formulas written out."""

import numpy as np
import pytest

from habitus import MarkovClusteringTopicModel
from habitus.lab.comparison.protocol import LEARNING_RUNS
from habitus.lab.comparison.run_store import Repetition
from habitus.lab.comparison.runs import carry_out
from habitus.model.expected_counts import gather, log_likelihoods
from habitus.model.messages import filter_forward
from habitus.scene import learn_scene
from reference.labelled import QUICK


def run(name, footage, labelled, number=0):
    return carry_out(Repetition(LEARNING_RUNS[name], number), footage, QUICK, labelled).results


def learnt(name, footage, **changed):
    """Return the model learnt by the estimator alone, and the generator after it."""
    own, rng = LEARNING_RUNS[name], np.random.default_rng(QUICK.seed_of(name, 0))
    settings = {
        "n_iterations": QUICK.n_iterations,
        "burn_in": QUICK.burn_in,
        "thinning": QUICK.thinning,
        "n_samples": QUICK.many,
        **changed,
    }
    model = MarkovClusteringTopicModel(
        8, 4, learning=own.learning, prior=own.prior, random_state=rng, **settings
    )
    return model.fit(footage.train), rng


def mean_normality(sets, footage):
    """Return (1 / N) ln of the mean over sets of p(x_t | x_{1:t-1}), a filter per set."""
    evidence = gather(footage.corpus, min_words=QUICK.min_words)
    logs = [
        filter_forward(
            log_likelihoods(evidence, each.phi, each.theta), evidence.first, each.pi, each.xi
        ).log_evidence
        for each in sets
    ]
    predictive = np.logaddexp.reduce(np.array(logs), axis=0) - np.log(len(sets))
    judged = footage.long_enough(QUICK)
    return np.where(judged, predictive / np.maximum(footage.corpus.n_tokens, 1), 0.0)[
        footage.n_train :
    ]


@pytest.mark.parametrize("name", ["em-1", "em-H", "em-H+1"])
def test_em_continues_from_the_last_training_document(footage, labelled, name):
    model, _ = learnt(name, footage)
    test = footage.corpus.take(np.arange(footage.n_train, len(footage.corpus)))
    (judged,) = run(name, footage, labelled).values()
    expected = model.score_samples(test, start="continued")
    np.testing.assert_allclose(judged.normality, expected, rtol=1e-10)


def test_vb_is_scored_by_its_mean_and_by_samples_of_its_posterior(footage, labelled):
    model, rng = learnt("vb-H", footage)
    drawn = [model.posterior_.sample(rng) for _ in range(QUICK.many)]
    judged = run("vb-H", footage, labelled)
    for name, sets in (("p", [model.parameters_]), ("mc 5", drawn[:2]), ("mc 100", drawn)):
        expected = mean_normality(sets, footage)
        np.testing.assert_allclose(judged[f"VB H {name}"].normality, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "short"), [("gibbs-1", "GS 1"), ("blocked-gibbs-1", "Blocked GS 1")]
)
def test_samples_of_one_sampler_serve_all_approximations(footage, labelled, name, short):
    n_samples = QUICK.many if name == "gibbs-1" else QUICK.few
    model, _ = learnt(name, footage, n_samples=n_samples)
    judged = run(name, footage, labelled)
    for suffix, n in (("p", 1), ("mc 5", QUICK.few), ("mc 100", QUICK.many)):
        if f"{short} {suffix}" in judged:
            expected = mean_normality(model.samples_[:n], footage)
            np.testing.assert_allclose(judged[f"{short} {suffix}"].normality, expected, rtol=1e-9)
    first, _ = learnt(name, footage, n_samples=1)  # ends with the burn-in
    expected = mean_normality([first.parameters_], footage)
    np.testing.assert_allclose(judged[f"{short} p"].normality, expected, rtol=1e-9)


def test_the_default_model_scores_as_its_detector(footage, labelled):
    scene = learn_scene(
        footage.train,
        n_topics=8,
        n_behaviours=4,
        n_iterations=5,
        n_restarts=2,
        random_state=np.random.default_rng(QUICK.seed_of("ours", 0)),
    )
    test = footage.corpus.take(np.arange(footage.n_train, len(footage.corpus)))
    judged = run("ours", footage, labelled)
    assert list(judged) == [method.name for method in LEARNING_RUNS["ours"].methods]
    measures = {"habitus": "habits", "habitus tail": "tail", "habitus mean": "mean"}
    for name, measure in measures.items():
        detector = scene.detector(measure=measure, start="continued")
        expected = [judgement.normality for judgement in detector.judge(test)]
        found = judged[name].normality
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_little_footage_gives_every_measure(footage):
    few = footage._replace(n_train=12)
    found = carry_out(Repetition(LEARNING_RUNS["ours"], 0), few, QUICK, [])
    assert list(found.results) == [method.name for method in LEARNING_RUNS["ours"].methods]
    assert all(np.isfinite(each.normality).all() for each in found.results.values())
    assert found.notes == []


def test_repetitions_differ_and_a_repeated_one_does_not(footage, labelled):
    first, again, other = (run("em-1", footage, labelled, n)["EM 1 p"] for n in (0, 0, 1))
    np.testing.assert_array_equal(first.normality, again.normality)
    assert (first.normality != other.normality).any()


def test_learning_times_grow_with_the_samples_needed(footage, labelled):
    judged = run("gibbs-1", footage, labelled)
    times = [judged[f"GS 1 {suffix}"].learning for suffix in ("p", "mc 5", "mc 100")]
    assert 0 < times[0] < times[1] < times[2]
    assert all(each.deciding > 0 for each in judged.values())
