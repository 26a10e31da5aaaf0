"""The backend that ``torch.compile`` calls with each graph that TorchDynamo has captured.

AOTAutograd makes of it graphs of ATen operators without in-place writes, views of inputs or aliases: one for
inference, or a forward and a backward graph for training. Each is compiled for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tilewright.driver.torch_backend.compiling import compile_graph
from tilewright.driver.torch_backend.decompositions import decompositions
from tilewright.driver.torch_backend.options import BackendOptions
from tilewright.driver.torch_backend.shortcut import Shortcut


def tilewright(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo; see ``BackendOptions`` for the options."""
    chosen = BackendOptions.read(options, mode)
    shortcut = Shortcut()

    def training(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(module, inputs, chosen)

    def inference(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        weights = _weights() if chosen.freeze else ()
        return compile_graph(module, inputs, chosen, weights, shortcut)

    compiler: Callable[..., Any] = aot_autograd(
        fw_compiler=training,
        bw_compiler=training,
        inference_compiler=inference,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return shortcut.around(compiler(graph_module, example_inputs))


def _weights() -> Sequence[int]:
    """The positions of the inputs that are parameters and buffers which the graph does not write to."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return ()
    written = set(metadata.mutated_inp_runtime_indices)
    return [index for index in metadata.static_input_indices if index not in written]
