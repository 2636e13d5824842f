"""The documents that all methods get: some to learn from, those after them to judge."""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.labels import Label, check_labels
from habitus.evaluation.measures import check_both
from habitus.evaluation.truth import Place, abnormal_documents, places_of
from habitus.model.parameters import Array

Flags = NDArray[np.bool_]


class Footage(NamedTuple):
    """One labelled video as documents."""

    corpus: Corpus
    n_train: int
    """The first so many documents are learnt from."""
    labels: list[Label]
    """All of them, whether they lie in the training part or not."""
    places: list[Place]

    @property
    def train(self) -> Corpus:
        """What is learnt from."""
        return self.corpus.take(np.arange(self.n_train))

    @property
    def test(self) -> Corpus:
        """What is judged."""
        return self.corpus.take(np.arange(self.n_train, len(self.corpus)))

    @property
    def paper(self) -> "Footage":
        """The same in the paper's words, which do not tell slow from fast."""
        return self._replace(corpus=self.corpus.paper)

    @property
    def n_test(self) -> int:
        """Documents to be judged."""
        return len(self.corpus) - self.n_train

    @property
    def times(self) -> Array:
        """Start of each document to be judged."""
        return self.corpus.times[self.n_train :]

    @property
    def abnormal(self) -> Flags:
        """Whether the labels call each of the documents to be judged abnormal."""
        return abnormal_documents(self.labels, self.times, self.corpus.clip)

    @property
    def events(self) -> list[Label]:
        """Labels that begin among the documents to be judged, or reach into them."""
        return [label for label in self.labels if label.end > self.times[0]]

    def long_enough(self, protocol: Protocol) -> Flags:
        """Whether each document, training included, may be learnt from and judged."""
        enough = self.corpus.n_tokens >= max(protocol.min_words, 1)
        return np.asarray(enough & (self.corpus.conditions == 0))


def footage_of(corpus: Corpus, labels: Sequence[Label], train: float) -> Footage:
    """Documents up to `train` seconds to learn from, those after them to judge."""
    if len(corpus) == 0:
        raise InvalidInputError("the corpus has no document")
    if (np.diff(corpus.times) <= 0).any():
        raise InvalidInputError(
            "labels need the time of each document, and the times of this corpus start anew: "
            "compare on one video at a time"
        )
    first, last = float(corpus.times[0]), float(corpus.times[-1] + corpus.clip)
    n_train = int(np.searchsorted(corpus.times, first + train - 1e-9 * corpus.clip))
    if not 0 < n_train < len(corpus):
        raise InvalidInputError(
            f"--train must leave documents to judge: the video has {last - first:g} s, found "
            f"{train:g} s"
        )
    check_labels(list(labels), first, last)
    found = Footage(corpus, n_train, list(labels), places_of(labels))
    check_both(found.abnormal)
    return found


def identity_of(footage: Footage, protocol: Protocol) -> dict[str, str]:
    """What a comparison is of, part by part: the same if and only if results can be mixed."""
    corpus = footage.corpus
    arrays = (corpus.counts.data, corpus.counts.indices, corpus.counts.indptr, corpus.times,
              corpus.lengths, corpus.conditions)  # fmt: skip
    documents = hashlib.blake2b(digest_size=16)
    documents.update(repr((corpus.n_words, corpus.vocabulary, corpus.clip)).encode())
    for array in arrays:
        documents.update(np.ascontiguousarray(array).tobytes())
    truth = json.dumps([footage.labels, footage.places]).encode()
    return {
        "documents": documents.hexdigest(),
        "labels": hashlib.blake2b(truth, digest_size=16).hexdigest(),
        "training": str(footage.n_train),
        "settings": json.dumps(protocol.to_json(), sort_keys=True),
    }
