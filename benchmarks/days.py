"""A budget of alerts on days of one camera that nobody has learnt from, by two commands.

    python benchmarks/days.py PATH [--cache FOLDER]

PATH has a folder per day, named by its date, with a video per hour: DATE/HOUR.mp4. Each day is
judged by a model of the other days, and by one of the days before it, as a camera would be that is
learnt anew each night; single hours, of days of which half or more is missing, by a model of all
whole days. Counted are the hours that `archive` judges, as it refuses those of another
view, and the alarms at budgets of 1, 5 and 20 a day: by `archive detect`, and by `detect` with the
model of the archive and the documents of the day in one corpus.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import habitus
from habitus.scene import detect_events
from habitus.site.operations import detect_archive, learn_archive
from hours import BUDGETS, LEAST_HOURS, corpus_of_day, hours_in, run
from report import Cells


def measure(path: Path, cache: Path | None) -> Iterator[Cells]:
    """Yield a row for each day, and one for single hours."""
    folders = [folder for folder in sorted(path.iterdir()) if hours_in(folder)]
    whole = [folder for folder in folders if len(hours_in(folder)) >= LEAST_HOURS]
    for day in whole:
        yield judge([other for other in whole if other is not day], [day], cache)
    for n in range(1, len(whole) - 1):  # the last day is judged by all others above
        yield judge(whole[:n], [whole[n]], cache, by=", learnt from the days before")
    single = [folder for folder in folders if folder not in whole]
    if single:
        yield judge(whole, single, cache)


def judge(
    learnt: Sequence[Path], judged: Sequence[Path], cache: Path | None, *, by: str = ""
) -> Cells:
    """Learn some days, judge others, and return a row of the table."""
    videos = [video for day in judged for video in hours_in(day)]
    with tempfile.TemporaryDirectory() as folder:
        recordings, site = Path(folder, "camera"), Path(folder, "site")
        recordings.mkdir()
        for day in learnt:
            _link(day, recordings)
        pattern = f"{folder}/{{camera}}/{{date}}/{{hour}}.mp4"
        learn_archive([pattern], output=site, settled=0.0)
        scene = habitus.SceneModel.load(site / "camera" / "model.habitus")
        for day in learnt:
            shutil.rmtree(recordings / day.name)  # known already
        for day in judged:
            _link(day, recordings)
        row: dict[str, str | float | None] = {"judged": ", ".join(day.name for day in judged) + by}
        dates = tuple(day.name for day in judged)
        corpora = [corpus_of_day(day, cache) for day in judged]
        for budget in BUDGETS:
            found = detect_archive(site, alerts_per_day=budget, settled=0.0)
            refused = sum(str(each.clock).startswith(dates) for each in found.troubles)
            row["hours judged"] = f"{len(videos) - refused} of {len(videos)}"
            row[f"archive, {budget:g} a day"] = sum(
                str(each.clock).startswith(dates) for each in found.alarms
            )
            row[f"detect, {budget:g} a day"] = sum(
                len(detect_events(scene.detector(alerts_per_day=budget), corpus).events)
                for corpus in corpora
            )
    return row


def _link(day: Path, recordings: Path) -> None:
    (recordings / day.name).mkdir()
    for video in hours_in(day):
        (recordings / day.name / video.name).symlink_to(video.resolve())


if __name__ == "__main__":
    run(__doc__, measure)
