"""The table of methods: the paper's 21 (its Table I), ours, and what a user would pick instead.

Methods that share what was learnt share a *chain*: the 100 samples of one Gibbs chain give the
plug-in score (its first sample), Monte Carlo with the first five, and with all.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal, NamedTuple

from habitus.errors import InvalidInputError

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
