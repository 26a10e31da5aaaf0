"""The cost of importing an ONNX file: seconds, and memory relative to the file's size.

Run as ``python bench/onnx_import.py`` (writes bench/results/onnx_import.md). Each import has a separate process, in
which a small model was imported first, so that one-time loading does not count. Memory is the peak resident size during
the import, minus that before it. The budgets are two seconds of CPU time (an import has one thread), so that other load
does not count, and one and a half times the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import CACHE, write_table  # noqa: E402
from latency import exported  # noqa: E402

MODELS = ("resnet50", "bert_base")
WAYS = ("path", "bytes", "ModelProto", "path, frozen")
"""How the model is given; frozen, its weights are constants of the module."""
SECONDS, SHARE = 2.0, 1.5


def resident(field: str) -> int:
    """Bytes of a field of the process's status: VmRSS now, VmHWM at the highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not tell {field}")


def small_model() -> bytes:
    """A convolution and a sum, to begin with."""
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Add", ["c", "c"], ["y"])]
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 2, 4, 4]), ("y", [1, 2, 2, 2]))
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 2, 3, 3], [0.5] * 36)
    graph = helper.make_graph(nodes, "small", tensors[:1], tensors[1:], [weight])
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return content


def measure(path: Path, way: str) -> dict[str, float]:
    """Seconds and bytes of one import, in this process."""
    import onnx

    from tilewright.relay.frontend import from_onnx

    from_onnx(small_model())
    given: Any = str(path)
    if way == "bytes":
        given = path.read_bytes()
    elif way == "ModelProto":
        given = onnx.load(path)
    Path("/proc/self/clear_refs").write_text("5")  # The highest size so far is forgotten.
    before, begun, worked = resident("VmRSS"), time.perf_counter(), time.process_time()
    module, params = from_onnx(given, freeze_params="frozen" in way)
    seconds, work = time.perf_counter() - begun, time.process_time() - worked
    found = {"seconds": seconds, "work": work, "bytes": resident("VmHWM") - before}
    if not params and "frozen" not in way:
        raise RuntimeError(f"{path} has no weights")
    del module
    return found


def rows(cache: Path, rounds: int) -> list[list[str]]:
    """A row for each model and way to give it; the median of some rounds."""
    table = []
    for name in MODELS:
        path = exported(name, cache) / "model.onnx"
        size = path.stat().st_size
        for way in WAYS:
            program = [sys.executable, __file__, "--measure", str(path), way]
            found = sorted(
                (
                    json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
                    for _ in range(rounds)
                ),
                key=lambda one: one["work"],
            )[rounds // 2]
            share = found["bytes"] / size
            kept = found["work"] < SECONDS and share < SHARE
            numbers = [f"{size / 1e6:.0f}", f"{found['seconds']:.2f}", f"{found['work']:.2f}", f"{share:.2f}"]
            table.append([name, way, *numbers, "yes" if kept else "no"])
    return table


def main() -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs=2, metavar=("PATH", "WAY"), help="one import, in this process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for exported models")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "onnx_import.md")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.measure[0]), options.measure[1])))
        return
    load = f"The machine's load average was {os.getloadavg()[0]:.1f} when the run began."
    header = ["model", "given as", "file, MB", "seconds", "of the processor", "memory / file", "in budget"]
    write_table(
        options.output, "Importing ONNX models", header, rows(options.cache, options.rounds), notes=load
    )


if __name__ == "__main__":
    main()
