"""A fleet: what cameras have in common, as a prior for one that has seen little.

After two minutes a camera knows roughly where things move and which way, but not how far normal
footage goes: the tail of a score and the trust in a cue take half an hour. These are much alike in
different cameras, once each statistic is measured in units of its median. A fleet is sums over
cameras of

- the shares of held-out documents whose statistics, and whose score, lie in each of 240 steps;
- the shares of implants that each statistic finds, and the score that one in four exceeds;
- logarithms of the concentrations under which two minutes of a camera predict its other footage.

Nothing of it shows places, times or pictures. Sums of two sites are added; each camera counts once.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import TypedDict

from habitus.arrays import Array
from habitus.corpus import Condition, Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.files import FileFormat
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import STATISTICS
from habitus.habits.predictive import N_LEVELS, Concentrations, fit_young_concentrations
from habitus.habits.votes import votes_of_corpus
from habitus.rarity import counted
from habitus.scene.fusion import NOTHING, FusionPrior, median_units
from habitus.schema import MOST_NATS, REAL, AtLeastOne, ClipSeconds, Count, Layout, Pixels

if TYPE_CHECKING:
    from habitus.scene.habit_model import HabitModel
    from habitus.scene.scene_model import SceneModel

EDGES = np.geomspace(NOTHING, 1000.0, 239)
"""Bounds of the steps that statistics and scores are counted in, in units of their medians; the
first step begins at 0, the last has no end."""
N_STEPS, N_COUNTED = len(EDGES) + 1, len(STATISTICS) + 1
WORTH = 1800
"""Documents of its own that outweigh what the fleet says of statistics: half an hour."""
CONCENTRATION_WORTH = 300
"""Documents of its own that outweigh the concentrations of the fleet."""
YOUTH = 120.0
"""Seconds of footage that concentrations of the young are estimated for."""
MOST_PARTS = 6
"""Parts of that length that are taken from the footage of a camera."""
LEAST_PARTS = 4
"""Lengths of that kind that footage needs to have."""


class FleetHeader(TypedDict):
    """Header of a fleet's file."""

    directions: AtLeastOne
    speeds: AtLeastOne
    cell: Pixels
    clip: ClipSeconds
    n_cameras: AtLeastOne
    n_young: Count


_MOST = 1e9 * MOST_NATS
LAYOUTS = {
    "shares": Layout(REAL, (N_COUNTED, N_STEPS), True, 0.0, 1e9),
    "found": Layout(REAL, (len(STATISTICS),), True, 0.0, 1e9),
    "reach": Layout(REAL, (1,), True, 0.0, _MOST),
    **{f"young.{name}": Layout(REAL, (n,), True, -_MOST, _MOST) for name, n in N_LEVELS.items()},
}
"""Arrays of a fleet in a file."""
FORMAT = FileFormat("fleet", 1, FleetHeader, LAYOUTS)


