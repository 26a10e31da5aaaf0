"""How many operations of each kind an expression has."""

from __future__ import annotations

from typing import Any

from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
)
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.ir.op import Op

COUNTS = (
    *(
        "float_mad",
        "float_addsub",
        "float_mul",
        "float_divmod",
        "float_cmp",
        "float_math_func",
        "float_other_func",
    ),
    *("int_mad", "int_addsub", "int_mul", "int_divmod", "int_cmp", "int_math_func", "int_other_func"),
    *("bool_op", "select_op"),
)
"""The names of the counts. A product and a sum are counted as such: TVM keeps the two names with ``mad`` for a
detection that it does not have, and their counts are zero."""

_KINDS: dict[type[Any], str] = {
    Add: "addsub",
    Sub: "addsub",
    Mul: "mul",
    **dict.fromkeys((Div, Mod, FloorDiv, FloorMod), "divmod"),
    **dict.fromkeys((Max, Min, EQ, NE, LT, LE, GT, GE), "cmp"),
}
_WHOLE: dict[type[Any], str] = {**dict.fromkeys((And, Or, Not), "bool_op"), Select: "select_op"}
_MATH = frozenset(f"tir.{name}" for name in (*MATH_UNARY, *MATH_BINARY, "fma"))
_POSITIONS = {name: position for position, name in enumerate(COUNTS)}


def count_operations(value: Any) -> list[int]:
    """The count of each name in ``COUNTS``. What is written twice is counted twice, indices included."""
    counts = [0] * len(COUNTS)
    waiting = [value]
    while waiting:
        part = waiting.pop()
        kind = _KINDS.get(type(part))
        if kind is not None:
            counts[_POSITIONS[_of_type(part.a.dtype, kind)]] += 1
        elif type(part) in _WHOLE:
            counts[_POSITIONS[_WHOLE[type(part)]]] += 1
        elif type(part) is Call and isinstance(part.op, Op):
            if part.op.name == "tir.if_then_else":
                counts[_POSITIONS["select_op"]] += 1
            elif part.op.name != "tir.likely":
                name = "math_func" if part.op.name in _MATH else "other_func"
                counts[_POSITIONS[_of_type(part.dtype, name)]] += 1
        waiting += part.children()
    return counts


def _of_type(dtype: Any, kind: str) -> str:
    return f"float_{kind}" if dtype.is_float else f"int_{kind}"
