"""What the paper reports, on its own two videos: other data than any of ours.

How the methods are compared: the paper's section VI, as numbers.

The table of methods: the paper's 21 (its Table I), ours, and what a user would pick instead.

Methods that share what was learnt share a *chain*: the 100 samples of one Gibbs chain give the
plug-in score (its first sample), Monte Carlo with the first five, and with all.

The documents that all methods get: some to learn from, those after them to judge.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np

from habitus.arrays import Array, Flags
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import (
    AbnormalPlace,
    Label,
    abnormal_documents,
    abnormal_places,
    check_labels,
)
from habitus.evaluation.metrics import check_both


class Reported(NamedTuple):
    """A figure of the paper on each of its data sets."""

    qmul: float
    idiap: float


MEAN_AREA = {
    "em": Reported(0.3166, 0.3759),
    "vb": Reported(0.3155, 0.3729),
    "gibbs": Reported(0.2970, 0.3673),
}
"""Mean area under the precision-recall curve, best setting of each learner."""
EM_ACCURACY = Reported(0.9544, 0.8891)
"""Best classification accuracy of EM."""
DECIDING = {"one": 0.0044, "few": 0.0177, "many": 0.3331}
"""Seconds a document, MATLAB on a laptop of 2013."""
LOCALISED = (0.45, 0.9)
"""Where 45 % of the abnormal words could be found, about 90 % of those were."""


@dataclass(frozen=True)
class Protocol:
    """What every run has in common; the defaults are the paper's.

    A run's seed depends on `seed`, on what is run and on its number alone: more runs, or fewer
    methods, leave the others as they are.
    """

    n_topics: int = 8
    n_behaviours: int = 4
    seed: int = 0
    min_words: float = 20
    """Shorter documents are called normal by every method."""
    n_iterations: int = 100
    """Of EM and VB."""
    burn_in: int = 500
    """Sweeps of Gibbs before its first sample."""
    thinning: int = 100
    """Sweeps between samples."""
    few: int = 5
    """Samples of the smaller Monte Carlo approximation."""
    many: int = 100
    """Samples of the larger one."""
    n_restarts: int = 20
    """Of our own pipeline, of which the best is kept, as `habitus learn` does."""
    n_trees: int = 300
    """Of the isolation forest."""
    lda_iterations: int = 50
    hmm_iterations: int = 50

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        for name in ("n_topics", "n_behaviours"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInputError(f"{name[2:]} must be at least 1, found {value}")
        if self.seed < 0:
            raise InvalidInputError(f"seed must be at least 0, found {self.seed}")

    def seed_of(self, kind: str, run: int) -> np.random.SeedSequence:
        """The seed of one run."""
        return np.random.SeedSequence(self.seed, spawn_key=(crc32(kind.encode()), run))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)


PRIORS = ("1", "H", "H+1")
SHORT = {"em": "EM", "vb": "VB", "gibbs": "GS", "blocked-gibbs": "Blocked GS"}
Samples = Literal["one", "few", "many"]
APPROXIMATIONS: dict[Samples, str] = {"one": "p", "few": "mc 5", "many": "mc 100"}
IN_WORDS: dict[Samples, str] = {
    "one": "plug-in",
    "few": "Monte Carlo, 5 samples",
    "many": "Monte Carlo, 100 samples",
}


class Method(NamedTuple):
    """One row of the table."""

    name: str
    what: str
    """In words."""
    samples: Samples = "one"
    """Sets of parameters that it scores with."""
    measure: str = "mean"
    """Of normality, for the models of this project."""


class Chain(NamedTuple):
    """What is learnt once for one or more methods."""

    name: str
    group: str
    methods: tuple[Method, ...]
    learning: str = ""
    """Algorithm of the Markov Clustering Topic Model; empty for the baselines."""
    prior: str = ""
    random: bool = True
    """Whether runs differ; if not, there is one."""

    @property
    def knows_speed(self) -> bool:
        """Whether it gets words that tell slow from fast; all others get the paper's."""
        return self.name == "ours"


def _paper(learning: str, prior: str, approximations: Sequence[Samples]) -> Chain:
    methods = tuple(
        Method(
            f"{SHORT[learning]} {prior} {APPROXIMATIONS[samples]}",
            f"{SHORT[learning]}, prior {prior}, {IN_WORDS[samples]}",
            samples,
        )
        for samples in approximations
    )
    group = "blocked" if learning == "blocked-gibbs" else learning
    return Chain(f"{learning}-{prior}", group, methods, learning, prior)


def _baseline(name: str, title: str, what: str, *, random: bool = True) -> Chain:
    return Chain(name, "baselines", (Method(title, what),), random=random)


OURS = Chain(
    "ours",
    "ours",
    (
        Method("habitus", "our default measure, `tail`, on what `habitus learn` gives", "one",
               "tail"),
        Method("habitus mean", "the paper's measure on the best of 20 EM restarts, words that "
               "tell slow from fast"),
    ),
    "em",
    "H+1",
)  # fmt: skip
CHAINS: dict[str, Chain] = {
    chain.name: chain
    for chain in (
        *(_paper("em", prior, ("one",)) for prior in PRIORS),
        *(_paper("vb", prior, ("one", "few", "many")) for prior in PRIORS),
        *(_paper("gibbs", prior, ("one", "few", "many")) for prior in PRIORS),
        _paper("blocked-gibbs", "1", ("one", "few")),
        OURS,
        _baseline("lda", "LDA", "scikit-learn's LDA: mean log-probability of a document's words "
                  "under its own mixture of topics"),
        _baseline("hmm", "HMM", "hmmlearn's MultinomialHMM, filtered on-line, mean "
                  "log-probability of a word"),
        _baseline("forest", "Isolation forest", "scikit-learn's, on 32 principal components of "
                  "the square roots of word frequencies"),
        _baseline("neighbours", "5 nearest neighbours", "mean distance to the 5 nearest training "
                  "documents, square roots of word frequencies", random=False),
        _baseline("amount", "Amount of motion", "number of words, the more the more abnormal",
                  random=False),
        _baseline("odd-amount", "Odd amount of motion", "how far ln(1 + number of words) is from "
                  "its median in training", random=False),
    )
}  # fmt: skip
GROUPS = tuple(dict.fromkeys(chain.group for chain in CHAINS.values()))


def chosen(names: Sequence[str]) -> list[Chain]:
    """The chains of groups or of single names; all of them if none is given."""
    known = {*GROUPS, *CHAINS}
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"methods must be of {', '.join(GROUPS)} (or one of {', '.join(CHAINS)}), "
                f"found {name!r}"
            )
    wanted = set(names or GROUPS)
    return [chain for chain in CHAINS.values() if wanted & {chain.group, chain.name}]


class Available(NamedTuple):
    """Chains that can be run here, and what there is to say about the others."""

    chains: list[Chain]
    notes: list[str]


def available(chains: Sequence[Chain]) -> Available:
    """Leave out what needs a library that is not installed."""
    if find_spec("hmmlearn") or all(chain.name != "hmm" for chain in chains):
        return Available(list(chains), [])
    note = 'the HMM is left out: it needs hmmlearn (pip install "habitus[compare]")'
    return Available([chain for chain in chains if chain.name != "hmm"], [note])


class Footage(NamedTuple):
    """One labelled video as documents."""

    corpus: Corpus
    n_train: int
    """The first so many documents are learnt from."""
    labels: list[Label]
    """All of them, whether they lie in the training part or not."""
    places: list[AbnormalPlace]

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
    found = Footage(corpus, n_train, list(labels), abnormal_places(labels))
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
