"""Virtual machines of a session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.rpc.remote_array import RemoteArray
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.device import Device
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import array
from tilewright.runtime.packed_func import PackedFunc


class RemoteMachine:
    """A virtual machine of a session. Results that are tuples come as lists."""

    def __init__(self, module: Module, device: Device) -> None:
        self._module, self._device = module, device

    def parameters(self, func_name: str) -> list[str]:
        """The names of a function's parameters."""
        return list(self._module.get_function("get_function_params")(func_name))

    def convert(self, args: Sequence[Any]) -> list[Any]:
        """Arrays of this machine are copied to the device."""
        return [self._converted(value) for value in args]

    def _converted(self, value: Any) -> Any:
        if isinstance(value, (RemoteArray, PackedFunc)):
            return value
        if isinstance(value, (list, tuple)):
            return self.convert(value)
        plain = {bool: "bool", int: "int32", float: "float32"}.get(type(value))
        return array(np.asarray(value, plain) if plain is not None else value, self._device)

    def function(self, func_name: str) -> PackedFunc:
        """A function of the program."""
        return self._module.get_function(func_name)

    def benchmark(
        self,
        func_name: str,
        args: Sequence[Any],
        device: Device,
        number: int,
        repeat: int,
        min_repeat_ms: int,
    ) -> BenchmarkResult:
        """Measures a function there."""
        return self._module.time_evaluator(func_name, device, number, repeat, min_repeat_ms)(*args)

    def profile(self, func_name: str, args: Sequence[Any]) -> list[tuple[str, float, float]]:
        """The kernels that a run there calls: name, begin and seconds of each."""
        calls = json.loads(self._module.get_function("__profile__")(func_name, *args))
        return [(str(name), float(begin), float(seconds)) for name, begin, seconds in calls]
