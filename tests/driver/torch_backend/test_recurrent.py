"""Recurrent layers, which TorchDynamo captures with ``torch._dynamo.config.allow_rnn``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")


@torch.no_grad()
@pytest.mark.parametrize("settings", [
    {"num_layers": 2},
    {"bidirectional": True},
    {"bias": False, "batch_first": True},
])  # fmt: skip
def test_lstm_layers_are_part_of_the_graph(compiled: Callable[..., Any], settings: dict[str, Any]) -> None:
    """In one graph, without steps left to PyTorch, and with the state that the next call goes on from."""
    layers = torch.nn.LSTM(6, 5, **settings).eval()
    value = torch.randn(4, 4, 6)
    count = layers.num_layers * (2 if layers.bidirectional else 1)
    state = torch.randn(count, 4, 5), torch.randn(count, 4, 5)
    with torch._dynamo.config.patch(allow_rnn=True):
        found = compiled(layers, fullgraph=True)(value, state)
    torch.testing.assert_close(found, layers(value, state), rtol=1e-4, atol=1e-5)
