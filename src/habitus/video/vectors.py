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
PAIR = 2 * SIDE
PAIR_SHORTS = ir.VectorType(ir.IntType(16), PAIR)
PAIR_WORDS = ir.VectorType(ir.IntType(32), PAIR)


def _block_difference(typing: Any, one: Any, i: Any, other: Any, j: Any, line: Any) -> Any:
    """Sum of absolute differences of two 8x8 blocks of flat pictures, which start at i and j."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        images = _images(context, builder, signature, args, (0, 2))
        total = ir.Constant(PAIR_WORDS, [0] * PAIR)
        for row in range(0, SIDE, 2):  # two rows fill a register; x86 has one instruction for it
            a, b = (
                builder.zext(
                    _both(
                        builder,
                        *(_row(builder, image, args[start], args[4], row + k) for k in (0, 1)),
                    ),
                    PAIR_WORDS,
                )
                for image, start in zip(images, (1, 3), strict=True)
            )
            apart = builder.sub(a, b)
            negative = builder.icmp_signed("<", apart, ir.Constant(PAIR_WORDS, [0] * PAIR))
            total = builder.add(total, builder.select(negative, builder.neg(apart), apart))
        return _sum(builder, total)

    return types.int32(one, types.uint64, other, types.uint64, types.uint64), codegen


block_difference: Any = intrinsic(_block_difference)


def _window_sums(typing: Any, before: Any, i: Any, after: Any, j: Any, line: Any) -> Any:
    """Sums over two 8x8 windows: of gx, gy, d, and of their products.

    gx and gy are differences over two pixels, added up over both windows; d is the change. In the
    order gx, gy, d, gx gx, gx gy, gy gy, gx d, gy d, d d.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        images = _images(context, builder, signature, args, (0, 2))
        plain = [ir.Constant(PAIR_SHORTS, [0] * PAIR)] * 3
        squared = [ir.Constant(WORDS, [0] * SIDE)] * 6
        for row in range(0, SIDE, 2):
            upper, lower = (_gradients(builder, images, args, row + k) for k in (0, 1))
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
    return returned(before, types.uint64, after, types.uint64, types.uint64), codegen


window_sums: Any = intrinsic(_window_sums)


def _images(context: Any, builder: Any, signature: Any, args: Any, places: tuple[int, ...]) -> Any:
    """Addresses of the flat pictures among the arguments."""
    return [context.make_array(signature.args[k])(context, builder, args[k]).data for k in places]


def _offset(builder: Any, start: Any, line: Any, y: int, x: int = 0) -> Any:
    down = builder.mul(line, ir.Constant(line.type, y % 2**64))
    return builder.add(builder.add(start, down), ir.Constant(line.type, x % 2**64))


def _row(builder: Any, image: Any, start: Any, line: Any, y: int, x: int = 0) -> Any:
    """Eight pixels."""
    place = builder.gep(image, [_offset(builder, start, line, y, x)])
    return builder.load(builder.bitcast(place, BYTES.as_pointer()), align=1)


def _both(builder: Any, one: Any, other: Any) -> Any:
    """Eight elements and eight more, as sixteen."""
    return builder.shuffle_vector(one, other, ir.Constant(PAIR_WORDS, list(range(PAIR))))


def _gradients(builder: Any, images: Any, args: Any, row: int) -> tuple[Any, Any, Any]:
    """gx, gy and d of a row of two windows."""
    right, left, below, above, here = (
        [
            builder.zext(_row(builder, image, args[start], args[4], row + y, x), SHORTS)
            for image, start in zip(images, (1, 3), strict=True)
        ]
        for y, x in ((0, 1), (0, -1), (1, 0), (-1, 0), (0, 0))
    )
    gx = builder.sub(builder.add(*right), builder.add(*left))
    gy = builder.sub(builder.add(*below), builder.add(*above))
    return gx, gy, builder.sub(here[1], here[0])


def _products(context: Any, builder: Any, one: Any, other: Any) -> Any:
    """Products of sixteen elements each, of which neighbours are added: eight."""
    if "+avx2" in context.codegen().magic_tuple()[2]:  # which has one instruction for it
        kind = ir.FunctionType(WORDS, [PAIR_SHORTS, PAIR_SHORTS])
        return _call(builder, kind, "llvm.x86.avx2.pmadd.wd", [one, other])
    wide = builder.mul(builder.sext(one, PAIR_WORDS), builder.sext(other, PAIR_WORDS))
    return builder.add(*(
        builder.shuffle_vector(wide, wide, ir.Constant(WORDS, list(range(first, PAIR, 2))))
        for first in (0, 1)
    ))  # fmt: skip


def _sum(builder: Any, vector: Any) -> Any:
    """All elements, added."""
    kind = ir.FunctionType(vector.type.element, [vector.type])
    return _call(builder, kind, f"llvm.vector.reduce.add.v{vector.type.count}i32", [vector])


def _call(builder: Any, kind: Any, name: str, args: list[Any]) -> Any:
    known: Any = cgutils.get_or_insert_function
    return builder.call(known(builder.module, kind, name), args)
