"""FuseOps: which operators become one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.programs import chain, let_chain
from tests.relay.transform.checks import assert_same_value, typed
from tests.relay.transform.text import check, module

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.backend.te_compiler import operator_names
from tilewright.relay.infer import infer_module

ONE = relay.const(1.0)
X = relay.var("x", shape=(1, 16, 8, 8))
V = relay.var("v", shape=(16, 1, 1))
Z = relay.var("z", shape=(1, 8, 8, 8))
W = relay.var("w", shape=(16, 16, 3, 3))
POINT = relay.var("point", shape=(16, 16, 1, 1))


def conv(data: Any) -> Any:
    """A convolution of three by three."""
    return relay.nn.conv2d(data, W, padding=(1, 1), channels=16, kernel_size=(3, 3))


def pointwise(data: Any) -> Any:
    """A convolution of one by one."""
    return relay.nn.conv2d(data, POINT, channels=16, kernel_size=(1, 1))


def pooled(data: Any) -> Any:
    """Half the size."""
    return relay.nn.max_pool2d(data, pool_size=(2, 2), strides=(2, 2))


def dense() -> Any:
    """A matrix product."""
    return relay.nn.dense(relay.var("d", shape=(2, 8)), relay.var("k", shape=(4, 8)))


def fused(body: Any, level: int = 2, **config: Any) -> relay.Function:
    """The function after the pass."""
    function = typed(body)
    options = {f"relay.FuseOps.{name}": value for name, value in config.items()}
    with tvm.transform.PassContext(opt_level=level, config=options):
        return infer_module(transform.FuseOps()(tvm.IRModule.from_expr(function)))["main"]


def kernels(function: relay.Function) -> list[list[str]]:
    """The operators of each kernel, sorted by what is computed."""
    found: list[list[str]] = []

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Function) and expr.is_primitive:
            found.append([name.removeprefix("nn.") for name in operator_names(expr)])

    relay.analysis.post_order_visit(function, look)
    return sorted(found)


def with_name(value: Any, use: Callable[[Any], Any]) -> Any:
    """An expression that uses a value more than once."""
    return use(value)


GROUPS: dict[str, tuple[Any, list[list[str]]]] = {
    # Chains.
    "elementwise and injective": (
        relay.squeeze(relay.exp(X + ONE)),
        [["add", "exp", "squeeze"]],
    ),
    "reshape at the end": (relay.reshape(relay.exp(X), (16, 64)), [["exp", "reshape"]]),
    "into a reduction": (relay.sum(relay.exp(X), axis=1), [["exp", "sum"]]),
    "broadcast into a reduction": (relay.sum(X * V, axis=(2, 3)), [["multiply", "sum"]]),
    "not after a reduction": (relay.exp(relay.sum(X, axis=1)), [["exp"], ["sum"]]),
    "into a gather": (relay.take(relay.exp(X), relay.const([0, 1]), axis=1), [["exp", "take"]]),
    "not into an opaque operator": (relay.argsort(relay.exp(X)), [["argsort"], ["exp"]]),
    # Heavy operators take in what follows.
    "convolution, scale, shift, relu": (
        relay.nn.relu(conv(X) * V + V),
        [["conv2d", "multiply", "add", "relu"]],
    ),
    "residual": (relay.nn.relu(conv(X) + X), [["conv2d", "add", "relu"]]),
    "dense, bias, relu": (
        relay.nn.relu(relay.nn.bias_add(dense(), relay.var("b", shape=(4,)))),
        [["dense", "bias_add", "relu"]],
    ),
    "residual of fewer channels": (
        conv(X) + relay.nn.pad(Z, ((0, 0), (0, 8), (0, 0), (0, 0))),
        [["conv2d", "pad", "add"]],
    ),
    "what comes before stays": (conv(relay.exp(X)), [["conv2d"], ["exp"]]),
    "injective operators stay": (
        relay.nn.relu(relay.reshape(conv(X), (16, 64))),
        [["conv2d"], ["reshape", "relu"]],
    ),
    "one heavy operator a kernel": (conv(X) + pointwise(X), [["conv2d"], ["conv2d", "add"]]),
    "a residual is stored before it is widened": (
        conv(X) + relay.cast(relay.cast(pointwise(X), "int8"), "float32"),
        [["conv2d", "cast"], ["conv2d", "cast", "add"]],
    ),
    "into a global pool": (
        relay.exp(relay.nn.global_avg_pool2d(relay.tanh(X))),
        [["tanh", "global_avg_pool2d", "exp"]],
    ),
    # Branches join at the dominator.
    "branches of a convolution": (
        with_name(conv(X), lambda y: relay.nn.relu(y) + relay.sigmoid(y)),
        [["conv2d", "relu", "sigmoid", "add"]],
    ),
    "gelu": (
        with_name(dense(), lambda y: y * relay.erf(y) + y),
        [["dense", "erf", "multiply", "add"]],
    ),
    "a choice by a comparison": (
        with_name(conv(X), lambda y: relay.where(relay.less(y, relay.const(0.0)), y * V, y)),
        [["conv2d", "less", "multiply", "where"]],
    ),
    "a mask of another shape": (
        with_name(V < ONE, lambda mask: relay.where(mask, conv(X), X)),
        [["less", "conv2d", "where"]],
    ),
    "convolutions beside each other": (
        with_name(
            X + ONE,
            lambda y: with_name(pointwise(y), lambda z: pointwise(conv(y) + y) + z),
        ),
        [["add"], ["conv2d"], ["conv2d", "add"], ["conv2d", "add"]],
    ),
    "injective branches": (
        with_name(
            X + ONE,
            lambda y: relay.transpose(relay.squeeze(y), (0, 2, 1)) + relay.reshape(y, (16, 8, 8)),
        ),
        [["add", "squeeze", "transpose", "reshape", "add"]],
    ),
    "a reduction on the way": (
        with_name(relay.exp(X), lambda e: e / relay.sum(e, axis=1, keepdims=True)),
        [["divide"], ["exp"], ["sum"]],
    ),
    "a value that is a result": (
        with_name(relay.negative(X), lambda e: relay.Tuple([e, relay.exp(e)])),
        [["exp"], ["negative"]],
    ),
    # Tuples.
    "concatenate": (
        relay.nn.relu(relay.concatenate([relay.exp(X), X], axis=1)),
        [["exp", "concatenate", "relu"]],
    ),
    "concatenate after pooling": (
        relay.concatenate([relay.nn.upsampling(pooled(X), 2, 2), X], axis=1) + ONE,
        [["max_pool2d"], ["upsampling", "concatenate", "add"]],
    ),
    "concatenate of a convolution": (
        relay.concatenate([conv(X), relay.exp(X)], axis=1),
        [["conv2d"], ["exp", "concatenate"]],
    ),
    "a tuple as the result": (
        relay.Tuple([relay.nn.upsampling(pooled(X), 2, 2), X]),
        [["max_pool2d"], ["upsampling"]],
    ),
    "split": (
        with_name(relay.split(X, 2, 1), lambda s: s[0] + relay.exp(s[1])),
        [["split", "exp", "add"]],
    ),
    # Annotations.
    "stop_fusion": (relay.exp(relay.annotation.stop_fusion(X + ONE)), [["add"], ["exp"]]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    """The kernels of a program, which computes the same."""
    body, expected = GROUPS[name]
    made = fused(body)
    assert kernels(made) == sorted(expected)
    assert_same_value(typed(body), made)


@pytest.mark.parametrize("name", GROUPS)
def test_level_zero(name: str) -> None:
    """Every operator is a kernel of its own."""
    body, _ = GROUPS[name]
    made = fused(body, level=0)
    assert all(len(kernel) == 1 for kernel in kernels(made))
    assert_same_value(typed(body), made)


def test_kernels_call_operators_alone() -> None:
    """Outside kernels there is no operator left; inside there is nothing else."""
    made = fused(GROUPS["convolutions beside each other"][0])
    inside: set[Any] = set()
    calls: set[Any] = set()

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Function) and expr.is_primitive:
            relay.analysis.post_order_visit(expr.body, inside.add)
        elif isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            calls.add(expr)

    relay.analysis.post_order_visit(made, look)
    assert calls and calls <= inside
    assert not any(isinstance(expr, relay.Function) for expr in inside)


def test_scalars_move_in_and_tensors_are_parameters() -> None:
    """A scalar constant is part of the kernel, a larger one an argument of it."""
    made = fused(X * relay.const(2.0) + relay.const(np.ones((16, 1, 1), "float32")))
    function = made.body.op
    assert len(function.params) == 2
    assert len(made.body.args) == 2
    assert isinstance(made.body.args[1], relay.Constant)


def test_the_same_argument_is_passed_once() -> None:
    """A value that a kernel uses twice is one parameter."""
    made = fused(relay.nn.relu(conv(X) + X) * X)
    assert len(made.body.op.params) == 2


@pytest.mark.parametrize(("length", "depth"), [(600, None), (40, 10)])
def test_the_number_of_operators_in_a_kernel(length: int, depth: int | None) -> None:
    """No kernel has more than ``max_depth`` operators, and few have fewer."""
    config = {} if depth is None else {"max_depth": depth}
    sizes = [len(kernel) for kernel in kernels(fused(chain(length), **config))]
    limit = 256 if depth is None else depth
    assert sum(sizes) == length
    assert max(sizes) <= limit
    assert len(sizes) == -(-length // limit)


def test_text() -> None:
    """The form of the result."""
    check(
        "def @main(%x: $T, %y: $T) { exp(add(%x, %y)) }",
        tvm.transform.Sequential([transform.InferType(), transform.FuseOps(2)]),
        """
        def @main(%x: $T, %y: $T) -> $T {
          %0 = fn (%p0: $T, %p1: $T, Primitive=1) -> $T { exp(add(%p0, %p1)) };
          %0(%x, %y)
        }
        """,
    )


def test_scopes() -> None:
    """Branches, functions and lets are not fused across."""
    made = infer_module(
        transform.FuseOps(2)(
            infer_module(
                module(
                    """
                    def @main(%c: bool, %x: $T) {
                      let %y = negative(exp(%x));
                      let %f = fn (%z: $T) { abs(exp(%z)) };
                      if (%c) { %f(exp(negative(%y))) } else { exp(%y) }
                    }
                    """
                )
            )
        )
    )["main"]
    assert kernels(made) == [["exp"], ["exp", "abs"], ["exp", "negative"], ["negative", "exp"]]


def test_the_module_before_stays() -> None:
    """The pass changes nothing in what it is given, and a second run nothing at all."""
    before = infer_module(tvm.IRModule.from_expr(typed(GROUPS["residual"][0])))
    text = before.astext()
    after = transform.FuseOps(2)(before)
    assert before.astext() == text
    again = transform.FuseOps(2)(after)
    tvm.ir.assert_structural_equal(infer_module(again), infer_module(after))


def test_unknown_dimensions_may_be_repeated() -> None:
    """Two unknown dimensions may differ when the program runs: the smaller one of a product is not fused with what
    repeats it. Where the product's own dimension is kept, it is."""
    d, k = relay.var("d", shape=(relay.Any(), 8)), relay.var("k", shape=(4, 8))
    product = relay.nn.dense(d, k)
    other, bias = relay.var("other", shape=(relay.Any(), 4)), relay.var("bias", shape=(4,))
    assert kernels(fused(product + other)) == [["add"], ["dense"]]
    assert kernels(fused(relay.nn.relu(product + bias))) == [["dense", "add", "relu"]]


