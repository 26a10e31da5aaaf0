"""What tests of passes share: run one, and compare what the program computes before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.shapes import dims
from tilewright.runtime.ndarray import numpy_dtype


def typed(given: Any) -> relay.Function:
    """A function, or the body of one, with its types."""
    function = (
        given if isinstance(given, relay.Function) else relay.Function(relay.analysis.free_vars(given), given)
    )
    return infer_module(tvm.IRModule.from_expr(function))["main"]


def after(passes: Any, given: Any) -> relay.Function:
    """The function after one pass or several."""
    module = tvm.IRModule.from_expr(typed(given))
    for each in passes if isinstance(passes, list) else [passes]:
        module = each(module)
    return infer_module(module)["main"]


def random_inputs(function: relay.Function, seed: int = 0) -> list[np.ndarray]:
    """Arguments for a function: numbers around zero, and positive ones for what is called a variance."""
    generator = np.random.default_rng(seed)
    made = []
    for parameter in function.params:
        kind = parameter.checked_type
        values = generator.standard_normal(dims(kind))
        if "var" in parameter.name_hint:
            values = np.abs(values) + 0.5
        if kind.dtype.is_integral:
            values = generator.integers(0, 3, dims(kind))
        made.append(np.asarray(values).astype(numpy_dtype(kind.dtype)))
    return made


def value(function: relay.Function, inputs: list[np.ndarray]) -> Any:
    """What a function gives by the operators' references."""
    return Interpreter(tvm.IRModule()).run(function, inputs)


def _flat(result: Any) -> list[np.ndarray]:
    return [one for part in result for one in _flat(part)] if isinstance(result, tuple) else [result]


def assert_same_value(
    before: relay.Function, made: relay.Function, rtol: float = 1e-5, atol: float = 1e-5, seed: int = 0
) -> None:
    """Both functions give the same for random arguments."""
    inputs = random_inputs(before, seed)
    expected, found = _flat(value(before, inputs)), _flat(value(made, inputs))
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other.astype("float64"), one.astype("float64"), rtol=rtol, atol=atol)


def check(
    passes: Any, before: Any, expected: Any = None, rtol: float = 1e-5, atol: float = 1e-5
) -> relay.Function:
    """Run passes: the result computes the same, and is the expected program where one is given."""
    start = typed(before)
    made = after(passes, start)
    assert_same_value(start, made, rtol, atol)
    if expected is not None:
        assert_structural_equal(made, typed(expected), map_free_vars=True)
    return made


def operators(function: relay.Function) -> list[str]:
    """The names of the operators that are called, in order."""
    names: list[str] = []

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Call) and isinstance(expr.op, Op):
            names.append(expr.op.name)

    post_order_visit(function, look)
    return names


def spans_kept(function: relay.Function) -> bool:
    """True if every call has a span."""
    missing: list[Any] = []

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Call) and expr.span is None:
            missing.append(expr)

    post_order_visit(function, look)
    return not missing
