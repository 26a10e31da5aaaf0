"""Quantised operators: the reference, their canonical form, and compiled code give the same integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module

STORED = ("int8", "uint8")


class Random:
    """Tensors and parameters by a seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.inputs: dict[str, np.ndarray[Any, Any]] = {}

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.generator.integers(low, high + 1))

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str) -> relay.Var:
        """A variable, and its value: any integer of the type, or floats around zero."""
        if dtype.startswith("float"):
            value = self.generator.normal(0, 3, shape).astype(dtype)
        else:
            ends = np.iinfo(dtype)
            value = self.generator.integers(ends.min, ends.max + 1, shape).astype(dtype)
        self.inputs[name] = value
        return relay.var(name, shape=shape, dtype=dtype)

    def scale(self, channels: int | None = None) -> relay.Constant:
        """One scale, or one per channel."""
        shape = () if channels is None else (channels,)
        return relay.const(np.exp2(self.generator.uniform(-8, 1, shape)).astype("float32"))

    def zero(self, dtype: str, channels: int | None = None) -> relay.Constant:
        """A zero point of the type; zero as often as not."""
        ends = np.iinfo(dtype)
        low, high = (0, 0) if self.generator.random() < 0.5 else (max(ends.min, -100), min(ends.max, 200))
        shape = () if channels is None else (channels,)
        return relay.const(self.generator.integers(low, high + 1, shape).astype("int32"))

    def one_of(self, *choices: Any) -> Any:
        """A choice."""
        return choices[self.integer(0, len(choices) - 1)]

    def per_channel(self, channels: int) -> int | None:
        """Whether parameters are per channel."""
        return self.one_of(None, channels)


def quantize(random: Random) -> relay.Expr:
    """From floats, with one scale or several."""
    shape = (random.integer(1, 3), random.integer(1, 5), random.integer(1, 4))
    dtype, axis = random.one_of(*STORED, "int32"), random.integer(-3, 2)
    channels = random.per_channel(shape[axis])
    data = random.tensor("x", shape, "float32")
    return qnn.op.quantize(
        data,
        random.scale(channels),
        random.zero("int8", channels),
        axis=axis,
        out_dtype=dtype,
        rounding=random.one_of("TONEAREST", "TOEVEN"),
    )


def dequantize(random: Random) -> relay.Expr:
    """To floats."""
    shape = (random.integer(1, 4), random.integer(1, 5))
    dtype, axis = random.one_of(*STORED, "int32"), random.integer(-2, 1)
    channels = random.per_channel(shape[axis])
    data = random.tensor("x", shape, dtype)
    return qnn.op.dequantize(data, random.scale(channels), random.zero("int8", channels), axis=axis)


def requantize(random: Random) -> relay.Expr:
    """From sums to stored integers."""
    shape = (random.integer(1, 3), random.integer(1, 6), 3)
    axis = random.integer(-3, 2)
    channels = random.per_channel(shape[axis])
    data = random.tensor("x", shape, "int32")
    random.inputs["x"] //= 1 << 12
    options: dict[str, str] = random.one_of(
        {"rounding": "UPWARD", "out_dtype": random.one_of(*STORED, "int32")},
        {"rounding": "TONEAREST", "out_dtype": random.one_of(*STORED, "int32")},
        {"rounding": "UPWARD", "out_dtype": random.one_of(*STORED), "compute_dtype": "float32"},
        {"rounding": "TONEAREST", "out_dtype": random.one_of(*STORED), "compute_dtype": "float32"},
        {"rounding": "TOEVEN", "out_dtype": random.one_of(*STORED), "compute_dtype": "float32"},
    )
    return qnn.op.requantize(
        data,
        random.scale(channels),
        random.zero("int8"),
        random.scale(),
        random.zero("int8"),
        axis=axis,
        **options,
    )


def dense(random: Random) -> relay.Expr:
    """All kinds of zero points."""
    rows, depth, units = random.integer(1, 5), random.integer(1, 40), random.integer(1, 20)
    left, right = random.one_of(*STORED), random.one_of(*STORED)
    channels = random.per_channel(units)
    return qnn.op.dense(
        random.tensor("x", (rows, depth), left),
        random.tensor("w", (units, depth), right),
        random.zero(left),
        random.zero(right, channels),
        random.scale(),
        random.scale(channels),
        units,
    )


def batch_matmul(random: Random) -> relay.Expr:
    """Both factors are data."""
    batch, rows, depth, columns = (random.integer(1, 4) for _ in range(4))
    left, right = random.one_of(*STORED), random.one_of(*STORED)
    return qnn.op.batch_matmul(
        random.tensor("x", (batch, rows, depth), left),
        random.tensor("y", (batch, columns, depth), right),
        random.zero(left),
        random.zero(right),
        random.scale(),
        random.scale(),
    )


