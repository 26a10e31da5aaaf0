"""What tensor cores multiply: types and shapes, which thread holds which element, and layouts in shared memory."""

from __future__ import annotations

import re
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ExpressionError

SWIZZLES: Final = {0: 0, 128: 1, 64: 2, 32: 3}
"""Bytes of a swizzle, and the number that stands for it in a descriptor of ``wgmma``."""

BITS: Final = {
    "float16": 16,
    "bfloat16": 16,
    "tf32": 32,
    "int8": 8,
    "uint8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "float32": 32,
    "int32": 32,
}
PTX_NAMES: Final = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tf32": "tf32",
    "int8": "s8",
    "uint8": "u8",
    "e4m3": "e4m3",
    "e5m2": "e5m2",
    "float32": "f32",
    "int32": "s32",
}

# The types of a, those that b may have with it, those of c, and the extents of k; the first is the newest chips'.
MMA_TYPES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]]] = {
    "float16": (("float16",), ("float32", "float16"), (16, 8)),
    "bfloat16": (("bfloat16",), ("float32",), (16, 8)),
    "tf32": (("tf32",), ("float32",), (8, 4)),
    "int8": (("int8", "uint8"), ("int32",), (32, 16)),
    "uint8": (("int8", "uint8"), ("int32",), (32, 16)),
    "e4m3": (("e4m3", "e5m2"), ("float32",), (32,)),
    "e5m2": (("e4m3", "e5m2"), ("float32",), (32,)),
}
_SHAPE: Final = re.compile(r"m16n8k(\d+)")


def mma_k(shape: str) -> int:
    """The extent of the reduction of a shape such as "m16n8k16"."""
    found = _SHAPE.fullmatch(shape)
    if found is None:
        raise ExpressionError(f"mma has the shapes m16n8k4 to m16n8k32, not {shape!r}")
    return int(found[1])


def check_mma(shape: str, a_type: str, b_type: str, c_type: str) -> None:
    """An error unless there is such a product."""
    k = mma_k(shape)
    known = MMA_TYPES.get(a_type)
    if known is None:
        raise ExpressionError(f"mma multiplies {', '.join(MMA_TYPES)}, not {a_type!r}")
    others, results, depths = known
    if b_type not in others or c_type not in results or k not in depths:
        raise ExpressionError(
            f"mma multiplies {a_type} with {' or '.join(others)} into {' or '.join(results)} with k of "
            f"{' or '.join(map(str, depths))}, not with {b_type} into {c_type} with k of {k}"
        )


def check_wgmma(
    n: int,
    a_type: str,
    b_type: str,
    c_type: str,
    a_transposed: bool,
    b_transposed: bool,
    from_registers: bool,
) -> None:
    """An error unless there is such a product."""
    known = MMA_TYPES.get(a_type)
    float8 = a_type in ("e4m3", "e5m2")
    results = (*known[1], "float16") if known and float8 else known[1] if known else ()
    if known is None or b_type not in known[0] or c_type not in results:
        raise ExpressionError(f"wgmma does not multiply {a_type} with {b_type} into {c_type}")
    if n % 8 or not 8 <= n <= 256 or (BITS[a_type] == 8 and not float8 and n > 32 and n % 16):
        raise ExpressionError(f"the columns of a wgmma are 8 to 256 by 8 (by 16 beyond 32 for int8), not {n}")
    if (a_transposed or b_transposed) and BITS[a_type] != 16:
        raise ExpressionError("only operands of two-byte types can be transposed")
    if a_transposed and from_registers:
        raise ExpressionError("an operand in registers cannot be transposed")


def wgmma_k(dtype: str) -> int:
    """The extent of the reduction of one ``wgmma``: 32 bytes."""
    return 256 // BITS[dtype]


def registers(rows: int, columns: int, dtype: str, threads: int = 32) -> int:
    """How many registers of 32 bits each thread has of a matrix."""
    return rows * columns * BITS[dtype] // 32 // threads


def mma_fragment_index(operand: str, shape: str, dtype: str, thread: Any, element: int) -> tuple[Any, Any]:
    """The row and the column of a thread's element: "b" is indexed (k, n)."""
    if operand not in ("a", "b", "c"):
        raise ExpressionError(f"the operands of mma are a, b and c, not {operand!r}")
    mma_k(shape)
    group, within = _divmod(thread, 4)
    if operand == "c":
        # Two neighbours in a row, and the same eight rows below.
        return group + 8 * (element // 2), within * 2 + element % 2
    per_register = 32 // BITS[dtype]
    register, place = divmod(element, per_register)
    if operand == "b":
        return within * per_register + place + 4 * per_register * register, group
    # Registers go down eight rows first, then to the next columns.
    return group + 8 * (register % 2), within * per_register + place + 4 * per_register * (register // 2)


def wgmma_fragment_index(dtype: str, thread: Any, element: int) -> tuple[Any, Any]:
    """The row and the column of a thread's element of the result: a warp has 16 rows, eight columns at a time."""
    warp, lane = _divmod(thread, 32)
    group, within = _divmod(lane, 4)
    block, place = divmod(element, 4)
    return warp * 16 + group + 8 * (place // 2), within * 2 + place % 2 + 8 * block


def _divmod(value: Any, divisor: int) -> tuple[Any, Any]:
    if isinstance(value, PrimExpr):
        return operators.floordiv(value, divisor), operators.floormod(value, divisor)
    return value // divisor, value % divisor


def swizzled(offset: int, swizzle: int) -> int:
    """Where a byte of shared memory is under a swizzle: units of 16 bytes are exchanged within rows of ``swizzle``
    bytes by the number of the row, which is counted from an address that is a multiple of 1024."""
    if not swizzle:
        return offset
    return offset ^ ((offset >> 7 & (swizzle // 16 - 1)) << 4)


def wgmma_offset(
    row: int, column: int, itemsize: int, leading: int, stride: int, swizzle: int, transposed: bool
) -> int:
    """The distance in bytes of an element of an operand of ``wgmma`` from the address in its descriptor, before the
    swizzle. ``row`` is along m or n, ``column`` along k.

    K-major: eight rows of ``swizzle`` bytes follow one another, and ``stride`` is from there to the next eight. Without
    a swizzle eight rows of 16 bytes do, and ``leading`` is to the next 16 bytes along k.

    Transposed (m or n is contiguous): ``swizzle`` bytes along m, then the next of eight rows along k; ``leading`` is to
    the next ``swizzle`` bytes along m, ``stride`` to the next eight rows along k. Without a swizzle the two are
    exchanged."""
    unit = 16 // itemsize
    if not transposed:
        inside = column * itemsize
        if swizzle:
            return row // 8 * stride + row % 8 * swizzle + inside
        return row // 8 * stride + row % 8 * 16 + inside // 16 * leading + inside % 16
    if swizzle:
        wide = swizzle // itemsize
        return row // wide * leading + row % wide * itemsize + column // 8 * stride + column % 8 * swizzle
    return row // unit * stride + row % unit * itemsize + column // 8 * leading + column % 8 * 16
