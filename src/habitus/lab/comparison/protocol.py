"""Protocol of the comparison: the paper's section VI as numbers, its methods, and the footage.

Methods that share what is learnt share a learning run: the 100 samples of one Gibbs sampler give
the plug-in score (its first sample), Monte Carlo with the first five, and with all.
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
    Label,
    abnormal_documents,
    abnormal_places,
    check_labels,
)
from habitus.evaluation.metrics import check_both
from habitus.settings import LearningSettings

PAPER_AVERAGE_PRECISION = {
    "em": (0.3166, 0.3759),
    "vb": (0.3155, 0.3729),
    "gibbs": (0.2970, 0.3673),
}
"""Mean area under the precision-recall curve on both data sets, QMUL and Idiap, best setting of
each learning algorithm."""
PAPER_EM_ACCURACY = (0.9544, 0.8891)
"""Best classification accuracy of EM on both."""
PAPER_DECISION_SECONDS = {"one": 0.0044, "few": 0.0177, "many": 0.3331}
"""Seconds per document, in MATLAB on a laptop of 2013."""
PAPER_LOCALISATION = (0.45, 0.9)
"""Where N_top words can hold 45 % of the abnormal words, the recall is about 90 %."""


@dataclass(frozen=True)
class ComparisonProtocol:
    """Settings that all runs have in common; the defaults are the paper's.

    The seed of a run depends on `seed`, on what is run and on its number alone: more runs, or
    fewer methods, leave the others unchanged.
    """

    n_topics: int = 8
    n_behaviours: int = 4
    seed: int = 0
    min_words: float = 20
    """Every method calls shorter documents normal."""
    n_iterations: int = 100
    """Iterations of EM and VB."""
    burn_in: int = 500
    """Sweeps of Gibbs sampling before the first sample."""
    thinning: int = 100
    """Sweeps between samples."""
    few: int = 5
    """Samples of the smaller Monte Carlo approximation."""
    many: int = 100
    """Samples of the larger Monte Carlo approximation."""
    n_restarts: int = LearningSettings.n_restarts
    """Restarts of the project's default model, of which the best is kept."""
    n_trees: int = 300
    """Trees of the isolation forest."""
    lda_iterations: int = 50
    hmm_iterations: int = 50

    def __post_init__(self) -> None:
        """Raise InvalidInputError for sizes below 1 and a negative seed."""
        for name, least in (("n_topics", 1), ("n_behaviours", 1), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                raise InvalidInputError(
                    f"{name} must be at least {least}, found {value}", parameter=name
                )

    def seed_of(self, name: str, number: int) -> np.random.SeedSequence:
        """Return the seed of one repetition of the learning run of this name."""
        return np.random.SeedSequence(self.seed, spawn_key=(crc32(name.encode()), number))

    def model_options(self, run: "LearningRun") -> dict[str, Any]:
        """Return the parameters of `TopicModel` that point estimates and samples have in common."""
        names = ("n_topics", "n_behaviours", "n_iterations", "min_words")
        shared = {name: getattr(self, name) for name in names}
        return {"learning": run.learning, "prior": run.prior, **shared}


PRIORS = ("1", "H", "H+1")
SHORT_NAMES = {"em": "EM", "vb": "VB", "gibbs": "GS", "blocked-gibbs": "Blocked GS"}
Samples = Literal["one", "few", "many"]
APPROXIMATIONS: dict[Samples, tuple[str, str]] = {
    "one": ("p", "plug-in"),
    "few": ("mc 5", "Monte Carlo, 5 samples"),
    "many": ("mc 100", "Monte Carlo, 100 samples"),
}
"""Short name and description of each."""


class Method(NamedTuple):
    """One row of the table of methods."""

    name: str
    what: str
    """Description of the method."""
    samples: Samples = "one"
    """Sets of parameters that documents are scored with."""
    measure: str = "mean"
    """Measure of normality, for the models of this project."""


class LearningRun(NamedTuple):
    """What is learnt once for one or more methods."""

    name: str
    group: str
    methods: tuple[Method, ...]
    learning: str = ""
    """Learning algorithm of the Markov Clustering Topic Model; empty for the baselines."""
    prior: str = ""
    random: bool = True
    """Whether repetitions differ; if not, there is one."""

    @property
    def words(self) -> Literal["paper", "coarse", "fine"]:
        """Words that it learns from: the paper's; ours; for the baselines, all there are."""
        if self.name == "ours":
            return "coarse"
        return "paper" if self.learning else "fine"


def _paper_run(learning: str, prior: str, approximations: Sequence[Samples]) -> LearningRun:
    short = SHORT_NAMES[learning]
    methods = tuple(
        Method(f"{short} {prior} {name}", f"{short}, prior {prior}, {what}", samples)
        for samples in approximations
        for name, what in [APPROXIMATIONS[samples]]
    )
    group = "blocked" if learning == "blocked-gibbs" else learning
    return LearningRun(f"{learning}-{prior}", group, methods, learning, prior)


OURS = (
    Method("habitus", "the default measure: habits of places", measure="habits"),
    Method(
        "habitus tail", "words of high surprisal, on the calibrated default model", measure="tail"
    ),
    Method("habitus mean", "the paper's measure on the best of 20 EM restarts, words with speeds"),
)
BASELINE_METHODS = {
    "lda": Method(
        "LDA",
        "LDA of scikit-learn: mean log-probability of a word under the document's own mixture",
    ),
    "hmm": Method(
        "HMM", "MultinomialHMM of hmmlearn, filtered on-line: mean log-probability of a word"
    ),
    "forest": Method(
        "Isolation forest",
        "of scikit-learn, on ln(1 + number) of each direction and speed in the whole frame",
    ),
    "neighbours": Method(
        "5 nearest neighbours",
        "mean distance to the 5 nearest training documents: directions, speeds and amount",
    ),
    "amount": Method("Amount of motion", "number of words: more words are more abnormal"),
    "odd-amount": Method(
        "Odd amount of motion", "distance of ln(1 + number of words) from its median in training"
    ),
}
RANDOM_BASELINES = ("lda", "hmm", "forest")
LEARNING_RUNS: dict[str, LearningRun] = {
    run.name: run
    for run in (
        *(_paper_run("em", prior, ("one",)) for prior in PRIORS),
        *(_paper_run("vb", prior, ("one", "few", "many")) for prior in PRIORS),
        *(_paper_run("gibbs", prior, ("one", "few", "many")) for prior in PRIORS),
        _paper_run("blocked-gibbs", "1", ("one", "few")),
        LearningRun("ours", "ours", OURS, "em", "H+1"),
        *(
            LearningRun(name, "baselines", (method,), random=name in RANDOM_BASELINES)
            for name, method in BASELINE_METHODS.items()
        ),
    )
}
GROUPS = tuple(dict.fromkeys(run.group for run in LEARNING_RUNS.values()))


class SelectedRuns(NamedTuple):
    """Learning runs that can be carried out here, and notes about those left out."""

    runs: list[LearningRun]
    notes: list[str]


def select_runs(names: Sequence[str] = ()) -> SelectedRuns:
    """Return the learning runs of groups or of single names; all without any name.

    A run that needs a library that is not installed is left out, with a note.
    """
    known = {*GROUPS, *LEARNING_RUNS}
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"methods must be of {', '.join(GROUPS)} (or one of {', '.join(LEARNING_RUNS)}), "
                f"found {name!r}",
                parameter="methods",
            )
    wanted = set(names or GROUPS)
    runs = [run for run in LEARNING_RUNS.values() if wanted & {run.group, run.name}]
    if find_spec("hmmlearn") or all(run.name != "hmm" for run in runs):
        return SelectedRuns(runs, [])
    note = 'the HMM is left out: it needs hmmlearn (pip install "habitus[compare]")'
    return SelectedRuns([run for run in runs if run.name != "hmm"], [note])


