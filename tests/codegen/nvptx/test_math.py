"""Every math function has PTX for every type, and uses the special-function unit where it is exact enough."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import te, tir
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY


def one_kernel(names: tuple[str, ...], dtype: str, lanes: int = 1) -> tuple[Any, list[Any]]:
    """A kernel with a result for each function."""
    n = 64 * lanes
    a, b = te.placeholder((n,), dtype, name="A"), te.placeholder((n,), dtype, name="B")
    exponent = te.placeholder((n,), "int32", name="E")
    made = []
    for name in names:

        def body(i: Any, name: str = name) -> Any:
            if name == "ldexp":
                return tir.call_intrin(dtype, "tir.ldexp", a[i], exponent[i])
            extra = [b[i]] if name in MATH_BINARY else []
            return tir.call_intrin(dtype, f"tir.{name}", a[i], *extra)

        made.append(te.compute((n,), body, name=f"r_{name}"))
    s = te.create_schedule([tensor.op for tensor in made])
    for tensor in made:
        outer, inner = s[tensor].split(tensor.op.axis[0], factor=lanes)
        s[tensor].bind(outer, te.thread_axis("threadIdx.x"))
        s[tensor].vectorize(inner)
    return s, [a, b, exponent, *made]


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 1), ("float32", 4), ("float16", 8), ("bfloat16", 8)]
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_all_functions(kit: Any, dtype: str, lanes: int, arch: str) -> None:
    ptx = kit.ptx(*one_kernel((*MATH_UNARY, *MATH_BINARY), dtype, lanes), arch=arch)
    assert "ex2.approx" in ptx and ".extern .func" not in ptx
    kit.assemble(ptx, arch)


def test_double(kit: Any) -> None:
    ptx = kit.ptx(*one_kernel((*MATH_UNARY, *MATH_BINARY), "float64"), arch="sm_80")
    assert ".extern .func" not in ptx
    kit.assemble(ptx)


def test_half_is_short(kit: Any) -> None:
    """The functions of networks take few instructions on float16."""
    for name, instruction in (
        ("tanh", "tanh.approx.f32"),
        ("exp", "ex2.approx.ftz.f32"),
        ("log", "lg2.approx.f32"),
    ):
        ptx = kit.ptx(*one_kernel((name,), "float16"))
        assert instruction in ptx and ptx.count("fma.rn.f32") == 0
