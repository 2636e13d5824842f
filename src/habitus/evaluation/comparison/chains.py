"""One chain from start to end: learn, and score for every method that it serves."""

import warnings
from time import process_time
from typing import NamedTuple

import numpy as np

from habitus.errors import DegenerateWarning
from habitus.evaluation.comparison.baselines import BASELINES
from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.localisation import Truth
from habitus.evaluation.comparison.methods import Chain, Samples
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.comparison.scoring import Judged, score, score_by
from habitus.model import MarkovClusteringTopicModel, Parameters
from habitus.normality import Detector
from habitus.pipeline import learn


class Finished(NamedTuple):
    """What one chain gave."""

    judged: dict[str, Judged]
    """Of each method, by its name; without those that could not be."""
    notes: list[str]
    """Why some could not be."""


def run_chain(
    chain: Chain, run: int, footage: Footage, protocol: Protocol, truths: list[Truth]
) -> Finished:
    """Learn from the training documents, judge the others."""
    seed = protocol.seed_of(chain.name, run)
    if chain.group == "baselines":
        (method,) = chain.methods
        return Finished({method.name: BASELINES[chain.name](footage, protocol, seed)}, [])
    if chain.name == "ours":
        return _ours(chain, footage, protocol, seed, truths)
    return _paper(chain, footage, protocol, seed, truths)


class _Learnt(NamedTuple):
    sets: list[Parameters]
    seconds: float
    """Until the last of them was there."""


def _paper(
    chain: Chain,
    footage: Footage,
    protocol: Protocol,
    seed: np.random.SeedSequence,
    truths: list[Truth],
) -> Finished:
    learnt = _learn(chain, footage, protocol, seed)
    judged = {}
    for method in chain.methods:
        sets, seconds = learnt[method.samples]
        scores = score(sets, footage, protocol, truths)
        judged[method.name] = Judged(scores.normality, seconds, scores.seconds, scores.recall)
    return Finished(judged, [])


def _learn(
    chain: Chain, footage: Footage, protocol: Protocol, seed: np.random.SeedSequence
) -> dict[Samples, _Learnt]:
    """Sets of parameters to score with: a point estimate, a few samples, many samples."""
    rng, model = np.random.default_rng(seed), _model(chain, protocol)
    model.random_state = rng
    times: list[float] = []
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(footage.train, callback=lambda *_: times.append(process_time() - began))
    if model.samples_:
        return _sampled(model, times, protocol.few)
    one = _Learnt([model.parameters_], process_time() - began)
    if model.posterior_ is None:
        return {"one": one}
    drawn, after = [], []
    for _ in range(protocol.many):
        drawn.append(model.posterior_.sample(rng))
        after.append(process_time() - began)
    few = protocol.few
    return {
        "one": one,
        "few": _Learnt(drawn[:few], after[few - 1]),
        "many": _Learnt(drawn, after[-1]),
    }


def _model(chain: Chain, protocol: Protocol) -> MarkovClusteringTopicModel:
    needed = {method.samples for method in chain.methods}
    return MarkovClusteringTopicModel(
        protocol.n_topics, protocol.n_behaviours, learning=chain.learning, prior=chain.prior,
        n_iterations=protocol.n_iterations, min_words=protocol.min_words,
        burn_in=protocol.burn_in, thinning=protocol.thinning,
        n_samples=protocol.many if "many" in needed else protocol.few,
    )  # fmt: skip


def _sampled(
    model: MarkovClusteringTopicModel, times: list[float], few: int
) -> dict[Samples, _Learnt]:
    """A sampler's sets, each with the time of the sweep that gave the last of them.

    Any one sample is a point estimate; the first is there when the burn-in ends, at no further
    cost.
    """
    ready = times[model.burn_in - 1 :: model.thinning]
    sizes: dict[Samples, int] = {"one": 1, "few": few, "many": len(model.samples_)}
    return {name: _Learnt(list(model.samples_[:n]), ready[n - 1]) for name, n in sizes.items()}


def _ours(
    chain: Chain,
    footage: Footage,
    protocol: Protocol,
    seed: np.random.SeedSequence,
    truths: list[Truth],
) -> Finished:
    """What `habitus learn` does by default: the best of several starts, then held-out scores."""
    began = process_time()
    model, notes = learn(
        footage.train, n_topics=protocol.n_topics, n_behaviours=protocol.n_behaviours,
        learning=chain.learning, prior=chain.prior, n_iterations=protocol.n_iterations,
        n_restarts=protocol.n_restarts, min_words=protocol.min_words,
        random_state=np.random.default_rng(seed),
    )  # fmt: skip
    seconds = process_time() - began
    judged = {}
    for method in chain.methods:
        if method.measure == "mean":
            scores = score([model.parameters_], footage, protocol, truths)
        elif model.calibration_:
            detector = Detector(model, measure=method.measure, start="continued")
            scores = score_by(detector, footage, truths)
        else:
            continue
        judged[method.name] = Judged(scores.normality, seconds, scores.seconds, scores.recall)
    return Finished(judged, [] if model.calibration_ else notes)