class SplitFootage(NamedTuple):
    """Documents of one labelled video, split in time into a training and a test part."""

    corpus: Corpus
    n_train: int
    """Number of documents, from the first, that are learnt from."""
    labels: list[Label]
    """All labels, including those of the training part."""

    @property
    def train(self) -> Corpus:
        """Training documents."""
        return self.corpus.take(np.arange(self.n_train))

    @property
    def test(self) -> Corpus:
        """Test documents."""
        return self.corpus.take(np.arange(self.n_train, len(self.corpus)))

    @property
    def coarse(self) -> "SplitFootage":
        """The same footage in coarse words, which the topic model learns from."""
        return self._replace(corpus=self.corpus.coarse)

    @property
    def paper(self) -> "SplitFootage":
        """The same footage in the paper's words, which do not distinguish slow from fast."""
        return self._replace(corpus=self.corpus.paper)

    @property
    def n_test(self) -> int:
        """Number of test documents."""
        return len(self.corpus) - self.n_train

    @property
    def times(self) -> Array:
        """Start of each test document in seconds."""
        return self.corpus.times[self.n_train :]

    @property
    def abnormal(self) -> Flags:
        """Whether the labels mark each test document abnormal."""
        return abnormal_documents(self.labels, self.times, self.corpus.clip)

    @property
    def events(self) -> list[Label]:
        """Labels that overlap the test part."""
        return [label for label in self.labels if label.end > self.times[0]]

    def long_enough(self, protocol: ComparisonProtocol) -> Flags:
        """Return whether each document of both parts is learnt from or judged."""
        enough = self.corpus.n_tokens >= max(protocol.min_words, 1)
        return np.asarray(enough & (self.corpus.conditions == 0))


