"""AlterOpLayout: blocked layouts flow through a network, and each tensor is transformed once."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis import list_op_freqs, post_order_visit
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.relay.transform import AlterOpLayout, InferType
from tilewright.runtime.container import ADT

GENERATOR = np.random.default_rng(0)
TARGET = tvm.target.Target("llvm -mcpu=skylake-avx512")


def altered(*outputs: relay.Expr) -> tvm.IRModule:
    """The module of these outputs under the pass."""
    body = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
    with TARGET:
        return InferType()(AlterOpLayout()(tvm.IRModule.from_expr(body)))


def same_numbers(before: tvm.IRModule, after: tvm.IRModule) -> None:
    """Both modules compute the same, on the reference executor."""
    values = [
        (GENERATOR.standard_normal(parameter.type_annotation.concrete_shape) * 0.3).astype("float32")
        for parameter in before["main"].params
    ]
    first = relay.create_executor("debug", before).evaluate()(*values)
    second = relay.create_executor("debug", after).evaluate()(*values)
    several = isinstance(first, (list, ADT))
    for one, other in zip(first if several else [first], second if several else [second], strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


def layouts_of(module: tvm.IRModule, operator: str) -> list[str]:
    """The data layouts of the calls of an operator."""
    found: list[str] = []

    def visit(node: object) -> None:
        if isinstance(node, relay.Call) and getattr(node.op, "name", "") == operator:
            found.append(getattr(node.attrs, "data_layout", None) or node.attrs.layout)

    post_order_visit(module["main"], visit)
    return found


def test_blocks_pass_through_what_lies_between_convolutions() -> None:
    """Activation, bias, residual, pooling and concatenation stay in blocks: data is transformed on the way in and on
    the way out, and each weight once."""
    x, w1, w2 = (
        relay.var(name, shape=shape)
        for name, shape in (("x", (1, 32, 16, 16)), ("w1", (32, 32, 3, 3)), ("w2", (64, 64, 1, 1)))
    )
    bias = relay.const(np.ones((32, 1, 1), "float32"))
    first = relay.nn.relu(relay.nn.conv2d(x, w1, padding=(1, 1)) + bias) + x
    pooled = relay.nn.max_pool2d(relay.concatenate([first, first], axis=1), (2, 2), (2, 2))
    result = relay.nn.global_avg_pool2d(relay.nn.conv2d(pooled, w2))
    before = tvm.IRModule.from_expr(result)
    after = altered(result)
    counts = list_op_freqs(after)
    assert counts["nn.contrib_conv2d_NCHWc"] == 2
    # x, two weights and the bias, and the result: no tensor twice.
    assert counts["layout_transform"] == 5
    assert layouts_of(after, "nn.max_pool2d") == ["NCHW16c"]
    assert layouts_of(after, "nn.global_avg_pool2d") == ["NCHW16c"]
    same_numbers(before, after)


def in_blocks(attrs: object, inputs: list[relay.Expr], tinfos: list[object], out_type: object) -> relay.Expr:
    """A convolution with its data in blocks of 16 channels."""
    return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW16c"})  # type: ignore[call-overload]


def test_operands_of_fewer_dimensions_get_all_of_them() -> None:
    """A bias gets the axes that it lacks, one number stays, and a sum over the channels keeps a part of one element."""
    x, w, bias, one = (
        relay.var(name, shape=shape)
        for name, shape in (("x", (1, 32, 8, 8)), ("w", (32, 32, 1, 1)), ("b", (32, 1, 1)), ("n", (1, 1)))
    )
    layer = relay.nn.conv2d(x, w, channels=32, kernel_size=(1, 1))
    total = relay.sum((layer + bias) * one, axis=1, keepdims=True)
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks):
        found = InferType()(AlterOpLayout()(tvm.IRModule.from_expr(total)))
    data = relay.layout_transform(x, "NCHW", "NCHW16c")
    layer = relay.nn.conv2d(data, w, channels=32, kernel_size=(1, 1), data_layout="NCHW16c")
    added = relay.layout_transform(relay.expand_dims(bias, axis=0), "NCHW", "NCHW16c")
    total = relay.sum((layer + added) * one, axis=(1, 4), keepdims=True)
    expected = tvm.IRModule.from_expr(relay.layout_transform(total, "NCHW1c", "NCHW"))
    tvm.ir.assert_structural_equal(found, InferType()(expected))


def test_depthwise_and_dense_layers_have_blocks_too() -> None:
    """With the weight's own order of blocks."""
    x, w, d = (
        relay.var(name, shape=shape)
        for name, shape in (("x", (2, 32, 8, 8)), ("w", (32, 1, 3, 3)), ("d", (48, 32)))
    )
    mixed = relay.nn.conv2d(x, w, padding=(1, 1), groups=32, channels=32, kernel_size=(3, 3))
    result = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(mixed)), d)
    after = altered(result)
    counts = list_op_freqs(after)
    assert counts["nn.contrib_depthwise_conv2d_NCHWc"] == 1
    assert counts["nn.contrib_dense_pack"] == 1
    same_numbers(tvm.IRModule.from_expr(result), after)


