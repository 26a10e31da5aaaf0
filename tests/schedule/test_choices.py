"""Every choice of a constructed CPU schedule may be changed, alone, and the result stays the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decision, Decisions

TARGET = "llvm"


@dataclass(frozen=True)
class Kernel:
    """A computation: the shapes of its inputs, its result, and the choices that its schedule has at least."""

    name: str
    shapes: list[tuple[int, ...]]
    compute: Callable[..., Any]
    choices: set[str]


def _matmul(a: Any, b: Any) -> Any:
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "product")


KERNELS = [
    Kernel(
        "matmul",
        [(70, 96), (96, 80)],
        _matmul,
        {"tile", "panel_share", "pack", "unroll", "prefetch", "parallel"},
    ),
    Kernel("split", [(48, 1024), (1024, 32)], _matmul, {"split_reduction"}),
    Kernel("dense", [(12, 64), (20, 64)], topi.nn.dense, {"dot_tile"}),
    Kernel(
        "convolution",
        [(1, 1, 6, 6, 8), (2, 1, 3, 3, 8, 8)],
        lambda data, weight: topi.nn.relu(
            topi.nn.conv2d_NCHWc(data, weight, 1, 1, 1, "NCHW8c", "NCHW8c", "float32")
        ),
        {"tile", "unroll"},
    ),
    Kernel("softmax", [(40, 130)], lambda x: topi.nn.softmax(x), {"fuse_rows", "partial_vectors"}),
    Kernel("sum", [(16, 4096)], lambda x: topi.sum(x, 1), {"partial_vectors"}),
    Kernel(
        "pooling",
        [(1, 8, 12, 12, 8)],
        lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max", layout="NCHW8c"),
        {"unroll_window"},
    ),
    Kernel("elementwise", [(64, 2048)], lambda x: topi.exp(x), {"vector", "parallel"}),
    Kernel("transpose", [(256, 320)], lambda x: topi.transpose(x), {"through_lines"}),
]


def _tensors(kernel: Kernel) -> list[Any]:
    return [te.placeholder(shape, name=f"in{number}") for number, shape in enumerate(kernel.shapes)]


def _asked(kernel: Kernel) -> dict[str, Decision]:
    with Decisions() as decisions:
        schedule(kernel.compute(*_tensors(kernel)), tvm.target.Target(TARGET))
    return decisions.asked


def _run(kernel: Kernel, given: dict[str, Any], values: list[np.ndarray]) -> np.ndarray:
    inputs = _tensors(kernel)
    output = kernel.compute(*inputs)
    with Decisions(given) as decisions:
        made = schedule(output, tvm.target.Target(TARGET))
    assert {name: decisions.asked[name].chosen for name in given} == given
    function = tvm.build(made, [*inputs, output], TARGET)
    result = tvm.nd.empty(tuple(int(extent) for extent in output.shape))
    function(*[tvm.nd.array(value) for value in values], result)
    return result.numpy()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_every_choice_keeps_the_result(kernel: Kernel) -> None:
    """The first and the last alternative of each choice compute what the constructed schedule does."""
    asked = _asked(kernel)
    assert kernel.choices <= set(asked)
    random = np.random.default_rng(0)
    values = [random.standard_normal(shape).astype("float32") for shape in kernel.shapes]
    expected = _run(kernel, {}, values)
    for name, decision in asked.items():
        assert decision.candidates[0] == decision.constructed
        others = decision.candidates[1:]
        for value in dict.fromkeys([*others[:1], *others[-1:]]):
            found = _run(kernel, {name: value}, values)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=f"{name}={value}")


def test_candidates_do_not_depend_on_the_tile() -> None:
    """Choices combine freely: with another tile, the other choices have the same alternatives."""
    kernel = KERNELS[0]
    asked = _asked(kernel)
    with Decisions({"tile": asked["tile"].candidates[-1]}) as decisions:
        schedule(kernel.compute(*_tensors(kernel)), tvm.target.Target(TARGET))
    for name, decision in decisions.asked.items():
        assert set(decision.candidates) == set(asked[name].candidates)
