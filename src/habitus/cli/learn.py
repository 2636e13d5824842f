"""habitus learn: a model from documents."""

import json
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Learning(StrEnum):
    """The learning algorithms."""

    EM = "em"
    VB = "vb"
    GIBBS = "gibbs"
    BLOCKED_GIBBS = "blocked-gibbs"


def learn(
    corpus: Annotated[Path, typer.Argument(help="Documents: a habitus corpus file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    topics: Annotated[int, typer.Option(help="Number of topics: patterns of local motion.")] = 8,
    behaviours: Annotated[
        int, typer.Option(help="Number of behaviours: phases that the scene goes through.")
    ] = 4,
    learning: Annotated[
        Learning,
        typer.Option(
            help="em: best point estimate, fastest. vb: posterior distributions. gibbs: the "
            "paper's collapsed sampler. blocked-gibbs: the same posterior, faster on millions of "
            "words."
        ),
    ] = Learning.EM,
    prior: Annotated[str, typer.Option(help="The paper's prior: 1, H or H+1.")] = "H+1",
    restarts: Annotated[
        int, typer.Option(help="Independent runs; the one with the best objective is kept.")
    ] = 20,
    iterations: Annotated[int, typer.Option(help="Iterations of a run of em or vb.")] = 100,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Stop a run of em or vb once it gains less than this a word."),
    ] = None,
    smoothing: Annotated[
        float, typer.Option(help="em: added to estimates that the prior lets become zero.")
    ] = 5e-6,
    min_words: Annotated[
        float, typer.Option(help="Documents with fewer words carry no evidence.")
    ] = 20,
    burn_in: Annotated[int, typer.Option(help="gibbs: sweeps before the first sample.")] = 500,
    samples: Annotated[int, typer.Option(help="gibbs: samples to keep.")] = 5,
    thinning: Annotated[int, typer.Option(help="gibbs: sweeps between samples.")] = 100,
    jobs: Annotated[
        int, typer.Option(help="Runs at a time; -1 for one a core. Never changes the result.")
    ] = -1,
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Learn a scene's behaviours from its documents.

    Example: habitus learn scene.corpus -o scene.model, then: habitus show scene.model
    """
    from habitus.cli.progress import progress_bar
    from habitus.documents import Corpus
    from habitus.errors import DegenerateWarning
    from habitus.model import MarkovClusteringTopicModel
    from habitus.report.summary import summarise

    documents = Corpus.load(corpus)
    model = MarkovClusteringTopicModel(
        n_topics=topics,
        n_behaviours=behaviours,
        learning=learning.value,
        prior=prior,
        n_iterations=iterations,
        tolerance=tolerance,
        n_restarts=restarts,
        n_jobs=jobs,
        smoothing=smoothing,
        min_words=min_words,
        random_state=seed,
        burn_in=burn_in,
        n_samples=samples,
        thinning=thinning,
    )
    sampled = learning in (Learning.GIBBS, Learning.BLOCKED_GIBBS)
    steps = burn_in + (samples - 1) * thinning if sampled else iterations
    n_tokens = documents.n_tokens.sum()
    with (
        progress_bar(
            "learning",
            restarts * steps,
            show=lambda objective: f"{objective / n_tokens:.4f} a word",
        ) as callback,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(documents, callback=callback)
    model.save(output)
    summary = summarise(model)
    if as_json:
        typer.echo(json.dumps(summary.to_json()))
        return
    for note in summary.degenerate:
        typer.echo(f"note: {note}; left uniform", err=True)
    typer.echo(
        f"learnt {behaviours} behaviours and {topics} topics from {len(documents)} documents "
        f"({n_tokens:.10g} words): {model.score(documents):.4f} nats a word"
    )
    typer.echo(f"wrote {output}; look at it with: habitus show {output}")
