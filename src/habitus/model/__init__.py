"""The Markov Clustering Topic Model: parameters, priors, learners, one estimator."""

from habitus.model.convergence import SampleChain
from habitus.model.estimator import MarkovClusteringTopicModel
from habitus.model.generate import Generated, draw_parameters, generate
from habitus.model.inspection import Successor, TopWords, TransitionGraph
from habitus.model.parameters import Assignments, DirichletPosterior, Parameters, Prior, Sizes

__all__ = [
    "Assignments",
    "DirichletPosterior",
    "Generated",
    "MarkovClusteringTopicModel",
    "Parameters",
    "Prior",
    "SampleChain",
    "Sizes",
    "Successor",
    "TopWords",
    "TransitionGraph",
    "draw_parameters",
    "generate",
]
