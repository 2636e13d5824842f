"""The report: one HTML file that contains everything it needs."""

import base64
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import jinja2
import numpy as np
from markupsafe import Markup

from habitus.arrays import Array
from habitus.files import written_whole
from habitus.habits import HOUR_STATISTICS, STATISTICS
from habitus.model import TopicModel
from habitus.rarity import counted, duration_in_words, sentence, unusualness
from habitus.reporting.figures.drawing import COLOURS, HOTTEST, behaviour_colour, ink_on
from habitus.reporting.figures.moments import event_pictures, jpeg
from habitus.reporting.figures.scene import behaviour_captions, behaviour_pictures, cycle_svg
from habitus.reporting.film import film_start
from habitus.reporting.normality_chart import (
    HEIGHT,
    WIDTH,
    Truth,
    chart_of,
    normality_chart,
    quantiles_of,
)
from habitus.scene.detection import Detection
from habitus.scene.events import Event, clock, judge_moment
from habitus.scene.explanation import unit_of
from habitus.scene.habit_model import HabitJudgement, HabitModel
from habitus.version import __version__
from habitus.video import Source

MOST_PICTURES = 60
"""Moments with pictures: those of lowest normality; the others are described in text only."""
SCENE = 640
"""Width of the picture of a behaviour, in pixels."""
# Seconds before an event at which its link into the video starts.
LEAD_TIME = 2.0
# Quantile of the normal documents that a surprise is compared with.
NORMAL_QUANTILE = 0.95
GATHERING_WORDS = {"scan": "one thing", "sum": "whole picture"}
# Behaviours of a lower predicted probability are not listed.
LEAST_EXPECTED = 0.05


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
    """Write the report of a detection as an HTML page.

    Parameters
    ----------
    path, detection
        Page to write, as .html, and what was found.
    source
        The footage, for thumbnails; without it they show the model's picture of the scene.
    video
        Annotated video to link to, best in the same folder.
    commands, settings
        Commands that made the report, and further settings by name, to be listed in it.
    truth
        Start, end and name of each labelled event, to be shown below the timeline.
    """
    address = _relative_address(Path(path), video) if video else None
    script, fusion = _template_text("page.js"), detection.habits and detection.habits.fusion
    further = [(name, str(value)) for name, value in (settings or {}).items()]
    html = template("habitus.reporting.page", "page.html").render(
        detection=detection,
        clock=clock,
        headline=headline(detection),
        lead=lead(detection),
        unit=unit_of(detection.corpus.clip),
        chart=chart_of(detection, normality_chart(detection), truth),
        size=(WIDTH, HEIGHT),
        cards=event_cards(detection, source, address),
        behaviours=_behaviours(detection.model),
        cycle=Markup(cycle_svg(detection.model)),  # noqa: S704 - drawn here, from numbers
        directions={d.name.lower(): colour for d, colour in COLOURS.items()},
        normal_quantile=NORMAL_QUANTILE,
        hottest=HOTTEST,
        quantiles=quantiles_of(fusion.held_out[fusion.judged]) if fusion else None,
        facts={
            "Footage": [*detection_facts(detection), *further],
            "Model": model_facts(detection.model),
            "Software": version_facts(),
        },
        commands=commands,
        video=address,
        style=Markup(stylesheet()),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    with written_whole(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def template(package: str, name: str) -> jinja2.Template:
    """Return a template of a package; a name in it that has no value is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    ).get_template(name)


def stylesheet() -> str:
    """Return the style sheet that all pages share."""
    return _template_text("page.css")


def _template_text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _relative_address(page: Path, video: Path) -> str:
    """Return the address of a video relative to the page."""
    try:
        relative = os.path.relpath(video.resolve(), page.resolve().parent)
    except ValueError:  # on another drive
        return video.resolve().as_uri()
    return quote(Path(relative).as_posix())


def headline(detection: Detection) -> str:
    """Return the number of alarms and the duration of the footage."""
    n, duration = len(detection.events), duration_in_words(detection.seconds)
    return f"{counted(n, 'alarm') if n else 'No alarm'} in {duration}"


def lead(detection: Detection) -> str:
    """Return what the page shows, and how many false alarms to compare the alarms with."""
    if not detection.judged.any():
        return "Nothing moved enough to be judged."
    expected = detection.expected_false_alarms
    if expected is None:
        words = "The expected number of false alarms is not known: the model is not calibrated."
    else:
        words = f"Normal footage of this length raises {expected.in_words()} false alarms (90 %)."
    return f"{_shown_moments(detection)} {words}"


def _shown_moments(detection: Detection) -> str:
    n, n_alarms = len(detection.moments), len(detection.events)
    if not n_alarms:
        which = "This was the most unusual moment" if n == 1 else "These were the most unusual"
        return f"{which}{'' if n == 1 else ' moments'}; none of them is rare enough for an alarm."
    if n == n_alarms:
        return "It is shown below." if n == 1 else "All are shown below, the most unusual first."
    verb = "is an alarm" if n_alarms == 1 else "are alarms"
    return f"Of the {n} most unusual moments, ranked below, {n_alarms} {verb}."


def _behaviours(model: TopicModel) -> list[dict[str, Any]]:
    """Return number, caption, picture and colours of each behaviour."""
    pictures = behaviour_pictures(model, width=SCENE)
    return [
        {
            "number": z + 1,
            "caption": caption,
            "picture": data_uri(jpeg(pictures[z])) if pictures else None,
            "colour": behaviour_colour(z),
            "ink": ink_on(behaviour_colour(z)),
        }
        for z, caption in enumerate(behaviour_captions(model))
    ]


class SurpriseBar(NamedTuple):
    """One component of what makes a document unusual, on a scale that all moments share."""

    name: str
    value: str
    """With its unit."""
    normal: str
    """What the mark stands for, as text."""
    length: float
    """Length of the bar, in percent."""
    mark: float | None
    """Position of the mark on the bar, in percent; None where it has none."""
    part: Literal["score", "strongest"] | None = None
    """Whether this is the score of habits, or the statistic that is most of it."""


class EventCard(NamedTuple):
    """An event as the page shows it."""

    event: Event
    explanation: str
    """As a sentence."""
    rarity: str
    """As a sentence; empty where it is not known."""
    unusual: int
    """From 0 to 100."""
    pictures: dict[str, str]
    """Addresses of the pictures by the names of EventPictures; empty without pictures."""
    bars: list[SurpriseBar]
    expected: list[tuple[int, str]]
    """Number and predicted probability of the expected behaviours, most probable first."""
    link: str | None
    """Address of the event in the annotated video."""


def event_cards(detection: Detection, source: Source | None, video: str | None) -> list[EventCard]:
    """Return a card per moment, the most unusual first; `video` is where the annotated one is."""
    pictured = range(min(MOST_PICTURES, len(detection.moments)))
    pictures = event_pictures(detection, source, moments=pictured)
    habits = detection.habits
    bars = _habit_bars(detection, habits) if habits else _surprise_bars(detection)
    start = film_start(detection)
    return [
        EventCard(
            event=event,
            explanation=_sentence(event.explanation),
            rarity=_sentence(event.rarity),
            unusual=unusualness(event.probability),
            pictures={
                name: data_uri(image)
                for name, image in (pictures[k]._asdict() if k in pictures else {}).items()
            },
            bars=bars[k],
            expected=_expected_behaviours(event),
            link=f"{video}#t={max(event.start - start - LEAD_TIME, 0):.1f}" if video else None,
        )
        for k, event in enumerate(detection.moments)
    ]


def _sentence(text: str) -> str:
    return f"{sentence(text)}." if text else ""


def _expected_behaviours(event: Event) -> list[tuple[int, str]]:
    order = np.argsort(-np.array(event.expected), kind="stable")
    return [
        (int(z) + 1, f"{event.expected[z]:.0%}")
        for z in order
        if event.expected[z] >= LEAST_EXPECTED
    ]


def _habit_bars(detection: Detection, habits: HabitModel) -> list[list[SurpriseBar]]:
    """Return the score of each moment, and the rarities that it is made of."""
    threshold = habits.fusion.score_of_normality(detection.threshold)
    judgements = [judge_moment(event, habits) for event in detection.moments]
    full = max(1.15 * threshold, 1e-9, *(judgement.score for judgement in judgements))
    return [_bars_of(judgement, threshold, full) for judgement in judgements]


def _bars_of(judgement: HabitJudgement, threshold: float, full: float) -> list[SurpriseBar]:
    """Return the score of one moment, and the rarities that it is made of."""
    cues = (*STATISTICS, *HOUR_STATISTICS)[: len(judgement.rarities)]
    names = (f"{cue.capitalize()}, {GATHERING_WORDS[how]}" for cue, how in cues)
    values = dict(zip(names, judgement.rarities.tolist(), strict=True))
    values["Behaviours"] = judgement.behaviour_rarity
    if judgement.turn_evidence is not None:
        values["Turn"] = judgement.turn_rarity
    if judgement.standing_evidence is not None:
        values["Standing"] = judgement.standing_rarity
    parts = [
        SurpriseBar(name, f"{value:.1f} nats", "", round(100 * value / full, 1), None)
        for name, value in values.items()
    ]
    counted = judgement.strongest
    if judgement.by_turn or judgement.by_standing:
        counted = list(values).index("Standing" if judgement.by_standing else "Turn")
    parts[counted] = parts[counted]._replace(part="strongest")
    score = SurpriseBar(
        "Score",
        f"{judgement.score:.1f} nats",
        f"alarm from {threshold:.1f}",
        round(100 * judgement.score / full, 1),
        round(100 * threshold / full, 1),
        "score",
    )
    return [score, *parts]


def _surprise_bars(detection: Detection) -> list[list[SurpriseBar]]:
    """Return the two components of the surprise of each moment."""
    parts = (
        ("Misfit: motion of no behaviour", detection.misfit, "nats per word"),
        ("Shift: unexpected behaviour", detection.shift, "nats"),
    )
    return list(map(list, zip(*(_compared(detection, *part) for part in parts), strict=True)))


def _compared(detection: Detection, name: str, values: Array, unit: str) -> list[SurpriseBar]:
    """Return one component of the surprise of each moment, beside that of normal documents."""
    normal = detection.judged & ~detection.abnormal
    peaks = values[[span.peak for span in detection.moment_spans]]
    bound = float(np.quantile(values[normal], NORMAL_QUANTILE)) if normal.any() else 0.0
    full = max(1.15 * bound, float(peaks.max(initial=0.0)), 1e-9)
    return [
        SurpriseBar(
            name,
            f"{value:.2f} {unit}",
            f"normal up to {bound:.2f}",
            round(100 * value / full, 1),
            round(100 * bound / full, 1),
        )
        for value in peaks.tolist()
    ]


def data_uri(image: bytes) -> str:
    """Return a JPEG as an address that contains all of it."""
    return f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"


Facts = list[tuple[str, str]]
"""Names and values, in the order to show them."""

PACKAGES = {
    "numpy": "numpy",
    "av": "av (FFmpeg)",
    "opencv-python-headless": "OpenCV",
    "numba": "numba",
    "matplotlib": "matplotlib",
}
"""Distributions whose versions are listed, and their names on the page."""


def detection_facts(detection: Detection) -> Facts:
    """Return what was judged, and by which threshold."""
    n, judged = len(detection.corpus), int(detection.judged.sum())
    faults = int((detection.corpus.conditions != 0).sum())
    expected = detection.expected_false_alarms
    return [
        ("source", detection.source or "-"),
        ("duration", clock(detection.seconds)),
        ("documents", f"{n}, of which {judged} were judged"),
        ("camera moved, covered or frozen", counted(faults, "document")),
        ("threshold", f"{detection.threshold:.6g}"),
        (
            "expected false alarms",
            f"{expected.low:.0f} to {expected.high:.0f} (90 % interval), mean {expected.mean:.2g}"
            if expected
            else "not known: the model is not calibrated",
        ),
    ]


def model_facts(model: TopicModel) -> Facts:
    """Return how the model was learnt."""
    n_words, n_topics, n_behaviours = model.sizes
    v = model.vocabulary_
    grid = f": {v.rows} x {v.columns} cells of {v.cell_side} pixels, 4 directions" if v else ""
    prior = model.prior if isinstance(model.prior, str) else repr(model.prior)
    kept, runs = model.settings_ or {}, counted(len(model.restarts_), "run")
    return [
        ("learning", f"{model.learning}, prior {prior}, best of {runs}"),
        ("behaviours", str(n_behaviours)),
        ("topics", str(n_topics)),
        ("words", f"{n_words}{grid}"),
        ("random seed", "none" if model.random_state is None else str(model.random_state)),
        ("document", f"{model.clip_:g} s of video"),
        ("shortest judged document", f"{model.min_words:g} words"),
        *((name, str(kept[name])) for name in ("motion", "region") if kept.get(name)),
    ]


def version_facts() -> Facts:
    """Return the versions of the software."""
    facts = [("habitus", __version__), ("Python", platform.python_version())]
    for package, name in PACKAGES.items():
        try:
            facts.append((name, version(package)))
        except PackageNotFoundError:  # installed as another distribution, such as opencv-python
            facts.append((name, "unknown"))
    return [*facts, ("system", f"{platform.system()} {platform.machine()}")]
