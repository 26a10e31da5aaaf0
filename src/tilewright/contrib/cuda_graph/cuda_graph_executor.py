"""``GraphModuleCudaGraph``: the graph executor with the capture of a CUDA graph under the caller's control.

The ordinary graph executor captures by itself after its first run, so that programs need this for one thing: an error
where a model cannot be captured, instead of kernels that are launched one by one.
"""

from __future__ import annotations

from typing import Any

from tilewright.contrib import graph_executor
from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray


def create(graph_json_str: str, libmod: Module, device: Device | list[Device]) -> GraphModuleCudaGraph:
    """An executor of a graph whose functions are in ``libmod``."""
    if not isinstance(graph_json_str, str):
        raise failure("ValueError", f"the graph is a text, not a {type(graph_json_str).__name__}")
    devices = graph_executor.get_device(libmod, device)
    return GraphModuleCudaGraph(GraphExecutor(graph_json_str, libmod, devices))


class GraphModuleCudaGraph(graph_executor.GraphModule):
    """A model whose runs are launches of a CUDA graph, which the first run captures."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        if not isinstance(module, GraphExecutor):
            raise failure(
                "TypeError", f"a {type(module).__name__} cannot be captured as a CUDA graph from here"
            )
        self._executor = module
        self._executor.set_recording(False)

    @property
    def cuda_graph_captured(self) -> bool:
        """True if there is a graph that can be launched; setting an input in place ends it."""
        return self._executor.is_recorded

    def capture_cuda_graph(self) -> None:
        """Runs the model once, and captures what it does."""
        self._executor.record()

    def run_cuda_graph(self) -> None:
        """Launches the captured graph; an error before there is one."""
        if not self.cuda_graph_captured:
            raise failure("RuntimeError", "there is no CUDA graph yet: call capture_cuda_graph() first")
        self.module.run()

    def run(self, **input_dict: Any) -> None:
        """Runs the model, on the given inputs if there are any; captures it if that was not done yet."""
        if input_dict:
            self.set_input(**input_dict)
        self._refuse_misspelt()
        if self.cuda_graph_captured:
            self.module.run()
        else:
            self.capture_cuda_graph()

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """Not there: a captured graph is run as a whole."""
        raise failure(
            "NotImplementedError",
            "a CUDA graph runs as a whole: use graph_executor.GraphModule to look at the output of a node",
        )
