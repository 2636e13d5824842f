"""habitus demo: the whole story, on a junction of its own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli.detection import annotate_video, write_events
from habitus.cli.inputs import forget_parts, make_folder, read_documents, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from habitus.anomaly.detection import Detection
    from habitus.anomaly.scene_model import SceneModel
    from habitus.corpus.documents import Corpus
    from habitus.evaluation.matching import Match
    from habitus.lab import Anomaly, Junction

NORMAL, WHOLE = 300.0, 720.0
"""Seconds to learn from, and in all."""
ANOMALIES_PER_HOUR = 60.0
# Five minutes tell little of what happens once a day: one false alarm in three minutes may be.
ALERTS_PER_DAY = 480.0


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for what it makes.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Same seed, same demo.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print what it found as JSON.")] = False,
) -> None:
    """Render a junction, learn its first five minutes, and find what is abnormal in the rest.

    Everything is made here: the video, the model, the events, a page about them. Given again, it
    goes on from the video that is there.
    """
    from habitus.anomaly.detection import detect_events
    from habitus.evaluation.matching import match
    from habitus.lab import Junction, write_labels
    from habitus.report.page.render import write_report

    make_folder(output)
    scene = Junction(
        seed=seed, seconds=WHOLE, normal_for=NORMAL, anomalies_per_hour=ANOMALIES_PER_HOUR
    )
    video, model_file = output / "junction.mp4", output / "junction.model"
    _render_once(scene, video)
    write_labels(scene, output / "junction.csv")
    (source,) = sources_of([str(video)])
    corpus, _ = read_documents([source], None, video)
    forget_parts(video)
    learnt = _learn(corpus.take((corpus.times < NORMAL).nonzero()[0]), seed)
    learnt.save(model_file)
    model = learnt.model
    rest = corpus.take((corpus.times >= NORMAL).nonzero()[0])
    detector = learnt.detector(start="continued", alerts_per_day=ALERTS_PER_DAY)
    detection = detect_events(detector, rest, source=str(video))
    annotated, events = output / "annotated.mp4", output / "events.jsonl"
    before = events.read_text() if events.is_file() and annotated.is_file() else None
    write_events(events, source, detection, model)
    if events.read_text() != before:  # else it shows just these already
        annotate_video(annotated, source, detection, model)
    truth = scene.truth()
    write_report(
        output / "report.html", detection, model, source=source, video=annotated,
        commands=[f"habitus demo --seed {seed}"],
        truth=[(event.start, event.end, event.kind) for event in truth],
    )  # fmt: skip
    found = match(detection.events, truth)
    if as_json:
        typer.echo(json.dumps(_summary(detection, truth, found)))
    else:
        _tell(detection, truth, found, output)


def _render_once(scene: "Junction", video: Path) -> None:
    """Render the scene, unless that very scene is there already."""
    from dataclasses import asdict

    from habitus import __version__
    from habitus.cli.progress import progress_bar
    from habitus.files import written_whole
    from habitus.lab import render

    note = video.with_suffix(".json")
    wanted = json.dumps({"habitus": __version__, **asdict(scene)})
    if video.is_file() and note.is_file() and note.read_text() == wanted:
        return
    with progress_bar("rendering", scene.n_frames) as advance:
        render(scene, video, progress=lambda progress: advance(int(progress.done), 0.0))
    with written_whole(note) as temporary:
        temporary.write_text(wanted)


def _learn(corpus: "Corpus", seed: int) -> "SceneModel":
    from habitus.cli.learn import learn_with_progress

    return learn_with_progress(corpus, n_restarts=20, n_jobs=-1, random_state=seed)


def _summary(detection: "Detection", truth: "Sequence[Anomaly]", found: "Match") -> dict[str, Any]:
    return {
        "truth": [
            {"kind": event.kind, "start": event.start, "end": event.end, "found": k is not None}
            for event, k in zip(truth, found.found_by, strict=True)
        ],
        "found": found.n_found,
        "false_alarms": len(found.false_alarms),
        "events": [event.to_json() for event in detection.events],
    }


def _tell(detection: "Detection", truth: "Sequence[Anomaly]", found: "Match", output: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from habitus.anomaly.events import clock, in_words

    table = Table("when", "what happened", "what habitus says", box=SIMPLE_HEAD)
    for event, k in zip(truth, found.found_by, strict=True):
        said = detection.events[k].explanation if k is not None else "-"
        table.add_row(f"{clock(event.start)}-{clock(event.end)}", event.kind, said)
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"learnt from {clock(NORMAL)} of a junction, then judged {clock(WHOLE - NORMAL)} of it"
    )
    console.print(table)
    for k in found.false_alarms:
        console.print(f"false alarm: {in_words(detection.events[k])}")
    console.print(
        f"{found.n_found} of {len(truth)} found, {len(found.false_alarms)} false alarm(s)\n\n"
        f"open     {output / 'report.html'}\n"
        f"watch    {output / 'annotated.mp4'}\n"
        f"look     habitus show {output / 'junction.model'}\n"
        "yours    habitus learn normal.mp4 -o my.model\n"
        "         habitus report later.mp4 --model my.model -o report.html"
    )
