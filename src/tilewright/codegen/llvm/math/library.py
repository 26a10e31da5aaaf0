"""The functions that a module uses, each emitted once for a type and number of lanes, to be inlined by LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.codegen.llvm.math import half
from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.types import vector
from tilewright.codegen.llvm.writer import FunctionText, ModuleText
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError


@dataclass(frozen=True)
class Signature:
    """How a function is written: element types of result and parameters, and the body."""

    result: str
    parameters: tuple[str, ...]
    body: Callable[..., Value]


@dataclass(frozen=True)
class MathFunction:
    """An emitted function: its symbol and the vector types of its result and parameters."""

    name: str
    result: str
    parameters: tuple[str, ...]


_CONVERSIONS: dict[str, Signature] = {
    "bfloat16_to_float32": Signature("float", ("i16",), half.bfloat16_to_float32),
    "float32_to_bfloat16": Signature("i16", ("float",), half.float32_to_bfloat16),
    "float16_to_float32": Signature("float", ("i16",), half.float16_to_float32),
    "float32_to_float16": Signature("i16", ("float",), half.float32_to_float16),
    "float64_to_float32_odd": Signature("float", ("double",), half.float64_to_float32_odd),
}


FUNCTIONS: dict[str, Signature] = {}


class MathLibrary:
    """Finds functions by name and type, and emits those not yet in the module."""

    def __init__(self, has_fma: bool, attributes: str) -> None:
        self.has_fma = has_fma
        self.attributes = attributes
        self._emitted: dict[str, MathFunction] = {}

    def function(self, module: ModuleText, name: str, dtype: DataType) -> MathFunction:
        """The function ``name`` on values of ``dtype``."""
        signature = _CONVERSIONS.get(name)
        if signature is None:
            raise CodegenError(f"there is no function {name} for {dtype}")
        symbol = f"tilewright.{name}.{dtype.bits}x{dtype.lanes}"
        found = self._emitted.get(symbol)
        if found is None:
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
        block = Block(module, text, lanes, self.has_fma)
        arguments = [
            Value(block, element, name)
            for element, (_, name) in zip(signature.parameters, parameters, strict=True)
        ]
        result = signature.body(block, *arguments)
        text.effect(f"ret {made.result} {result.operand}")
        module.functions.append(text.text())
        return made
