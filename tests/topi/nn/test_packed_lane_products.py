"""int8 and bfloat16 convolutions and matrix products against NumPy: integers exact, bfloat16 within its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.topi.scheduling import Loops

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor
from tilewright.schedule.cpu.low_precision import (
    low_precision_block,
    low_precision_conv2d_layouts,
    multiplies_packed_lanes,
    wanted_data_type,
    widened_weight,
)
from tilewright.target.cpu import describe_cpu
from tilewright.topi import x86

TARGETS = ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=cascadelake"]
BFLOAT16_UNIT = 2.0**-8
"""Half of the distance of neighbouring bfloat16, relative to them, doubled for what float32 sums lose."""


def numbers(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    """Random numbers; integers over their whole range."""
    rng = np.random.default_rng(seed)
    if kind == "bfloat16":
        return rng.standard_normal(shape).astype(pytest.importorskip("ml_dtypes").bfloat16)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def compiled(made: Any, target: str, feeds: dict[str, Any], params: dict[str, Any]) -> Any:
    """What a program computes, built as a user builds it."""
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(made), made))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, target, params=params)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for name, value in feeds.items():
        executor.set_input(name, value)
    executor.run()
    return executor.get_output(0).numpy()


def compare(found: Any, left: Any, right: Any, multiply: Any) -> None:
    """Integers are equal; bfloat16 is within its rounding of the sums of the products' magnitudes."""
    if found.dtype == np.int32:
        np.testing.assert_array_equal(found, multiply(left.astype("int64"), right.astype("int64")))
        return
    wide = [each.astype("float64") for each in (left, right)]
    unit = BFLOAT16_UNIT if found.dtype.itemsize == 2 else 2.0**-14
    bound = unit * multiply(*[np.abs(each) for each in wide]) + 1e-30
    assert (np.abs(found.astype("float64") - multiply(*wide)) <= bound).all()


