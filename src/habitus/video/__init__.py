"""Video: files, folders of images and cameras -> timed frames; two frames -> motion per cell.

In the order of the data:

- `source`: the address of a video, and what kind of source it is
- `opening`: a source -> its container, and nothing that it leads to
- `timeline`: timestamps of packets -> times that only increase, whatever the recording's faults
- `decoding`: one opened stream -> decoded pictures; the survey of a recording
- `reader`: a source -> its frames in time order
- `mask`: masks and regions -> the cells to examine
- `motion`: two frames -> the motion of each cell, by one of several methods
- `cells`: the kernels of the default method
- `windows`: sums over 8 x 8 pixels, their inner loops; `vectors`: the same in LLVM vector types
"""

from habitus.video.decoding import PacketTap, Survey, count_packets, survey
from habitus.video.mask import region_of, watched_cells
from habitus.video.motion import CellMotion, CellMoves, DisMotion, MotionMethod, motion_by
from habitus.video.reader import Frame, Reader
from habitus.video.source import Source

__all__ = [
    "CellMotion",
    "CellMoves",
    "DisMotion",
    "Frame",
    "MotionMethod",
    "PacketTap",
    "Reader",
    "Source",
    "Survey",
    "count_packets",
    "motion_by",
    "region_of",
    "survey",
    "watched_cells",
]
