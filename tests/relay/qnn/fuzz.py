"""Random quantised layers: compiled code gives the integers of the reference, to the last bit.

    python tests/relay/qnn/fuzz.py --cases 10000 [--seed 0] [--target "llvm -mcpu=haswell"]

A case is a layer as quantised models have them: a convolution (plain, depthwise, in groups) or a product of random
shape, signedness, scales and zero points, a bias, an activation and a requantisation in fixed point or in float32,
written with operators of the quantised dialect or with dequantised tensors. Some go on with a pool, a residual or a
second layer. Several cases are compiled together, which takes less time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module

STORED = ("int8", "uint8")
TOGETHER = 16
"""Cases that are compiled as one program."""

Array = np.ndarray[Any, Any]


class Case:
    """A random layer; variables are named after its number."""

    def __init__(self, seed: int, place: int) -> None:
        self.seed, self.place = seed, place
        self.generator = np.random.default_rng([seed, 5])
        self.inputs: dict[str, Array] = {}
        self.body = self.layer()

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.generator.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        """A choice."""
        return choices[self.integer(0, len(choices) - 1)]

    def numbers(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Any integers of the type; as often as not its ends only, where intermediate sums would saturate."""
        ends = np.iinfo(dtype)
        if self.generator.random() < 0.3:
            return self.generator.choice(np.array([ends.min, ends.max], dtype), shape)
        return self.generator.integers(ends.min, ends.max + 1, shape).astype(dtype)

    def data(self, shape: tuple[int, ...], dtype: str) -> relay.Var:
        """A variable and its value."""
        name = f"x{self.place}_{len(self.inputs)}"
        self.inputs[name] = self.numbers(shape, dtype)
        return relay.var(name, shape=shape, dtype=dtype)

    def scale(self, channels: int = 0) -> relay.Constant:
        """One scale, or one per channel."""
        shape = (channels,) if channels else ()
        return relay.const(np.exp2(self.generator.uniform(-9, -3, shape)).astype("float32"))

    def zero(self, dtype: str, channels: int = 0) -> relay.Constant:
        """A zero point: none, an end of the type, or any."""
        ends = np.iinfo(dtype)
        low, high = self.one_of((0, 0), (ends.min, ends.min), (ends.min, ends.max))
        return relay.const(
            self.generator.integers(low, high + 1, (channels,) if channels else ()).astype("int32")
        )

    # Layers

    def layer(self) -> relay.Expr:
        """A layer of one of the kinds."""
        return self.one_of(
            self.convolution, self.convolution, self.dense, self.batch_matmul, self.dequantized
        )()

    def convolution(self) -> relay.Expr:
        """A convolution and what follows it."""
        made, channels = self.sums()
        made = relay.nn.bias_add(
            made, relay.const(self.generator.integers(-5000, 5000, channels).astype("int32"))
        )
        if self.one_of(True, False):
            made = relay.nn.relu(made)
        made = self.requantized(made, channels, 1)
        return self.followed(made, channels)

    def sums(self) -> tuple[relay.Expr, int]:
        """A convolution, and its channels."""
        kind = self.one_of("plain", "plain", "depthwise", "groups")
        groups = {"plain": 1, "groups": 2, "depthwise": self.one_of(8, 16, 24, 32, 64, 96)}[kind]
        into = 1 if kind == "depthwise" else self.one_of(1, 3, 4, 6, 8, 16, 20, 64)
        out = groups if kind == "depthwise" else groups * self.one_of(1, 8, 10, 16, 32, 48, 64)
        window, size = self.one_of(1, 1, 2, 3, 3, 5), self.integer(9, 14)
        dtype, of_weight = self.one_of(*STORED), self.one_of("int8", "int8", "uint8")
        per_channel = self.one_of(0, out)
        symmetric = self.one_of(True, True, False)
        return (
            qnn.op.conv2d(
                self.data((1, into * groups, size, self.integer(6, 14)), dtype),
                relay.const(self.numbers((out, into, window, window), of_weight)),
                self.zero(dtype),
                relay.const(0, "int32") if symmetric else self.zero(of_weight, per_channel),
                self.scale(),
                self.scale(per_channel),
                kernel_size=(window, window),
                channels=out,
                strides=(self.integer(1, 2), self.integer(1, 2)),
                padding=self.one_of((0, 0), (1, 1), (0, 1, 2, 1)),
                dilation=self.one_of((1, 1), (1, 1), (2, 1)),
                groups=groups,
            ),
            out,
        )

    def requantized(self, made: relay.Expr, channels: int, axis: int) -> relay.Expr:
        """In fixed point or in float32."""
        dtype = self.one_of(*STORED)
        rounding = self.one_of("UPWARD", "TONEAREST", "TOEVEN")
        compute = "float32" if rounding == "TOEVEN" else self.one_of("int64", "float32")
        return qnn.op.requantize(
            made,
            relay.const(np.exp2(self.generator.uniform(-9, -5, channels)).astype("float32")),
            relay.const(0, "int32"),
            relay.const(np.float32(np.exp2(self.generator.uniform(0, 4)))),
            self.zero(dtype),
            axis=axis,
            rounding=rounding,
            out_dtype=dtype,
            compute_dtype=compute,
        )

    def followed(self, made: relay.Expr, channels: int) -> relay.Expr:
        """A pool, another layer, or nothing."""
        what = self.one_of("nothing", "pool", "layer")
        kind: Any = infer_module(tvm.IRModule.from_expr(made))["main"].body.checked_type
        dtype = str(kind.dtype)
        rows, columns = (int(extent) for extent in kind.shape[2:])
        if what == "pool" and min(rows, columns) > 1:
            return relay.nn.max_pool2d(made, (2, 2), strides=(1, 1))
        if what != "layer":
            return made
        outputs = self.one_of(8, 16, 40)
        second = qnn.op.conv2d(
            made,
            relay.const(self.numbers((outputs, channels, 1, 1), "int8")),
            self.zero(dtype),
            relay.const(0, "int32"),
            self.scale(),
            self.scale(),
            kernel_size=(1, 1),
            channels=outputs,
        )
        return self.requantized(second, outputs, 1)

    def dense(self) -> relay.Expr:
        """Rows times weights."""
        rows, depth, units = self.one_of(1, 1, 3, 8, 17), self.integer(1, 130), self.one_of(1, 7, 16, 33, 64)
        dtype, of_weight = self.one_of(*STORED), self.one_of("int8", "int8", "uint8")
        per_channel = self.one_of(0, units)
        made = qnn.op.dense(
            self.data((rows, depth), dtype),
            relay.const(self.numbers((units, depth), of_weight)),
            self.zero(dtype),
            self.zero(of_weight, per_channel),
            self.scale(),
            self.scale(per_channel),
            units,
        )
        return self.requantized(made, units, -1) if self.one_of(True, False) else made

    def batch_matmul(self) -> relay.Expr:
        """Two factors that are data."""
        batch, rows, depth, columns = (
            self.integer(1, 3),
            self.integer(1, 9),
            self.integer(1, 40),
            self.integer(1, 20),
        )
        left, right = self.one_of(*STORED), self.one_of(*STORED)
        return qnn.op.batch_matmul(
            self.data((batch, rows, depth), left),
            self.data((batch, columns, depth), right),
            self.zero(left),
            self.zero(right),
            self.scale(),
            self.scale(),
        )

    def dequantized(self) -> relay.Expr:
        """A convolution of dequantised tensors, quantised again."""
        into, out = self.one_of(4, 16, 32), self.one_of(8, 32)
        dtype, per_channel = self.one_of(*STORED), self.one_of(0, out)
        scale, weight_scale = self.scale(), self.scale(per_channel)
        data = qnn.op.dequantize(self.data((1, into, 7, 9), dtype), scale, self.zero(dtype))
        weight = relay.const(self.numbers((out, into, 3, 3), "int8"))
        bias = relay.const(self.generator.integers(-900, 900, out).astype("int32"))
        none = relay.const(0, "int32")
        of_sums = relay.const((scale.data.numpy() * weight_scale.data.numpy()).astype("float32"))
        made = relay.nn.conv2d(
            data,
            qnn.op.dequantize(weight, weight_scale, none, axis=0),
            padding=(1, 1),
            channels=out,
            kernel_size=(3, 3),
        )
        made = relay.nn.bias_add(made, qnn.op.dequantize(bias, of_sums, none, axis=0))
        if self.one_of(True, False):
            made = relay.nn.relu(made)
        wanted = self.one_of(*STORED)
        return qnn.op.quantize(made, self.scale(), self.zero(wanted), out_dtype=wanted, rounding="TOEVEN")


