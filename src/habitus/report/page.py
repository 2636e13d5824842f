"""The report: one HTML file that needs nothing else, and that anyone can open."""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from habitus.events import Detection
from habitus.events.wording import clock
from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.report.behaviours import behaviour_pictures
from habitus.report.cards import cards_of, data_uri
from habitus.report.chart import HEIGHT, WIDTH, Truth, chart_of
from habitus.report.cycle import cycle_svg
from habitus.report.facts import Facts, detection_facts, model_facts, version_facts
from habitus.report.model import captions
from habitus.report.moments import jpeg
from habitus.report.palette import COLOURS, EVENT, behaviour_colour, ink_on
from habitus.report.places import places_of
from habitus.report.timeline import timeline_of
from habitus.video import Source

SCENE = 640
"""Pixels across a picture of a behaviour."""


def write_report(
    path: str | os.PathLike[str],
    detection: Detection,
    model: MarkovClusteringTopicModel,
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
        detection, model, source=source, commands=commands, settings=settings or {}, truth=truth,
        video=_link(Path(path), video) if video else None,
    )  # fmt: skip
    with written_whole(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def render(
    detection: Detection,
    model: MarkovClusteringTopicModel,
    *,
    source: Source | None,
    video: str | None,
    commands: Sequence[str],
    settings: Mapping[str, object],
    truth: Truth | None,
) -> str:
    """The page as text."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("habitus.report"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    places = places_of(detection)
    timeline = timeline_of(detection, model.clip_)
    script = _text("page.js")
    return templates.get_template("page.html").render(
        detection=detection, clock=clock, headline=headline(detection), lead=lead(detection),
        chart=chart_of(detection, timeline, places, truth), size=(WIDTH, HEIGHT),
        cards=cards_of(detection, model, source, video, places),
        behaviours=_behaviours(model), cycle=Markup(cycle_svg(model)),  # noqa: S704
        directions={d.name.lower(): colour for d, colour in COLOURS.items()}, event_colour=EVENT,
        facts=_facts(detection, model, settings), commands=commands, video=video,
        style=Markup(_text("page.css")), script=Markup(script),  # noqa: S704
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
    if detection.promised is None:
        return f"{said}How many to expect of normal footage is not known."
    low, _, high = (f"{x:.0f}" for x in detection.promised)
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


def _text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
