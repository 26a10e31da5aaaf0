"""Host code that touches device memory is found, with the tensor and the loop in the message."""

import pytest

from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.verify_memory import VerifyMemory, memory_violations


def doubled(bound, target):
    """B = 2 * A over a loop, or over threads."""
    a, b, i = tir.decl_buffer((64,), name="A"), tir.decl_buffer((64,), name="B"), tir.Var("i")
    if bound:
        axis = te.thread_axis("threadIdx.x")
        store = tir.Store(b.data, tir.Load("float32", a.data, axis.var) * 2.0, axis.var)
        body = tir.AttrStmt(axis, "thread_extent", 64, store)
    else:
        body = tir.For(i, 0, 64, 0, tir.Store(b.data, tir.Load("float32", a.data, i) * 2.0, i))
    return tir.PrimFunc([a, b], body, attrs={"global_symbol": "twice", "target": Target(target)})


@pytest.mark.parametrize("target", ["cuda", "opencl", "metal", "vulkan", "rocm"])
def test_unbound_loops_on_devices(apply, target):
    """The message names the function, the target, each tensor, the loop, and what was probably forgotten."""
    with pytest.raises(LoweringError, match="Did you forget to bind") as caught:
        apply(doubled(False, target), VerifyMemory())
    text = str(caught.value)
    assert f"Memory verification failed for twice on target {target}" in text
    assert "Variable `B` is directly written by host code in loop i" in text
    assert "Variable `A` is directly read by host code in loop i" in text


@pytest.mark.parametrize(
    ("bound", "target"), [(True, "cuda"), (False, "llvm"), (False, "c"), (True, "metal")]
)
def test_fine_programs_stay(apply, bound, target):
    """Bound loops on devices and any loops on the host pass, unchanged."""
    function = doubled(bound, target)
    assert apply(function, VerifyMemory()) is function
    assert memory_violations(function) == []


def test_allocations_between_kernels():
    """Memory that the function allocates for its device is device memory too."""
    pointer = tir.decl_buffer((4,), name="T").data
    body = tir.Allocate(pointer, "float32", [4], True, tir.Store(pointer, tir.const(0.0, "float32"), 0))
    function = tir.PrimFunc([], body, attrs={"target": Target("cuda")})
    assert [str(found.variable) for found in memory_violations(function)] == ["T"]
