"""The detector: one document at a time, saved and restored, and what it refuses."""

import json

import numpy as np
import pytest

import habitus
from habitus.anomaly.calibration import calibrate, calibrated_folds
from habitus.anomaly.detector import Detector
from habitus.anomaly.measures import ANYWHERE, KNOWN, anywhere_of, novelty_of
from habitus.corpus import Bag
from habitus.errors import FileError, InvalidInputError
from habitus.lab.crossing import crossing, crossing_vocabulary

PLUG_IN, MONTE_CARLO = "plug-in", "monte-carlo"


def sampled(n_documents, seed, *, lengths=None):
    rng = np.random.default_rng(seed)
    corpus = habitus.generate(crossing(), rng.integers(0, 200, n_documents), rng).corpus
    return habitus.Corpus(corpus.counts, lengths=lengths, vocabulary=crossing_vocabulary())


@pytest.fixture(scope="module")
def models():
    corpus = sampled(150, 0)
    settings = {"n_iterations": 15, "burn_in": 15, "thinning": 3, "random_state": 0}
    found = {}
    for learning in ("em", "vb", "gibbs"):
        model = habitus.MarkovClusteringTopicModel(learning=learning, **settings).fit(corpus)
        calibrate(model, corpus, n_folds=2)
        found[learning] = model
    return found


ways = pytest.mark.parametrize(
    ("learning", "approximation", "n_samples"),
    [("em", PLUG_IN, None), ("vb", PLUG_IN, None), ("gibbs", PLUG_IN, None),
     ("vb", MONTE_CARLO, 7), ("gibbs", MONTE_CARLO, None), ("gibbs", MONTE_CARLO, 2)],
)  # fmt: skip


def detector_of(models, learning, approximation=PLUG_IN, n_samples=None, **options):
    return Detector(models[learning], approximation=approximation, n_samples=n_samples, **options)


def same(one, other):
    return (
        one.normality == other.normality
        and one.abnormal == other.abnormal
        and np.array_equal(one.seen.log_next, other.seen.log_next)
        and np.array_equal(one.surprisals, other.surprisals)
    )


@ways
@pytest.mark.parametrize("measure", ["mean", "tail"])
def test_one_at_a_time_equals_all_at_once_bit_for_bit(
    models, learning, approximation, n_samples, measure
):
    corpus = sampled(60, 1, lengths=[25, 35])
    options = {"measure": measure, "share": 0.4}
    batch = list(detector_of(models, learning, approximation, n_samples, **options).judge(corpus))
    detector = detector_of(models, learning, approximation, n_samples, **options)
    for t, document in enumerate(corpus.bags()):
        if t == 25:
            detector.new_sequence()
        assert same(detector.step(document), batch[t])
    assert 0 < sum(judgement.abnormal for judgement in batch) < 60


def test_the_papers_measure_equals_score_samples_for_every_learner(models):
    corpus = sampled(60, 2, lengths=[10, 50])
    for model in models.values():
        for start in ("new", "continued", "uniform"):
            detector = Detector(model, measure="mean", threshold=-5.0, start=start)
            found = [judgement.normality for judgement in detector.judge(corpus)]
            expected = model.score_samples(corpus, start=start)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@ways
def test_saved_and_restored_it_goes_on_bit_for_bit(
    models, tmp_path, learning, approximation, n_samples
):
    corpus = list(sampled(40, 3).bags())
    one = detector_of(models, learning, approximation, n_samples)
    for document in corpus[:20]:
        one.step(document)
    one.save_state(tmp_path / "state")
    other = detector_of(models, learning, approximation, n_samples)
    other.restore_state(tmp_path / "state")
    for document in corpus[20:]:
        assert same(one.step(document), other.step(document))


def test_the_state_of_another_detector_is_refused(models, tmp_path):
    detector_of(models, "em").save_state(tmp_path / "state")
    with pytest.raises(FileError, match="another model or approximation"):
        detector_of(models, "vb").restore_state(tmp_path / "state")


def test_short_documents_and_a_camera_out_of_order_move_the_chain_and_nothing_else(models):
    documents = list(sampled(30, 4).bags())
    short = Bag(np.array([5], dtype=np.int32), np.array([19.0]))
    empty = Bag(np.empty(0, dtype=np.int32), np.empty(0))
    detectors = [detector_of(models, "em", threshold=0.0) for _ in range(3)]
    first = [detector.step(documents[0]) for detector in detectors]
    before = detectors[0].log_predicted
    skipped = [
        detectors[0].step(short), detectors[1].step(empty),
        detectors[2].step(documents[1], fine=False),
    ]  # fmt: skip
    xi = models["em"].parameters_.xi
    for judgement, detector in zip(skipped, detectors, strict=True):
        assert (judgement.normality, judgement.abnormal, judgement.judged) == (0.0, False, False)
        np.testing.assert_allclose(
            np.exp(detector.log_predicted[0]), xi @ np.exp(before[0]), rtol=1e-12
        )
    assert all(judgement.abnormal for judgement in first)


