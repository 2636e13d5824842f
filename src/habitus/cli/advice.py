"""What `habitus tune` found, in words and tables."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from habitus.lab.tuning.advice import Hyperparameters, Tuning
    from habitus.lab.tuning.recall import Recall, Share
    from habitus.lab.tuning.selection import Choice


def tell(tuning: "Tuning", command_line: str, budget: float, n_documents: int) -> None:
    """Print sizes, hyperparameters, the command to learn with, and what would be found."""
    from rich.console import Console

    from habitus.lab.tuning.advice import in_words

    console, choice = Console(highlight=False, soft_wrap=True), tuning.choice
    best = choice.candidates[choice.best]
    error = choice.predictions[choice.best].standard_error
    console.print(f"ln p of held-out footage, nats a word ({n_documents} documents)\n")
    console.print(_sizes_table(choice))
    console.print(
        f"size     {choice.candidate.n_behaviours} behaviours, {choice.candidate.n_topics} topics "
        f"(<): the simplest within one standard error, {error:.3f}, of the best (*), "
        f"{best.n_behaviours} and {best.n_topics}"
    )
    if tuning.hyperparameters is not None:
        console.print(_prior_told(tuning.hyperparameters))
    console.print(f"learn    {command_line}")
    if tuning.recall is not None:
        console.print(
            f"\nmade anomalies that would be found at {budget:g} alerts a day, by their words "
            f"({tuning.recall.n_tracks} things to make them from; a typical one has "
            f"{tuning.recall.typical:.0f} words a document)\n"
        )
        console.print(_recall_table(tuning.recall, budget))
        console.print(in_words(tuning.recall, budget))


def _prior_told(found: "Hyperparameters") -> str:
    bound = found.fit.objective
    verdict = (
        "better: worth it"
        if found.worth_it
        else "no better than em by more than one error: leave it"
    )
    return (
        f"prior    {found.fit.prior} for vb, where its bound is highest ({bound[-1, -1]:,.0f}, "
        f"{bound[-1, -1] - bound[0, 0]:,.0f} nats up)\n"
        f"         held-out footage {found.gain:+.3f} a word against em, error {found.error:.3f}: "
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


def _recall_table(recall: "Recall", budget: float) -> "Table":
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
        # What has no strength of its own stands under 1.
        table.add_row(kind, *(["", cells[0], ""] if len(cells) == 1 else cells))
    return table


def _found(share: "Share") -> str:
    if not share.n_trials:
        return "no occasion"
    low, high = share.interval
    return f"{share.share:.0%} ({low:.0%} to {high:.0%})"
