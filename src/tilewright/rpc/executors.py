"""What servers can do with executors, as functions that take and return what travels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.runtime.call_log import CallLog
from tilewright.runtime.container import ADT
from tilewright.runtime.device import Device
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.vm import Executable, VirtualMachine


def create_executor(graph_json: str | bytes, library: Module, *numbers: Any) -> Module:
    """A graph executor on devices, each given as a Device or as two numbers."""
    described = graph_json if isinstance(graph_json, str) else graph_json.decode()
    devices: list[Device] = []
    rest = list(numbers)
    while rest:
        first = rest.pop(0)
        devices.append(first if isinstance(first, Device) else Device(first, rest.pop(0)))
    return GraphExecutor(described, library, devices or None)


def _executor(module: Any) -> GraphExecutor:
    if not isinstance(module, GraphExecutor):
        raise TypeError(f"a {type(module).__name__} is not a graph executor")
    return module


def node_names(module: Module) -> bytes:
    """The names of a graph's nodes, one a line."""
    return "\n".join(_executor(module).node_names()).encode()


def run_timed(module: Module, repeat: int) -> bytes:
    """Begin and seconds of every node, for each run."""
    runs = _executor(module).run_timed(repeat)
    return np.asarray(runs, "<f8").tobytes()


def time_node(module: Module, node: int, number: int, repeat: int, min_repeat_ms: int) -> bytes:
    """The seconds of each repeat of one node."""
    return np.asarray(
        _executor(module).time_node(node, number, repeat, min_repeat_ms).results, "<f8"
    ).tobytes()


class _MachineModule(Module):
    """A virtual machine as a module: its functions are those of the program."""

    def __init__(self, library: Module, keeps_memory: bool, devices: Sequence[Device]) -> None:
        executable = Executable(library)
        super().__init__("VirtualMachine", [*executable.globals, "get_function_params", "__profile__"])
        self._executable, self._devices = executable, list(devices)
        self._machine = VirtualMachine(executable, devices, "pooled" if keeps_memory else "naive")

    def _find(self, name: str) -> PackedFunc | None:
        if name == "get_function_params":
            return convert_to_tvm_func(self._executable.get_function_params)
        if name == "__profile__":
            return convert_to_tvm_func(self._profile)
        if name not in self._executable.globals:
            return None
        machine = self._machine
        return convert_to_tvm_func(lambda *args: _fields(machine.call(name, *args)))

    def _profile(self, name: str, *args: Any) -> bytes:
        """Runs a function once to warm up and once to measure; its kernels as JSON."""
        log = CallLog()
        machine = VirtualMachine(self._executable, self._devices, log=log)
        machine.call(name, *args)
        log.clear()
        machine.call(name, *args)
        return json.dumps([(call.name, call.begin_seconds, call.seconds) for call in log.calls()]).encode()


def _fields(value: Any) -> Any:
    """The fields of tuples, as lists."""
    return [_fields(field) for field in value] if isinstance(value, (ADT, tuple, list)) else value


def create_machine(library: Module, keeps_memory: bool, *devices: Device) -> Module:
    """A virtual machine for the program that a library imports."""
    return _MachineModule(library, keeps_memory, devices)
