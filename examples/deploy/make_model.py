"""A small model, compiled for deployment: two dense layers and a softmax, run by the graph executor.

Run it:  python examples/deploy/make_model.py FOLDER [--wasm]

It writes everything that the programs of this folder need:

- ``model.so``: the compiled kernels, self-contained
- ``graph.json``: which kernel runs on which tensors
- ``params.bin``: the weights, which are random but always the same
- ``input.bin`` and ``expected.bin``: an input, and the output that NumPy gives for it in float64 (raw float32 values)
- ``tilewright.h``, ``tilewright.hpp`` and ``libtilewright_runtime.so``: the runtime's headers and library
- ``model.wasm`` (with ``--wasm``): kernels and runtime in one WebAssembly file; needs the extra ``cross``
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.cbuild import SOURCES, copy_runtime, find_compiler

HERE = Path(__file__).resolve().parent
BATCH, FEATURES, HIDDEN, CLASSES = 4, 64, 32, 10
FUNCTIONS = ("dense_relu", "dense", "softmax")
WASM_TRIPLE = "wasm32-unknown-unknown"
WASM_EXPORTS = (
    "malloc",
    "free",
    "create_graph",
    "tilewright_error_kind",
    "tilewright_error_message",
    "tilewright_graph_input",
    "tilewright_graph_input_index",
    "tilewright_graph_load_params",
    "tilewright_graph_num_outputs",
    "tilewright_graph_output",
    "tilewright_graph_output_index",
    "tilewright_graph_output_name",
    "tilewright_graph_release",
    "tilewright_graph_run",
    "tilewright_object_release",
    "tilewright_tensor_dltensor",
)


def dense(columns: int, outputs: int, name: str, relu: bool) -> tvm.IRModule:
    """``x @ w + b``, and negative values as zero if ``relu``: rows in parallel, eight columns at a time."""
    x = te.placeholder((BATCH, columns), name="x")
    w = te.placeholder((columns, outputs), name="w")
    b = te.placeholder((outputs,), name="b")
    k = te.reduce_axis((0, columns), name="k")
    product = te.compute((BATCH, outputs), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="product")
    zero = tir.const(0, "float32")
    y = te.compute(
        (BATCH, outputs),
        lambda i, j: te.max(product[i, j] + b[j], zero) if relu else product[i, j] + b[j],
        name="y",
    )
    schedule = te.create_schedule(y.op)
    row, column = schedule[y].op.axis
    outer, lane = schedule[y].split(column, factor=8)
    schedule[product].compute_at(schedule[y], outer)
    inner_row, inner_column = schedule[product].op.axis
    schedule[product].reorder(k, inner_row, inner_column)
    schedule[product].vectorize(inner_column)
    schedule[y].vectorize(lane)
    schedule[y].parallel(row)
    return tvm.lower(schedule, [x, w, b, y], name=name)


def softmax(name: str) -> tvm.IRModule:
    """``exp(x - largest) / sum`` along each row."""
    x = te.placeholder((BATCH, CLASSES), name="x")
    k1, k2 = (te.reduce_axis((0, CLASSES), name=axis) for axis in ("k1", "k2"))
    largest = te.compute((BATCH,), lambda i: te.max(x[i, k1], axis=k1), name="largest")
    raised = te.compute((BATCH, CLASSES), lambda i, j: te.exp(x[i, j] - largest[i]), name="raised")
    total = te.compute((BATCH,), lambda i: te.sum(raised[i, k2], axis=k2), name="total")
    y = te.compute((BATCH, CLASSES), lambda i, j: raised[i, j] / total[i], name="y")
    return tvm.lower(te.create_schedule(y.op), [x, y], name=name)


def kernels(target: str) -> Any:
    """The model's three functions as one module."""
    module = dense(FEATURES, HIDDEN, FUNCTIONS[0], relu=True)
    module.update(dense(HIDDEN, CLASSES, FUNCTIONS[1], relu=False))
    module.update(softmax(FUNCTIONS[2]))
    return tvm.build(module, target=target)


