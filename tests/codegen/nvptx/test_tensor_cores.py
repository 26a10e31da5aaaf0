"""Kernels with tensor cores: right by the interpreter's threads, taken by ptxas, without spills."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.codegen.nvptx import kernels

import tilewright as tvm
from tilewright import te, tir
from tilewright.codegen.tensor_maps import describe_tensor_maps
from tilewright.ir.expr import Call
from tilewright.support.errors import CodegenError, ExpressionError, TilewrightError
from tilewright.tir import ptx
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import Evaluate
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


def normal(seed: int, shape: tuple[int, ...], dtype: str = "float16") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("transposed_b", [True, False])
def test_warp_product(kit: Any, transposed_b: bool) -> None:
    """cp.async, ldmatrix (transposed for B by rows) and mma.sync give the product; nothing is kept in local memory."""
    function = kernels.warp_product(32, 16, 32, transposed_b=transposed_b)
    ptx = kit.ptx(function)
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in ptx and "cp.async.cg.shared.global" in ptx
    assert kit.assemble(ptx).stack == 0
    a, b = normal(1, (32, 32)), normal(2, (16, 32) if transposed_b else (32, 16))
    c = np.zeros((32, 16), "float32")
    interpret(kit.threaded(function), a, b, c)
    wanted = a.astype("float32") @ (b.T if transposed_b else b).astype("float32")
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("columns", "swizzle"), [(64, 128), (16, 64), (8, 32)])
def test_group_product(kit: Any, columns: int, swizzle: int) -> None:
    """A producer with bulk copies and barriers, a consumer with wgmma; ring of three stages used more than once."""
    depth = 5 * swizzle // 2
    function = kernels.group_product(columns, depth, stages=3, swizzle=swizzle)
    ptx = kit.ptx(function, arch="sm_90a")
    assert f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16" in ptx
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in ptx and "cvta.param" in ptx
    report = kit.assemble(ptx, "sm_90a")
    assert report.stack == 0 and not report.spills and "C75" not in report.report
    a, b = normal(1, (64, depth)), normal(2, (columns, depth))
    c = np.zeros((64, columns), "float32")
    interpret(kit.threaded(function, arch="sm_90a"), a, b, c)
    np.testing.assert_allclose(c, a.astype("float32") @ b.T.astype("float32"), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("n", "a_type", "c_type", "stored", "options"),
    [*kernels.KINDS_OF_WGMMA, (256, "float16", "float32", "float16", {"b_transposed": True})],
)
def test_kinds_of_wgmma(
    kit: Any, n: int, a_type: str, c_type: str, stored: str, options: dict[str, bool]
) -> None:
    """Every type, operands from registers and transposed ones, up to the widest."""
    function = kernels.one_wgmma(n, a_type, c_type, stored, **options)
    report = kit.assemble(kit.ptx(function, arch="sm_90a"), "sm_90a")
    assert report.stack == 0 and not report.spills
    if n > 64:
        return
    a, b = kernels.wgmma_operands(n, stored)
    c = np.zeros((64, n), c_type)
    interpret(kit.threaded(function, arch="sm_90a"), a, b, c)
    np.testing.assert_allclose(c, kernels.wgmma_result(a, b, a_type, c_type), rtol=1e-3)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_boxes(kit: Any, swizzle: int) -> None:
    """Boxes over the edge of a tensor are filled with zeros, and only what is inside is written back."""
    function = kernels.box_copy(12, 44, swizzle)
    ptx_text = kit.ptx(function, arch="sm_90a")
    for word in (
        "prefetch.tensormap",
        "cp.async.bulk.tensor.2d.global.shared::cta",
        "elect.sync",
        "mbarrier.inval",
    ):
        assert word in ptx_text
    kit.assemble(ptx_text, "sm_90a")
    a = np.random.default_rng(1).standard_normal((12, 44)).astype("float32")
    b = np.zeros_like(a)
    interpret(kit.threaded(function, arch="sm_90a"), a, b)
    np.testing.assert_array_equal(b, a)


def test_roles(kit: Any) -> None:
    """Warps that wait for each other at named barriers, in turns; stmatrix transposes."""
    function = kernels.roles()
    kit.assemble(kit.ptx(function, arch="sm_90a"), "sm_90a")
    a = normal(1, (2, 64))
    b = np.zeros_like(a)
    interpret(kit.threaded(function, arch="sm_90a"), a, b)
    np.testing.assert_array_equal(b.reshape(2, 8, 8), a.reshape(2, 8, 8).transpose(0, 2, 1))


class _Without(StmtMutator):
    """Drops the calls of one operator."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.dropped = f"tir.{name}"

    def visit_evaluate(self, node: Evaluate) -> Any:
        drop = isinstance(node.value, Call) and node.value.op.name == self.dropped
        return Evaluate(tir.const(0)) if drop else node


