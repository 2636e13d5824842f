"""The schema of files: types, sizes and limits of what they hold, checked before it is used.

A text is JSON of a type whose fields have limits: a `TypedDict` or a dataclass. Arrays have a
`Layout`. Whatever passes is safe to work with: no nesting, number or size without a bound.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import numpy as np
from annotated_types import Interval, MaxLen
from numpy.typing import NDArray

from habitus.errors import FileError, InvalidInputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

LONGEST_CLIP = 86_400.0
"""Seconds of a document, at most."""
LATEST = 1e12
"""Seconds before and after the start of a video or of the epoch that a time may lie."""
MOST_PIXELS = 1 << 16
"""Pixels of a frame in each direction, at most."""
LEAST_AREA = 1e-6
"""Pixels of a polygon, at least: what is below is rounding."""
MOST_WORDS = (1 << 31) - 1
"""Words of a vocabulary, at most: they are numbered in 32 bits."""
MOST_FRAMES = 100_000_000
"""Frames of a document or of a video, at most: more than a month at 30 per second."""
LARGEST = 1e300
"""A number in a file lies between minus this and this: neither infinite nor NaN."""
MOST_NATS = 1e12
"""Scores, objectives and surprisals lie between minus this and this."""
MOST_SHOWN = 40
"""Characters that are shown of a value that does not fit."""

Number = Annotated[float, Interval(ge=-LARGEST, le=LARGEST)]
Nats = Annotated[float, Interval(ge=-MOST_NATS, le=MOST_NATS)]
NotNegative = Annotated[float, Interval(ge=0, le=LARGEST)]
Positive = Annotated[float, Interval(gt=0, le=LARGEST)]
Share = Annotated[float, Interval(ge=0, le=1)]
ClipSeconds = Annotated[float, Interval(gt=0, le=LONGEST_CLIP)]
Time = Annotated[float, Interval(ge=-LATEST, le=LATEST)]
Pixels = Annotated[int, Interval(ge=0, le=MOST_PIXELS)]
WordCount = Annotated[int, Interval(ge=0, le=MOST_WORDS)]
Count = Annotated[int, Interval(ge=0, le=1_000_000_000)]
AtLeastOne = Annotated[int, Interval(ge=1, le=1_000_000_000)]
Text = Annotated[str, MaxLen(1_000_000)]

# Types of arrays, as safetensors calls them.
REAL = ("F64", "F32")
WHOLE = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
INDEX = ("I64", "I32")
BYTE = ("U8",)


def check_polygon(
    corners: Sequence[Sequence[float]], width: int, height: int, name: str, what: str = ""
) -> None:
    """Raise unless corners, in pixels, are those of a polygon with an area within a frame.

    `name` is the parameter that has it, and `what` how messages call it, if not by that name.

    >>> check_polygon([(0, 0), (4, 0), (8, 0)], 360, 288, "mask")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: mask must be polygons with an area, found '0,0 4,0 8,0'
    """
    shown = shortened(repr(" ".join(f"{x:g},{y:g}" for x, y in corners)))
    what = what or f"{name} must be polygons"
    across, down = zip(*corners, strict=True)
    if max(across) < 0 or max(down) < 0 or min(across) >= width or min(down) >= height:
        raise InvalidInputError(
            f"{what} of the frame, which has {width}x{height} pixels, found {shown} outside it",
            parameter=name,
        )
    following = (*corners[1:], corners[0])
    twice = sum(x * v - u * y for (x, y), (u, v) in zip(corners, following, strict=True))
    if abs(twice) < LEAST_AREA:
        raise InvalidInputError(f"{what} with an area, found {shown}", parameter=name)


class Layout(NamedTuple):
    """What an array of a file must be."""

    dtypes: tuple[str, ...]
    """Types that it may have."""
    shape: tuple[int | str | EllipsisType, ...]
    """Its sizes; those of one name are the same in all arrays of a file, and ... are any others."""
    required: bool = True
    least: float = -LARGEST
    """Bounds of its values; there is no NaN among them."""
    most: float = LARGEST


class ArrayOutline(NamedTuple):
    """Type and shape of an array in a file, before it is read."""

    dtype: str
    shape: tuple[int, ...]


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    # Only who reads a file waits for this import.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def decoded(text: str | bytes, kind: type[T]) -> T:
    """Return the value of a type with limits that a JSON text stands for.

    Numbers are not taken for texts, nor texts for numbers. FileError names in one line the first
    part that does not fit.

    >>> decoded("[1, 2.5]", tuple[Count, Positive])
    (1, 2.5)
    >>> decoded('[1, "a"]', tuple[Count, Positive])
    Traceback (most recent call last):
    habitus.errors.FileError: 1: input should be a valid number, found 'a'
    """
    from pydantic import ValidationError

    try:
        value: T = _adapter(kind).validate_json(text, strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        raise FileError(_in_words(error)) from error
    return value


def _in_words(error: "ValidationError") -> str:
    first = error.errors(include_url=False)[0]
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return reason
    where = ".".join(map(str, first["loc"])) or "the whole"
    if first["type"] in ("value_error", "missing"):  # the reason says what was found
        return f"{shortened(where, 80)}: {reason[:1].lower()}{reason[1:]}"
    shown = shortened(repr(first["input"]))
    return f"{shortened(where, 80)}: {reason[:1].lower()}{reason[1:]}, found {shown}"


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """Return the beginning of a long text.

    >>> shortened("a" * 50, most=10)
    'aaaaaaa...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def check_layouts(
    arrays: Mapping[str, ArrayOutline],
    layouts: Mapping[str, Layout],
    sizes: Mapping[str, int | range],
) -> None:
    """Raise FileError unless the arrays of a file have the types and shapes that they must have.

    `sizes` are those that are known, or the range of them; others are those of the first array that
    has them. Arrays without a layout are not looked at.

    >>> square = {"a": Layout(REAL, ("n", "n"))}
    >>> check_layouts({"a": ArrayOutline("F64", (2, 3))}, square, {})
    Traceback (most recent call last):
    habitus.errors.FileError: the array a must have n = 2 in place of 3, found (2, 3)
    """
    lengths = dict(sizes)
    for name, layout in layouts.items():
        array = arrays.get(name)
        if array is None:
            if layout.required:
                raise FileError(f"the array {name} is missing")
            continue
        if array.dtype not in layout.dtypes:
            raise FileError(
                f"the array {name} must be of {' or '.join(layout.dtypes)}, found {array.dtype}"
            )
        sizes_wanted = [size for size in layout.shape if not isinstance(size, EllipsisType)]
        n_any = len(array.shape) - len(sizes_wanted)
        if n_any < 0 or (n_any > 0 and ... not in layout.shape):
            raise FileError(
                f"the array {name} must have {len(sizes_wanted)} dimension(s), found {array.shape}"
            )
        for wanted, n in zip(sizes_wanted, array.shape, strict=False):
            size = lengths.setdefault(wanted, n) if isinstance(wanted, str) else wanted
            if n not in (size if isinstance(size, range) else (size,)):
                shown = f"{size[0]} to {size[-1]}" if isinstance(size, range) else f"{size}"
                what = f"{wanted} = {shown}" if isinstance(wanted, str) else shown
                raise FileError(
                    f"the array {name} must have {what} in place of {n}, found {array.shape}"
                )


def check_values(name: str, array: NDArray[Any], layout: Layout) -> None:
    """Raise `FileError` unless all values of an array lie within the bounds of its layout."""
    if not array.size:
        return
    low, high = array.min(), array.max()  # NaN, if there is one
    if not (layout.least <= low and high <= layout.most) or np.isnan(low):
        raise FileError(
            f"the array {name} must have values from {layout.least:g} to {layout.most:g}, found "
            f"{low:g} to {high:g}"
        )
