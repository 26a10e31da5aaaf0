"""Inputs for models whose dimensions are open: sizes that fit together, tried until the reference runs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.executors import Values
from tilewright.driver.tvmc.runner import complete_inputs
from tilewright.driver.tvmc.tensors import TensorInfo
from tilewright.support.errors import TilewrightError

_Outcome = TypeVar("_Outcome")

SIZES = (32, 64, 48, 128, 256, 512, 224, 16, 7, 1)
"""Sizes of open dimensions other than a batch, in the order in which they are tried: networks halve images five times,
read text of a certain height, and sound in blocks."""

MOST_ATTEMPTS = 60

_FAILURES = (
    TilewrightError,
    ValueError,
    IndexError,
    TypeError,
    ZeroDivisionError,
    AssertionError,
    MemoryError,
)
"""What a reference may raise for shapes that do not fit."""

_BATCH_NAMES = ("n", "b", "bs", "batch")


@dataclass(frozen=True)
class OpenInputs:
    """``names`` are those of the dimensions of inputs, where the model's format has any; ``fixed`` are the values of
    inputs that the model was compiled for, which it does not take any more."""

    names: Mapping[str, Sequence[int | str | None]]
    fixed: Mapping[str, np.ndarray[Any, Any]]

    def _key(self, info: TensorInfo, axis: int) -> str:
        """What an open dimension is called; those of one name have one size."""
        named = self.names.get(info.name, ())
        name = named[axis] if axis < len(named) else None
        return name if isinstance(name, str) and name else f"{info.name}.{axis}"

    def tried(
        self,
        infos: Sequence[TensorInfo],
        generator: np.random.Generator,
        run: Callable[[Values], _Outcome],
        batch: int = 1,
    ) -> tuple[Values, _Outcome]:
        """Random inputs of sizes that the reference accepts, and what it gives for them."""
        keys = {
            self._key(info, axis): axis
            for info in infos
            for axis, extent in enumerate(info.shape)
            if extent is None
        }
        failure: Exception | None = None
        for attempt, sizes in enumerate(_assignments(keys, batch)):
            if attempt == MOST_ATTEMPTS:
                break
            closed = [
                replace(
                    info,
                    shape=tuple(
                        sizes[self._key(info, axis)] if extent is None else extent
                        for axis, extent in enumerate(info.shape)
                    ),
                )
                for info in infos
            ]
            values = complete_inputs(closed, {}, "random", generator)
            try:
                return values, run(values)
            except _FAILURES as error:
                if not keys:
                    raise
                failure = failure or error
        listed = ",".join(f"{key}=SIZE" for key in keys)
        raise TVMCException(
            f"no sizes were found that the model's open dimensions may have; give them: --dim {listed} ({failure})"
        ) from failure

    def notes(self, infos: Sequence[TensorInfo], inputs: Sequence[Values]) -> list[str]:
        """Which sizes open dimensions were given."""
        if all(info.is_static for info in infos):
            return []
        each = []
        for values in inputs:
            sizes = {
                self._key(info, axis): values[info.name].shape[axis]
                for info in infos
                for axis, extent in enumerate(info.shape)
                if extent is None
            }
            each.append(", ".join(f"{key}={size}" for key, size in sizes.items()))
        return [f"open dimensions of the inputs: {'; '.join(dict.fromkeys(each))} (--dim fixes them)"]


def _is_batch(key: str, axis: int) -> bool:
    return axis == 0 or key.lower() in _BATCH_NAMES or "batch" in key.lower()


def _assignments(keys: Mapping[str, int], batch: int) -> Iterator[dict[str, int]]:
    """Sizes by name: batches of this size, then of one; the rest of one size, then some of them of one."""
    batches = [key for key, axis in keys.items() if _is_batch(key, axis)]
    others = [key for key in keys if key not in batches]
    seen = set()
    for count in dict.fromkeys((batch, 1)):
        for size in SIZES if others else (1,):
            for chosen in product((size, count), repeat=len(others)):
                made = {**dict.fromkeys(batches, count), **dict(zip(others, chosen, strict=True))}
                key = tuple(made.items())
                if key not in seen:
                    seen.add(key)
                    yield made
