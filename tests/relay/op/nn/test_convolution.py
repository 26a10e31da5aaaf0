"""Types of weights that follow from data, errors, and layouts of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.relay.infer import TypeInferenceError


def typed(body: Any, *parameters: Any) -> Any:
    """The function with its types."""
    function = relay.Function(parameters, body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"]


@pytest.mark.parametrize(
    ("call", "shape", "wanted"),
    [
        (lambda x, w: relay.nn.conv1d(x, w, channels=6, kernel_size=3), (1, 4, 9), (6, 4, 3)),
        (lambda x, w: relay.nn.conv2d(x, w, channels=6, kernel_size=3), (1, 4, 9, 9), (6, 4, 3, 3)),
        (lambda x, w: relay.nn.conv2d(x, w, channels=6, kernel_size=3, groups=2), (1, 4, 9, 9), (6, 2, 3, 3)),
        (
            lambda x, w: relay.nn.conv2d(
                x, w, channels=6, kernel_size=(3, 2), data_layout="NHWC", kernel_layout="HWIO"
            ),
            (1, 9, 9, 4),
            (3, 2, 4, 6),
        ),
        (lambda x, w: relay.nn.conv3d(x, w, channels=6, kernel_size=3), (1, 4, 9, 9, 9), (6, 4, 3, 3, 3)),
        (
            lambda x, w: relay.nn.conv2d_transpose(x, w, channels=6, kernel_size=3, groups=2),
            (1, 4, 9, 9),
            (4, 3, 3, 3),
        ),
        (lambda x, w: relay.nn.dense(x, w, units=5), (2, 7), (5, 7)),
        (lambda x, w: relay.nn.matmul(x, w, units=5), (2, 7), (7, 5)),
        (relay.nn.bias_add, (2, 7, 3), (7,)),
        (lambda x, w: relay.nn.prelu(x, w, axis=-1), (2, 7, 3), (3,)),
    ],
)
def test_a_weight_without_a_type_gets_one(call: Any, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """The attributes and the data tell its shape, the data its element type."""
    data, weight = relay.var("x", shape=shape, dtype="float64"), relay.var("w")
    function = typed(call(data, weight), data, weight)
    assert function.params[1].checked_type == relay.TensorType(wanted, "float64")


def test_parameters_of_batch_norm_get_types() -> None:
    """All four are vectors as long as the channels."""
    names = [relay.var(name) for name in ("gamma", "beta", "mean", "var")]
    data = relay.var("x", shape=(2, 5, 3))
    function = typed(relay.nn.batch_norm(data, *names)[0], data, *names)
    assert [one.checked_type.concrete_shape for one in function.params[1:]] == [(5,)] * 4


@pytest.mark.parametrize(
    ("call", "data", "weight", "message"),
    [
        (relay.nn.conv2d, (1, 4, 5, 5), (3, 5, 3, 3), "input channels"),
        (lambda x, w: relay.nn.conv2d(x, w, channels=7), (1, 4, 5, 5), (3, 4, 3, 3), "attribute channels"),
        (lambda x, w: relay.nn.conv2d(x, w, kernel_size=5), (1, 4, 9, 9), (3, 4, 3, 3), "kernel_size"),
        (lambda x, w: relay.nn.conv2d(x, w, groups=3), (1, 4, 5, 5), (3, 1, 3, 3), "3 groups"),
        (relay.nn.conv2d, (1, 4, 2, 2), (3, 4, 3, 3), "larger than the padded axis"),
        (relay.nn.conv2d, (4, 5, 5), (3, 4, 3, 3), "4 dimensions"),
        (lambda x, w: relay.nn.conv2d(x, w, data_layout="NCWX"), (1, 4, 5, 5), (3, 4, 3, 3), "NCHW"),
        (relay.nn.conv2d_transpose, (1, 4, 5, 5), (3, 4, 3, 3), "input channels"),
        (relay.nn.dense, (2, 7), (5, 8), "summed over"),
        (relay.nn.bias_add, (2, 7), (8,), "axis 1"),
    ],
)
def test_shapes_that_do_not_fit(
    call: Any, data: tuple[int, ...], weight: tuple[int, ...], message: str
) -> None:
    """The message says which dimensions disagree."""
    x, w = relay.var("x", shape=data), relay.var("w", shape=weight)
    with pytest.raises(TypeInferenceError, match=message):
        typed(call(x, w), x, w)


def test_an_unknown_batch_stays_unknown() -> None:
    """And everything else is computed."""
    x, w = relay.var("x", shape=(relay.Any(), 3, 224, 224)), relay.var("w", shape=(64, 3, 7, 7))
    made = typed(relay.nn.conv2d(x, w, strides=2, padding=3), x, w).ret_type
    assert isinstance(made.shape[0], relay.Any)
    assert [int(extent) for extent in made.shape[1:]] == [64, 112, 112]


@pytest.mark.parametrize(
    ("groups", "weight", "desired", "kernel_layout"),
    [
        (1, (8, 4, 3, 3), ["NHWC", "default"], "HWIO"),
        (4, (4, 1, 3, 3), ["NHWC", "default"], "HWOI"),
        (1, (8, 4, 3, 3), ["NHWC", "OHWI"], "OHWI"),
        (1, (8, 4, 3, 3), ["NCHW", "default"], "OIHW"),
    ],
)
def test_layouts_that_a_user_asks_for(
    groups: int, weight: tuple[int, ...], desired: list[str], kernel_layout: str
) -> None:
    """ "default" for the kernel is the order that goes with the data's."""
    x, w = relay.var("x", shape=(1, 4, 5, 5)), relay.var("w", shape=weight)
    call = relay.nn.conv2d(x, w, groups=groups)
    convert = call.op.get_attr("FTVMConvertOpLayout")
    tinfos = [te.placeholder((1, 4, 5, 5)), te.placeholder(weight)]
    made = convert(call.attrs, [x, w], tinfos, desired)
    assert (made.attrs.data_layout, made.attrs.kernel_layout) == (desired[0], kernel_layout)
    assert made.attrs.groups == groups


def test_a_model_without_types_runs() -> None:
    """A model of two layers without any type but the input's runs."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    hidden = relay.nn.relu(relay.nn.conv2d(x, relay.var("w1"), channels=4, kernel_size=3, padding=1))
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(hidden))
    body = relay.nn.softmax(relay.nn.dense(pooled, relay.var("w2"), units=5))
    function = typed(body, *relay.analysis.free_vars(body))
    shapes = {one.name_hint: one.checked_type.concrete_shape for one in function.params}
    assert shapes == {"x": (1, 3, 8, 8), "w1": (4, 3, 3, 3), "w2": (5, 4)}
    generator = np.random.default_rng(3)
    values = [generator.normal(size=shapes[one.name_hint]).astype("float32") for one in function.params]
    made = relay.create_executor("debug").evaluate(function)(*values).numpy()
    assert made.shape == (1, 5)
    assert made.sum() == pytest.approx(1)
