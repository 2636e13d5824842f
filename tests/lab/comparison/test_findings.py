"""Figures of methods against scikit-learn, and findings that come out either way."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from habitus.lab.comparison.findings import findings_of, summarise
from habitus.lab.comparison.protocol import LEARNING_RUNS, identity_of, select_runs
from habitus.lab.comparison.run_store import ComparisonStore, Repetition, RunResult
from habitus.lab.comparison.runs import carry_out, repetitions_of
from habitus.lab.comparison.scoring import MethodResult
from reference.labelled import QUICK


@pytest.fixture(scope="module")
def comparison(tmp_path_factory, footage, labelled):
    store = ComparisonStore(tmp_path_factory.mktemp("comparison"), identity_of(footage, QUICK))
    runs = repetitions_of(select_runs(["em-1", "amount"]).runs, 3)
    for run in runs:
        store.put(run, carry_out(run, footage, QUICK, labelled))
    return summarise(store, footage, QUICK, runs)


def test_figures_are_those_of_scikit_learn_with_short_documents_last(comparison, footage):
    judged, truth = footage.long_enough(QUICK)[footage.n_train :], footage.abnormal
    em, amount = comparison.rows
    for number, value in enumerate(em.average_precisions):
        repetition = Repetition(LEARNING_RUNS["em-1"], number)
        (run,) = carry_out(repetition, footage, QUICK, []).results.values()
        scores = np.where(judged, -run.normality, -1e9)
        assert value == pytest.approx(average_precision_score(truth, scores), rel=1e-9)
        assert em.roc_aucs[number] == pytest.approx(roc_auc_score(truth, scores), abs=0.02)
    assert em.mean == pytest.approx(np.mean(em.average_precisions))
    assert em.spread == pytest.approx(np.std(em.average_precisions, ddof=1))
    assert (len(amount.average_precisions), amount.spread) == (1, None)
    assert (em.recall is None, amount.recall is None) == (False, True)


def test_counts_and_chance_levels(comparison):
    assert (comparison.n_test, comparison.n_judged, comparison.n_abnormal) == (70, 68, 11)
    assert (comparison.n_events, comparison.n_localised) == (3, 11)
    assert comparison.chance == 11 / 70
    assert comparison.chance_accuracy == pytest.approx(59 / 70)
    found = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert [row["method"] for row in found["methods"]] == ["EM 1 p", "Amount of motion"]


def findings(footage, tmp_path, quality):
    """Return findings on scores that separate abnormal documents by a given distance."""
    rng, truth = np.random.default_rng(5), footage.abnormal
    noise = rng.normal(size=(4, len(truth)))
    store = ComparisonStore(tmp_path, identity_of(footage, QUICK))
    runs = repetitions_of(select_runs(["em", "vb", "gibbs"]).runs, 4)
    for run in runs:
        results = {}
        for method in run.run.methods:
            level = quality(run.run, method) + 0.3 * (run.number % 2) * (run.run.group == "em")
            results[method.name] = MethodResult(-(level * truth + noise[run.number]), 1.0, 1e-5)
        store.put(run, RunResult(results, []))
    return {f.claim: f for f in findings_of(summarise(store, footage, QUICK, runs))}


def as_in_the_paper(run, method):
    moved = {"1": 0.0, "H": 0.8, "H+1": 0.4}[run.prior] if run.group != "em" else 0.0
    return {"em": 3.0, "vb": 2.0, "gibbs": 1.0}[run.group] + moved


def the_other_way(run, method):
    moved = {"1": 0.0, "H": 2.0, "H+1": 1.0}[run.prior] if run.group == "em" else 0.0
    better = 1.0 if method.samples == "many" else 0.0
    return {"em": 0.0, "vb": 1.5, "gibbs": 2.5}[run.group] + moved + better


@pytest.mark.parametrize(("quality", "agrees"), [(as_in_the_paper, True), (the_other_way, False)])
def test_findings_come_out_either_way(footage, tmp_path, quality, agrees):
    found = findings(footage, tmp_path, quality)
    for claim in (
        "EM hardly depends on the prior, VB and Gibbs do",
        "Plug-in is as good as Monte Carlo",
        "EM is at least as good as VB, and VB as Gibbs",
    ):
        assert found[claim].agrees is agrees, found[claim].text


def test_findings_need_the_methods_they_are_about(comparison):
    assert [finding.claim for finding in findings_of(comparison)] == [
        "habitus and EM against the baselines"
    ]
