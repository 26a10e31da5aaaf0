"""What the runtime itself costs, with kernels that do nothing: calls, parallel regions, the graph executor.

Run as ``python bench/runtime_overhead.py [--output FILE]``. Each figure is the best of many rounds: the cost of the
code, not of what else the machine does. The budgets are those of the design.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tilewright.runtime import Module, config_threadpool, cpu
from tilewright.runtime import ndarray as nd
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.loading import load_module
from tilewright.support.cbuild import SOURCES, find_compiler

KERNELS = """
#include <time.h>
#include "tilewright.h"
#define EXPORTED __attribute__((visibility("default")))
static int32_t nothing(int32_t task, int32_t tasks, void* closure) { (void)task; (void)tasks; (void)closure; return 0; }
EXPORTED int32_t __tvm_ffi_empty(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self; (void)args; (void)count; (void)result;
  return 0;
}
EXPORTED int32_t __tvm_ffi_region(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self; (void)args; (void)count; (void)result;
  return tilewright_parallel_launch(nothing, NULL, 0);
}
static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static int32_t five(int32_t task, int32_t tasks, void* closure) {
  (void)task; (void)tasks; (void)closure;
  for (int64_t end = now() + 5000; now() < end;) {}
  return 0;
}
EXPORTED int32_t __tvm_ffi_shared(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self; (void)args; (void)count; (void)result;
  return tilewright_parallel_launch(five, NULL, 2);
}
"""


def kernels() -> Module:
    """The kernels, compiled and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernels.c", Path(folder) / "kernels.o"
        source.write_text(KERNELS)
        find_compiler().run(
            ["-O2", "-D_GNU_SOURCE", "-fPIC", "-I", SOURCES, "-DTILEWRIGHT_STATIC", "-c", source, "-o", code]
        )
        return load_module(code)


def graph(nodes: int) -> str:
    """A chain of this many empty kernels."""
    chain = [
        {
            "op": "tvm_op",
            "name": f"n{i}",
            "attrs": {"func_name": "empty", "num_outputs": "1"},
            "inputs": [[i, 0, 0]],
        }
        for i in range(nodes)
    ]
    return json.dumps(
        {
            "nodes": [{"op": "null", "name": "x", "inputs": []}, *chain],
            "arg_nodes": [0],
            "heads": [[nodes, 0, 0]],
            "node_row_ptr": list(range(nodes + 2)),
            "attrs": {
                "shape": ["list_shape", [[4]] * (nodes + 1)],
                "dltype": ["list_str", ["float32"] * (nodes + 1)],
                "storage_id": ["list_int", [0] + [1 + i % 2 for i in range(nodes)]],
            },
        }
    )


def best_microseconds(call: Callable[[], object], calls: int = 200, rounds: int = 200) -> float:
    """The least time of one call."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


def measure() -> list[tuple[str, float, float]]:
    """Name, microseconds and budget of each cost."""
    module = kernels()
    empty = module["empty"]
    ours = [nd.empty((4,)) for _ in range(3)]
    theirs = [np.zeros(4, "float32") for _ in range(3)]
    config_threadpool(0, 2)
    region = min(module.time_evaluator("region", cpu(0), number=20000, repeat=20)().results) * 1e6
    shared = min(module.time_evaluator("shared", cpu(0), number=1, repeat=5000)().results) * 1e6
    one, thousand = GraphExecutor(graph(1), module), GraphExecutor(graph(1000), module)
    first, all_of_them = best_microseconds(one.run), best_microseconds(thousand.run, calls=20)
    return [
        ("call from Python, three NDArrays", best_microseconds(lambda: empty(*ours)), 5.0),
        ("call from Python, three NumPy arrays", best_microseconds(lambda: empty(*theirs)), 15.0),
        ("empty parallel region, two warm threads", region, 3.0),
        ("parallel region of two tasks of 5 µs, beyond the 5 µs", shared - 5.0, 3.0),
        ("graph executor, one call from Python", first, 10.0),
        ("graph executor, each kernel", (all_of_them - first) / 999, 0.2),
    ]


def main() -> None:
    """Prints the table, and writes it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="a file to write the table to, as Markdown")
    output = parser.parse_args().output
    lines = ["| cost | µs | budget, µs |", "|---|---|---|"]
    lines += [f"| {name} | {value:.3f} | {budget} |" for name, value, budget in measure()]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if output is not None:
        output.write_text(text)


if __name__ == "__main__":
    main()