@dataclass(frozen=True, eq=False)
class Fleet:
    """What cameras have in common, for `learn` with little footage.

    Examples
    --------
    >>> from habitus.scene import learn_scene
    >>> from habitus.corpus import Corpus
    >>> rng, vocabulary = np.random.default_rng(0), Vocabulary.of_frame(64, 64)
    >>> def camera(n_documents):
    ...     words = [np.repeat(rng.integers(vocabulary.n_words, size=30), 2)]
    ...     corpus = Corpus.from_word_ids(words * n_documents, vocabulary=vocabulary)
    ...     return learn_scene(corpus, n_topics=2, n_behaviours=2, n_restarts=1)
    >>> fleet = Fleet.of([camera(200)]) + Fleet.of([camera(100)])
    >>> fleet.n_cameras
    2
    """

    directions: int
    """Directions and speeds of the words that the cameras count."""
    speeds: int
    cell: int
    """Side of their cells."""
    clip: float
    """Seconds per document."""
    n_cameras: int
    shares: Array
    """Shares of held-out documents, summed over cameras: statistics and the score x steps."""
    found: Array
    """Share of implants that each statistic finds, summed over cameras."""
    reach: float
    """Score that one implant in four exceeds, in units of the median score, summed."""
    n_young: int
    """Cameras that had the footage to estimate concentrations."""
    young: dict[str, Array] = field(default_factory=lambda: _no_concentrations())
    """Logarithms of their concentrations by question, summed."""

    @classmethod
    def of(cls, scenes: "Iterable[SceneModel]") -> "Fleet":
        """Return what scenes have in common.

        Parameters
        ----------
        scenes
            Models with habits. Concentrations are estimated from those that still have their
            documents, at least eight minutes: what `learn` returned, not what a file holds.

        Raises
        ------
        InvalidInputError
            Where no scene has habits that say anything, or two differ in words, cells or clips.
        """
        cameras = [
            _camera(scene, scene.habits)
            for scene in scenes
            if scene.habits is not None and np.isfinite(scene.habits.fusion.reach)
        ]
        if not cameras:
            raise InvalidInputError(
                "a fleet needs at least one model with habits of footage in which something moves, "
                "found none",
                parameter="scenes",
            )
        return reduce(add, cameras)

    @classmethod
    def of_scene(cls, scene: "SceneModel") -> "Fleet | None":
        """Return what a camera has for others; None where it has too little footage, or no habits.

        A camera that needs a fleet itself has nothing for others.
        """
        if scene.corpus is None or len(scene.corpus) < WORTH:
            return None
        try:
            return cls.of([scene])
        except InvalidInputError:
            return None

    def __add__(self, other: "Fleet") -> "Fleet":
        """Return the fleet of the cameras of both."""
        self._check(other.directions, other.speeds, other.cell, other.clip)
        return replace(
            self,
            n_cameras=self.n_cameras + other.n_cameras,
            shares=self.shares + other.shares,
            found=self.found + other.found,
            reach=self.reach + other.reach,
            n_young=self.n_young + other.n_young,
            young={name: logs + other.young[name] for name, logs in self.young.items()},
        )

    def check_fits(self, vocabulary: Vocabulary, clip: float) -> None:
        """Raise unless a camera with this grid and these documents can use the fleet."""
        self._check(vocabulary.directions, vocabulary.speeds, vocabulary.cell, clip)

    def _check(self, directions: int, speeds: int, cell: int, clip: float) -> None:
        for what, expected, value in (
            ("words of", *(counted(n, "direction") for n in (self.directions, directions))),
            ("words of", *(counted(n, "speed") for n in (self.speeds, speeds))),
            ("cells of", *(counted(n, "pixel") for n in (self.cell, cell))),
            ("documents of", *(f"{seconds:g} s" for seconds in (self.clip, clip))),
        ):
            if expected != value:
                raise InvalidInputError(
                    f"the fleet's cameras have {what} {expected}, this one has {what} {value}: a "
                    "fleet holds for one kind of documents",
                    parameter="fleet",
                )

    def prior(self, n_documents: int = WORTH) -> FusionPrior:
        """Return what the fleet says of statistics and scores, worth so many documents."""
        values = _quantiles(self.shares, n_documents)
        return FusionPrior(
            values[:-1].T.copy(),
            values[-1],
            self.found / self.n_cameras,
            self.reach / self.n_cameras,
        )

    def concentrations(self, estimates: Concentrations, n_documents: float) -> Concentrations:
        """Return a camera's own concentrations, estimated from so many documents, completed."""
        if not self.n_young:
            return estimates
        weight = n_documents / (n_documents + CONCENTRATION_WORTH)
        return {
            name: tuple(
                np.exp(
                    weight * np.log(estimates[name]) + (1 - weight) * young / self.n_young
                ).tolist()
            )
            for name, young in self.young.items()
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fleet to a safe file, whole or not at all."""
        tensors = {"shares": self.shares, "found": self.found, "reach": np.array([self.reach])}
        tensors |= {f"young.{name}": logs for name, logs in self.young.items()}
        header = {name: getattr(self, name) for name in FleetHeader.__annotations__}
        FORMAT.write(path, header, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Fleet":
        """Read a file that `save` wrote; nothing in it is executed."""
        header, tensors = FORMAT.read(path)
        if not (tensors["shares"].sum(axis=1) > 0).all() or header["n_young"] > header["n_cameras"]:
            raise FileError(f"{Path(path)}: the sums do not fit {header['n_cameras']} cameras")
        return cls(
            **header,
            shares=tensors["shares"],
            found=tensors["found"],
            reach=float(tensors["reach"][0]),
            young={name: tensors[f"young.{name}"] for name in N_LEVELS},
        )


def _no_concentrations() -> dict[str, Array]:
    return {name: np.zeros(n) for name, n in N_LEVELS.items()}


def _camera(scene: "SceneModel", habits: "HabitModel") -> Fleet:
    """Return the fleet of one camera."""
    fusion, vocabulary = habits.fusion, habits.vocabulary
    # The hour is a habit of one camera: what it says is not shared.
    statistics = fusion.statistics[:, : len(STATISTICS)]
    reached = np.column_stack([statistics, fusion.held_out_scores])[fusion.judged]
    units = median_units(reached)
    steps = np.searchsorted(EDGES, reached / units, side="right")
    shares = np.stack([np.bincount(column, minlength=N_STEPS) for column in steps.T])
    young = _young_concentrations(scene, habits)
    return Fleet(
        vocabulary.directions,
        vocabulary.speeds,
        vocabulary.cell,
        scene.model.clip_,
        1,
        shares / len(reached),
        fusion.trust[: len(STATISTICS)] ** 3,
        fusion.reach / float(units[-1]),
        0 if young is None else 1,
        young or _no_concentrations(),
    )


def _young_concentrations(scene: "SceneModel", habits: "HabitModel") -> dict[str, Array] | None:
    """Return ln of the concentrations that suit two minutes; None where there is little footage."""
    corpus = scene.corpus
    if corpus is None or len(corpus) * corpus.clip < LEAST_PARTS * YOUTH:
        return None
    n = round(YOUTH / corpus.clip)
    v = habits.vocabulary
    parts = []
    for start in np.linspace(0, len(corpus) - n, min(MOST_PARTS, len(corpus) // n)).astype(int):
        part = corpus.take(np.arange(start, start + n))
        usable = int((part.conditions == Condition.USABLE).sum())
        parts.append(HabitCounts.of(votes_of_corpus(part, habits.least_words), v, usable))
    concentrations = fit_young_concentrations(parts, habits.counts, v)
    return {name: np.log(values) for name, values in concentrations.items()}


def _quantiles(shares: Array, n: int) -> Array:
    """Return values in equal steps of probability from shares by steps: rows x n.

    Within a step of `EDGES` the logarithm of a value is uniform, in the first the value itself.
    """
    wanted = (np.arange(n) + 0.5) / n
    ends = np.append(EDGES, EDGES[-1])
    quantiles = np.empty((len(shares), n))
    for row, counts in enumerate(shares):
        below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        step = np.minimum(np.searchsorted(below, wanted, side="right") - 1, N_STEPS - 1)
        part = (wanted - below[step]) / (below[step + 1] - below[step])
        start = ends[np.maximum(step - 1, 0)]
        inside = start * (ends[step] / start) ** part
        quantiles[row] = np.where(step == 0, part * EDGES[0], inside)
    return quantiles
