"""Inner loops of products and convolutions for other processors: no spill, and arithmetic and loads for the most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from inner_loops import innermost_loops, micro_kernel
from tilewright import relay

AARCH64 = ("cortex-a53", "cortex-a72", "neoverse-v1", "apple-m1")
MORE_AARCH64 = (
    "cortex-a55",
    "cortex-a76",
    "cortex-x1",
    "neoverse-n1",
    "neoverse-n2",
    "neoverse-v2",
    "apple-m2",
)
LEAST_USEFUL = 0.85


def product() -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Rows of 256 by a square matrix."""
    shapes = {"x": (64, 256), "w": (256, 256)}
    return relay.nn.dense(*(relay.var(name, shape=shape) for name, shape in shapes.items())), shapes


def convolution() -> tuple[Any, dict[str, tuple[int, ...]]]:
    """A window of 3 x 3 with a stride, which Winograd does not serve."""
    shapes = {"x": (1, 64, 28, 28), "w": (64, 64, 3, 3)}
    made = (relay.var(name, shape=shape) for name, shape in shapes.items())
    return relay.nn.conv2d(*made, padding=(1, 1), strides=(2, 2)), shapes


def pointwise() -> tuple[Any, dict[str, tuple[int, ...]]]:
    """A window of one pixel."""
    shapes = {"x": (1, 64, 28, 28), "w": (128, 64, 1, 1)}
    return relay.nn.conv2d(*(relay.var(name, shape=shape) for name, shape in shapes.items())), shapes