def conv2d(random: Random) -> relay.Expr:
    """Strides, borders, dilation, groups, and both layouts."""
    groups = random.one_of(1, 1, 2, 4)
    into, out, window = random.integer(1, 3), random.integer(1, 3) * groups, random.integer(1, 3)
    size = random.integer(5, 9)
    dtype, of_weight = random.one_of(*STORED), random.one_of(*STORED)
    last = random.one_of(True, False)
    shape = (1, size, size, into * groups) if last else (1, into * groups, size, size)
    weight = (window, window, into, out) if last else (out, into, window, window)
    channels = random.per_channel(out)
    return qnn.op.conv2d(
        random.tensor("x", shape, dtype),
        random.tensor("w", weight, of_weight),
        random.zero(dtype),
        random.zero(of_weight, channels),
        random.scale(),
        random.scale(channels),
        kernel_size=(window, window),
        channels=out,
        strides=(random.integer(1, 2), random.integer(1, 2)),
        padding=random.one_of((0, 0), (1, 1), (0, 1, 2, 1)),
        dilation=(1, random.integer(1, 2)),
        groups=groups,
        data_layout="NHWC" if last else "NCHW",
        kernel_layout="HWIO" if last else "OIHW",
    )


def conv2d_transpose(random: Random) -> relay.Expr:
    """Strides and borders."""
    into, out, window = random.integer(1, 3), random.integer(1, 3), random.integer(2, 3)
    dtype = random.one_of(*STORED)
    return qnn.op.conv2d_transpose(
        random.tensor("x", (1, into, 5, 4), dtype),
        random.tensor("w", (into, out, window, window), "int8"),
        random.zero(dtype),
        random.zero("int8"),
        random.scale(),
        random.scale(),
        strides=(random.integer(1, 2), 1),
        padding=random.one_of((0, 0), (1, 1)),
        channels=out,
        kernel_size=(window, window),
    )


def elementwise(function: Callable[..., relay.Expr]) -> Callable[[Random], relay.Expr]:
    """A sum, difference or product, with broadcasting."""

    def made(random: Random) -> relay.Expr:
        dtype = random.one_of(*STORED)
        shape = (random.integer(1, 4), random.integer(1, 9))
        other = random.one_of(shape, (1, shape[1]), shape[1:])
        given = [random.tensor("x", shape, dtype), random.tensor("y", other, dtype)]
        for _ in range(3):
            given += [random.scale(), random.zero(dtype)]
        if random.one_of(True, False):
            given[6:8] = given[2:4]
        return function(*given)

    return made


def concatenate(random: Random) -> relay.Expr:
    """Tensors of several scales."""
    dtype, count = random.one_of(*STORED), random.integer(1, 3)
    data = [random.tensor(f"x{number}", (2, random.integer(1, 4)), dtype) for number in range(count)]
    scales = [random.scale() for _ in data]
    zeros = [random.zero(dtype) for _ in data]
    return qnn.op.concatenate(data, scales, zeros, random.one_of(scales[0], random.scale()), zeros[0], axis=1)


def simulated(function: Callable[..., relay.Expr], option: str) -> Callable[[Random], relay.Expr]:
    """With the type as a name or as a value."""

    def made(random: Random) -> relay.Expr:
        dtype = random.one_of("int8", "uint8", "int32", "disable")
        kind = random.one_of(dtype, relay.const(tvm.topi.nn.qnn.SQNN_DTYPE_TO_CODE[dtype], "int32"))
        data = random.tensor("x", (3, 4), "float32")
        return function(data, random.scale(), random.zero("int8"), **{option: kind})

    return made


PROGRAMS: dict[str, Callable[[Random], relay.Expr]] = {
    "quantize": quantize,
    "dequantize": dequantize,
    "requantize": requantize,
    "dense": dense,
    "batch_matmul": batch_matmul,
    "conv2d": conv2d,
    "conv2d_transpose": conv2d_transpose,
    "add": elementwise(qnn.op.add),
    "subtract": elementwise(qnn.op.subtract),
    "mul": elementwise(qnn.op.mul),
    "concatenate": concatenate,
    "simulated_quantize": simulated(qnn.op.simulated_quantize, "out_dtype"),
    "simulated_dequantize": simulated(qnn.op.simulated_dequantize, "in_dtype"),
}


def program(name: str, seed: int) -> tuple[tvm.IRModule, dict[str, np.ndarray[Any, Any]]]:
    """A random program of one operator, and its inputs."""
    random = Random(seed)
    body = PROGRAMS[name](random)
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    names = [parameter.name_hint for parameter in module["main"].params]
    return module, {each: random.inputs[each] for each in names}


def run(module: tvm.IRModule, executor: str, inputs: dict[str, Any]) -> np.ndarray[Any, Any]:
    """What the module gives."""
    made = relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()(*inputs.values())
    return made.numpy()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_canonical_form_agrees_with_the_reference(name: str) -> None:
    """In the interpreter, to the last bit; of simulated operators there is only one form."""
    for seed in range(20):
        module, inputs = program(name, seed)
        canonical = qnn.transform.CanonicalizeOps()(module)
        assert "qnn." not in str(canonical) or name.startswith("simulated"), seed
        expected = run(module, "debug", inputs)
        np.testing.assert_array_equal(run(canonical, "debug", inputs), expected, err_msg=f"seed {seed}")
        assert len(inputs) > 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_code_agrees_with_the_reference(name: str) -> None:
    """To the last bit, but for the rounding of floats."""
    for seed in range(100, 102):
        module, inputs = program(name, seed)
        expected, found = run(module, "debug", inputs), run(module, "graph", inputs)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(
            found, expected, rtol=1e-6 if name == "dequantize" else 0, err_msg=f"seed {seed}"
        )


