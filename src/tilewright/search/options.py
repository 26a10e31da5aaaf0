"""How candidates are measured, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.buffer import Buffer
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import TilewrightError
from tilewright.te.tensor import Tensor


@dataclass(frozen=True)
class RunOptions:
    """How a candidate is measured.

    ``seconds`` is the time limit of one candidate, warm-up included. Each of ``repeat`` measurements is the mean of
    ``number`` calls, raised until they last ``min_repeat_ms``. With ``flush`` the caches are emptied before each
    repeat, which is then one call. ``cooldown`` is how many seconds to wait after a candidate. A candidate whose first
    call takes longer than ``give_up_above`` seconds is not repeated: what it costs need not be known well. ``outputs``
    is how many of the last arguments are results, which must agree with the incumbent's; 0 compares nothing. ``memory``
    is how many bytes a candidate may take, None for half of what is free. ``function`` is what is called, by default
    the only function.
    """

    seconds: float = 10.0
    number: int = 3
    repeat: int = 3
    min_repeat_ms: int = 0
    flush: bool = False
    cooldown: float = 0.0
    give_up_above: float = float("inf")
    outputs: int = 0
    memory: int | None = None
    device: str = "cpu"
    device_id: int = 0
    function: str = ""


@dataclass(frozen=True)
class Argument:
    """A tensor that candidates are called with: its values, or random ones (zeros for wide integers, which may be
    indices)."""

    shape: tuple[int, ...]
    dtype: str
    values: Any = None

    @staticmethod
    def of(given: Tensor | Buffer | NDArray | np.ndarray[Any, Any] | Argument) -> Argument:
        """The argument for a tensor expression, a buffer, or an array, whose values are used."""
        if isinstance(given, Argument):
            return given
        shape = _constants(given.shape)
        if isinstance(given, (NDArray, np.ndarray)):
            return Argument(shape, str(given.dtype), given)
        return Argument(shape, str(given.dtype))


def _constants(shape: Sequence[Any]) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in shape)
    except TypeError:
        raise TilewrightError(
            f"a tensor of shape {tuple(shape)} cannot be made to measure with: give it constant extents"
        ) from None


def arguments_of(given: Sequence[Any]) -> tuple[Argument, ...]:
    """The arguments for tensors, buffers or arrays."""
    return tuple(Argument.of(one) for one in given)
