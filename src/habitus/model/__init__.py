"""The Markov Clustering Topic Model: parameters, priors, three learners, one estimator."""

from habitus.model.estimator import MarkovClusteringTopicModel
from habitus.model.generate import Generated, draw_parameters, generate
from habitus.model.parameters import Assignments, DirichletPosterior, Parameters, Prior, Sizes

__all__ = [
    "Assignments",
    "DirichletPosterior",
    "Generated",
    "MarkovClusteringTopicModel",
    "Parameters",
    "Prior",
    "Sizes",
    "draw_parameters",
    "generate",
]
