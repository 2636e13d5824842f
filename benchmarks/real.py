"""Real footage with labels per frame: area under ROC of habitus and of every baseline.

    python benchmarks/real.py PATH [PATH ...]

A path is a data set, or a folder of data sets, in one of two layouts:

    training/*.mp4  testing/*.mp4  abnormal_frames.csv  [masks/CLIP/FRAME.png]
    sceneN/*.mp4  abnormal_frames.csv

In the first, one model is learnt from all training clips and judges all testing clips. In the
second, each clip is judged by a model learnt from the documents of the *other* clips of its scene
that end before their abnormal frames. All frames of a data set or scene are ranked together; a
frame has the score of its document. Everything is learnt and judged with default options; a
figure of a baseline is the mean over its runs. With `--overlap 0.2`, a document of one second
begins every 0.2 seconds, judged by the same models: a frame has the mean of the documents that it
is in, and the boxes of the one whose middle is nearest, which needs up to 0.8 seconds of later
footage. That is one row more for each hop, of the default measure; `--save` keeps such a table
apart.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import habitus
from habitus.evaluation.assessment import LabelledClip
from habitus.evaluation.frames import ScoredFrames, assess_frames, assess_pixels, score_frames
from habitus.evaluation.label_files import ClipRanges, parse_labels, read_pixels
from habitus.evaluation.metrics import ScoredDocuments
from habitus.habits import STATISTICS
from habitus.lab.comparison.baselines import BASELINES, run_baseline
from habitus.lab.comparison.protocol import ComparisonProtocol, SplitFootage
from habitus.scene import detect_events
from habitus.scene.detector import MEASURE_NAMES
from habitus.scene.localisation import Box
from report import Cells, save

LABELS = "abnormal_frames.csv"
FIGURES = ("ROC AUC", "average precision", "equal error", "pixel ROC AUC", "pixel detection", "box")


class Fold(NamedTuple):
    """What one model learns from, and the clips that it judges."""

    train: habitus.Corpus
    clips: list[LabelledClip]

    @property
    def test(self) -> habitus.Corpus:
        """Documents of all clips to judge."""
        return habitus.Corpus.joined([clip.corpus for clip in self.clips])


class DataSet(NamedTuple):
    """Labelled clips of one camera."""

    name: str
    folds: list[Fold]
    labels: ClipRanges
    masks: Path | None

    @property
    def clips(self) -> list[LabelledClip]:
        """All clips that are judged, in order."""
        return [clip for fold in self.folds for clip in fold.clips]

    @property
    def truth(self) -> list[NDArray[np.bool_]]:
        """Whether each frame is abnormal, clip by clip."""
        return [self.labels.of(clip.name).to_flags(clip.footage) for clip in self.clips]


class Scores(NamedTuple):
    """What a method says of every document of a data set."""

    normality: NDArray[np.float64]
    judged: NDArray[np.bool_]
    alarmed: NDArray[np.bool_]
    boxes: list[Sequence[Box]] | None
    """Boxes of each document; None for a method without."""


def data_sets(path: Path) -> Iterator[DataSet]:
    """Yield the data sets of a path, whichever layout it has."""
    if not (path / LABELS).is_file():
        for inner in sorted(each for each in path.iterdir() if (each / LABELS).is_file()):
            yield from data_sets(inner)
        return
    labels = parse_labels(path / LABELS)
    assert isinstance(labels, ClipRanges), f"{path / LABELS}: needs clip,first_frame,last_frame"
    if (path / "training").is_dir() and (path / "testing").is_dir():
        train = [clip.corpus for clip in clips_of(path / "training")]
        fold = Fold(habitus.Corpus.joined(train), clips_of(path / "testing"))
        masks = path / "masks"
        yield DataSet(path.name, [fold], labels, masks if masks.is_dir() else None)
        return
    for scene in sorted(each for each in path.glob("scene*") if each.is_dir()):
        yield DataSet(
            f"{path.name}, {scene.name}", list(folds(clips_of(scene), labels)), labels, None
        )


def clips_of(folder: Path) -> list[LabelledClip]:
    """Return the clips of a folder as documents, made with default options."""
    videos = sorted(folder.glob("*.mp4"))
    return [LabelledClip(str(video), habitus.extract(video).corpus) for video in videos]


def overlapping_documents(clip: LabelledClip, hop: float) -> Iterator[tuple[int, habitus.Corpus]]:
    """Yield documents that begin at every hop, those that do not overlap together.

    With them comes the number of frames before the first.
    """
    parts = habitus.extract(clip.name, documents=habitus.DocumentSettings(clip=hop)).corpus
    assert parts.n_frames is not None
    assert parts.settings is not None
    times = round(clip.corpus.clip / hop)
    for first in range(min(times, len(parts) - times + 1)):
        end = first + (len(parts) - first) // times * times
        each = [slice(first + k, end, times) for k in range(times)]
        yield (
            int(parts.n_frames[:first].sum()),
            habitus.Corpus(
                reduce(add, (parts.counts[own] for own in each)),
                times=parts.times[each[0]],
                vocabulary=parts.vocabulary,
                n_frames=reduce(add, (parts.n_frames[own] for own in each)),
                settings={**parts.settings, "clip": clip.corpus.clip},
            ),
        )


def folds(clips: list[LabelledClip], labels: ClipRanges) -> Iterator[Fold]:
    """Yield each clip with what the others show before their abnormal frames."""
    for judged in clips:
        others = [usual_part(clip, labels) for clip in clips if clip is not judged]
        yield Fold(habitus.Corpus.joined(others), [judged])


def usual_part(clip: LabelledClip, labels: ClipRanges) -> habitus.Corpus:
    """Return the documents that end before the first abnormal frame."""
    abnormal = labels.of(clip.name).to_flags(clip.footage)
    first = int(abnormal.argmax()) if abnormal.any() else len(abnormal)
    assert clip.corpus.n_frames is not None
    n = np.searchsorted(np.cumsum(clip.corpus.n_frames), first, side="right")
    return clip.corpus.take(np.arange(n))


def judged_by_habitus(data: DataSet, scenes: list[habitus.SceneModel], measure: str) -> Scores:
    """Judge every clip by the model of its fold."""
    found = [
        detect_events(scene.detector(measure=measure), fold.test, localise_all=True)
        for fold, scene in zip(data.folds, scenes, strict=True)
    ]
    boxes = [shown for each in found for shown in boxes_of(each)]
    return Scores(
        np.concatenate([each.normality for each in found]),
        np.concatenate([each.judged for each in found]),
        np.concatenate([each.abnormal for each in found]),
        boxes,
    )


def boxes_of(found: habitus.Detection) -> list[Sequence[Box]]:
    """Return the boxes of each document."""
    words = found.abnormal_words
    return [words[t].boxes if t in words else () for t in range(len(found.corpus))]


def judged_by_cue(data: DataSet, scenes: list[habitus.SceneModel], number: int) -> Scores:
    """Judge every clip by one cue of the habits alone, gathered in one way."""
    found = [
        scene.habits.judge_all(fold.test)
        for fold, scene in zip(data.folds, scenes, strict=True)
        if scene.habits is not None
    ]
    judged = np.concatenate([each.judged for each in found])
    statistics = np.concatenate([each.statistics for each in found])
    return Scores(-statistics[:, number], judged, np.zeros_like(judged), None)


def judged_by_baseline(data: DataSet, name: str, run: int) -> Scores:
    """Judge every clip by a baseline that learns the same documents; `run` is its seed."""
    protocol, normality, judged = ComparisonProtocol(), [], []
    for fold in data.folds:
        corpus = habitus.Corpus.joined([fold.train, fold.test])
        split = SplitFootage(corpus, len(fold.train), [])
        result = run_baseline(name, split, protocol, protocol.seed_of(name, run))
        normality.append(result.normality)
        judged.append(split.long_enough(protocol)[split.n_train :])
    together = np.concatenate(judged)
    return Scores(np.concatenate(normality), together, np.zeros_like(together), None)


def frames_overlapping(
    detector: habitus.Detector, clip: LabelledClip, hop: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[Sequence[Box]]]:
    """Return the mean score of the documents of each frame, the nearest of these, and boxes.

    Frames at the end that no such document holds have those of the clip's own documents.
    """
    found = detect_events(detector, clip.corpus, localise_all=True)
    assert clip.corpus.n_frames is not None
    own, boxes = np.repeat(-found.normality, clip.corpus.n_frames), boxes_of(found)
    nearest = np.repeat(np.arange(len(boxes)), clip.corpus.n_frames)
    total, held, apart = np.zeros(len(own)), np.zeros(len(own)), np.full(len(own), np.inf)
    for before, documents in overlapping_documents(clip, hop):
        found = detect_events(detector, documents, localise_all=True)
        assert documents.n_frames is not None
        ends = before + np.cumsum(documents.n_frames)
        for t, (end, n) in enumerate(zip(ends, documents.n_frames, strict=True)):
            frames = np.arange(end - n, min(end, len(own)))
            total[frames] -= found.normality[t]
            held[frames] += 1
            distances = abs(frames - (end - n / 2 - 0.5))
            nearer = frames[distances < apart[frames]]
            apart[nearer] = distances[distances < apart[frames]]
            nearest[nearer] = len(boxes) + t
        boxes += boxes_of(found)
    return np.where(held > 0, total / np.maximum(held, 1), own), nearest, boxes


def figures_overlapping(data: DataSet, scenes: list[habitus.SceneModel], hop: float) -> list[float]:
    """Return FIGURES of documents that overlap."""
    scores, documents, boxes = [], [], list[Sequence[Box]]()
    for fold, scene in zip(data.folds, scenes, strict=True):
        for clip in fold.clips:
            own, nearest, shown = frames_overlapping(scene.detector(), clip, hop)
            scores.append(own)
            documents.append(nearest + len(boxes))
            boxes += shown
    truth = np.concatenate(data.truth)
    frames = ScoredFrames(
        np.concatenate(scores), truth, np.zeros_like(truth), np.concatenate(documents)
    )
    return figures_of_frames(data, frames, boxes)


def figures(data: DataSet, scores: Scores, smoothing: float) -> list[float]:
    """Return FIGURES; NaN where a method has none."""
    corpora = [clip.corpus for clip in data.clips]
    n_frames = np.concatenate(
        [corpus.n_frames for corpus in corpora if corpus.n_frames is not None]
    )
    scored = ScoredDocuments(
        scores.normality, scores.judged, np.arange(len(n_frames), dtype=float), corpora[0].clip
    )
    frames = score_frames(
        scored.abnormality,
        scores.alarmed,
        n_frames,
        data.truth,
        smoothing=smoothing,
        clip=corpora[0].clip,
    )
    return figures_of_frames(data, frames, scores.boxes)


def figures_of_frames(
    data: DataSet, frames: ScoredFrames, boxes: Sequence[Sequence[Box]] | None
) -> list[float]:
    """Return FIGURES of frames, with the boxes of their documents."""
    found = assess_frames(frames, n_clips=len(data.clips))
    ranking = [found.ranking[name].value for name in ("roc_auc", "average_precision")]
    return [*ranking, found.equal_error_rate, *pixel_figures(data, frames, boxes)]


def pixel_figures(
    data: DataSet, frames: ScoredFrames, boxes: Sequence[Sequence[Box]] | None
) -> list[float]:
    """Return the figures per pixel, where there are masks and boxes."""
    v = data.clips[0].corpus.vocabulary
    if data.masks is None or boxes is None or v is None:
        return [float("nan")] * 3
    size, n = (v.width, v.height), 0
    pixels: dict[int, NDArray[np.int64]] = {}
    for clip, flags in zip(data.clips, data.truth, strict=True):
        own = read_pixels(data.masks / Path(clip.name).stem, len(flags), size)
        pixels |= {n + frame: where for frame, where in own.items()}
        n += len(flags)
    found = assess_pixels(frames, pixels, dict(enumerate(boxes)), size)
    met = found.n_met / found.n_alarmed if found.n_alarmed else float("nan")
    return [found.roc_auc, found.detection_rate, met]


def measured(data: DataSet, options: argparse.Namespace) -> dict[str, list[float] | str]:
    """Return the figures of every method, or why it has none."""
    truth = np.concatenate(data.truth)
    rows: dict[str, list[float] | str] = {
        "chance": [0.5, float(truth.mean()), 0.5, *[float("nan")] * 3]
    }
    scenes = [
        habitus.learn(fold.train, learning=habitus.LearningSettings(seed=options.seed))
        for fold in data.folds
    ]
    for measure in options.measure:
        name = f"habitus, {measure}{' (default)' * (measure == MEASURE_NAMES[0])}"
        rows[name] = attempt(lambda m=measure: judged_by_habitus(data, scenes, m), data, options)
    for hop in options.overlap:
        rows[f"habitus, a document every {hop:g} s"] = figures_overlapping(data, scenes, hop)
    for number, (cue, gathering) in enumerate(STATISTICS if options.cues else ()):
        rows[f"one cue: {cue}, {gathering}"] = attempt(
            lambda k=number: judged_by_cue(data, scenes, k), data, options
        )
    for name in options.baselines:
        runs = [
            attempt(lambda b=name, r=run: judged_by_baseline(data, b, r), data, options)
            for run in range(options.runs)
        ]
        figured = [run for run in runs if not isinstance(run, str)]
        rows[name] = np.mean(figured, axis=0).tolist() if figured else runs[0]
    return rows


def attempt(
    judge: Callable[[], Scores], data: DataSet, options: argparse.Namespace
) -> list[float] | str:
    """Return the figures of a method, or the message of the error that it has none for."""
    try:
        return figures(data, judge(), options.smooth)
    except habitus.HabitusError as error:
        return str(error)


def told(data: DataSet, rows: dict[str, list[float] | str]) -> str:
    """Return one table in Markdown."""
    learnt = sorted({len(fold.train) for fold in data.folds})
    range_learnt = " to ".join(map(str, dict.fromkeys([learnt[0], learnt[-1]])))
    n_frames = sum(len(flags) for flags in data.truth)
    lines = [
        f"\n## {data.name}",
        f"{len(data.clips)} clips, {n_frames} frames; learnt from {range_learnt} documents\n",
        f"| method | {' | '.join(FIGURES)} |",
        f"|---|{'---|' * len(FIGURES)}",
    ]
    for name, row in rows.items():
        values = [float("nan")] * len(FIGURES) if isinstance(row, str) else row
        cells = ("" if np.isnan(value) else f"{value:.3f}" for value in values)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    reasons = (f"\n{name}: {row}" for name, row in rows.items() if isinstance(row, str))
    return "\n".join([*lines, *reasons])


def beside(everything: dict[str, Any]) -> Iterator[Cells]:
    """Yield the rows of one table: the methods, with the data sets beside each other."""
    for method in dict.fromkeys(name for rows in everything.values() for name in rows):
        row: dict[str, str | float | None] = {"method": method}
        for data, rows in everything.items():
            values = rows[method] if isinstance(rows[method], dict) else {}
            for figure in ("ROC AUC", "average precision", "pixel ROC AUC"):
                value = values.get(figure, float("nan"))
                row[f"{data}: {figure}"] = None if np.isnan(value) else round(value, 3)
        yield row


def main() -> None:
    """Print one table for each data set, and all figures as JSON if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="data sets, or folders of data sets")
    parser.add_argument("--measure", nargs="*", default=MEASURE_NAMES, choices=MEASURE_NAMES)
    parser.add_argument("--cues", action="store_true", help="also each cue of the habits alone")
    parser.add_argument("--baselines", nargs="*", default=list(BASELINES), choices=list(BASELINES))
    parser.add_argument("--runs", type=int, default=3, help="runs of each baseline")
    parser.add_argument(
        "--overlap", type=float, nargs="*", default=[], help="also a document every so many seconds"
    )
    parser.add_argument("--smooth", type=float, default=0.0, help="seconds; 0: no smoothing")
    parser.add_argument("--seed", type=int, default=0, help="seed of the models")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    everything: dict[str, Any] = {}
    for path in options.paths:
        found = list(data_sets(path)) if path.is_dir() else []
        if not found:
            sys.exit(f"{path}: no {LABELS} beside training/ and testing/, or beside sceneN/")
        for data in found:
            rows = measured(data, options)
            print(told(data, rows), flush=True)
            everything[data.name] = {
                name: row if isinstance(row, str) else dict(zip(FIGURES, row, strict=True))
                for name, row in rows.items()
            }
    how = f"Gaussian of {options.smooth:g} s" if options.smooth else "none"
    print(f"\nSmoothing over time: {how}. box: alarmed abnormal frames whose box meets the mask.")
    if options.json is not None:
        plain = json.dumps(everything, indent=1).replace("NaN", "null")
        options.json.write_text(plain)
    if options.save:
        save("real-overlap" if options.overlap else "real", list(beside(everything)))


if __name__ == "__main__":
    main()