def convolve(strides: int, padding: int, groups: int) -> Any:
    """The convolution of NCHW with OIHW in the type of its operands."""

    def multiply(data: Any, kernel: Any) -> Any:
        data = np.pad(data, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(data, kernel.shape[2:], axis=(2, 3))
        windows = windows[:, :, ::strides, ::strides]
        parts = [
            np.einsum("nchwyx,ocyx->nohw", window, part)
            for window, part in zip(
                np.split(windows, groups, axis=1), np.split(kernel, groups, axis=0), strict=True
            )
        ]
        return np.concatenate(parts, axis=1)

    return multiply


CONVOLUTIONS = [
    # channels, size, outputs, kernel, strides, padding, groups
    (64, 7, 64, 3, 1, 1, 1),
    (3, 9, 32, 3, 2, 1, 1),
    (24, 6, 40, 1, 1, 0, 1),
    (64, 6, 64, 3, 1, 1, 4),
    (20, 5, 17, 3, 1, 2, 1),
    (16, 6, 16, 3, 1, 1, 16),
]
KINDS = [("uint8", "int32"), ("int8", "int32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "result"), KINDS)
def test_convolutions(kind: str, result: str, target: str) -> None:
    """Blocks of channels that are whole and broken vectors and words, strides, padding and groups."""
    for number, (channels, size, outputs, kernel, strides, padding, groups) in enumerate(CONVOLUTIONS):
        second = kind if kind == "bfloat16" else "int8"
        x = numbers(kind, (2, channels, size, size), number)
        w = numbers(second, (outputs, channels // groups, kernel, kernel), number + 50)
        data, weight = relay.var("x", shape=x.shape, dtype=kind), relay.var("w", shape=w.shape, dtype=second)
        made = relay.nn.conv2d(
            data, weight, strides, padding, 1, groups, outputs, (kernel, kernel), out_dtype=result
        )
        found = compiled(made, target, {"x": x}, {"w": w})
        compare(found, x, w, convolve(strides, padding, groups))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "result"), KINDS)
def test_dense_layers(kind: str, result: str, target: str) -> None:
    """One row and many, depths that do not fill whole lanes, units that do not fill whole blocks; a weight that is
    constant and one that is not."""
    second = kind if kind == "bfloat16" else "int8"
    for rows, units, depth in [(1, 40, 64), (9, 33, 30), (17, 100, 29)]:
        x, w = numbers(kind, (rows, depth), rows), numbers(second, (units, depth), units)
        data, weight = relay.var("x", shape=x.shape, dtype=kind), relay.var("w", shape=w.shape, dtype=second)
        made = relay.nn.dense(data, weight, out_dtype=result)
        for feeds, params in [({"x": x}, {"w": w}), ({"x": x, "w": w}, {})]:
            compare(compiled(made, target, feeds, params), x, w, lambda a, b: a @ b.T)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("kind", "result"), KINDS)
def test_products_of_batches(kind: str, result: str, transpose_b: bool, transpose_a: bool) -> None:
    """Either matrix transposed, whole and broken words, one matrix for a whole batch."""
    second = kind if kind == "bfloat16" else "int8"
    for batch, depth in [(3, 16), (1, 18)]:
        x = numbers(kind, (3, depth, 5) if transpose_a else (3, 5, depth), 1)
        y = numbers(second, (batch, 20, depth) if transpose_b else (batch, depth, 20), 2)
        first, other = relay.var("x", shape=x.shape, dtype=kind), relay.var("y", shape=y.shape, dtype=second)
        made = relay.nn.batch_matmul(
            first, other, out_dtype=result, transpose_a=transpose_a, transpose_b=transpose_b
        )
        found = compiled(made, "llvm", {"x": x, "y": y}, {})
        a, b = (x.swapaxes(1, 2) if transpose_a else x), (y.swapaxes(1, 2) if transpose_b else y)
        compare(found, a, b, lambda one, two: one @ two)


def test_below_the_level_of_layouts() -> None:
    """Without AlterOpLayout the words are packed on the way."""
    x, w = numbers("uint8", (9, 30), 1), numbers("int8", (20, 30), 2)
    data, weight = te.placeholder(x.shape, "uint8", "x"), te.placeholder(w.shape, "int8", "w")
    with tvm.target.Target("llvm"):
        out = x86.dense(data, weight, None, "int32")
        schedule = x86.schedule_dense_pack(out)
    found = tvm.nd.array(np.zeros((9, 20), "int32"))
    tvm.build(schedule, [data, weight, out], "llvm")(tvm.nd.array(x), tvm.nd.array(w), found)
    np.testing.assert_array_equal(found.numpy(), x.astype("int64") @ w.astype("int64").T)


def test_a_tile_of_words_stays_in_registers() -> None:
    """The tile is that of float32 with as many steps as there are words, and words are its only loads."""
    data, weight = te.placeholder((64, 256), "uint8", "x"), te.placeholder((4, 64, 32, 4), "int8", "w")
    with tvm.target.Target("llvm -mcpu=cascadelake"):
        out = x86.dense_pack(data, weight, None, "int32")
        schedule = x86.schedule_dense_pack(out)
        loops = Loops(schedule, [data, weight, out])
        text = tvm.build(schedule, [data, weight, out]).get_source("asm")
    assert "pack_word" in loops.text and loops.widest_store >= 16
    inner = text.count("vpdpbusd")
    assert inner >= 16 and text.count("vpbroadcastd") <= inner


@pytest.mark.parametrize(
    ("cpu", "kind", "words", "wanted"),
    [
        ("-mcpu=cascadelake", "uint8", True, None),
        ("-mcpu=cascadelake", "int8", False, "uint8"),
        ("-mcpu=sierraforest", "int8", True, None),
        ("-mcpu=haswell", "int8", False, "uint8"),
        ("-mcpu=x86-64", "int8", False, None),
        ("-mtriple=aarch64-linux-gnu -mattr=+dotprod", "int8", True, None),
        ("-mtriple=aarch64-linux-gnu -mattr=+dotprod", "uint8", False, "int8"),
        ("-mtriple=riscv64-linux-gnu", "int8", False, None),
    ],
)
def test_the_kind_of_integers_that_a_processor_multiplies(
    cpu: str, kind: str, words: bool, wanted: str | None
) -> None:
    """Data of the other kind are moved by 128; processors without a product keep the plain computation."""
    description = describe_cpu(f"llvm {cpu}")
    assert multiplies_packed_lanes(description, kind, "int8") is words
    assert wanted_data_type(description, kind, "int8") == wanted


@pytest.mark.parametrize(
    ("cpu", "wanted"),
    [
        ("haswell", "int16"),
        ("skylake-avx512", "int16"),
        ("cascadelake", None),
        ("alderlake", None),
        ("x86-64", None),
    ],
)
def test_weights_are_widened_where_there_is_no_dot_product(cpu: str, wanted: str | None) -> None:
    """int8 weights are packed as int16 on x86 with AVX2 and without VNNI, whatever the signedness of the data."""
    description = describe_cpu(f"llvm -mcpu={cpu}")
    assert [widened_weight(description, kind, "int8") for kind in ("uint8", "int8")] == [wanted, wanted]
    assert widened_weight(description, "bfloat16", "bfloat16") is None


def test_sums_of_widened_products_stay_in_registers() -> None:
    """With AVX2 alone, the inner loop multiplies and adds twelve vectors and stores none."""
    data, weight = te.placeholder((60, 256), "uint8", "x"), te.placeholder((4, 128, 16, 2), "int16", "w")
    with tvm.target.Target("llvm -mcpu=haswell"):
        out = x86.dense_pack(data, weight, None, "int32")
        schedule = x86.schedule_dense_pack(out)
        text = tvm.build(schedule, [data, weight, out]).get_source("asm")
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if "vpmaddwd" in line]
    inner = lines[places[0] : places[11] + 2]
    assert sum("vpmaddwd" in line for line in inner) == 12 and sum("vpaddd" in line for line in inner) >= 11
    assert not any("(%rsp)" in line for line in inner)


def test_blocks() -> None:
    """The two vectors of a register tile where channels allow it, whole vectors of packed lanes for a matrix unit; else
    whole lanes; none where vectors would be mostly empty."""
    with tvm.target.Target("llvm -mcpu=cascadelake"):
        assert [low_precision_block(count, "int8") for count in (64, 256, 48, 24, 4)] == [32, 32, 16, 24, 4]
        assert [low_precision_block(count, "bfloat16") for count in (64, 24)] == [32, 24]
        layouts = low_precision_conv2d_layouts(64, 128, 1, "uint8")
        assert layouts is not None
        assert layouts.kernel_layout == "OIHW8i32o4i" and layouts.data_layout == "NCHW32c"
        assert low_precision_conv2d_layouts(6, 64, 1, "uint8") is None
        assert low_precision_conv2d_layouts(64, 4, 1, "uint8") is None
    with tvm.target.Target("llvm -mcpu=sapphirerapids"):
        assert low_precision_block(64, "int8") == 64
