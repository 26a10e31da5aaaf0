"""Compiled models ready to run, with any executor: the graph executor, the virtual machine, or one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.driver.profile.kernels import KernelProfile, measure_kernels
from tilewright.driver.profile.machine_kernels import measure_program, require_host
from tilewright.driver.profile.roofline import compared_with_limits, limits_of
from tilewright.driver.tvmc.devices import graph_devices, require_devices, target_devices, timed_device
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.tensors import TensorInfo
from tilewright.runtime import ndarray
from tilewright.runtime.benchmark import BenchmarkResult, time_evaluator
from tilewright.runtime.container import ADT
from tilewright.runtime.device import Device, cpu
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.target import Target

Values = Mapping[str, np.ndarray[Any, Any]]
"""Tensors by name."""


class Runnable:
    """A compiled model: give it inputs, run it, take its outputs."""

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        raise NotImplementedError

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        raise NotImplementedError

    def function(self) -> tuple[PackedFunc, list[Any]]:
        """The function to time, and its arguments."""
        raise NotImplementedError

    @property
    def device(self) -> Device:
        """The device whose clock times it."""
        return cpu(0)

    def profile(self, repeat: int = 10) -> KernelProfile:
        """The time of every kernel, compared with the limits of the machine."""
        raise TVMCException(
            "a model compiled ahead of time has no kernels to time one by one: compile it for graph or vm"
        )

    def benchmark(self, repeat: int, number: int, end_to_end: bool = False) -> BenchmarkResult:
        """The times of runs: ``repeat`` times the mean of ``number``. ``end_to_end`` takes in the copies of the
        outputs."""
        if end_to_end:

            def whole() -> None:
                self.run()

            return time_evaluator(convert_to_tvm_func(whole), number, repeat)()
        function, arguments = self.function()
        return time_evaluator(function, number, repeat, device=self.device)(*arguments)


class GraphRunnable(Runnable):
    """A graph with its kernels and parameters, on the devices that it was compiled for."""

    def __init__(self, graph: str, library: Module, params: Mapping[str, NDArray]) -> None:
        self.graph = graph
        self.devices = graph_devices(graph)
        require_devices(self.devices)
        self.executor = GraphExecutor(graph, library, self.devices)
        for name, value in params.items():
            if self.executor.get_input_index(name) < 0:
                continue
            if self.executor.get_input(name).device == value.device:
                self.executor.set_input_zero_copy(name, value)
            else:
                self.executor.set_input(name, value)
        self.executor.keep(dict(params))
        # Views of the executor's memory, made once: a run costs two copies and one call.
        self._inputs = {
            name: self.executor.get_input(name) for name in self.executor.input_names() if name not in params
        }
        self._outputs = [
            self.executor.get_output(position) for position in range(self.executor.get_num_outputs())
        ]

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        for name, value in values.items():
            self._inputs[name].copyfrom(value)

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        self.executor.run()
        return [output.numpy() for output in self._outputs]

    def function(self) -> tuple[PackedFunc, list[Any]]:
        """The function to time, and its arguments."""
        return self.executor["run"], []

    @property
    def device(self) -> Device:
        """The device whose clock times it."""
        return timed_device(self.devices)

    def profile(self, repeat: int = 10) -> KernelProfile:
        """The time of every kernel, compared with the limits of the machine."""
        return compared_with_limits(
            lambda: measure_kernels(self.executor, self.graph, repeat), limits_of(self.device)
        )


class MachineRunnable(Runnable):
    """A program of the virtual machine, on the devices that its target means."""

    def __init__(self, executable: Executable, target: str | Target = "") -> None:
        self.executable = executable
        self.devices = target_devices(target)
        require_devices(self.devices)
        self.names = executable.get_function_params("main")
        self.machine = VirtualMachine(executable, self.devices)
        self.arguments: list[NDArray] = []

    @property
    def device(self) -> Device:
        """The device whose clock times it."""
        return timed_device(self.devices)

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        self.arguments = [ndarray.array(values[name]) for name in self.names]

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        return flat(self.machine.invoke("main", *self.arguments))

    def profile(self, repeat: int = 10) -> KernelProfile:
        """The time of every kernel, compared with the limits of the machine."""
        require_host(self.device)
        return compared_with_limits(lambda: measure_program(self.executable, self.arguments, repeat=repeat))

    def benchmark(self, repeat: int, number: int, end_to_end: bool = False) -> BenchmarkResult:
        """The times of runs."""
        return self.machine.benchmark(
            self.device, *self.arguments, repeat=repeat, number=number, end_to_end=end_to_end
        )


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result, which may be a tuple of tuples."""
    if isinstance(value, NDArray):
        return [value.numpy()]
    if isinstance(value, (ADT, tuple, list)):
        return [part for field in value for part in flat(field)]
    raise TVMCException(f"the model returns a {type(value).__name__}, which is not a tensor")


class FunctionRunnable(Runnable):
    """A model compiled ahead of time: one function of inputs, outputs and the memory that it works in."""

    def __init__(
        self,
        function: PackedFunc,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[TensorInfo],
        workspace_bytes: int,
        device: Device | None = None,
    ) -> None:
        self._function = function
        self.names = [one.name for one in inputs]
        self.inputs = [ndarray.empty(_sizes(one), one.dtype, device) for one in inputs]
        self.outputs = [ndarray.empty(_sizes(one), one.dtype, device) for one in outputs]
        self.workspace = [ndarray.empty((workspace_bytes,), "uint8", device)] if workspace_bytes else []

    def set_inputs(self, values: Values) -> None:
        """The inputs of the runs that follow."""
        for name, place in zip(self.names, self.inputs, strict=True):
            place.copyfrom(values[name])

    def run(self) -> list[np.ndarray[Any, Any]]:
        """The outputs, in order, as copies."""
        self._function(*self._arguments())
        return [one.numpy() for one in self.outputs]

    def function(self) -> tuple[PackedFunc, list[Any]]:
        """The function to time, and its arguments."""
        return self._function, self._arguments()

    def _arguments(self) -> list[Any]:
        return [*self.inputs, *self.outputs, *self.workspace]


def _sizes(tensor: TensorInfo) -> tuple[int, ...]:
    return tuple(size for size in tensor.shape if size is not None)
