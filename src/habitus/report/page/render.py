"""What a report rests on: the model, the footage, the settings, the versions.

Events as cards of the page: pictures, reasons, and a link into the annotated video.

The report: one HTML file that needs nothing else, and that anyone can open.
"""

import base64
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
import numpy as np
from markupsafe import Markup

from habitus.anomaly.detection import Detection
from habitus.anomaly.events import Event, clock
from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.report.figures.drawing import COLOURS, EVENT, behaviour_colour, ink_on
from habitus.report.figures.moments import EventPictures, event_pictures, jpeg
from habitus.report.figures.scene import behaviour_pictures, captions, cycle_svg
from habitus.report.film.annotation import film_start
from habitus.report.film.strip import timeline_of
from habitus.report.page.chart import HEIGHT, WIDTH, Truth, chart_of
from habitus.video import Source

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
    promised = detection.expected_false_alarms
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
    found = [("habitus", version("habitus")), ("Python", platform.python_version())]
    for package, name in PACKAGES.items():
        try:
            found.append((name, version(package)))
        except PackageNotFoundError:  # another build of it, as opencv-python
            found.append((name, "unknown"))
    return [*found, ("system", f"{platform.system()} {platform.machine()}")]


MOST_PICTURES = 60
"""Events that have pictures, the least usual ones; all others are told in words."""
# Seconds before an event at which its link into the video begins.
RUN_UP = 2.0
# What this share of the usual documents stays under is called usual.
USUAL = 0.95


class SurpriseBar(NamedTuple):
    """One of the two parts of a surprise, beside what is usual."""

    name: str
    value: str
    usual: str
    length: float
    """Of its bar, in percent."""
    mark: float
    """Where the usual ends, in percent."""


def cards_of(
    detection: Detection, source: Source | None, video: str | None
) -> list[dict[str, Any]]:
    """Of each event in order: the event, its pictures, what there is to say, the link."""
    strongest = np.argsort([event.normality for event in detection.events], kind="stable")
    pictured = sorted(strongest[:MOST_PICTURES].tolist())
    pictures = event_pictures(detection, source, events=pictured)
    start = film_start(detection)
    return [
        {
            "event": event,
            "why": f"{event.explanation[:1].upper()}{event.explanation[1:]}.",
            "pictures": _addresses(pictures.get(k)),
            "parts": _surprise_bars(detection, k),
            "expected": _expected(event),
            "link": f"{video}#t={max(event.start - start - RUN_UP, 0):.1f}" if video else None,
        }
        for k, event in enumerate(detection.events)
    ]


def _addresses(pictures: EventPictures | None) -> dict[str, str]:
    """An address for each picture; none for an event without."""
    return {name: data_uri(image) for name, image in pictures._asdict().items()} if pictures else {}


def _expected(event: Event) -> list[tuple[int, str]]:
    """Behaviours that were expected, most probable first, those that hardly were left out."""
    order = np.argsort(-np.array(event.expected), kind="stable")
    return [(int(z) + 1, f"{event.expected[z]:.0%}") for z in order if event.expected[z] >= 0.05]


def _surprise_bars(detection: Detection, k: int) -> list[SurpriseBar]:
    """Return the two parts of the surprise of event `k`."""
    usual = detection.judged & ~detection.abnormal
    peaks = [span.peak for span in detection.event_spans]
    found = []
    for name, values, unit in (
        ("motion that fits no behaviour", detection.misfit, "nats per word"),
        ("a behaviour out of its turn", detection.shift, "nats"),
    ):
        bound = float(np.quantile(values[usual], USUAL)) if usual.any() else 0.0
        whole = max(1.15 * bound, float(values[peaks].max()), 1e-9)
        value = float(values[peaks[k]])
        found.append(
            SurpriseBar(
                name,
                f"{value:.2f} {unit}",
                f"usually under {bound:.2f}",
                round(100 * value / whole, 1),
                round(100 * bound / whole, 1),
            )
        )
    return found


