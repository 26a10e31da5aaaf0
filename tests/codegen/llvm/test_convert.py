"""Conversions of vectors of floats to narrow integers: rounded as asked, ending where the type does, NaN as zero."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te

ENDS = [
    np.nan,
    np.inf,
    -np.inf,
    1e10,
    -1e10,
    0.5,
    1.5,
    2.5,
    -0.5,
    255.4,
    255.6,
    127.5,
    -128.5,
    32767.5,
    -0.0,
    300,
]
NUMBERS = np.concatenate([np.array(ENDS, "float32"), np.linspace(-200, 300, 48, dtype="float32")])


@pytest.mark.parametrize("offset", [None, 0, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16"])
def test_narrow_integers(dtype: str, offset: int | None) -> None:
    """By truncation, or of what was rounded to even first, with a zero point added."""
    data = te.placeholder((64,), name="data")

    def element(place: tvm.tir.Var) -> tvm.tir.PrimExpr:
        value = data[place]
        if offset is not None:
            value = te.nearbyint(value)
        if offset:
            value = value + tvm.tir.const(float(offset), "float32")
        return value.astype(dtype)

    made = te.compute((64,), element, name="made")
    schedule = te.create_schedule(made.op)
    _, inner = schedule[made].split(made.op.axis[0], 16)
    schedule[made].vectorize(inner)
    found = tvm.nd.array(np.zeros(64, dtype))
    tvm.build(schedule, [data, made], "llvm")(tvm.nd.array(NUMBERS), found)
    wanted = np.trunc(NUMBERS) if offset is None else np.rint(NUMBERS) + offset
    ends = np.iinfo(dtype)
    expected = np.where(np.isnan(wanted), 0, np.clip(wanted, ends.min, ends.max)).astype(dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("wide", ["int32", "float32"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_narrow_integers_that_are_widened_again(dtype: str, wide: str) -> None:
    """The same numbers, without being narrow in between."""
    data = te.placeholder((64,), name="data")
    made = te.compute((64,), lambda place: te.nearbyint(data[place]).astype(dtype).astype(wide), name="made")
    schedule = te.create_schedule(made.op)
    _, inner = schedule[made].split(made.op.axis[0], 16)
    schedule[made].vectorize(inner)
    found = tvm.nd.array(np.zeros(64, wide))
    tvm.build(schedule, [data, made], "llvm")(tvm.nd.array(NUMBERS), found)
    ends = np.iinfo(dtype)
    expected = np.where(np.isnan(NUMBERS), 0, np.clip(np.rint(NUMBERS), ends.min, ends.max)).astype(wide)
    np.testing.assert_array_equal(found.numpy(), expected)
    text = tvm.build(schedule, [data, made], "llvm -mcpu=skylake-avx512").get_source("asm")
    assert "vpmov" not in text
