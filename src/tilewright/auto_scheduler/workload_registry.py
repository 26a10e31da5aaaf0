"""Workloads: the computations that records and tasks name.

A key is JSON: ``["matmul", 64, 64, 64]``, the name of a registered function and its arguments, or the hash of a graph
and the shapes of its tensors, ``["3f...", [64, 64], ...]``, under which its tensors are registered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.auto_scheduler.dag_order import ordered_operations
from tilewright.auto_scheduler.tensors_json import tensors_from_json, tensors_to_json
from tilewright.ir.expr import FloatImm, IntImm, StringImm
from tilewright.support.errors import ScheduleError
from tilewright.te.tensor import Tensor

WORKLOAD_FUNC_REGISTRY: Final[dict[str, Callable[..., Any] | list[Tensor]]] = {}
"""Functions by their names, and lists of tensors by their keys."""


def register_workload(
    func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Register a function that makes tensors, as a decorator or not: ``@register_workload`` under its own name, or
    ``register_workload("name", function)``. The function takes plain numbers and texts."""
    function_given = func_name if callable(func_name) else f
    name = func_name.__name__ if callable(func_name) else func_name
    if not isinstance(name, str):
        raise ScheduleError(f"{func_name!r} is not the name of a workload")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        known = WORKLOAD_FUNC_REGISTRY.get(name)
        if known is not None and not override and not _same_function(known, function):
            raise ScheduleError(
                f"a workload {name} is registered already; give it another name, or pass override=True"
            )
        WORKLOAD_FUNC_REGISTRY[name] = function
        return function

    return register if function_given is None else register(function_given)


def _same_function(known: Any, function: Callable[..., Any]) -> bool:
    """True for a function that was merely loaded again."""
    old, new = getattr(known, "__code__", None), getattr(function, "__code__", None)
    return old is not None and new is not None and bool(old == new)


def register_workload_tensors(workload_key: str, tensors: Sequence[Tensor], override: bool = True) -> str:
    """Register tensors under the key of their graph; returns the key."""
    if workload_key in WORKLOAD_FUNC_REGISTRY and not override:
        raise ScheduleError(
            f"tensors are registered under the key {workload_key} already; pass override=True"
        )
    WORKLOAD_FUNC_REGISTRY[workload_key] = list(tensors)
    return workload_key


def make_workload_key(func: str | Callable[..., Any], args: Sequence[Any]) -> str:
    """The key of a registered function with these arguments."""
    name = func.__name__ if callable(func) else func
    if not isinstance(name, str):
        raise ScheduleError(f"{func!r} is neither a function nor the name of one")
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise ScheduleError(f"{name} is not registered; put @auto_scheduler.register_workload above it")
    return json.dumps([name, *(_serializable(argument) for argument in args)])


def _serializable(argument: Any) -> Any:
    """An argument as JSON has it; a tensor is a list with the word TENSOR, its shape and its type."""
    if isinstance(argument, Tensor):
        return ["TENSOR", [_serializable(extent) for extent in argument.shape], str(argument.dtype)]
    if isinstance(argument, (list, tuple)):
        return [_serializable(one) for one in argument]
    if isinstance(argument, (IntImm, FloatImm, StringImm)):
        return argument.value
    if argument is None or isinstance(argument, (str, int, float, bool)):
        return argument
    raise ScheduleError(
        f"an argument of a workload must be a number, a text, a list of them or a tensor, not {argument!r}"
    )


def decode_workload_key_to_func_args(workload_key: str) -> tuple[str, list[Any]]:
    """The function's name and the arguments of a key."""
    try:
        workload = json.loads(workload_key)
    except (json.JSONDecodeError, TypeError) as error:
        raise ScheduleError(f"{workload_key!r} is not the key of a workload: it is not JSON") from error
    if not isinstance(workload, list) or not workload or not isinstance(workload[0], str):
        raise ScheduleError(
            f"{workload_key!r} is not the key of a workload: it must be a list that begins with a name"
        )
    if workload[0] not in WORKLOAD_FUNC_REGISTRY:
        raise ScheduleError(
            f"the workload {workload[0]} is not registered in this program; import the module that registers it, "
            "or register its tensors with register_workload_tensors"
        )
    return workload[0], workload[1:]


def workload_key_to_tensors(workload_key: str) -> list[Tensor]:
    """The inputs and outputs of a workload."""
    if not isinstance(workload_key, str):
        raise ScheduleError(f"{workload_key!r} is not the key of a workload")
    found = WORKLOAD_FUNC_REGISTRY.get(workload_key)
    arguments: list[Any] = []
    if found is None:
        name, arguments = decode_workload_key_to_func_args(workload_key)
        found = WORKLOAD_FUNC_REGISTRY[name]
    if not callable(found):
        return list(found)
    made = found(*arguments)
    if not isinstance(made, (list, tuple)) or not all(isinstance(one, Tensor) for one in made):
        raise ScheduleError(
            f"the workload {workload_key} must return a list of tensors (its inputs and outputs), it returned {made!r}"
        )
    return list(made)


def serialize_workload_registry_entry(workload_key: str) -> Any:
    """What another process needs to know a workload: its name, and its tensors as JSON where it has no function."""
    found = WORKLOAD_FUNC_REGISTRY.get(workload_key)
    name = workload_key
    if found is None:
        name, _ = decode_workload_key_to_func_args(workload_key)
        found = WORKLOAD_FUNC_REGISTRY[name]
    if callable(found):
        return name, {"module": found.__module__, "function": found.__qualname__}
    return name, {"tensors": tensors_to_json(ordered_operations(found), found)}


def deserialize_workload_registry_entry(data: Any) -> None:
    """Register what ``serialize_workload_registry_entry`` gave. Tensors are read; of a function only the name is there,
    which the program must have registered itself: nothing is imported or run."""
    name, entry = data
    if name in WORKLOAD_FUNC_REGISTRY:
        return
    if "tensors" not in entry:
        raise ScheduleError(
            f"the workload {name} is made by {entry.get('module')}.{entry.get('function')}; import that module first"
        )
    WORKLOAD_FUNC_REGISTRY[name] = tensors_from_json(entry["tensors"])[1]


def save_workload_func_registry(filename: str) -> None:
    """Write every workload to a file."""
    entries = [serialize_workload_registry_entry(name) for name in WORKLOAD_FUNC_REGISTRY]
    Path(filename).write_text(json.dumps(entries), encoding="utf-8")


def load_workload_func_registry(filename: str) -> None:
    """Register the workloads of a file whose tensors it has; those made by functions must be registered already."""
    try:
        entries = json.loads(Path(filename).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ScheduleError(f"{filename} is not a registry of workloads: {error}") from error
    for entry in entries:
        if entry[0] not in WORKLOAD_FUNC_REGISTRY and "tensors" in entry[1]:
            deserialize_workload_registry_entry(entry)