def test_calibration_scores_documents_the_model_has_not_seen(models):
    kept = models["em"].calibration_
    assert len(kept["plug-in.mean"]) == 150
    trained = models["em"].score_samples(sampled(150, 0))
    judged = kept["plug-in.judged"].astype(bool)
    assert kept["plug-in.mean"][judged].mean() < trained[judged].mean()
    assert "monte-carlo.mean" not in kept
    assert "monte-carlo.mean" in models["vb"].calibration_


def test_calibration_is_what_detectors_of_held_out_stretches_say(models):
    model, corpus = models["em"], sampled(150, 0)
    held_out, normality, surprises = [], [], []
    for fold in calibrated_folds(model, corpus, n_folds=2):
        detector = Detector(fold.model, measure="mean", threshold=-5.0)
        for document, judgement in zip(
            fold.held_out.bags(), detector.judge(fold.held_out), strict=True
        ):
            normality.append(judgement.normality)
            if judgement.judged:
                words = np.repeat(document.words, document.counts.astype(int))
                held_out.append((len(normality) > 75, words))
                surprises.append(np.repeat(judgement.surprisals, document.counts.astype(int)))
    np.testing.assert_allclose(normality, model.calibration_["plug-in.mean"], rtol=1e-9)
    level = np.quantile(np.concatenate(surprises), KNOWN, method="inverted_cdf")
    new = np.zeros((2, corpus.n_words))
    for (stretch, words), surprise in zip(held_out, surprises, strict=True):
        np.add.at(new[int(stretch)], words[surprise > level], 1)
    anywhere = anywhere_of(list(new), corpus.vocabulary)
    assert anywhere > ANYWHERE
    expected = novelty_of(new.sum(axis=0), corpus.vocabulary, anywhere).probability
    np.testing.assert_allclose(model.calibration_["plug-in.novelty"], expected, rtol=1e-9)


def test_the_calibration_of_an_older_habitus_is_none(models, tmp_path):
    models["em"].save(tmp_path / "m")
    old = habitus.MarkovClusteringTopicModel.load(tmp_path / "m")
    del old.calibration_["plug-in.level"]
    with pytest.raises(InvalidInputError, match="learn with `habitus learn`"):
        Detector(old)


def test_a_model_file_keeps_the_calibration(models, tmp_path):
    corpus = sampled(30, 5)
    models["em"].save(tmp_path / "m")
    loaded = habitus.MarkovClusteringTopicModel.load(tmp_path / "m")
    one, other = Detector(models["em"]), Detector(loaded)
    assert one.threshold == other.threshold
    judged = zip(one.judge(corpus), other.judge(corpus), strict=True)
    assert all(same(a, b) for a, b in judged)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "median"}, "measure must be one of"),
        ({"approximation": "exact"}, "plug-in or monte-carlo"),
        ({"approximation": "monte-carlo"}, "which em does not give"),
        ({"share": 2.0}, "between 0 and 1"),
        ({"alerts_per_day": -1}, "above 0 alerts"),
        ({"threshold": float("nan")}, "finite"),
        ({"threshold": 0.1, "measure": "mean"}, "every document's mean is below 0.1"),
        ({"threshold": -700, "measure": "mean"}, "no document's mean is below -700"),
        ({"threshold": 1, "measure": "tail"}, "every document's tail"),
        ({"threshold": -1, "share": 0.4}, "found several"),
        ({"start": "old"}, "start must be"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(models, options, message):
    with pytest.raises(InvalidInputError, match=message) as raised:
        Detector(models["em"], **options)
    assert len(str(raised.value).splitlines()) == 1


def test_a_foreign_corpus_and_an_uncalibrated_model_are_refused(models):
    with pytest.raises(InvalidInputError, match="vocabulary of 7 words"):
        list(Detector(models["em"]).judge(habitus.Corpus(np.ones((2, 7)))))
    for words in ([99_999], [3, 99_999, 5], [-1, 2]):
        with pytest.raises(InvalidInputError, match="word ids must run"):
            Detector(models["em"]).step(Bag(np.array(words), np.full(len(words), 30.0)))
    with pytest.raises(InvalidInputError, match="a count for each word"):
        Detector(models["em"]).step(Bag(np.array([1, 2, 3]), np.array([30.0])))
    bare = habitus.MarkovClusteringTopicModel(n_iterations=2, random_state=0).fit(sampled(30, 6))
    for options in ({}, {"measure": "mean"}):
        with pytest.raises(InvalidInputError, match="needs to know what normal footage scores"):
            Detector(bare, **options)
    assert Detector(bare, measure="mean", threshold=-4.0).threshold == -4.0


def test_more_gibbs_samples_than_were_kept_are_refused(models):
    with pytest.raises(InvalidInputError, match="keeps 5 Gibbs samples, 9 were asked for"):
        detector_of(models, "gibbs", MONTE_CARLO, 9)
    for learning, n_samples in (("vb", 0), ("gibbs", -1)):
        with pytest.raises(InvalidInputError, match="samples must be at least 1"):
            detector_of(models, learning, MONTE_CARLO, n_samples)


def test_judgements_hold_plain_finite_numbers(models):
    for judgement in Detector(models["em"]).judge(sampled(40, 7)):
        json.dumps([judgement.normality, *judgement.seen[:3]], allow_nan=False)
        assert judgement.posterior.sum() == pytest.approx(1, rel=1e-12)
        assert judgement.predicted.sum() == pytest.approx(1, rel=1e-12)
