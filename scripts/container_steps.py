"""Do what a Containerfile says in the root folder of a Debian, where no container tool works.

    container_steps.py CONTAINERFILE ROOT

Its RUN steps are run there as its users, then its entry point is started, and its health check has
to succeed. As root. The base image is Debian's Python in an environment of its own.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

WITHIN = 300.0
"""Seconds until it is healthy."""


class Instruction(NamedTuple):
    """One of a Containerfile: a word and what follows it."""

    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """What follows, as a list of JSON, or as one command of the shell."""
        _, bracket, rest = self.text.partition("[")
        return json.loads(bracket + rest) if bracket else ["sh", "-c", self.text]


def instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Containerfile; a line that ends with a backslash goes on."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [Instruction(word.upper(), rest.strip()) for word, _, rest in found]


class Root:
    """A root folder, with what the instructions so far set."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user, self.place = folder, "root", "/"
        path = "/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.environment = {"PATH": path, "LANG": "C.UTF-8", "HOME": "/root", **kept}

    def command(self, words: list[str]) -> list[str]:
        """Return what runs a command there."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        entered = ["chroot", f"--userspec={self.user}", str(self.folder), "env", "-i", *settings]
        return [*entered, "sh", "-c", 'cd "$0" && exec "$@"', self.place, *words]

    def run(self, words: list[str]) -> None:
        """Run a command there; end if it fails."""
        _do(*self.command(words))

    def follow(self, step: Instruction) -> None:
        """Do what one instruction says."""
        match step.word:
            case "FROM":
                self.run(["python3", "-m", "venv", "/opt/python"])
            case "COPY":
                source, target = step.text.split()
                into = self.folder / target.lstrip("/")
                into.mkdir(parents=True)
                _do("sh", "-ec", 'git archive HEAD "$0" | tar -x -C "$1"', source, str(into))
            case "RUN":
                self.run(["sh", "-ec", step.text])
            case "USER":
                self.user = step.text
            case "WORKDIR":
                self.place = step.text
            case "ENV":
                name, _, value = step.text.partition("=")
                self.environment[name] = value


def _do(*command: str) -> None:
    subprocess.run(command, check=True)  # noqa: S603


def main(file: str, folder: str) -> None:
    """Build and start what a Containerfile describes."""
    root, steps = Root(Path(folder)), instructions(Path(file).read_text(encoding="utf-8"))
    for step in steps:
        print(f"{step.word} {step.text[:90]}", file=sys.stderr)
        root.follow(step)
    named = {step.word: step.words for step in steps if step.word in ("ENTRYPOINT", "HEALTHCHECK")}
    root.environment |= {"HABITUS_PASSWORD": os.urandom(16).hex(), "HOME": "/var/lib/habitus"}
    console = subprocess.Popen(root.command(named["ENTRYPOINT"]))  # noqa: S603
    try:
        until = time.monotonic() + WITHIN
        check = root.command(named["HEALTHCHECK"])
        while subprocess.call(check, stderr=subprocess.DEVNULL):  # noqa: S603
            if console.poll() is not None or time.monotonic() > until:
                sys.exit("the container is not healthy")
            time.sleep(1)
        print("the container is healthy", file=sys.stderr)
    finally:
        console.terminate()
        console.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
