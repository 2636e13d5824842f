"""The whole story on one screen: video -> documents -> model -> events.

What decodes video is imported where it is used: learning from a corpus starts without it.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from habitus.documents import Corpus
from habitus.documents.assembly import Extraction
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.files import kind_of
from habitus.model import MarkovClusteringTopicModel
from habitus.normality import calibrate

if TYPE_CHECKING:
    from habitus.documents.clips import Settings
    from habitus.documents.extraction import Progress
    from habitus.video import Source

Callback = Callable[[int, float], None]


def gather_documents(
    sources: Sequence["Source"],
    settings: "Settings | None" = None,
    *,
    output: Path | None = None,
    continued: bool = False,
    jobs: int = -1,
    duration: float | None = None,
    progress: "Callable[[Progress], None] | None" = None,
) -> Extraction:
    """Documents of videos, or of corpus files that were made of them; see `extract`."""
    corpora = [s for s in sources if not s.is_live and kind_of(s.address) == "corpus"]
    if not corpora:
        from habitus.documents.extraction import extract

        return extract(
            sources, settings, output=output, continued=continued, jobs=jobs, duration=duration,
            progress=progress,
        )  # fmt: skip
    if len(corpora) < len(sources):
        raise InvalidInputError("give videos or corpora, not both at once")
    corpus = Corpus.joined([Corpus.load(source.address) for source in corpora])
    if duration is not None:
        corpus = corpus.take((corpus.times < duration).nonzero()[0])
    return Extraction(corpus, [])


class Learnt(NamedTuple):
    """A model, and what there is to say about it."""

    model: MarkovClusteringTopicModel
    notes: list[str]


def learn(corpus: Corpus, *, callback: Callback | None = None, **options: Any) -> Learnt:
    """A model of a scene, which knows what normal footage scores if there is enough of it.

    `options` are those of `MarkovClusteringTopicModel`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model = MarkovClusteringTopicModel(**options).fit(corpus, callback=callback)
        notes = [f"{note}; left uniform" for note in model.degenerate_]
        try:
            calibrate(model, corpus, callback=callback)
        except InvalidInputError as error:
            notes.append(f"not calibrated: {error}")
    return Learnt(model, notes)


def settings_of(model: MarkovClusteringTopicModel) -> "Settings":
    """How documents of new video are made, so that they are like those the model was learnt on."""
    if model.settings_ is None:
        raise InvalidInputError(
            "this model does not know how its documents were made of video: learn it from a video "
            "or from a corpus that `habitus extract` made, or give a corpus"
        )
    from habitus.documents.clips import Settings

    return Settings(**({"speeds": 1} | model.settings_))  # older models know no speeds


def check_geometry(model: MarkovClusteringTopicModel, source: "Source") -> None:
    """Refuse a video of another frame size than the model was learnt on, before decoding it."""
    from habitus.documents.clips import vocabulary_of
    from habitus.video import Reader

    with Reader(source) as reader:
        found, known = vocabulary_of(reader, settings_of(model)), model.vocabulary_
    if known is not None and found != known:
        raise InvalidInputError(
            f"{source.name} has {found.width}x{found.height} pixels, the model was learnt at "
            f"{known.width}x{known.height}: learn this camera anew, or resize the video"
        )
