"""Words against known motion (`footage.py`): ours beside DIS ultrafast, DIS medium and Farneback.

Every second frame is compared with the one two before it, as extraction does at 25 frames a second.
A cell is moving if at least half of it belongs to an object in the earlier frame, and what it shows
is still in the frame in the later one. Precision counts words in cells without any pixel of an
object in either frame as false; cells partly covered count for neither. Directions are the share of
found moving cells whose word has the object's direction. Figures are means over the cases.
"""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

import footage
from footage import FPS, HEIGHT, WIDTH, Case
from habitus.corpus.vocabulary import N_SPEEDS, Vocabulary
from habitus.ingest.clips import LAG
from habitus.video import CellMotion, CellMoves, DisMotion, Frame, MotionMethod, Reader, Source
from habitus.video.cells import ABOVE_MEDIAN, LEAST_CHANGE
from habitus.video.motion import directions_of, least_motion
from report import Row, Target, main, progress
from timing import n_cores

GRID = Vocabulary.of_frame(WIDTH, HEIGHT)
WATCHED = np.ones((GRID.rows, GRID.columns), dtype=bool)
PRESETS = {
    "ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
    "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
}


class Quality(NamedTuple):
    """Of one method on one case."""

    precision: float
    recall: float
    directions: float


class GatedFlow(DisMotion):
    """A dense flow of cells that pass the change gate of ours."""

    def __init__(self, grid: Vocabulary, preset: str = "ultrafast") -> None:
        super().__init__(grid, np.ones((grid.rows, grid.columns), dtype=bool))
        self.flow = cv2.DISOpticalFlow.create(PRESETS[preset])

    def between(self, before: Any, after: Any, seconds: float) -> CellMoves:
        """The motion of each cell that changed."""
        found, changes = super().between(before, after, seconds), self.scratch.changes
        gate = max(
            ABOVE_MEDIAN * np.median(changes), LEAST_CHANGE * (self.vocabulary.cell // 2) ** 2
        )
        return found._replace(moves=np.where(changes > gate, found.moves, np.int16(-1)))


class Flow:
    """A dense flow, mean of each cell, gated or not."""

    def __init__(self, calc: Callable[[Any, Any], Any], *, gated: bool = True) -> None:
        self.calc, self.gate = calc, GatedFlow(GRID) if gated else None

    def prepare(self, frame: Frame) -> Any:
        """The frame itself."""
        return np.ascontiguousarray(frame.luma()[:, : frame.width])

    def between(self, before: Any, after: Any, seconds: float) -> Any:
        """Directions of cells that moved, by the same least motion as ours."""
        flow = self.calc(before, after)
        if self.gate is not None:
            self.gate.flow = Given(flow)
            return self.gate.between(before, after, seconds)
        mean = flow.reshape(GRID.rows, 8, GRID.columns, 8, 2).mean(axis=(1, 3))
        moving = np.hypot(mean[..., 0], mean[..., 1]) >= least_motion(seconds)
        return (np.where(moving, N_SPEEDS * directions_of(mean), -1),)


class Given:
    """Stands for a flow that is known already."""

    def __init__(self, flow: Any) -> None:
        self.flow = flow

    def calc(self, *_: Any) -> Any:
        """That flow."""
        return self.flow


def methods() -> dict[str, Callable[[], Any]]:
    """Ours first."""

    def dis(preset: str, gated: bool) -> Flow:
        flow = cv2.DISOpticalFlow.create(PRESETS[preset])
        return Flow(lambda a, b: flow.calc(a, b, None), gated=gated)

    def farneback(a: Any, b: Any) -> Any:
        return cv2.calcOpticalFlowFarneback(a, b, None, 0.5, 3, 15, 3, 5, 1.2, 0)  # type: ignore[call-overload]

    return {
        "ours": lambda: CellMotion(GRID, WATCHED),
        "DIS ultrafast": lambda: dis("ultrafast", False),
        "DIS ultrafast, gated": lambda: dis("ultrafast", True),
        "DIS medium": lambda: dis("medium", False),
        "DIS medium, gated": lambda: dis("medium", True),
        "Farneback, gated": lambda: Flow(farneback),
    }


def measure(quick: bool) -> Iterator[Row]:
    """Rows: means over the standard cases with their targets, codecs, then each special case."""
    cases = footage.standard_cases()
    cases = cases[:: 7 if quick else 1]
    bench = Bench(list(methods()))
    yield from rows("1 to 8 px a frame", bench.run(cases), targets=True)
    for codec, name in (("libx265", "HEVC"), ("mpeg4", "MPEG-4")):
        same = [replace(case, codec=codec) for case in cases[:: 1 if quick else 5]]
        yield from rows(f"1 to 8 px a frame, {name}", bench.run(same), targets=True)
    for name, special in footage.special_cases().items():
        yield from rows(name, bench.run(special))
    yield fast_mode(cases[:: 1 if quick else 5])


class Bench:
    """All methods over cases, on all cores: nothing is timed here."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def run(self, cases: list[Case], *, fast: bool = False) -> dict[str, Quality]:
        """Mean quality of each method."""
        with ProcessPoolExecutor(n_cores(), mp_context=get_context("spawn")) as pool:
            found = list(pool.map(partial(qualities, names=self.names, fast=fast), cases))
        progress(f"{len(cases)} cases of {cases[0].name}, {cases[0].codec}")
        return {
            name: Quality(*np.mean([each[k] for each in found], axis=0))
            for k, name in enumerate(self.names)
        }


def qualities(case: Case, *, names: list[str], fast: bool) -> list[Quality]:
    """Of the named methods on one case."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mp4")
        masks = footage.encode(case, path)
        return [quality(case, path, masks, methods()[name](), fast=fast) for name in names]


