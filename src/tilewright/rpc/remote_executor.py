"""Graph executors of a session."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.rpc.remote_array import RemoteArray
from tilewright.rpc.remote_module import RemoteModule
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, empty, numpy_dtype


class RemoteGraphExecutor(RemoteModule):
    """A graph executor of a session, with the methods of the local one."""

    def run(self) -> None:
        """Runs every node once."""
        self.get_function("run")()

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input, by name or position."""
        if isinstance(value, RemoteArray) and value.peer is self.peer:
            self.get_function("set_input")(key, value)
            return
        target = self.get_input(key)
        source = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
        if source.dtype != numpy_dtype(target.dtype) and not np.can_cast(
            source.dtype, numpy_dtype(target.dtype), "same_kind"
        ):
            raise failure("TypeError", f"the input {key!r} is {target.dtype}, and the value {source.dtype}")
        # Not into the input's own memory, which executors of one model may share.
        copied = empty(target.shape, target.dtype, target.device).copyfrom(source)
        self.get_function("set_input")(key, copied)

    def set_input_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Makes an input read an array of the session in place."""
        self.get_function("set_input_zero_copy")(key, value)

    def get_input(self, key: int | str) -> NDArray:
        """An input, sharing the executor's memory."""
        found: NDArray = self.get_function("get_input")(key)
        return found

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output by position or name: copied into ``out``, or as a view that the next run overwrites."""
        found: NDArray = self.get_function("get_output")(index)
        return found if out is None else found.copyto(out)

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return int(self.get_function("get_num_inputs")())

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return int(self.get_function("get_num_outputs")())

    def get_input_index(self, name: str) -> int:
        """The position of an input; -1 for an unknown name."""
        return int(self.get_function("get_input_index")(name))

    def get_output_index(self, name: str) -> int:
        """The position of an output; -1 for an unknown name."""
        return int(self.get_function("get_output_index")(name))

    def input_names(self) -> list[str]:
        """The names of all inputs, in order."""
        name_of = self.get_function("get_input_name")
        return [name_of(index) for index in range(self.get_num_inputs())]

    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        name_of = self.get_function("get_output_name")
        return [name_of(index) for index in range(self.get_num_outputs())]

    def inputs_without_value(self) -> list[str]:
        """The inputs that were never set."""
        has_value = self.get_function("input_has_value")
        return [name for index, name in enumerate(self.input_names()) if not has_value(index)]

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the types of the inputs that are not parameters, each by name."""
        is_parameter = self.get_function("input_is_parameter")
        names = [name for index, name in enumerate(self.input_names()) if not is_parameter(index)]
        found = {name: self.get_input(name) for name in names}
        return {name: one.shape for name, one in found.items()}, {
            name: str(one.dtype) for name, one in found.items()
        }

    def node_names(self) -> list[str]:
        """The names of all nodes, in the order in which they run."""
        names: str = self.peer.global_function("tilewright.graph.node_names")(self).decode()
        return names.split("\n") if names else []

    def run_timed(self, repeat: int = 1) -> list[tuple[list[float], list[float]]]:
        """When each node began and how long it took, for each of several runs there."""
        data = self.peer.global_function("tilewright.graph.run_timed")(self, repeat)
        numbers = np.frombuffer(data, "<f8").reshape(repeat, 2, -1)
        return [(list(map(float, begins)), list(map(float, seconds))) for begins, seconds in numbers]

    def run_node_timed(self, node: int) -> float:
        """Runs one node; the seconds that it took there."""
        return float(self.get_function("run_node_timed")(node))

    def node_output(self, node: int, index: int = 0) -> NDArray:
        """An output of a node, sharing the executor's memory."""
        found: NDArray = self.get_function("node_output")(node, index)
        return found

    def time_node(
        self, node: int, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0
    ) -> BenchmarkResult:
        """Measures one node there."""
        data = self.peer.global_function("tilewright.graph.time_node")(
            self, node, number, repeat, min_repeat_ms
        )
        return BenchmarkResult(list(np.frombuffer(data, "<f8")))

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copies saved parameters into the inputs of their names."""
        self.get_function("load_params")(bytes(params_bytes))

    def share_params(self, other: RemoteGraphExecutor, params_bytes: bytes | bytearray) -> None:
        """Uses another executor's values of the saved parameters, without a copy."""
        self.get_function("share_params")(other, bytes(params_bytes))

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """An output of any node, after running the graph up to it."""
        found: NDArray = self.get_function("debug_get_output")(node)
        return found if out is None else found.copyto(out)
