"""The result of `habitus tune` as tables, and the command that learns the recommended model."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from habitus.lab.tuning.advice import Hyperparameters, Tuning
    from habitus.lab.tuning.recall import FoundShare, RecallEstimate
    from habitus.lab.tuning.selection import Choice


def tell(tuning: "Tuning", command_line: str, budget: float, n_documents: int) -> None:
    """Print sizes, hyperparameters, the command to learn with, and the recall estimate."""
    from rich.console import Console

    from habitus.lab.tuning.advice import recall_in_words

    console, choice = Console(highlight=False, soft_wrap=True), tuning.choice
    best = choice.candidates[choice.best]
    worse = choice.shortfall(choice.chosen)
    console.print(f"held-out log-likelihood, nats per word ({n_documents} documents)\n")
    console.print(_sizes_table(choice))
    console.print(
        f"size     {choice.candidate.n_behaviours} behaviours, {choice.candidate.n_topics} topics "
        f"(<): the simplest within one standard error of the best (*), {best.n_behaviours} and "
        f"{best.n_topics}; paired difference {worse.mean:.3f}, error {worse.standard_error:.3f}"
    )
    if tuning.hyperparameters is not None:
        console.print(_prior_told(tuning.hyperparameters))
    console.print(f"learn    {command_line}")
    if tuning.recall is not None:
        console.print(
            f"\nsynthetic anomalies found at {budget:g} alerts per day, by size "
            f"({tuning.recall.n_tracks} tracks to make them from; a typical one has "
            f"{tuning.recall.typical:.0f} words per document)\n"
        )
        console.print(_recall_table(tuning.recall, budget))
        console.print(recall_in_words(tuning.recall, budget))


def command(tuning: "Tuning", sources: Sequence[str], further: Sequence[str] = ()) -> str:
    """Return the command that learns the recommended model; `further` options follow."""
    found = tuning.recommended
    size = f"--behaviours {found.n_behaviours} --topics {found.n_topics}"
    parts = ["habitus", "learn", *map(shlex.quote, sources), size]
    if (found.learning, found.prior) != ("em", "H+1"):
        parts += ["--learning", found.learning, "--prior", shlex.quote(str(found.prior))]
    return " ".join([*parts, *map(shlex.quote, further), "-o scene.model"])


def _prior_told(found: "Hyperparameters") -> str:
    bound = found.fit.objective
    verdict = (
        "better by more than one standard error: use it"
        if found.worth_it
        else "not better than em by more than one standard error: keep em"
    )
    return (
        f"prior    {found.fit.prior} for vb, where its ELBO is highest ({bound[-1, -1]:,.0f} nats, "
        f"{bound[-1, -1] - bound[0, 0]:,.0f} above the start)\n"
        f"         held-out gain over em {found.gain:+.3f} nats per word, error {found.error:.3f}: "
        f"{verdict}"
    )


def _sizes_table(choice: "Choice") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    topics = sorted({candidate.n_topics for candidate in choice.candidates})
    table = Table(box=SIMPLE_HEAD)
    table.add_column("behaviours", justify="right")
    for n in topics:
        table.add_column(f"{n} topics", justify="right")
    for z in sorted({candidate.n_behaviours for candidate in choice.candidates}):
        cells = [_cell(choice, k) for k, c in enumerate(choice.candidates) if c.n_behaviours == z]
        table.add_row(str(z), *cells)
    return table


def _cell(choice: "Choice", k: int) -> str:
    marks = ("*" if k == choice.best else "") + ("<" if k == choice.chosen else "")
    return f"{choice.predictions[k].mean:.3f}{marks:2}"


def _recall_table(recall: "RecallEstimate", budget: float) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shares = [share for share in recall.shares if share.alerts_per_day == budget]
    strengths = sorted({share.strength for share in shares if share.strength is not None})
    table = Table(box=SIMPLE_HEAD)
    table.add_column("kind")
    for strength in strengths:
        table.add_column(f"x {strength:g}", justify="right")
    for kind in dict.fromkeys(share.kind for share in shares):
        cells = [_found(s) for s in shares if s.kind == kind]
        # A kind without a size stands under 1.
        table.add_row(kind, *(["", cells[0], ""] if len(cells) == 1 else cells))
    return table


def _found(share: "FoundShare") -> str:
    if not share.n_trials:
        return "no occasion"
    low, high = share.interval
    return f"{share.share:.0%} ({low:.0%} to {high:.0%})"