def split_footage(corpus: Corpus, labels: Sequence[Label], train: float) -> SplitFootage:
    """Split a labelled corpus into training documents, the first `train` seconds, and the rest.

    Raises InvalidInputError if a part is empty, the corpus has several videos, a label lies outside
    the video, or the labels mark no test document, or every one, abnormal.
    """
    if len(corpus) == 0:
        raise InvalidInputError("the corpus has no documents")
    if (np.diff(corpus.times) <= 0).any():
        raise InvalidInputError(
            "labels need the time of each document, but the times of this corpus restart: "
            "compare on one video at a time"
        )
    first, last = float(corpus.times[0]), float(corpus.times[-1] + corpus.clip)
    n_train = int(np.searchsorted(corpus.times, first + train - 1e-9 * corpus.clip))
    if not 0 < n_train < len(corpus):
        raise InvalidInputError(
            f"training must leave documents to judge: the video has {last - first:g} s, found "
            f"{train:g} s of training",
            parameter="train",
        )
    check_labels(list(labels), first, last, clip=corpus.clip)
    footage = SplitFootage(corpus, n_train, list(labels))
    check_both(footage.abnormal)
    return footage


def identity_of(footage: SplitFootage, protocol: ComparisonProtocol) -> dict[str, str]:
    """Return hashes of everything that results depend on: results mix if and only if all agree."""
    corpus = footage.corpus
    arrays = (
        corpus.entries.data,
        corpus.entries.indices,
        corpus.entries.indptr,
        corpus.times,
        corpus.lengths,
        corpus.conditions,
    )
    documents = hashlib.blake2b(digest_size=16)
    documents.update(repr((corpus.n_words, corpus.vocabulary, corpus.clip)).encode())
    for array in arrays:
        documents.update(np.ascontiguousarray(array).tobytes())
    labels = json.dumps([footage.labels, abnormal_places(footage.labels)]).encode()
    return {
        "documents": documents.hexdigest(),
        "labels": hashlib.blake2b(labels, digest_size=16).hexdigest(),
        "training": str(footage.n_train),
        "settings": json.dumps(asdict(protocol), sort_keys=True),
    }