def data_uri(image: bytes, kind: str = "jpeg") -> str:
    """An image as an address that holds all of it."""
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


SCENE = 640
"""Pixels across a picture of a behaviour."""


def write_report(
    path: str | os.PathLike[str],
    detection: Detection,
    *,
    source: Source | None = None,
    video: Path | None = None,
    commands: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    truth: Truth | None = None,
) -> None:
    """Write the page.

    `source` is the footage, for thumbnails; `video` an annotated video to link into, best beside
    the page. `commands` made it, one a line; `settings` are further ones of the detector to tell.
    `truth` is what is known to have happened: start, end and name of each.
    """
    html = render(
        detection,
        source=source,
        commands=commands,
        settings=settings or {},
        truth=truth,
        video=_link(Path(path), video) if video else None,
    )
    with written_whole(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def render(
    detection: Detection,
    *,
    source: Source | None,
    video: str | None,
    commands: Sequence[str],
    settings: Mapping[str, object],
    truth: Truth | None,
) -> str:
    """The page as text."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("habitus.report.page"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    model = detection.model
    timeline = timeline_of(detection)
    script = _text("page.js")
    return templates.get_template("page.html").render(
        detection=detection, clock=clock, headline=headline(detection), lead=lead(detection),
        chart=chart_of(detection, timeline, truth), size=(WIDTH, HEIGHT),
        cards=cards_of(detection, source, video),
        behaviours=_behaviours(model), cycle=Markup(cycle_svg(model)),  # noqa: S704
        directions={d.name.lower(): colour for d, colour in COLOURS.items()}, event_colour=EVENT,
        facts=_facts(detection, model, settings), commands=commands, video=video,
        style=Markup(stylesheet()), script=Markup(script),  # noqa: S704
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def headline(detection: Detection) -> str:
    """What was found, in a few words."""
    n = len(detection.events)
    seconds = len(detection.corpus) * detection.corpus.clip
    length = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    if seconds >= 7200:
        length = f"{seconds / 3600:.1f} hours"
    return f"{n or 'No'} unusual event{'' if n == 1 else 's'} in {length}"


def lead(detection: Detection) -> str:
    """What to make of that."""
    if not detection.judged.any():
        return "Nothing moved enough to be judged."
    said = "" if detection.events else "Everything that moved was as the scene usually is. "
    if detection.expected_false_alarms is None:
        return f"{said}How many to expect of normal footage is not known."
    low, _, high = (f"{x:.0f}" for x in detection.expected_false_alarms)
    many = f"{low} to {high} events" if low != high else f"{low or 'no'} events"
    if high == "0":
        many = "no event"
    return f"{said}Normal footage of this length would bring {many} by chance."


def _behaviours(model: MarkovClusteringTopicModel) -> list[dict[str, Any]]:
    pictures = behaviour_pictures(model, width=SCENE)
    return [
        {
            "number": z + 1,
            "caption": caption,
            "picture": data_uri(jpeg(pictures[z])) if pictures else None,
            "colour": behaviour_colour(z),
            "ink": ink_on(behaviour_colour(z)),
        }
        for z, caption in enumerate(captions(model))
    ]


def _facts(
    detection: Detection, model: MarkovClusteringTopicModel, settings: Mapping[str, object]
) -> dict[str, Facts]:
    further = [(name, str(value)) for name, value in settings.items()]
    return {
        "Footage": [*detection_facts(detection), *further],
        "Model": model_facts(model),
        "Made with": version_facts(),
    }


def _link(page: Path, video: Path) -> str:
    """The address of a video as seen from the page."""
    try:
        relative = os.path.relpath(video.resolve(), page.resolve().parent)
    except ValueError:  # on another drive
        return video.resolve().as_uri()
    return quote(Path(relative).as_posix())


def stylesheet() -> str:
    """Return the style that all pages share."""
    return _text("page.css")


def _text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
