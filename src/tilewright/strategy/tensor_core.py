"""The rows of the strategy table for tensor cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.schedule.gpu.tensor_core.attention import attention, attention_refused
from tilewright.strategy.row import Row
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.attention import AttentionShape


def _attention_refused(attrs: Any, inputs: Sequence[Tensor], out_type: Any, target: Target) -> str | None:
    shape = AttentionShape.of(inputs, attrs.layouts, attrs.heads, attrs.shared, attrs.diagonal)
    return attention_refused(shape, str(inputs[0].dtype), target)


def _attention(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    shape = AttentionShape.of(inputs, attrs.layouts, attrs.heads, attrs.shared, attrs.diagonal)
    mask = inputs[3] if len(inputs) > 3 else None
    query, key, value = inputs[:3]
    return [attention(query, key, value, mask, shape, attrs.scale, attrs.layouts, attrs.first_heads)]


ROWS: Final = (
    Row(
        "nn.contrib_attention",
        "gpu",
        "attention.tensor_core",
        _attention,
        "schedule.gpu.tensor_core.attention",
        _attention_refused,
        "scores stay in registers between both products",
    ),
)
