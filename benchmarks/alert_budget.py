"""Alarms that a budget promises, and alarms that come: a table for tails of many kinds.

    python benchmarks/alert_budget.py [--budget 5] [--correlation 0.8] [--trainings 400]

A training is the scores of normal documents, one each second. The threshold for the budget is set
from them, and the 90 % interval of the alarms in a day and in ten days is stated. Then a fresh day
and ten fresh days are simulated. Scores are independent, or those of neighbouring documents are
correlated: increasing functions of a Gaussian autoregressive process.
"""

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import expon, genpareto, lognorm, norm

from habitus.scene.thresholds import Tail, runs
from report import save, table

DAY = 86_400
SIZES = (300, 3_600, 86_400)
TAILS = {
    "Gaussian": norm(),
    "exponential": expon(),
    "log-normal, sigma 1": lognorm(1.0),
    **{f"Pareto, shape {shape:g}": genpareto(shape) for shape in (0.1, 0.2, 0.3, 0.4)},
}
SETTLING = 200
"""Values after which the process has forgotten its start."""


class Cell(NamedTuple):
    """Result of many trainings of one size from one distribution."""

    alarms: float
    """Mean alarms that came in a day."""
    held: list[float]
    """Percent of the trainings whose interval held the alarms of a day, and of ten days."""


def process(n: int, correlation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return standard Gaussian values, neighbours correlated."""
    steps = np.sqrt(1 - correlation**2) * rng.normal(size=n + SETTLING)
    return np.asarray(lfilter([1.0], [1.0, -correlation], steps)[SETTLING:])


def simulate(name: str, size: int, given: argparse.Namespace) -> Cell:
    """Set a threshold from each training, and count the alarms that come."""
    rng, tail = np.random.default_rng(size), TAILS[name]
    came, held = np.zeros((2, given.trainings)), np.zeros((2, given.trainings))
    for k in range(given.trainings):
        known = -tail.isf(norm.sf(process(size, given.correlation, rng)))
        estimate = Tail.of(known, np.ones(size, dtype=bool))
        threshold = estimate.threshold(given.budget, DAY)
        limit = norm.isf(tail.sf(-threshold))
        for i, n in enumerate((DAY, 10 * DAY)):
            came[i, k] = len(runs(process(n, given.correlation, rng) > limit))
            low, _, high = estimate.expected_alarms(threshold, n)
            held[i, k] = low <= came[i, k] <= high
    return Cell(float(came[1].mean()) / 10, (100 * held.mean(axis=1)).tolist())


def main() -> None:
    """Print the table, as Markdown."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--budget", type=float, default=5.0, help="alerts per day")
    options.add_argument("--correlation", type=float, default=0.0, help="of neighbours")
    options.add_argument("--trainings", type=int, default=400, help="of each size and tail")
    options.add_argument("--save", action="store_true", help="keep the rows for the documents")
    given = options.parse_args()
    print("mean alarms per day (percent of intervals that held: of one day, of ten days)\n")
    rows = []
    for name in TAILS:
        row: dict[str, str | float | None] = {"true tail": name}
        for size in SIZES:
            alarms, (one, ten) = simulate(name, size, given)
            row[f"{size:,} documents"] = f"{alarms:.1f} ({one:.0f}, {ten:.0f})"
        rows.append(row)
    print(table(rows))
    if given.save:
        save("alert_budget-correlated" if given.correlation else "alert_budget", rows)


if __name__ == "__main__":
    main()
