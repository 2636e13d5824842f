"""A corpus as a picture: all motion on the scene, and words per document over time."""

import os

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from habitus.documents import Corpus
from habitus.files import written_whole
from habitus.report.arrows import arrows_of, draw_on_axes, legend
from habitus.report.backdrop import lay
from habitus.report.palette import FAULT
from habitus.words import Vocabulary

SHORT = 20
"""Words under which a document is not judged."""


def draw_corpus(path: str | os.PathLike[str], corpus: Corpus, *, title: str) -> None:
    """Write a picture of what was seen: where things moved, and how much, when."""
    vocabulary = corpus.vocabulary
    aspect = vocabulary.height / vocabulary.width if vocabulary else 0.75
    figure = Figure(figsize=(9, 9 * aspect + 3.1), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[9 * aspect, 2.2])
    if vocabulary is None:
        above.set_axis_off()
    else:
        _flow(above, corpus, vocabulary)
    _timeline(below, corpus)
    figure.suptitle(title, fontsize=12)
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _flow(ax: Axes, corpus: Corpus, v: Vocabulary) -> None:
    """An arrow a word, as wide as it is frequent."""
    lay(ax, v, corpus.picture)
    fine = corpus.conditions == 0
    counts = np.asarray(corpus.counts[fine].sum(axis=0)).reshape(-1, v.speeds).sum(axis=1)
    seen = np.flatnonzero(counts > 0)
    if len(seen):
        # The square root: lanes seldom used are seen beside the busy ones.
        strength = np.sqrt(counts[seen] / np.quantile(counts[seen], 0.99)).clip(0, 1)
        worth = strength > 0.08
        draw_on_axes(ax, arrows_of(seen[worth], strength[worth], v.paper))
    legend(ax, loc="lower left", fontsize=8, framealpha=0.85)


def _timeline(ax: Axes, corpus: Corpus) -> None:
    """Words of each document, sequence after sequence."""
    n_tokens = corpus.n_tokens
    where = np.arange(len(corpus)) / 60 if _is_seconds(corpus) else np.arange(len(corpus))
    width = where[1] - where[0] if len(where) > 1 else 1.0
    edges = np.append(where, where[-1] + width)
    ax.stairs(n_tokens, edges, fill=True, color="#56B4E9")
    faults = corpus.conditions != 0
    if faults.any():
        top = n_tokens.max(initial=1)
        ax.stairs(
            np.where(faults, top, 0), edges, fill=True, color=FAULT, alpha=0.5,
            label="moved, covered or frozen",
        )  # fmt: skip
        ax.legend(fontsize=8, loc="upper right")
    for end in np.cumsum(corpus.lengths)[:-1]:
        ax.axvline(where[end], color="#444444", linewidth=0.8, linestyle=":")
    short = float((n_tokens < SHORT).mean())
    ax.set(xlim=(0, edges[-1]), ylim=(0, None))
    ax.set_xlabel("minutes" if _is_seconds(corpus) else "documents")
    ax.set_ylabel("words a document")
    ax.set_title(
        f"{len(corpus)} documents, {short:.0%} of them under {SHORT} words", fontsize=10, loc="left"
    )
    ax.spines[["top", "right"]].set_visible(False)


def _is_seconds(corpus: Corpus) -> bool:
    """Whether documents are a second each, and enough to count in minutes."""
    return len(corpus) >= 120 and bool(np.isclose(np.median(np.diff(corpus.times)), 1.0))
