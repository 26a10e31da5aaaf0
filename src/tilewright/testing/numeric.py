"""Numeric comparisons: results with expected values, gradients with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def _as_numpy(value: Any) -> Any:
    """An array of the runtime, or anything like an array, as a NumPy array."""
    to_numpy = getattr(value, "numpy", None)
    return np.asanyarray(to_numpy() if callable(to_numpy) else value)


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Fail unless both have one shape and every element is within ``atol + rtol * |desired|``."""
    got, wanted = _as_numpy(actual), _as_numpy(desired)
    if got.shape != wanted.shape:
        raise AssertionError(f"the shapes differ: {got.shape} came, {wanted.shape} was expected")
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, verbose=True)


def _numerical_gradient(
    evaluate: Callable[[Any], float], value: np.ndarray[Any, Any], delta: float
) -> np.ndarray[Any, Any]:
    """Central differences in every element."""
    gradient = np.zeros(value.shape, dtype="float64")
    moved = value.copy()
    for position in np.ndindex(*value.shape):
        original = moved[position]
        moved[position] = original + delta
        above = evaluate(moved)
        moved[position] = original - delta
        below = evaluate(moved)
        moved[position] = original
        gradient[position] = (above - below) / (2 * delta)
    return gradient


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Sequence[Any] | Mapping[str, Any],
    grad_values: Sequence[Any] | Mapping[str, Any],
    function_value: Any = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Fail unless the gradients of a function are close to central differences of it.

    ``function`` takes the inputs, by position or by name, and gives a number, or an array of which the sum counts.
    Where a difference is too coarse to agree, ten and a hundred times smaller steps are tried before the gradient is
    called wrong.
    """
    named = isinstance(input_values, Mapping)
    inputs = {key: _as_numpy(value) for key, value in _pairs(input_values)}
    gradients = {key: _as_numpy(value) for key, value in _pairs(grad_values)}

    def call(changed: Mapping[Any, Any]) -> float:
        result = function(**changed) if named else function(*changed.values())
        return float(np.sum(_as_numpy(result)))

    if function_value is not None:
        np.testing.assert_allclose(
            call(inputs), float(np.sum(_as_numpy(function_value))), rtol=rtol, atol=atol
        )
    for key, gradient in gradients.items():
        if gradient.shape != inputs[key].shape:
            raise AssertionError(
                f"the gradient of {key} has shape {gradient.shape}, the input {inputs[key].shape}"
            )
        if not np.isfinite(gradient).all():
            raise AssertionError(f"the gradient of {key} has elements that are not finite")
        distances = []
        for step in (delta, delta / 10, delta / 100):
            numerical = _numerical_gradient(lambda value: call({**inputs, key: value}), inputs[key], step)
            distance = float(np.linalg.norm(numerical - gradient))
            allowed = np.sqrt(gradient.size) * atol + rtol * float(np.linalg.norm(numerical))
            if distance <= allowed:
                break
            distances.append(distance)
        else:
            raise AssertionError(
                f"the gradient of {key} is off: its distance from the differences is {min(distances):.6g}, "
                f"at most {allowed:.6g} was expected"
            )


def _pairs(values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Values with their names or positions."""
    return list(values.items()) if isinstance(values, Mapping) else list(enumerate(values))
