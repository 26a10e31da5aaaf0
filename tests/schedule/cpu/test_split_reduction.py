"""Products whose reduction is cut into pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.schedule.cpu import schedule as construction
from tilewright.schedule.cpu.split_reduction import ReductionSplit, choose_reduction_split
from tilewright.target.cpu import describe_cpu

SERVER = replace(describe_cpu("llvm -mcpu=skylake-avx512"), l1d_bytes=48 << 10, l2_bytes=2 << 20)
LAPTOP = replace(describe_cpu("llvm -mcpu=haswell"), l1d_bytes=32 << 10, l2_bytes=256 << 10)


@pytest.mark.parametrize(
    ("cpu", "rows", "columns", "depth", "expected"),
    [
        (SERVER, 128, 768, 3072, ReductionSplit(6, 64, 128)),
        (SERVER, 128, 3072, 768, None),
        (SERVER, 16, 768, 16384, None),
        (SERVER, 1024, 768, 3072, None),
        (SERVER, 128, 100, 3072, None),
        (SERVER, 128, 768, 3079, None),
        (LAPTOP, 128, 768, 3072, ReductionSplit(6, 16, 384)),
        (LAPTOP, 128, 3072, 768, None),
    ],
)
def test_what_is_cut(
    cpu: tvm.target.cpu.CPUDescription, rows: int, columns: int, depth: int, expected: ReductionSplit | None
) -> None:
    """Long rows, enough of them and not too many, whole panels, and a depth that pieces divide."""
    assert choose_reduction_split(cpu, rows, columns, depth, "float32") == expected


@pytest.mark.parametrize("rows", [48, 50])
@pytest.mark.parametrize("with_bias", [False, True])
def test_pieces_add_up(monkeypatch: pytest.MonkeyPatch, rows: int, with_bias: bool) -> None:
    """The sums of all pieces, with what follows the product, also where the last tile of rows is cut off."""
    small = replace(describe_cpu("llvm"), l1d_bytes=8 << 10, l2_bytes=32 << 10)
    monkeypatch.setattr(construction, "current_cpu", lambda: small)
    reduction_split = choose_reduction_split(small, rows, 128, 288, "float32")
    assert reduction_split is not None and reduction_split.depth < 288
    a = te.placeholder((rows, 288), name="A")
    w = te.placeholder((128 // reduction_split.columns, 288, reduction_split.columns), name="W")
    bias = te.placeholder((128,), name="bias")
    out = topi.nn.dense_pack(a, w, bias if with_bias else None)
    result = topi.nn.relu(out) if with_bias else out
    with tvm.target.Target("llvm"):
        schedule = construction.construct_schedule([result])
    assert any(stage.op.name.endswith(".rf") for stage in schedule.stages)
    arguments = [a, w, bias, result] if with_bias else [a, w, result]
    generator = np.random.default_rng(0)
    values = [generator.standard_normal([int(n) for n in one.shape]).astype("float32") for one in arguments]
    arrays = [tvm.nd.array(value) for value in values]
    tvm.build(schedule, arguments, "llvm")(*arrays)
    weight = values[1].transpose(1, 0, 2).reshape(288, 128).astype("float64")
    wanted = values[0].astype("float64") @ weight
    if with_bias:
        wanted = np.maximum(wanted + values[2], 0)
    np.testing.assert_allclose(arrays[-1].numpy(), wanted, rtol=1e-4, atol=1e-4)
