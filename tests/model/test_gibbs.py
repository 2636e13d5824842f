"""Collapsed Gibbs sampler: conditionals, long-run frequencies, joint distribution (Geweke)."""

import numba
import numpy as np
import pytest

from habitus.model import gibbs
from habitus.model.expected_counts import gather
from habitus.model.generate import generate
from habitus.model.parameters import PAPER, Assignments, Sizes
from reference import enumeration
from reference.corpora import TINY, Tiny, random_parameters, uneven_prior
from reference.joint_distribution import (
    FIRST,
    N_TOKENS,
    PRIOR,
    SIZES,
    Draws,
    mutated,
    z_scores,
)
from reference.long_run import assert_agrees_with_posterior

GOLDEN = 0x9E3779B97F4A7C15
WHOLE = 2**64


def prior_of(name, sizes):
    return uneven_prior(sizes) if name == "uneven" else PAPER[name].concentrations(sizes)


def random_state(tiny, prior, seed):
    rng = np.random.default_rng(seed)
    assignments = Assignments(
        rng.integers(tiny.sizes.n_topics, size=len(tiny.words)),
        rng.integers(tiny.sizes.n_behaviours, size=len(tiny.documents)),
    )
    return gibbs.init(assignments, gibbs.tokens_of(tiny.evidence), tiny.sizes, prior)


def sweep_arrays(state, prior):
    """Copy the arrays that a sweep changes, with the hyperparameters at full length."""
    full = (
        np.array(np.broadcast_to(h.reshape(-1), (len(block),)))
        for h, block in zip(prior, state.counts, strict=True)
    )
    arrays = (*state.assignments, *state.counts, state.document_topics)
    return gibbs.SweepArrays(*(array.copy() for array in arrays), *full)


def seed_that_gives(uniform, i):
    """Return a seed whose i-th uniform number is the given one: SplitMix64 inverted."""
    x = int(uniform * 2**53) << 11
    x = _unshifted(x, 31) * pow(0x94D049BB133111EB, -1, WHOLE) % WHOLE
    x = _unshifted(x, 27) * pow(0xBF58476D1CE4E5B9, -1, WHOLE) % WHOLE
    return np.uint64((_unshifted(x, 30) - i * GOLDEN) % WHOLE)


def _unshifted(mixed, bits):
    """Solve mixed = x ^ (x >> bits) for x."""
    x = mixed
    for _ in range(64 // bits + 1):
        x = mixed ^ (x >> bits)
    return x


def probabilities(choose, n, order):
    """Return the probabilities of a choice among n, from its changes as a uniform number grows.

    `choose(u)` must run through `order` as u runs from 0 to 1. Bisection finds each change to the
    last bit of the uniform number.
    """
    rank = {label: place for place, label in enumerate(order)}
    edges = [0.0]
    for place in range(n - 1):
        low, high = 0, 2**53  # the choice at `low` is at most `place`, at `high` above it
        if rank[choose(0.0)] > place:
            high = 0
        while high - low > 1:
            middle = (low + high) // 2
            if rank[choose(middle * 2.0**-53)] <= place:
                low = middle
            else:
                high = middle
        edges.append(high * 2.0**-53)
    found = np.empty(n)
    found[list(order)] = np.diff([*edges, 1.0])
    return found


def kernel_topic_conditional(state, tokens, prior, i):
    """Return p(y_i | rest) of the compiled kernel, which draws this token alone."""
    t = int(np.searchsorted(tokens.starts, i, side="right")) - 1
    alone = tokens.starts.copy()
    alone[t], alone[t + 1] = i, i + 1
    only = tokens._replace(starts=alone)
    totals = state.counts.phi.sum(axis=0)
    sum_of_beta = np.broadcast_to(prior.phi, (len(state.counts.phi), 1)).sum()

    def choose(uniform):
        arrays = sweep_arrays(state, prior)
        seed = seed_that_gives(uniform, i)
        gibbs._sample_topics(t, only, arrays, totals.copy(), sum_of_beta, seed)
        return int(arrays.topics[i])

    n_topics = len(totals)
    old = int(state.assignments.topics[i])
    order = [
        old,
        *(y for y in range(n_topics) if y != old),
    ]  # the kernel first decides whether to stay
    return probabilities(choose, n_topics, order)


def kernel_behaviour_conditional(state, tokens, prior, t):
    """Return p(z_t | rest) of the compiled kernel."""
    totals = state.counts.theta.sum(axis=0)

    def choose(uniform):
        arrays = sweep_arrays(state, prior)
        gibbs._sample_behaviour(t, tokens.first, arrays, totals.copy(), uniform)
        return int(arrays.behaviours[t])

    n_behaviours = len(totals)
    return probabilities(choose, n_behaviours, range(n_behaviours))


CONDITIONALS = [
    "repeats, an empty document, two sequences",
    "three topics, three behaviours",
    "ends empty, a word never seen",
    "one topic",
    "one behaviour",
]


@pytest.mark.parametrize("case", CONDITIONALS)
@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_topic_conditionals_equal_enumeration(case, name):
    tiny = TINY[case]
    prior = prior_of(name, tiny.sizes)
    tokens = gibbs.tokens_of(tiny.evidence)
    state = random_state(tiny, prior, seed=1)
    for i in range(len(tiny.words)):
        found = kernel_topic_conditional(state, tokens, prior, i)
        expected = enumeration.topic_conditional(tiny, *state.assignments, i, prior)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CONDITIONALS)
