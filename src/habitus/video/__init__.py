"""Video: files, folders, cameras -> timed frames; two frames -> motion per cell."""

from habitus.video.mask import region_of, watched_cells
from habitus.video.motion import CellMotion, DisMotion, Motion, Moved, motion_by
from habitus.video.reader import Frame, Reader
from habitus.video.source import Source

__all__ = [
    "CellMotion",
    "DisMotion",
    "Frame",
    "Motion",
    "Moved",
    "Reader",
    "Source",
    "motion_by",
    "region_of",
    "watched_cells",
]