def test_operators_that_name_axes_get_whole_ones() -> None:
    """A softmax over channels works on the program's layout, a sum over channels on the blocks."""
    x, w = relay.var("x", shape=(1, 16, 4, 4)), relay.var("w", shape=(32, 16, 1, 1))
    features = relay.nn.conv2d(x, w)
    results = (
        relay.nn.softmax(features, axis=1),
        relay.sum(features, axis=1),
        relay.transpose(features, (0, 2, 3, 1)),
    )
    same_numbers(tvm.IRModule.from_expr(relay.Tuple(results)), altered(*results))


def test_a_program_without_convolutions_stays_the_same_object() -> None:
    """There is nothing to do."""
    x, y = relay.var("x", shape=(1, 16, 4, 4)), relay.var("y", shape=(4,))
    module = InferType()(tvm.IRModule.from_expr(relay.nn.softmax(relay.exp(x) + y)))
    with TARGET:
        after = AlterOpLayout()(module)
    assert after["main"].body is module["main"].body


def test_channels_of_no_use_to_vectors_stay_plain() -> None:
    """One output channel fills no vector."""
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(1, 3, 3, 3))
    result = relay.nn.conv2d(x, w)
    after = altered(result)
    assert list_op_freqs(after) == {"nn.conv2d": 1}


def test_control_flow_and_calls_of_functions_are_in_the_layout_of_the_program() -> None:
    """Branches and closures see what they were written for."""
    x, w = relay.var("x", shape=(1, 16, 4, 4)), relay.var("w", shape=(16, 16, 1, 1))
    condition = relay.const(True)
    features = relay.nn.conv2d(x, w)
    result = relay.If(condition, relay.exp(features), relay.nn.conv2d(features, w))
    same_numbers(tvm.IRModule.from_expr(result), altered(result))


def test_a_chain_of_five_thousand_convolutions_and_activations() -> None:
    """In linear time, and without deep recursion."""
    x, w = relay.var("x", shape=(1, 16, 2, 2)), relay.var("w", shape=(16, 16, 1, 1))
    result: relay.Expr = x
    for _ in range(2500):
        result = relay.nn.relu(relay.nn.conv2d(result, w))
    counts = list_op_freqs(altered(result))
    assert counts["nn.contrib_conv2d_NCHWc"] == 2500
    # The input as it lies, the weight for it and the weight for all others, and the result.
    assert counts["layout_transform"] == 4


def test_layout_names_of_two_operators_may_disagree() -> None:
    """A tensor that one operator calls NHWC and the next NCHW keeps the meaning that each of them gives it."""
    data, boxes = relay.var("data", shape=(1, 5, 6, 2)), relay.var("boxes", shape=(1, 4))
    cropped = relay.image.crop_and_resize(
        data, boxes, relay.const([0]), crop_size=(1, 2), layout="NHWC", method="bilinear"
    )
    enlarged = relay.image.resize2d(cropped, (4, 4), layout="NCHW")
    function = relay.Function([data, boxes], enlarged)
    made = relay.transform.AlterOpLayout()(relay.transform.InferType()(tvm.IRModule.from_expr(function)))
    assert tvm.ir.structural_equal(relay.transform.InferType()(made)["main"].body, enlarged, True)
