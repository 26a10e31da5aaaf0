"""Helpers for tests of graph-level programs: infer types, run a pass, check a gradient, count operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay import transform
from tilewright.relay.build_module import create_executor
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.prelude import Prelude
from tilewright.relay.testing.init import known_shape
from tilewright.runtime.container import ADT
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import NDArray, array, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.testing.marks import enabled_targets


def run_opt_pass(expr: RelayExpr, opt_pass: Any, import_prelude: bool = False) -> RelayExpr:
    """The expression after a pass, in the pass context around the call: a function where it was one, else the body of
    the function that it makes."""
    module = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(module)
    made = opt_pass(module)["main"]
    return made if isinstance(expr, Function) else made.body  # type: ignore[no-any-return]


def ctx_list() -> list[tuple[str, Device]]:
    """The targets that can be run here, each with a device: ``tvm.testing.enabled_targets`` by its older name."""
    return enabled_targets()


def run_infer_type(expr: RelayExpr) -> RelayExpr:
    """The expression with its types."""
    return run_opt_pass(expr, transform.InferType())


def rand(dtype: str, *shape: int) -> NDArray:
    """Random numbers between zero and one."""
    return array(np.asarray(np.random.default_rng().random(shape)).astype(numpy_dtype(DataType(dtype))))


def count_ops(expr: RelayExpr) -> dict[str, int]:
    """How often an expression calls each operator, by name."""
    found: dict[str, int] = {}

    def look(node: Any) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op):
            found[node.op.name] = found.get(node.op.name, 0) + 1

    post_order_visit(expr, look)
    return found


def check_grad(
    func: RelayExpr,
    inputs: Sequence[np.ndarray[Any, Any]] | None = None,
    test_inputs: Sequence[np.ndarray[Any, Any]] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Sequence[tuple[Any, Any]] | None = None,
) -> None:
    """Fail unless the gradients of a function agree with central differences of step ``eps``.

    Arguments that are left out are random, around ``mean`` and ``scale`` wide (10 ``eps`` at least). ``test_inputs``
    are those of ``inputs``, the same objects, whose gradients are compared; all of them if left out. The gradients are
    those of the sum of all elements of all results.
    """
    forward = run_infer_type(func)
    if not isinstance(forward, Function):
        raise TilewrightError("check_grad takes a function")
    backward = run_infer_type(transform.gradient(forward, mode=mode))
    width = 10 * eps if scale is None else scale
    given = list(inputs) if inputs is not None else _random_arguments(forward, width, mean)
    tested = given if test_inputs is None else list(test_inputs)
    positions = [_position(given, one) for one in tested]
    for target, device in target_devices if target_devices is not None else [("llvm", None)]:
        run = create_executor("debug", device=device, target=target).evaluate(forward)
        _, gradients = create_executor("debug", device=device, target=target).evaluate(backward)(*given)
        for position in positions:
            wanted = _differences(run, given, position, eps)
            found = gradients[position].numpy()
            np.testing.assert_allclose(
                found, wanted, rtol=rtol, atol=atol, err_msg=f"the gradient of argument {position}"
            )


def _random_arguments(function: Function, scale: float, mean: float) -> list[np.ndarray[Any, Any]]:
    return [
        random_values(parameter.checked_type, scale, mean, parameter.name_hint)
        for parameter in function.params
    ]


def random_values(
    t: TensorType, scale: float = 1, mean: float = 0, name: str = "the tensor"
) -> np.ndarray[Any, Any]:
    """Random values of a type, around ``mean`` and ``scale`` wide."""
    values = scale * np.random.default_rng().standard_normal(known_shape(name, t)) + mean
    return np.asarray(values).astype(numpy_dtype(t.dtype))


def _position(given: Sequence[Any], one: Any) -> int:
    for position, value in enumerate(given):
        if value is one:
            return position
    raise TilewrightError("each of test_inputs is one of inputs: the same array, not an equal one")


def _total(value: Any) -> float:
    """The sum of all elements of all results."""
    if isinstance(value, (list, tuple, ADT)):
        return sum(_total(part) for part in value)
    return float(np.sum(value.numpy(), dtype="float64"))


def _differences(run: Any, given: Sequence[Any], position: int, eps: float) -> np.ndarray[Any, Any]:
    """Central differences of the sum of the results in every element of one argument."""
    moved = given[position].copy()
    arguments = [*given[:position], moved, *given[position + 1 :]]
    made = np.zeros(moved.shape, dtype="float64")
    for place in np.ndindex(*moved.shape):
        start = moved[place]
        moved[place] = start + eps
        above = _total(run(*arguments))
        moved[place] = start - eps
        below = _total(run(*arguments))
        moved[place] = start
        made[place] = (above - below) / (2 * eps)
    return made
