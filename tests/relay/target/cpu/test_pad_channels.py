"""PadChannels: full vectors of channels, the same result, and no padding where it would not pay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.relay.transform.checks import after, assert_same_value, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.op.shapes import dims
from tilewright.relay.target.cpu.pad_channels import PadChannels

TARGET = "llvm -mcpu=skylake-avx512"


def weight(*shape: int) -> relay.Constant:
    """Random numbers."""
    values = np.random.default_rng(sum(shape)).normal(size=shape)
    return relay.const((values / np.sqrt(max(np.prod(shape[1:]), 1))).astype("float32"))


def conv(data: relay.Expr, outputs: int, inputs: int, size: int = 1, **options: object) -> relay.Expr:
    """A convolution that keeps the extents, with a bias."""
    groups = int(options.get("groups", 1))  # type: ignore[call-overload]
    kernel = weight(outputs, inputs // groups, size, size)
    made = relay.nn.conv2d(
        data, kernel, kernel_size=(size, size), channels=outputs, padding=(size // 2, size // 2), **options
    )
    return relay.add(made, weight(outputs, 1, 1))


def padded(body: relay.Expr, target: str = TARGET) -> relay.Function:
    """The function after the pass; it computes the same."""
    start = typed(body)
    with tvm.target.Target(target):
        made = after(PadChannels(), start)
    assert_same_value(start, made, rtol=1e-4, atol=1e-4)
    return made


def channels(function: relay.Function, name: str = "nn.conv2d") -> list[int]:
    """The channels of the results of an operator's calls, in order."""
    found: list[int] = []

    def look(expr: relay.Expr) -> None:
        if isinstance(expr, relay.Call) and getattr(expr.op, "name", "") == name:
            extent = dims(expr.checked_type)[1]
            assert isinstance(extent, int)
            found.append(extent)

    relay.analysis.post_order_visit(function, look)
    return found


X = relay.var("x", shape=(1, 32, 14, 14))


def squeezed(data: relay.Expr, count: int) -> relay.Expr:
    """Channels that are scaled by what a small network makes of their means."""
    means = relay.mean(data, axis=(2, 3), keepdims=True)
    narrow = relay.nn.relu(conv(means, 13, count))
    return data * relay.sigmoid(conv(narrow, count, 13))


def block(data: relay.Expr, inputs: int, inner: int, outputs: int) -> relay.Expr:
    """An inverted bottleneck."""
    wide = conv(data, inner, inputs)
    wide = wide * relay.sigmoid(wide)
    deep = conv(wide, inner, inner, 3, groups=inner)
    return conv(relay.clip(squeezed(deep, inner), 0.0, 6.0), outputs, inner)


def test_a_bottleneck_is_padded_throughout() -> None:
    """162 channels are 176, 27 are 32, and nothing is cut off before the end; the squeezed pixel stays."""
    first = block(X, 32, 162, 27)
    made = padded(conv(block(first, 27, 162, 27) + first, 64, 27))
    assert channels(made) == [176, 176, 13, 176, 32] * 2 + [64]
    assert "strided_slice" not in operators(made) and "nn.pad" not in operators(made)


def test_the_end_cuts_the_padding_off() -> None:
    """A result of 255 channels has 255."""
    made = padded(relay.sigmoid(conv(X, 255, 32)))
    assert channels(made) == [256]
    assert dims(made.ret_type)[1] == 255


def test_parts_of_a_concatenation_are_padded_each() -> None:
    """60 and 60 channels are 64 and 64, and the next convolution has weights of zero between them; what is added to
    the concatenation is made in the same order."""
    narrow = relay.nn.relu(conv(X, 60, 32))
    both = relay.concatenate([narrow, relay.nn.relu(conv(narrow, 60, 60, 3, groups=60))], axis=1)
    made = padded(conv(both + conv(X, 120, 32), 64, 120))
    assert channels(made) == [64, 64, 128, 64]
    assert channels(made, "concatenate") == [128]
    assert "strided_slice" not in operators(made)