def without(kit: Any, name: str) -> tuple[Any, list[Any]]:
    """A program that lacks something, and its arguments."""
    function = kit.threaded(kernels.group_product(8, 5 * 32, swizzle=64), arch="sm_90a")
    arrays = [normal(1, (64, 160)), normal(2, (8, 160)), np.zeros((64, 8), "float32")]
    return function.with_body(_Without(name).visit(function.body)), arrays


def test_a_forgotten_wait_is_seen(kit: Any) -> None:
    """The registers have their old numbers until the product is waited for."""
    broken, (a, b, c) = without(kit, "ptx_wgmma_wait")
    interpret(broken, a, b, c)
    assert not np.allclose(c, a.astype("float32") @ b.T.astype("float32"), rtol=1e-2, atol=1e-1)


def test_a_forgotten_arrival_is_seen(kit: Any) -> None:
    """The threads would wait for ever."""
    broken, arrays = without(kit, "ptx_mbarrier_arrive")
    with pytest.raises(
        TilewrightError, match="of the 256 threads of a block wait for something that never happens"
    ):
        interpret(broken, *arrays)


def test_too_many_arrivals_are_seen(kit: Any) -> None:
    """Producers that do not wait announce more than a phase has room for."""
    broken, arrays = without(kit, "ptx_mbarrier_wait")
    with pytest.raises(TilewrightError, match="more than 1 threads arrive at a barrier in one phase"):
        interpret(broken, *arrays)


def test_generations(kit: Any) -> None:
    """What a target does not have is refused by name."""
    with pytest.raises(CodegenError, match=r"tir.ptx_cp_async needs sm_80 or later, the target is sm_75"):
        kit.ptx(kernels.warp_product(16, 8, 16), arch="sm_75")
    with pytest.raises(CodegenError, match=r"needs sm_90a, the target is sm_90"):
        kit.ptx(kernels.one_wgmma(8, "float16", "float32", "float16"), arch="sm_90")


def test_wrong_arguments() -> None:
    """Shapes and types that tensor cores lack."""
    with pytest.raises(ExpressionError, match="mma multiplies float16 with float16 into float32 or float16"):
        ptx.mma("m16n8k32", "float16", "float16", "float32", tir.const(0), tir.const(0), tir.const(0))
    with pytest.raises(ExpressionError, match="a warp loads 1, 2 or 4 matrices at a time, not 3"):
        ptx.ldmatrix(tir.const(0), tir.const(0), 3)
    with pytest.raises(ExpressionError, match="rows of a box are multiples of 16 bytes"):
        ptx.tensor_map("float16", (8, 8), (8, 1), (8, 4))
    with pytest.raises(ExpressionError, match="only operands of two-byte types can be transposed"):
        ptx.wgmma(8, "int8", "int8", "int32", tir.const(0), tir.const(0), tir.const(0), b_transposed=True)


def test_tensor_maps_of_a_kernel(kit: Any) -> None:
    """Maps are parameters behind the others; their extents are numbers, or products of arguments."""
    k = kernels.Kernel()
    rows = te.var("rows")
    tensor = tir.decl_buffer((rows, 64), "float16", name="A")
    other = k.buffer("B", (4,), "float32")
    source = k.ib.buffer_ptr(tensor)
    k.axis("threadIdx.x", 32)
    described = ptx.tensor_map("float16", (rows, 2, 32), (rows * 64, 32, 1), (8, 1, 32), 64)
    k.ib.scope_attr(source.asobject(), ptx.TENSOR_MAP, described)
    k(ptx.grid_wait())
    k(ptx.prefetch_tensor_map(source.asobject()))
    other[0] = source[0].astype("float32")
    k(ptx.grid_launch())
    k.buffers.append(tensor)
    function = k.function()
    (kernel,) = kit.kernels(tvm.lower(function), "sm_90a").functions.values()
    (found,) = describe_tensor_maps(kernel)
    names = [parameter.name for parameter in kernel.params]
    assert (found.position, found.base) == (len(names), names.index("A"))
    assert found.dims == (32, 2, (1, names.index("rows"))) and found.box == (32, 1, 8) and found.swizzle == 64
    assert found.strides == (64, (128, names.index("rows")))
    text = kit.ptx(function, arch="sm_90a")
    assert f".param .align 64 .b8 main_kernel0_param_{found.position}[128]" in text
    assert "griddepcontrol.wait" in text and "griddepcontrol.launch_dependents" in text
    kit.assemble(text, "sm_90a")
