"""What importers that were written for TVM share."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.frontend.common import (
    AttrCvt,
    ExprTable,
    StrAttrsDict,
    autopad,
    infer_channels,
    infer_shape,
    infer_type,
    infer_value,
    lstm_cell,
    shape_of,
    try_infer_value,
    unbind,
)
from tilewright.support.errors import OpAttributeInvalid, OpAttributeRequired


def test_attributes_from_text() -> None:
    """Values in text are read by type; one that is missing and has no default is an error."""
    attrs = StrAttrsDict({"shape": "(2, None)", "eps": "1e-3", "flag": "True", "pairs": "((1, 2), (3, 4))"})
    assert attrs.get_int_tuple("shape") == (2, None) and attrs.get_float("eps") == 1e-3
    assert attrs.get_bool("flag") and attrs.get_int("axis", 1) == 1
    assert attrs.get_tuple_tuple_int("pairs") == ((1, 2), (3, 4))
    with pytest.raises(OpAttributeRequired, match="Required attribute axis not found"):
        attrs.get_int("axis")


def test_operators_by_tables() -> None:
    """Attributes are renamed, converted and dropped; what is excluded is an error."""
    x = relay.var("x", shape=(2, 3))
    convert = AttrCvt("softmax", {"dim": ("axis", -1)}, excludes=["bad"], ignores=["T"])
    assert convert([x], {"dim": 0, "T": 1}).attrs.axis == 0 and convert([x], {}).attrs.axis == -1
    with pytest.raises(OpAttributeInvalid, match="Attribute bad in operator softmax is not supported"):
        convert([x], {"bad": 1})
    table = ExprTable()
    weight = table.new_const(np.ones((4, 3, 1, 1), "float32"))
    assert infer_channels(weight) == 4 and table.get_expr(weight.name_hint) is weight


def test_what_is_known_is_computed() -> None:
    """Types, shapes and values of expressions; a value that needs an input is not known."""
    x = relay.var("x", shape=(2, 3))
    assert infer_type(x + x).checked_type.dtype == "float32" and infer_shape(relay.transpose(x)) == (3, 2)
    np.testing.assert_array_equal(shape_of(x).data.numpy(), [2, 3])
    values = {"x": np.full((2, 3), 2, "float32")}
    np.testing.assert_array_equal(infer_value(x * x, values).numpy(), np.full((2, 3), 4))
    assert not try_infer_value(x + x)[1]
    assert try_infer_value(relay.const(3))[0] == 3


def test_padding_and_cells() -> None:
    """A padded window gives as many results as there are inputs; a cell runs over its inputs."""
    data = relay.var("data", shape=(1, 1, 5, 5))
    assert infer_shape(autopad(data, (2, 2), (3, 3))) == (1, 1, 7, 7)
    assert infer_shape(autopad(data, (1, 1), (2, 2), mode="SAME_LOWER")) == (1, 1, 6, 6)
    steps = unbind(relay.var("steps", shape=(2, 3, 4)))
    state, weights = relay.var("h", shape=(3, 5)), relay.var("w", shape=(20, 4))
    outputs, last, cell = lstm_cell(steps, state, state, weights, relay.var("r", shape=(20, 5)))
    assert len(outputs) == 2 and infer_shape(last) == infer_shape(cell) == (3, 5)
