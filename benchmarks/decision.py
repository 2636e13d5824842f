"""One decision: is this document abnormal? And where: its least likely words.

Documents of 1,000 words, 300 of them distinct, of a vocabulary of 6,480. Ours is `Detector.step`
with the measure `tail`, all checks included; the peer is the same recursion in plain NumPy. The
paper reports 4.4, 17.7 and 333 ms a document for its own MATLAB on a laptop of 2013.

By habits, the default: fine words of a busy document, in which a fifth of all cells moves and each
of them has four distinct words, the busiest of UCSD Ped2 has as many cells and fewer words. The
decision takes the topic filter, the votes, the scan and the sum of each cue, and the excesses that
a heat map shows.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import corpora
from habitus import Detector, MarkovClusteringTopicModel
from habitus.corpus import Bag, Corpus, Vocabulary
from habitus.model.online import word_surprisals
from habitus.scene import learn_habits
from habitus.scene.calibration import calibrate
from habitus.scene.localisation import least_likely
from report import Row, Target, main
from timing import interleave, repeated, single_core

N_TOKENS, N_DISTINCT, N_TOP = 1000, 300, 10
CASES = (
    ("plug-in", None, 20.0, 4.4),
    ("monte-carlo", 5, 60.0, 17.7),
    ("monte-carlo", 100, 1000.0, 333.0),
)
FRAMES = ((360, 288), (1280, 720))
BUSY, WORDS_OF_CELL, DECISION_BY_HABITS = 0.2, 4, 150.0


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one an approximation, localisation, and habits by the size of the frame."""
    single_core()
    corpus = corpora.make().corpus
    model = MarkovClusteringTopicModel(learning="vb", n_iterations=20, random_state=0).fit(corpus)
    calibration = calibrate(model, corpus)
    document = _document()
    for approximation, n_samples, target, paper in CASES:
        detector = Detector(model, calibration, approximation=approximation, n_samples=n_samples)
        times = 200 if n_samples != 100 else 20
        rounds = interleave(
            {
                "ours": repeated(lambda d=detector: d.step(document), times),
                "numpy": repeated(_numpy_step(detector, document), times),
            },
            3 if quick else 21,
        )
        name = approximation if n_samples is None else f"{approximation}, {n_samples} samples"
        yield Row(
            what=f"decision on a document, {name}: times faster than NumPy",
            ours=rounds.median("ours") * 1e6,
            peer=rounds.median("numpy") * 1e6,
            unit="us",
            ratio=rounds.ratio("numpy", "ours"),
            target=Target("at most", target, "ours"),
            note=f"the paper's: {paper} ms",
        )
    yield _localisation(Detector(model, calibration), document, 3 if quick else 21)
    for width, height in FRAMES:
        yield _habits(width, height, 3 if quick else 21)


def _habits(width: int, height: int, rounds: int) -> Row:
    corpus = _busy_footage(Vocabulary.of_frame(width, height, words="fine"))
    model = MarkovClusteringTopicModel(n_iterations=5, random_state=0).fit(corpus)
    detector = Detector(model, habits=learn_habits(corpus))
    document = next(corpus.bags())

    def ours() -> object:
        return detector.step(document, vocabulary=corpus.vocabulary).habit

    timed = interleave({"ours": repeated(ours, 200)}, rounds)
    return Row(
        what=f"decision by habits on a busy document at {width}x{height}",
        ours=timed.median("ours") * 1e6,
        unit="us",
        target=Target("at most", DECISION_BY_HABITS, "ours"),
        note=f"{len(document.words)} distinct fine words; best {timed.best('ours') * 1e6:.0f} us",
    )


def _busy_footage(vocabulary: Vocabulary) -> Corpus:
    """Documents in which any cell may move, each its own way."""
    rng, n = np.random.default_rng(0), vocabulary.n_cells
    usual = rng.integers(vocabulary.directions, size=n), rng.integers(3, 12, size=n)
    documents = []
    for _ in range(120):
        cells = np.flatnonzero(rng.random(n) < BUSY)[:, None]
        turns, steps = np.divmod(np.argsort(rng.random((len(cells), 9)))[:, :WORDS_OF_CELL], 3)
        directions = (usual[0][cells] + turns - 1) % vocabulary.directions
        words = (cells * vocabulary.directions + directions) * vocabulary.speeds
        documents.append(np.repeat((words + usual[1][cells] + steps - 1).ravel(), 2))
    return Corpus.from_word_ids(documents, vocabulary=vocabulary)


def _localisation(detector: Detector, document: Bag, rounds: int) -> Row:
    words = document.words.astype(np.int32)

    def ours() -> NDArray[np.int64]:
        surprises = word_surprisals(detector.log_predicted, words, detector.tables)
        return words[least_likely(surprises, document.counts, N_TOP)]

    def peer() -> NDArray[np.int64]:
        shares = np.exp(detector.log_predicted).reshape(-1)
        return words[np.argsort(detector.tables.probability[words] @ shares)[:N_TOP]]

    probability = detector.tables.probability @ np.exp(detector.log_predicted).reshape(-1)
    assert np.allclose(probability[ours()], probability[peer()], rtol=1e-12)  # ties aside
    timed = interleave({"ours": repeated(ours, 200), "numpy": repeated(peer, 200)}, rounds)
    return Row(
        what=f"the {N_TOP} least likely words of a document: times faster than NumPy",
        ours=timed.median("ours") * 1e6,
        peer=timed.median("numpy") * 1e6,
        unit="us",
        ratio=timed.ratio("numpy", "ours"),
        target=Target("at most", 100, "ours"),
    )


def _document() -> Bag:
    rng = np.random.default_rng(0)
    words = np.sort(rng.choice(corpora.N_WORDS, N_DISTINCT, replace=False))
    counts = 1.0 + rng.multinomial(N_TOKENS - N_DISTINCT, np.full(N_DISTINCT, 1 / N_DISTINCT))
    return Bag(words, counts)


def _numpy_step(detector: Detector, document: Bag) -> Callable[[], float]:
    """The same recursion as one would write it on whole arrays; checked against ours."""
    tables, (words, counts) = detector.tables, document
    n_sets, n = tables.log_pi.shape
    log_predicted = tables.log_pi

    def step() -> float:
        nonlocal log_predicted
        log_like = (counts @ tables.log_probability[words]).reshape(n_sets, n)
        log_joint = log_predicted + log_like
        best = log_joint.max(axis=1, keepdims=True)
        filtered = np.exp(log_joint - best)
        totals = filtered.sum(axis=1, keepdims=True)
        log_evidence = (best + np.log(totals)).reshape(-1)
        shares = np.exp(log_predicted).reshape(-1) / n_sets
        surprises = -np.log(tables.probability[words] @ shares)
        excess = counts @ np.maximum(surprises - detector.level, 0)
        with np.errstate(divide="ignore"):
            log_predicted = np.log(np.einsum("szy,sy->sz", tables.xi, filtered / totals))
        top = log_evidence.max()
        mean = top + np.log(np.exp(log_evidence - top).mean())
        return float(mean / counts.sum()) - float(excess / np.sqrt(counts.sum()))

    return step


if __name__ == "__main__":
    main(measure)
