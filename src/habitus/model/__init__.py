"""The Markov Clustering Topic Model: parameters, priors, learners, the model, one estimator."""

from typing import TYPE_CHECKING, Any

from habitus.model.generate import GeneratedCorpus, draw_parameters, generate
from habitus.model.inspection import Successor, TopWords, TransitionGraph
from habitus.model.parameters import (
    Assignments,
    DirichletPosterior,
    Parameters,
    Prior,
    SampleChain,
    Sizes,
)
from habitus.model.topic_model import TopicModel

if TYPE_CHECKING:
    from habitus.model.estimator import MarkovClusteringTopicModel

__all__ = [
    "Assignments",
    "DirichletPosterior",
    "GeneratedCorpus",
    "MarkovClusteringTopicModel",
    "Parameters",
    "Prior",
    "SampleChain",
    "Sizes",
    "Successor",
    "TopWords",
    "TopicModel",
    "TransitionGraph",
    "draw_parameters",
    "generate",
]


def __getattr__(name: str) -> Any:
    """Import the estimator, and scikit-learn with it, when it is first used."""
    if name != "MarkovClusteringTopicModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from habitus.model.estimator import MarkovClusteringTopicModel

    return MarkovClusteringTopicModel
