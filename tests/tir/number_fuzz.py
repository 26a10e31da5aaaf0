"""Random loop-level expressions over special numbers: folding, the interpreter and compiled code give the same bits.

    python tests/tir/number_fuzz.py --minutes 10 --seed 0

Every expression is computed with its leaves as constants (what ``tir``'s operators and the simplifier fold, the rest by
the interpreter), with its leaves read from memory by the interpreter, and by machine code, in a vectorised loop and in
a scalar one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TILEWRIGHT_CHECK", "1")
for _folder in (ROOT, ROOT / "src"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

import numpy as np  # noqa: E402
from tests.relay.number_fuzz import (  # noqa: E402
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    TYPES,
    difference,
    run_as_program,
    special_numbers,
    until_the_end,
)

import tilewright as tvm  # noqa: E402
from tilewright import tir  # noqa: E402
from tilewright.arith.analyzer import Analyzer  # noqa: E402
from tilewright.ir import operators  # noqa: E402
from tilewright.ir.buffer import decl_buffer  # noqa: E402
from tilewright.ir.expr import BufferLoad, FloatImm, IntImm, PrimExpr, Select, Var  # noqa: E402
from tilewright.tir.function import PrimFunc  # noqa: E402
from tilewright.tir.interpreter import interpret  # noqa: E402
from tilewright.tir.stmt import BufferStore, For, ForKind, stmt_seq  # noqa: E402

TARGET = "llvm -fast-math-contract=0"
LANES, VECTORS, REST = 8, 2, 3
SIZE = LANES * VECTORS + REST
DEPTH = 3
TOGETHER = 16
INDEX = ("int32", "int64")
"""Types whose sums the simplifier takes not to overflow: they are computed, not computed with."""


@dataclass
class Tree:
    """An operator on subtrees, or a leaf: the number of an argument."""

    dtype: str
    make: Callable[..., PrimExpr] | None = None
    parts: tuple[Tree, ...] = ()
    leaf: int = -1

    def build(self, leaves: Sequence[PrimExpr]) -> PrimExpr:
        if self.make is None:
            return leaves[self.leaf]
        return self.make(*[part.build(leaves) for part in self.parts])


@dataclass
class Operator:
    """What is called, the types of the results, and those of the operands (empty: the result's)."""

    name: str
    make: Callable[..., PrimExpr]
    count: int
    results: tuple[str, ...]
    operands: tuple[str, ...] = ()
    wraps: bool = False


def _divided(function: Callable[..., PrimExpr]) -> Callable[..., PrimExpr]:
    """A division; one whose divisor is the constant zero is an error, and its operand is taken instead."""

    def make(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        zero = isinstance(b, IntImm) and b.value == 0
        return function(a, operators.const(1, b.dtype) if zero else b)

    return make


OPERATORS = [
    Operator("add", operators.add, 2, NUMBERS, wraps=True),
    Operator("subtract", operators.subtract, 2, NUMBERS, wraps=True),
    Operator("multiply", operators.multiply, 2, NUMBERS, wraps=True),
    Operator("div", operators.div, 2, FLOATS),
    Operator("floormod", operators.floormod, 2, FLOATS),
    Operator("floordiv", operators.floordiv, 2, FLOATS),
    *(
        Operator(name, _divided(getattr(operators, name)), 2, INTEGERS, wraps=True)
        for name in ("truncdiv", "truncmod", "floordiv", "floormod")
    ),
    Operator("minimum", operators.minimum, 2, NUMBERS),
    Operator("maximum", operators.maximum, 2, NUMBERS),
    Operator("negative", operators.negative, 1, (*FLOATS, *SIGNED), wraps=True),
    Operator("abs", tir.abs, 1, (*FLOATS, *SIGNED), wraps=True),
    *(
        Operator(name, getattr(tir, name), 1, FLOATS)
        for name in ("floor", "ceil", "trunc", "round", "nearbyint", "sqrt")
    ),
    *(
        Operator(name, getattr(operators, name), 2, ("bool",), NUMBERS)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    *(Operator(name, getattr(tir, name), 1, ("bool",), FLOATS) for name in ("isnan", "isinf", "isfinite")),
    *(
        Operator(name, getattr(operators, name), 2, INTEGERS)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    ),
    Operator("bitwise_not", operators.bitwise_not, 1, INTEGERS),
    Operator("logical_and", operators.logical_and, 2, ("bool",)),
    Operator("logical_or", operators.logical_or, 2, ("bool",)),
    Operator("logical_not", operators.logical_not, 1, ("bool",)),
]


class Trees:
    """Makes random trees over arguments of their own."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.types: list[str] = []

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(0, len(options)))]

    def tree(self, dtype: str, depth: int) -> Tree:
        if depth == 0 or self.random.random() < 0.2:
            self.types.append(dtype)
            return Tree(dtype, leaf=len(self.types) - 1)
        chance = self.random.random()
        if chance < 0.2:
            source = self.tree(self.pick(TYPES), depth - 1)
            return Tree(dtype, lambda value: operators.cast(dtype, value), (source,))
        if chance < 0.3:
            parts = (self.tree("bool", depth - 1), self.tree(dtype, depth - 1), self.tree(dtype, depth - 1))
            return Tree(dtype, Select, parts)
        fitting = [
            one
            for one in OPERATORS
            if dtype in one.results and not (one.wraps and dtype in INDEX and depth < DEPTH)
        ]
        chosen = self.pick(fitting)
        operand = self.pick(chosen.operands) if chosen.operands else dtype
        return Tree(dtype, chosen.make, tuple(self.tree(operand, depth - 1) for _ in range(chosen.count)))


def folded(tree: Tree, rows: Sequence[Any]) -> Any:
    """The values with constants as leaves, and which of them were folded to a constant."""
    analyzer, made = Analyzer(), np.zeros(SIZE, tree.dtype)
    for at in range(SIZE):
        leaves = [operators.const(row[at].item(), str(row.dtype)) for row in rows]
        expr = analyzer.simplify(tree.build(leaves))
        if isinstance(expr, (IntImm, FloatImm)):
            made[at] = expr.value
        else:
            out = decl_buffer((1,), tree.dtype, "out")
            interpret(PrimFunc([out], BufferStore(out, expr, [0])), made[at : at + 1])
    return made


def program(trees: Sequence[Tree], types: Sequence[str]) -> PrimFunc:
    """A function of arrays, elementwise: a vectorised loop for most of them and a scalar one for the rest."""
    sources = [decl_buffer((SIZE,), kind, f"x{number}") for number, kind in enumerate(types)]
    results = [decl_buffer((SIZE,), tree.dtype, f"y{number}") for number, tree in enumerate(trees)]

    def stores(index: PrimExpr) -> Any:
        leaves = [BufferLoad(source, [index]) for source in sources]
        return stmt_seq(
            *(BufferStore(out, tree.build(leaves), [index]) for tree, out in zip(trees, results, strict=True))
        )

    outer, lane, rest = Var("outer"), Var("lane"), Var("rest")
    vectors = For(lane, 0, LANES, ForKind.VECTORIZED, stores(outer * LANES + lane))
    body = stmt_seq(
        For(outer, 0, VECTORS, ForKind.SERIAL, vectors),
        For(rest, 0, REST, ForKind.SERIAL, stores(rest + LANES * VECTORS)),
    )
    return (
        PrimFunc([*sources, *results], body).with_attr("global_symbol", "main").with_attr("tir.noalias", True)
    )


@dataclass
class Finding:
    """An expression whose values differ."""

    seed: int
    expr: str
    message: str


def _comparable(tree: Tree, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The results of an expression, without the signs of zeros where the processor's instruction decides on them: it
    does on that of the lesser or greater of two zeros."""
    if values.dtype.kind == "f" and _takes_extremum(tree):
        return values + values.dtype.type(0)
    return values


def _takes_extremum(tree: Tree) -> bool:
    return tree.make in (operators.minimum, operators.maximum) or any(map(_takes_extremum, tree.parts))


def check(seed: int) -> list[Finding]:
    """The findings of one batch."""
    made = Trees(seed)
    trees = [made.tree(made.pick(TYPES), DEPTH) for _ in range(TOGETHER)]
    rows = [special_numbers(made.random, kind, (SIZE,)) for kind in made.types]
    function = program(trees, made.types)
    interpreted = [np.zeros(SIZE, tree.dtype) for tree in trees]
    with np.errstate(all="ignore"):
        constants = [folded(tree, rows) for tree in trees]
        interpret(function, *[row.copy() for row in rows], *interpreted)
    built = tvm.build(tvm.IRModule({"main": function}), target=TARGET)
    given = [tvm.nd.array(row) for row in rows]
    outputs = [tvm.nd.array(np.zeros(SIZE, tree.dtype)) for tree in trees]
    built["main"](*given, *outputs)
    found = []
    for number, tree in enumerate(trees):
        for what, value in (("interpreted", interpreted[number]), ("compiled", outputs[number].numpy())):
            message = difference(*(_comparable(tree, one) for one in (constants[number], value)), exact=True)
            if message is not None:
                variables = [Var(f"x{place}", kind) for place, kind in enumerate(made.types)]
                found.append(Finding(seed, str(tree.build(variables)), f"folded {message} {what}"))
    return found


def fuzz(seeds: range, seconds: float) -> tuple[int, list[Finding]]:
    """How many expressions were computed until the time was over, and what differed."""
    return until_the_end(check, TOGETHER, seeds, seconds)


if __name__ == "__main__":
    sys.exit(run_as_program(__doc__, fuzz))
