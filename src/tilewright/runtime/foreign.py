"""Modules and executors of another process, as this one uses them. ``rpc`` has those of remote machines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.device import Device
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc


@runtime_checkable
class GraphOperations(Protocol):
    """What ``GraphModule`` needs of a graph executor, here or elsewhere."""

    def run(self) -> None:
        """Runs every node once."""

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input."""

    def set_input_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Makes an input read an array in place."""

    def get_input(self, key: int | str) -> NDArray:
        """An input, sharing the executor's memory."""

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output."""

    def get_num_inputs(self) -> int:
        """The number of inputs."""

    def get_num_outputs(self) -> int:
        """The number of outputs."""

    def get_input_index(self, name: str) -> int:
        """The position of an input."""

    def get_output_index(self, name: str) -> int:
        """The position of an output."""

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the types of the inputs that are not parameters."""

    def input_names(self) -> list[str]:
        """The names of all inputs."""

    def output_names(self) -> list[str]:
        """The names of the outputs."""

    def inputs_without_value(self) -> list[str]:
        """The inputs that were never set."""

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copies saved parameters in."""

    def share_params(self, other: Any, params_bytes: bytes | bytearray) -> None:
        """Uses another executor's parameters."""

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """An output of any node."""


@runtime_checkable
class NodeOperations(GraphOperations, Protocol):
    """What a debugging executor needs: a graph executor that runs node by node."""

    def run_node_timed(self, node: int) -> float:
        """Runs one node; the seconds that it took."""

    def node_output(self, node: int, index: int = 0) -> NDArray:
        """An output of a node."""

    def time_node(
        self, node: int, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0
    ) -> BenchmarkResult:
        """Measures one node."""


class ForeignMachine(Protocol):
    """A virtual machine of another process."""

    def parameters(self, func_name: str) -> list[str]:
        """The names of a function's parameters."""

    def convert(self, args: Sequence[Any]) -> list[Any]:
        """Arguments as the machine takes them."""

    def function(self, func_name: str) -> PackedFunc:
        """A function of the program."""

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

    def profile(self, func_name: str, args: Sequence[Any]) -> list[tuple[str, float, float]]:
        """The kernels that a run there calls: name, begin and seconds of each."""


class ForeignModule(Module):
    """A module of another process."""

    @abstractmethod
    def graph_executor(self, graph_json: str, devices: Sequence[Device]) -> Module:
        """An executor there of a graph whose functions are in this module; has ``GraphOperations``."""

    @abstractmethod
    def virtual_machine(self, devices: Sequence[Device], keeps_memory: bool) -> ForeignMachine:
        """A machine there for the program that this module imports."""
