"""The whole story on one screen: video -> documents -> model -> events.

What decodes video is imported where it is used: learning from a corpus starts without it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.files import kind_of
from habitus.ingest.chunks import Extraction
from habitus.model import MarkovClusteringTopicModel

if TYPE_CHECKING:
    from habitus.ingest.clips import DocumentSettings
    from habitus.progress import ProgressCallback
    from habitus.video import Source

Callback = Callable[[int, float], None]


def gather_documents(
    sources: Sequence["Source"],
    settings: "DocumentSettings | None" = None,
    *,
    output: Path | None = None,
    continued: bool = False,
    jobs: int = -1,
    duration: float | None = None,
    progress: "ProgressCallback | None" = None,
) -> Extraction:
    """Documents of videos, or of corpus files that were made of them; see `extract`."""
    corpora = [s for s in sources if not s.is_live and kind_of(s.address) == "corpus"]
    if not corpora:
        from habitus.ingest.extraction import extract_corpus
        from habitus.progress import ignore_progress

        return extract_corpus(
            sources, settings, output=output, continued=continued, jobs=jobs, duration=duration,
            progress=progress or ignore_progress,
        )  # fmt: skip
    if len(corpora) < len(sources):
        raise InvalidInputError("give videos or corpora, not both at once")
    corpus = Corpus.joined([Corpus.load(source.address) for source in corpora])
    if duration is not None:
        corpus = corpus.take((corpus.times < duration).nonzero()[0])
    return Extraction(corpus, [])


def settings_of(model: MarkovClusteringTopicModel) -> "DocumentSettings":
    """How documents of new video are made, so that they are like those the model was learnt on."""
    if model.settings_ is None:
        raise InvalidInputError(
            "this model does not know how its documents were made of video: learn it from a video "
            "or from a corpus that `habitus extract` made, or give a corpus"
        )
    from habitus.ingest.clips import DocumentSettings

    return DocumentSettings(**({"speeds": 1} | model.settings_))  # older models know no speeds


def check_geometry(model: MarkovClusteringTopicModel, source: "Source") -> None:
    """Refuse a video of another frame size than the model was learnt on, before decoding it."""
    from habitus.ingest.clips import vocabulary_of
    from habitus.video import Reader

    with Reader(source) as reader:
        found, known = vocabulary_of(reader, settings_of(model)), model.vocabulary_
    if known is not None and found != known:
        raise InvalidInputError(
            f"{source.name} has {found.width}x{found.height} pixels, the model was learnt at "
            f"{known.width}x{known.height}: learn this camera anew, or resize the video"
        )
