"""One VB iteration with its evidence lower bound, counted in EM iterations.

Both are the learners' own `step` at the same prior on the same corpus, well into a run; the bound
is asserted not to fall on the way there.
"""

from collections.abc import Iterator

import corpora
import fitted
from report import Row, Target, main
from timing import interleave, repeated, single_core

PRIORS = ("1", "H", "H+1")
N_BEFORE, N_TIMED = 20, 40


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a prior."""
    single_core()
    corpus = corpora.make().corpus
    for prior in PRIORS:
        rounds = interleave(
            {
                "vb": repeated(fitted.vb_step(corpus, prior, N_BEFORE), N_TIMED),
                "em": repeated(fitted.em_step(corpus, prior, N_BEFORE), N_TIMED),
            },
            3 if quick else 21,
        )
        yield Row(
            what=f"VB iteration with its ELBO, prior {prior}: in EM iterations",
            ours=rounds.median("vb") * 1e3,
            peer=rounds.median("em") * 1e3,
            unit="ms",
            ratio=rounds.ratio("vb", "em"),
            target=Target("at most", 3),
        )


if __name__ == "__main__":
    main(measure)
