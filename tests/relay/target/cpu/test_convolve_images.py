"""ConvolveImages: lines and volumes as images, what goes along with them, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.target.cpu import convolve_images
from tilewright.relay.transform import ConvolveImages
from tilewright.relay.transform.lib.rewriting import is_call
from tilewright.target.cpu import describe_cpu

CONVOLUTIONS = {1: relay.nn.conv1d, 3: relay.nn.conv3d}
GENERATOR = np.random.default_rng(3)


def as_images(function: relay.Expr) -> relay.Function:
    """The function after the pass, for the processor."""
    with tvm.target.Target("llvm"):
        return after(ConvolveImages(), function)


def weights(*shape: int) -> relay.Expr:
    """A constant of normal noise."""
    return relay.const(GENERATOR.standard_normal(shape).astype("float32"))


def assert_same(given: relay.Function, made: relay.Function) -> None:
    """Both give the same, on the reference interpreter and compiled."""
    arrays = [
        GENERATOR.standard_normal([int(extent) for extent in one.checked_type.shape]).astype("float32")
        for one in typed(given).params
    ]
    module = tvm.IRModule.from_expr(given)
    expected = relay.create_executor("debug", module).evaluate()(*arrays).numpy()
    interpreted = relay.create_executor("debug", tvm.IRModule.from_expr(made)).evaluate()(*arrays).numpy()
    with tvm.transform.PassContext(opt_level=3):
        compiled = relay.create_executor("graph", module).evaluate()(*arrays).numpy()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(interpreted, expected, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 4, 11), (6, 4, 3), {}),
        ((2, 4, 11), (6, 4, 3), {"padding": (1, 2), "strides": (2,)}),
        ((2, 4, 11), (4, 2, 3), {"groups": 2, "dilation": (2,)}),
        ((1, 4, 11), (4, 1, 5), {"groups": 4, "padding": (2, 2)}),
        ((1, 3, 5, 6, 7), (4, 3, 3, 3, 3), {"padding": (1, 1, 1)}),
        ((2, 3, 5, 6, 7), (4, 3, 3, 3, 3), {"padding": (1, 1, 1), "strides": (2, 2, 2)}),
        ((1, 3, 7, 6, 7), (4, 3, 2, 1, 3), {"padding": (2, 0, 1, 1, 0, 2), "dilation": (3, 1, 2)}),
        ((2, 4, 5, 6, 7), (4, 4, 3, 1, 1), {"padding": (1, 0, 0)}),
        ((1, 4, 5, 6, 7), (4, 4, 1, 1, 1), {"strides": (2, 1, 1)}),
        ((2, 4, 5, 6, 7), (4, 2, 1, 3, 3), {"groups": 2}),
    ],
)
def test_a_convolution(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Is one of images, and the same."""
    data = relay.var("data", shape=shape)
    made = CONVOLUTIONS[len(shape) - 2](data, weights(*kernel), **attributes)
    given = relay.Function([data], made)
    found = as_images(given)
    assert "nn.conv2d" in operators(found)
    assert not {"nn.conv1d", "nn.conv3d"} & set(operators(found))
    assert_same(given, found)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("parts", [1, 3])
