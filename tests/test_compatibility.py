"""Files that habitus 0.4 wrote load, and judge as they did."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import habitus
from habitus.corpus.looks import GRID
from habitus.errors import InvalidInputError

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "v0.4-expected.json").read_text())


@pytest.fixture(scope="module")
def corpus():
    return habitus.Corpus.load(DATA / "v0.4.corpus")


def test_a_corpus_keeps_its_documents(corpus):
    assert (len(corpus), corpus.lengths.tolist(), corpus.clip) == (50, [50], 1.0)
    assert corpus.vocabulary.kind == "fine"
    assert corpus.settings["cell"] == 16
    assert len(corpus.looks) == 1


@pytest.mark.parametrize("measure", EXPECTED)
def test_a_model_judges_as_it_did(corpus, measure, tmp_path):
    """So does the file that is written of it today."""
    scene, expected = habitus.SceneModel.load(DATA / "v0.4.model"), EXPECTED[measure]
    scene.save(tmp_path / "new.model")
    alerts = habitus.AlertSettings(threshold=expected["threshold"], measure=measure)
    for model in (scene, tmp_path / "new.model"):
        detection = habitus.detect(corpus, model, alerts=alerts)
        np.testing.assert_allclose(detection.normality, expected["normality"], rtol=1e-12)
        assert [[e.start, e.end, e.peak, e.explanation] for e in detection.events] == (
            expected["events"]
        )


def test_its_one_picture_is_its_one_look(corpus, tmp_path):
    """Footage of another view is refused by it; the same view in another light is a second one."""
    scene = habitus.SceneModel.load(DATA / "v0.4.model")
    assert len(scene.model.looks_) == 1
    noise = np.random.default_rng(0).integers(0, 256, (1, *GRID), dtype=np.uint8)
    with pytest.raises(InvalidInputError, match="likeness to its look"):
        habitus.detect(replace(corpus, looks=noise), scene, output=tmp_path / "a.jsonl")
    lamp = np.linspace(0.2, 1.0, GRID[1])
    dim = replace(corpus, looks=(corpus.looks * lamp // 2).astype(np.uint8))
    habitus.detect(dim, scene, output=tmp_path / "a.jsonl")
    assert np.array_equal(scene.updated(dim).model.looks_[-1:], dim.looks)


def test_it_is_updated_and_accepts_events(corpus):
    scene = habitus.SceneModel.load(DATA / "v0.4.model")
    alerts = habitus.AlertSettings(threshold=EXPECTED["habits"]["threshold"])
    event = habitus.detect(corpus, scene, alerts=alerts).events[0]
    before = scene.habits.all_counts.n_documents
    assert scene.accept(event).scene.habits.all_counts.n_documents > before
    assert scene.updated(corpus).habits.all_counts.n_documents == before + len(corpus)