def test_shapes_that_depend_on_values() -> None:
    """Such an operator is compiled alone: its shape function runs between."""
    made = fused(relay.exp(relay.cast(relay.argwhere(relay.nn.relu(relay.var("m", shape=(4,)))), "float32")))
    assert ["argwhere"] in kernels(made)


@pytest.mark.parametrize("make", [chain, let_chain])
def test_long_chains(make: Any) -> None:
    """Ten thousand operators."""
    found = kernels(fused(make(10_000)))
    assert sum(len(kernel) for kernel in found) == 10_000


POOLED = pooled(X)
BESIDE_POOLED = relay.nn.avg_pool2d(X, pool_size=(2, 2), strides=(2, 2))

ALONE: dict[str, tuple[Any, list[list[str]]]] = {
    "what is in memory is not copied": (
        relay.nn.relu(relay.concatenate([POOLED, BESIDE_POOLED], axis=1)),
        [["avg_pool2d"], ["concatenate"], ["max_pool2d"], ["relu"]],
    ),
    "shapes do not matter": (
        relay.nn.relu(relay.concatenate([relay.squeeze(POOLED), relay.squeeze(BESIDE_POOLED)], axis=0)),
        [["avg_pool2d"], ["concatenate"], ["max_pool2d"], ["relu"], ["squeeze"], ["squeeze"]],
    ),
    "one kernel writes its part": (
        relay.concatenate([conv(X), relay.exp(X)], axis=1),
        [["concatenate"], ["conv2d"], ["exp"]],
    ),
    "what goes on is not in memory": (
        relay.nn.relu(relay.concatenate([POOLED, relay.reverse(BESIDE_POOLED, 1)], axis=1)),
        [["avg_pool2d"], ["max_pool2d"], ["reverse", "concatenate", "relu"]],
    ),
    "a kernel costs more than small copies": (
        relay.concatenate([POOLED, relay.exp(BESIDE_POOLED), relay.sin(BESIDE_POOLED)], axis=1),
        [["avg_pool2d"], ["exp", "sin", "concatenate"], ["max_pool2d"]],
    ),
    "operands that are not in one piece": (
        relay.nn.relu(relay.concatenate([POOLED, BESIDE_POOLED], axis=2)),
        [["avg_pool2d"], ["concatenate", "relu"], ["max_pool2d"]],
    ),
    "inputs alone": (relay.concatenate([X, X], axis=1), [["concatenate"]]),
}


