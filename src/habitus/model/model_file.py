"""Model files: a fitted model as tensors and a JSON header, safe to read."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, HabitusError
from habitus.files import Contents, Tensors, read_tensors, write_tensors
from habitus.model.convergence import SampleChain
from habitus.model.estimator import MarkovClusteringTopicModel
from habitus.model.parameters import Assignments, DirichletPosterior, Parameters, Prior, Sizes

KIND = "model"
VERSION = 4
"""Format version: 2 is that of habitus 0.1, without `keep_chains` and the chains; 3 is without
habits."""
ARRAYS = ("objective_", "restarts_", "belief_", "transitions_")
SETTINGS = (
    "n_topics",
    "n_behaviours",
    "learning",
    "n_iterations",
    "tolerance",
    "n_restarts",
    "n_jobs",
    "smoothing",
    "min_words",
    "burn_in",
    "n_samples",
    "thinning",
    "keep_chains",
)

Blocks = TypeVar("Blocks", Parameters, DirichletPosterior, Assignments)


def save_model(model: MarkovClusteringTopicModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file.

    Parameters
    ----------
    model
        A fitted model. A given `init`, and a generator as `random_state`, are not kept.
    path
        File to write; an existing one is replaced, whole or not at all.
    """
    header, tensors = model_contents(model)
    write_tensors(path, kind=KIND, version=VERSION, header=header, tensors=tensors)


def load_model(path: str | os.PathLike[str]) -> MarkovClusteringTopicModel:
    """Read a fitted model from a file.

    Parameters
    ----------
    path
        A file written by `save_model`, or by habitus 0.1.

    Returns
    -------
    MarkovClusteringTopicModel
        The fitted model.

    Raises
    ------
    FileError
        If the file is damaged, of another program, or holds no valid model.
    """
    contents = read_tensors(path, kind=KIND, version=VERSION)
    try:
        return restore_model(contents)
    except (HabitusError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path}: not a model this habitus understands: {error}") from error


def model_contents(model: MarkovClusteringTopicModel) -> Contents:
    """Return the header and the tensors that describe a fitted model.

    Parameters
    ----------
    model
        A fitted model.

    Returns
    -------
    Contents
        What `restore_model` takes; more header entries and tensors may be added to it.
    """
    tensors: Tensors = {name: getattr(model, name) for name in ARRAYS}
    tensors |= _named("parameters", model.parameters_)
    if model.posterior_ is not None:
        tensors |= _named("posterior", model.posterior_)
    if model.assignments_ is not None:
        tensors |= _named("assignments", model.assignments_)
    if len(model.chains_) > 1:
        tensors["chains.log_joint"] = np.stack([chain.log_joint for chain in model.chains_])
        tensors |= _stacked("chains", [s for chain in model.chains_ for s in chain.samples])
    elif model.samples_:
        tensors |= _stacked("samples", model.samples_)
    if model.picture_ is not None:
        tensors["picture"] = model.picture_
    return Contents(_header(model), tensors)


def _header(model: MarkovClusteringTopicModel) -> dict[str, Any]:
    """Return the settings and descriptions of a model as plain values."""
    seed, prior = model.random_state, model.prior
    settings = {name: getattr(model, name) for name in SETTINGS}
    return {
        "settings": {n: v.item() if isinstance(v, np.generic) else v for n, v in settings.items()},
        "prior": prior if isinstance(prior, str) else prior.to_json(),
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
        "degenerate": list(model.degenerate_),
        "words_per_document": model.words_per_document_,
        "vocabulary": model.vocabulary_.to_json() if model.vocabulary_ else None,
        "clip": model.clip_,
        "video": model.settings_,
    }


def restore_model(contents: Contents) -> MarkovClusteringTopicModel:
    """Return the fitted model that a header and tensors describe.

    Parameters
    ----------
    contents
        From `model_contents`. Header entries and tensors of other names are ignored.

    Returns
    -------
    MarkovClusteringTopicModel
        The fitted model.

    Raises
    ------
    InvalidInputError, KeyError, TypeError, ValueError, AttributeError
        If the contents describe no valid model.
    """
    header, tensors = contents
    prior, geometry = header["prior"], header["vocabulary"]
    settings = {"keep_chains": False} | header["settings"]
    model = MarkovClusteringTopicModel(
        **{name: settings[name] for name in SETTINGS},
        prior=prior if isinstance(prior, str) else Prior(**prior),
        random_state=header["random_state"],
    )
    model._validate_params()
    for name in ARRAYS:
        setattr(model, name, tensors[name])
    _restore_estimates(model, tensors)
    model.degenerate_ = tuple(header["degenerate"])
    model.words_per_document_ = int(header["words_per_document"])
    model.vocabulary_ = Vocabulary(**geometry) if geometry else None
    model.clip_, model.settings_ = float(header["clip"]), header["video"]
    model.picture_ = tensors.get("picture")
    model.n_iter_ = len(model.objective_)
    model.n_features_in_ = model.parameters_.sizes.n_words
    return model


def _restore_estimates(model: MarkovClusteringTopicModel, tensors: Tensors) -> None:
    """Set the parameters and, where stored, the posterior, the samples and the assignments."""
    model.parameters_ = _gathered("parameters", Parameters, tensors).checked()
    sizes = model.parameters_.sizes
    model.posterior_ = model.assignments_ = None
    if "posterior.phi" in tensors:
        model.posterior_ = _gathered("posterior", DirichletPosterior, tensors).checked(sizes)
    if "assignments.topics" in tensors:
        model.assignments_ = _gathered("assignments", Assignments, tensors)
    model.chains_ = _restored_chains(model, tensors)
    best = int(model.restarts_.argmax()) if len(model.chains_) > 1 else 0
    model.samples_ = model.chains_[best].samples if model.chains_ else ()


def _restored_chains(
    model: MarkovClusteringTopicModel, tensors: Tensors
) -> tuple[SampleChain, ...]:
    """Return the samples of every stored chain; a file without other chains has the best one."""
    sizes = model.parameters_.sizes
    if "chains.log_joint" in tensors:
        log_joint = tensors["chains.log_joint"]
        samples = _unstacked("chains", tensors, sizes)
        n = log_joint.shape[1]
        parts = (samples[start : start + n] for start in range(0, len(samples), n))
        return tuple(SampleChain(*pair) for pair in zip(parts, log_joint, strict=True))
    if "samples.phi" in tensors:
        samples = _unstacked("samples", tensors, sizes)
        return (SampleChain(samples, model.objective_[model.burn_in - 1 :: model.thinning]),)
    return ()


def _stacked(prefix: str, samples: Sequence[Parameters]) -> Tensors:
    """Return each block of the samples as one tensor, samples x the shape of the block."""
    return {
        f"{prefix}.{name}": np.stack([getattr(sample, name) for sample in samples])
        for name in Parameters._fields
    }


def _unstacked(prefix: str, tensors: Tensors, sizes: Sizes) -> tuple[Parameters, ...]:
    """Return the samples that `_stacked` made tensors of."""
    stacked = [tensors[f"{prefix}.{name}"] for name in Parameters._fields]
    return tuple(Parameters(*blocks).checked(sizes) for blocks in zip(*stacked, strict=True))


def _named(prefix: str, blocks: NamedTuple) -> Tensors:
    """Return the fields of a named tuple by prefixed names."""
    return {f"{prefix}.{name}": block for name, block in blocks._asdict().items()}


def _gathered(prefix: str, kind: type[Blocks], tensors: Tensors) -> Blocks:
    """Return the named tuple that `_named` took apart."""
    return kind(*(tensors[f"{prefix}.{name}"] for name in kind._fields))
