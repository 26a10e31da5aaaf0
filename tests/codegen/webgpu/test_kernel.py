"""Schedules with thread bindings become WGSL source."""

from __future__ import annotations

from typing import Any

import pytest
from tests.codegen.row_sums import row_sums

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import CodegenError


def source_of(schedule: Any, args: list[Any]) -> str:
    return (
        tvm.build(schedule, args, "webgpu", target_host="llvm", name="main")
        .imported_modules[0]
        .get_source("wgsl")
    )


def on_threads(make: Any, kind: str = "float32", size: int = 64) -> str:
    a = te.placeholder((size,), kind, name="A")
    b = te.compute((size,), lambda i: make(a, i), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    return source_of(s, [a, b])


def test_words_of_the_language() -> None:
    """Bindings, uniforms, workgroup memory and built-in indices have WGSL's form."""
    source = source_of(*row_sums())
    for line in (
        "@group(0) @binding(0) var<storage, read> A : array<f32>;",
        "@group(0) @binding(1) var<storage, read_write> B : array<f32>;",
        "@group(0) @binding(2) var<uniform> values : Values;",
        "@compute @workgroup_size(16, 1, 1)",
        "workgroupBarrier();",
    ):
        assert line in source
    assert "var<workgroup> " in source and "i32(threadIdx.x)" in source
    assert " ? " not in source and "int " not in source


def test_choices_and_constants() -> None:
    """A choice is a call of select with the other value first; constants carry their type."""
    source = on_threads(lambda a, i: tir.Select(i < 3, a[i], tir.const(-0.5, "float32")))
    assert "= select(-0.5f, A[i32(threadIdx.x)], i32(threadIdx.x) < 3i);" in source
    assert "2i" in on_threads(lambda a, i: a[i] * 2 + i, "int32")
    assert "7u" in on_threads(lambda a, i: a[i] + tir.const(7, "uint32"), "uint32")


def test_math() -> None:
    """Functions have WGSL's names, and what it lacks is computed."""
    source = on_threads(lambda a, i: te.rsqrt(a[i]) + te.sigmoid(a[i]) + tir.max(a[i], 0.0))
    assert "inverseSqrt(" in source and "exp(" in source and "select(" in source and "sigmoid" not in source


def test_half_precision_is_enabled() -> None:
    """The extension stands first where it is needed."""
    source = on_threads(lambda a, i: a[i] + tir.const(1.5, "float16"), "float16")
    assert source.splitlines()[1] == "enable f16;" and "1.5h" in source and "array<f16>" in source


def test_bools() -> None:
    """Values may be bool; arrays of bytes, as the host has them, cannot be bound."""
    source = on_threads(lambda a, i: tir.Cast("int32", tir.all(a[i] > 0, a[i] != 3)), "int32")
    assert "&&" in source and "i32(" in source
    with pytest.raises(CodegenError, match="WGSL has no type for int8"):
        on_threads(lambda a, i: tir.Not(a[i]), "bool")


def test_infinities() -> None:
    """A constant expression must be finite in WGSL: the bits come from a variable."""
    source = on_threads(lambda a, i: tir.min(a[i], tir.const(float("inf"), "float32")))
    assert ": u32 = 0x7f800000u;" in source and "bitcast<f32>(bits)" in source


@pytest.mark.parametrize("kind", ["float64", "int8", "int64"])
def test_types_that_wgsl_lacks(kind: str) -> None:
    """Types that have no WGSL form are errors that name them."""
    with pytest.raises(CodegenError, match=f"WGSL has no type for {kind}"):
        on_threads(lambda a, i: a[i] + a[i], kind)
