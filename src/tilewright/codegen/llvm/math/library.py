"""The math functions that a module uses, each emitted once per type and number of lanes, and inlined by LLVM.

``FUNCTIONS`` is the table of all of them. The last column is the largest error over all inputs in units in the last
place, which the tests check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.codegen.llvm.math import (
    exponential,
    half,
    inverse,
    logarithm,
    special,
    trigonometry,
    trigonometry_float64,
)
from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.types import vector
from tilewright.codegen.llvm.writer import FunctionText, ModuleText
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError

Body = Callable[..., Value]


@dataclass(frozen=True)
class Function:
    """One function: bodies for float32 and float64 (None: it is only for 16-bit floats, which are computed in float32),
    how many arguments, and its errors."""

    single: Body
    single_ulp: float
    double: Body | None
    double_ulp: float = 0.0
    arguments: int = 1
    result: str = ""
    second: str = ""
    """The element type of the result and of the second argument, where it is not the function's own."""


@dataclass(frozen=True)
class Signature:
    """How a function is written: element types of result and parameters, and the body."""

    result: str
    parameters: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class MathFunction:
    """An emitted function: its symbol and the vector types of its result and parameters."""

    name: str
    result: str
    parameters: tuple[str, ...]


def _exact(body: Body, arguments: int = 1, result: str = "") -> Function:
    return Function(body, 0.5, body, 0.5, arguments, result)


FUNCTIONS: Mapping[str, Function] = {
    "exp": Function(exponential.exp, 1.0, exponential.exp, 1.0),
    "exp2": Function(exponential.exp2, 1.0, exponential.exp2, 1.5),
    "exp10": Function(exponential.exp10, 1.5, exponential.exp10, 1.5),
    "sigmoid": Function(exponential.sigmoid, 2.5, exponential.sigmoid, 2.5),
    "tanh": Function(exponential.tanh, 2.5, exponential.tanh, 2.5),
    "sinh": Function(exponential.sinh, 2.5, exponential.sinh, 2.5),
    "cosh": Function(exponential.cosh, 1.5, exponential.cosh, 1.5),
    "log": Function(logarithm.log, 1.0, logarithm.log, 1.0),
    "log2": Function(logarithm.log2, 1.5, logarithm.log2, 2.0),
    "log10": Function(logarithm.log10, 2.0, logarithm.log10, 2.0),
    "log1p": Function(logarithm.log1p, 1.5, logarithm.log1p, 1.5),
    "asinh": Function(logarithm.asinh, 2.5, logarithm.asinh, 2.5),
    "acosh": Function(logarithm.acosh, 2.5, logarithm.acosh, 2.5),
    "atanh": Function(logarithm.atanh, 2.5, logarithm.atanh, 2.5),
    "sin": Function(trigonometry.sin, 2.0, trigonometry_float64.sin, 1.0),
    "cos": Function(trigonometry.cos, 2.0, trigonometry_float64.cos, 1.0),
    "tan": Function(trigonometry.tan, 3.0, trigonometry_float64.tan, 2.0),
    "asin": Function(inverse.asin, 2.5, inverse.asin, 2.5),
    "acos": Function(inverse.acos, 1.5, inverse.acos, 1.5),
    "atan": Function(inverse.atan, 2.0, inverse.atan, 2.0),
    "atan2": Function(inverse.atan2, 2.0, inverse.atan2, 2.5, arguments=2),
    "erf": Function(special.erf, 2.5, special.erf_float64, 1.0),
    "pow": Function(special.pow, 1.0, special.pow, 1.0, arguments=2),
    "hypot": Function(special.hypot, 0.5, special.hypot_float64, 1.5, arguments=2),
    "ldexp": Function(special.ldexp, 0.5, special.ldexp_float64, 0.5, arguments=2, second="i32"),
    "rsqrt": Function(special.rsqrt, 1.5, special.rsqrt, 1.5),
    "sqrt": _exact(special.sqrt),
    "fma": _exact(special.fma, 3),
    "fmod": _exact(special.fmod, 2),
    "copysign": _exact(special.copysign, 2),
    "nextafter": _exact(special.nextafter, 2),
    "floor": _exact(special.floor),
    "ceil": _exact(special.ceil),
    "trunc": _exact(special.trunc),
    "round": _exact(special.nearest),
    "nearbyint": _exact(special.nearbyint),
    "isnan": _exact(special.isnan, result="i1"),
    "isinf": _exact(special.isinf, result="i1"),
    "isfinite": _exact(special.isfinite, result="i1"),
}

_CONVERSIONS: Mapping[str, Signature] = {
    "bfloat16_to_float32": Signature("float", ("i16",), half.bfloat16_to_float32),
    "float32_to_bfloat16": Signature("i16", ("float",), half.float32_to_bfloat16),
    "float16_to_float32": Signature("float", ("i16",), half.float16_to_float32),
    "float32_to_float16": Signature("i16", ("float",), half.float32_to_float16),
    "float64_to_float32_odd": Signature("float", ("double",), half.float64_to_float32_odd),
}


def _signature(name: str, dtype: DataType, functions: Mapping[str, Function]) -> Signature:
    """How ``name`` is written for a type."""
    conversion = _CONVERSIONS.get(name)
    if conversion is not None:
        return conversion
    function = functions.get(name)
    element = {32: "float", 64: "double"}.get(dtype.bits) if dtype.is_float else None
    body = None if function is None else function.single if element == "float" else function.double
    if function is None or element is None or body is None:
        raise CodegenError(f"there is no function {name} for {dtype}")
    result = function.result or element
    parameters = [element] * function.arguments
    if function.second:
        parameters[1] = function.second
    return Signature(result, tuple(parameters), body)


class MathLibrary:
    """Finds functions by name and type, and emits those not yet in the module."""

    def __init__(
        self,
        has_fma: bool,
        attributes: str,
        features: frozenset[str] = frozenset(),
        functions: Mapping[str, Function] = FUNCTIONS,
    ) -> None:
        self.has_fma = has_fma
        self.functions = functions
        self.features = features
        self.attributes = attributes
        self._emitted: dict[str, MathFunction] = {}

    def function(self, module: ModuleText, name: str, dtype: DataType) -> MathFunction:
        """The function ``name`` on values of ``dtype``."""
        symbol = f"tilewright.{name}.{dtype.bits}x{dtype.lanes}"
        found = self._emitted.get(symbol)
        if found is None:
            signature = _signature(name, dtype, self.functions)
            found = self._emitted[symbol] = self._emit(module, symbol, signature, dtype.lanes)
        return found

    def _emit(self, module: ModuleText, symbol: str, signature: Signature, lanes: int) -> MathFunction:
        made = MathFunction(
            symbol,
            vector(signature.result, lanes),
            tuple(vector(kind, lanes) for kind in signature.parameters),
        )
        parameters = [(kind, f"%a{number}") for number, kind in enumerate(made.parameters)]
        text = FunctionText(symbol, made.result, parameters, "internal", f"alwaysinline {self.attributes}")
        block = Block(module, text, lanes, self.has_fma, self.features)
        arguments = [
            Value(block, element, name)
            for element, (_, name) in zip(signature.parameters, parameters, strict=True)
        ]
        result = signature.body(block, *arguments)
        text.effect(f"ret {made.result} {result.operand}")
        module.functions.append(text.text())
        return made
