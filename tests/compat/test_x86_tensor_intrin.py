"""Dot products of bytes, tensorized."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.compat import x86_tensor_intrin
from tilewright.target import describe_cpu

FEATURES = describe_cpu("llvm").features


@pytest.mark.parametrize(
    ("name", "feature", "width", "depth", "dtype"),
    [
        ("dot_16x1x16_uint8_int8_int32", "avx512bw", 16, 4, "int32"),
        ("dot_16x1x16_uint8_int8_int32_skylake", "avx512bw", 16, 4, "int32"),
        ("dot_16x1x16_uint8_int8_int32_cascadelake", "avx512vnni", 16, 4, "int32"),
        ("dot_16x1x16_uint8_int8_int16", "avx512bw", 128, 2, "int16"),
    ],
)
def test_products_of_packed_bytes(name: str, feature: str, width: int, depth: int, dtype: str) -> None:
    """A product of matrices whose innermost loops are one of the intrinsics, of numbers that do not saturate."""
    if feature not in FEATURES:
        pytest.skip(f"this processor has no {feature}")
    rows, columns, inner = 3, 2 * width, 4 * depth
    x = te.placeholder((rows, inner), dtype="uint8", name="X")
    packed = te.placeholder((columns // width, inner // depth * width, depth), dtype="int8", name="W")
    k = te.reduce_axis((0, inner), name="k")

    def element(i: Any, j: Any) -> Any:
        weight = packed[j // width, (k // depth) * width + j % width, k % depth]
        return te.sum(x[i, k].astype(dtype) * weight.astype(dtype), axis=k)

    y = te.compute((rows, columns), element, name="Y")
    schedule = te.create_schedule(y.op)
    outer, inside = schedule[y].split(y.op.axis[1], factor=width)
    steps, step = schedule[y].split(k, factor=depth)
    schedule[y].reorder(outer, y.op.axis[0], steps, inside, step)
    schedule[y].tensorize(inside, getattr(x86_tensor_intrin, name)())
    function = tvm.build(schedule, [x, packed, y], "llvm")
    generator = np.random.default_rng(0)
    left = generator.integers(0, 20, (rows, inner)).astype("uint8")
    right = generator.integers(-20, 20, (columns, inner)).astype("int8")
    tiles = right.reshape(columns // width, width, inner // depth, depth).transpose(0, 2, 1, 3)
    found = tvm.nd.array(np.zeros((rows, columns), dtype))
    function(tvm.nd.array(left), tvm.nd.array(tiles.reshape(packed_shape(packed)).copy()), found)
    np.testing.assert_array_equal(found.numpy(), left.astype(dtype) @ right.T.astype(dtype))


def packed_shape(tensor: te.Tensor) -> tuple[int, ...]:
    """The numbers of a shape."""
    return tuple(int(extent) for extent in tensor.shape)
