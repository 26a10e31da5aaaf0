"""Multiply-accumulate operations, and element types, of typed programs."""

from typing import Any

import pytest

from tilewright.ir.op import Op
from tilewright.relay import Function, nn, var
from tilewright.relay import op as ops
from tilewright.relay.analysis import all_dtypes, free_vars, get_total_mac_number
from tilewright.relay.infer import infer_expr


def typed(body: Any) -> Any:
    return infer_expr(Function(free_vars(body), body))


def data(*shape: int) -> Any:
    return var("data", shape=shape)


def weight(*shape: int) -> Any:
    return var("weight", shape=shape)


CASES = [
    (lambda: nn.conv1d(data(2, 3, 10), weight(8, 3, 3), kernel_size=3, channels=8), 2 * 8 * 8 * 3 * 3),
    (
        lambda: nn.conv2d(
            data(1, 4, 8, 8), weight(6, 4, 3, 3), kernel_size=(3, 3), channels=6, padding=(1, 1)
        ),
        8 * 8 * 6 * 4 * 9,
    ),
    (
        lambda: nn.conv2d(data(1, 4, 8, 8), weight(4, 1, 3, 3), kernel_size=(3, 3), channels=4, groups=4),
        6 * 6 * 4 * 9,
    ),
    (
        lambda: nn.conv2d(
            data(1, 8, 8, 4),
            weight(1, 1, 4, 5),
            kernel_size=(1, 1),
            channels=5,
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
        8 * 8 * 4 * 5,
    ),
    (
        lambda: nn.conv3d(data(1, 2, 4, 4, 4), weight(3, 2, 2, 2, 2), kernel_size=(2, 2, 2), channels=3),
        27 * 3 * 2 * 8,
    ),
    (
        lambda: nn.conv2d_transpose(
            data(1, 4, 8, 8), weight(4, 6, 2, 2), kernel_size=(2, 2), channels=6, strides=(2, 2)
        ),
        8 * 8 * 4 * 6 * 4,
    ),
    (lambda: nn.dense(data(5, 7), weight(11, 7)), 5 * 7 * 11),
    (lambda: nn.batch_matmul(data(2, 5, 7), weight(2, 11, 7)), 2 * 5 * 7 * 11),
    (lambda: nn.matmul(data(7, 5), weight(7, 11), transpose_a=True), 5 * 7 * 11),
    (lambda: nn.relu(data(5, 7)), 0),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_products_of_an_operator(body: Any, expected: int) -> None:
    """Each output element takes the size of what is summed."""
    assert get_total_mac_number(typed(body())) == expected


def test_counts_add_up_and_shared_calls_count_once() -> None:
    """Two layers, the first used twice."""
    first = nn.dense(data(5, 7), weight(7, 7))
    second = nn.dense(first, var("other", shape=(3, 7)))
    assert (
        get_total_mac_number(typed(nn.dense(ops.add(first, first), var("w", shape=(3, 7)))))
        == 5 * 49 + 5 * 21
    )
    assert get_total_mac_number(typed(second)) == 5 * 49 + 5 * 21


def test_operators_of_users_may_count() -> None:
    """By an attribute."""
    Op.get("exp").set_attr("FMacCount", lambda call: 42)
    try:
        assert get_total_mac_number(typed(ops.exp(data(3, 3)))) == 42
    finally:
        Op.get("exp").reset_attr("FMacCount")


def test_recurrent_layers_count_their_steps() -> None:
    """The products of the state: here three steps of two rows, four gates of five units."""
    layer = nn.contrib_recurrent(data(3, 2, 64), weight(1, 5, 4, 16), [data(2, 5), data(2, 5)])
    assert get_total_mac_number(typed(layer.astuple())) == 3 * 2 * 4 * 5 * 5


def test_types_are_needed() -> None:
    """Without them shapes are not known."""
    with pytest.raises(ValueError, match="InferType"):
        get_total_mac_number(nn.dense(data(5, 7), weight(11, 7)))


def test_element_types() -> None:
    """Of all that is taken and computed."""
    body = ops.cast(ops.exp(data(3)), "int8")
    assert all_dtypes(typed(body)) == {"float32", "int8"}
    assert all_dtypes(
        typed(ops.less(var("a", shape=(2,), dtype="int64"), var("b", shape=(2,), dtype="int64")))
    ) == {
        "int64",
        "bool",
    }
