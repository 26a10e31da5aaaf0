"""The layouts that a tuned configuration of a convolution works in, and the task that transforms them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.autotvm.task.task import get_config, template
from tilewright.schedule import schedule
from tilewright.schedule.cpu.layouts import conv2d_layouts
from tilewright.support.errors import TilewrightError
from tilewright.te.operation import ComputeOp
from tilewright.topi.nn.blocked_layouts import Layouts, blocked_layouts, blocks_of, output_channels


def get_infer_layout(task_name: str) -> Callable[[Any, Any], Layouts]:
    """The function from (workload, configuration) to the shapes and layouts of inputs and of results."""
    if "conv2d" in task_name:
        return conv2d_infer_layout
    raise TilewrightError(f"the graph tuner plans the layouts of convolutions, not of {task_name}")


def conv2d_infer_layout(workload: Any, cfg: Any) -> Layouts:
    """With the blocks of a record of TVM's, else those that a build has for a convolution."""
    blocks = blocks_of(cfg)
    if blocks is None:
        name, data, *_ = workload
        channels, outputs = data[1][1], output_channels(workload)
        layouts = conv2d_layouts(channels, outputs, channels if "depthwise" in name else 1, data[2])
        blocks = (1, 1) if layouts is None else (layouts.ic_bn, layouts.oc_bn)
    return blocked_layouts(workload, blocks)


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
