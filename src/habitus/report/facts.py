"""What a report rests on: the model, the footage, the settings, the versions."""

import platform
from importlib.metadata import PackageNotFoundError, version

from habitus import __version__
from habitus.events import Detection
from habitus.events.wording import clock
from habitus.model import MarkovClusteringTopicModel

PACKAGES = {
    "numpy": "numpy",
    "av": "av (FFmpeg)",
    "opencv-python-headless": "OpenCV",
    "numba": "numba",
    "matplotlib": "matplotlib",
}

Facts = list[tuple[str, str]]


def model_facts(model: MarkovClusteringTopicModel) -> Facts:
    """How the model was learnt."""
    n_words, n_topics, n_behaviours = model.sizes
    v = model.vocabulary_
    grid = f"{v.rows} x {v.columns} cells of {v.cell * v.scale} pixels, 4 directions" if v else "-"
    prior = model.prior if isinstance(model.prior, str) else repr(model.prior)
    kept = model.settings_ or {}
    return [
        ("learning", f"{model.learning}, prior {prior}, best of {len(model.restarts_)} run(s)"),
        ("behaviours, topics", f"{n_behaviours}, {n_topics}"),
        ("words", f"{n_words}: {grid}" if v else str(n_words)),
        ("seed", "none" if model.random_state is None else str(model.random_state)),
        ("a document", f"{model.clip_:g} s of video"),
        ("shortest judged", f"{model.min_words:g} words"),
        *((name, str(kept[name])) for name in ("motion", "region") if kept.get(name)),
    ]


def detection_facts(detection: Detection) -> Facts:
    """What was judged, and how strictly."""
    n, judged = len(detection.corpus), int(detection.judged.sum())
    faults = int((detection.corpus.conditions != 0).sum())
    promised = detection.promised
    return [
        ("source", detection.source or "-"),
        ("length", clock(n * detection.corpus.clip)),
        ("documents", f"{n}, of which {judged} were judged"),
        ("camera out of order", f"{faults} documents (moved, covered or frozen)"),
        ("threshold", f"{detection.threshold:.6g}"),
        (
            "alarms of nothing to expect",
            f"{promised.low:.0f} to {promised.high:.0f}, {promised.mean:.2g} in the mean"
            if promised
            else "not known: the model was not calibrated",
        ),
    ]


def version_facts() -> Facts:
    """What it was made with."""
    found = [("habitus", __version__), ("Python", platform.python_version())]
    for package, name in PACKAGES.items():
        try:
            found.append((name, version(package)))
        except PackageNotFoundError:  # another build of it, as opencv-python
            found.append((name, "unknown"))
    return [*found, ("system", f"{platform.system()} {platform.machine()}")]
