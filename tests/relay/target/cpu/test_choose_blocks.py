"""choose_blocks: one choice for all convolutions that meet, by what the whole costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.relay.target.cpu.choose_blocks import choose_blocks
from tilewright.relay.transform import AlterOpLayout, FoldConstant, ReshapeUnmoved

TARGET = "llvm -mcpu=skylake-avx512"


def weight(*shape: int) -> relay.Constant:
    """Random numbers."""
    return relay.const(np.random.default_rng(sum(shape)).normal(size=shape).astype("float32"))


def conv(data: relay.Expr, outputs: int, inputs: int, size: int = 1, **options: object) -> relay.Expr:
    """A convolution that keeps the extents."""
    groups = int(options.get("groups", 1))  # type: ignore[call-overload]
    kernel = weight(outputs, inputs // groups, size, size)
    half = size // 2
    return relay.nn.conv2d(
        data, kernel, kernel_size=(size, size), channels=outputs, padding=(half, half), **options
    )


def blocks_of(expr: relay.Expr, target: str = TARGET) -> list[tuple[int, int]]:
    """The blocks of the convolutions in the order in which they run."""
    with tvm.target.Target(target):
        return list(choose_blocks(typed(expr)).blocks.values())


X = relay.var("x", shape=(1, 3, 64, 64))
WIDE = relay.var("wide", shape=(1, 64, 56, 56))


def test_the_input_is_read_where_it_lies() -> None:
    """Three channels of an image as NCHW: no change of layout is worth it."""
    assert blocks_of(relay.nn.relu(conv(X, 32, 3, 3, strides=(2, 2)))) == [(1, 16)]


def test_neighbours_agree() -> None:
    """Both branches of a sum, and what follows, have one block."""
    first = conv(WIDE, 64, 64)
    both = relay.nn.relu(conv(first, 64, 64) + conv(relay.nn.relu(first), 64, 64))
    assert [blocks[1] for blocks in blocks_of(conv(both, 64, 64))] == [16] * 4


def test_a_concatenation_of_parts_takes_a_block_that_divides_all() -> None:
    """Parts of 24 and 40 channels: the convolution after them reads blocks of eight, or of one of them."""
    start = conv(WIDE, 64, 64)
    joined = relay.concatenate([conv(start, 24, 64), conv(start, 40, 64)], axis=1)
    found = blocks_of(conv(joined, 64, 64))
    assert all(24 % block == 0 for block in (found[1][1], found[3][0])) or found[3][0] == 16


def channels_last_block(data: relay.Expr) -> relay.Expr:
    """A block as ConvNeXt has them: depthwise, then a product over channels that lie last, and a residual."""
    mixed = relay.transpose(conv(data, 96, 96, 7, groups=96), (0, 2, 3, 1))
    rows = relay.nn.dense(relay.reshape(mixed, (-1, 96)), weight(96, 96))
    back = relay.transpose(relay.reshape(rows, (1, 56, 56, 96)), (0, 3, 1, 2))
    return back * weight(96, 1, 1) + data


def convnext() -> relay.Expr:
    """A stem and two such blocks."""
    image = relay.var("x", shape=(1, 3, 224, 224))
    stem = relay.nn.conv2d(image, weight(96, 3, 4, 4), kernel_size=(4, 4), channels=96, strides=(4, 4))
    return channels_last_block(channels_last_block(stem))


def test_where_channels_lie_last_all_are_one_block() -> None:
    """NCHW96c of 96 channels is NHWC: the depthwise convolutions take it, and the stem makes it."""
    assert blocks_of(convnext()) == [(1, 96), (96, 96), (96, 96)]


def test_then_nothing_is_moved() -> None:
    """After the passes, one transform is left, at the result that leaves as NCHW."""
    with tvm.target.Target(TARGET):
        found = Counter(operators(after([AlterOpLayout(), FoldConstant(), ReshapeUnmoved()], convnext())))
    assert found["layout_transform"] == 1
    assert found["transpose"] == 0


def test_minimal_filtering_keeps_its_blocks() -> None:
    """Convolutions of three by three taps by Winograd run in the blocks that their tiles are made for."""
    assert blocks_of(conv(conv(WIDE, 64, 64, 3), 64, 64, 3)) == [(16, 16), (16, 16)]


def test_transposed_convolutions_keep_theirs() -> None:
    """What follows a transposed convolution reads the blocks that it makes."""
    start = relay.var("x", shape=(1, 16, 8, 8))
    wider = relay.nn.conv2d_transpose(start, weight(16, 32, 4, 4), strides=(2, 2), padding=(1, 1))
    assert blocks_of(conv(relay.nn.relu(wider), 32, 32)) == [(16, 16), (16, 16)]


@pytest.mark.parametrize(
    "expr",
    [
        relay.nn.conv2d(
            relay.var("x", shape=(1, 8, 8, 64)),
            weight(1, 1, 64, 64),
            kernel_size=(1, 1),
            channels=64,
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
        conv(relay.var("x", shape=(1, relay.Any(), 8, 8)), 64, 64),
        relay.nn.relu(WIDE),
    ],
    ids=["another layout", "channels that are not known", "no convolution"],
)
def test_what_is_not_asked_has_no_blocks(expr: relay.Expr) -> None:
    """The operator's own choice stays."""
    assert blocks_of(expr) == []


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
def test_the_numbers_stay(target: str) -> None:
    """Compiled with layouts changed and without."""
    image = relay.var("x", shape=(1, 3, 32, 32))
    stem = relay.nn.conv2d(image, weight(96, 3, 4, 4), kernel_size=(4, 4), channels=96, strides=(4, 4))
    mixed = relay.transpose(conv(stem, 96, 96, 7, groups=96), (0, 2, 3, 1))
    rows = relay.nn.dense(relay.reshape(mixed, (-1, 96)), weight(96, 96))
    back = relay.transpose(relay.reshape(rows, (1, 8, 8, 96)), (0, 3, 1, 2))
    parts = relay.concatenate([conv(back * weight(96, 1, 1) + stem, 24, 96), conv(stem, 40, 96)], axis=1)
    function = relay.Function([image], conv(relay.nn.relu(parts), 32, 64, 3, strides=(2, 2)))
    data = np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype("float32")
    results = []
    for disabled in ([], ["AlterOpLayout"]):
        with tvm.transform.PassContext(opt_level=3, disabled_pass=disabled):
            executor = relay.create_executor("graph", tvm.IRModule.from_expr(function), target=target)
            results.append(executor.evaluate()(data).numpy())
    assert np.abs(results[0] - results[1]).max() < 1e-5 * np.abs(results[1]).max()


@pytest.mark.parametrize("branch", [relay.sigmoid, lambda y: relay.less(y, relay.const(0.0))])
def test_branches_of_a_convolution_that_is_read_plain_stay_in_blocks(
    branch: Callable[[relay.Expr], relay.Expr],
) -> None:
    """Only where they have joined is the result transformed, once."""
    x = relay.var("x", shape=(1, 64, 1, 999))
    made = relay.nn.conv2d(x, relay.const(np.ones((128, 64, 1, 1), "float32")))
    made = relay.where(branch(made), made, relay.multiply(made, relay.const(0.25)))
    made = relay.cumsum(relay.reshape(made, (128, -1)), axis=1)
    with tvm.transform.PassContext(opt_level=3):
        found, _ = relay.optimize(tvm.IRModule.from_expr(relay.Function([x], made)), "llvm -mcpu=core-avx2")
    assert operators(found["main"]).count("layout_transform") == 1