@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_behaviour_conditionals_equal_enumeration(case, name):
    tiny = TINY[case]
    prior = prior_of(name, tiny.sizes)
    tokens = gibbs.tokens_of(tiny.evidence)
    for seed in range(4):
        state = random_state(tiny, prior, seed)
        for t in range(len(tiny.documents)):
            found = kernel_behaviour_conditional(state, tokens, prior, t)
            expected = enumeration.behaviour_conditional(tiny, *state.assignments, t, prior)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_a_run_of_one_behaviour_counts_its_own_steps(name):
    """z_{t-1} = z_t = z_{t+1}, where the transitions into and out of a document are alike."""
    tiny = Tiny(((0,), (1,), (), (0, 2), (2,)), (5,), Sizes(3, 2, 3))
    prior = prior_of(name, tiny.sizes)
    tokens = gibbs.tokens_of(tiny.evidence)
    topics = np.array([0, 1, 0, 1, 1])
    for path in ([1, 1, 1, 1, 1], [0, 0, 2, 0, 0], [2, 1, 2, 1, 2]):
        state = gibbs.init(Assignments(topics, np.array(path)), tokens, tiny.sizes, prior)
        for t in range(5):
            found = kernel_behaviour_conditional(state, tokens, prior, t)
            expected = enumeration.behaviour_conditional(tiny, *state.assignments, t, prior)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", TINY)
@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_log_joint_equals_the_chain_rule(case, name):
    tiny = TINY[case]
    prior = prior_of(name, tiny.sizes)
    for seed in range(5):
        state = random_state(tiny, prior, seed)
        expected = enumeration.log_collapsed(tiny, *state.assignments, prior)
        np.testing.assert_allclose(state.objective, expected, rtol=1e-12)


