"""The cost of the graph-level passes as graphs grow, and of the build around them.

Run as ``python bench/passes.py`` (writes bench/results/passes.md). A pass is near linear if its cost per node is about
the same in the largest graph as in a smaller one: the last column compares the largest graph with one a quarter of its
size. The kernel cache is not used, and seconds are CPU time, so that other load on the machine does not count.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.backend.graph import GraphBuilder
from tilewright.relay.backend.graph_json import graph_json
from tilewright.relay.backend.memory_plan import plan_graph_memory
from tilewright.relay.backend.preparation import as_target
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import fusing_passes, prepare_passes
from tilewright.support.recursion import recursion_room

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402

Made = TypeVar("Made")

SIZES = (1_000, 5_000, 10_000, 20_000)
CHANNELS = 4
LEAST = 0.05
"""Passes that take less than so many seconds on the largest graph are given in one line."""


def chain(nodes: int) -> tvm.IRModule:
    """A chain of elementwise operators."""
    x = relay.var("x", shape=(2, 8))
    factor = relay.const(np.linspace(0.5, 1.5, 8, dtype="float32"))
    made: relay.Expr = x
    for number in range(nodes):
        step = number % 4
        if step == 0:
            made = relay.nn.relu(made)
        elif step == 1:
            made = relay.multiply(made, factor)
        elif step == 2:
            made = relay.add(made, factor)
        else:
            made = relay.tanh(made)
    return tvm.IRModule.from_expr(relay.Function([x], made))


def layers(nodes: int) -> tvm.IRModule:
    """Convolutions, each with a batch norm and an activation, and a shortcut around every second: nine nodes for two
    layers. Their weights are constants, as those of a model in a build are."""
    random = np.random.default_rng(0)
    x = relay.var("x", shape=(1, CHANNELS, 4, 4))

    def constant(*shape: int) -> relay.Expr:
        return relay.const(random.uniform(0.5, 1.5, shape).astype("float32"))

    def layer(data: relay.Expr) -> relay.Expr:
        weight = constant(CHANNELS, CHANNELS, 3, 3)
        made = relay.nn.conv2d(data, weight, kernel_size=(3, 3), padding=(1, 1), channels=CHANNELS)
        return relay.nn.batch_norm(made, *[constant(CHANNELS) for _ in range(4)])[0]

    made: relay.Expr = x
    for _ in range(nodes // 9):
        made = relay.nn.relu(relay.add(layer(relay.nn.relu(layer(made))), made))
    return tvm.IRModule.from_expr(relay.Function([x], made))


GRAPHS: dict[str, Callable[[int], tvm.IRModule]] = {
    "elementwise operators": chain,
    "conv + bn + relu": layers,
}


class Clock:
    """Seconds by name, in the order in which the names come."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def take(self, name: str, work: Callable[[], Made]) -> Made:
        """Do something and count its time to a name."""
        gc.collect()
        begun = time.process_time()
        made = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begun
        return made


def measure(module: tvm.IRModule) -> dict[str, float]:
    """Seconds of each step from a graph to what the executor reads, and of a whole build."""
    clock, target = Clock(), as_target("llvm")
    before = clock.take("infer types", lambda: infer_module(module))
    text = clock.take("print", lambda: before.astext(show_meta_data=True))
    clock.take("parse", lambda: tvm.parser.fromtext(text))
    with PassContext(opt_level=3), recursion_room(), target:
        made, passes = before, 0.0
        for one in [*prepare_passes(target), *fusing_passes(target)]:
            made = clock.take(one.info.name, run_pass(one, made))
        passes = sum(clock.seconds.values()) - clock.seconds["print"] - clock.seconds["parse"]
        clock.seconds["all passes"] = passes
        fused = made
        graph = clock.take("graph", lambda: GraphBuilder("bench").build(fused["main"]))
        memory = clock.take("plan memory", lambda: plan_graph_memory(graph))
        clock.take("write the graph", lambda: graph_json(graph, memory))
    with PassContext(opt_level=3):
        clock.take("relay.build, all of it", lambda: relay.build(module, "llvm"))
    return clock.seconds


def run_pass(one: Pass, module: tvm.IRModule) -> Callable[[], tvm.IRModule]:
    """The pass on a module, and the types of what it leaves."""
    return lambda: infer_module(one(module))


def rows(name: str, sizes: tuple[int, ...]) -> list[list[str]]:
    """A row for each step that takes a while, with one for all the others together."""
    found = [measure(GRAPHS[name](size)) for size in sizes]
    small = [step for step, seconds in found[-1].items() if seconds < LEAST]
    table = {step: [one[step] for one in found] for step in found[-1] if step not in small}
    if small:
        table[f"{len(small)} others"] = [sum(one[step] for step in small) for one in found]
    near = max(place for place, size in enumerate(sizes) if 4 * size <= sizes[-1] or place == 0)
    scale = sizes[-1] / sizes[near]
    return [
        [
            name,
            step,
            *(f"{one:.2f}" for one in seconds),
            f"{seconds[-1] / max(seconds[near], 1e-9) / scale:.1f}",
        ]
        for step, seconds in table.items()
    ]


def deep_network() -> str:
    """A sentence on the residual network of a thousand layers."""
    module, params = relay.testing.resnet.get_workload(1, 10, num_layers=1001, image_shape=(3, 32, 32))
    count = sum(relay.analysis.list_op_freqs(module).values())
    begun = time.process_time()
    with PassContext(opt_level=3):
        library = relay.build(module, "llvm", params=params)
    seconds = time.process_time() - begun
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.set_input("data", np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype("float32"))
    executor.run()
    total = float(executor.get_output(0).numpy().sum())
    return (
        f"The residual network of 1,001 layers ({count:,} operators, images of 32 by 32) is built in {seconds:.1f} s; "
        f"its ten probabilities add up to {total:.4f}."
    )


def main() -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="operators of the graphs")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "passes.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILEWRIGHT_CACHE_DIR"] = folder
        # Work of other processes would not be counted.
        os.environ["TILEWRIGHT_COMPILE_PROCESSES"] = "1"
        relay.build(chain(4), "llvm")  # What is imported on first use is not part of the first row.
        sizes = tuple(sorted(options.sizes))
        table = [row for name in GRAPHS for row in rows(name, sizes)]
        notes = deep_network()
    header = ["graph", "step", *(f"{size:,}, s" for size in sizes), "growth of a node's cost"]
    load = f"The machine's load average was {os.getloadavg()[0]:.1f} when the run ended."
    write_table(options.output, "Graph passes as graphs grow", header, table, f"{notes}\n\n{load}")


if __name__ == "__main__":
    main()
