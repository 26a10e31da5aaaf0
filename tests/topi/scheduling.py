"""Runs scheduled tensor expressions, and tells what their loops look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tests.topi.running import evaluate

import tilewright as tvm
from tilewright import te
from tilewright.te import Schedule, Tensor
from tilewright.tir import ForKind
from tilewright.tir.stmt import For, Store
from tilewright.tir.stmt_functor import post_order_visit

Scheduler = Callable[[Any], Schedule]


def run(
    schedule: Scheduler,
    outputs: Any,
    feeds: Mapping[Tensor, np.ndarray],
    target: str = "llvm",
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> list[np.ndarray]:
    """The values of the outputs, computed as scheduled for the target."""
    tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    with tvm.target.Target(target):
        made = schedule(tensors)
    function = tvm.build(made, [*feeds, *tensors], target)
    known = shapes or [tuple(int(extent) for extent in tensor.shape) for tensor in tensors]
    results = [tvm.nd.empty(shape, tensor.dtype) for shape, tensor in zip(known, tensors, strict=True)]
    function(*[tvm.nd.array(value) for value in feeds.values()], *results)
    return [result.numpy() for result in results]


def check_against_plain_loops(
    schedule: Scheduler, outputs: Any, feeds: Mapping[Tensor, np.ndarray], tolerance: float = 1e-4
) -> None:
    """The scheduled program computes what the unscheduled one does."""
    found = run(schedule, outputs, feeds)
    plain = evaluate([outputs] if isinstance(outputs, Tensor) else list(outputs), feeds)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def random_feeds(*tensors: Tensor, seed: int = 0) -> dict[Tensor, np.ndarray]:
    """Values for placeholders of constant shape."""
    generator = np.random.default_rng(seed)
    return {
        tensor: generator.standard_normal([int(extent) for extent in tensor.shape]).astype(tensor.dtype)
        for tensor in tensors
    }


class Loops:
    """What stands in the lowered program of a schedule."""

    def __init__(self, schedule: Schedule, arguments: Sequence[Tensor]) -> None:
        self.parallel = 0
        self.widest_store = 1
        self.allocated: list[str] = []
        self.text = str(tvm.lower(schedule, list(arguments)))
        body = tvm.lower(schedule, list(arguments))["main"].body
        post_order_visit(body, self._note)

    def _note(self, node: Any) -> None:
        if isinstance(node, For) and node.kind == ForKind.PARALLEL:
            self.parallel += 1
        if isinstance(node, Store):
            self.widest_store = max(self.widest_store, node.value.dtype.lanes)


def placeholder(*shape: Any, name: str = "x", dtype: str = "float32") -> Tensor:
    """An input."""
    return te.placeholder(shape, dtype, name=name)