@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_counts_and_objective_after_many_sweeps_equal_a_recount(name):
    sizes = Sizes(n_words=60, n_topics=4, n_behaviours=3)
    rng = np.random.default_rng(2)
    n_tokens = rng.integers(0, 90, size=40)
    n_tokens[5] = 0
    corpus, truth = generate(random_parameters(sizes, seed=3), n_tokens, rng, lengths=[25, 15])
    prior = prior_of(name, sizes)
    tokens = gibbs.tokens_of(gather(corpus))
    state = gibbs.init(truth, tokens, sizes, prior)
    start = state.objective
    for _ in range(300):
        state = gibbs.step(state, tokens, prior, rng)
    recount = gibbs.init(state.assignments, tokens, sizes, prior)
    for found, expected in zip(state.counts, recount.counts, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(state.document_topics, recount.document_topics)
    assert state.objective != start
    np.testing.assert_allclose(state.objective, recount.objective, rtol=1e-11)


def test_estimates_of_a_sample_equal_the_published_equations():
    """Eq. (31) to (33)."""
    tiny = TINY["three topics, three behaviours"]
    prior = uneven_prior(tiny.sizes)
    counts = random_state(tiny, prior, seed=4).counts
    for block, n, h in zip(gibbs.estimate(counts, prior), counts, prior, strict=True):
        added = n + np.broadcast_to(h, n.shape)
        np.testing.assert_allclose(block, added / added.sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("hyperparameter", ["phi", "theta"])
def test_hyperparameters_too_small_to_add_to_one_keep_the_objective_finite(hyperparameter):
    """1 + h - 1 is zero for h under 1e-16, yet both moving and staying have a positive weight."""
    tiny = TINY["repeats, an empty document, two sequences"]
    prior = PAPER["1"].concentrations(tiny.sizes)
    prior = prior._replace(**{hyperparameter: np.full((1, 1), 1e-20)})
    tokens = gibbs.tokens_of(tiny.evidence)
    rng = np.random.default_rng(5)
    state = random_state(tiny, prior, seed=6)
    for _ in range(50):
        state = gibbs.step(state, tokens, prior, rng)
    assert np.isfinite(state.objective)
    np.testing.assert_allclose(state.objective, gibbs.log_joint(state.counts, prior), rtol=1e-9)


LONG_RUN = Tiny(((0, 0, 1), (2,), (), (1, 2)), (3, 1), Sizes(3, 2, 2))


def test_long_run_agrees_with_the_enumerated_posterior():
    prior = uneven_prior(LONG_RUN.sizes)
    tokens = gibbs.tokens_of(LONG_RUN.evidence)
    rng = np.random.default_rng(7)
    state = random_state(LONG_RUN, prior, seed=8)
    paths, samples = [], []
    for _ in range(20_000):
        state = gibbs.step(state, tokens, prior, rng)
        paths.append(state.assignments.behaviours.copy())
        samples.append([block.copy() for block in state.counts])
    assert_agrees_with_posterior(LONG_RUN, prior, np.array(paths), samples)


def successive_conditional(sampler, n_sweeps, seed):
    """Alternate between one sweep of the sampler and new words given the topics."""
    rng = np.random.default_rng(seed)
    n_words, n_topics, n_behaviours = SIZES
    starts = np.concatenate([[0], np.cumsum(N_TOKENS)])
    topics = rng.integers(n_topics, size=N_TOKENS.sum()).astype(np.uint16)
    behaviours = rng.integers(n_behaviours, size=len(N_TOKENS))
    drawn = (
        rng.standard_gamma(PRIOR.beta, (n_sweeps, n_topics, n_words)),
        rng.random((n_sweeps, len(topics))),
        rng.integers(0, 2**62, n_sweeps, dtype=np.uint64),
    )
    hyper = (np.array(h) for h in (PRIOR.beta, PRIOR.alpha, PRIOR.eta, PRIOR.gamma))
    alternate = compiled_alternation(sampler)
    return Draws(*alternate(*drawn, starts, FIRST, topics, behaviours, SIZES, *hyper))


def compiled_alternation(sampler):
    """Compile the loop of `successive_conditional`: hundreds of thousands of sweeps per second."""
    new_tokens, new_arrays = sampler.Tokens, sampler.SweepArrays
    count, sweep = sampler._count.dispatcher, sampler._sweep.dispatcher

    @numba.njit
    def alternate(
        gammas, uniforms, seeds, starts, first, topics, behaviours, sizes, beta, alpha, eta, gamma
    ):
        n_sweeps, (n_words, n_topics, n_behaviours) = len(seeds), sizes
        phi = np.empty((n_sweeps, n_words, n_topics))
        theta = np.empty((n_sweeps, n_topics, n_behaviours))
        pi = np.empty((n_sweeps, n_behaviours))
        xi = np.empty((n_sweeps, n_behaviours, n_behaviours))
        words = np.empty(len(topics), dtype=np.int32)
        for s in range(n_sweeps):
            # p(x | y, z) with phi integrated out: a new phi from the prior, then words from it.
            for i in range(len(topics)):
                shares = gammas[s, topics[i]]
                left = uniforms[s, i] * shares.sum()
                x = 0
                while x < n_words - 1 and left >= shares[x]:
                    left -= shares[x]
                    x += 1
                words[i] = x
            tokens = new_tokens(words, starts, first)
            a, b, c, d, in_documents = count(tokens, topics, behaviours, sizes)
            arrays = new_arrays(
                topics, behaviours, a, b, c, d, in_documents, beta, alpha, eta, gamma
            )
            sweep(tokens, arrays, seeds[s])
            phi[s], theta[s], pi[s], xi[s] = a, b, c, d
        return phi, theta, pi, xi

    return alternate


def test_joint_distribution():
    # As many sweeps as the test below needs to find a conditional that is broken.
    chain = successive_conditional(gibbs, n_sweeps=120_000, seed=10)
    assert np.abs(z_scores(chain)).max() < 4.5


MUTATIONS = {
    "self-count of a step that stays": (" + (before == z and z == after)", ""),
    "step into t leaves from z too": ("(steps + (before == z))", "steps"),
    "the token's own word": ("(mine - 1 + smooth)", "(mine + smooth)"),
    "the token's own topic": ("(own[old] - 1 + alpha[old])", "(own[old] + alpha[old])"),
}


@pytest.mark.soak  # a test of the test before it, which compiles the sampler anew for each
@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_joint_distribution_finds_a_broken_conditional(mutation, tmp_path, monkeypatch):
    mutant = mutated(gibbs, *mutation, tmp_path, monkeypatch)
    chain = successive_conditional(mutant, n_sweeps=120_000, seed=11)
    assert np.abs(z_scores(chain)).max() > 6


@pytest.mark.parametrize("along", ["places", "seeds"])
def test_uniform_numbers_look_uniform_and_independent(along):
    n = 200_000
    if along == "places":
        numbers = np.array([gibbs._uniform(np.uint64(12345), i) for i in range(n)])
    else:
        seeds = np.random.default_rng(12).integers(WHOLE, size=n, dtype=np.uint64)
        numbers = np.array([gibbs._uniform(seed, 7) for seed in seeds])
    assert 0 <= numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
    assert abs(numbers.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / n)
    for lag in (1, 2, 3, 7):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 4 / np.sqrt(n)
    tenths = np.bincount((numbers * 10).astype(int), minlength=10)
    assert np.abs(tenths - n / 10).max() < 4.5 * np.sqrt(n * 0.09)


def test_a_seed_can_be_found_for_a_uniform_number():
    """An assumption of the tests of the topic conditionals."""
    for uniform in (0.0, 0.1234567, 0.5, 1 - 2.0**-53):
        for i in (0, 3, 10_000):
            found = gibbs._uniform(seed_that_gives(uniform, i), i)
            assert found == int(uniform * 2**53) * 2.0**-53
