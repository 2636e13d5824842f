"""habitus learns what is habitual in a fixed camera's view, and shows what is not."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from habitus.anomaly import Detector
    from habitus.corpus import Corpus, Vocabulary
    from habitus.errors import DegenerateWarning, HabitusError
    from habitus.model import (
        Assignments,
        DirichletPosterior,
        MarkovClusteringTopicModel,
        Parameters,
        Prior,
        generate,
    )

__version__ = version("habitus")

_HOMES = {
    "Assignments": "habitus.model",
    "Corpus": "habitus.corpus",
    "DegenerateWarning": "habitus.errors",
    "Detector": "habitus.anomaly",
    "DirichletPosterior": "habitus.model",
    "HabitusError": "habitus.errors",
    "MarkovClusteringTopicModel": "habitus.model",
    "Parameters": "habitus.model",
    "Prior": "habitus.model",
    "Vocabulary": "habitus.corpus",
    "generate": "habitus.model",
}

__all__ = [
    "Assignments",
    "Corpus",
    "DegenerateWarning",
    "Detector",
    "DirichletPosterior",
    "HabitusError",
    "MarkovClusteringTopicModel",
    "Parameters",
    "Prior",
    "Vocabulary",
    "generate",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import habitus` itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'habitus' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
