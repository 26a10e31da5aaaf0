"""The overhead of the runtime, with kernels that do nothing: calls, parallel regions, the graph executor.

Run as ``python bench/runtime_overhead.py`` (writes bench/results/runtime_overhead.md). The best of many rounds is the
cost of the code; the median includes other load on the machine. The budgets are those of the design.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.runtime import Module, config_threadpool, cpu
from tilewright.runtime import ndarray as nd
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.loading import load_module
from tilewright.support.cbuild import SOURCES, find_compiler

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402

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


@dataclass(frozen=True)
class Cost:
    """Microseconds: the best and the median of many rounds, and what it may be."""

    name: str
    best: float
    median: float
    budget: float

    @classmethod
    def of(cls, name: str, seconds: Sequence[float], budget: float, without: float = 0.0) -> Cost:
        """From the seconds of the rounds, less microseconds that are not overhead."""
        return cls(name, min(seconds) * 1e6 - without, statistics.median(seconds) * 1e6 - without, budget)


def rounds_of(call: Callable[[], object], calls: int = 200, rounds: int = 200) -> list[float]:
    """The seconds that one call took, in each round."""
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        seconds.append((time.perf_counter() - begin) / calls)
    return seconds


def measure() -> list[Cost]:
    """Every cost."""
    module = kernels()
    empty = module["empty"]
    ours = [nd.empty((4,)) for _ in range(3)]
    theirs = [np.zeros(4, "float32") for _ in range(3)]
    config_threadpool(0, 2)
    region = module.time_evaluator("region", cpu(0), number=20000, repeat=20)().results
    shared = module.time_evaluator("shared", cpu(0), number=1, repeat=5000)().results
    one, thousand = GraphExecutor(graph(1), module), GraphExecutor(graph(1000), module)
    first = rounds_of(one.run)
    kernel = [(all_of_them - min(first)) / 999 for all_of_them in rounds_of(thousand.run, calls=20)]
    return [
        Cost.of("call from Python, three NDArrays", rounds_of(lambda: empty(*ours)), 5.0),
        Cost.of("call from Python, three NumPy arrays", rounds_of(lambda: empty(*theirs)), 15.0),
        Cost.of("empty parallel region, two warm threads", region, 3.0),
        Cost.of("parallel region of two tasks of 5 µs, beyond the 5 µs", shared, 3.0, without=5.0),
        Cost.of("graph executor, one call from Python", first, 10.0),
        Cost.of("graph executor, each kernel", kernel, 0.2),
    ]


def main() -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "runtime_overhead.md")
    load = os.getloadavg()[0]
    rows = [[cost.name, f"{cost.best:.3f}", f"{cost.median:.3f}", f"{cost.budget}"] for cost in measure()]
    notes = (
        "An empty task is often done by the caller before another thread sees it; the line after has tasks that need "
        f"both threads. The machine's load average was {load:.2f} when the run began."
    )
    header = ["cost", "best, µs", "median, µs", "budget, µs"]
    write_table(parser.parse_args().output, "What the runtime itself costs", header, rows, notes)


if __name__ == "__main__":
    main()
