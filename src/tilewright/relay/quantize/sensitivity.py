"""What quantising one layer costs: its signal-to-noise ratio, and the error of the model's outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.relay.quantize.observe import Sample
from tilewright.relay.quantize.simulation import Simulation

Array = np.ndarray[Any, Any]

SIGNIFICANT = 2.0
"""Standard errors of a mean that it has to exceed to count as one."""


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
    of its channels, which is zero where samples disagree about it."""

    layer: Error
    output: Error
    shift: Array


def sensitivities(simulation: Simulation, samples: Iterable[Sample]) -> dict[str, Sensitivity]:
    """Every layer quantised on its own. Floats run once for each sample, and are kept until the next one."""
    layers = simulation.layers
    found = {one.name: Sensitivity(Error(), Error(), np.zeros(())) for one in layers}
    means: dict[str, list[Array]] = {one.name: [] for one in layers}
    for sample in samples:
        simulation.switch(())
        exact, outputs = simulation.run(sample)
        for place, layer in enumerate(layers):
            simulation.switch([layer.name], between=False)
            made, results = simulation.run(sample)
            one = found[layer.name]
            one.layer.add(exact[place], made[place])
            for wanted, result in zip(outputs, results, strict=True):
                one.output.add(wanted, result)
            others = tuple(axis for axis in range(made[place].ndim) if axis != layer.channel_axis)
            means[layer.name].append((made[place].astype(np.float64) - exact[place]).mean(axis=others))
    for name, values in means.items():
        found[name].shift = _significant_mean(np.asarray(values))
    return found


def _significant_mean(values: Array) -> Array:
    """The means of channels over samples (samples, channels) that are more than chance explains. One sample says
    nothing: correcting by its errors would make just this sample exact."""
    count = len(values)
    if count < 2:
        return np.zeros(values.shape[1:])
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    return np.where(np.abs(mean) > SIGNIFICANT * deviation / np.sqrt(count), mean, 0.0)


def errors_along(
    simulation: Simulation,
    samples: Iterable[Sample],
    quantised: Collection[str],
    corrected: bool = False,
    halves: Collection[str] = (),
) -> tuple[list[Error], Error]:
    """The error that has built up at each layer, and at the outputs, with these layers quantised and others in 16-bit
    floats."""
    along, output = [Error() for _ in simulation.layers], Error()
    for sample in samples:
        simulation.switch(())
        exact, outputs = simulation.run(sample)
        simulation.switch(quantised, corrected, halves)
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
