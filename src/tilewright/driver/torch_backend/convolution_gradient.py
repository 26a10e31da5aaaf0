"""The gradients of a convolution as convolutions, for which PyTorch has no decomposition of its own.

The gradient by the input is the transposed convolution. That by the weight is a convolution of the input with the
gradient of the result, in which batch and channels change places, and stride and dilation too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def convolution_backward(
    grad: torch.Tensor,
    data: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """``aten::convolution_backward`` of convolutions that are not transposed ones."""
    if transposed:
        return NotImplemented
    rank = weight.dim() - 2
    stride, padding, dilation = (_expanded(one, rank) for one in (stride, padding, dilation))
    by_data = by_weight = by_bias = None
    if output_mask[0]:
        missing = [
            data.shape[axis + 2]
            - ((grad.shape[axis + 2] - 1) * stride[axis] - 2 * padding[axis])
            - (dilation[axis] * (weight.shape[axis + 2] - 1) + 1)
            for axis in range(rank)
        ]
        by_data = torch.ops.aten.convolution(
            grad, weight, None, stride, padding, dilation, True, missing, groups
        )
    if output_mask[1]:
        by_weight = _by_weight(grad, data, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        by_bias = grad.sum([axis for axis in range(rank + 2) if axis != 1])
    return by_data, by_weight, by_bias


def _expanded(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _by_weight(
    grad: torch.Tensor,
    data: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    rank = weight.dim() - 2
    space = list(range(3, rank + 3))
    batch, channels, results = data.shape[0], weight.shape[1], weight.shape[0]
    # [batch, groups, channels of a group, ...] to [channels of a group, groups * batch, ...]
    image = data.reshape(batch, groups, channels, *data.shape[2:]).permute(2, 1, 0, *space)
    image = image.reshape(channels, groups * batch, *data.shape[2:])
    kernel = grad.transpose(0, 1)
    found = torch.ops.aten.convolution(
        image,
        kernel.contiguous(),
        None,
        list(dilation),
        list(padding),
        list(stride),
        False,
        [0] * rank,
        groups,
    )
    for axis in range(rank):
        # A stride that does not divide the size leaves pixels at the end, which no element of the weight has met.
        found = found.narrow(axis + 2, 0, weight.shape[axis + 2])
    assert found.shape[1] == results
    return found.transpose(0, 1).contiguous()