def test_kernels_of_one_pixel_see_frames_as_rows(
    batch: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is copied for each frame of the kernel, and a second such kernel takes the rows as they are."""
    monkeypatch.setattr(convolve_images, "_parts", lambda walk, dtype: parts)
    data = relay.var("data", shape=(batch, 4, 5, 6, 7))
    made = relay.nn.conv3d(data, weights(8, 4, 1, 3, 3), padding=(0, 1, 1))
    made = relay.nn.relu(relay.nn.bias_add(made, weights(8)))
    made = relay.nn.conv3d(made, weights(8, 8, 3, 1, 1), padding=(2, 0, 0, 1, 0, 0), strides=(2, 1, 1))
    made = relay.nn.conv3d(made, weights(8, 1, 2, 1, 1), groups=8, dilation=(2, 1, 1))
    given = relay.Function([data], relay.nn.relu(made))
    found = as_images(given)
    assert operators(found).count("nn.conv2d") == 3
    assert operators(found).count("nn.contrib_frames_to_rows") == 1
    assert not {"concatenate", "strided_slice", "nn.conv3d"} & set(operators(found))
    assert_same(given, found)


def test_large_volumes_become_images_that_fit_into_a_cache() -> None:
    """Whole rows of frames each."""
    data = relay.var("data", shape=(1, 64, 16, 112, 112))
    made = relay.nn.conv3d(data, weights(64, 64, 7, 1, 1), padding=(3, 0, 0))
    found = as_images(relay.Function([data], made))
    rows: list[relay.Expr] = []
    post_order_visit(
        found.body, lambda one: rows.append(one) if is_call(one, "nn.contrib_frames_to_rows") else None
    )
    batch, channels, depth, pixels = (int(extent) for extent in rows[0].checked_type.shape)
    assert (channels, depth, batch * pixels) == (64, 16, 112 * 112)
    assert pixels % 112 == 0
    assert pixels == 112 or channels * depth * pixels * 4 <= describe_cpu(tvm.target.Target("llvm")).l2_bytes


@pytest.mark.parametrize("batch", [1, 2])
def test_large_volumes_are_summed(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where frames beside one another would be too large, one convolution for each frame of the kernel."""
    monkeypatch.setattr(convolve_images, "LARGEST_STACK", 0)
    data = relay.var("data", shape=(batch, 3, 5, 6, 7))
    made = relay.nn.conv3d(data, weights(4, 3, 3, 3, 3), padding=(1, 1, 1), strides=(2, 1, 2))
    given = relay.Function([data], relay.nn.relu(made))
    found = as_images(given)
    assert operators(found).count("nn.conv2d") == 3
    assert "concatenate" not in operators(found)
    assert_same(given, found)


@pytest.mark.parametrize("rank", [1, 3])
def test_what_follows_goes_along(rank: int) -> None:
    """Bias, activation and a residual are computed on images; order is restored once, at the end."""
    extents = {1: (9,), 3: (3, 5, 6)}[rank]
    data = relay.var("data", shape=(1, 4, *extents))
    ones = (1,) * rank
    first = CONVOLUTIONS[rank](data, weights(4, 4, *(3,) * rank), padding=ones)
    first = relay.nn.relu(relay.add(first, weights(4, *ones)))
    second = CONVOLUTIONS[rank](first, weights(4, 4, *(3,) * rank), padding=ones)
    second = relay.multiply(relay.nn.bias_add(second, weights(4)), relay.const(0.5))
    given = relay.Function([data], relay.nn.relu(relay.add(second, first)))
    found = as_images(given)
    assert_same(given, found)
    end = found.body
    assert end.op.name == {1: "reshape", 3: "transpose"}[rank]
    before_end = end.args[0] if rank == 1 else end.args[0].args[0]
    assert before_end.op.name == "nn.relu"
    assert operators(found).count("transpose") == (0 if rank == 1 else 4)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ((4, 6, 2, 2, 2), {"strides": (2, 2, 2)}),
        ((4, 6, 3, 3, 2), {"strides": (3, 2, 1), "padding": (0, 1, 1, 0, 1, 0)}),
        ((4, 6, 1, 4, 4), {"strides": (1, 2, 2), "output_padding": (0, 1, 1)}),
    ],
)
def test_a_transposed_convolution(batch: int, kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Is one of images where the frames of its result do not overlap, and goes on with what follows."""
    data = relay.var("data", shape=(batch, 4, 3, 5, 6))
    made = relay.nn.relu(relay.nn.conv3d_transpose(data, weights(*kernel), **attributes))
    made = relay.nn.conv3d(made, weights(4, 6, 1, 3, 3))
    given = relay.Function([data], made)
    found = as_images(given)
    assert "nn.conv2d_transpose" in operators(found)
    assert "nn.conv3d_transpose" not in operators(found)
    assert_same(given, found)


@pytest.mark.parametrize("attributes", [{"strides": (1, 2, 2)}, {"strides": (2, 2, 2), "padding": (1, 0, 0)}])
def test_overlapping_frames_of_transposed_convolutions_stay(attributes: dict[str, Any]) -> None:
    """They are sums of several."""
    data = relay.var("data", shape=(1, 4, 3, 5, 6))
    made = relay.nn.conv3d_transpose(data, weights(4, 6, 2, 2, 2), **attributes)
    assert "nn.conv3d_transpose" in operators(as_images(relay.Function([data], made)))


def test_norms_of_a_volume_stay_on_its_images() -> None:
    """The mean and the variance of all frames, and what is computed with them."""
    data = relay.var("data", shape=(1, 4, 3, 5, 6))
    made = relay.nn.conv3d(data, weights(4, 4, 3, 3, 3), padding=(1, 1, 1))
    made = relay.nn.leaky_relu(relay.nn.instance_norm(made, weights(4), weights(4)), 0.1)
    made = relay.nn.conv3d(made, weights(4, 4, 3, 3, 3), padding=(1, 1, 1))
    given = after(relay.transform.SimplifyInference(), relay.Function([data], made))
    found = as_images(given)
    assert_same(given, found)
    # Of the data, of both weights, and of the result.
    assert operators(found).count("transpose") == 4


LINE, VOLUME = (1, 4, 9), (2, 4, 3, 6, 7)
WITHIN_IMAGES = {
    "pad": (LINE, lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (2, 1)), 0.5)),
    "pad channels": (LINE, lambda x: relay.nn.pad(x, ((0, 0), (1, 0), (0, 0)), pad_mode="edge")),
    "pad a volume": (VOLUME, lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (0, 0), (1, 0), (0, 2)))),
    "slice": (LINE, lambda x: relay.strided_slice(x, (0, 0, 0), (1, 4, -2))),
    "slice by axes": (LINE, lambda x: relay.strided_slice(x, (1, 8), (3, 0), (1, -2), axes=(1, -1))),
    "slice sizes": (LINE, lambda x: relay.strided_slice(x, (0, 1, 2), (-1, 2, 5), slice_mode="size")),
    "slice a volume": (VOLUME, lambda x: relay.strided_slice(x, (0, 0, 0, 1), (2, 3, 3, 5))),
    "slice nothing off": (LINE, lambda x: relay.strided_slice(x, (0,), (9,), axes=(2,))),
    "concatenate": (
        LINE,
        lambda x: relay.concatenate([x, relay.exp(x), relay.const(np.ones(LINE, "f4"))], 1),
    ),
    "concatenate columns": (LINE, lambda x: relay.concatenate([x, relay.exp(x)], -1)),
    "concatenate volumes": (VOLUME, lambda x: relay.concatenate([x, relay.exp(x)], 1)),
    "max": (LINE, lambda x: relay.nn.max_pool1d(x, 3, 2, padding=(1, 0), ceil_mode=True)),
    "max of dilated windows": (LINE, lambda x: relay.nn.max_pool1d(x, (2,), (1,), (3,))),
    "average": (LINE, lambda x: relay.nn.avg_pool1d(x, 3, 1, padding=(1, 1), count_include_pad=True)),
    "max of a volume": (VOLUME, lambda x: relay.nn.max_pool3d(x, (1, 3, 2), (1, 2, 1), padding=(0, 1, 0))),
    "average of a volume": (VOLUME, lambda x: relay.nn.avg_pool3d(x, (1, 2, 2), (1, 2, 2))),
    "average to a size": (LINE, lambda x: relay.nn.adaptive_avg_pool1d(x, 4)),
    "normalize": (LINE, lambda x: relay.mean(x, 2, keepdims=True) + x / relay.variance(x, 2, keepdims=True)),
    "normalize batches": ((2, 4, 9), lambda x: x / relay.sum(x, axis=2, keepdims=True)),
    "mean of frames": (VOLUME, lambda x: x - relay.mean(x, axis=(3, 4), keepdims=True)),
    "max to a size": (LINE, lambda x: relay.nn.adaptive_max_pool1d(x, 1)),
}


@pytest.mark.parametrize("what", WITHIN_IMAGES)
def test_what_stays_within_images_goes_along(what: str) -> None:
    """Between two convolutions there is no reshape or transpose, but of a constant."""
    shape, build = WITHIN_IMAGES[what]
    rank = len(shape) - 2
    data = relay.var("data", shape=shape)
    between = typed(build(CONVOLUTIONS[rank](data, weights(4, 4, *(1,) * rank))))
    channels = int(between.body.checked_type.shape[1])
    second = CONVOLUTIONS[rank](between.body, weights(5, channels, *(1,) * rank))
    given = relay.Function([data], second)
    found = as_images(given)
    assert operators(found).count("nn.conv2d") == 2
    moves = [name for name in operators(found) if name in ("reshape", "transpose")]
    constants = 1 if what == "concatenate" else 0
    # Two for the weights, and the way in and out; a volume also transposes each weight.
    assert len(moves) == constants + {1: 4, 3: 8}[rank]
    assert_same(given, found)


@pytest.mark.parametrize("reduce", [relay.max, relay.mean, relay.variance])
def test_a_reduction_of_a_line_reads_its_image(reduce: Any) -> None:
    """Nothing moves before it, and its result is no image."""
    data = relay.var("data", shape=(2, 4, 9))
    given = relay.Function([data], reduce(relay.nn.conv1d(data, weights(4, 4, 3)), axis=-1))
    found = as_images(given)
    # The weight's, and the way in.
    assert operators(found).count("reshape") == 2 + operators(typed(given)).count("reshape")
    assert_same(given, found)


FRAMES = {
    "mean": lambda x: relay.mean(x, axis=(2, 3, 4)),
    "pad": lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0), (0, 0))),
    "slice": lambda x: relay.strided_slice(x, (1,), (3,), axes=(2,)),
    "concatenate": lambda x: relay.concatenate([x, x], 2),
    "max": lambda x: relay.nn.max_pool3d(x, (2, 1, 1)),
}


@pytest.mark.parametrize("what", FRAMES)
def test_what_moves_frames_is_of_the_volume(what: str) -> None:
    """Frames are a batch of images: what combines them is not an operator on images."""
    data = relay.var("data", shape=VOLUME)
    given = relay.Function([data], FRAMES[what](relay.nn.conv3d(data, weights(4, 4, 1, 1, 1))))
    found = as_images(given)
    assert operators(found)[-1] == operators(typed(given))[-1]
    assert_same(given, found)


def test_a_transposed_convolution_of_a_line_is_an_image_already() -> None:
    """What follows is computed on the image of one row that it was reshaped from."""
    data = relay.var("data", shape=(1, 4, 1, 9))
    made = relay.nn.relu(relay.squeeze(relay.exp(data), axis=[2]))
    given = relay.Function([data], relay.nn.conv1d(made, weights(4, 4, 3)))
    found = as_images(given)
    # The weight's, and the one at the end.
    assert operators(found).count("reshape") == 2
    assert_same(given, found)


def test_an_operand_along_the_line_stays_outside() -> None:
    """What differs from pixel to pixel is not the same for all images."""
    data = relay.var("data", shape=(2, 4, 9))
    made = relay.multiply(relay.nn.conv1d(data, weights(4, 4, 1)), weights(9))
    given = relay.Function([data], made)
    found = as_images(given)
    assert found.body.op.name == "multiply"
    assert_same(given, found)


@pytest.mark.parametrize(
    "given",
    [
        relay.nn.conv3d(
            relay.var("x", shape=(1, 4, 5, 6, 7)), relay.var("w", shape=(4, 1, 3, 3, 3)), groups=4
        ),
        relay.nn.conv1d(relay.var("x", shape=(1, 4, relay.Any())), relay.var("w", shape=(4, 4, 3))),
        relay.nn.conv1d(
            relay.var("x", shape=(1, 9, 4)),
            relay.var("w", shape=(3, 4, 4)),
            data_layout="NWC",
            kernel_layout="WIO",
            kernel_size=3,
            channels=4,
        ),
        relay.nn.conv1d(
            relay.var("x", shape=(1, 4, 9), dtype="int8"), relay.var("w", shape=(4, 4, 3), dtype="int8")
        ),
    ],
    ids=["groups of several frames", "unknown extent", "another layout", "integers"],
)
def test_what_stays(given: relay.Expr) -> None:
    """Nothing changes."""
    assert_structural_equal(as_images(given), typed(given))


def test_other_targets_keep_theirs() -> None:
    """Graphics processors have kernels of their own."""
    given = relay.nn.conv1d(relay.var("x", shape=(1, 4, 9)), relay.var("w", shape=(4, 4, 3)))
    with tvm.target.Target("cuda"):
        assert_structural_equal(after(ConvolveImages(), given), typed(given))
