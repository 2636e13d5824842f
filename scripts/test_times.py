"""Where the time of the tests goes, by folder: the table of CONTRIBUTING.md.

make unit PYTEST=--junitxml=times.xml && python scripts/test_times.py times.xml
"""

import sys
from collections import Counter
from xml.etree import ElementTree


def main(path: str) -> None:
    """Print the table of a report in JUnit's format."""
    tests: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 (our own)
        parts = case.attrib["classname"].removeprefix("tests.").split(".")
        folder = parts[0] if len(parts) > 1 else "beside them"
        tests[folder] += 1
        seconds[folder] += float(case.attrib["time"])
    print("| folder | tests | seconds of a core |\n|---|---:|---:|")
    for folder, taken in seconds.most_common():
        print(f"| {folder} | {tests[folder]:,} | {taken:.0f} |")
    print(f"| all | {tests.total():,} | {seconds.total():.0f} |")


if __name__ == "__main__":
    main(sys.argv[1])
