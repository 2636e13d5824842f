"""Sums over 8x8 windows as vector instructions, which the compiler does not find by itself.

Written in LLVM's own vector types, eight pixels at a time: any processor runs them, with the
instructions that it has. Sums are of whole numbers, so their order does not matter.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

SIDE = 8
BYTES = ir.VectorType(ir.IntType(8), SIDE)
SHORTS = ir.VectorType(ir.IntType(16), SIDE)
WORDS = ir.VectorType(ir.IntType(32), SIDE)


def _block_difference(typing: Any, one: Any, i: Any, other: Any, j: Any, line: Any) -> Any:
    """Sum of absolute differences of two 8x8 blocks of flat pictures, which start at i and j."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        images = _images(context, builder, signature, args, (0, 2))
        total = ir.Constant(SHORTS, [0] * SIDE)
        for row in range(SIDE):
            a, b = (
                _row(builder, image, _offset(builder, args[start], args[4], row))
                for image, start in zip(images, (1, 3), strict=True)
            )
            apart = builder.sub(a, b)
            negative = builder.icmp_signed("<", apart, ir.Constant(SHORTS, [0] * SIDE))
            total = builder.add(total, builder.select(negative, builder.neg(apart), apart))
        return _sum(builder, builder.zext(total, WORDS))

    return types.int32(one, types.uint64, other, types.uint64, types.uint64), codegen


block_difference: Any = intrinsic(_block_difference)


def _window_sums(typing: Any, before: Any, i: Any, after: Any, j: Any, line: Any) -> Any:
    """Sums over two 8x8 windows: of gx, gy, d, and of their products.

    gx and gy are differences over two pixels, added up over both windows; d is the change. In the
    order gx, gy, d, gx gx, gx gy, gy gy, gx d, gy d, d d.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        images = _images(context, builder, signature, args, (0, 2))
        sums = [ir.Constant(WORDS, [0] * SIDE)] * 9
        for row in range(SIDE):
            rows = [
                [
                    _row(builder, image, _offset(builder, args[start], args[4], y, x))
                    for y, x in ((row, 1), (row, -1), (row + 1, 0), (row - 1, 0), (row, 0))
                ]
                for image, start in zip(images, (1, 3), strict=True)
            ]
            right, left, below, above, here = (
                [builder.sext(pair[k], WORDS) for pair in rows] for k in range(5)
            )
            gx = builder.add(*(builder.sub(r, e) for r, e in zip(right, left, strict=True)))
            gy = builder.add(*(builder.sub(b, a) for b, a in zip(below, above, strict=True)))
            d = builder.sub(here[1], here[0])
            products = ((gx, gx), (gx, gy), (gy, gy), (gx, d), (gy, d), (d, d))
            terms = [gx, gy, d, *(builder.mul(*pair) for pair in products)]
            sums = [builder.add(total, term) for total, term in zip(sums, terms, strict=True)]
        packed: Any = cgutils.pack_array
        return packed(builder, [_sum(builder, total) for total in sums])

    several: Any = types.UniTuple
    returned = several(types.int32, 9)
    return returned(before, types.uint64, after, types.uint64, types.uint64), codegen


window_sums: Any = intrinsic(_window_sums)


def _images(context: Any, builder: Any, signature: Any, args: Any, places: tuple[int, ...]) -> Any:
    """Addresses of the flat pictures among the arguments."""
    return [context.make_array(signature.args[k])(context, builder, args[k]).data for k in places]


def _offset(builder: Any, start: Any, line: Any, y: int, x: int = 0) -> Any:
    down = builder.mul(line, ir.Constant(line.type, y % 2**64))
    return builder.add(builder.add(start, down), ir.Constant(line.type, x % 2**64))


def _row(builder: Any, image: Any, offset: Any) -> Any:
    """Eight pixels from an offset on, as short integers."""
    address = builder.bitcast(builder.gep(image, [offset]), BYTES.as_pointer())
    return builder.zext(builder.load(address, align=1), SHORTS)


def _sum(builder: Any, vector: Any) -> Any:
    """All eight elements, added."""
    for step in (4, 2, 1):
        order = ir.Constant(WORDS, [(k + step) % SIDE for k in range(SIDE)])
        vector = builder.add(vector, builder.shuffle_vector(vector, vector, order))
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))
