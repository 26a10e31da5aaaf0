"""Tensor arrays whose tensors have one known shape."""

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.parser import parse_expression
from tilewright.relay.prelude import Prelude, StaticTensorArrayOps, get_tensor_array_shape

PRELUDE = Prelude()
PAIRS = StaticTensorArrayOps(PRELUDE, "float32", (2,))
PAIRS.register()
ROWS = StaticTensorArrayOps(PRELUDE, "float32", (relay.Any(), 2))
ROWS.register()
MATRICES = StaticTensorArrayOps(PRELUDE, "float32", (3, 2))
MATRICES.register()

MATRIX = np.arange(6, dtype="float32").reshape(3, 2)


def evaluate(text: str) -> Any:
    """The value of a text for a matrix %m and indices %i."""
    module = tvm.IRModule(PRELUDE.mod.functions, PRELUDE.mod.type_definitions)
    module["main"] = parse_expression(
        f"fn (%m: Tensor[(3, 2), float32], %i: Tensor[(2), int32]) {{ {text} }}", init_module=module
    )
    module = relay.transform.InferType()(module)
    return Interpreter(module).run(module["main"], [MATRIX, np.array([2, 0], "int32")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@tensor_array_stack_float32_2(@tensor_array_unstack_float32_3_2(%m))", MATRIX),
        ("@tensor_array_gather_float32_2(@tensor_array_unstack_float32_3_2(%m), %i)", MATRIX[[2, 0]]),
        ("@tensor_array_concat_float32_2(@tensor_array_unstack_float32_3_2(%m))", MATRIX.reshape(6)),
        ("@tensor_array_read_float32_2(@tensor_array_unstack_float32_3_2(%m), 1)", MATRIX[1]),
        ("@tensor_take_float32_3_2(tensor_constructor_float32_3_2(%m), 1, 3)", MATRIX[1:]),
        (
            "let %a = @tensor_array_unstack_float32_3_2(%m); "
            "@tensor_array_read_float32_2(@tensor_array_scatter_float32_2(%a, %i, %a), 2)",
            MATRIX[0],
        ),
        (
            "let %a = @tensor_array_float32_any_2(2);"
            "let %v = @tensor_take_float32_3_2(tensor_constructor_float32_3_2(%m), 0, 3);"
            "@tensor_array_read_float32_any_2(@tensor_array_split_float32_any_2(%a, %v, %i), 0)",
            MATRIX[:2],
        ),
    ],
)
def test_functions(text: str, expected: Any) -> None:
    """Each function gives a value of the type for its shape."""
    found = evaluate(text)
    assert found.constructor.name_hint.startswith("tensor_constructor_float32_")
    np.testing.assert_array_equal(found[0], expected)


def test_the_tensor_within() -> None:
    """A function gives the tensor within a value."""
    text = (
        "@tensor_get_data_float32_2(@tensor_array_read_float32_2(@tensor_array_unstack_float32_3_2(%m), 2))"
    )
    np.testing.assert_array_equal(evaluate(text), MATRIX[2])


@pytest.mark.parametrize(
    ("canonical", "shape", "batch", "name"),
    [
        ("tensor_t", (2, 3), None, "static_tensor_float32_2_3_t"),
        ("tensor_t", (), None, "static_tensor_float32_scalar_t"),
        ("tensor_t", (relay.Any(), 3), None, "static_tensor_float32_any_3_t"),
        ("tensor_array_read", (2, 3), None, "tensor_array_read_float32_2_3"),
        ("tensor_array_read", (2, 3), 1, "tensor_array_read_float32_batch1_2_3"),
        ("tensor_constructor", (2, 3), 1, "tensor_constructor_float32_2_3"),
    ],
)
def test_names(canonical: str, shape: tuple[Any, ...], batch: int | None, name: str) -> None:
    """Names say element type and shape."""
    assert PRELUDE.get_name_static(canonical, "float32", shape, batch) == name


def test_names_are_found() -> None:
    """Types, constructors and functions are found by their short names."""
    assert PAIRS.get_global_var("tensor_array") is PRELUDE.get_global_var_static(
        "tensor_array", "float32", (2,)
    )
    assert PAIRS.get_type("tensor_t") is PRELUDE.get_type_static("tensor_t", "float32", (2,))
    assert PAIRS.get_ctor("tensor_nil") is PRELUDE.get_tensor_ctor_static("tensor_nil", "float32", (2,))
    assert PAIRS.is_cached("tensor_array_float32_2") and not PAIRS.is_cached("tensor_array_float32_9")


def test_shape_of_an_array() -> None:
    """The shape of the tensors in an array is known from its type; arrays of any tensors have none."""
    array = PAIRS.get_global_var("tensor_array")(relay.const(2))
    assert get_tensor_array_shape(array, "float32", PRELUDE) == (2,)
    dynamic = PRELUDE.get_global_var("tensor_array", "float32")(relay.const(2))
    assert get_tensor_array_shape(dynamic, "float32", PRELUDE) is None


def test_redefinition_for_known_indices() -> None:
    """A function can be defined anew for a shape of its indices."""
    prelude = Prelude()
    ops = StaticTensorArrayOps(prelude, "float32", (2,))
    ops.register()
    ops.define_tensor_array_scatter((4,), force_update=True)
    function = prelude.mod[ops.get_name("tensor_array_scatter")]
    assert str(function.params[1].type_annotation) == "Tensor[(4), int32]"
    relay.transform.InferType()(prelude.mod)


def test_shapes_that_do_not_fit() -> None:
    """Tensors without dimensions have no first axis; pieces must have the array's other dimensions."""
    with pytest.raises(tvm.TVMError, match="no first axis"):
        StaticTensorArrayOps(Prelude(), "float32", ()).define_tensor_take()
    with pytest.raises(tvm.TVMError, match="do not fit"):
        PAIRS.define_tensor_array_split(value_shape=(3, 5))
