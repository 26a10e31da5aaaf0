"""The inputs and outputs of the parts of a model that an external code generator compiles, for calibrating them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import TilewrightError


def _flat(value: Any) -> list[NDArray]:
    """The arrays of a value, tuples flattened."""
    if isinstance(value, tuple):
        return [array for field in value for array in _flat(field)]
    return [ndarray.array(value)]


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """Run a partitioned module on named inputs. For each function with the attribute "Compiler" that main calls: the
    arrays of its "inputs" and of its "outputs". The operators' references compute them."""
    main: Function = mod["main"]
    calls: list[Call] = []
    for node in post_order(main.body):
        if isinstance(node, Call) and isinstance(node.op, GlobalVar) and mod[node.op].attrs.get("Compiler"):
            calls.append(node)
    names = [parameter.name_hint for parameter in main.params]
    missing = [name for name in names if name not in data]
    if missing:
        raise TilewrightError(f"there is no data for {', '.join(missing)}")
    watched = Function(main.params, Tuple([field for call in calls for field in (Tuple(call.args), call)]))
    typed = infer_module(mod.with_functions({**mod.functions, mod.get_global_var("main"): watched}))
    arguments = [
        value.numpy() if isinstance(value, NDArray) else value for value in (data[name] for name in names)
    ]
    values = Interpreter(typed).run(typed["main"], arguments)
    found: dict[GlobalVar, dict[str, list[NDArray]]] = {}
    for position, call in enumerate(calls):
        callee: Any = call.op
        if callee in found:
            raise TilewrightError(
                f"{callee.name_hint} is called in several places: calibrate them one by one"
            )
        found[callee] = {
            "inputs": _flat(values[2 * position]),
            "outputs": _flat(values[2 * position + 1]),
        }
    return found