def graph() -> str:
    """The graph executor's view of the model: inputs, calls, shapes, and which tensors share memory."""
    tensors: dict[str, tuple[list[int], tuple[str, list[str]] | None]] = {
        "x": ([BATCH, FEATURES], None),
        "w1": ([FEATURES, HIDDEN], None),
        "b1": ([HIDDEN], None),
        "hidden": ([BATCH, HIDDEN], (FUNCTIONS[0], ["x", "w1", "b1"])),
        "w2": ([HIDDEN, CLASSES], None),
        "b2": ([CLASSES], None),
        "logits": ([BATCH, CLASSES], (FUNCTIONS[1], ["hidden", "w2", "b2"])),
        "probabilities": ([BATCH, CLASSES], (FUNCTIONS[2], ["logits"])),
    }
    position = {name: index for index, name in enumerate(tensors)}
    nodes: list[dict[str, Any]] = []
    for name, (_, call) in tensors.items():
        if call is None:
            nodes.append({"op": "null", "name": name, "inputs": []})
            continue
        function, inputs = call
        attributes = {
            "func_name": function,
            "num_inputs": str(len(inputs)),
            "num_outputs": "1",
            "flatten_data": "0",
        }
        edges = [[position[tensor], 0, 0] for tensor in inputs]
        nodes.append({"op": "tvm_op", "name": name, "attrs": attributes, "inputs": edges})
    storage = {name: index for index, name in enumerate(tensors)}
    storage["probabilities"] = storage["hidden"]  # the hidden layer is not read any more
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": [position[name] for name, (_, call) in tensors.items() if call is None],
            "heads": [[position["probabilities"], 0, 0]],
            "node_row_ptr": list(range(len(tensors) + 1)),
            "metadata": {"output_names": ["probabilities"]},
            "attrs": {
                "shape": ["list_shape", [shape for shape, _ in tensors.values()]],
                "dltype": ["list_str", ["float32"] * len(tensors)],
                "storage_id": ["list_int", [storage[name] for name in tensors]],
            },
        },
        indent=1,
    )


def parameters() -> dict[str, np.ndarray]:
    """The weights."""
    generator = np.random.default_rng(2024)
    shapes = {"w1": (FEATURES, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}
    return {name: generator.normal(0, 0.25, shape).astype("float32") for name, shape in shapes.items()}


def test_vectors() -> tuple[np.ndarray, np.ndarray]:
    """An input, and what the model gives for it in exact enough arithmetic."""
    x = np.random.default_rng(7).standard_normal((BATCH, FEATURES), dtype="float32")
    weights = {name: value.astype("float64") for name, value in parameters().items()}
    hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0)
    logits = hidden @ weights["w2"] + weights["b2"]
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return x, (raised / raised.sum(1, keepdims=True)).astype("float32")


def export_wasm(folder: Path) -> None:
    """Links kernels, runtime and ``node/model.c`` into one WebAssembly file."""

    def link(output: str, objects: Sequence[str]) -> None:
        functions = " ".join(f"FUNCTION({name})" for name in FUNCTIONS)
        source: list[str | Path] = [
            "-DTILEWRIGHT_EMBEDDED",
            f"-DFUNCTIONS={functions}",
            "-I",
            SOURCES,
            HERE / "node" / "model.c",
        ]
        exports = [f"-Wl,--export={name}" for name in WASM_EXPORTS]
        find_compiler(WASM_TRIPLE).run(
            ["-mexec-model=reactor", "-O2", "-s", *source, *objects, *exports, "-o", output]
        )

    kernels(f"llvm -mtriple={WASM_TRIPLE} -mattr=+simd128").export_library(
        str(folder / "model.wasm"), fcompile=link
    )


def main() -> None:
    """Writes the model's files into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wasm", action="store_true", help="also write model.wasm")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    kernels("llvm").export_library(str(folder / "model.so"))
    (folder / "graph.json").write_text(graph())
    (folder / "params.bin").write_bytes(tvm.runtime.save_param_dict(parameters()))
    x, expected = test_vectors()
    (folder / "input.bin").write_bytes(x.tobytes())
    (folder / "expected.bin").write_bytes(expected.tobytes())
    copy_runtime(folder)
    if arguments.wasm:
        export_wasm(folder)
    print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir() if path.is_file()))}")


if __name__ == "__main__":
    main()
