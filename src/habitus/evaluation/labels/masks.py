"""Labels as a folder of masks: an image a frame, not black where something is abnormal."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from habitus.errors import InvalidInputError
from habitus.evaluation.labels.footage import Footage
from habitus.evaluation.labels.frame_lists import needed
from habitus.evaluation.labels.label import Label, Sighting, around
from habitus.normality.localisation import Box


class Masks(NamedTuple):
    """Boxes of each frame, around what hangs together in its mask."""

    name: str
    boxes: list[list[Box]]
    size: tuple[int, int]
    """Width and height."""

    def on(self, footage: Footage | None) -> list[Label]:
        """A label for each stretch of frames with something in them, and where that is."""
        known = needed(footage, self.name)
        if known.size is not None and known.size != self.size:
            raise InvalidInputError(
                f"{self.name}: masks of {self.size[0]}x{self.size[1]} pixels, but {known.name} has "
                f"{known.size[0]}x{known.size[1]}: resize the masks"
            )
        flags = np.array([len(boxes) > 0 for boxes in self.boxes], dtype=np.bool_)
        found = known.labels(known.fitted(flags, self.name))
        sightings = [
            Sighting(float(start), box)
            for (start, _), boxes in zip(known.frames(), self.boxes, strict=False)
            for box in boxes
        ]
        return [_tracked(label, sightings) for label in found]


def _tracked(label: Label, sightings: list[Sighting]) -> Label:
    track = tuple(seen for seen in sightings if label.start <= seen.time < label.end)
    return label._replace(box=around([seen.box for seen in track]), track=track)


def read_masks(folder: Path) -> Masks:
    """The masks of a folder, in the order of the numbers in their names."""
    import cv2

    from habitus.video.source import image_paths

    boxes, size = [], None
    for path in image_paths(str(folder)):
        mask = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if mask is None:
            raise InvalidInputError(f"{path}: not an image")
        found = (mask.shape[1], mask.shape[0])
        if size is not None and found != size:
            raise InvalidInputError(f"{path}: {found} pixels, the masks before it {size}")
        size = found
        _, _, parts, _ = cv2.connectedComponentsWithStats((mask > 0).astype(np.uint8))
        boxes.append([Box(int(x), int(y), int(x + w), int(y + h)) for x, y, w, h, _ in parts[1:]])
    return Masks(str(folder), boxes, size or (0, 0))
