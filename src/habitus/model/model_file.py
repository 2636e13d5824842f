"""Model files: a fitted model as tensors and plain settings."""

import os
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, HabitusError
from habitus.files import Contents, read_tensors, write_tensors
from habitus.model.estimator import MarkovClusteringTopicModel, check_parameters
from habitus.model.parameters import Assignments, DirichletPosterior, Parameters, Prior

VERSION = 2
ARRAYS = ("objective_", "restarts_", "belief_", "transitions_")
PLAIN = ("n_topics", "n_behaviours", "learning", "n_iterations", "tolerance", "n_restarts",
         "n_jobs", "smoothing", "min_words", "burn_in", "n_samples", "thinning")  # fmt: skip

Blocks = TypeVar("Blocks", Parameters, DirichletPosterior, Assignments)


def save_model(model: MarkovClusteringTopicModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; a given `init` and a generator as `random_state` are not kept."""
    tensors: dict[str, NDArray[Any]] = {name: getattr(model, name) for name in ARRAYS}
    tensors |= _named("parameters", model.parameters_)
    if model.posterior_ is not None:
        tensors |= _named("posterior", model.posterior_)
    if model.assignments_ is not None:
        tensors |= _named("assignments", model.assignments_)
    if model.samples_:
        for name in Parameters._fields:
            tensors[f"samples.{name}"] = np.stack([getattr(s, name) for s in model.samples_])
    if model.picture_ is not None:
        tensors["picture"] = model.picture_
    tensors |= {f"calibration.{name}": values for name, values in model.calibration_.items()}
    seed = model.random_state
    prior = model.prior
    settings = {name: getattr(model, name) for name in PLAIN}
    header = {
        "settings": {n: v.item() if isinstance(v, np.generic) else v for n, v in settings.items()},
        "prior": prior if isinstance(prior, str) else prior.to_json(),
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
        "degenerate": list(model.degenerate_),
        "words_per_document": model.words_per_document_,
        "vocabulary": model.vocabulary_.to_json() if model.vocabulary_ else None,
        "clip": model.clip_,
        "video": model.settings_,
    }
    write_tensors(path, kind="model", version=VERSION, header=header, tensors=tensors)


def load_model(path: str | os.PathLike[str]) -> MarkovClusteringTopicModel:
    """Read a fitted model, checking that it is one."""
    contents = read_tensors(path, kind="model", version=VERSION)
    try:
        return _restored(contents)
    except (HabitusError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path}: not a model this habitus understands: {error}") from error


def _restored(contents: Contents) -> MarkovClusteringTopicModel:
    header, tensors = contents
    prior, geometry = header["prior"], header["vocabulary"]
    model = MarkovClusteringTopicModel(
        **{name: header["settings"][name] for name in PLAIN},
        prior=prior if isinstance(prior, str) else Prior(**prior),
        random_state=header["random_state"],
    )
    check_parameters(model.get_params())
    for name in ARRAYS:
        setattr(model, name, tensors[name])
    model.parameters_ = _gathered("parameters", Parameters, tensors).checked()
    sizes = model.parameters_.sizes
    model.posterior_ = model.assignments_ = None
    if "posterior.phi" in tensors:
        posterior = _gathered("posterior", DirichletPosterior, tensors)
        model.posterior_ = posterior.checked(sizes)
    if "assignments.topics" in tensors:
        model.assignments_ = _gathered("assignments", Assignments, tensors)
    model.samples_ = ()
    if "samples.phi" in tensors:
        stacked = [tensors[f"samples.{name}"] for name in Parameters._fields]
        model.samples_ = tuple(
            Parameters(*blocks).checked(sizes) for blocks in zip(*stacked, strict=True)
        )
    model.degenerate_ = tuple(header["degenerate"])
    model.words_per_document_ = int(header["words_per_document"])
    model.vocabulary_ = Vocabulary(**geometry) if geometry else None
    model.clip_, model.settings_ = float(header["clip"]), header["video"]
    model.picture_ = tensors.get("picture")
    model.calibration_ = {
        name.removeprefix("calibration."): values
        for name, values in tensors.items()
        if name.startswith("calibration.")
    }
    model.n_iter_ = len(model.objective_)
    model.n_features_in_ = sizes.n_words
    return model


def _named(prefix: str, blocks: NamedTuple) -> dict[str, NDArray[Any]]:
    return {f"{prefix}.{name}": block for name, block in blocks._asdict().items()}


def _gathered(prefix: str, kind: type[Blocks], tensors: dict[str, NDArray[Any]]) -> Blocks:
    return kind(*(tensors[f"{prefix}.{name}"] for name in kind._fields))
