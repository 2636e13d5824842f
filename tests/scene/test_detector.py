"""The detector: one document at a time, saved and restored, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

import habitus
from habitus.corpus import Bag, Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene import (
    CalibrationSettings,
    Detector,
    SceneModel,
    calibrate,
    held_out_folds,
    learn_scene,
)
from habitus.scene.measures import estimate_uniform_share, novelty_background
from reference.corpora import refined
from reference.habits import VoteProcess

PLUG_IN, MONTE_CARLO = "plug-in", "monte-carlo"
SETTINGS = CalibrationSettings(n_folds=2)


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
        found[learning] = SceneModel(model, calibrate(model, corpus, settings=SETTINGS))
    return found


ways = pytest.mark.parametrize(
    ("learning", "approximation", "n_samples"),
    [
        ("em", PLUG_IN, None),
        ("vb", PLUG_IN, None),
        ("gibbs", PLUG_IN, None),
        ("vb", MONTE_CARLO, 7),
        ("gibbs", MONTE_CARLO, None),
        ("gibbs", MONTE_CARLO, 2),
    ],
)


def detector_of(models, learning, approximation=PLUG_IN, n_samples=None, **options):
    scene = models[learning]
    return scene.detector(approximation=approximation, n_samples=n_samples, **options)


def same(one, other):
    return (
        one.normality == other.normality
        and one.abnormal == other.abnormal
        and np.array_equal(one.posterior, other.posterior)
        and np.array_equal(one.predicted, other.predicted)
        and one[3:6] == other[3:6]
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
    for scene in models.values():
        model = scene.model
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
        detectors[0].step(short),
        detectors[1].step(empty),
        detectors[2].step(documents[1], usable=False),
    ]
    xi = models["em"].model.parameters_.xi
    for judgement, detector in zip(skipped, detectors, strict=True):
        assert (judgement.normality, judgement.abnormal, judgement.judged) == (0.0, False, False)
        np.testing.assert_allclose(
            np.exp(detector.log_predicted[0]), xi @ np.exp(before[0]), rtol=1e-12
        )
    assert all(judgement.abnormal for judgement in first)


def test_calibration_scores_documents_the_model_has_not_seen(models):
    scene = models["em"]
    held_out = scene.calibration.plug_in
    assert len(held_out.scores["mean"]) == 150
    trained = scene.model.score_samples(sampled(150, 0))
    judged = held_out.judged
    assert held_out.scores["mean"][judged].mean() < trained[judged].mean()
    assert scene.calibration.monte_carlo is None
    assert models["vb"].calibration.monte_carlo is not None


def new_words_of(fold, level):
    """How often each word of a fold surprises its model beyond the level, told one by one."""
    counts = np.zeros(fold.held_out.n_words)
    detector = Detector(fold.model, measure="mean", threshold=-5.0)
    for document, judgement in zip(
        fold.held_out.bags(), detector.judge(fold.held_out), strict=True
    ):
        if judgement.judged:
            for word, n, surprisal in zip(*document, judgement.surprisals, strict=True):
                counts[word] += n * (surprisal > level)
    return counts


def test_calibration_is_what_detectors_of_held_out_folds_say(models):
    scene, corpus = models["em"], sampled(150, 0)
    folds = held_out_folds(scene.model, scene.calibration, corpus)
    normality, surprisals = [], []
    for fold in folds:
        detector = Detector(fold.model, measure="mean", threshold=-5.0)
        for document, judgement in zip(
            fold.held_out.bags(), detector.judge(fold.held_out), strict=True
        ):
            normality.append(judgement.normality)
            if judgement.judged:
                surprisals.append(np.repeat(judgement.surprisals, document.counts.astype(int)))
    expected = scene.calibration.plug_in.scores["mean"]
    np.testing.assert_allclose(normality, expected, rtol=1e-9)
    level = np.quantile(np.concatenate(surprisals), SETTINGS.known_share, method="inverted_cdf")
    new = [new_words_of(fold, level) for fold in folds]
    constants = {"spread": SETTINGS.novelty_spread}
    uniform = estimate_uniform_share(
        new, corpus.vocabulary, least=SETTINGS.least_uniform_share, **constants
    )
    assert uniform > SETTINGS.least_uniform_share
    constants |= {"share": 1 - SETTINGS.known_share, "uniform_share": uniform}
    whole = novelty_background(np.sum(new, axis=0), corpus.vocabulary, **constants)
    found = scene.calibration.plug_in.background
    np.testing.assert_allclose(found.probability, whole.probability, rtol=1e-9)
    # A fold knows the new words of the other fold only: its own must not leak into its novelty.
    for fold, others in zip(folds, reversed(new), strict=True):
        background = novelty_background(others, corpus.vocabulary, **constants)
        found = fold.calibration.plug_in.background
        np.testing.assert_allclose(found.probability, background.probability, rtol=1e-9)
        tail = Detector(fold.model, fold.calibration, threshold=0.0)
        scores = [judgement.normality for judgement in tail.judge(fold.held_out)]
        kept = scene.calibration.plug_in.scores["tail"]
        part = kept[:75] if fold is folds[0] else kept[75:]
        np.testing.assert_allclose(scores, part, rtol=1e-9, atol=1e-12)


def test_calibrating_changes_neither_the_model_nor_itself(models):
    scene, corpus = models["gibbs"], sampled(150, 0)
    before = {name: repr(value) for name, value in vars(scene.model).items()}
    again = calibrate(scene.model, corpus, settings=SETTINGS)
    assert {name: repr(value) for name, value in vars(scene.model).items()} == before
    one, other = scene.calibration.contents(), again.contents()
    assert one.header == other.header
    assert one.tensors.keys() == other.tensors.keys()
    assert all(np.array_equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


def test_a_sampler_forgets_a_fold_from_the_kept_state(models):
    sweeps = []
    calibrate(models["gibbs"].model, sampled(150, 0), settings=SETTINGS, progress=sweeps.append)
    model = models["gibbs"].model
    each = min(SETTINGS.n_iterations, model.burn_in) + (model.n_samples - 1) * model.thinning
    assert [report.done for report in sweeps] == list(range(1, 2 * each + 1))
    assert {report.total for report in sweeps} == {2 * each}


def test_a_file_keeps_model_calibration_and_its_constants(models, tmp_path):
    corpus = sampled(30, 5)
    scene = models["vb"]
    other = replace(scene.calibration.settings, known_share=0.9, join=1)
    changed = replace(scene, calibration=replace(scene.calibration, settings=other))
    for written in (scene, changed):
        written.save(tmp_path / "m")
        loaded = SceneModel.load(tmp_path / "m")
        assert loaded.calibration.settings == written.calibration.settings
        for approximation in (PLUG_IN, MONTE_CARLO):
            one, two = (s.detector(approximation=approximation) for s in (written, loaded))
            assert (one.threshold, one.join) == (two.threshold, two.join)
            judged = zip(one.judge(corpus), two.judge(corpus), strict=True)
            assert all(same(a, b) for a, b in judged)
    kept = loaded.calibration.plug_in.background.share
    assert kept == scene.calibration.plug_in.background.share
    assert habitus.MarkovClusteringTopicModel.load(tmp_path / "m").n_topics == 8


def test_a_model_alone_has_no_calibration(models, tmp_path):
    models["em"].model.save(tmp_path / "m")
    assert SceneModel.load(tmp_path / "m").calibration is None
    with pytest.raises(InvalidInputError, match="needs a calibration"):
        SceneModel.load(tmp_path / "m").detector()


@pytest.mark.parametrize("learning", ["em", "vb", "gibbs"])
@pytest.mark.parametrize("measure", ["tail", "mean"])
def test_ten_documents_give_a_threshold_and_say_what_to_expect(learning, measure):
    corpus = habitus.generate(crossing(), [60] * 10, np.random.default_rng(0)).corpus
    scene = learn_scene(corpus, learning=learning, n_iterations=10, random_state=0)
    detector = scene.detector(measure=measure)
    assert detector.notes[0].startswith("10 seconds of footage cannot tell what happens 5 times")
    reached = [judgement.normality for judgement in detector.judge(corpus)]
    assert np.isfinite([detector.threshold, *reached]).all()
    assert detector.expected_alarms(86_400).mean == pytest.approx(5)


def test_a_threshold_beyond_a_document_of_the_least_likely_word_is_said(models):
    for measure in ("tail", "mean"):
        detector = models["em"].detector(measure=measure, alerts_per_day=1e-9)
        assert "synthetic anomalies" in detector.notes[-1]
        probability = detector.tables.probability.max(axis=1)
        n_tokens = np.ceil(models["em"].calibration.plug_in.n_tokens)
        least_likely = Bag(np.array([probability.argmin()]), np.array([n_tokens]))
        assert not detector.step(least_likely).abnormal
        assert not models["em"].detector(measure=measure, alerts_per_day=2000).notes


@pytest.mark.parametrize("measure", ["habits", "tail", "mean"])
def test_the_budget_of_a_document_is_the_least_at_which_it_is_an_alarm(measure):
    """What an archive stores of a moment, and what a detector decides by its threshold."""
    process = VoteProcess(Vocabulary(8, 9, directions=12, speeds=16), 0)
    corpus = process.corpus(300, np.random.default_rng(0))
    scene = learn_scene(corpus, n_topics=2, n_behaviours=2, n_restarts=1, random_state=0)
    detector = scene.detector(measure=measure)
    scores = detector.judge_all(corpus).normality
    most = detector.bar(1e9).expected.mean
    for normality in [*np.unique(scores)[:40], 2 * scores.min()]:
        least = detector.false_alarms_per_day(float(normality))
        if least < most * (1 - 1e-9):
            assert normality < detector.bar(least * (1 + 1e-6)).threshold
            assert not normality < detector.bar(least * (1 - 1e-6)).threshold


def test_more_alerts_than_there_can_be_are_said(models):
    detector = models["em"].detector(alerts_per_day=50_000)
    assert detector.notes[0].startswith("50000 alerts per day are more than there can be")
    looser = [models["em"].detector(alerts_per_day=n).threshold for n in (500, 1000, 2000)]
    assert looser == sorted(looser)
    assert len(set(looser)) == 3


def test_a_day_has_as_many_judged_documents_as_the_footage_learnt_from(models):
    """The same scores in a street that is quiet three quarters of the time."""
    scene = models["em"]
    held_out = scene.calibration.plug_in
    quiet = np.zeros(4 * len(held_out.judged), dtype=bool)
    quiet[: len(held_out.judged)] = held_out.judged
    scores = {name: np.resize(each, len(quiet)) for name, each in held_out.scores.items()}
    street = replace(scene.calibration, plug_in=held_out._replace(scores=scores, judged=quiet))
    busy, still = (
        Detector(scene.model, each, alerts_per_day=480) for each in (scene.calibration, street)
    )
    assert (
        still.threshold
        == Detector(scene.model, scene.calibration, alerts_per_day=4 * 480).threshold
    )
    assert busy.threshold < still.threshold
    assert still.expected_alarms(86_400).mean == pytest.approx(480)
    known = still.expected_alarms(86_400, n_judged=int(86_400 * held_out.judged.mean()))
    assert known.mean == pytest.approx(4 * 480, rel=1e-3)


@pytest.mark.parametrize("learning", ["vb", "gibbs"])
def test_monte_carlo_continues_each_sample_from_the_last_training_document(models, learning):
    scene = models[learning]
    detector = scene.detector(approximation=MONTE_CARLO, n_samples=3, start="continued")
    for s in range(3):
        expected = detector.tables.xi[s] @ scene.model.belief_
        np.testing.assert_allclose(np.exp(detector.log_predicted[s]), expected, rtol=1e-12)
        assert not np.allclose(expected, np.exp(detector.tables.log_pi[s]))


def test_of_gibbs_samples_the_last_ones_are_taken(models):
    scene = models["gibbs"]
    detector = scene.detector(approximation=MONTE_CARLO, n_samples=2)
    np.testing.assert_array_equal(detector.tables.xi, [s.xi for s in scene.model.samples_[-2:]])


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
        models["em"].detector(**options)
    assert len(str(raised.value).splitlines()) == 1


def test_a_foreign_corpus_and_an_uncalibrated_model_are_refused(models):
    with pytest.raises(InvalidInputError, match="vocabulary of 7 words"):
        list(models["em"].detector().judge(habitus.Corpus(np.ones((2, 7)))))
    for words in ([99_999], [3, 99_999, 5], [-1, 2]):
        with pytest.raises(InvalidInputError, match="word ids must run"):
            models["em"].detector().step(Bag(np.array(words), np.full(len(words), 30.0)))
    with pytest.raises(InvalidInputError, match="a count for each word"):
        models["em"].detector().step(Bag(np.array([1, 2, 3]), np.array([30.0])))
    bare = habitus.MarkovClusteringTopicModel(n_iterations=2, random_state=0).fit(sampled(30, 6))
    for options in ({}, {"measure": "mean"}):
        with pytest.raises(InvalidInputError, match="needs a calibration"):
            Detector(bare, **options)
    assert Detector(bare, measure="mean", threshold=-4.0).threshold == -4.0


def test_more_gibbs_samples_than_were_kept_are_refused(models):
    with pytest.raises(InvalidInputError, match="keeps 5 Gibbs samples, 9 were asked for"):
        detector_of(models, "gibbs", MONTE_CARLO, 9)
    for learning, n_samples in (("vb", 0), ("gibbs", -1)):
        with pytest.raises(InvalidInputError, match="n_samples must be at least 1"):
            detector_of(models, learning, MONTE_CARLO, n_samples)


def test_judgements_hold_plain_finite_numbers(models):
    for judgement in models["em"].detector().judge(sampled(40, 7)):
        json.dumps([judgement.normality, *judgement[3:6]], allow_nan=False)
        assert judgement.posterior.sum() == pytest.approx(1, rel=1e-12)
        assert judgement.predicted.sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("measure", ["mean", "tail"])
def test_a_model_of_the_papers_words_judges_fine_words(models, measure):
    later = sampled(60, 5, lengths=[20, 40])
    fine = refined(later)
    assert fine.vocabulary.kind == "fine"
    one, other, live = (detector_of(models, "em", measure=measure) for _ in range(3))
    expected = list(one.judge(later))
    for found, wanted in zip(other.judge(fine), expected, strict=True):
        assert same(found, wanted)
    for t, document in enumerate(fine.bags()):
        if fine.first[t]:
            live.new_sequence()
        assert same(live.step(document, vocabulary=fine.vocabulary), expected[t])


@pytest.mark.parametrize("learning", ["em", "vb", "gibbs"])
def test_learning_from_fine_words_is_learning_from_their_coarse_sums(learning):
    fine = refined(sampled(80, 3))
    coarse = fine.coarse
    assert coarse.vocabulary == crossing_vocabulary().finest.coarse
    settings = {"n_iterations": 5, "burn_in": 5, "thinning": 2, "n_samples": 2, "random_state": 0}
    one, other = (
        habitus.MarkovClusteringTopicModel(4, 3, learning=learning, **settings).fit(corpus)
        for corpus in (fine, coarse)
    )
    assert one.vocabulary_ == coarse.vocabulary
    for found, wanted in zip(one.parameters_, other.parameters_, strict=True):
        assert np.array_equal(found, wanted)
    assert np.array_equal(one.predict(fine), other.predict(coarse))
    assert one.score(fine) == other.score(coarse)
    first, second = (calibrate(one, corpus, settings=SETTINGS) for corpus in (fine, coarse))
    tensors = second.contents().tensors
    for name, found in first.contents().tensors.items():
        assert np.array_equal(found, tensors[name])
    detections = [
        habitus.detect(
            corpus, SceneModel(one, first), alerts=habitus.AlertSettings(share=0.1, measure="mean")
        )
        for corpus in (fine, coarse)
    ]
    assert [event.line() for event in detections[0].events] == [
        event.line() for event in detections[1].events
    ]
    assert len(detections[0].events) > 0
    assert np.array_equal(*(detection.surprisals for detection in detections))


def test_words_of_another_grid_are_refused(models):
    detector = detector_of(models, "em")
    other = replace(crossing_vocabulary().finest, scale=2, width=0, height=0)
    with pytest.raises(InvalidInputError, match="cannot be summed"):
        detector.step(Bag(np.array([0]), np.array([30])), vocabulary=other)
