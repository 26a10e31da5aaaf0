"""Programs that read outside are rejected, with an example where there is one; those that do not are left in peace."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import tir
from tilewright.ir.expr import Broadcast, Load, PrimExpr, Ramp, Select, Var
from tilewright.ir.module import IRModule
from tilewright.support.errors import VerifyError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, IfThenElse, Store
from tilewright.tir.transform import Simplify, VerifyReads
from tilewright.tir.verify import verify
from tilewright.tir.verify.reads import verify_affine_reads

A, B, I = (
    tir.decl_buffer((64,), dtype, name=name)
    for name, dtype in (("A", "float32"), ("B", "float32"), ("I", "int32"))
)
loop = Var("i", "int32")
lanes = Ramp(loop * 16, 1, 16)
index = Load("int32x16", I.data, lanes)
inside = tir.And(index >= Broadcast(tir.const(0), 16), index < Broadcast(tir.const(64), 16))
zero = Broadcast(tir.const(0, "float32"), 16)


def program(value: Any, at: Any = lanes, extent: int = 4, condition: Any = None) -> PrimFunc:
    """B[at] = value for each i."""
    body: Any = Store(B.data, value, at)
    if condition is not None:
        body = IfThenElse(condition, body)
    return PrimFunc([A, B, I], For(loop, 0, extent, ForKind.SERIAL, body))


def gathered(place: PrimExpr, predicate: PrimExpr | None = None) -> PrimFunc:
    """A program that reads A at a place that it only asks for where an index is inside."""
    return program(Select(inside, Load("float32x16", A.data, place, predicate), zero))


def test_a_speculated_read_of_any_place_is_rejected() -> None:
    """The index comes from memory, and the condition of a Select skips no lane."""
    with pytest.raises(VerifyError, match=r"every lane.*not shown to be inside of A"):
        verify(gathered(index))
    with pytest.raises(VerifyError, match="speculated reads are inside"):
        Simplify()(IRModule.from_expr(gathered(index)))


@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(gathered(index, inside), id="masked"),
        pytest.param(
            gathered(tir.min(tir.max(index, Broadcast(tir.const(0), 16)), Broadcast(tir.const(63), 16))),
            id="clamped",
        ),
        pytest.param(gathered(lanes), id="index_of_the_loop"),
        pytest.param(program(Select(inside, index.astype("float32x16"), zero)), id="read_by_the_condition"),
        pytest.param(
            program(
                tir.Call("float32x16", "tir.if_then_else", [inside, Load("float32x16", A.data, index), zero])
            ),
            id="branch",
        ),
    ],
)
def test_a_safe_read_is_accepted(allowed: PrimFunc) -> None:
    """Masked, clamped, in the loop's own range, made by the condition itself, or in a branch."""
    verify(allowed)
    verify_affine_reads(allowed)


def test_a_read_behind_the_end_of_a_buffer_is_rejected_with_an_example() -> None:
    """Also where only the last iteration is outside, and where a guard leaves it in."""
    element = Load("float32", A.data, loop * 13 + 1)
    with pytest.raises(VerifyError, match=r"element 66 of A, which has 64, i = 5"):
        verify_affine_reads(program(element, loop, extent=6))
    verify_affine_reads(program(element, loop, extent=5))
    verify_affine_reads(program(element, loop, extent=6, condition=loop < 5))
    with pytest.raises(VerifyError, match="element 66"):
        verify_affine_reads(program(element, loop, extent=6, condition=loop > 2))


def test_what_memory_decides_is_not_a_matter_of_bounds() -> None:
    """An index from memory, and a guard that memory decides, are the operator's own affair."""
    unknown = Load("int32", I.data, loop)
    verify_affine_reads(program(Load("float32", A.data, unknown), loop))
    verify_affine_reads(program(Load("float32", A.data, loop + 64), loop, condition=unknown > 0))


def test_the_pass_rejects_such_programs_at_the_end_of_lowering() -> None:
    """In tests verification is on, so lowering refuses the program."""
    module = IRModule.from_expr(program(Load("float32", A.data, loop - 1), loop))
    with pytest.raises(VerifyError, match="element -1 of A"):
        VerifyReads()(module)
