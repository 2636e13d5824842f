"""habitus learn: a model of a scene, from video or documents."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli import options
from habitus.cli.inputs import (
    check_duration,
    check_output,
    forget_parts,
    read_documents,
    sources_of,
)

if TYPE_CHECKING:
    from habitus.anomaly.scene_model import SceneModel
    from habitus.corpus.documents import Corpus
    from habitus.ingest.clips import DocumentSettings
    from habitus.video import Source


class Learning(StrEnum):
    """The learning algorithms."""

    EM = "em"
    VB = "vb"
    GIBBS = "gibbs"
    BLOCKED_GIBBS = "blocked-gibbs"


def learn(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Normal footage: videos, as for extract; or corpus files that extract made.",
            metavar="VIDEO|CORPUS...",
        ),
    ],
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
    prior: Annotated[
        str,
        typer.Option(
            help="The paper's prior: 1, H or H+1; or values of your own, as `habitus tune` finds "
            "them: alpha=8,beta=0.05,gamma=1,eta=1."
        ),
    ] = "H+1",
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
    duration: Annotated[
        float | None, typer.Option(help="Learn from the first so many seconds only.")
    ] = None,
    continued: options.Continued = False,
    clip: options.Clip = 1.0,
    cell: options.Cell = 8,
    motion: options.MotionBy = options.Motion.CELLS,
    speeds: options.Speeds = 2,
    mask: options.Mask = None,
    region: options.Region = None,
    fps: options.Fps = None,
    fast: options.Fast = False,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Learn a scene's behaviours from its normal footage, without labels.

    What little is unusual in it does no harm. A run that is cut short while it reads video goes on
    where it was. Example: habitus learn junction.mp4 -o junction.model, then:
    habitus detect later.mp4 --model junction.model
    """
    check_output(output)
    check_duration("duration", duration)
    found = sources_of(sources, fps=fps, fast=fast, timeout=timeout)
    corpus, _ = read_documents(
        found, settings_for(found, clip, cell, motion, speeds, mask, region), output,
        continued=continued, jobs=jobs, duration=duration,
    )  # fmt: skip
    learnt = learn_with_progress(
        corpus,
        n_topics=topics, n_behaviours=behaviours, learning=learning.value, prior=prior,
        n_iterations=iterations, tolerance=tolerance, n_restarts=restarts, n_jobs=jobs,
        smoothing=smoothing, min_words=min_words, random_state=seed, burn_in=burn_in,
        n_samples=samples, thinning=thinning,
    )  # fmt: skip
    learnt.save(output)
    model = learnt.model
    forget_parts(output)
    for note in learnt.notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        from habitus.report.figures.scene import summarise

        typer.echo(json.dumps(summarise(model).to_json()))
        return
    typer.echo(
        f"learnt {behaviours} behaviours and {topics} topics from {len(corpus)} documents "
        f"({corpus.n_tokens.sum():.10g} words): {model.score(corpus):.4f} nats a word"
    )
    typer.echo(f"wrote {output}; look at it with: habitus show {output}")


def settings_for(
    sources: "list[Source]",
    clip: float,
    cell: int,
    motion: options.Motion,
    speeds: int,
    mask: str | None,
    region: str | None,
) -> "DocumentSettings | None":
    """How documents are made of video; None where all sources are corpora."""
    from habitus.files import kind_of

    if all(not source.is_live and kind_of(source.address) == "corpus" for source in sources):
        return None
    from habitus.ingest.clips import DocumentSettings

    return DocumentSettings(
        clip=clip, cell=cell, motion=motion.value, speeds=speeds, mask=mask, region=region
    )


def learn_with_progress(corpus: "Corpus", **how: Any) -> "SceneModel":
    """Learn and calibrate, with a bar for each."""
    from habitus.anomaly.scene_model import learn_scene
    from habitus.cli.progress import progress_bars

    with progress_bars() as progress:
        return learn_scene(corpus, progress=progress, **how)
