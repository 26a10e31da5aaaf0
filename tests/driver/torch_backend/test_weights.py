"""Parameters are constants for as long as they stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tilewright.driver.torch_backend import weights  # noqa: E402


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the weights that were constants, for every time that code was made."""
    made: list[list[str]] = []
    original = weights.WeightedRunner.__init__

    def spy(self: Any, names: Any, positions: Any, build: Any) -> None:
        original(self, names, positions, lambda known: made.append(list(known)) or build(known))

    monkeypatch.setattr(weights.WeightedRunner, "__init__", spy)
    return made


@torch.no_grad()
def test_changes_are_seen_and_what_keeps_changing_becomes_an_input(
    compiled: Callable[..., Any], builds: list[list[str]]
) -> None:
    layer = nn.Linear(4, 4)
    call, value = compiled(layer), torch.randn(2, 4)
    for _ in range(4):
        torch.testing.assert_close(call(value), layer(value))
        torch.testing.assert_close(call(value), layer(value))
        layer.weight.mul_(2)
    # Once at first, once after the first change, and without the weight from the second change on.
    assert [len(one) for one in builds] == [2, 2, 1]


@torch.no_grad()
@pytest.mark.parametrize("change", ["load_state_dict", "data", "new_parameter"])
def test_every_way_to_replace_a_weight(compiled: Callable[..., Any], change: str) -> None:
    layer, other = nn.Linear(4, 4), nn.Linear(4, 4)
    call, value = compiled(layer), torch.randn(2, 4)
    torch.testing.assert_close(call(value), layer(value))
    if change == "load_state_dict":
        layer.load_state_dict(other.state_dict())
    elif change == "data":
        layer.weight.data = other.weight.data.clone()
    else:
        layer.weight = nn.Parameter(other.weight.clone())
    torch.testing.assert_close(call(value), layer(value))


@torch.no_grad()
def test_modules_of_the_same_code_have_their_own_weights(compiled: Callable[..., Any]) -> None:
    """A graph is used for all of them, with the parameters of each."""
    blocks = [nn.Linear(4, 4) for _ in range(3)]
    function = lambda layer, x: layer(x)
    call, value = compiled(function), torch.randn(2, 4)
    for block in [*blocks, *blocks]:
        torch.testing.assert_close(call(block, value), block(value))


@torch.no_grad()
def test_weights_that_are_not_packed_are_shared(compiled: Callable[..., Any]) -> None:
    """An embedding is read from the parameter's own memory."""
    table = nn.Embedding(1000, 8)
    call = compiled(table)
    call(torch.tensor([1]))
    # A write that PyTorch does not count: it is seen only because there is no copy.
    table.weight.data[3] = 7.0
    assert call(torch.tensor([3])).tolist() == [[7.0] * 8]


@torch.no_grad()
def test_buffers_that_a_model_writes_to_are_inputs(
    compiled: Callable[..., Any], builds: list[list[str]]
) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))
            self.register_buffer("scale", torch.full((3,), 2.0))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x * self.count * self.scale

    model = Counts()
    call = compiled(model)
    found = [call(torch.ones(3))[0].item() for _ in range(4)]
    assert found == [2, 4, 6, 8]
    assert [len(one) for one in builds] == [1]


@torch.no_grad()
def test_without_freezing_every_write_is_seen(compiled: Callable[..., Any]) -> None:
    layer = nn.Linear(4, 4)
    call, value = compiled(layer, {"freeze": False}), torch.randn(2, 4)
    call(value)
    layer.weight.data.mul_(3)
    torch.testing.assert_close(call(value), layer(value))
