"""TVM's questions whether a vendor's device can be used here. None of these can."""

from __future__ import annotations

from enum import Enum


class Available(Enum):
    """What there is of a device: nothing, which is false, its compiler, or the device too."""

    UNAVAILABLE = 0
    SW_ONLY = 1
    SW_AND_HW = 2

    def __bool__(self) -> bool:
        return self is not Available.UNAVAILABLE


def ethosn_available() -> Available:
    """Whether Ethos-N is supported: it is not."""
    return Available.UNAVAILABLE


def vitis_ai_available() -> bool:
    """Whether Vitis AI is supported: it is not."""
    return False


def is_tensorrt_runtime_enabled() -> bool:
    """Whether TensorRT is supported: it is not."""
    return False
