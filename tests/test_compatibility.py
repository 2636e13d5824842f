"""Files that habitus 0.1 wrote load, and what they say is the same."""

import json
from pathlib import Path

import numpy as np
import pytest

import habitus

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "v0.1-expected.json").read_text())
LEARNINGS = pytest.mark.parametrize("learning", ["em", "vb", "gibbs"])


@pytest.fixture(scope="module")
def later():
    return habitus.Corpus.load(DATA / "v0.1-later.corpus")


def test_a_corpus_keeps_its_documents():
    corpus = habitus.Corpus.load(DATA / "v0.1.corpus")
    assert (len(corpus), corpus.n_words, corpus.lengths.tolist()) == (120, 1536, [70, 50])
    assert corpus.clip == 0.5
    assert corpus.n_frames.tolist() == [12] * 120
    assert corpus.vocabulary.n_words == 1536


@LEARNINGS
def test_a_model_judges_as_it_did(learning, later):
    scene = habitus.SceneModel.load(DATA / f"v0.1-{learning}.model")
    assert scene.calibration.settings == habitus.CalibrationSettings()
    expected = EXPECTED[learning]
    # What a budget comes to is estimated anew; a threshold means what it did.
    detection = habitus.detect(
        later, scene, alerts=habitus.AlertSettings(threshold=expected["threshold"])
    )
    assert detection.normality.tolist() == expected["normality"]
    assert len(detection.events) == len(expected["events"]) > 0
    for event, old in zip(detection.events, expected["events"], strict=True):
        new = json.loads(event.line())
        rounded = old.pop("expected")  # a sum of exponentials, which now rounds elsewhere
        np.testing.assert_allclose(new["expected"], rounded, rtol=1e-14)
        assert {name: new[name] for name in old if name != "source"} == {
            name: value for name, value in old.items() if name != "source"
        }
    scores = scene.model.score_samples(later)
    np.testing.assert_allclose(scores, expected["score"], rtol=1e-12)


@pytest.mark.parametrize("learning", ["vb", "gibbs"])
def test_posterior_samples_score_as_they_did(learning, later):
    scene = habitus.SceneModel.load(DATA / f"v0.1-{learning}.model")
    detector = scene.detector(approximation="monte-carlo", n_samples=3, alerts_per_day=480)
    found = [judgement.normality for judgement in detector.judge(later)]
    np.testing.assert_allclose(found, EXPECTED[learning]["monte_carlo"], rtol=1e-12)


@LEARNINGS
def test_a_model_of_0_1_is_written_anew_and_says_the_same(learning, later, tmp_path):
    scene = habitus.SceneModel.load(DATA / f"v0.1-{learning}.model")
    scene.save(tmp_path / "new.model")
    again = habitus.detect(later, tmp_path / "new.model", alerts=480)
    assert again.normality.tolist() == EXPECTED[learning]["normality"]
