"""What importers that were written for TVM share."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.frontend.common import (
    AttrCvt,
    ExprTable,
    Renamer,
    RequiredAttr,
    StrAttrsDict,
    autopad,
    ensure_scalar_shape,
    fold_constant,
    get_name,
    infer_channels,
    infer_shape,
    infer_type,
    infer_value,
    infer_value_simulated,
    lstm_cell,
    new_var,
    shape_of,
    to_int_list,
    try_infer_value,
    try_resolve_var_to_const,
    unbind,
)
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError, OpAttributeRequired, OpNotImplemented


def test_attributes_from_text() -> None:
    """Values in text are read by type; one that is missing and has no default is an error."""
    attrs = StrAttrsDict({"shape": "(2, None)", "eps": "1e-3", "flag": "True", "pairs": "((1, 2), (3, 4))"})
    assert attrs.get_int_tuple("shape") == (2, None) and attrs.get_float("eps") == 1e-3
    assert attrs.get_bool("flag") and attrs.get_int("axis", 1) == 1
    assert attrs.get_tuple_tuple_int("pairs") == ((1, 2), (3, 4))
    with pytest.raises(OpAttributeRequired, match="Required attribute axis not found"):
        attrs.get_int("axis")


def test_attributes_of_more_types() -> None:
    """Text as it is, lists, tuples of numbers; a default is given back as it is, and may be None."""
    attrs = StrAttrsDict({"pads": "[1, 2]", "scales": "(0.5, 2)", "one": "3", "mode": "(same)"})
    assert attrs.has_attr("pads") and not attrs.has_attr("axis")
    assert attrs.get_str("mode") == "(same)" and attrs.get_str("layout", "NCHW") == "NCHW"
    assert attrs.get_float_tuple("scales") == (0.5, 2.0) and attrs.get_float_tuple("one") == (3.0,)
    assert attrs.get_int_list("pads") == [1, 2] and attrs.get_int_list("one") == [3]
    assert attrs.get_int_list("axis", (4,)) == (4,) and attrs.get_float_tuple("axis", None) is None
    for read in (attrs.get_str, attrs.get_float_tuple, attrs.get_int_list):
        with pytest.raises(OpAttributeRequired, match="Required attribute axis not found"):
            read("axis")
        with pytest.raises(OpAttributeRequired):
            read("axis", RequiredAttr())


def test_names_of_operators() -> None:
    """A renamer makes the call of another operator, which is looked for in the packages of operators."""
    x = relay.var("x", shape=(2, 3))
    made = Renamer("relu")([x], {})
    assert made.op.name == "nn.relu" and made.args[0] is x
    softmax = Renamer("nn.softmax")([x], {"axis": 0, "tvm_custom": {"name": "s"}}, {"some": "parameters"})
    assert softmax.op.name == "nn.softmax" and softmax.attrs.axis == 0
    with pytest.raises(OpNotImplemented, match="Unable to map op_name frobnicate to relay"):
        Renamer("frobnicate")([x], {})


def test_named_expressions() -> None:
    """The first expression of a name stays, unless the caller overrides; paddings wait for the next operator."""
    table = ExprTable()
    first, second = relay.var("first"), relay.var("second")
    assert not table.has_expr("x")
    table.set_expr("x", first)
    table.set_expr("x", second)
    assert table.has_expr("x") and table.get_expr("x") is first
    table.set_expr("x", second, force_override=True)
    assert table.get_expr("x") is second
    table.set_padding([1, 2])
    assert table.in_padding and table.paddings == [1, 2]
    table.clear_padding()
    assert not table.in_padding


def test_variables_and_names() -> None:
    """A variable has a type, or a shape and an element type; a call has no name."""
    x = new_var("x", shape=(2, 3), dtype="int8")
    assert get_name(x) == "x" and x.type_annotation == relay.TensorType((2, 3), "int8")
    assert get_name(relay.exp(x)) == ""
    kind = relay.TensorType((4,), "float32")
    assert new_var("y", type_annotation=kind).type_annotation == kind
    numbers = to_int_list(np.array([3, 4], "int64"))
    assert numbers == [3, 4] and all(type(one) is int for one in numbers)


def test_constants_are_folded() -> None:
    """Of an expression and of a function; what depends on an input stays."""
    x = relay.var("x", shape=(2,))
    known = relay.const(np.float32([1, 2])) * relay.const(np.float32([3, 4]))
    folded = fold_constant(known)
    assert isinstance(folded, relay.Constant)
    np.testing.assert_array_equal(folded.data.numpy(), [3, 8])
    part = fold_constant(x + known)
    assert isinstance(part, relay.Call) and isinstance(part.args[1], relay.Constant)
    function = fold_constant(relay.Function([x], x + known))
    assert isinstance(function, relay.Function) and isinstance(function.body.args[1], relay.Constant)
    np.testing.assert_array_equal(Interpreter().run(function, [np.float32([1, 1])]), [4, 9])


def test_values_where_some_inputs_are_missing() -> None:
    """Parameters have their values; what has none has a value of its type, which only shapes may depend on."""
    x, weight = relay.var("x", shape=(2, 3)), relay.var("weight", shape=(2, 3))
    params = {"weight": np.full((2, 3), 5, "float32")}
    np.testing.assert_array_equal(
        infer_value_simulated(weight * relay.zeros_like(x), params).numpy(), np.zeros((2, 3))
    )
    np.testing.assert_array_equal(infer_value_simulated(relay.shape_of(x + weight), params).numpy(), [2, 3])
    assert list(params) == ["weight"]
    with pytest.raises(ModelError, match="x are not"):
        infer_value(weight + x, params)


def test_scalars_and_parameters() -> None:
    """A tensor of one element loses its dimensions; a variable that is a parameter becomes its value."""
    for shape in ((), (1,), (1, 1, 1)):
        made = ensure_scalar_shape(relay.var("x", shape=shape))
        assert infer_shape(made) == ()
        value = np.full(shape, 7, "float32")
        function = relay.Function(relay.analysis.free_vars(made), made)
        assert Interpreter().run(function, [value]) == 7
    with pytest.raises(ModelError, match="one element"):
        ensure_scalar_shape(relay.var("x", shape=(2,)))
    x, other = relay.var("x", shape=(2,), dtype="int32"), relay.var("other", shape=(2,))
    found = try_resolve_var_to_const(x, {"x": np.int32([3, 4])})
    assert isinstance(found, relay.Constant) and found.data.dtype == "int32"
    np.testing.assert_array_equal(found.data.numpy(), [3, 4])
    assert try_resolve_var_to_const(other, {"x": np.int32([3, 4])}) is other


def test_operators_by_tables() -> None:
    """Attributes are renamed, converted and dropped; what is excluded is an error."""
    x = relay.var("x", shape=(2, 3))
    convert = AttrCvt("softmax", {"dim": ("axis", -1)}, excludes=["bad"], ignores=["T"])
    assert convert([x], {"dim": 0, "T": 1}).attrs.axis == 0 and convert([x], {}).attrs.axis == -1
    with pytest.raises(NotImplementedError, match="Attribute bad in operator softmax is not supported"):
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
