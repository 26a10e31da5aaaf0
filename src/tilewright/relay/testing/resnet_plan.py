"""The number of units per stage and the channels of a residual network, by depth."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.support.errors import ModelError

IMAGENET_UNITS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}
"""Units of the four stages by depth, for images larger than those of CIFAR."""


@dataclass(frozen=True)
class Plan:
    """Units of each stage; channels before the first stage and of each; whether units are bottlenecks."""

    units: tuple[int, ...]
    channels: tuple[int, ...]
    bottle_neck: bool


def plan(num_layers: int, height: int) -> Plan:
    """The plan for a depth and the height of the images. Small images take depths 6n + 2 and, from 164 on, 9n + 2."""
    if height <= 28 or (height <= 32 and num_layers not in IMAGENET_UNITS):
        if num_layers >= 164 and (num_layers - 2) % 9 == 0:
            return Plan((((num_layers - 2) // 9),) * 3, (16, 64, 128, 256), True)
        if num_layers < 164 and (num_layers - 2) % 6 == 0:
            return Plan((((num_layers - 2) // 6),) * 3, (16, 16, 32, 64), False)
        raise ModelError(
            f"no residual network for small images has {num_layers} layers: 6n + 2, or 9n + 2 from 164 on"
        )
    if num_layers not in IMAGENET_UNITS:
        known = ", ".join(str(depth) for depth in IMAGENET_UNITS)
        raise ModelError(f"no residual network has {num_layers} layers: {known}")
    if num_layers >= 50:
        return Plan(IMAGENET_UNITS[num_layers], (64, 256, 512, 1024, 2048), True)
    return Plan(IMAGENET_UNITS[num_layers], (64, 64, 128, 256, 512), False)
