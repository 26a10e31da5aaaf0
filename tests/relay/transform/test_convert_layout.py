"""ConvertLayout: the user's layouts, and what lies between follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis import list_op_freqs
from tilewright.relay.transform import ConvertLayout, InferType, LayoutConfig
from tilewright.support.errors import TilewrightError

GENERATOR = np.random.default_rng(0)


def network() -> relay.Expr:
    """Two convolutions, an activation, a bias and a pooling between them."""
    x, w1, w2 = (
        relay.var(name, shape=shape)
        for name, shape in (("x", (1, 8, 16, 16)), ("w1", (8, 8, 3, 3)), ("w2", (12, 8, 1, 1)))
    )
    bias = relay.const(np.ones((8, 1, 1), "float32"))
    first = relay.nn.relu(relay.nn.conv2d(x, w1, padding=(1, 1)) + bias)
    return relay.nn.conv2d(relay.nn.max_pool2d(first, (2, 2), (2, 2)), w2)


def converted(body: relay.Expr, layouts: dict[str, list[str]]) -> tvm.IRModule:
    """The module under the pass."""
    return InferType()(ConvertLayout(layouts)(tvm.IRModule.from_expr(body)))


@pytest.mark.parametrize(
    "layouts",
    [
        {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]},
        {"nn.conv2d": ["NHWC", "OHWI"]},
        {"nn.conv2d": ["NCHW", "OIHW"]},
    ],
)
def test_the_numbers_stay(layouts: dict[str, list[str]]) -> None:
    """For every layout that is asked for."""
    body = network()
    before = tvm.IRModule.from_expr(body)
    values = [
        GENERATOR.standard_normal(parameter.type_annotation.concrete_shape).astype("float32")
        for parameter in before["main"].params
    ]
    expected = relay.create_executor("debug", before).evaluate()(*values).numpy()
    found = relay.create_executor("debug", converted(body, layouts)).evaluate()(*values).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_each_tensor_is_transformed_once() -> None:
    """Data in and out, two weights and the bias."""
    after = converted(network(), {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]})
    assert list_op_freqs(after)["layout_transform"] == 5


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("nn.max_pool2d", lambda x, **layouts: relay.nn.max_pool2d(x, (2, 2), **layouts)),
        ("nn.global_avg_pool2d", lambda x, **layouts: relay.nn.global_avg_pool2d(x, **layouts)),
        ("image.resize2d", lambda x, layout="NCHW", **_: relay.image.resize2d(x, (8, 8), layout=layout)),
    ],
)
def test_an_operator_on_a_parameter_is_converted(name: str, make: Callable[..., relay.Expr]) -> None:
    """A layout that is asked for is used even where the argument has another one and nobody has changed it."""
    x = relay.var("x", shape=(1, 2, 4, 4))
    found = converted(make(x), {name: ["NHWC"]})
    inside = make(relay.layout_transform(x, "NCHW", "NHWC"), layout="NHWC", out_layout="NHWC")
    expected = tvm.IRModule.from_expr(relay.layout_transform(inside, "NHWC", "NCHW"))
    tvm.ir.assert_structural_equal(found, InferType()(expected))


def test_a_pool_with_a_layout_of_its_own_does_not_follow() -> None:
    """The convolution before it is converted, the pool that was asked to be in NCHW is not."""
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 1, 1))
    body = relay.nn.max_pool2d(relay.nn.conv2d(x, w), (2, 2))
    layouts = {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NCHW"]}
    text = str(converted(body, layouts)["main"])
    assert 'data_layout="NHWC"' in text and 'out_layout="NCHW"' in text and 'layout="NHWC", out' not in text


def test_the_layout_that_is_there_changes_nothing() -> None:
    """NCHW to NCHW."""
    module = InferType()(tvm.IRModule.from_expr(network()))
    after = ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(module)
    assert tvm.ir.structural_equal(after, module)


def test_layers_can_be_left_out() -> None:
    """By their number, in a LayoutConfig."""
    with LayoutConfig(skip_layers=[0]):
        after = converted(network(), {"nn.conv2d": ["NHWC", "default"]})
    text = after.astext(show_meta_data=False)
    assert text.count('data_layout="NHWC"') == 1


def test_what_cannot_be_converted_is_refused() -> None:
    """An operator without a rule, and layouts that are not a list."""
    with pytest.raises(TilewrightError, match="nn.softmax does not say"):
        ConvertLayout({"nn.softmax": ["NHWC"]})
    with pytest.raises(TilewrightError, match="a list of names"):
        ConvertLayout({"nn.conv2d": "NHWC"})


def test_within_a_sequence_a_bias_is_a_sum() -> None:
    """CanonicalizeOps, which the pass requires, runs first; the bias is then moved in the layout of its data."""
    x, w, b = (
        relay.var("x", shape=(1, 8, 8, 4)),
        relay.var("w", shape=(3, 3, 4, 4)),
        relay.var("b", shape=(4,)),
    )
    layer = relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", channels=4, kernel_size=(3, 3))
    given = relay.Function([x, w, b], relay.nn.bias_add(layer, b, axis=3))
    with tvm.transform.PassContext(opt_level=3):
        run = tvm.transform.Sequential([relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]})])
        found = run(tvm.IRModule.from_expr(given))["main"]
    moved = relay.nn.conv2d(
        relay.layout_transform(x, "NHWC", "NCHW"),
        relay.layout_transform(w, "HWIO", "OIHW"),
        channels=4,
        kernel_size=(3, 3),
    )
    bias = relay.layout_transform(relay.expand_dims(b, axis=0, num_newaxis=3), "NHWC", "NCHW")
    expected = relay.Function([x, w, b], relay.layout_transform(relay.add(moved, bias), "NCHW", "NHWC"))
    tvm.ir.assert_structural_equal(
        found, tvm.relay.transform.InferType()(tvm.IRModule.from_expr(expected))["main"]
    )


@pytest.mark.parametrize(("wanted", "kernel_layout"), [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_quantised_convolutions(wanted: str, kernel_layout: str) -> None:
    """Scales of each channel and what turns the sums to 8 bits follow the data: only the program's input and result are
    transposed."""
    random = np.random.default_rng(5)
    given = "NHWC" if wanted == "NCHW" else "NCHW"
    shape, kernel = ((1, 6, 6, 4), (3, 3, 4, 8)) if given == "NHWC" else ((1, 4, 6, 6), (8, 4, 3, 3))
    axis = given.index("C")
    x = relay.var("x", shape=shape, dtype="uint8")
    scales = relay.const(random.uniform(0.01, 0.02, 8).astype("float32"))
    sums = relay.qnn.op.conv2d(
        x,
        relay.const(random.integers(-9, 9, kernel).astype("int8")),
        relay.const(3),
        relay.const(0),
        relay.const(0.5),
        scales,
        kernel_size=(3, 3),
        channels=8,
        data_layout=given,
        kernel_layout="HWIO" if given == "NHWC" else "OIHW",
    )
    biased = relay.nn.bias_add(sums, relay.const(np.arange(8, dtype="int32")), axis=axis)
    scaled = relay.multiply(scales, relay.const(0.5))
    made = relay.qnn.op.requantize(
        *(biased, scaled, relay.const(0), relay.const(0.3), relay.const(7)), axis=axis, out_dtype="uint8"
    )
    module = tvm.IRModule.from_expr(relay.Function([x], made))
    passes = [
        relay.transform.ConvertLayout({"qnn.conv2d": [wanted, "default"]}),
        relay.transform.FoldConstant(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        converted = tvm.transform.Sequential(passes)(module)
    calls: list[Any] = []
    relay.analysis.post_order_visit(
        converted["main"], lambda node: calls.append(node) if isinstance(node, relay.Call) else None
    )
    names = [call.op.name for call in calls]
    (product,) = (call for call in calls if call.op.name == "qnn.conv2d")
    (narrowed,) = (call for call in calls if call.op.name == "qnn.requantize")
    assert (product.attrs.data_layout, product.attrs.kernel_layout) == (wanted, kernel_layout)
    assert names.count("layout_transform") == 2 and narrowed.attrs.axis == wanted.index("C")
    data = random.integers(0, 255, shape).astype("uint8")
    before, after = (
        relay.create_executor("graph", mod=one, target="llvm").evaluate()(data).numpy()
        for one in (module, converted)
    )
    np.testing.assert_array_equal(after, before)


def test_quantised_sums_and_concatenations_follow() -> None:
    """Between two quantised convolutions nothing is transposed, and the axis of a concatenation moves."""
    random = np.random.default_rng(6)
    x = relay.var("x", shape=(1, 5, 5, 4), dtype="int8")
    zero, one = relay.const(0), relay.const(1.0)

    def product(data: relay.Expr, channels: int) -> relay.Expr:
        weight = relay.const(random.integers(-2, 2, (3, 3, channels, 4)).astype("int8"))
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        sums = relay.qnn.op.conv2d(
            data, weight, zero, zero, one, one, kernel_size=(3, 3), channels=4, padding=(1, 1), **layouts
        )
        return relay.cast(relay.clip(sums, -20, 20), "int8")

    first = product(x, 4)
    added = relay.qnn.op.add(first, first, one, zero, one, zero, relay.const(2.0), zero)
    parts = relay.qnn.op.concatenate([added, first], [one, one], [zero, zero], one, zero, axis=3)
    module = tvm.IRModule.from_expr(relay.Function([x], product(parts, 8)))
    with tvm.transform.PassContext(opt_level=3):
        passes = [ConvertLayout({"qnn.conv2d": ["NCHW", "default"]}), relay.transform.FoldConstant()]
        after = tvm.transform.Sequential(passes)(module)
    assert list_op_freqs(after)["layout_transform"] == 2
    assert "axis=1" in str(after["main"])
    data = random.integers(-20, 20, (1, 5, 5, 4)).astype("int8")
    found, expected = (
        relay.create_executor("graph", mod=one, target="llvm").evaluate()(data).numpy()
        for one in (after, module)
    )
    np.testing.assert_array_equal(found, expected)
