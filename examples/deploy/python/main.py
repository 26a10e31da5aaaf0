"""Runs the model of make_model.py from Python, with only the runtime.   python main.py FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tilewright as tvm
from tilewright.contrib import graph_executor

TOLERANCE = 1e-5


def main(folder: Path) -> int:
    """0 if the model says what is expected."""
    library = tvm.runtime.load_module(folder / "model.so")
    model = graph_executor.create((folder / "graph.json").read_text(), library, tvm.cpu())
    model.load_params((folder / "params.bin").read_bytes())
    model.set_input("x", np.fromfile(folder / "input.bin", "float32").reshape(4, 64))
    model.run()
    output = model.get_output(0).numpy()
    difference = abs(output.ravel() - np.fromfile(folder / "expected.bin", "float32")).max()
    print("prediction:", *output.argmax(1))
    print(f"largest difference: {difference:.2e}")
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except tvm.TVMError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
