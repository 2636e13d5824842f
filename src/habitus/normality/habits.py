"""What is known of a scene, as counts that go on growing while it is watched.

Five minutes of training do not show every word that is normal. So each document that is judged
normal adds its words to those of the behaviours it was of: what comes again surprises less. Words
that are as good as new have a share of their own, learnt from held-out footage; as less and less is
new, that share falls, and what is new surprises more.

    p(word | z) = (1 - share) n(word, z) / n(z) + share p(word | new)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.model.parameters import Array
from habitus.normality.filter import LEAST_PROBABILITY, Seen
from habitus.normality.novelty import KNOWN, novelty_of
from habitus.words import Vocabulary

# Documents until the places of what is new are smoothed anew.
REFRESH = 30


class Counts(NamedTuple):
    """How often each word was seen."""

    known: Array
    """In each behaviour, in expectation: words x behaviours."""
    new: Array
    """While it was new, words: in all, a share of 1 - KNOWN of held-out footage."""


class Habits:
    """Counts of words by behaviour, and the probabilities that follow from them."""

    def __init__(self, counts: Counts, vocabulary: Vocabulary | None) -> None:
        self.vocabulary = vocabulary
        self.known, self.new = counts.known.copy(), counts.new.copy()
        self.n_known = self.known.sum(axis=0)
        n_tokens = float(self.n_known.sum())
        # New and all words, in tokens; then the number of documents since the last smoothing.
        self.tally = np.array([(1 - KNOWN) * n_tokens, n_tokens, 0.0])
        self.novelty = novelty_of(self.new, vocabulary)

    @property
    def share(self) -> float:
        """Of words that are new."""
        return float(self.tally[0] / self.tally[1]) if self.tally[1] else 1 - KNOWN

    def rows(self, words: NDArray[np.int32]) -> Array:
        """p(word | behaviour) of the given words, words x behaviours."""
        return _rows(words, self.known, self.n_known, self.share, self.novelty)

    def learn(self, words: NDArray[np.int32], counts: Array, rows: Array, seen: Seen) -> None:
        """Take in a document that was judged by these rows."""
        self.tally[0] += _learn(
            words, counts, rows, seen.posterior[0], self.share * self.novelty[words], self.known,
            self.new,
        )  # fmt: skip
        self.n_known += seen.n_tokens * seen.posterior[0]
        self.tally[1] += seen.n_tokens
        self.tally[2] += 1
        if self.tally[2] >= REFRESH:
            self.tally[2] = 0
            self.novelty = novelty_of(self.new, self.vocabulary)

    def state(self) -> dict[str, Array]:
        """Everything that changes, as arrays."""
        return {
            "known": self.known, "new": self.new, "n_known": self.n_known, "tally": self.tally,
            "novelty": self.novelty,
        }  # fmt: skip

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a state."""
        self.known, self.new, self.n_known, self.tally, self.novelty = (
            state[name].copy() for name in ("known", "new", "n_known", "tally", "novelty")
        )


@compiled
def _rows(
    words: NDArray[np.int32], known: Array, n_known: Array, share: float, novelty: Array
) -> Array:
    """`(1 - share) * known[words] / n_known + share * novelty[words, None]`."""
    rows = np.empty((len(words), len(n_known)))
    weights = (1 - share) / np.maximum(n_known, 1.0)
    for i in range(len(words)):
        w = words[i]
        for z in range(len(n_known)):
            p = known[w, z] * weights[z] + share * novelty[w]
            rows[i, z] = max(p, LEAST_PROBABILITY)
    return rows


@compiled
def _learn(
    words: NDArray[np.int32], counts: Array, rows: Array, posterior: Array, new_part: Array,
    known: Array, new: Array,
) -> float:  # fmt: skip
    """Add a document's words to `known` and, as far as they were new, to `new`; how many were."""
    total = 0.0
    for i in range(len(words)):
        w, p = words[i], 0.0
        for z in range(len(posterior)):
            known[w, z] += counts[i] * posterior[z]
            p += rows[i, z] * posterior[z]
        fresh = counts[i] * new_part[i] / p
        new[w] += fresh
        total += fresh
    return total
