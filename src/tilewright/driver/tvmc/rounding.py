"""How large the rounding errors of a model may be: its reference in float64, and once more with errors of its own type.

No fixed tolerance fits all models. A sum of a million terms, a difference of numbers that are nearly equal, and a chain
of a hundred layers have rounding errors that differ by orders of magnitude. So each value is computed twice in float64:
as it is, and with an error after every operator as large as one that arithmetic in the model's own types makes. How far
these runs are apart says how far a right program may be from the exact one; a wrong kernel is much further away. (This
is known as Monte Carlo arithmetic.)

The error of an operator is a multiple of the unit roundoff of its result's type. It is relative to each element; in a
sum (a product of matrices, a convolution, a reduction) to the size of what is added, in whose order and by whose fast
algorithms an implementation is free. A result that the type represents exactly has no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.strategy.pattern import OpPattern
from tilewright.support.errors import TilewrightError

Array = np.ndarray[Any, Any]

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half of the distance from one to the next number."""

ELEMENT_ERROR = 4.0
"""Units in the last place: exp, tanh and others are polynomials, within two or three."""

WINOGRAD_ERROR = 16.0
"""By how much more a convolution of 3x3 may round: tiles of 6x6 multiply and add numbers that are larger than the
result."""

PARTIAL_SUMS = 16
"""So many at least are added up beside each other: the lanes of vectors, and blocks."""

SAFETY = 4.0
"""Errors may be so many times as large as those of the perturbed runs, which are a sample."""

SAMPLES = 3


def unit_roundoff(dtype: Any) -> float:
    """That of an element type; 0 for whole numbers."""
    return UNIT_ROUNDOFF.get(str(dtype), 0.0)


class ExactInterpreter(Interpreter):
    """The reference, with numbers in float64 whatever their types are."""

    def visit_constant(self, node: Constant) -> Any:
        return widened(super().visit_constant(node))

    def visit_call(self, node: Call) -> Any:
        if not isinstance(node.op, Op):
            return super().visit_call(node)
        arguments = [self.visit(argument) for argument in node.args]
        value = self.computed(node, arguments)
        return self.rounded(node, arguments, value)

    def computed(self, node: Call, arguments: Sequence[Any]) -> Any:
        """The value of an operator for arguments in float64, or in the types that its reference insists on."""
        assert isinstance(node.op, Op)
        target = str(getattr(node.attrs, "dtype", ""))
        if node.op.name == "cast" and _is_float(arguments[0]) and target in UNIT_ROUNDOFF:
            return arguments[0]
        reference = node.op.get_attr("FReference")
        if reference is None:
            return super().visit_call(node)
        with np.errstate(all="ignore"):
            try:
                value = reference(node.attrs, *arguments)
            except (TypeError, ValueError, TilewrightError):
                narrow = [
                    narrowed(given, argument.checked_type)
                    for given, argument in zip(arguments, node.args, strict=True)
                ]
                value = reference(node.attrs, *narrow)
        return widened(value)

    def rounded(self, node: Call, arguments: Sequence[Any], value: Any) -> Any:
        """What arithmetic in the model's types would make of an operator's result: here, the result."""
        return value


class PerturbedInterpreter(ExactInterpreter):
    """The same, with an error after every operator."""

    def __init__(self, module: IRModule, seed: int) -> None:
        super().__init__(module)
        self.generator = np.random.default_rng(seed)

    def computed(self, node: Call, arguments: Sequence[Any]) -> Any:
        """Operators of several steps round within, which is as if their arguments were rounded."""
        assert isinstance(node.op, Op)
        if node.op.get_attr("TOpPattern") in (OpPattern.OPAQUE, OpPattern.OUT_ELEMWISE_FUSABLE):
            arguments = [
                _each(given, argument.checked_type, self._moved)
                for given, argument in zip(arguments, node.args, strict=True)
            ]
        return super().computed(node, arguments)

    def rounded(self, node: Call, arguments: Sequence[Any], value: Any) -> Any:
        terms = _terms(node, arguments, value)

        def error(array: Array, kind: Type) -> Array:
            unit = unit_roundoff(getattr(kind, "dtype", ""))
            if not unit or not _is_float(array) or not array.size:
                return array
            size = np.abs(array) * ELEMENT_ERROR
            if terms is not None:
                count, typical = terms
                size = size + _growth(count) * np.maximum(np.abs(array), typical)
            noise = self.generator.uniform(-1.0, 1.0, array.shape)
            exact = array == narrowed(array, kind)
            with np.errstate(all="ignore"):
                return np.where(exact | ~np.isfinite(array), array, array + noise * (size * unit))

        return _each(value, node.checked_type, error)

    def _moved(self, array: Array, kind: Type) -> Array:
        unit = unit_roundoff(getattr(kind, "dtype", ""))
        if not unit or not _is_float(array):
            return array
        return array * (1.0 + unit * self.generator.uniform(-1.0, 1.0, array.shape))


