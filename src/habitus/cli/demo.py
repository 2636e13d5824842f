"""habitus demo: the whole story, on a rendered junction."""

from pathlib import Path

import habitus
from habitus.cli import options
from habitus.cli.options import option
from habitus.cli.screen import Screen, table
from habitus.cli.terminal import progress_bars, say_json
from habitus.rarity import counted


@options.command
def demo(
    *,
    output: str = option("demo", "Folder for what it makes.", "--output", "-o"),
    seed: int = option(200, "Same seed, same demo."),
    as_json: bool = options.json_option("Print what it found as JSON."),
) -> None:
    """Render a junction, learn its first five minutes, and find what is abnormal in the rest.

    Everything is made here: the video, the model, the events, a page about them. Given again, it
    goes on from the video that is there.
    """
    with progress_bars() as progress:
        demonstration = habitus.demo(output, seed=seed, progress=progress)
    if as_json:
        say_json(demonstration.to_json())
    else:
        _show(demonstration, Path(output))


def _show(demonstration: "habitus.Demonstration", output: Path) -> None:
    clock, detection, match = habitus.clock, demonstration.detection, demonstration.match
    rows = table("when", "what happened", "rank", "what habitus says", left=range(4))
    for anomaly, k in zip(demonstration.truth, demonstration.ranked.found_by, strict=True):
        when = f"{clock(anomaly.start)}-{clock(anomaly.end)}"
        rank, sentence = "-", f"not among the {len(detection.moments)} most unusual moments"
        if k is not None:
            event = detection.moments[k]
            rank, sentence = str(k + 1), f"{'' if event.alarm else 'no alarm; '}{event.explanation}"
        rows.add_row(when, anomaly.kind, rank, sentence)
    console, budget = Screen(), demonstration.alerts_per_day
    console.print(
        f"learnt from {clock(demonstration.learnt_seconds)} of a junction, then judged "
        f"{clock(demonstration.judged_seconds)} of it; {budget / 24:g} false alarms per hour are "
        "allowed"
    )
    console.print(rows)
    for k in match.false_alarms:
        console.print(f"false alarm: {detection.events[k].in_words()}")
    for note in detection.notes:
        console.print(f"note: {note}")
    console.print(
        f"{match.n_found} of {len(demonstration.truth)} raised an alarm, "
        f"{counted(len(match.false_alarms), 'false alarm')}\n\n"
        f"open     {output / 'report.html'}\n"
        f"watch    {output / 'annotated.mp4'}\n"
        f"look     habitus show {output / 'junction.model'}\n"
        "yours    habitus learn normal.mp4 -o my.model\n"
        "         habitus report later.mp4 --model my.model -o report.html "
        f"--alerts-per-day {budget:g}"
    )
