"""Alarms that a budget promises, and alarms that come: a table for tails of many kinds.

    python benchmarks/alert_budget.py [--trainings 400] [--budget 5]

A training is the scores of independent normal documents. The threshold for the budget is set from
them, and the 90 % interval of the alarms in a day and in ten days is stated. Then the alarms of a
fresh day, and of ten, are drawn: one document is one second.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import expon, genpareto, lognorm, norm

from habitus.anomaly.thresholds import Tail, runs

DAY = 86_400
SIZES = (300, 3_600, 86_400)
PERIODS = (1, 10)
TAILS = {
    "Gaussian": norm(),
    "exponential": expon(),
    "log-normal, sigma 1": lognorm(1.0),
    **{f"Pareto, shape {shape:g}": genpareto(shape) for shape in (0.1, 0.2, 0.3, 0.4)},
}


class Cell(NamedTuple):
    """Result of many trainings of one size from one distribution."""

    alarms: float
    """Mean alarms that come in a day."""
    held: tuple[int, ...]
    """Percent of the trainings whose interval held the alarms, for each period."""


def simulate(name: str, size: int, budget: float, trainings: int, seed: int = 0) -> Cell:
    """Set a threshold from each training, and count the alarms that come."""
    rng, tail = np.random.default_rng([seed, size]), TAILS[name]
    alarms, held = np.zeros(trainings), np.zeros((trainings, len(PERIODS)))
    for k in range(trainings):
        known = Tail.of(-tail.rvs(size=size, random_state=rng), np.ones(size, dtype=bool))
        threshold = known.threshold(budget, DAY)
        probability = float(tail.sf(-threshold))
        alarms[k] = DAY * probability
        for i, days in enumerate(PERIODS):
            low, _, high = known.expected_alarms(threshold, days * DAY)
            held[k, i] = low <= fresh_alarms(probability, days * DAY, rng) <= high
    percent = np.round(100 * held.mean(axis=0)).astype(int)
    return Cell(float(alarms.mean()), tuple(percent.tolist()))


def fresh_alarms(probability: float, n_documents: int, rng: np.random.Generator) -> int:
    """Return the alarms of fresh documents, each abnormal with this probability."""
    abnormal = rng.binomial(n_documents, probability)
    flags: NDArray[np.bool_] = np.zeros(n_documents, dtype=bool)
    flags[rng.choice(n_documents, abnormal, replace=False, shuffle=False)] = True
    return len(runs(flags))


def table(row: Callable[[str, int], Cell]) -> str:
    """Return the table as Markdown."""
    heads = " | ".join(f"{size:,} documents" for size in SIZES)
    lines = [f"| true tail | {heads} |", "|---" * (len(SIZES) + 1) + "|"]
    for name in TAILS:
        cells = [row(name, size) for size in SIZES]
        texts = [f"{cell.alarms:.2g}; {', '.join(map(str, cell.held))}" for cell in cells]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--trainings", type=int, default=400, help="of each size and tail")
    options.add_argument("--budget", type=float, default=5.0, help="alerts per day")
    given = options.parse_args()
    print(f"budget {given.budget:g} a day, {given.trainings} trainings each")
    print("mean alarms that come in a day; percent of intervals that hold for one day, ten days")
    print(table(lambda name, size: simulate(name, size, given.budget, given.trainings)))


if __name__ == "__main__":
    main()