def _terms(node: Call, arguments: Sequence[Any], value: Any) -> tuple[float, float] | None:
    """How many terms the sums of an operator have, and how large a sum of such terms is whose signs are random; None if
    it makes no sums."""
    assert isinstance(node.op, Op)
    pattern, name = node.op.get_attr("TOpPattern"), node.op.name
    tensors = [one for one in arguments if isinstance(one, np.ndarray) and _is_float(one) and one.size]
    if not tensors or not isinstance(value, np.ndarray) or not value.size:
        return None
    if name in ("sum", "mean", "nn.adaptive_avg_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "cumsum"):
        count = max(tensors[0].size / value.size, 1.0)
        size = _root_mean_square(tensors[0]) * np.sqrt(count)
        return count, float(size if name in ("sum", "cumsum") else size / count)
    if pattern == OpPattern.OUT_ELEMWISE_FUSABLE and len(tensors) >= 2:
        first, second = tensors[:2]
        count = max(np.sqrt(first.size / value.size * second.size), 1.0)
        if "conv" in name:
            count = max(second.size / max(second.shape[0], 1), 1.0)
            if "conv2d" in name and 3 in second.shape:
                second = second * WINOGRAD_ERROR
        return count, float(np.sqrt(count) * _root_mean_square(first) * _root_mean_square(second))
    return None


def _growth(count: float) -> float:
    """By how much rounding errors grow in a sum: the root of the number of its terms where they are random, and their
    number where they all have one sign, as those of equal terms."""
    return float(np.sqrt(count) + count / PARTIAL_SUMS)


def _root_mean_square(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.dtype.kind == "f" or value.dtype.name == "bfloat16")


def widened(value: Any) -> Any:
    """Numbers as float64; the rest as it is."""
    if isinstance(value, (tuple, list)):
        return tuple(widened(part) for part in value)
    array = np.asarray(value)
    return array.astype(np.float64) if _is_float(array) else array


def narrowed(value: Any, kind: Type) -> Any:
    """Numbers in the types that the program has for them."""

    def narrow(array: Array, own: Type) -> Array:
        with np.errstate(all="ignore"):
            return array.astype(numpy_dtype(own.dtype)) if isinstance(own, TensorType) else array

    return _each(value, kind, narrow)


def _each(value: Any, kind: Type, change: Any) -> Any:
    if isinstance(value, tuple) and isinstance(kind, TupleType):
        return tuple(_each(part, own, change) for part, own in zip(value, kind.fields, strict=True))
    return change(value, kind) if isinstance(value, np.ndarray) else value


def allowed_error(exact: Array, perturbed: Sequence[Array], dtype: Any) -> float:
    """The largest error that rounding explains, of a value that has this type in the program. Of whole numbers it is as
    much as the perturbed ones differ, which is nothing unless rounding decides between them."""
    spread = 0.0
    for other in perturbed:
        if other.shape != exact.shape:
            return float("inf")
        with np.errstate(all="ignore"):
            apart = np.abs(other.astype(np.float64) - exact.astype(np.float64))
        finite = apart[np.isfinite(apart)]
        spread = max(spread, float(finite.max(initial=0.0)))
    unit = unit_roundoff(dtype)
    if not unit:
        return spread
    finite = np.abs(exact[np.isfinite(exact)])
    smallest = float(np.finfo(np.float32 if str(dtype) == "bfloat16" else str(dtype)).tiny)
    return SAFETY * spread + ELEMENT_ERROR * unit * float(finite.max(initial=0.0)) + smallest


class Analysis:
    """The outputs of a model for one set of inputs: exact, and with the error that each may have."""

    def __init__(self, module: IRModule, function: Function, arguments: Sequence[Any]) -> None:
        given = [widened(one) for one in arguments]
        kinds = _tensor_types(function.checked_type.ret_type)
        self.exact = flat(ExactInterpreter(module).run(function, given))
        samples = [flat(PerturbedInterpreter(module, seed).run(function, given)) for seed in range(SAMPLES)]
        self.allowed = [
            allowed_error(exact, [sample[place] for sample in samples], kind.dtype)
            for place, (exact, kind) in enumerate(zip(self.exact, kinds, strict=True))
        ]
        self.exact = [narrowed(exact, kind) for exact, kind in zip(self.exact, kinds, strict=True)]


def _tensor_types(kind: Type) -> list[TensorType]:
    if isinstance(kind, TupleType):
        return [tensor for part in kind.fields for tensor in _tensor_types(part)]
    assert isinstance(kind, TensorType)
    return [kind]


def flat(value: Any) -> list[Array]:
    """The arrays of a value of the interpreter in order."""
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in flat(part)]
    return [np.asarray(value)]
