"""An accelerator in a day: partition a network for the matrix engine, run it, store it, and write it as C.

``python examples/accelerator/run.py [FOLDER]`` leaves the artefact and the C in FOLDER. docs/accelerator.md walks
through it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from matrix_engine import MatrixEngine
from network import SHAPE, network

import tilewright as tvm
from tilewright import relay
from tilewright.contrib.graph_executor import GraphModule


def output_of(library: tvm.runtime.Module, x: np.ndarray) -> np.ndarray:
    """What a model gives."""
    executor = GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    return executor.get_output(0).numpy()


def main(folder: Path) -> None:
    """Every step of the way."""
    engine = MatrixEngine()
    engine.register()
    model = network()
    partitioned = engine.partition(model)
    taken = [name.name_hint for name, one in partitioned.functions.items() if one.attrs.get("Compiler")]
    print(f"the engine takes {len(taken)} parts of the graph")
    for line in engine.explain().splitlines():
        print(f"  stays on the processor: {line}")

    library = relay.build(partitioned, "llvm")
    for name, cycles in engine.cycles.items():
        print(f"  {name}: {cycles} cycles")
    x = np.random.default_rng(1).integers(-128, 128, SHAPE).astype("int8")
    expected = output_of(relay.build(model, "llvm"), x)
    assert np.array_equal(output_of(library, x), expected)
    print("the results are those of the compiled code, bit by bit")

    artefact = folder / "model.so"
    library.export_library(str(artefact))
    assert np.array_equal(output_of(tvm.runtime.load_module(str(artefact)), x), expected)
    print(f"the artefact {artefact.name} loads and gives them again")

    source = folder / "model.c"
    relay.build(partitioned, "c -executor=aot", mod_name="model").lib.export_library(str(source))
    print(
        f"as C for a microcontroller: {source.name}, {len(source.read_text().splitlines())} lines, and model.h"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