def test_further_channels_follow_the_padding() -> None:
    """A residual of 27 channels that is added to 38 of a wider image: 32 are padded to 48."""
    first = conv(X, 27, 32)
    wider = relay.nn.pad(first, ((0, 0), (0, 11), (0, 0), (0, 0)))
    made = padded(conv(conv(first, 38, 27) + wider, 64, 38))
    assert channels(made) == [32, 48, 64] and channels(made, "nn.pad") == [48]
    assert "strided_slice" not in operators(made)


def test_further_channels_after_what_is_not_zero() -> None:
    """sigmoid(0) is a half: the padding of the residual is not added to real channels."""
    first = relay.sigmoid(conv(X, 27, 32))
    wider = relay.nn.pad(first, ((0, 0), (0, 11), (0, 0), (0, 0)))
    padded(conv(conv(first, 38, 27) + wider, 64, 38))


def test_images_from_elsewhere_are_padded_where_they_are_added() -> None:
    """The other operand is a parameter."""
    other = relay.var("other", shape=(1, 151, 14, 14))
    made = padded(conv(relay.nn.relu(conv(X, 151, 32, 3) + other), 64, 151, 3))
    assert channels(made) == [160, 64] and channels(made, "nn.pad") == [160]


def test_one_channel_for_all() -> None:
    """A map of one channel scales all of them, and stays one."""
    first = conv(X, 151, 32)
    scale = relay.sigmoid(conv(X, 1, 32, 3))
    made = padded(conv(first * scale + scale, 64, 151))
    assert channels(made) == [160, 1, 64]


BY_CHANNEL: dict[str, Callable[[relay.Expr], relay.Expr]] = {
    "max_pool2d": lambda x: relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2)),
    "avg_pool2d": lambda x: relay.nn.avg_pool2d(x, pool_size=(3, 3), padding=(1, 1)),
    "global_avg_pool2d": relay.nn.global_avg_pool2d,
    "upsampling": lambda x: relay.nn.upsampling(x, 2, 2),
    "bias_add": lambda x: relay.nn.bias_add(x, weight(151)),
    "prelu": lambda x: relay.nn.prelu(x, weight(151)),
    "divide": lambda x: x / relay.const(np.arange(1, 152, dtype="float32").reshape(151, 1, 1)),
    "pad": lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (2, 0)), 1.0),
    "hard swish": lambda x: x * relay.clip(x + relay.const(3.0), 0.0, 6.0) / relay.const(6.0),
}


@pytest.mark.parametrize("name", BY_CHANNEL)
def test_operators_by_channel_keep_the_padding(name: str) -> None:
    """Nothing is cut off between the convolutions."""
    made = padded(conv(BY_CHANNEL[name](conv(X, 151, 32, 3)), 64, 151))
    assert channels(made) == [160, 64] and "strided_slice" not in operators(made)


@pytest.mark.parametrize(
    "body",
    [
        conv(conv(X, 64, 32), 96, 64),
        conv(conv(X, 24, 32), 96, 24),
        conv(relay.nn.softmax(conv(X, 58, 32), axis=1), 32, 58),
        conv(conv(X, 6, 32), 32, 6),
    ],
    ids=["whole vectors", "a vector and a half", "softmax over channels", "few channels"],
)
def test_what_stays(body: relay.Expr) -> None:
    """No padding where vectors are full, or as full as with it, or where it would have to be cut off again."""
    with tvm.target.Target(TARGET):
        assert_structural_equal(after(PadChannels(), body), typed(body))


def test_open_sizes() -> None:
    """Heights and widths may be open."""
    data = relay.var("data", shape=(relay.Any(), 32, relay.Any(), relay.Any()))
    with tvm.target.Target(TARGET):
        made = after(PadChannels(), conv(relay.nn.relu(conv(data, 151, 32, 3)), 64, 151))
    assert channels(made) == [160, 64]


def test_compiled() -> None:
    """The whole way, on this machine: padded blocks, a partial residual in the epilogue."""
    first = conv(X, 27, 32)
    wider = relay.nn.pad(first, ((0, 0), (0, 11), (0, 0), (0, 0)))
    start = typed(relay.nn.relu(conv(block(first, 27, 162, 38) + wider, 95, 38)))
    data = np.random.default_rng(1).standard_normal((1, 32, 14, 14)).astype("float32")
    module = tvm.IRModule.from_expr(start)
    expected = relay.create_executor("debug", module).evaluate()(data).numpy()
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", module).evaluate()(data).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
