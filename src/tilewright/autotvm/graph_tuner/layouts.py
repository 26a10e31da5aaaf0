"""The layouts that a tuned configuration of a convolution works in, and the task that transforms them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.autotvm.task.space import OtherOptionEntity, SplitEntity
from tilewright.autotvm.task.task import get_config, template
from tilewright.schedule import schedule
from tilewright.schedule.cpu.layouts import conv2d_layouts
from tilewright.support.errors import TilewrightError
from tilewright.te.operation import ComputeOp

Shaped = tuple[tuple[int, ...], str]
"""A shape and its layout."""


def get_infer_layout(task_name: str) -> Callable[[Any, Any], tuple[tuple[Shaped, ...], tuple[Shaped, ...]]]:
    """The function from (workload, configuration) to the shapes and layouts of inputs and of results."""
    if "conv2d" in task_name:
        return conv2d_infer_layout
    raise TilewrightError(f"the graph tuner plans the layouts of convolutions, not of {task_name}")


def conv2d_infer_layout(workload: Any, cfg: Any) -> tuple[tuple[Shaped, ...], tuple[Shaped, ...]]:
    """The blocks of a record of TVM's, else those that a build has for a convolution."""
    _, data, kernel, strides, padding, dilation, *_ = workload
    batch, channels, height, width = data[1]
    outputs, _, *taps = kernel[1]
    inner, outer = _block(cfg, "tile_ic"), _block(cfg, "tile_oc")
    if inner is None or outer is None:
        groups = channels if "depthwise" in workload[0] else 1
        layouts = conv2d_layouts(channels, outputs, groups, data[2])
        inner, outer = (1, 1) if layouts is None else (layouts.ic_bn, layouts.oc_bn)
    pads = list(padding) if len(padding) == 4 else [padding[0], padding[1]] * 2
    extents = [
        (size + pads[axis] + pads[axis + 2] - (tap - 1) * dilation[axis] - 1) // strides[axis] + 1
        for axis, (size, tap) in enumerate(zip((height, width), taps, strict=True))
    ]
    before = ((batch, channels // inner, height, width, inner), f"NCHW{inner}c")
    after = ((batch, outputs // outer, extents[0], extents[1], outer), f"NCHW{outer}c")
    return (before,), (after,)


def _block(cfg: Any, name: str) -> int | None:
    if cfg is None or name not in cfg:
        return None
    entity = cfg[name]
    if isinstance(entity, SplitEntity):
        return int(entity.size[-1])
    return int(entity.val) if isinstance(entity, OtherOptionEntity) else None


def _layout_transform(*args: Any) -> Any:
    """The transform of a tensor from one layout to another, as a build schedules it."""
    data, before, after = args
    config = get_config()
    given = te.placeholder(data.shape, name="data", dtype=data.dtype)
    made = topi.layout_transform(given, before, after)
    config.add_flop(_elements(made))
    return schedule(made), [given, made]


def _elements(tensor: Any) -> int:
    assert isinstance(tensor.op, ComputeOp)
    total = 1
    for extent in tensor.shape:
        total *= int(extent)
    return total


layout_transform = template("layout_transform", _layout_transform)
