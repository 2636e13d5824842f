"""Settings of the public functions, built once and passed whole; `DocumentSettings` is beside them.

The defaults are those of the commands, whose options are made from them: so this module imports
nothing that takes time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.jobs.workers import Workers
    from habitus.video import Source

Address = str | os.PathLike[str]
OPENING = ("fps", "fast", "other_hosts", "timeout")
"""How one source is opened, of `ReadingSettings`."""


@dataclass(frozen=True)
class ReadingSettings:
    """How footage is opened and read, which part of it, and by whom.

    Parameters
    ----------
    fps
        Frames per second of images, or of streams without times.
    fast
        Skip frames that no other frame needs, and the loop filter.
    other_hosts
        Whether an http(s) or rtsp address may lead to other hosts, by redirections and playlists.
    timeout
        Seconds that an address may take to answer.
    continued
        Whether several sources are one video that was cut into files.
    skip, duration
        Leave out the first so many seconds, and what follows the first so many.
    jobs
        Processes; -1 for one per core. It never changes the result.
    cluster
        Workers of a Dask cluster instead: "local" for one of `jobs` processes, or the address of a
        scheduler, whose workers find the same files at the same paths. It never changes the result.
    """

    fps: float | None = None
    fast: bool = False
    other_hosts: bool = False
    timeout: float = 10.0
    continued: bool = False
    skip: float | None = None
    duration: float | None = None
    jobs: int = -1
    cluster: str | None = None

    def __post_init__(self) -> None:
        """Check the lengths of time."""
        check_seconds("skip", self.skip)
        check_seconds("duration", self.duration)

    def open(self, sources: Address | Sequence[Address]) -> list[Source]:
        """Return the sources of one or several addresses."""
        from habitus.files import checked_path
        from habitus.video import Source

        addresses = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
        if not addresses:
            raise InvalidInputError("there must be at least one source, found none")
        for address in addresses:
            if "://" not in os.fspath(address):
                checked_path(address)
        options = {name: getattr(self, name) for name in OPENING}
        return [Source(os.fspath(address), **options) for address in addresses]

    @contextmanager
    def workers(self) -> Iterator[Workers | None]:
        """Give the workers of the cluster while the block runs; None where none is named."""
        from habitus.jobs.cluster import open_workers

        with open_workers(self.cluster, self.jobs) as workers:
            yield workers if self.cluster is not None else None


@dataclass(frozen=True)
class LearningSettings:
    """How a topic model is learnt: sizes, algorithm and start; see `TopicModel`.

    Parameters
    ----------
    n_topics, n_behaviours, learning, prior, n_restarts, n_iterations, tolerance, smoothing,
    min_words, burn_in, n_samples, thinning
        As of `TopicModel`, which starts once where these settings start 20 times.
    seed
        Same seed, same model.
    """

    n_topics: int = 8
    n_behaviours: int = 4
    learning: str = "em"
    prior: Any = "H+1"
    n_restarts: int = 20
    n_iterations: int = 100
    tolerance: float | None = None
    smoothing: float = 5e-6
    min_words: float = 20
    burn_in: int = 500
    n_samples: int = 5
    thinning: int = 100
    seed: int = 0

    def model_options(self) -> dict[str, Any]:
        """Return the parameters of `TopicModel`."""
        options = dict(vars(self))
        options["random_state"] = options.pop("seed")
        return options


@dataclass(frozen=True)
class AlertSettings:
    """When a document is abnormal: by a budget of alerts, a share of documents, or a threshold.

    Parameters
    ----------
    alerts_per_day, share, threshold, measure, approximation, n_samples, seed
        As of `Detector`; at most one of the first three. Without any, `BUDGET` alerts per day.
    """

    BUDGET: ClassVar[float] = 5.0
    alerts_per_day: float | None = None
    share: float | None = None
    threshold: float | None = None
    measure: str | None = None
    approximation: Any = "plug-in"
    n_samples: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, alerts: AlertSettings | float | None) -> AlertSettings:
        """Return settings; a number is that of alerts per day.

        >>> AlertSettings.of(20).alerts_per_day
        20
        """
        if alerts is None or isinstance(alerts, AlertSettings):
            return alerts or cls()
        return cls(alerts_per_day=alerts)


Settings = ReadingSettings | LearningSettings | AlertSettings


def check_unused(settings: Settings, work: str, *used: str) -> None:
    """Raise if settings differ from the defaults in what this work does not use."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name not in used and value != field.default:
            raise InvalidInputError(f"{work} does not use {field.name}", parameter=field.name)


def check_seconds(name: str, seconds: float | None) -> None:
    """Raise if a length of time is not above 0, or infinite."""
    from habitus.schema import LATEST

    if seconds is not None and not 0 < seconds <= LATEST:
        raise InvalidInputError(
            f"{name} must be above 0 seconds, and at most {LATEST:g}, found {seconds:g}",
            parameter=name,
        )
