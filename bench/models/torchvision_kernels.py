"""Torchvision's operators in plain torch, for a build of torch that its compiled extension does not load with.

Sampling a regular grid bilinearly is separable, so aligning and averaging regions is two small matrices a region, one
over rows and one over columns, and the gradient is the same product with the matrices transposed.
"""

from __future__ import annotations

import torch
from torch import Tensor


def non_maximum_suppression(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no better box overlaps by more than the threshold, best first."""
    order = torch.argsort(scores, descending=True, stable=True)
    boxes = boxes[order]
    left, top, right, bottom = boxes.unbind(1)
    areas = (right - left) * (bottom - top)
    dropped = torch.zeros(len(order), dtype=torch.bool)
    kept = []
    for index in range(len(order)):
        if dropped[index]:
            continue
        kept.append(index)
        width = (torch.minimum(right, right[index]) - torch.maximum(left, left[index])).clamp(min=0)
        height = (torch.minimum(bottom, bottom[index]) - torch.maximum(top, top[index])).clamp(min=0)
        overlap = width * height
        dropped |= overlap / (areas + areas[index] - overlap) > iou_threshold
    return order[torch.tensor(kept, dtype=torch.int64)]


# ---- regions: one matrix over rows and one over columns ----


def _bilinear(start: Tensor, bin_size: Tensor, bins: int, samples: Tensor, size: int) -> Tensor:
    """Per region a matrix [bins, size]: the mean of evenly spaced bilinear samples in each bin."""
    most = max(int(samples.max()), 1) if len(samples) else 1
    step = torch.arange(most, dtype=start.dtype)
    share = bin_size[:, None] / samples[:, None].clamp(min=1)
    bin_start = start[:, None] + torch.arange(bins, dtype=start.dtype) * bin_size[:, None]
    where = bin_start[:, :, None] + ((step + 0.5) * share)[:, None, :]
    counts = (step < samples[:, None])[:, None, :] & (where >= -1) & (where <= size)
    where = where.clamp(min=0)
    low = where.long().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    fraction = torch.where(low >= size - 1, torch.zeros_like(where), where - low)
    part = counts.to(start.dtype) / samples[:, None, None].clamp(min=1)
    matrix = torch.zeros(len(start), bins, size, dtype=start.dtype)
    matrix.scatter_add_(2, low, (1 - fraction) * part)
    return matrix.scatter_add_(2, high, fraction * part)


def _aligned(rois: Tensor, scale: float, height: int, width: int, rows: int, columns: int, ratio: int, shift: float,
             least: float | None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The matrices over rows and columns of roi_align and its position-sensitive form."""
    matrices = []
    for first, last, bins, size in ((2, 4, rows, height), (1, 3, columns, width)):
        start = rois[:, first] * scale - shift
        extent = rois[:, last] * scale - shift - start
        if least is not None:
            extent = extent.clamp(min=least)
        samples = torch.full_like(extent, ratio) if ratio > 0 else torch.ceil(extent / bins)
        matrices.append(_bilinear(start, extent / bins, bins, samples.long(), size))
    return matrices[0], matrices[1]


def _averaged(
    rois: Tensor, scale: float, height: int, width: int, rows: int, columns: int
) -> tuple[Tensor, Tensor]:
    """The matrices of ps_roi_pool: the mean of the whole pixels in each bin."""
    matrices = []
    for first, last, bins, size in ((2, 4, rows, height), (1, 3, columns, width)):
        start = _rounded(rois[:, first] * scale)
        extent = (_rounded(rois[:, last] * scale) - start).clamp(min=1)
        inside = _bins(start, extent, bins, size)
        matrices.append(inside / inside.sum(2, keepdim=True).clamp(min=1))
    return matrices[0], matrices[1]


def _rounded(values: Tensor) -> Tensor:
    """To the nearest whole number, halves away from zero as C rounds them."""
    return torch.trunc(values + 0.5 * torch.sign(values))


def _bins(start: Tensor, extent: Tensor, bins: int, size: int) -> Tensor:
    """Per region a matrix [bins, size] of ones where a pixel is in a bin."""
    edges = torch.arange(bins + 1, dtype=start.dtype) * (extent / bins)[:, None]
    first = (torch.floor(edges[:, :-1]) + start[:, None]).clamp(0, size)
    last = (torch.ceil(edges[:, 1:]) + start[:, None]).clamp(0, size)
    pixel = torch.arange(size, dtype=start.dtype)
    return ((pixel >= first[:, :, None]) & (pixel < last[:, :, None])).to(start.dtype)


def _gathered(
    equation: str, value: Tensor, rois: Tensor, over_rows: Tensor, over_columns: Tensor, shape: list[int]
) -> Tensor:
    """Each image's regions from that image."""
    result = value.new_zeros(shape)
    for image in range(value.shape[0]):
        mine = rois[:, 0] == image
        if mine.any():
            result[mine] = torch.einsum(equation, value[image], over_rows[mine], over_columns[mine])
    return result


def _scattered(
    equation: str, grad: Tensor, rois: Tensor, over_rows: Tensor, over_columns: Tensor, shape: list[int]
) -> Tensor:
    """Each region's gradient into its image."""
    result = grad.new_zeros(shape)
    for image in range(shape[0]):
        mine = rois[:, 0] == image
        if mine.any():
            result[image] = torch.einsum(equation, grad[mine], over_rows[mine], over_columns[mine]).reshape(
                shape[1:]
            )
    return result


def roi_align(
    value: Tensor, rois: Tensor, scale: float, rows: int, columns: int, ratio: int, aligned: bool
) -> Tensor:
    shift, least = (0.5, None) if aligned else (0.0, 1.0)
    matrices = _aligned(rois, scale, value.shape[2], value.shape[3], rows, columns, ratio, shift, least)
    return _gathered("chw,kph,kqw->kcpq", value, rois, *matrices, [len(rois), value.shape[1], rows, columns])


def roi_align_backward(grad: Tensor, rois: Tensor, scale: float, rows: int, columns: int, batch: int, channels: int,
                       height: int, width: int, ratio: int, aligned: bool) -> Tensor:  # fmt: skip
    shift, least = (0.5, None) if aligned else (0.0, 1.0)
    matrices = _aligned(rois, scale, height, width, rows, columns, ratio, shift, least)
    return _scattered("kcpq,kph,kqw->chw", grad, rois, *matrices, [batch, channels, height, width])


def _channel_mapping(count: int, channels: int, rows: int, columns: int) -> Tensor:
    mapping = torch.arange(channels * rows * columns, dtype=torch.int32).reshape(channels, rows, columns)
    return mapping.expand(count, -1, -1, -1).contiguous()


def _position_sensitive(
    value: Tensor, rois: Tensor, matrices: tuple[Tensor, Tensor], rows: int, columns: int
) -> tuple[Tensor, Tensor]:
    """Each bin from the channel that is its own."""
    batch, channels, height, width = value.shape
    channels //= rows * columns
    split = value.reshape(batch, channels, rows, columns, height, width)
    shape = [len(rois), channels, rows, columns]
    pooled = _gathered("cpqhw,kph,kqw->kcpq", split, rois, *matrices, shape)
    return pooled, _channel_mapping(len(rois), channels, rows, columns)


def ps_roi_align(
    value: Tensor, rois: Tensor, scale: float, rows: int, columns: int, ratio: int
) -> tuple[Tensor, Tensor]:
    matrices = _aligned(rois, scale, value.shape[2], value.shape[3], rows, columns, ratio, 0.5, None)
    return _position_sensitive(value, rois, matrices, rows, columns)


def ps_roi_align_backward(grad: Tensor, rois: Tensor, mapping: Tensor, scale: float, rows: int, columns: int,
                          ratio: int, batch: int, channels: int, height: int, width: int) -> Tensor:  # fmt: skip
    matrices = _aligned(rois, scale, height, width, rows, columns, ratio, 0.5, None)
    return _scattered("kcpq,kph,kqw->cpqhw", grad, rois, *matrices, [batch, channels, height, width])


def ps_roi_pool(value: Tensor, rois: Tensor, scale: float, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    matrices = _averaged(rois, scale, value.shape[2], value.shape[3], rows, columns)
    return _position_sensitive(value, rois, matrices, rows, columns)


def ps_roi_pool_backward(grad: Tensor, rois: Tensor, mapping: Tensor, scale: float, rows: int, columns: int, batch: int,
                         channels: int, height: int, width: int) -> Tensor:  # fmt: skip
    matrices = _averaged(rois, scale, height, width, rows, columns)
    return _scattered("kcpq,kph,kqw->cpqhw", grad, rois, *matrices, [batch, channels, height, width])


def roi_pool(value: Tensor, rois: Tensor, scale: float, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """The largest pixel of each bin, and where in its plane it is (-1 where a bin is empty)."""
    channels, height, width = value.shape[1:]
    inside = []
    for first, last, bins, size in ((2, 4, rows, height), (1, 3, columns, width)):
        start = _rounded(rois[:, first] * scale)
        # The last pixel belongs to the region.
        extent = (_rounded(rois[:, last] * scale) - start + 1).clamp(min=1)
        inside.append(_bins(start, extent, bins, size).bool())
    pooled = value.new_zeros(len(rois), channels, rows, columns)
    argmax = torch.full(pooled.shape, -1, dtype=torch.int32)
    for region in range(len(rois)):
        plane = value[int(rois[region, 0])].reshape(channels, 1, height * width)
        here = inside[0][region][:, None, :, None] & inside[1][region][None, :, None, :]
        bins = here.reshape(1, rows * columns, height * width)
        best, where = torch.where(bins, plane, -torch.inf).max(2)
        filled = bins.any(2)
        pooled[region] = torch.where(filled, best, 0.0).reshape(channels, rows, columns)
        argmax[region] = torch.where(filled, where, -1).reshape(channels, rows, columns).int()
    return pooled, argmax


def roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, rows: int, columns: int, batch: int,
                      channels: int, height: int, width: int) -> Tensor:  # fmt: skip
    result = grad.new_zeros(batch, channels, height * width)
    for region in range(len(rois)):
        where = argmax[region].reshape(channels, -1).long()
        part = torch.where(where >= 0, grad[region].reshape(channels, -1), 0.0)
        result[int(rois[region, 0])].scatter_add_(1, where.clamp(min=0), part)
    return result.reshape(batch, channels, height, width)


# ---- deformable convolution ----


def _positions(offset: Tensor, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int],
               dilation: tuple[int, int], groups: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Rows and columns that are sampled: [batch, groups, taps, height, width] each."""
    batch, _, height, width = offset.shape
    moved = offset.reshape(batch, groups, kernel[0] * kernel[1], 2, height, width)
    tap = torch.arange(kernel[0] * kernel[1])
    row = (torch.arange(height) * stride[0] - padding[0])[None, :, None] + (tap // kernel[1] * dilation[0])[
        :, None, None
    ]
    column = (torch.arange(width) * stride[1] - padding[1])[None, None, :] + (tap % kernel[1] * dilation[1])[
        :, None, None
    ]
    return moved[:, :, :, 0] + row, moved[:, :, :, 1] + column


def _corners(row: Tensor, column: Tensor, height: int, width: int):  # type: ignore[no-untyped-def]
    """The four pixels around each position: flat index, weight, and the weight's slopes by row and by column."""
    low_row, low_column = torch.floor(row), torch.floor(column)
    for down in (0, 1):
        for right in (0, 1):
            at_row, at_column = low_row + down, low_column + right
            by_row = 1 - (row - at_row).abs()
            by_column = 1 - (column - at_column).abs()
            valid = (at_row >= 0) & (at_row < height) & (at_column >= 0) & (at_column < width)
            valid = valid.to(row.dtype)
            index = at_row.clamp(0, height - 1).long() * width + at_column.clamp(0, width - 1).long()
            slope_row = valid * (1 if down else -1) * by_column
            slope_column = valid * (1 if right else -1) * by_row
            yield index, valid * by_row * by_column, slope_row, slope_column


def _planes(value: Tensor, index: Tensor, groups: int) -> Tensor:
    """The pixels at flat indices [batch, groups, ...] of every channel of the group."""
    batch, channels, height, width = value.shape
    flat = value.reshape(batch, groups, channels // groups, height * width)
    wanted = index.reshape(batch, groups, 1, -1).expand(-1, -1, channels // groups, -1)
    return flat.gather(3, wanted).reshape(batch, groups, channels // groups, *index.shape[2:])


def _sampled(value: Tensor, row: Tensor, column: Tensor, groups: int) -> Tensor:
    """Bilinear samples, zero outside: [batch, groups, channels of a group, taps, height, width]."""
    return sum(
        _planes(value, index, groups) * weight[:, :, None]
        for index, weight, _, _ in _corners(row, column, *value.shape[2:])
    )  # type: ignore[return-value]


def deform_conv2d(value: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int,
                  stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int,
                  offset_groups: int, use_mask: bool) -> Tensor:  # fmt: skip
    taps = weight.shape[2] * weight.shape[3]
    row, column = _positions(
        offset, tuple(weight.shape[2:]), (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), offset_groups
    )  # fmt: skip
    columns = _sampled(value, row, column, offset_groups)
    batch, (height, width) = value.shape[0], offset.shape[2:]
    if use_mask:
        columns = columns * mask.reshape(batch, offset_groups, 1, taps, height, width)
    columns = columns.reshape(batch, groups, value.shape[1] // groups * taps, height * width)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = torch.einsum("gok,bgkp->bgop", matrix, columns)
    return result.reshape(batch, weight.shape[0], height, width) + bias[:, None, None]


def deform_conv2d_backward(grad: Tensor, value: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor,
                           stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
                           groups: int, offset_groups: int, use_mask: bool) -> tuple[Tensor, ...]:  # fmt: skip
    taps = weight.shape[2] * weight.shape[3]
    row, column = _positions(
        offset, tuple(weight.shape[2:]), (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), offset_groups
    )  # fmt: skip
    batch, channels, high, wide = value.shape
    height, width = offset.shape[2:]
    sampled = _sampled(value, row, column, offset_groups)
    full_mask = mask.reshape(batch, offset_groups, 1, taps, height, width) if use_mask else None
    columns = sampled if full_mask is None else sampled * full_mask
    grad_groups = grad.reshape(batch, groups, weight.shape[0] // groups, height * width)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    flat = columns.reshape(batch, groups, channels // groups * taps, height * width)
    grad_weight = torch.einsum("bgop,bgkp->gok", grad_groups, flat).reshape(weight.shape)
    grad_columns = torch.einsum("gok,bgop->bgkp", matrix, grad_groups).reshape(sampled.shape)
    grad_mask = torch.zeros_like(mask)
    if full_mask is not None:
        grad_mask = (grad_columns * sampled).sum(2).reshape(mask.shape)
        grad_columns = grad_columns * full_mask
    grad_value = value.new_zeros(batch, offset_groups, channels // offset_groups, high * wide)
    slopes = [torch.zeros_like(row), torch.zeros_like(column)]
    for index, part, slope_row, slope_column in _corners(row, column, high, wide):
        pixels = _planes(value, index, offset_groups)
        slopes[0] += (grad_columns * pixels).sum(2) * slope_row
        slopes[1] += (grad_columns * pixels).sum(2) * slope_column
        target = index.reshape(batch, offset_groups, 1, -1).expand(-1, -1, channels // offset_groups, -1)
        moved = (grad_columns * part[:, :, None]).reshape(batch, offset_groups, channels // offset_groups, -1)
        grad_value.scatter_add_(3, target, moved)
    grad_offset = torch.stack(slopes, 3).reshape(offset.shape)
    return grad_value.reshape(value.shape), grad_weight, grad_offset, grad_mask, grad.sum((0, 2, 3))
