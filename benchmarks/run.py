"""All benchmarks, one process each, and their table.

    python benchmarks/run.py [--quick] [--only NAME ...] [--save]

One row a claim: our figure, the peer's, their ratio as measured side by side, the target, and
whether it is met. With `--save` the tables of the documents are made anew: `results/NAME.json` for
each benchmark as it is done, then `scripts/figures.py`. Progress goes to stderr. Nothing here
imports NumPy, so that the processes it starts can be told to use one thread before they do.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from report import Cells, Row, from_json, machine, save, table
from timing import ONE_THREAD

NAMES = (
    "em_iteration",
    "vb_iteration",
    "collapsed_sweep",
    "mixing",
    "restarts",
    "growth",
    "memory",
    "startup",
    "parts",
    "decision",
    "detection",
    "scene",
    "motion_quality",
    "extraction",
    "storage",
    "install",
    "streams",
    "console_memory",
)
FIGURES = Path(__file__).parents[1] / "scripts" / "figures.py"


def main() -> None:
    """Run what was asked for, keep it if told so, and print the table."""
    options = _options()
    for name in options.only:
        found = run(name, quick=options.quick)
        if options.save:
            save(name, found, f"benchmarks/run.py --only {name}{' --quick' * options.quick}")
        print(f"{table(found)}\n", flush=True)
    print(json.dumps(machine()))
    if options.save:
        subprocess.run([sys.executable, FIGURES], check=True)


def run(name: str, *, quick: bool) -> list[Row | Cells]:
    """Rows of one benchmark, from a process of its own."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    start = time.perf_counter()
    script = Path(__file__).with_name(f"{name}.py")
    command = [sys.executable, str(script), *(["--quick"] if quick else [])]
    environment = {**os.environ, **ONE_THREAD}
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return [from_json(row) for row in json.loads(answer.stdout)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the benchmarks and print their table.")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NAMES,
        default=NAMES,
        metavar="NAME",
        help=f"some of: {', '.join(NAMES)}",
    )
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter chains")
    return parser.parse_args()


if __name__ == "__main__":
    main()
