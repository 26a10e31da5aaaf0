"""How much a function computes and moves, and where it came from."""

import json

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis.winograd_work import input_transform_operations, output_transform_operations
from tilewright.relay.analysis.work import (
    arithmetic_dtype,
    count_bytes,
    count_flops,
    count_operations,
    source_names,
)
from tilewright.support.span import SourceName, Span, span_scope


def typed(*parameters, body):
    """A function with types."""
    function = relay.Function(list(parameters), body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"]


def x(*shape, dtype="float32"):
    """A variable."""
    return relay.var("x", shape=shape, dtype=dtype)


@pytest.mark.parametrize(
    ("make", "shape", "flops"),
    [
        (relay.nn.relu, (2, 8), 16),
        (lambda v: relay.exp(relay.nn.relu(v)), (2, 8), 32),
        (relay.transpose, (2, 8), 0),
        (lambda v: relay.reshape(v, (16,)), (2, 8), 0),
        (lambda v: relay.sum(v, axis=1), (2, 8), 16),
        (relay.nn.softmax, (2, 8), 64),
        (lambda v: relay.nn.max_pool2d(v, (2, 2), (2, 2)), (1, 3, 8, 8), 3 * 4 * 4 * 4),
        (relay.nn.global_avg_pool2d, (1, 3, 8, 8), 192),
    ],
    ids=["relu", "two", "transpose", "reshape", "sum", "softmax", "max_pool2d", "global_avg_pool2d"],
)
def test_operations_of_operators(make, shape, flops):
    """One an element for what is elementwise, none for what only moves, one an input for reductions."""
    variable = x(*shape)
    assert count_flops(typed(variable, body=make(variable))) == flops


def test_a_multiply_accumulate_is_two_operations():
    """A convolution of 3 to 4 channels with a 3 x 3 window on 6 x 6, and the ReLU after it."""
    data, weight = x(1, 3, 8, 8), relay.var("w", shape=(4, 3, 3, 3))
    convolution = typed(data, weight, body=relay.nn.relu(relay.nn.conv2d(data, weight)))
    assert count_flops(convolution) == 2 * (4 * 6 * 6) * 3 * 9 + 4 * 6 * 6
    assert count_bytes(convolution) == 4 * (3 * 64 + 4 * 27 + 4 * 36)


def test_winograd_counts_as_the_convolution_that_it_is():
    """A schedule that multiplies less often does the same work."""
    data, weight = x(1, 4, 8, 8), relay.var("w", shape=(4, 4, 3, 3))
    plain = relay.nn.conv2d(data, weight, padding=(1, 1), channels=4, kernel_size=(3, 3))
    tile = relay.nn.contrib_conv2d_winograd_weight_transform(weight, 4)
    fast = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        data, tile, 4, padding=(1, 1), channels=4, kernel_size=(3, 3)
    )
    first = count_flops(typed(data, weight, body=plain))
    transformed = count_flops(typed(weight, body=tile))
    assert count_flops(typed(data, weight, body=fast)) == first + transformed


def test_winograd_does_fewer_operations_than_it_counts_for():
    """Tiles of 4 x 4 results take 36 products instead of 144; the transforms are counted as they are computed."""
    data, weight = x(1, 64, 56, 56), relay.var("w", shape=(6, 6, 64, 64))
    fast = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        data, weight, 4, padding=(1, 1), channels=64, kernel_size=(3, 3)
    )
    function = typed(data, weight, body=fast)
    products = 2 * 36 * 14 * 14 * 64 * 64
    assert products < count_operations(function) < 1.15 * products
    assert count_flops(function) == 2 * 64 * 56 * 56 * 64 * 9


def test_shared_parts_of_transforms_count_once():
    """F(2 x 2): four additions in, four out, as everybody writes them."""
    b = [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]
    a = [[1, 1, 1, 0], [0, 1, -1, -1]]
    assert input_transform_operations(b) == 4
    assert output_transform_operations(a) == 4


def test_type_of_most_operations():
    """A product of int8 with a float32 epilogue computes in int8."""
    left, right = x(8, 64, dtype="int8"), relay.var("w", shape=(32, 64), dtype="int8")
    product = relay.nn.dense(left, right, out_dtype="int32")
    assert (
        arithmetic_dtype(typed(left, right, body=relay.cast(product, "float32") * relay.const(2.0))) == "int8"
    )
    same = x(4, dtype="int8")
    assert arithmetic_dtype(typed(same, body=same)) == "float32"


def test_an_indexed_table_is_not_read_whole():
    """Two rows of a table of a thousand are moved; the same table, used whole as well, counts whole."""
    table, index = x(1000, 16), relay.var("i", shape=(2,), dtype="int32")
    rows = relay.take(table, index, axis=0)
    assert count_bytes(typed(table, index, body=rows)) == 2 * 64 + 8 + 2 * 64
    both = relay.sum(table) + rows
    assert count_bytes(typed(table, index, body=both)) == 1000 * 64 + 8 + 2 * 64


def test_several_results_count():
    """Every field of a tuple is written."""
    variable = x(4, 4)
    parts = relay.split(variable, 2).astuple()
    assert count_bytes(typed(variable, body=parts)) == 64 + 64


def test_places_are_named_once_in_order():
    """The model's nodes, each once; of a file, its name and line, without the folders."""
    variable = x(4)
    with span_scope(Span(SourceName("Relu first"), 0, 0, 0, 0)):
        body = relay.nn.relu(relay.exp(variable))
    with span_scope(Span(SourceName("/somebody/models/net.py"), 12, 12, 0, 0)):
        body = relay.tanh(body)
    assert source_names(typed(variable, body=body)) == ["Relu first", "net.py:12"]


def test_graph_says_what_its_kernels_do():
    """The executor's JSON has the work of every kernel, so that a package can be measured against it."""
    variable = x(2, 8)
    graph = json.loads(
        relay.build(relay.Function([variable], relay.nn.softmax(variable)), "llvm").get_graph_json()
    )
    (attributes,) = [node["attrs"] for node in graph["nodes"] if node["op"] == "tvm_op"]
    assert attributes["flops"] == attributes["operations"] == "64" and attributes["bytes"] == "128"
    assert attributes["arithmetic"] == "float32"
