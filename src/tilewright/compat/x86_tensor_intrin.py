"""``topi.x86.tensor_intrin``: dot products of bytes in the lanes of AVX-512 registers, to tensorize with.

Sixteen sums are taken at once: of four uint8, the same for all, with four int8 for each (or of two, summed in int16).
Compiled models do not need these: their kernels are written for packed lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, tir
from tilewright.target import Target, describe_cpu

Lanes = Callable[[Any, Any, Any, int], Any]
"""From the lanes of a result so far, the two buffers and the number of the first lane to the lanes of the result."""


def _pairs(data: Any, kernel: Any) -> Any:
    """Products of bytes, summed by two in int16."""
    return tir.call_llvm_pure_intrin(
        "int16x32",
        "llvm.x86.avx512.pmaddubs.w.512",
        tir.const(0, "uint32"),
        tir.reinterpret("int8x64", data),
        kernel,
    )


def _madd(sums: Any, data: Any, kernel: Any) -> Any:
    """AVX-512 BW: sums of two products in int16, then of two of these in int32."""
    return sums + tir.call_llvm_pure_intrin(
        "int32x16",
        "llvm.x86.avx512.pmaddw.d.512",
        tir.const(0, "uint32"),
        _pairs(data, kernel),
        tir.const(1, "int16x32"),
    )


def _dot(sums: Any, data: Any, kernel: Any) -> Any:
    """AVX-512 VNNI: one instruction, exact."""
    return tir.call_llvm_pure_intrin(
        "int32x16",
        "llvm.x86.avx512.vpdpbusd.512",
        tir.const(0, "uint32"),
        sums,
        data,
        tir.reinterpret("int32x16", kernel),
    )


def _intrinsic(lanes: int, depth: int, dtype: str, parts: int, run: Lanes) -> te.TensorIntrin:
    """``lanes`` sums of ``depth`` products, computed in ``parts`` registers."""
    data = te.placeholder((depth,), dtype="uint8", name="data")
    kernel = te.placeholder((lanes, depth), dtype="int8", name="kernel")
    k = te.reduce_axis((0, depth), name="k")
    result = te.compute(
        (lanes,), lambda i: te.sum(data[k].astype(dtype) * kernel[i, k].astype(dtype), axis=k), name="C"
    )
    buffers = {
        data: tir.decl_buffer(data.shape, "uint8", name="a_buffer", offset_factor=1, strides=[1]),
        kernel: tir.decl_buffer(
            kernel.shape, "int8", name="b_buffer", offset_factor=1, strides=[te.var("ldw"), 1]
        ),
    }
    width = lanes // parts
    wide = f"{dtype}x{width}"

    def steps(ins: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, Any, Any]:
        zero = tir.const(0, wide)

        def stored(value: Callable[[int], Any]) -> Any:
            return tir.stmt_seq(*(outs[0].vstore([width * part], value(part)) for part in range(parts)))

        return (
            stored(lambda part: run(zero, ins[0], ins[1], width * part)),
            stored(lambda part: zero),
            stored(lambda part: run(outs[0].vload([width * part], wide), ins[0], ins[1], width * part)),
        )

    return te.decl_tensor_intrin(
        result.op, steps, binds=buffers, default_buffer_params={"offset_factor": 1, "strides": [1]}
    )


def _four_bytes(quads: Callable[[Any, Any, Any], Any]) -> te.TensorIntrin:
    def run(sums: Any, data: Any, kernel: Any, first: int) -> Any:
        four = tir.reinterpret("int32", data.vload([0], "uint8x4"))
        return quads(sums, tir.Broadcast(four, 16), kernel.vload([first, 0], "int8x64"))

    return _intrinsic(16, 4, "int32", 1, run)


def dot_16x1x16_uint8_int8_int32_skylake() -> te.TensorIntrin:
    """Sixteen sums of four products by the instructions of AVX-512 BW; two products saturate in int16."""
    return _four_bytes(_madd)


def dot_16x1x16_uint8_int8_int32_cascadelake() -> te.TensorIntrin:
    """Sixteen sums of four products by the instruction of AVX-512 VNNI."""
    return _four_bytes(_dot)


def dot_16x1x16_uint8_int8_int32() -> te.TensorIntrin:
    """Sixteen sums of four products, by the best instruction of the current target."""
    target = Target.current(allow_none=True)
    features = describe_cpu(target if target is not None else "llvm").features
    if "avx512vnni" in features:
        return dot_16x1x16_uint8_int8_int32_cascadelake()
    return dot_16x1x16_uint8_int8_int32_skylake()


def dot_16x1x16_uint8_int8_int16() -> te.TensorIntrin:
    """128 sums of two products in int16, which saturate, by the instruction of AVX-512 BW."""

    def run(sums: Any, data: Any, kernel: Any, first: int) -> Any:
        two = tir.Broadcast(tir.reinterpret("int16", data.vload([0], "uint8x2")), 32)
        return sums + _pairs(two, kernel.vload([first, 0], "int8x64"))

    return _intrinsic(128, 2, "int16", 4, run)