def test_scales_that_are_known_only_when_the_program_runs() -> None:
    """Then arithmetic is in float32, within one step of the fixed-point result."""
    scale = relay.var("scale", shape=(), dtype="float32")
    data = relay.var("x", shape=(2, 50), dtype="int32")
    zero = relay.const(3, "int32")
    body = qnn.op.requantize(data, scale, zero, relay.const(0.25, "float32"), zero)
    module = infer_module(tvm.IRModule.from_expr(relay.Function([data, scale], body)))
    inputs = {"x": np.arange(-50, 50, dtype="int32").reshape(2, 50), "scale": np.float32(0.1)}
    difference = run(module, "graph", inputs).astype(int) - run(module, "debug", inputs).astype(int)
    assert np.abs(difference).max() <= 1


def scalar(value: float, dtype: str = "float32") -> relay.Constant:
    """A constant."""
    return relay.const(value, dtype)


BAD: dict[str, tuple[Callable[[], relay.Expr], str]] = {
    "a scale that is no float": (
        lambda: qnn.op.dequantize(
            relay.var("x", shape=(2,), dtype="int8"), scalar(1, "int32"), scalar(0, "int32")
        ),
        "the scale is float32, not int32",
    ),
    "scales for other channels": (
        lambda: qnn.op.dequantize(
            relay.var("x", shape=(2, 3), dtype="int8"), relay.const(np.ones(2, "float32")), scalar(0, "int32")
        ),
        "one element per channel",
    ),
    "an axis that is not there": (
        lambda: qnn.op.quantize(relay.var("x", shape=(2, 3)), scalar(1), scalar(0, "int32"), axis=2),
        "axis 2 is out of range for 2 dimensions",
    ),
    "a rounding that is not known": (
        lambda: qnn.op.requantize(
            relay.var("x", shape=(2,), dtype="int32"),
            scalar(1),
            scalar(0, "int32"),
            scalar(1),
            scalar(0, "int32"),
            rounding="DOWN",
        ),
        "rounding is UPWARD or TONEAREST or TOEVEN, not 'DOWN'",
    ),
    "halves to even in fixed point": (
        lambda: qnn.op.requantize(
            relay.var("x", shape=(2,), dtype="int32"),
            scalar(1),
            scalar(0, "int32"),
            scalar(1),
            scalar(0, "int32"),
            rounding="TOEVEN",
        ),
        "halves are rounded to even where compute_dtype is float32",
    ),
    "floats in a product": (
        lambda: qnn.op.dense(
            relay.var("x", shape=(2, 3)),
            relay.var("w", shape=(4, 3), dtype="int8"),
            scalar(0, "int32"),
            scalar(0, "int32"),
            scalar(1),
            scalar(1),
            4,
        ),
        "the data are int8, uint8, int16, not float32",
    ),
    "fewer scales than tensors": (
        lambda: qnn.op.concatenate(
            [relay.var("x", shape=(2,), dtype="int8")] * 2,
            [scalar(1)],
            [scalar(0, "int32")] * 2,
            scalar(1),
            scalar(0, "int32"),
            0,
        ),
        "the scales are 2, as many as tensors, not 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_calls(name: str) -> None:
    """Each is refused with what is wrong."""
    make, message = BAD[name]
    body = make()
    with pytest.raises(tvm.TVMError, match=message):
        infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))


def test_a_window_of_one_value_is_for_both_axes() -> None:
    """Strides, padding and dilation as single numbers are compiled as those of plain convolutions are."""
    random = Random(3)
    data = random.tensor("x", (1, 16, 12, 12), "uint8")
    weight = relay.const(random.generator.integers(-128, 128, (16, 16, 3, 3)).astype("int8"))
    found = []
    for one in (lambda value: value, lambda value: (value, value)):
        made = qnn.op.conv2d(
            data,
            weight,
            *(scalar(3, "int32"), scalar(0, "int32"), scalar(0.5), scalar(0.25)),
            kernel_size=one(3),
            channels=16,
            strides=one(1),
            padding=one(1),
            dilation=one(1),
        )
        module = tvm.IRModule.from_expr(relay.Function([data], made))
        with tvm.transform.PassContext(opt_level=3):
            compiled = relay.create_executor("graph", module, tvm.cpu(), "llvm").evaluate()
        found.append(compiled(random.inputs["x"]).numpy())
    np.testing.assert_array_equal(*found)


def test_every_operator_has_programs() -> None:
    """Of the dialect."""
    defined = {name.removeprefix("qnn.") for name in Op.list_op_names() if name.startswith("qnn.")}
    assert defined == set(PROGRAMS)
