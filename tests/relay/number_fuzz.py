"""Random expressions over special numbers: constant folding and compiled code must give the same bits.

    python tests/relay/number_fuzz.py --minutes 10 --seed 0

Every expression is computed twice: with its leaves as constants, by FoldConstant, and with its leaves as inputs, by
machine code. The numbers are those on which the two disagree most easily: NaN, infinities, zeros of both signs,
subnormals, the ends of every integer type, halves. Axes have lengths that give vector bodies and scalar rests.

What is exact (arithmetic, comparisons, casts, rounding, minima and maxima) must agree in every bit but those of a NaN.
Approximations and sums may differ by a few units in the last place, never in what is NaN or infinite.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TILEWRIGHT_CHECK", "1")
for _folder in (ROOT, ROOT / "src"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

import numpy as np  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.contrib import graph_executor  # noqa: E402
from tilewright.ir.transform import PassContext  # noqa: E402

TARGET = "llvm -fast-math-contract=0"
"""A product and a sum that become one instruction round once, folding rounds twice."""
SHAPES = ((67,), (5, 13), (3, 4, 9), (1,), (32,))
FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
TYPES = (*NUMBERS, "bool")
DEPTH = 3
TOGETHER = 12
"""Expressions that are compiled together."""

WRAPS = frozenset(
    ("negative", "abs", "add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "power")
)

Array = np.ndarray[Any, Any]


def special_numbers(random: np.random.Generator, dtype: str, shape: Sequence[int]) -> Array:
    """Numbers of a type, most of them at the ends of something."""
    count = int(np.prod(shape))
    if dtype == "bool":
        return random.integers(0, 2, count).astype(bool).reshape(shape)
    if dtype in INTEGERS:
        ends = np.iinfo(dtype)
        width = 8 * np.dtype(dtype).itemsize
        picked = [ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1, 2, 3, 7, width - 1, width, width + 1]
        picked += [-1, -2, -3, -7, -width] if ends.min < 0 else []
        made = np.array([picked[i] for i in random.integers(0, len(picked), count)], dtype)
        plain = random.integers(-5 if ends.min < 0 else 0, 20, count).astype(dtype)
    else:
        facts = np.finfo(dtype)
        size = [0.0, facts.smallest_subnormal, facts.tiny, 0.5, 1.0, 1.5, 2.5, 3.0, 127.5, 128.0, 255.5]
        size += [256.0, 32768.0, 65504.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 0.1, facts.max, np.inf]
        with np.errstate(over="ignore"):
            values = np.array([*size, *(-number for number in size), np.nan], "float64").astype(dtype)
        made = random.choice(values, count)
        plain = (random.standard_normal(count) * random.choice([0.1, 1, 30])).astype(dtype)
    return np.where(random.random(count) < 0.7, made, plain).astype(dtype).reshape(shape)


@dataclass
class Leaf:
    """An argument: a variable of the compiled program, a constant of the folded one."""

    variable: relay.Var
    value: Array


@dataclass
class Made:
    """An expression, its shape and its type; ``exact`` where both ways must agree in every bit."""

    expr: Any
    shape: tuple[int, ...]
    dtype: str
    exact: bool = True


class Expressions:
    """Makes random expressions over leaves of their own."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.leaves: list[Leaf] = []

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(0, len(options)))]

    def leaf(self, shape: tuple[int, ...], dtype: str, constant: bool = True) -> Made:
        """A new argument; seldom, a number that is a constant in both programs."""
        value = special_numbers(self.random, dtype, shape)
        if constant and self.random.random() < 0.15:
            return Made(relay.const(special_numbers(self.random, dtype, ()), dtype), (), dtype)
        variable = relay.var(f"x{len(self.leaves)}", shape=shape, dtype=dtype)
        self.leaves.append(Leaf(variable, value))
        return Made(variable, shape, dtype)

    def of_type(self, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
        """An exact expression of a type."""
        if depth <= 0 or self.random.random() < 0.3:
            return self.leaf(shape, dtype)
        # The simplifier takes it that sums of int32 and int64 do not overflow: they are computed, not computed with.
        wraps = depth < DEPTH and dtype in ("int32", "int64")
        makers = [maker for maker in EXACT if dtype in maker.results and not (wraps and maker.name in WRAPS)]
        return self.pick(makers).make(self, shape, dtype, depth - 1)

    def root(self) -> Made:
        """An expression of which one operator, the outermost, may be an approximation."""
        shape = self.pick(SHAPES)
        if self.random.random() < 0.35:
            return self.pick(ROOTS).make(self, shape, "", DEPTH - 1)
        made = self.of_type(shape, self.pick(TYPES), DEPTH)
        return made if made.shape == shape else self.of_type(shape, made.dtype, 0)


@dataclass
class Maker:
    """How an operator is called, and the types that it can give."""

    name: str
    results: tuple[str, ...]
    make: Callable[[Expressions, tuple[int, ...], str, int], Made]


EXACT: list[Maker] = []
ROOTS: list[Maker] = []


def _unary(name: str, results: tuple[str, ...], call: Callable[[Any], Any], exact: bool = True) -> None:
    def make(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
        kind = dtype or made.pick(results)
        one = made.of_type(shape, kind, depth)
        return Made(call(one.expr), one.shape, kind, exact)

    (EXACT if exact else ROOTS).append(Maker(name, results, make))


def _binary(
    name: str, operands: tuple[str, ...], call: Callable[..., Any], result: str = "", exact: bool = True
) -> None:
    def make(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
        kind = made.pick(operands) if result or not dtype else dtype
        left, right = made.of_type(shape, kind, depth), made.of_type(shape, kind, depth)
        if name in ("add", "multiply") and kind in FLOATS:
            # Of two constants in a row SimplifyExpr makes one, which rounds once less.
            left, right = (
                made.leaf(shape, kind, constant=False)
                if isinstance(one.expr, relay.Constant) and not isinstance(other.expr, relay.Var)
                else one
                for one, other in ((left, right), (right, left))
            )
        expr = call(left.expr, right.expr)
        if name in ("maximum", "minimum") and kind in FLOATS:
            # Which of two zeros it is depends on who computes it.
            expr = expr + relay.const(0.0, kind)
        return Made(expr, left.shape or right.shape, result or kind, exact)

    (EXACT if exact else ROOTS).append(Maker(name, (result,) if result else operands, make))


def _clip(data: Any, random: np.random.Generator) -> Any:
    low = float(random.choice([-np.inf, -300.5, -1.0, -0.0, 0.0, 0.5]))
    return relay.clip(data, low, float(random.choice([0.5, 6.0, 300.5, np.inf])))


def _clipped(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
    one = made.of_type(shape, dtype, depth)
    return Made(_clip(one.expr, made.random), one.shape, dtype)


def _cast(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
    one = made.of_type(shape, made.pick(TYPES), depth)
    return Made(relay.cast(one.expr, dtype), one.shape, dtype)


def _choice(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
    condition = made.of_type(shape, "bool", depth)
    one, other = made.of_type(shape, dtype, depth), made.of_type(shape, dtype, depth)
    shaped = condition.shape or one.shape or other.shape
    return Made(relay.where(condition.expr, one.expr, other.expr), shaped, dtype)


def _test(name: str, call: Callable[[Any], Any]) -> None:
    def make(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
        one = made.of_type(shape, made.pick(FLOATS), depth)
        return Made(call(one.expr), one.shape, "bool")

    EXACT.append(Maker(name, ("bool",), make))


def _reduction(
    name: str, operands: tuple[str, ...], call: Callable[..., Any], exact_of: tuple[str, ...]
) -> None:
    def make(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
        kind = made.pick(operands)
        if kind not in exact_of:
            # Whether a sum or product overflows on the way is a matter of its order.
            value = made.random.standard_normal(shape).astype(kind)
            made.leaves.append(
                Leaf(relay.var(f"x{len(made.leaves)}", shape=shape, dtype=kind), np.abs(value))
            )
            one = Made(made.leaves[-1].variable, shape, kind)
        else:
            one = made.of_type(shape, kind, depth)
        if not one.shape:
            one = made.of_type(shape, kind, 0)
            one = one if one.shape else Made(relay.broadcast_to(one.expr, shape), shape, kind)
        axis = int(made.random.integers(0, len(shape)))
        return Made(call(one.expr, axis=axis), (), kind, kind in exact_of)

    ROOTS.append(Maker(name, operands, make))


def _pool(made: Expressions, shape: tuple[int, ...], dtype: str, depth: int) -> Made:
    kind = made.pick(FLOATS)
    one = made.leaf((1, 2, 7, 11), kind)
    data = one.expr if one.shape else relay.broadcast_to(one.expr, (1, 2, 7, 11))
    window, stride, padding = (made.pick(options) for options in (((3, 3), (2, 2), (1, 3)), (1, 2), (0, 1)))
    calls: list[Any] = [
        relay.nn.max_pool2d(
            data, window, (stride, stride), padding=(0, padding), ceil_mode=made.pick((False, True))
        ),
        relay.nn.global_max_pool2d(data),
        relay.nn.adaptive_max_pool2d(data, (3, 4)),
    ]
    return Made(made.pick(calls), (), kind)


_unary("negative", (*FLOATS, *SIGNED), relay.negative)
_unary("abs", (*FLOATS, *SIGNED), relay.abs)
_unary("sign", NUMBERS, relay.sign)
_unary("copy", TYPES, relay.copy)
_unary("bitwise_not", INTEGERS, relay.bitwise_not)
_unary("logical_not", ("bool",), relay.logical_not)
_unary("relu", (*FLOATS, *SIGNED), relay.nn.relu)
for _name in ("floor", "ceil", "trunc", "round"):
    _unary(_name, FLOATS, getattr(relay, _name))
_unary("sqrt", FLOATS, relay.sqrt)
for _name in (
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "mod",
    "floor_mod",
    "maximum",
    "minimum",
):
    _binary(_name, NUMBERS, getattr(relay, _name))
_binary("power", INTEGERS, relay.power)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _binary(_name, NUMBERS, getattr(relay, _name), "bool")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
    _binary(_name, INTEGERS, getattr(relay, _name))
for _name in ("logical_and", "logical_or", "logical_xor"):
    _binary(_name, ("bool",), getattr(relay, _name))
for _name in ("isnan", "isinf", "isfinite"):
    _test(_name, getattr(relay, _name))
EXACT += [Maker("clip", NUMBERS, _clipped), Maker("cast", TYPES, _cast), Maker("where", TYPES, _choice)]
for _name in (
    "exp",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "erf",
    "rsqrt",
    "asin",
    "acos",
):
    _unary(_name, FLOATS, getattr(relay, _name), exact=False)
for _name in ("atan", "sinh", "cosh", "asinh", "acosh", "atanh"):
    _unary(_name, FLOATS, getattr(relay, _name), exact=False)
_binary("power", FLOATS, relay.power, exact=False)
for _name in ("max", "min"):
    _reduction(_name, NUMBERS, getattr(relay, _name), NUMBERS)
for _name in ("argmax", "argmin"):
    _reduction(_name, NUMBERS, getattr(relay, _name), NUMBERS)
for _name in ("sum", "prod"):
    _reduction(_name, NUMBERS, getattr(relay, _name), INTEGERS)
_reduction("all", ("bool",), relay.all, ("bool",))
_reduction("any", ("bool",), relay.any, ("bool",))
ROOTS.append(Maker("max_pool2d", FLOATS, _pool))


def difference(one: Array, other: Array, exact: bool) -> str | None:
    """Where two results are not the same number, the sign of a zero included; None where they are."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{one.shape} against {other.dtype}{other.shape}"
    if one.dtype.kind != "f":
        wrong = one != other
    else:
        lost = np.isnan(one)
        wrong = lost != np.isnan(other)
        bits = np.dtype(f"uint{8 * one.dtype.itemsize}")
        if exact:
            wrong |= ~lost & (one.view(bits) != other.view(bits))
        else:
            with np.errstate(all="ignore"):
                wide, close = one.astype("float64"), other.astype("float64")
                step = np.finfo(one.dtype)
                allowed = 8 * float(step.eps) * np.abs(wide) + 8 * float(step.smallest_subnormal)
                infinite = np.isinf(wide) | np.isinf(close)
                wrong |= ~lost & np.where(infinite, wide != close, np.abs(wide - close) > allowed)
    places = np.flatnonzero(wrong.reshape(-1))
    if not len(places):
        return None
    shown = [f"{one.reshape(-1)[at]!r} against {other.reshape(-1)[at]!r} at {at}" for at in places[:3]]
    return f"{len(places)} of {one.size}: " + "; ".join(shown)


F = TypeVar("F")


@dataclass
class Finding:
    """An expression whose folded and compiled values differ."""

    seed: int
    expr: str
    message: str
    arguments: list[Array]


def folded(expr: Any, leaves: Sequence[Leaf]) -> Array:
    """The value of an expression by constant folding."""
    bound = relay.bind(
        expr, {leaf.variable: relay.const(leaf.value, str(leaf.value.dtype)) for leaf in leaves}
    )
    made = relay.transform.FoldConstantExpr(bound)
    if not isinstance(made, relay.Constant):
        raise AssertionError(f"not folded: {made}")
    return made.data.numpy()


def compiled(exprs: Sequence[Any], leaves: Sequence[Leaf]) -> list[Array]:
    """The values of expressions by machine code; what they share is computed once, or is part of one kernel."""
    function = relay.Function([leaf.variable for leaf in leaves], relay.Tuple(list(exprs)))
    with PassContext(opt_level=3, disabled_pass=["MultiplyByReciprocal"]):
        library = relay.build(tvm.IRModule.from_expr(function), target=TARGET)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for leaf in leaves:
        module.set_input(leaf.variable.name_hint, leaf.value)
    module.run()
    return [module.get_output(number).numpy() for number in range(len(exprs))]


def check(seed: int) -> list[Finding]:
    """The findings of one batch of expressions."""
    expressions = Expressions(seed)
    made = [expressions.root() for _ in range(TOGETHER)]
    leaves = expressions.leaves
    with np.errstate(all="ignore"):
        expected = [folded(one.expr, leaves) for one in made]
    computed = compiled([one.expr for one in made], leaves)
    found = []
    for one, want, got in zip(made, expected, computed, strict=True):
        message = difference(want, got, one.exact)
        if message is not None:
            used = {variable.name_hint for variable in relay.analysis.free_vars(one.expr)}
            arguments = [leaf.value for leaf in leaves if leaf.variable.name_hint in used]
            found.append(Finding(seed, str(one.expr), f"folded {message} compiled", arguments))
    return found


def until_the_end(
    check: Callable[[int], list[F]], together: int, seeds: range, seconds: float
) -> tuple[int, list[F]]:
    """How many expressions were computed until the time was over, ``together`` for a seed, and what differed."""
    end = time.monotonic() + seconds
    count = 0
    found: list[F] = []
    for seed in seeds:
        if time.monotonic() > end:
            break
        found += check(seed)
        count += together
    return count, found


def fuzz(seeds: range, seconds: float) -> tuple[int, list[Finding]]:
    """How many expressions were computed until the time was over, and what differed."""
    return until_the_end(check, TOGETHER, seeds, seconds)


def run_as_program(description: str | None, fuzz: Callable[[range, float], tuple[int, list[Any]]]) -> int:
    """Fuzz for as long as the command line says, and print what differed; 1 if anything did."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, found = fuzz(range(options.seed, options.seed + 10**9), options.minutes * 60)
    for finding in found:
        sys.stdout.write(f"seed {finding.seed}: {finding.message}\n{finding.expr}\n")
    sys.stdout.write(f"{count} expressions, {len(found)} of them differ\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(run_as_program(__doc__, fuzz))
