"""Arrays that a task's programs are measured on, where random numbers would not do (indices of sparse data, say)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.runtime.ndarray import NDArray, array
from tilewright.support.errors import TilewrightError
from tilewright.te.tensor import Tensor

if TYPE_CHECKING:
    from tilewright.auto_scheduler.measure_types import BuildResult, MeasureInput

TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, NDArray]] = {}
"""By workload and name."""

TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, Callable[[Sequence[Tensor]], Mapping[Tensor, str]]] = {}
"""By name: from all arguments of a program to the names of those that need given values."""


def register_task_input_buffer(
    workload_key: str,
    input_name: str,
    input_data: Any,
    overwrite: bool = False,
    save_to_file: bool = False,
) -> NDArray:
    """Keep an array for the programs of a workload, and in a file of the current folder where asked."""
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name in table and not overwrite:
        raise TilewrightError(
            f"the task input {input_name!r} of {workload_key} is registered already; pass task_inputs_overwrite=True "
            "to replace it"
        )
    made = input_data if isinstance(input_data, NDArray) else array(np.asarray(input_data))
    table[input_name] = made
    if save_to_file:
        values = made.numpy()
        sizes = "_".join(str(extent) for extent in values.shape)
        values.tofile(f"{input_name}.{sizes}_{values.dtype}.npy", " ")
    return made


def get_task_input_buffer(workload_key: str, input_name: str) -> NDArray:
    """The array of a workload, the one registered for the workload ``default``, or one in a file of the current
    folder."""
    for key in (workload_key, "default"):
        found = TASK_INPUT_BUFFER_TABLE.get(key, {}).get(input_name)
        if found is not None:
            return found
    loaded = _from_file(input_name)
    if loaded is None:
        raise TilewrightError(
            f"there is no task input {input_name!r} for {workload_key}: give it to SearchTask as "
            f"task_inputs={{{input_name!r}: array}}"
        )
    return register_task_input_buffer(workload_key, input_name, loaded)


def _from_file(input_name: str) -> NDArray | None:
    for path in sorted(Path().glob(f"{input_name}.*.npy")):
        *sizes, dtype = path.name[len(input_name) + 1 : -len(".npy")].split("_")
        if all(size.isdigit() for size in sizes):
            values = np.fromfile(path, dtype=np.dtype(dtype), sep=" ")
            return array(values.reshape([int(size) for size in sizes]))
    return None


def register_task_input_check_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register how the arguments with given values are found: a function of all arguments to a map from some of them
    to names, under its own name or ``func_name``. It is called for every program, and gives nothing for most."""
    name, function = (func_name.__name__, func_name) if callable(func_name) else (func_name, f)

    def register(chosen: Any) -> Any:
        if name in TASK_INPUT_CHECK_FUNC_REGISTRY and not override:
            raise TilewrightError(f"{name} is registered already; pass override=True to replace it")
        TASK_INPUT_CHECK_FUNC_REGISTRY[name] = chosen
        return chosen

    return register(function) if function is not None else register


def prepare_input_map(args: Sequence[Tensor]) -> dict[Tensor, str]:
    """The names of the arguments that have given values."""
    found: dict[Tensor, str] = {}
    for names_of in TASK_INPUT_CHECK_FUNC_REGISTRY.values():
        found.update(names_of(args))
    return found


def prepare_runner_args(inp: MeasureInput, build_res: BuildResult) -> list[Any]:
    """For each argument of a program its given value, or None for random numbers."""
    names = list(inp.task.task_input_names)
    by_tensor = prepare_input_map(build_res.args)
    used: set[str] = set()
    values: list[Any] = []
    for argument in build_res.args:
        # A placeholder of the same name is meant where no function says otherwise.
        name = by_tensor.get(argument, argument.name if argument.name in names else None)
        if name is None:
            values.append(None)
            continue
        if name not in names:
            raise TilewrightError(
                f"{inp.task.workload_key} needs the values of {name!r}: give them to SearchTask as "
                f"task_inputs={{{name!r}: array}}"
            )
        values.append(get_task_input_buffer(inp.task.workload_key, name).numpy())
        used.add(name)
    unused = [name for name in names if name not in used]
    if unused:
        raise TilewrightError(
            f"the task inputs {', '.join(unused)} of {inp.task.workload_key} belong to no argument: they are named "
            "after placeholders, or by register_task_input_check_func"
        )
    return values
