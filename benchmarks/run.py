"""All benchmarks, one process each, and their table.

    python benchmarks/run.py [--quick] [--only NAME ...] [--json FILE]

One row a claim: our figure, the peer's, their ratio as measured side by side, the target, and
whether it is met. Progress goes to stderr. Nothing here imports NumPy, so that the processes it
starts can be told to use one thread before they do.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from report import Row, table
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
    "streams",
    "console_memory",
)
PACKAGES = (
    "habitus",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "hmmlearn",
    "tomotopy",
    "av",
    "opencv-python-headless",
)


def main() -> None:
    """Run what was asked for, print the table, and write the same as JSON if told where."""
    options = _options()
    rows = [row for name in options.only for row in run(name, quick=options.quick)]
    print(table(rows))
    print(f"\n{_machine_in_words(machine())}")
    if options.json:
        found = {"machine": machine(), "quick": options.quick, "rows": [r.as_json() for r in rows]}
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def run(name: str, *, quick: bool) -> list[Row]:
    """Rows of one benchmark, from a process of its own."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    start = time.perf_counter()
    script = Path(__file__).with_name(f"{name}.py")
    command = [sys.executable, str(script), *(["--quick"] if quick else [])]
    environment = {**os.environ, **ONE_THREAD}
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return [Row.from_json(row) for row in json.loads(answer.stdout)]


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
    }


def _machine_in_words(found: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items())
    return (
        f"{found['processor']}, {found['cores']} cores, load {found['load']}; "
        f"Python {found['python']}, {packages}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter chains")
    return parser.parse_args()


if __name__ == "__main__":
    main()
