"""One EM iteration against hmmlearn, scikit-learn's batch LDA, and plain NumPy.

Ours is `em.step`, all in: M-step, E-step, log-likelihood and log prior. hmmlearn's MultinomialHMM
has 4 components on the same counts, dense, as it wants them; scikit-learn's
LatentDirichletAllocation has 8 components on the same sparse counts. Both are timed through `fit`,
as the difference between a run of many iterations and one of few, so that set-up cancels. Before
timing, ours is checked against the NumPy version (objective and parameters), and with one topic per
behaviour against hmmlearn (log-likelihood of every iteration).
"""

import logging
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from hmmlearn.hmm import MultinomialHMM
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.decomposition import LatentDirichletAllocation

import corpora
import fitted
import numpy_em
from habitus import Corpus, Parameters, Prior
from habitus.model import em
from habitus.model.expected_counts import gather
from report import Row, Target, main, progress
from timing import by_difference, interleave, repeated, single_core

PRIORS = ("1", "H+1")
N_BEFORE, N_TIMED = 20, 40
FEW, MANY = 1, 6


def measure(quick: bool) -> Iterator[Row]:
    """Rows: ours at two priors, against three peers."""
    single_core()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    # SciPy rounds the last of hmmlearn's probabilities to make them sum to one, and says so.
    warnings.filterwarnings("ignore", category=FutureWarning, module="hmmlearn")
    made = corpora.make()
    corpus = made.corpus
    dense = corpus.counts.toarray().astype(np.int64)
    progress(f"{corpus}, {made.n_entries} non-zeros")
    for prior in PRIORS:
        check_against_numpy(corpus, prior)
    check_against_hmmlearn(corpus, dense)

    def lda(n: int) -> None:
        model = LatentDirichletAllocation(
            corpora.N_TOPICS, learning_method="batch", evaluate_every=0, max_iter=n, random_state=0
        ).fit(corpus.counts)
        assert model.n_iter_ == n

    sides = {prior: repeated(fitted.em_step(corpus, prior, N_BEFORE), N_TIMED) for prior in PRIORS}
    sides["hmmlearn"] = by_difference(lambda n: _hmm(dense, n), FEW, MANY)
    sides["lda"] = by_difference(lda, FEW, MANY)
    point, blocks = fitted.start(corpus), fitted.concentrations(corpus, "1")
    sides["numpy"] = repeated(
        lambda: numpy_em.iterate(point, corpus.counts, blocks, fitted.SMOOTHING), 5
    )
    rounds = interleave(sides, 2 if quick else 7)
    peers = {
        "hmmlearn": ("hmmlearn MultinomialHMM", Target("at least", 100)),
        "lda": ("scikit-learn batch LDA", Target("at least", 80)),
        "numpy": ("plain NumPy", None),
    }
    for name, (peer, target) in peers.items():
        for prior in PRIORS[:1] if name == "numpy" else PRIORS:
            yield Row(
                what=f"EM iteration, prior {prior}: times faster than {peer}",
                ours=rounds.median(prior) * 1e3,
                peer=rounds.median(name) * 1e3,
                unit="ms",
                ratio=rounds.ratio(name, prior),
                target=target,
                note=rounds.spread(name, prior),
            )


def check_against_numpy(corpus: Corpus, prior: str) -> None:
    """Five iterations of ours and of the NumPy version agree."""
    evidence, blocks = gather(corpus), fitted.concentrations(corpus, prior)
    plain = fitted.start(corpus)
    state = em.init([plain], evidence, blocks)[0]
    for _ in range(5):
        peer = numpy_em.iterate(plain, corpus.counts, blocks, fitted.SMOOTHING)
        np.testing.assert_allclose(state.e_step.log_likelihood, peer.log_likelihood, rtol=1e-11)
        np.testing.assert_allclose(state.objective, peer.objective, rtol=1e-11)
        plain, state = peer.parameters, em.step([state], evidence, blocks, fitted.SMOOTHING)[0]
    for ours, theirs in zip(state.parameters, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


def check_against_hmmlearn(corpus: Corpus, dense: NDArray[np.int64]) -> None:
    """With one topic per behaviour the model is hmmlearn's: the same log-likelihoods."""
    n = corpora.N_BEHAVIOURS
    evidence = gather(corpus)
    phi = fitted.start(corpus).phi[:, :n]
    start = Parameters(phi / phi.sum(axis=0), np.eye(n), np.full(n, 1 / n), np.full((n, n), 1 / n))
    flat = Prior().concentrations(start.sizes)
    state = em.init([start], evidence, flat)[0]
    model = _hmm(dense, MANY, start)
    for found in np.array(model.monitor_.history) - _log_coefficients(corpus.counts):
        np.testing.assert_allclose(found, state.e_step.log_likelihood, rtol=1e-9)
        state = em.step([state], evidence, flat, 0.0)[0]


def _hmm(dense: NDArray[np.int64], n: int, start: Parameters | None = None) -> MultinomialHMM:
    given = start is not None
    model = MultinomialHMM(
        corpora.N_BEHAVIOURS,
        n_iter=n,
        tol=-np.inf,
        random_state=0,
        init_params="" if given else "ste",
    )
    if start is not None:
        model.startprob_, model.transmat_ = start.pi, start.xi.T
        model.emissionprob_ = start.phi.T
    model.fit(dense)
    assert model.monitor_.iter == n
    assert np.isfinite(model.monitor_.history[-1])
    return model


def _log_coefficients(counts: sp.csr_array) -> float:
    """Multinomial coefficients, which hmmlearn counts in: ways to order each document's words."""
    totals = np.asarray(counts.sum(axis=1))
    return float(gammaln(totals + 1).sum() - gammaln(counts.data + 1).sum())


if __name__ == "__main__":
    main(measure)
