"""What quantising one layer costs: its signal-to-noise ratio, and the error of the model's outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.relay.quantize.observe import Sample
from tilewright.relay.quantize.simulation import Simulation

Array = np.ndarray[Any, Any]


@dataclass
class Error:
    """Powers of a signal and of its noise, added up over runs."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, exact: Array, found: Array) -> None:
        """Count one run."""
        wide = exact.astype(np.float64)
        self.signal += float((wide**2).sum())
        self.noise += float(((found.astype(np.float64) - wide) ** 2).sum())

    @property
    def relative(self) -> float:
        """The root of noise over signal."""
        if self.noise == 0.0:
            return 0.0
        return float(np.sqrt(self.noise / self.signal)) if self.signal else float("inf")

    @property
    def decibels(self) -> float:
        """The signal-to-noise ratio; infinite where there is no noise."""
        return float("inf") if self.relative == 0.0 else float(-20 * np.log10(self.relative))


@dataclass
class Sensitivity:
    """Of one layer, quantised on its own: the error of its result, of the model's outputs, and the mean error of each
    of its channels."""

    layer: Error
    output: Error
    shift: Array


def sensitivities(simulation: Simulation, samples: Iterable[Sample]) -> dict[str, Sensitivity]:
    """Every layer quantised on its own. Floats run once for each sample, and are kept until the next one."""
    layers = simulation.layers
    found = {one.name: Sensitivity(Error(), Error(), np.zeros(())) for one in layers}
    count = 0
    for sample in samples:
        count += 1
        simulation.switch(())
        exact, outputs = simulation.run(sample)
        for place, layer in enumerate(layers):
            simulation.switch([layer.name])
            made, results = simulation.run(sample)
            one = found[layer.name]
            one.layer.add(exact[place], made[place])
            for wanted, result in zip(outputs, results, strict=True):
                one.output.add(wanted, result)
            others = tuple(axis for axis in range(made[place].ndim) if axis != layer.channel_axis)
            one.shift = one.shift + (made[place].astype(np.float64) - exact[place]).mean(axis=others)
    for one in found.values():
        one.shift = np.asarray(one.shift / max(count, 1))
    return found


def errors_along(
    simulation: Simulation, samples: Iterable[Sample], quantised: Collection[str], corrected: bool = False
) -> tuple[list[Error], Error]:
    """The error that has built up at each layer, and at the outputs, with these layers quantised."""
    along, output = [Error() for _ in simulation.layers], Error()
    for sample in samples:
        simulation.switch(())
        exact, outputs = simulation.run(sample)
        simulation.switch(quantised, corrected)
        made, results = simulation.run(sample)
        for one, wanted, result in zip(along, exact, made, strict=True):
            one.add(wanted, result)
        for wanted, result in zip(outputs, results, strict=True):
            output.add(wanted, result)
    return along, output


JUMP = 3.0
"""An error jumps where it is this many times the largest before it."""
WORTH_NAMING = 0.01
"""Relative errors below this are not worth naming."""


def first_jump(errors: Sequence[float]) -> int | None:
    """The first place where the error jumps; None if it grows slowly or stays small."""
    largest = 0.0
    for place, error in enumerate(errors):
        if error > WORTH_NAMING and error > JUMP * largest:
            return place
        largest = max(largest, error)
    return None
