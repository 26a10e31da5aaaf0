"""What unit tests of Relay's operators ask, level by level: types with unknown sizes, and numbers on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.compat.relay_values import evaluate, rand

import tilewright as tvm
import tilewright.testing
from tilewright import relay, te
from tilewright.relay.testing import run_infer_type


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


UNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "cos": np.cos,
    "sin": np.sin,
    "tan": np.tan,
    "atan": np.arctan,
    "erf": None,
    "log2": np.log2,
    "log10": np.log10,
    "cosh": np.cosh,
    "sinh": np.sinh,
    "asinh": np.arcsinh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "round": np.round,
    "abs": np.abs,
    "sign": np.sign,
    "negative": np.negative,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    """A unary operator keeps the type, symbolic or not."""
    op = getattr(relay, name)
    for dtype in ("float16", "float32"):
        tp = relay.TensorType((10, te.size_var("n")), dtype)
        x = relay.var("x", tp)
        y = op(x)
        assert "%x" in y.astext() and name in y.astext()
        assert run_infer_type(y).checked_type == tp
    reference = UNARY[name]
    if reference is not None:
        x = relay.var("x", shape=(3, 4))
        data = rand(3, 4) * 0.9
        np.testing.assert_allclose(evaluate(op(x), [x], data), reference(data), rtol=1e-5, atol=1e-5)


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "floor_mod": np.fmod,
    "mod": np.mod,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    """A binary operator broadcasts: symbolic sizes with themselves and with one."""
    op = getattr(relay, name)
    a, b = te.size_var("a"), te.size_var("b")
    x = relay.var("x", relay.TensorType((10, 4), "float32"))
    y = relay.var("y", relay.TensorType((5, 10, 1), "float32"))
    z = op(x, y)
    got = run_infer_type(z).checked_type
    assert tuple(int(d) for d in got.shape) == (5, 10, 4)
    xs = relay.var("xs", relay.TensorType((a, b), "float32"))
    assert tuple(run_infer_type(op(xs, xs)).checked_type.shape) == (a, b)
    first, second = rand(10, 4) * 5, rand(5, 10, 1) * 3
    np.testing.assert_allclose(
        evaluate(z, [x, y], first, second), BINARY[name](first, second), rtol=1e-5, atol=1e-5
    )


def test_expand_dims_infer_type() -> None:
    """A new axis, symbolic sizes kept."""
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", shape=(n, t, d))
    y = relay.expand_dims(x, axis=2)
    assert "axis=2" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, t, 1, 100), "float32")


def test_softmax_and_log_softmax() -> None:
    """Of types with symbolic sizes, and of numbers."""
    n, d = te.size_var("n"), te.size_var("d")
    x = relay.var("x", shape=(n, d))
    y = relay.nn.softmax(x)
    assert "nn.softmax" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, d), "float32")
    for shape, axis in (((10, 4), 1), ((10, 5, 4), 1)):
        x = relay.var("x", shape=shape)
        data = rand(*shape)
        shifted = np.exp(data - data.max(axis, keepdims=True))
        expected = shifted / shifted.sum(axis, keepdims=True)
        np.testing.assert_allclose(evaluate(relay.nn.softmax(x, axis=axis), [x], data), expected, rtol=1e-5)
        np.testing.assert_allclose(
            evaluate(relay.nn.log_softmax(x, axis=axis), [x], data), np.log(expected), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("axis", [1, 0, -1, -2])
def test_concatenate(axis: int) -> None:
    """Symbolic sizes add up; numbers are put one behind the other; a bad axis is an error."""
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x, y = relay.var("x", shape=(n, t, d)), relay.var("y", shape=(n, t, d))
    z = relay.concatenate((x, y), axis=-1)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    z = relay.concatenate((x, y), axis=2)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t, 200))
    z = relay.concatenate((x, y), axis=1)
    assert run_infer_type(z).checked_type == relay.TensorType((n, t + t, 100))
    with pytest.raises(tvm.error.TVMError):
        run_infer_type(
            relay.concatenate((relay.var("p", shape=(2, 5)), relay.var("q", shape=(2, 5))), axis=3)
        )
    x, y = relay.var("x", shape=(10, 5)), relay.var("y", shape=(10, 5))
    t = relay.var("z", shape=())
    z = relay.concatenate((x, y), axis=axis) + t
    a, b = rand(10, 5), rand(10, 5)
    np.testing.assert_allclose(
        evaluate(z, [x, y, t], a, b, np.float32(2)), np.concatenate((a, b), axis) + 2, rtol=1e-6
    )


def test_dropout_and_batch_norm() -> None:
    """Dropout keeps the type; batch norm gives three results."""
    n, t, d = te.size_var("n"), te.size_var("t"), te.size_var("d")
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    y = relay.nn.dropout(x, rate=0.75)
    assert "rate=" in y.astext()
    assert run_infer_type(y).checked_type == x.type_annotation
    data, beta, gamma, mean, var = (
        relay.var("data", relay.TensorType((3, 2, 1))),
        *(relay.var(name, relay.TensorType((2,))) for name in ("beta", "gamma", "moving_mean", "moving_var")),
    )
    y = relay.nn.batch_norm(data, gamma, beta, mean, var, center=False, scale=False)
    yy = run_infer_type(y.astuple())
    assert "center=" in yy.astext()
    vector = relay.TensorType((2,), "float32")
    assert yy.checked_type == relay.TupleType([relay.TensorType((3, 2, 1), "float32"), vector, vector])
    beta, gamma, mean, var = (relay.var(name, relay.TensorType((3,))) for name in ("b", "g", "m", "v"))
    y = relay.nn.batch_norm(data, gamma, beta, mean, var, axis=0)
    assert "axis=0" in y.astext()


def test_dense_and_bias_add() -> None:
    """Shapes that are inferred from the data, the unit count, and numbers."""
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    weight = relay.var("w", relay.TensorType((2, w), "float32"))
    y = relay.nn.dense(x, weight, units=2)
    assert "units=2" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, 2), "float32")
    wh, ww = te.size_var("wh"), te.size_var("ww")
    y = relay.nn.dense(
        relay.var("x", relay.TensorType((n, c, h, 2), "float32")),
        relay.var("w", relay.TensorType((ww, wh), "float32")),
    )
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h, ww), "float32")
    x, weight, bias = relay.var("x", shape=(10, 5)), relay.var("w", shape=(2, 5)), relay.var("b", shape=(2,))
    z = relay.nn.bias_add(relay.nn.dense(x, weight), bias)
    a, b, c = rand(10, 5), rand(2, 5), rand(2)
    np.testing.assert_allclose(evaluate(z, [x, weight, bias], a, b, c), a @ b.T + c, rtol=1e-5)
    # The weight's type may be left open: it follows from the units.
    z = run_infer_type(relay.nn.dense(relay.var("x", shape=(3, 4)), relay.var("w"), units=7))
    assert z.args[1].checked_type == relay.TensorType((7, 4), "float32")


def test_bitserial_type() -> None:
    """The output of a bit-serial product."""
    m, k = te.size_var("m"), te.size_var("k")
    x = relay.var("x", relay.TensorType((m, k), "int16"))
    w = relay.var("w", relay.TensorType((k, 32), "int16"))
    y = relay.nn.bitserial_dense(x, w, units=32)
    assert "units=8" not in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((m, 32), "int16")


def test_conv2d_infer_type() -> None:
    """Symbolic sizes, kernels given by the weight or by the attributes, layouts, output types."""
    n, c, h, w = te.size_var("n"), 10, 224, 224
    x = relay.var("x", relay.ty.TensorType((n, c, h, w), "float32"))
    weight = relay.var("w")
    y = relay.nn.conv2d(x, weight, kernel_size=(3, 3), padding=(1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224), "float32")
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3, 3), "float32")
    n, c, h, w = te.size_var("n"), 10, te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), "int8"))
    weight = relay.var("w", relay.TensorType((2, 10, 3, 3), "int8"))
    y = relay.nn.conv2d(x, weight, out_dtype="int32")
    assert 'out_dtype="int32"' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, 2, h - 2, w - 2), "int32")
    x = relay.var("x", relay.TensorType((1, 4, 224, 224, 4, 4), "int8"))
    y = relay.nn.conv2d(
        x,
        relay.var("wt"),
        kernel_size=(3, 3),
        padding=(1, 1),
        channels=16,
        data_layout="NCHW4n4c",
        kernel_layout="OIHW4o4i",
        out_dtype="int32",
    )
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((1, 4, 224, 224, 4, 4), "int32")
    assert yy.args[1].checked_type == relay.TensorType((4, 4, 3, 3, 4, 4), "int8")
    x = relay.var("x", relay.TensorType((1, 224, 224, 10), "float32"))
    y = relay.nn.conv2d(
        x,
        relay.var("wt2", relay.TensorType((3, 3, 10, 16))),
        channels=16,
        kernel_size=(3, 3),
        padding=(1, 1),
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype="int32",
    )
    assert run_infer_type(y).checked_type == relay.TensorType((1, 224, 224, 16), "int32")


def test_pooling_infer_type_and_numbers() -> None:
    """Maximum, average and adaptive pools, in each layout."""
    for op in (relay.nn.max_pool2d, relay.nn.avg_pool2d):
        n, c = te.size_var("n"), 10
        x = relay.var("x", relay.TensorType((n, c, 224, 224), "float32"))
        y = op(x, pool_size=(1, 1))
        assert "pool_size=" in y.astext()
        assert run_infer_type(y).checked_type == relay.TensorType((n, 10, 224, 224), "float32")
        y = op(relay.var("x", shape=(1, 3, 28, 28)), pool_size=(2, 2), strides=(2, 2), padding=(0, 0))
        assert run_infer_type(y).checked_type == relay.TensorType((1, 3, 14, 14))
    for op in (relay.nn.global_max_pool2d, relay.nn.global_avg_pool2d):
        n, c = te.size_var("n"), te.size_var("c")
        x = relay.var("x", relay.TensorType((n, 224, 224, c), "float32"))
        assert run_infer_type(op(x, layout="NHWC")).checked_type == relay.TensorType((n, 1, 1, c))
        x = relay.var("x", relay.TensorType((n, c, 224, 224), "float32"))
        assert run_infer_type(op(x)).checked_type == relay.TensorType((n, c, 1, 1))
    x = relay.var("x", shape=(1, 2, 8, 8))
    data = rand(1, 2, 8, 8)
    blocks = data.reshape(1, 2, 4, 2, 4, 2)
    for op, reduce in ((relay.nn.max_pool2d, np.max), (relay.nn.avg_pool2d, np.mean)):
        got = evaluate(op(x, pool_size=(2, 2), strides=(2, 2)), [x], data)
        np.testing.assert_allclose(got, reduce(blocks, axis=(3, 5)), rtol=1e-5)
    got = evaluate(relay.nn.adaptive_avg_pool2d(x, (4, 4)), [x], data)
    np.testing.assert_allclose(got, blocks.mean(axis=(3, 5)), rtol=1e-5)


def test_upsampling_and_pad_types() -> None:
    """Sizes that grow by a factor; pads on symbolic sizes."""
    n, c, h, w = te.size_var("n"), te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    y = relay.nn.upsampling(x, scale_h=2, scale_w=2, layout="NCHW", method="bilinear")
    assert 'method="BINLINEAR"' not in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, c, h * 2, w * 2), "float32")
    t = run_infer_type(
        relay.nn.pad(relay.var("t", relay.TensorType((n, c, h, w))), ((1, 1), (2, 2), (3, 3), (4, 4)))
    )
    assert "pad_width=" in t.astext()
    assert t.checked_type == relay.TensorType((n + 2, c + 4, h + 6, w + 8), "float32")


def test_flatten_lrn_l2() -> None:
    """Flatten of symbolic sizes; normalisations keep types."""
    d1, d2, d3, d4 = (te.size_var(f"d{i}") for i in range(4))
    x = relay.var("x", relay.TensorType((d1, d2, d3, d4), "float32"))
    assert run_infer_type(relay.nn.batch_flatten(x)).checked_type == relay.TensorType((d1, ((d2 * d3) * d4)))
    x = relay.var("x", relay.TensorType((3, 2, d3, d4), "float32"))
    assert run_infer_type(relay.nn.batch_flatten(x)).checked_type == relay.TensorType((3, ((2 * d3) * d4)))
    y = relay.nn.lrn(x, size=10, axis=2, bias=0.5, alpha=0.00001, beta=0.75)
    assert "alpha=" in y.astext()
    assert run_infer_type(y).checked_type == x.type_annotation
    y = relay.nn.l2_normalize(x, eps=0.001, axis=[1])
    assert "axis=" in y.astext()
    assert run_infer_type(y).checked_type == x.type_annotation
