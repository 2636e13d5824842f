"""Sums over windows of 8 x 8 pixels as LLVM vector operations, which Numba does not find by itself.

The only raw LLVM of habitus. `habitus.video.windows` defines these sums in plain Python, uses the
intrinsics below where they can be built, and falls back to its definitions where they cannot. The
vectors hold eight or sixteen pixels; LLVM maps them to the instructions of any processor.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from habitus.video.windows import SIDE

BYTES = ir.VectorType(ir.IntType(8), SIDE)
SHORTS = ir.VectorType(ir.IntType(16), SIDE)
WORDS = ir.VectorType(ir.IntType(32), SIDE)
PAIR = 2 * SIDE
PAIR_SHORTS = ir.VectorType(ir.IntType(16), PAIR)
PAIR_WORDS = ir.VectorType(ir.IntType(32), PAIR)


def _block_difference(typing: Any, one: Any, y: Any, x: Any, other: Any, v: Any, u: Any) -> Any:
    """Build `habitus.video.windows.block_difference`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        windows = _windows(context, builder, signature, args)
        total = ir.Constant(PAIR_WORDS, [0] * PAIR)
        for row in range(0, SIDE, 2):  # two rows fill a register of x86
            a, b = (
                builder.zext(
                    _both(
                        builder,
                        *(_row(builder, window, row + k) for k in (0, 1)),
                    ),
                    PAIR_WORDS,
                )
                for window in windows
            )
            apart = builder.sub(a, b)
            negative = builder.icmp_signed("<", apart, ir.Constant(PAIR_WORDS, [0] * PAIR))
            total = builder.add(total, builder.select(negative, builder.neg(apart), apart))
        return _sum(builder, total)

    index = types.int64
    return types.int32(one, index, index, other, index, index), codegen


block_difference: Any = intrinsic(_block_difference)


def _window_sums(typing: Any, before: Any, y: Any, x: Any, after: Any, v: Any, u: Any) -> Any:
    """Build `habitus.video.windows.window_sums`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        windows = _windows(context, builder, signature, args)
        plain = [ir.Constant(PAIR_SHORTS, [0] * PAIR)] * 3
        squared = [ir.Constant(WORDS, [0] * SIDE)] * 6
        for row in range(0, SIDE, 2):
            upper, lower = (_gradients(builder, windows, row + k) for k in (0, 1))
            gx, gy, d = (_both(builder, u, v) for u, v in zip(upper, lower, strict=True))
            plain = [builder.add(*pair) for pair in zip(plain, (gx, gy, d), strict=True)]
            products = ((gx, gx), (gx, gy), (gy, gy), (gx, d), (gy, d), (d, d))
            squared = [
                builder.add(total, _products(context, builder, *pair))
                for total, pair in zip(squared, products, strict=True)
            ]
        ones = ir.Constant(PAIR_SHORTS, [1] * PAIR)
        plain = [_products(context, builder, total, ones) for total in plain]
        packed: Any = cgutils.pack_array
        return packed(builder, [_sum(builder, total) for total in [*plain, *squared]])

    several: Any = types.UniTuple
    returned = several(types.int32, 9)
    index = types.int64
    return returned(before, index, index, after, index, index), codegen


window_sums: Any = intrinsic(_window_sums)


def _windows(context: Any, builder: Any, signature: Any, args: Any) -> list[tuple[Any, Any]]:
    """Return, for each of the two windows, a pointer to its first pixel, and the pixels per row."""
    found = []
    for k in (0, 3):
        array = context.make_array(signature.args[k])(context, builder, args[k])
        line = builder.extract_value(array.strides, 0)
        start = builder.add(builder.mul(args[k + 1], line), args[k + 2])
        found.append((builder.gep(array.data, [start]), line))
    return found


def _row(builder: Any, window: tuple[Any, Any], y: int, x: int = 0) -> Any:
    """Load eight neighbouring pixels, `y` rows below and `x` columns right of the first."""
    first, line = window
    offset = builder.add(builder.mul(line, line.type(y)), line.type(x))
    place = builder.gep(first, [offset])
    return builder.load(builder.bitcast(place, BYTES.as_pointer()), align=1)


def _both(builder: Any, one: Any, other: Any) -> Any:
    """Concatenate two vectors of eight elements."""
    return builder.shuffle_vector(one, other, ir.Constant(PAIR_WORDS, list(range(PAIR))))


def _gradients(builder: Any, windows: Any, row: int) -> tuple[Any, Any, Any]:
    """Return gx, gy and d of one row of the two windows."""
    right, left, below, above, here = (
        [builder.zext(_row(builder, window, row + y, x), SHORTS) for window in windows]
        for y, x in ((0, 1), (0, -1), (1, 0), (-1, 0), (0, 0))
    )
    gx = builder.sub(builder.add(*right), builder.add(*left))
    gy = builder.sub(builder.add(*below), builder.add(*above))
    return gx, gy, builder.sub(here[1], here[0])


def _products(context: Any, builder: Any, one: Any, other: Any) -> Any:
    """Multiply two vectors of sixteen elements, and add neighbouring products: eight sums."""
    if "+avx2" in context.codegen().magic_tuple()[2]:  # has one instruction for it
        kind = ir.FunctionType(WORDS, [PAIR_SHORTS, PAIR_SHORTS])
        return _call(builder, kind, "llvm.x86.avx2.pmadd.wd", [one, other])
    wide = builder.mul(builder.sext(one, PAIR_WORDS), builder.sext(other, PAIR_WORDS))
    even, odd = (
        builder.shuffle_vector(wide, wide, ir.Constant(WORDS, list(range(first, PAIR, 2))))
        for first in (0, 1)
    )
    return builder.add(even, odd)


def _sum(builder: Any, vector: Any) -> Any:
    """Add the elements of a vector."""
    kind = ir.FunctionType(vector.type.element, [vector.type])
    return _call(builder, kind, f"llvm.vector.reduce.add.v{vector.type.count}i32", [vector])


def _call(builder: Any, kind: Any, name: str, args: list[Any]) -> Any:
    """Call a function of LLVM by its name."""
    known: Any = cgutils.get_or_insert_function
    return builder.call(known(builder.module, kind, name), args)
