"""Model files: a fitted model as tensors and a JSON header, safe to read."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from annotated_types import Interval
from typing_extensions import TypedDict

from habitus.corpus.checks import checked_looks, picture_sizes
from habitus.corpus.documents import ExtractionSettings, stored_pictures
from habitus.corpus.looks import GRID
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, HabitusError
from habitus.files import Contents, FileFormat, Tensors
from habitus.model.parameters import (
    Assignments,
    DirichletPosterior,
    Parameters,
    Prior,
    SampleChain,
    Sizes,
)
from habitus.model.topic_model import TopicModel
from habitus.model.validation import check_parameters
from habitus.schema import (
    BYTE,
    MOST_NATS,
    REAL,
    WHOLE,
    AtLeastOne,
    ClipSeconds,
    Count,
    Layout,
    NotNegative,
    Positive,
    Text,
)

ARRAYS = ("objective_", "restarts_", "belief_", "transitions_")


class ModelSettings(TypedDict):
    """Parameters of the estimator that a model was learnt with."""

    n_topics: Annotated[int, Interval(ge=1, le=65_535)]
    n_behaviours: Annotated[int, Interval(ge=1, le=65_535)]
    learning: Text
    n_iterations: AtLeastOne
    tolerance: NotNegative | None
    n_restarts: AtLeastOne
    n_jobs: Annotated[int, Interval(ge=-1_000_000, le=1_000_000)] | None
    smoothing: NotNegative
    min_words: NotNegative
    burn_in: AtLeastOne
    n_samples: AtLeastOne
    thinning: AtLeastOne
    keep_chains: bool


SETTINGS = tuple(ModelSettings.__annotations__)


class PriorValues(TypedDict):
    """Hyperparameters of a prior that has no name."""

    alpha: Positive | list[Positive]
    beta: Positive | list[Positive]
    gamma: Positive | list[Positive]
    eta: Positive | list[Positive]


class ModelHeader(TypedDict):
    """Header of a model file."""

    settings: ModelSettings
    prior: Text | PriorValues
    random_state: Annotated[int, Interval(ge=0, le=1 << 128)] | None
    degenerate: list[Text]
    words_per_document: Count
    vocabulary: Vocabulary | None
    clip: ClipSeconds
    video: ExtractionSettings | None


ONE = 1.0 + 1e-6
"""The largest probability, rounded."""
SHAPES: dict[str, tuple[str, ...]] = {
    "phi": ("words", "topics"),
    "theta": ("topics", "behaviours"),
    "pi": ("behaviours",),
    "xi": ("behaviours", "behaviours"),
}
"""Sizes of the blocks of parameters."""


def _blocks(prefix: str, *first: str, required: bool = False, most: float = ONE) -> dict[str, Any]:
    """Return the layout of all blocks of parameters, or of several of each."""
    return {
        f"{prefix}.{name}": Layout(REAL, (*first, *shape), required, 0.0, most)
        for name, shape in SHAPES.items()
    }


NATS = (-MOST_NATS, MOST_NATS)
LAYOUTS: dict[str, Layout] = {
    **_blocks("parameters", required=True),
    **_blocks("posterior", most=MOST_NATS),
    **_blocks("samples", "samples"),
    **_blocks("chains", "samples of chains"),
    "chains.log_joint": Layout(REAL, ("restarts", "samples of a chain"), False, *NATS),
    "objective_": Layout(REAL, ("iterations",), True, *NATS),
    "restarts_": Layout(REAL, ("restarts",), True, *NATS),
    "belief_": Layout(REAL, ("behaviours",), True, 0.0, ONE),
    "transitions_": Layout(REAL, ("behaviours", "behaviours"), True, 0.0, MOST_NATS),
    "assignments.topics": Layout(WHOLE, ("tokens",), False),
    "assignments.behaviours": Layout(WHOLE, ("documents",), False),
    "picture": Layout(BYTE, ("height", "width", 3), False),
    "pictures": Layout(BYTE, ("looks", *GRID), False),
}
"""Arrays of a model file."""

Blocks = TypeVar("Blocks", Parameters, DirichletPosterior, Assignments)
Model = TypeVar("Model", bound=TopicModel)


def save_model(model: TopicModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, whole or not at all.

    A given `init`, a generator as `random_state`, and `n_jobs` are not kept.
    """
    header, tensors = model_contents(model)
    FORMAT.write(path, header, tensors)


def load_model(path: str | os.PathLike[str], kind: type[Model]) -> Model:
    """Read a fitted model of this class from a file; a `FileError` says why there is none."""
    contents = FORMAT.read(path)
    with understood(path):
        return restore_model(contents, kind)


@contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in an error that its contents are the reason of."""
    try:
        yield
    except KeyError as error:
        raise FileError(f"{Path(path)}: the array {error} is missing") from error
    except (HabitusError, ValueError) as error:
        raise FileError(f"{Path(path)}: not a model this habitus understands: {error}") from error


def sizes_of(header: ModelHeader) -> Mapping[str, int | range]:
    """Return the sizes of arrays that the header of a model states."""
    settings, vocabulary = header["settings"], header["vocabulary"]
    return {
        "topics": settings["n_topics"],
        "behaviours": settings["n_behaviours"],
        **({} if vocabulary is None else {"words": vocabulary.n_words}),
        **picture_sizes(vocabulary),
    }


FORMAT = FileFormat("model", 4, ModelHeader, LAYOUTS, sizes_of)


def model_contents(model: TopicModel) -> Contents:
    """Return the header and the tensors of a fitted model; `SceneModel.save` adds others."""
    tensors: Tensors = {name: getattr(model, name) for name in ARRAYS}
    tensors |= _named("parameters", model.parameters_)
    if model.posterior_ is not None:
        tensors |= _named("posterior", model.posterior_)
    if model.assignments_ is not None:
        tensors |= _named("assignments", model.assignments_)
    if len(model.chains_) > 1:
        tensors["chains.log_joint"] = np.stack([chain.log_joint for chain in model.chains_])
        samples = [sample for chain in model.chains_ for sample in chain.samples]
        tensors |= _named("chains", _stacked(samples))
    elif model.samples_:
        tensors |= _named("samples", _stacked(model.samples_))
    tensors |= stored_pictures(model.picture_, model.looks_)
    return Contents(_header(model), tensors)


def _header(model: TopicModel) -> dict[str, Any]:
    """Return the settings and descriptions of a model as plain values."""
    seed, prior = model.random_state, model.prior
    settings = {name: getattr(model, name) for name in SETTINGS}
    settings["n_jobs"] = 1  # its default: the file is the same by any number of threads
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


def restore_model(contents: Contents, kind: type[Model]) -> Model:
    """Return the fitted model that `model_contents` described; other entries are ignored."""
    header, tensors = contents
    prior, vocabulary = header["prior"], header["vocabulary"]
    settings = header["settings"]
    model = kind(
        **{name: settings[name] for name in SETTINGS},
        prior=prior if isinstance(prior, str) else Prior(**prior),
        random_state=header["random_state"],
    )
    check_parameters(model)
    Prior.of(model.prior)
    for name in ARRAYS:
        setattr(model, name, tensors[name])
    _restore_estimates(model, tensors)
    model.degenerate_ = tuple(header["degenerate"])
    model.words_per_document_ = int(header["words_per_document"])
    model.vocabulary_ = vocabulary
    model.clip_, model.settings_ = float(header["clip"]), header["video"]
    model.picture_ = tensors.get("picture")
    model.looks_ = checked_looks(tensors.get("pictures"), model.picture_)
    model.n_iter_ = len(model.objective_)
    model.n_features_in_ = model.parameters_.sizes.n_words
    return model


def _restore_estimates(model: TopicModel, tensors: Tensors) -> None:
    """Set the parameters and, where stored, the posterior, the samples and the assignments."""
    model.parameters_ = _gathered("parameters", Parameters, tensors).checked()
    sizes = model.parameters_.sizes
    model.posterior_ = model.assignments_ = model.batches_ = None
    if "posterior.phi" in tensors:
        model.posterior_ = _gathered("posterior", DirichletPosterior, tensors).checked(sizes)
    if "assignments.topics" in tensors:
        model.assignments_ = _gathered("assignments", Assignments, tensors)
    model.chains_ = _restored_chains(model, tensors)
    best = int(model.restarts_.argmax()) if len(model.chains_) > 1 else 0
    model.samples_ = model.chains_[best].samples if model.chains_ else ()


def _restored_chains(model: TopicModel, tensors: Tensors) -> tuple[SampleChain, ...]:
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


def _stacked(samples: Sequence[Parameters]) -> Parameters:
    """Return each block of the samples as one array, samples x the shape of the block."""
    return Parameters(*map(np.stack, zip(*samples, strict=True)))


def _unstacked(prefix: str, tensors: Tensors, sizes: Sizes) -> tuple[Parameters, ...]:
    """Return the samples that `_stacked` made tensors of."""
    stacked = _gathered(prefix, Parameters, tensors)
    return tuple(Parameters(*blocks).checked(sizes) for blocks in zip(*stacked, strict=True))


def _named(prefix: str, blocks: NamedTuple) -> Tensors:
    """Return the fields of a named tuple by prefixed names."""
    return {f"{prefix}.{name}": block for name, block in blocks._asdict().items()}


def _gathered(prefix: str, kind: type[Blocks], tensors: Tensors) -> Blocks:
    """Return the named tuple that `_named` took apart."""
    return kind(*(tensors[f"{prefix}.{name}"] for name in kind._fields))
