"""Tensor arrays whose tensors have any shape."""

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.parser import parse_expression
from tilewright.relay.prelude import Prelude

PRELUDE = Prelude()
PRELUDE.get_type("tensor_t", "float32")

START = "let %a = @tensor_array_float32(3);"
FILLED = START + (
    "let %a = @tensor_array_write_float32(%a, 0, tensor1_float32(%u));"
    "let %a = @tensor_array_write_float32(%a, 1, tensor1_float32(%v));"
    "let %a = @tensor_array_write_float32(%a, 2, tensor1_float32(%w));"
)
VECTORS = {
    "u": np.array([1, 2], "float32"),
    "v": np.array([3, 4], "float32"),
    "w": np.array([5, 6], "float32"),
    "m": np.arange(6, dtype="float32").reshape(3, 2),
    "i": np.array([2, 0], "int32"),
    "l": np.array([1, 0, 2], "int32"),
}
TYPES = {
    "u": "Tensor[(?), float32]",
    "v": "Tensor[(?), float32]",
    "w": "Tensor[(?), float32]",
    "m": "Tensor[(?, ?), float32]",
    "i": "Tensor[(?), int32]",
    "l": "Tensor[(?), int32]",
}


def evaluate(text: str) -> Any:
    """The value that the text has for the vectors, after its types were checked."""
    parameters = ", ".join(f"%{name}: {kind}" for name, kind in TYPES.items())
    module = tvm.IRModule(PRELUDE.mod.functions, PRELUDE.mod.type_definitions)
    module["main"] = parse_expression(f"fn ({parameters}) {{ {text} }}", init_module=module)
    module = relay.transform.InferType()(module)
    return Interpreter(module).run(module["main"], list(VECTORS.values()))


@pytest.mark.parametrize(
    ("text", "constructor", "expected"),
    [
        (FILLED + "@tensor_array_read_float32(%a, 1)", "tensor1_float32", [3, 4]),
        (FILLED + "@tensor_array_stack_float32(%a)", "tensor2_float32", [[1, 2], [3, 4], [5, 6]]),
        (FILLED + "@tensor_array_concat_float32(%a)", "tensor1_float32", [1, 2, 3, 4, 5, 6]),
        (FILLED + "@tensor_array_gather_float32(%a, %i)", "tensor2_float32", [[5, 6], [1, 2]]),
        (
            "@tensor_array_stack_float32(@tensor_array_unstack_tensor2_float32(%m))",
            "tensor2_float32",
            VECTORS["m"],
        ),
        ("@tensor_array_read_float32(@tensor_array_unstack_tensor1_float32(%u), 1)", "tensor0_float32", 2),
        ("@tensor_take_float32(tensor2_float32(%m), 1, 3)", "tensor2_float32", [[2, 3], [4, 5]]),
        ("@tensor_expand_dims_float32(tensor1_float32(%u))", "tensor2_float32", [[1, 2]]),
        (
            START + "@tensor_array_read_float32(@tensor_array_split_float32(%a, tensor2_float32(%m), %l), 2)",
            "tensor2_float32",
            [[2, 3], [4, 5]],
        ),
        (
            FILLED + "@tensor_array_read_float32(@tensor_array_scatter_float32(%a, %i, %a), 2)",
            "tensor1_float32",
            [1, 2],
        ),
    ],
)
def test_functions(text: str, constructor: str, expected: Any) -> None:
    """Each function on tensor arrays gives the tensor that its name says."""
    found = evaluate(text)
    assert found.constructor.name_hint == constructor
    np.testing.assert_array_equal(found[0], np.asarray(expected, "float32"))


def test_a_new_array_is_empty() -> None:
    """What was not written is nothing."""
    assert evaluate(START + "@tensor_array_read_float32(%a, 2)").constructor.name_hint == "tensor_nil_float32"
