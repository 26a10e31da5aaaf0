"""The time of every kernel of a model in the graph executor, compared with the limits of the machine.

Everything needed is in the graph: the executor's JSON says for every node what it computes, on how many bytes, and for
which nodes of the model.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright.codegen.llvm.limits import MachineLimits
from tilewright.driver.profile.notebook import kernels_html
from tilewright.support.dtype import DataType
from tilewright.support.errors import ModelError

NOTHING_TO_RUN = "__nop"
SHAPE_FUNCTION = "shape_func_"
"""What the names of the functions that compute shapes in the virtual machine begin with."""


@dataclass(frozen=True)
class Step:
    """One call of a kernel. ``seconds`` is the median of all runs. ``flops`` counts the operations as the model's
    operators define them, ``operations`` those that the kernel really does, which are fewer for Winograd; both are None
    where nothing says. ``arithmetic`` is the element type that it computes in."""

    node: int
    name: str
    kernel: str
    seconds: float
    flops: int | None
    size_bytes: int
    shapes: tuple[str, ...]
    model_nodes: tuple[str, ...]
    operations: int | None = None
    arithmetic: str = "float32"

    @property
    def done(self) -> int | None:
        """The operations that it does: as defined where nothing else is known."""
        return self.flops if self.operations is None else self.operations

    def least_seconds(self, limits: MachineLimits) -> float:
        """The least time in which the machine could do it."""
        return limits.least_seconds(self.done or 0, self.size_bytes, self.arithmetic)


@dataclass(frozen=True)
class Kernel:
    """All calls of one kernel."""

    name: str
    steps: tuple[Step, ...]
    total_seconds: float
    """Of all kernels of the model."""
    limits: MachineLimits | None = field(repr=False)

    @property
    def short_name(self) -> str:
        """Without what all kernels have in front."""
        return short_name(self.name)

    @property
    def calls(self) -> int:
        """How often one run calls it."""
        return len(self.steps)

    @property
    def seconds(self) -> float:
        """All calls of one run."""
        return sum(step.seconds for step in self.steps)

    @property
    def share(self) -> float:
        """Its part of all kernels' time."""
        return self.seconds / self.total_seconds if self.total_seconds else 0.0

    @property
    def flops(self) -> int | None:
        """Arithmetic operations of all calls, as the model's operators define them."""
        return _sum_known(step.flops for step in self.steps)

    @property
    def operations(self) -> int | None:
        """Arithmetic operations that all calls really do."""
        return _sum_known(step.done for step in self.steps)

    @property
    def size_bytes(self) -> int:
        """Bytes that all calls have to move."""
        return sum(step.size_bytes for step in self.steps)

    @property
    def gflops_per_second(self) -> float | None:
        """Of operations really done; None where they are not known."""
        return None if self.operations is None or not self.seconds else self.operations / self.seconds / 1e9

    @property
    def gigabytes_per_second(self) -> float | None:
        """None where no time was measured."""
        return self.size_bytes / self.seconds / 1e9 if self.seconds else None

    @property
    def of_limit(self) -> float | None:
        """The least time that the machine could need, as a part of the time it took. Above 1 the limits or the time
        were measured wrong; see ``KernelProfile.above_limit``."""
        if self.limits is None or not self.seconds or self.operations is None:
            return None
        return sum(step.least_seconds(self.limits) for step in self.steps) / self.seconds

    @property
    def bound_by(self) -> str | None:
        """What bounds it: ``compute``, or the memory level that holds its data."""
        if self.limits is None or self.operations is None:
            return None
        step = self.steps[0]
        compute = (step.done or 0) / self.limits.peak_for(step.arithmetic)
        is_compute = compute >= self.limits.least_move_seconds(step.size_bytes)
        return "compute" if is_compute else self.limits.bandwidth_for(step.size_bytes).level

    @property
    def model_nodes(self) -> list[str]:
        """The nodes of the model that it computes, each once."""
        return list(dict.fromkeys(name for step in self.steps for name in step.model_nodes))

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "kernel": self.name,
            "calls": self.calls,
            "seconds": self.seconds,
            "share": self.share,
            "flops": self.flops,
            "operations": self.operations,
            "arithmetic": self.steps[0].arithmetic,
            "bytes": self.size_bytes,
            "gflops_per_second": self.gflops_per_second,
            "gigabytes_per_second": self.gigabytes_per_second,
            "of_limit": self.of_limit,
            "bound_by": self.bound_by,
            "model_nodes": self.model_nodes,
            "nodes": [
                {
                    "node": step.node,
                    "name": step.name,
                    "seconds": step.seconds,
                    "model_nodes": step.model_nodes,
                }
                for step in self.steps
            ],
        }


