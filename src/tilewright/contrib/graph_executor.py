"""``GraphModule``: the graph executor under the names that programs written for TVM use."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.runtime.benchmark import BenchmarkResult, in_groups, time_evaluator
from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.foreign import ForeignModule, GraphOperations
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.support import html


def create(graph_json_str: str, libmod: Module, device: Device | list[Device]) -> GraphModule:
    """An executor of a graph whose functions are in ``libmod``, which may be a module of a remote session."""
    if not isinstance(graph_json_str, str):
        raise failure("ValueError", f"the graph is a text, not a {type(graph_json_str).__name__}")
    devices = get_device(libmod, device)
    if isinstance(libmod, ForeignModule):
        return GraphModule(libmod.graph_executor(graph_json_str, devices))
    return GraphModule(GraphExecutor(graph_json_str, libmod, devices))


def get_device(libmod: Module, device: Device | list[Device]) -> list[Device]:
    """The devices as a list of at least one."""
    devices = list(device) if isinstance(device, (list, tuple)) else [device]
    if not devices or not all(isinstance(each, Device) for each in devices):
        raise failure("ValueError", "an executor needs a Device, or a list of them")
    return devices


class GraphModule:
    """A model that runs: set inputs, run, get outputs. ``module`` is the executor."""

    def __init__(self, module: Module) -> None:
        if not (isinstance(module, Module) and isinstance(module, GraphOperations)):
            raise failure(
                "TypeError",
                f"GraphModule needs a graph executor, not a {type(module).__name__}: "
                "GraphModule(library['default'](device)) for what relay.build gives",
            )
        self._library: Module = module
        self.module: GraphOperations = module
        self._left_out: dict[str, None] = {}

    def _repr_html_(self) -> str:
        """Its inputs and outputs for a notebook."""
        names = self.module.inputs_without_value()
        inputs = [("input", name, self.module.get_input(name)) for name in names]
        outputs = [
            ("output", str(place), self.module.get_output(place))
            for place in range(self.module.get_num_outputs())
        ]
        rows = [
            [kind, name, str(one.dtype), ", ".join(map(str, one.shape))]
            for kind, name, one in inputs + outputs
        ]
        executor = self.module
        memory = (
            f"{executor.arena_bytes:,} bytes for intermediate tensors"
            if isinstance(executor, GraphExecutor)
            else str(executor)
        )
        return html.fragment(
            type(self).__name__, html.table(["", "name", "type", "shape"], rows), subtitle=memory
        )

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Sets one input by name or position, and any by name; parameters the graph does not have are left out."""
        if key is not None:
            self.module.set_input(key, value)
        # The largest first: what is left when memory is short are the small ones.
        for name in sorted(params, key=lambda name: -int(np.prod(np.shape(params[name]), dtype=np.int64))):
            if self.module.get_input_index(name) >= 0:
                self.module.set_input(name, params[name])
            else:
                self._left_out[name] = None

    def set_input_zero_copy(
        self, key: int | str | None = None, value: NDArray | None = None, **params: NDArray
    ) -> None:
        """Has inputs read the arrays' own memory, which the caller keeps."""
        if key is not None and value is not None:
            self.module.set_input_zero_copy(key, value)
        for name, array in params.items():
            self.module.set_input_zero_copy(name, array)

    def run(self, **input_dict: Any) -> None:
        """Runs the model, on the given inputs if there are any."""
        if input_dict:
            self.set_input(**input_dict)
        self._refuse_misspelt()
        self.module.run()

    def _refuse_misspelt(self) -> None:
        """An error where a name was left out and an input has no value: it was meant for that one.

        Names are left out silently otherwise, because a build may fold a parameter away that the caller still sets.
        """
        missing = self.module.inputs_without_value() if self._left_out else []
        if missing:
            unknown = ", ".join(map(repr, self._left_out))
            raise failure(
                "ValueError",
                f"the graph has no input {unknown}, and {', '.join(missing)} has no value; "
                f"its inputs are {', '.join(self.module.input_names())}",
            )

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return self.module.get_num_outputs()

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return self.module.get_num_inputs()

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An input by position or name; copied into ``out`` if given."""
        value = self.module.get_input(index)
        return value if out is None else value.copyto(out)

    def get_input_index(self, name: str) -> int:
        """The position of an input; -1 for a name that is none."""
        return self.module.get_input_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the types of the inputs that are not parameters, each by name."""
        return self.module.get_input_info()

    def get_output_index(self, name: str) -> int:
        """The position of an output; -1 for a name that is none."""
        return self.module.get_output_index(name)

    def get_output_names(self) -> list[str]:
        """The names of the outputs, in order: the model's, or output_0 and so on."""
        return self.module.output_names()

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output by position or name: copied into ``out``, or as a view that the next run overwrites."""
        return self.module.get_output(index, out)

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """The output of any node, after running the model up to it."""
        return self.module.debug_get_output(node, out)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copies saved parameters in."""
        self.module.load_params(params_bytes)

    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray) -> None:
        """Uses the other's parameters, without a copy."""
        self.module.share_params(other.module, params_bytes)

    def __getitem__(self, key: str) -> PackedFunc:
        return self._library[key]

    def benchmark(
        self,
        device: Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        end_to_end: bool = False,
        *,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Measures a run; with ``end_to_end``, the copies of the inputs and of the outputs with it."""
        pauses = (cooldown_interval_ms, repeats_to_cooldown, limit_zero_time_iterations)
        least = min_repeat_ms or 0
        if not end_to_end:
            self.set_input(**kwargs)
            return in_groups(
                lambda repeats: self._library.time_evaluator(func_name, device, number, repeats, least)(),
                repeat,
                *pauses,
            )

        def whole() -> None:
            self.run(**kwargs)
            for index in range(self.get_num_outputs()):
                self.get_output(index).numpy()

        return in_groups(
            lambda repeats: time_evaluator(convert_to_tvm_func(whole), number, repeats, least)(),
            repeat,
            *pauses,
        )
