"""The graph as the executor's JSON."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tilewright.relay.analysis.work import (
    arithmetic_dtype,
    count_bytes,
    count_flops,
    count_operations,
    source_names,
)
from tilewright.relay.backend.graph import CPU, Entry, ExecutorGraph
from tilewright.relay.backend.memory_plan import GraphMemory


def graph_json(graph: ExecutorGraph, memory: GraphMemory, linked: Collection[int] = ()) -> str:
    """The text that ``graph_executor.create`` takes. ``linked`` are the storages of parameters that the library has."""
    rows = [0]
    nodes: list[dict[str, Any]] = []
    for node in graph.nodes:
        rows.append(rows[-1] + len(node.outputs))
        inputs = [[entry.node, entry.output, 0] for entry in node.inputs]
        if node.kernel is None:
            nodes.append({"op": "null", "name": node.name, "inputs": []})
            continue
        attributes = {
            "func_name": node.kernel,
            "num_inputs": str(len(node.inputs)),
            "num_outputs": str(len(node.outputs)),
            "flatten_data": "1" if node.is_flat else "0",
        }
        if node.backend:
            attributes["Compiler"] = node.backend
        if node.function is not None:
            # For profilers: the work of the kernel, and the model's nodes that it computes.
            attributes["flops"] = str(count_flops(node.function))
            attributes["operations"] = str(count_operations(node.function))
            attributes["arithmetic"] = arithmetic_dtype(node.function)
            attributes["bytes"] = str(count_bytes(node.function))
            attributes["model_nodes"] = "\n".join(source_names(node.function))
        nodes.append({"op": "tvm_op", "name": node.name, "attrs": attributes, "inputs": inputs})
    entries = [
        Entry(number, output)
        for number, node in enumerate(graph.nodes)
        for output in range(len(node.outputs))
    ]
    kinds = [graph.type_of(entry) for entry in entries]
    inside = [memory.offset_of[entry] for entry in entries]
    devices = [graph.nodes[entry.node].device for entry in entries]
    updated = memory.updated_inputs
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": [number for number, node in enumerate(graph.nodes) if node.kernel is None],
            "heads": [[entry.node, entry.output, 0] for entry in graph.outputs],
            "attrs": {
                "dltype": ["list_str", [str(kind.dtype) for kind in kinds]],
                "shape": ["list_shape", [list(kind.concrete_shape) for kind in kinds]],
                "storage_id": ["list_int", [memory.storage_of[entry] for entry in entries]],
                "storage_offset": ["list_int", memory.offsets],
                **({"device_index": ["list_int", devices]} if graph.devices != [CPU] else {}),
                # Where in its storage each tensor begins; a graph without it has every tensor at the beginning.
                **({"tensor_offset": ["list_int", inside]} if any(inside) else {}),
                # Inputs whose memory outputs take.
                **({"updated_inputs": ["list_int", [*updated]]} if updated else {}),
                **({"linked_params": ["list_int", [*linked]]} if linked else {}),
            },
            "node_row_ptr": rows,
            # The last member: TVM's readers stop at it, whatever is in it.
            **({"metadata": {"output_names": graph.output_names}} if graph.output_names else {}),
        },
        indent=1,
    )
