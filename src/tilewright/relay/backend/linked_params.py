"""Linked parameters (``-link-params``): a model's parameters as constants of its library.

They lie in read-only memory, which all processes that load the library share, and nobody has to set them. The library's
function ``_lookup_linked_param`` gives their addresses, by the number of their storage in the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.codegen.c.brought_source import C_SOURCE
from tilewright.codegen.c.names import identifier
from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, StringImm, Var
from tilewright.ir.module import IRModule
from tilewright.relay.backend.aot.constants import as_llvm
from tilewright.relay.backend.graph import CPU, Entry, ExecutorGraph
from tilewright.relay.backend.memory_plan import GraphMemory
from tilewright.runtime.ndarray import NDArray
from tilewright.support.arena import ALIGNMENT
from tilewright.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, IfThenElse, Stmt, stmt_seq

LOOKUP = "_lookup_linked_param"
_VALUES_A_LINE = 8


def links_params(target: Target) -> bool:
    """True if a target asks for linked parameters."""
    return target.kind.name in ("c", "llvm") and bool(target.attrs.get("link-params"))


def linked_storages(graph: ExecutorGraph, memory: GraphMemory) -> dict[str, int]:
    """The storages of the parameters that the host reads, by name."""
    return {
        node.name: memory.storage_of[Entry(number)]
        for number, node in enumerate(graph.nodes)
        if node.value is not None and node.device == CPU
    }


def lookup_function(storages: Mapping[str, int], values: Mapping[str, NDArray], target: Target) -> IRModule:
    """The function that finds the parameters, with their values."""
    storage = Var("storage_id", "int64")
    addresses = {name: f"__tvm_param_address__{identifier(name)}" for name in storages}
    cases: list[Stmt] = [
        IfThenElse(operators.equal(storage, storages[name]), _give(_address(symbol)), None)
        for name, symbol in addresses.items()
    ]
    nothing = operators.call("reinterpret", "handle", [operators.const(0, "uint64")])
    body = stmt_seq(*cases, _give(nothing))
    attributes: dict[str, Any] = {"global_symbol": LOOKUP, "target": target}
    if target.kind.name == "c":
        attributes[C_SOURCE] = "\n".join(
            ["#include <math.h>", "#include <stdint.h>", ""]
            + [_as_c(f"__tvm_param__{identifier(name)}", addresses[name], values[name]) for name in storages]
        )
    else:
        for name, symbol in addresses.items():
            text = StringImm(as_llvm(symbol, values[name].numpy().tobytes()))
            body = AttrStmt(StringImm(name), "pragma_import_llvm", text, body)
    return IRModule({LOOKUP: PrimFunc([storage], body, attrs=attributes)})


def _give(value: PrimExpr) -> Stmt:
    return Evaluate(operators.call("ret", "handle", [value]))


def _address(symbol: str) -> PrimExpr:
    return operators.call("call_extern", "handle", [symbol])


def _as_c(symbol: str, address: str, value: NDArray) -> str:
    """C text with the values, exactly, and a function that returns their address."""
    array = value.numpy()
    kind, number = _c_form(array.dtype)
    bits = array if array.dtype.kind in "iuf" and array.dtype.itemsize >= 4 else _bits(array)
    texts = [number(one) for one in bits.reshape(-1).tolist()] or ["0"]
    rows = [texts[at : at + _VALUES_A_LINE] for at in range(0, len(texts), _VALUES_A_LINE)]
    return "\n".join(
        [
            f"_Alignas({ALIGNMENT})",
            f"static const {kind} {symbol}[{len(texts)}] = {{",
            *(f"    {', '.join(row)}," for row in rows),
            "};",
            f"static void* {address}(void) {{ return (void*){symbol}; }}",
            "",
        ]
    )


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers of the same size: what C writes types as that it does not have."""
    signed = array.dtype.kind == "i"
    return array.view(f"{'int' if signed else 'uint'}{8 * array.dtype.itemsize}")


def _c_form(dtype: np.dtype[Any]) -> tuple[str, Callable[[Any], str]]:
    """The type of C, and how it writes a value."""
    if dtype.kind == "f" and dtype.itemsize >= 4:
        return ("float" if dtype.itemsize == 4 else "double"), _float
    bits = 8 * dtype.itemsize
    if dtype.kind == "i":
        return f"int{bits}_t", lambda value: f"{value:+#0{bits // 4 + 3}x}"
    return f"uint{bits}_t", lambda value: f"{value:#0{bits // 4 + 2}x}"


def _float(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    digits, _, exponent = value.hex().partition("p")
    return f"{digits.rstrip('0')}p{exponent}"
