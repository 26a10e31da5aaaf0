"""Kernels with tensor cores: right by the interpreter's threads, taken by ptxas, without spills."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.codegen.nvptx import kernels

from tilewright.tir.interpreter import interpret


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