@dataclass(frozen=True)
class KernelProfile:
    """A model's run, kernel by kernel. ``run_seconds`` is a whole run, from the first kernel's begin to the last one's
    end."""

    steps: tuple[Step, ...]
    run_seconds: float
    runs: int
    limits: MachineLimits | None = None
    limit_measurements: int = 1
    """How often the limits were measured; the best figures count."""

    @property
    def total_seconds(self) -> float:
        """The sum of all kernels' times."""
        return sum(step.seconds for step in self.steps)

    @property
    def flops(self) -> int | None:
        """Arithmetic operations of one run, as the model's operators define them; None where nothing says."""
        return _sum_known(step.flops for step in self.steps)

    @property
    def operations(self) -> int | None:
        """Arithmetic operations that one run really does."""
        return _sum_known(step.done for step in self.steps)

    @property
    def arithmetic_types(self) -> list[str]:
        """The element types that the kernels compute in."""
        return sorted({step.arithmetic for step in self.steps})

    @property
    def of_limit(self) -> float | None:
        """The least time that the machine could need for the kernels one by one, as a part of the time they took."""
        if self.limits is None or not self.total_seconds or self.operations is None:
            return None
        return sum(step.least_seconds(self.limits) for step in self.steps) / self.total_seconds

    @property
    def above_limit(self) -> list[Kernel]:
        """The kernels that were measured faster than the machine's limit allows: no kernel is, so that the limit was
        measured too low, while other programs ran, or the kernel's time is too short for the clock."""
        return [kernel for kernel in self.kernels() if (kernel.of_limit or 0.0) > 1.0]

    def _repr_html_(self) -> str:
        """The kernels for a notebook."""
        return kernels_html(self)

    def kernels(self) -> list[Kernel]:
        """Every kernel once, the one that takes most time first."""
        by_name: dict[str, list[Step]] = {}
        for step in self.steps:
            by_name.setdefault(step.kernel, []).append(step)
        total = self.total_seconds
        made = [Kernel(name, tuple(steps), total, self.limits) for name, steps in by_name.items()]
        return sorted(made, key=lambda kernel: -kernel.seconds)


def _sum_known(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def short_name(kernel: str) -> str:
    """A kernel's name without what all have in front: ``nn_conv2d_add_nn_relu_1f2e3d4c``. A function that computes the
    shape of a kernel's result is called ``shape_func_`` and that."""
    prefix = SHAPE_FUNCTION if kernel.startswith(SHAPE_FUNCTION) else ""
    _, separator, rest = kernel.partition("_fused_")
    return prefix + rest if separator and kernel.startswith(f"{prefix}tvmgen") else kernel


class TimedGraph(Protocol):
    """A graph executor, here or on another machine, that can time its nodes."""

    def run_timed(self, repeat: int = 1) -> list[tuple[list[float], list[float]]]:
        """When each node began and how long it took, for each run."""


def measure_kernels(
    executor: TimedGraph, graph: str, repeat: int = 10, limits: MachineLimits | None = None
) -> KernelProfile:
    """Run a model, whose inputs are set, ``repeat`` times with a clock at every kernel."""
    if repeat < 1:
        raise ModelError(f"repeat is at least 1, not {repeat}")
    measured = executor.run_timed(repeat)
    whole = statistics.median(
        max((begin + seconds for begin, seconds in zip(*run, strict=True)), default=0.0) for run in measured
    )
    parsed = json.loads(graph)
    nodes = parsed["nodes"]
    tensors = GraphTensors(parsed)
    steps: list[Step] = []
    for index, node in enumerate(nodes):
        attributes = node.get("attrs", {})
        kernel = attributes.get("func_name", NOTHING_TO_RUN)
        if node["op"] == "null" or kernel == NOTHING_TO_RUN:
            continue
        outputs = range(int(attributes.get("num_outputs", "1")))
        size = sum(tensors.size_bytes(index, output) for output in outputs)
        size += sum(tensors.size_bytes(entry[0], entry[1]) for entry in node["inputs"])
        steps.append(
            Step(
                index,
                node["name"],
                kernel,
                statistics.median(run[1][index] for run in measured),
                int(attributes["flops"]) if "flops" in attributes else None,
                int(attributes.get("bytes", size)),
                tuple(tensors.text(index, output) for output in outputs),
                tuple(name for name in attributes.get("model_nodes", "").split("\n") if name),
                int(attributes["operations"]) if "operations" in attributes else None,
                attributes.get("arithmetic", "float32"),
            )
        )
    return KernelProfile(tuple(steps), whole, repeat, limits)


class GraphTensors:
    """Shapes and types of the tensors of a graph in the executor's JSON."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._rows: Sequence[int] = parsed["node_row_ptr"]
        self._shapes: Sequence[Sequence[int]] = parsed["attrs"]["shape"][1]
        self._dtypes: Sequence[str] = parsed["attrs"]["dltype"][1]

    def entry(self, node: int, output: int) -> int:
        """The position of a tensor among all."""
        return self._rows[node] + output

    def size_bytes(self, node: int, output: int = 0) -> int:
        """The bytes of a tensor."""
        entry = self.entry(node, output)
        dtype = DataType(self._dtypes[entry])
        total = (dtype.bits * dtype.lanes + 7) // 8
        for extent in self._shapes[entry]:
            total *= int(extent)
        return total

    def text(self, node: int, output: int = 0) -> str:
        """As a person would write it: ``float32[1, 3, 224, 224]``."""
        entry = self.entry(node, output)
        return f"{self._dtypes[entry]}[{', '.join(str(extent) for extent in self._shapes[entry])}]"
