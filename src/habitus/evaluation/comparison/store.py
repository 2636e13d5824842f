"""The folder of a comparison: one safe file a chain, and what they all are of."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from habitus.errors import FileError, InvalidInputError
from habitus.evaluation.comparison.chains import Finished
from habitus.evaluation.comparison.localisation import Recall
from habitus.evaluation.comparison.methods import Chain
from habitus.evaluation.comparison.scoring import Judged
from habitus.files import read_tensors, write_tensors, written_whole

VERSION = 1
MANIFEST = "comparison.json"
OTHERS = {
    "documents": "of other documents",
    "labels": "with other labels",
    "training": "with another --train",
    "settings": "with other settings (topics, behaviours, seed or an older habitus)",
}


class Run(NamedTuple):
    """One chain to be run, or that was."""

    chain: Chain
    number: int


class Store:
    """Results on disk; those of other data are refused.

    Parameters
    ----------
    folder
        Made if it is not there.
    identity
        What the comparison is of, as `identity_of` gives it.
    """

    def __init__(self, folder: Path, identity: dict[str, str]) -> None:
        self.folder, self.chains = folder, folder / "chains"
        try:
            self.chains.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror}") from error
        if (folder / MANIFEST).exists():
            self._check(identity)
        else:
            self._claim(identity)
        for left_over in self.chains.glob(".*"):  # of a run that was killed while it wrote
            left_over.unlink(missing_ok=True)

    def path(self, run: Run) -> Path:
        """Where the results of a chain are, once it is finished."""
        return self.chains / f"{run.chain.name}-{run.number + 1:03d}.safetensors"

    def has(self, run: Run) -> bool:
        """Whether a chain is finished; a damaged file is as good as none."""
        if not self.path(run).exists():
            return False
        try:
            self.get(run)
        except FileError:
            return False
        return True

    def put(self, run: Run, finished: Finished) -> None:
        """Keep the results of a chain, whole or not at all."""
        tensors, times = {}, {}
        for name, judged in finished.judged.items():
            tensors[f"{name}.normality"] = judged.normality
            times[name] = [judged.learning, judged.deciding]
            if judged.recall is not None:
                tensors[f"{name}.by_number"] = judged.recall.by_number
                tensors[f"{name}.by_share"] = judged.recall.by_share
        write_tensors(
            self.path(run), kind="chain", version=VERSION,
            header={"times": times, "notes": finished.notes}, tensors=tensors,
        )  # fmt: skip

    def get(self, run: Run) -> Finished:
        """The results of a finished chain."""
        path = self.path(run)
        header, tensors = read_tensors(path, kind="chain", version=VERSION)
        judged = {}
        try:
            for method in run.chain.methods:
                if (name := method.name) in header["times"]:
                    recall = None
                    if f"{name}.by_number" in tensors:
                        recall = Recall(tensors[f"{name}.by_number"], tensors[f"{name}.by_share"])
                    normality = tensors[f"{name}.normality"].astype(np.float64)
                    learning, deciding = header["times"][name]
                    judged[name] = Judged(normality, learning, deciding, recall)
            return Finished(judged, list(header["notes"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path}: not results this habitus understands: {error}") from error

    def _claim(self, identity: dict[str, str]) -> None:
        if any(self.chains.glob("*.safetensors")):
            raise InvalidInputError(
                f"{self.folder} holds results and does not say of what ({MANIFEST} is missing): "
                "name another --output, or delete it"
            )
        with written_whole(self.folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps({"version": VERSION, **identity}, indent=1) + "\n")

    def _check(self, identity: dict[str, str]) -> None:
        path = self.folder / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            differs = [OTHERS[name] for name in identity if found[name] != identity[name]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"{path}: not the beginning of a comparison: name another --output, or delete it"
            ) from error
        if differs:
            raise InvalidInputError(
                f"{self.folder} holds a comparison {' and '.join(differs)}: name another "
                "--output, or delete it"
            )