def differences(seeds: range, target: str = "llvm") -> list[str]:
    """Cases whose integers are not those of the reference, in words."""
    cases = [Case(seed, place) for place, seed in enumerate(seeds)]
    body = relay.Tuple([case.body for case in cases])
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    # The reference of a program on dequantised tensors is that of the integers that stand for them.
    module = infer_module(relay.transform.SinkDequantize()(module))
    inputs = {name: value for case in cases for name, value in case.inputs.items()}
    given = [inputs[parameter.name_hint] for parameter in module["main"].params]
    expected = relay.create_executor("debug", module, tvm.cpu(), "llvm").evaluate()(*given)
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", module, tvm.cpu(), target).evaluate()(*given)
    wrong = []
    for case, want, have in zip(cases, expected, found, strict=True):
        apart = np.abs(want.numpy().astype(np.int64) - have.numpy().astype(np.int64))
        if want.dtype != have.dtype or apart.any():
            wrong.append(f"seed {case.seed}: {int((apart > 0).sum())} of {apart.size} by up to {apart.max()}")
    return wrong


def main(report: Callable[[str], None] = print) -> int:
    """Run many cases; the number of wrong ones, as far as an exit code can say it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    wrong = 0
    for first in range(options.seed, options.seed + options.cases, TOGETHER):
        last = min(first + TOGETHER, options.seed + options.cases)
        found = differences(range(first, last), options.target)
        wrong += len(found)
        for line in found:
            report(line)
        if (first - options.seed) % (16 * TOGETHER) == 0:
            report(f"{last - options.seed} cases, {wrong} wrong")
    report(f"{options.cases} cases, {wrong} wrong")
    return min(wrong, 100)


if __name__ == "__main__":
    sys.exit(main())