@pytest.mark.parametrize("name", ALONE)
def test_concatenations_as_views(name: str) -> None:
    """With ``views`` a concatenation stays alone where fusion would only copy; the program means the same."""
    body, expected = ALONE[name]
    module = tvm.IRModule.from_expr(typed(body))
    made = infer_module(transform.FuseOps(2, views=True)(module))["main"]
    assert kernels(made) == sorted(expected)
    assert_same_value(module["main"], made)


@pytest.mark.parametrize("same", [True, False])
def test_batches_of_a_product_that_are_one(same):
    """Two factors made from one tensor have one batch, and the kernel says so; of two tensors it may be broadcast."""
    x = relay.var("x", shape=(relay.Any(), 3, 4))
    y = relay.var("y", shape=(relay.Any(), 3, 4))
    other = relay.tanh(x) if same else y
    function = relay.Function([x] if same else [x, y], relay.nn.batch_matmul(relay.exp(x), other))
    module = transform.InferType()(tvm.IRModule.from_expr(function))
    found = []

    def look(node):
        if isinstance(node, relay.Function) and "batch_matmul" in str(node.body):
            found.append(bool(node.attrs.get("SameShapes", 0)))

    relay.analysis.post_order_visit(transform.FuseOps(2)(module)["main"].body, look)
    assert found == [same]
