"""Attention: the definition for every device, and the processor's kernel, beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.schedule import cpu, schedule
from tilewright.schedule.cpu.attention import attention as attention_on_cpu
from tilewright.tir.analysis import verify_memory
from tilewright.topi.nn.attention import AXES, AttentionShape

LAYOUTS = ("NTHC", "NHTC", "NTHC", "NHTC")
SHAPE = AttentionShape(batch=2, heads=3, queries=9, keys=7, size=5, value_size=6)
FIRST_HEADS = (1, 0, 2)
"""The first operand has one head more before its own, the third two."""


def operands(masked: tuple[int, ...] | None) -> list[np.ndarray]:
    """Query, key, value and perhaps a mask, with heads that are not read."""
    random = np.random.default_rng(3)
    counts = [(SHAPE.queries, SHAPE.size), (SHAPE.keys, SHAPE.size), (SHAPE.keys, SHAPE.value_size)]
    made = []
    for (tokens, channels), layout, first in zip(counts, LAYOUTS, FIRST_HEADS, strict=False):
        extents = {"N": SHAPE.batch, "T": tokens, "H": SHAPE.heads + first, "C": channels}
        made.append(random.standard_normal([extents[letter] for letter in layout]).astype("float32"))
    if masked is not None:
        made.append(random.standard_normal(masked).astype("float32"))
    return made


def expected(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    """By NumPy, in float64."""
    q, k, v = (
        one.astype("float64").transpose([layout.index(letter) for letter in "NHTC"])[:, first : first + 3]
        for one, layout, first in zip((query, key, value), LAYOUTS, FIRST_HEADS, strict=False)
    )
    scores = q @ k.swapaxes(2, 3) * 0.3
    if mask is not None:
        scores = scores + mask.astype("float64").swapaxes(2, 3)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    made = raised / raised.sum(axis=-1, keepdims=True) @ v
    return made.transpose(["NHTC".index(letter) for letter in LAYOUTS[3]])


@pytest.mark.parametrize("mask", [None, (2, 3, 7, 9), (1, 1, 7, 1), (2, 1, 7, 9)])
@pytest.mark.parametrize("attention", [topi.nn.attention, attention_on_cpu])
def test_values(attention: Callable[..., Any], mask: tuple[int, ...] | None) -> None:
    """With heads that begin anywhere, and masks of full and of repeated dimensions."""
    arrays = operands(mask)
    places = [te.placeholder(array.shape, name=f"x{number}") for number, array in enumerate(arrays)]
    with tvm.target.Target("llvm"):
        given = places if mask is not None else [*places, None]
        made = attention(*given, SHAPE, 0.3, LAYOUTS, FIRST_HEADS)
        function = tvm.build(schedule(made), [*places, made], "llvm")
    result = tvm.nd.empty(SHAPE.result(LAYOUTS[3]))
    function(*[tvm.nd.array(array) for array in arrays], result)
    np.testing.assert_allclose(result.numpy(), expected(*arrays), rtol=2e-5, atol=2e-6)


def test_extents_from_operands() -> None:
    """Whatever the order of the axes."""
    places = [te.placeholder(array.shape) for array in operands(None)]
    assert AttentionShape.of(places, LAYOUTS, 3) == SHAPE
    assert SHAPE.result(AXES) == (2, 9, 3, 6)


def test_the_definition_runs_on_devices_with_threads() -> None:
    """Every store is made by a thread; the processor's kernel has a row of its own and no threads."""
    target = tvm.target.Target("cuda")
    places = [te.placeholder(array.shape) for array in operands(None)]
    made = topi.nn.attention(*places, None, SHAPE, 0.3, LAYOUTS, FIRST_HEADS)
    function = tvm.lower(schedule(made, target), [*places, made], name="main")["main"]
    assert verify_memory(function.with_attr("target", target))
    assert cpu.SCHEDULER.name_for(made) == "cpu"