def depthwise() -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Each channel with its own window."""
    shapes = {"x": (1, 64, 28, 28), "w": (64, 1, 3, 3)}
    made = (relay.var(name, shape=shape) for name, shape in shapes.items())
    return relay.nn.conv2d(*made, padding=(1, 1), groups=64), shapes


def narrow(make: Any, dtype: str) -> Any:
    """The same of narrow numbers."""

    def made() -> tuple[Any, dict[str, tuple[int, ...]]]:
        body, shapes = make()
        parameters = [relay.var(name, shape=shape, dtype=dtype) for name, shape in shapes.items()]
        out_dtype = "int32" if dtype == "int8" else ""
        if make is product:
            return relay.nn.dense(*parameters, out_dtype=out_dtype), shapes
        padding, strides = body.attrs.padding, body.attrs.strides
        return relay.nn.conv2d(*parameters, padding=padding, strides=strides, out_dtype=out_dtype), shapes

    return made


def assembly_of(make: Any, target: str) -> str:
    """The code of an operator whose weights are constants, which computes in its own type."""
    body, shapes = make()
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    weight = next(one for one in module["main"].params if one.name_hint == "w")
    values = np.ones(shapes["w"], weight.type_annotation.dtype)
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["WidenHalf"]):
        library = relay.build(module, target, params={"w": values})
    assembly: str = library.get_lib().get_source("asm")
    return assembly


def target_of(processor: str) -> str:
    """The target of an AArch64 processor."""
    system = "arm64-apple-macos" if processor.startswith("apple") else "aarch64-linux-gnu"
    return f"llvm -mtriple={system} -mcpu={processor}"


@pytest.mark.parametrize("make", [product, convolution, pointwise])
@pytest.mark.parametrize(
    "processor", [*AARCH64, *(pytest.param(one, marks=pytest.mark.slow) for one in MORE_AARCH64)]
)
def test_aarch64(processor: str, make: Any) -> None:
    """Accumulators, weights and pixels stay in the 32 vector registers."""
    loop = micro_kernel(assembly_of(make, target_of(processor)))
    assert loop.spills == 0 and loop.useful >= LEAST_USEFUL, str(loop)


@pytest.mark.parametrize("processor", ["cortex-a76", "neoverse-v1"])
@pytest.mark.parametrize("make", [product, convolution, pointwise])
def test_int8(processor: str, make: Any) -> None:
    """Dot products take a word of a vector register for all lanes."""
    loop = micro_kernel(assembly_of(narrow(make, "int8"), target_of(processor)))
    assert loop.spills == 0 and loop.useful >= LEAST_USEFUL, str(loop)


@pytest.mark.parametrize(
    ("processor", "make"), [("neoverse-v1", product), ("apple-m1", product), ("apple-m1", pointwise)]
)
def test_float16_where_it_is_multiplied_as_it_is(processor: str, make: Any) -> None:
    """Multiply-adds take float16 factors for float32 sums: nothing is widened."""
    loop = micro_kernel(assembly_of(narrow(make, "float16"), target_of(processor)))
    assert loop.spills == 0 and loop.useful >= LEAST_USEFUL, str(loop)
    assert not any(name.startswith("fcvtl") for name, _ in loop.instructions)


@pytest.mark.parametrize("processor", ["cortex-a72", "cortex-a76"])
def test_float16_where_it_is_widened(processor: str) -> None:
    """Every number is widened once, those of a row several at a time; beside that there is next to nothing. For R rows
    and C vectors of columns, four steps take 4RC multiply-adds, 2C + R loads and 4C + R conversions. With 32 registers
    for RC sums, C vectors and R factors, no tile (7 x 3 is the best) has more than 84 % multiply-adds and loads."""
    loop = micro_kernel(assembly_of(narrow(product, "float16"), target_of(processor)))
    widened = sum(name in ("fcvtl", "fcvtl2") for name, _ in loop.instructions)
    assert loop.spills == 0 and 0.75 <= loop.useful < LEAST_USEFUL, str(loop)
    assert loop.useful + widened / len(loop.instructions) >= 0.94, str(loop)


@pytest.mark.parametrize("processor", ["cortex-a72", "neoverse-v1"])
def test_depthwise_on_aarch64(processor: str) -> None:
    """The loops of the inside and of the borders keep a window in registers; that of the inside has little else."""
    loops = innermost_loops(assembly_of(depthwise, target_of(processor)))
    most = max(loop.multiply_adds for loop in loops)
    kernels = [loop for loop in loops if loop.multiply_adds == most]
    assert not any(loop.spills for loop in kernels), list(map(str, kernels))
    assert max(loop.useful for loop in kernels) >= LEAST_USEFUL, list(map(str, kernels))


ARM = "llvm -mtriple=armv7a-linux-gnueabihf -mcpu="
RISCV = "llvm -mtriple=riscv64-linux-gnu -mcpu="
OTHERS = (f"{ARM}cortex-a7", f"{RISCV}rv64gcv")
MORE_OTHERS = (
    f"{ARM}cortex-a9",
    f"{ARM}cortex-a15",
    f"{ARM}cortex-a53",
    f"{ARM}cortex-a72",
    "llvm -mtriple=armv7l-linux-gnueabihf",
    f"{RISCV}spacemit-x60",
    f"{RISCV}sifive-x280",
)


@pytest.mark.parametrize("make", [product, convolution, pointwise])
@pytest.mark.parametrize(
    "target", [*OTHERS, *(pytest.param(one, marks=pytest.mark.slow) for one in MORE_OTHERS)]
)
def test_other_machines(target: str, make: Any) -> None:
    """32-bit ARM multiplies by elements of vectors, RISC-V by scalars: the loops have little else."""
    loop = micro_kernel(assembly_of(make, target))
    assert loop.spills == 0 and loop.useful >= LEAST_USEFUL, str(loop)


def test_loops_are_found_and_counted() -> None:
    """An outer loop is not an innermost one; the stack is told from other memory; labels may come again."""
    text = """
.LBB0_1:
\tmov\tx9, x0
.LBB0_2:
\tldp\tq0, q1, [x9], #32
\tfmla\tv2.4s, v0.4s, v1.s[0]
\tstr\tq2, [sp, #16]
\tsubs\tx8, x8, #1
\tb.ne\t.LBB0_2
\tsubs\tx7, x7, #1
\tb.ne\t.LBB0_1
.LBB0_2:
\tvfma.f32\tq0, q1, q2
\tbne\t.LBB0_2
"""
    first, second = innermost_loops(text)
    assert (len(first.instructions), first.multiply_adds, first.loads, first.spills) == (5, 1, 1, 1)
    assert (len(second.instructions), second.multiply_adds) == (2, 1)
    assert first.useful == pytest.approx(2 / 5)


def test_spills_through_an_address_of_the_stack_are_counted() -> None:
    """32-bit ARM first computes where on the stack a vector is; the register is something else afterwards."""
    text = """
.LBB0_1:
\tadd\tr9, sp, #24
\tvstmia\tr9, {d4, d5}
\tvld1.32\t{d0, d1}, [r9]
\tmov\tr9, r0
\tvld1.32\t{d0, d1}, [r9]
\tbne\t.LBB0_1
"""
    (loop,) = innermost_loops(text)
    assert (loop.spills, loop.loads) == (2, 1)
