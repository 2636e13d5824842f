"""Samples of several chains: alignment of labels, R-hat and effective sample sizes."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from habitus import HabitusError, MarkovClusteringTopicModel, Parameters, generate
from habitus.model import Sizes
from habitus.model.inspection import aligned
from reference.corpora import random_parameters

N_CHAINS, N_SAMPLES = 4, 40


@pytest.fixture(scope="module")
def corpus():
    """Three topics without a common word; each of three behaviours prefers one of them."""
    rng = np.random.default_rng(6)
    phi = np.kron(np.eye(3), np.full((8, 1), 1 / 8))
    theta = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    xi = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    parameters = Parameters(phi, theta, np.full(3, 1 / 3), xi)
    return generate(parameters, np.full(120, 10), rng).corpus


@pytest.fixture(scope="module", params=["gibbs", "blocked-gibbs"])
def model(request, corpus):
    return MarkovClusteringTopicModel(
        3,
        3,
        learning=request.param,
        prior="H",
        n_restarts=N_CHAINS,
        keep_chains=True,
        burn_in=100,
        n_samples=N_SAMPLES,
        thinning=4,
        min_words=0,
        random_state=1,
    ).fit(corpus)


def test_relabelled_samples_are_aligned_back():
    reference = random_parameters(Sizes(20, 4, 3), 0)
    topics, behaviours = np.array([2, 0, 3, 1]), np.array([1, 2, 0])
    found = aligned(reference.relabelled(topics, behaviours), reference)
    for block, expected in zip(found, reference, strict=True):
        np.testing.assert_array_equal(block, expected)


def test_every_restart_is_a_chain_and_the_best_is_the_fitted_one(model):
    assert len(model.chains_) == N_CHAINS
    assert all(len(chain.samples) == len(chain.log_joint) == N_SAMPLES for chain in model.chains_)
    best = int(model.restarts_.argmax())
    assert model.chains_[best].samples is model.samples_
    np.testing.assert_array_equal([c.log_joint[-1] for c in model.chains_], model.restarts_)


def test_log_joint_of_a_sample_is_that_of_its_sweep(model):
    kept = model.objective_[model.burn_in - 1 :: model.thinning]
    np.testing.assert_array_equal(model.chains_[int(model.restarts_.argmax())].log_joint, kept)


def test_rhat_and_effective_sample_size_over_the_chains(model):
    import arviz  # takes seconds

    data = model.to_arviz()
    assert dict(data.posterior.sizes) == {
        "chain": N_CHAINS,
        "draw": N_SAMPLES,
        "word": 24,
        "topic": 3,
        "behaviour": 3,
        "next_behaviour": 3,
    }
    np.testing.assert_array_equal(data.sample_stats.lp, data.posterior.log_joint)
    rhat = float(arviz.rhat(data, var_names="log_joint").log_joint)
    ess = float(arviz.ess(data, var_names="log_joint").log_joint)
    assert 0.99 < rhat < 1.1
    assert 40 < ess < 2 * N_CHAINS * N_SAMPLES
    theta = [[sample.theta for sample in chain.samples] for chain in model.chains_]
    assert arviz.rhat(data, var_names="theta").theta.max() < 1.2
    assert arviz.rhat({"theta": np.array(theta)}).theta.max() > 1.5  # labels not aligned


def test_aligned_chains_agree_where_plain_ones_do_not(model):
    """Chains number the topics by chance; aligned, their mean parameters are alike."""
    data = model.to_arviz().posterior
    for block in ("theta", "xi"):
        np.testing.assert_allclose(data[block].sum(axis=2), 1, rtol=1e-12)
    plain = np.stack([[sample.phi for sample in chain.samples] for chain in model.chains_])
    spread = {
        "aligned": np.ptp(data.phi.mean("draw").to_numpy(), axis=0).max(),
        "plain": np.ptp(plain.mean(axis=1), axis=0).max(),
    }
    assert spread["aligned"] < 0.5 * spread["plain"]


def test_em_and_vb_have_no_chains(corpus):
    for learning in ("em", "vb"):
        model = MarkovClusteringTopicModel(
            2, 2, learning=learning, n_iterations=2, random_state=0, min_words=0
        ).fit(corpus)
        assert model.chains_ == ()


def assert_same_chains(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.log_joint, other.log_joint)
        for sample, original in zip(one.samples, other.samples, strict=True):
            assert all(map(np.array_equal, sample, original))


def test_a_file_keeps_all_chains(model, tmp_path):
    model.save(tmp_path / "scene.model")
    back = MarkovClusteringTopicModel.load(tmp_path / "scene.model")
    assert back.keep_chains
    assert_same_chains(back.chains_, model.chains_)
    assert all(map(np.array_equal, back.samples_[-1], model.parameters_))
    assert len(back.samples_) == N_SAMPLES


def test_by_default_only_the_best_chain_is_kept(model, corpus, tmp_path):
    alone = clone(model).set_params(keep_chains=False).fit(corpus)
    best = model.chains_[int(model.restarts_.argmax())]
    assert_same_chains(alone.chains_, [best])
    alone.save(tmp_path / "scene.model")
    assert_same_chains(MarkovClusteringTopicModel.load(tmp_path / "scene.model").chains_, [best])


def test_parameters_can_be_chosen(model):
    found = model.to_arviz(parameters=("pi", "xi")).posterior
    assert set(found.data_vars) == {"log_joint", "pi", "xi"}
    with pytest.raises(HabitusError, match="phi, theta, pi, xi, found 'psi'"):
        model.to_arviz(parameters=("psi",))


def test_the_interface_of_arviz_1(model, monkeypatch):
    """It takes all groups in one dictionary."""
    newer = SimpleNamespace(from_dict=lambda data, *, dims=None: (data, dims))
    monkeypatch.setitem(sys.modules, "arviz", newer)
    data, dims = model.to_arviz(parameters=("theta",))
    assert data["posterior"]["theta"].shape == (N_CHAINS, N_SAMPLES, 3, 3)
    assert data["sample_stats"]["lp"].shape == (N_CHAINS, N_SAMPLES)
    assert dims == {"theta": ["topic", "behaviour"]}
