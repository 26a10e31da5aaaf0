"""Sizes that change from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.driver.torch_backend import dynamic  # noqa: E402
from tilewright.support.errors import ModelError  # noqa: E402


@torch.no_grad()
def test_one_graph_for_all_sizes(compiled: Callable[..., Any]) -> None:
    """The second size makes the graph dynamic, and later sizes need no new one."""
    layer = torch.nn.Linear(4, 3)
    call = compiled(lambda x: layer(x).relu().sum(0) * x.shape[0])
    for rows in (2, 3, 5, 7):
        value = torch.randn(rows, 4)
        torch.testing.assert_close(call(value), layer(value).relu().sum(0) * rows)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2


@torch.no_grad()
def test_marked_dimensions_and_results_that_are_sizes(compiled: Callable[..., Any]) -> None:
    call = compiled(lambda x: (torch.cat([x, x]), x.shape[0] * 2))
    for rows in (4, 6):
        value = torch.randn(rows, 3)
        torch._dynamo.mark_dynamic(value, 0)
        found, size = call(value)
        torch.testing.assert_close(found, torch.cat([value, value]))
        assert size == 2 * rows and type(size) is int
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@torch.no_grad()
def test_results_have_the_strides_of_the_graph(compiled: Callable[..., Any]) -> None:
    """A permuted result of open size lies in memory as PyTorch says; AOTAutograd makes views of it by its strides."""

    def permuted(x: Any) -> Any:
        return torch.tanh(x).permute(0, 2, 1), (x + 1).permute(2, 0, 1).flatten(1), x.exp()

    call = compiled(permuted, dynamic=True)
    for shape in ((2, 3, 4), (3, 5, 7)):
        value = torch.randn(shape)
        for found, wanted in zip(call(value), permuted(value), strict=True):
            torch.testing.assert_close(found, wanted)
            assert found.stride() == wanted.stride()


@torch.no_grad()
def test_what_needs_to_know_sizes_is_compiled_for_each(
    compiled: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise ModelError("a size is not known")

    monkeypatch.setattr(dynamic.MachineRunner, "__init__", refuse)
    call = compiled(lambda x: x.softmax(-1) + x.shape[-1], dynamic=True)
    for columns in (3, 5, 3):
        value = torch.randn(2, columns)
        torch.testing.assert_close(call(value), value.softmax(-1) + columns)