def quality(
    case: Case,
    path: Path,
    masks: list[NDArray[np.bool_]],
    motion: MotionMethod,
    *,
    fast: bool = False,
) -> Quality:
    """Of one method on one case."""
    found = moving = false = right = 0
    before, last = None, -1.0
    with Reader(Source(str(path), fast=fast)) as reader:
        for frame in reader:
            if before is not None and frame.time - last < LAG:
                continue
            after = motion.prepare(frame)
            if before is not None:
                i, j = round(last * FPS), round(frame.time * FPS)
                seen = motion.between(before, after, frame.time - last)[0]
                truth = (share(masks[i]) >= 0.5) & stays(case, j - i)
                empty = (share(masks[i]) == 0) & (share(masks[j]) == 0)
                hit = truth & (seen >= 0)
                moving += int(truth.sum())
                found += int(hit.sum())
                right += int((seen[hit] // (3 * N_SPEEDS) == case.direction).sum())
                false += int((empty & (seen >= 0)).sum())
            before, last = after, frame.time
    return Quality(found / max(found + false, 1), found / moving, right / max(found, 1))


def share(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much of each cell belongs to objects."""
    return np.asarray(mask.reshape(GRID.rows, 8, GRID.columns, 8).mean(axis=(1, 3)))


def stays(case: Case, lag: int) -> NDArray[np.bool_]:
    """Cells whose contents are still inside the frame so many frames later."""
    x, y = np.arange(GRID.columns) * 8, np.arange(GRID.rows) * 8
    dx, dy = (lag * v for v in case.velocity)
    rows = (y + dy >= 0) & (y + 8 + dy <= HEIGHT)
    return np.asarray(rows[:, None] & ((x + dx >= 0) & (x + 8 + dx <= WIDTH))[None])


TARGETS = {"precision": 0.97, "recall": 0.85, "directions": 0.98}


def rows(what: str, found: dict[str, Quality], *, targets: bool = False) -> Iterator[Row]:
    """One row a measure: ours, and the best of the gated others."""
    others = {name: each for name, each in found.items() if name != "ours"}
    note = "; ".join(
        f"{name} {each.precision:.3f}/{each.recall:.3f}/{each.directions:.3f}"
        for name, each in others.items()
    )
    # The best of the others is the one of the highest product of all three.
    best = max(others, key=lambda name: float(np.prod(others[name])))
    for measure, target in TARGETS.items():
        ours = float(getattr(found["ours"], measure))
        peer = float(getattr(others[best], measure))
        yield Row(
            what=f"{what}: {measure}; best other: {best}",
            ours=ours,
            peer=peer,
            unit="",
            ratio=ours / max(peer, 1e-9),
            target=Target("at least", target, of="ours") if targets else None,
            note=f"precision/recall/directions of {note}" if measure == "precision" else "",
        )


def fast_mode(cases: list[Case]) -> Row:
    """What --fast costs in recall."""
    bench = Bench(["ours"])
    usual, fast = bench.run(cases)["ours"], bench.run(cases, fast=True)["ours"]
    return Row(
        what="--fast over the usual: recall",
        ours=float(fast.recall),
        peer=float(usual.recall),
        unit="",
        ratio=float(fast.recall / usual.recall),
        note=f"precision {fast.precision:.3f} for {usual.precision:.3f}, directions "
        f"{fast.directions:.3f} for {usual.directions:.3f}",
    )


if __name__ == "__main__":
    main(measure)
