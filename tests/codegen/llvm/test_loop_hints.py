"""What LLVM is told of loops, and what is left for its passes over loops to do."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm.loop_hints import metadata
from tilewright.codegen.llvm.writer import ModuleText
from tilewright.ir.expr import Load, Ramp, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.tir.stmt import For, ForKind, SeqStmt, Store

X = Var("x", PointerType(PrimType("float32")))


def loop(lanes: int, statements: int, kind: ForKind = ForKind.SERIAL) -> For:
    """A loop that copies so many times, in vectors or one by one."""
    at = Var("i")

    def place(number):
        return at * lanes + number if lanes == 1 else Ramp(at * lanes + number, 1, lanes)

    kind_of = "float32" if lanes == 1 else f"float32x{lanes}"
    copies = [Store(X, Load(kind_of, X, place(one)), place(one + 1)) for one in range(statements)]
    return For(at, 0, 100, kind, SeqStmt(copies))


@pytest.mark.parametrize(
    ("node", "scalar", "small", "unrolled_by_llvm"),
    [
        (loop(1, 2), True, False, True),
        (loop(8, 2), False, True, True),
        (loop(8, 9), False, False, False),
        (loop(8, 2, ForKind.UNROLLED), False, False, True),
        (loop(1, 2, ForKind.UNROLLED), True, False, True),
    ],
)
def test_what_is_left_to_llvm(node, scalar, small, unrolled_by_llvm):
    """Loops without vectors may be vectorized, short ones over vectors unrolled, and long ones stay as they are."""
    module = ModuleText("", "")
    metadata(module, node)
    assert (module.has_scalar_loops, module.has_small_loops) == (scalar, small)
    assert ("unroll.disable" not in module.text()) == unrolled_by_llvm


def test_a_loop_around_loops_is_left_as_it_is():
    """Only innermost loops get hints, and only they say what LLVM has to do."""
    module = ModuleText("", "")
    assert metadata(module, For(Var("o"), 0, 4, ForKind.SERIAL, loop(1, 1))) == ""
    assert not module.has_scalar_loops and not module.has_small_loops
