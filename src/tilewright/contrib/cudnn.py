"""cuDNN in tensor expressions, for arrays on an NVIDIA GPU."""

from __future__ import annotations

from tilewright import te
from tilewright.runtime.external import cudnn
from tilewright.support.errors import RuntimeFailure
from tilewright.tir import call_packed


def exists() -> bool:
    """True if cuDNN can be loaded and finds a GPU."""
    try:
        return cudnn.version() > 0
    except (OSError, RuntimeFailure):
        return False


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Softmax along an axis as an external operation."""
    return _along("softmax", x, axis)


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of softmax along an axis as an external operation."""
    return _along("log_softmax", x, axis)


def _along(name: str, x: te.Tensor, axis: int) -> te.Tensor:
    made: te.Tensor = te.extern(
        x.shape,
        [x],
        lambda ins, outs: call_packed(f"tvm.contrib.cudnn.{name}.forward", ins[0], outs[0], axis),
        name="y",
    )
    return made
