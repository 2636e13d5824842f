"""Things to report on: footage in which something goes wrong, and documents without footage."""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from habitus import Corpus, Detector, MarkovClusteringTopicModel, generate
from habitus.anomaly.calibration import Calibration, CalibrationSettings, calibrate
from habitus.anomaly.detection import Detection, detect_events
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.video import Source
from reference.two_lanes import normal_documents, two_lanes

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


class Found(NamedTuple):
    """A model, and what it found in which corpus."""

    model: MarkovClusteringTopicModel
    corpus: Corpus
    detection: Detection
    source: Source | None = None
    calibration: Calibration | None = None


@pytest.fixture(scope="session")
def lanes(tmp_path_factory) -> Found:
    """Footage of two lanes, with one event."""
    source = Source(str(two_lanes(tmp_path_factory.mktemp("lanes") / "lanes.mp4")))
    corpus, _ = extract_corpus([source], DocumentSettings())
    normal = corpus.take(normal_documents(len(corpus)))
    model = MarkovClusteringTopicModel(2, 2, random_state=0).fit(normal)
    calibration = calibrate(model, normal, settings=CalibrationSettings(n_folds=2))
    detector = Detector(model, calibration)
    return Found(
        model, corpus, detect_events(detector, corpus, source="lanes.mp4"), source, calibration
    )


@pytest.fixture(scope="session")
def documents() -> Found:
    """Documents of the crossing, some with words from anywhere; no footage, no picture."""
    rng = np.random.default_rng(0)
    v = crossing_vocabulary()
    normal = generate(crossing(), rng.poisson(80, 300), rng, vocabulary=v).corpus
    model = MarkovClusteringTopicModel(8, 4, random_state=0).fit(normal)
    counts = normal.counts.toarray()
    for t in range(5, len(counts), 20):
        np.add.at(counts[t], rng.integers(0, v.n_words, 30), 1)
    corpus = Corpus(counts, vocabulary=v)
    detector = Detector(model, measure="mean", threshold=0.0)
    return Found(
        model, corpus, detect_events(detector, corpus, source="crossing.corpus", share=0.05)
    )


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, which has to be there: a page nobody looked at is not tested."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium")
    if executable is None:
        pytest.fail(
            "the report is tested in a real browser, and there is no chromium: "
            "apt-get install --no-install-recommends chromium"
        )
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


class Opened(NamedTuple):
    """A page as a browser has it, and what it complained about."""

    page: object
    complaints: list[str]


@pytest.fixture
def opened(browser):
    """A function that opens a file without any network; complaints and requests are kept."""
    contexts = []

    def open_page(path: Path, **look) -> Opened:
        look = {"viewport": {"width": 1280, "height": 900}} | look
        contexts.append(context := browser.new_context(offline=True, **look))
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:"))
                else complaints.append(f"request: {request.url}")
            ),
        )
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())
        return Opened(page, complaints)

    yield open_page
    for context in contexts:
        context.close()
