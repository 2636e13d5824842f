"""The table's figures against scikit-learn, and findings that come out either way."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from habitus.lab.comparison.baselines import Judged
from habitus.lab.comparison.findings import findings_of, summarise
from habitus.lab.comparison.protocol import CHAINS, chosen, identity_of
from habitus.lab.comparison.runs import Finished, Store, run_chain, runs_of
from reference.labelled import QUICK


@pytest.fixture(scope="module")
def summary(tmp_path_factory, footage, truths):
    store = Store(tmp_path_factory.mktemp("summary"), identity_of(footage, QUICK))
    runs = runs_of(chosen(["em-1", "amount"]), 3)
    for run in runs:
        store.put(run, run_chain(run.chain, run.number, footage, QUICK, truths))
    return summarise(store, footage, QUICK, runs)


def test_figures_are_those_of_scikit_learn_with_short_documents_last(summary, footage):
    judged, truth = footage.long_enough(QUICK)[footage.n_train :], footage.abnormal
    em, amount = summary.rows
    for number, area in enumerate(em.areas):
        (run,) = run_chain(CHAINS["em-1"], number, footage, QUICK, []).judged.values()
        scores = np.where(judged, -run.normality, -1e9)
        assert area == pytest.approx(average_precision_score(truth, scores), rel=1e-9)
        assert em.roc_areas[number] == pytest.approx(roc_auc_score(truth, scores), abs=0.02)
    assert em.mean == pytest.approx(np.mean(em.areas))
    assert em.spread == pytest.approx(np.std(em.areas, ddof=1))
    assert (len(amount.areas), amount.spread) == (1, None)
    assert (em.recall is None, amount.recall is None) == (False, True)


def test_counts_and_chance_levels(summary):
    assert (summary.n_test, summary.n_judged, summary.n_abnormal) == (70, 68, 11)
    assert (summary.n_events, summary.n_localised) == (3, 11)
    assert summary.chance == 11 / 70
    assert summary.accuracy_by_chance == pytest.approx(59 / 70)
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert [row["method"] for row in found["methods"]] == ["EM 1 p", "Amount of motion"]


def made(footage, tmp_path, quality):
    """A summary of scores that know the truth to a given degree, by method and run."""
    rng, truth = np.random.default_rng(5), footage.abnormal
    noise = rng.normal(size=(4, len(truth)))
    store = Store(tmp_path, identity_of(footage, QUICK))
    runs = runs_of(chosen(["em", "vb", "gibbs"]), 4)
    for run in runs:
        judged = {}
        for method in run.chain.methods:
            level = quality(run.chain, method) + 0.3 * (run.number % 2) * (run.chain.group == "em")
            judged[method.name] = Judged(-(level * truth + noise[run.number]), 1.0, 1e-5)
        store.put(run, Finished(judged, []))
    return {f.claim: f for f in findings_of(summarise(store, footage, QUICK, runs))}


def as_in_the_paper(chain, method):
    moved = {"1": 0.0, "H": 0.8, "H+1": 0.4}[chain.prior] if chain.group != "em" else 0.0
    return {"em": 3.0, "vb": 2.0, "gibbs": 1.0}[chain.group] + moved


def the_other_way(chain, method):
    moved = {"1": 0.0, "H": 2.0, "H+1": 1.0}[chain.prior] if chain.group == "em" else 0.0
    better = 1.0 if method.samples == "many" else 0.0
    return {"em": 0.0, "vb": 1.5, "gibbs": 2.5}[chain.group] + moved + better


@pytest.mark.parametrize(("quality", "agrees"), [(as_in_the_paper, True), (the_other_way, False)])
def test_findings_come_out_either_way(footage, tmp_path, quality, agrees):
    found = made(footage, tmp_path, quality)
    for claim in (
        "EM hardly depends on the prior, VB and Gibbs do",
        "Plug-in is as good as Monte Carlo",
        "EM is at least as good as VB, and VB as Gibbs",
    ):
        assert found[claim].agrees is agrees, found[claim].text


def test_findings_need_what_they_speak_of(summary):
    assert [finding.claim for finding in findings_of(summary)] == [
        "Against what one would pick instead"
    ]
