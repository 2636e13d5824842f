"""What the learners see of a corpus: plain arrays, with short documents emptied."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus


class Evidence(NamedTuple):
    """Counts by rows (documents) as in SciPy's CSR, and where sequences start."""

    indptr: NDArray[np.int64]
    """Where each document's words start; one more than documents."""
    words: NDArray[np.int32]
    """Word ids, ascending within a document."""
    counts: NDArray[np.float64]
    """How often each of them occurs."""
    first: NDArray[np.bool_]
    """Whether a document opens a sequence."""
    n_words: int

    @property
    def n_documents(self) -> int:
        """Number of documents, empty ones included."""
        return len(self.first)


def gather(corpus: Corpus, *, min_words: float = 0) -> Evidence:
    """Evidence of a corpus; documents not to be judged keep their place in time and no words.

    Those are documents under `min_words`, and those during which the camera was not in order.
    """
    counts = corpus.counts
    indptr = counts.indptr.astype(np.int64)
    words = counts.indices.astype(np.int32, copy=False)
    data = counts.data
    short = (corpus.n_tokens < min_words) | (corpus.conditions != 0)
    if short.any():
        lengths = np.diff(indptr)
        kept = ~np.repeat(short, lengths)
        words, data = words[kept], data[kept]
        indptr = np.concatenate([[0], np.cumsum(np.where(short, 0, lengths))])
    return Evidence(indptr, words, data, corpus.first, corpus.n_words)
