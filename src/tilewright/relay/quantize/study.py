"""Quantising a model for a user's data: measure, choose per layer, and keep in floats what costs too much.

study = Study(mod, params)
study.measure(samples)
found = study.choose(samples, 0.005, labels)
found.module                 # in the quantised dialect
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Tuple
from tilewright.relay.quantize.dialect import HALF, LayerScheme, quantised_module
from tilewright.relay.quantize.layers import Layer, find_layers, is_quantised, prepared
from tilewright.relay.quantize.observe import Array, Observed, Sample
from tilewright.relay.quantize.scheme import METHODS, activation, weights
from tilewright.relay.quantize.sensitivity import Error, Sensitivity, errors_along, first_jump, sensitivities
from tilewright.relay.quantize.simulation import Simulation
from tilewright.relay.quantize.statistics import Statistics
from tilewright.relay.quantize.tensors import Tensors
from tilewright.support.errors import ModelError
from tilewright.support.suggestions import did_you_mean

SENSITIVITY_SAMPLES: Final = 8
"""Samples on which layers are quantised one by one."""
WITH_LABELS: Final = 0.005
WITHOUT_LABELS: Final = 0.05
"""Budgets where the user gives none: a share of accuracy, or of the outputs' magnitude."""
OVER_BUDGET: Final = "keeps the model within its budget"
STILL_OVER: Final = "loses less than on integers"
"""Why layers are computed in floats: with bfloat16, a model may be over its budget all the same."""
INTEGERS: Final = "int8"
FLOAT: Final = "float32"
SENSITIVE: Final = (FLOAT, HALF)
"""What layers can be computed in that cost too much on integers."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class Quality:
    """How good a quantised model is: the relative error of its outputs, and with labels the share it gets right."""

    error: float
    accuracy: float | None = None

    def loss(self, exact: Quality) -> float:
        """What counts against the budget: accuracy where there is one, else the error."""
        if self.accuracy is None or exact.accuracy is None:
            return self.error
        return exact.accuracy - self.accuracy


@dataclass(frozen=True)
class LayerReport:
    """One layer in the table: what it is, what it costs, and what it is computed in."""

    name: str
    operator: str
    shape: list[int]
    multiplications: int
    decibels: float
    output_error: float
    error_along: float
    computed_in: str
    why: str

    @property
    def quantised(self) -> bool:
        """True if the layer is on integers."""
        return self.computed_in == INTEGERS

    def as_json(self) -> dict[str, Any]:
        """For ``--json``; what is infinite is None."""
        found = {**vars(self), "quantised": self.quantised}
        for key in ("decibels", "output_error", "error_along"):
            found[key] = found[key] if np.isfinite(found[key]) else None
        return found


@dataclass(frozen=True)
class Quantised:
    """A quantised model, and how it came about."""

    module: IRModule
    """In the quantised dialect."""
    portable: IRModule
    """The same for other runtimes, which compute no bfloat16: float32 takes its place."""
    original: IRModule
    """The same model in floats, as it was measured."""
    layers: list[LayerReport]
    schemes: dict[str, LayerScheme]
    exact: Quality
    quality: Quality
    budget: float
    method: str
    samples: int
    bias_corrected: bool
    jump: LayerReport | None
    """The first layer where the error jumps."""

    @property
    def within_budget(self) -> bool:
        """True if the quantised model loses no more than it may."""
        return self.quality.loss(self.exact) <= self.budget


class Study:
    """One model that is to be quantised."""

    def __init__(
        self,
        mod: IRModule,
        params: Mapping[str, Any] | None = None,
        method: str = "mse",
        symmetric: bool = False,
        per_channel: bool = True,
        report: Report = lambda text: None,
        sensitive: str = FLOAT,
    ) -> None:
        if method not in METHODS:
            hint = did_you_mean(method, METHODS)
            raise ModelError(f"the methods of calibration are {', '.join(METHODS)}, not {method!r}{hint}")
        if sensitive not in SENSITIVE:
            raise ModelError(
                f"sensitive layers are computed in {' or '.join(SENSITIVE)}, not {sensitive!r}"
                f"{did_you_mean(sensitive, SENSITIVE)}"
            )
        self.sensitive = sensitive
        self.method, self.symmetric, self.per_channel = method, symmetric, per_channel
        self.report = report
        self.module = prepared(mod, params)
        if is_quantised(self.module):
            raise ModelError(
                "the model is quantised already: it can be compiled as it is, or its float32 original be quantised"
            )
        self.main = self.module["main"]
        self.layers: list[Layer] = find_layers(self.main)
        if not self.layers:
            raise ModelError(
                "the model has nothing to quantise: no convolution or matrix product in float32 with constant weights"
            )
        self.tensors = Tensors(self.main, self.layers)
        self.schemes: dict[str, LayerScheme] = {}
        self.samples = 0

    def measure(self, samples: Iterable[Sample]) -> None:
        """Run the model on the data, and choose scales. Samples are read one by one, and none is kept."""
        sources = self.tensors.sources()
        self.report("compiling the model to measure it")
        program = Observed(self.main.params, sources)
        each = {self.tensors.group(one): Statistics() for one in sources}
        self.samples = 0
        for values in program.runs(samples):
            self.samples += 1
            self.report(f"measuring: sample {self.samples}")
            for source, value in zip(sources, values, strict=True):
                each[self.tensors.group(source)].add(value)
        if not self.samples:
            raise ModelError("there are no samples to measure the model on")
        functions = {one: self.tensors.function_of(one) for one in sources}
        self.tensors.affines = {
            group: activation(found, self.method, self.symmetric, functions.get(group))
            for group, found in each.items()
        }
        for layer in self.layers:
            data = self.tensors.affine(layer.data)
            value = layer.weight.data.numpy()
            weight = weights(value, layer.weight_axis, self.method, self.per_channel)
            self.schemes[layer.name] = LayerScheme(data, weight)

    def choose(
        self,
        samples: Iterable[Sample],
        budget: float | None = None,
        labels: Sequence[int] | None = None,
        keep: Sequence[str] = (),
    ) -> Quantised:
        """Decide which layers are quantised. ``samples`` can be read several times. ``labels`` are the classes that the
        first output should have at its largest value; ``keep`` names layers that stay in float32."""
        known = {one.name for one in self.layers}
        for name in keep:
            if name not in known:
                raise ModelError(
                    f"the model has no layer {name!r} to keep in floats{did_you_mean(name, known)}"
                )
        if budget is None:
            budget = WITHOUT_LABELS if labels is None else WITH_LABELS
        few = list(islice(samples, SENSITIVITY_SAMPLES))
        self.report("compiling the model with switches")
        simulation = Simulation(self.module, self.tensors, self.schemes, with_halves=self.sensitive == HALF)
        self.report(f"quantising {len(self.layers)} layers one by one")
        found = sensitivities(simulation, few)
        for name, one in found.items():
            self.schemes[name] = replace(self.schemes[name], correction=-one.shift)
        simulation.schemes = dict(self.schemes)
        candidates = [one.name for one in self.layers if one.name not in set(keep)]
        corrected = self._correction_helps(simulation, few, candidates)
        if not corrected:
            self.schemes = {name: replace(one, correction=None) for name, one in self.schemes.items()}
        floats = Observed(self.main.params, _outputs(self.main.body))
        exact = _quality(floats, floats, samples, labels)
        order = sorted(candidates, key=lambda name: -found[name].output.relative)
        chosen, quality, module = self._within(order, floats, exact, samples, labels, budget)
        halves = self._halves(order[: len(order) - len(chosen)])
        along, _ = errors_along(simulation, few, chosen, corrected, halves)
        why = OVER_BUDGET if quality.loss(exact) <= budget else STILL_OVER
        reasons = {one: "was asked to stay in floats" if one in keep else why for one in known}
        layers = [
            self._row(one, found[one.name], error, self._computed_in(one, chosen, halves), reasons[one.name])
            for one, error in zip(self.layers, along, strict=True)
        ]
        schemes = {name: self.schemes[name] for name in chosen}
        place = first_jump([one.error_along for one in layers])
        return Quantised(
            module,
            quantised_module(self.module, self.tensors, schemes) if halves else module,
            self.module,
            layers,
            schemes,
            exact,
            quality,
            budget,
            self.method,
            self.samples,
            corrected,
            None if place is None else layers[place],
        )

    def _correction_helps(self, simulation: Simulation, few: Sequence[Sample], chosen: Sequence[str]) -> bool:
        """True if the outputs are nearer to the exact ones with corrected biases."""
        plain, corrected = (errors_along(simulation, few, chosen, one)[1].relative for one in (False, True))
        return corrected < plain

    def _within(
        self,
        order: Sequence[str],
        floats: Observed,
        exact: Quality,
        samples: Iterable[Sample],
        labels: Sequence[int] | None,
        budget: float,
    ) -> tuple[list[str], Quality, IRModule]:
        """The fewest layers in floats, the most sensitive first, with which the integers are within the budget."""
        tried: dict[int, tuple[Quality, IRModule]] = {}

        def attempt(kept: int) -> bool:
            if kept not in tried:
                names, halves = order[kept:], self._halves(order[:kept])
                self.report(f"checking the model with {kept} of {len(order)} layers in floats")
                schemes = {name: self.schemes[name] for name in names}
                module = quantised_module(self.module, self.tensors, schemes, halves)
                main = module["main"]
                made = floats if not names and not halves else Observed(main.params, _outputs(main.body))
                tried[kept] = _quality(made, floats, samples, labels), module
            return tried[kept][0].loss(exact) <= budget

        low, high = 0, len(order)
        while low < high:
            middle = 0 if low == 0 and high == len(order) and 0 not in tried else (low + high) // 2
            if attempt(middle):
                high = middle
            else:
                low = middle + 1
        attempt(low)
        quality, module = tried[low]
        return list(order[low:]), quality, module

    def _halves(self, sensitive: Sequence[str]) -> Sequence[str]:
        """The layers among the sensitive ones that are computed in 16-bit floats: all, or none."""
        return sensitive if self.sensitive == HALF else ()

    @staticmethod
    def _computed_in(layer: Layer, chosen: Sequence[str], halves: Sequence[str]) -> str:
        return INTEGERS if layer.name in chosen else HALF if layer.name in halves else FLOAT

    def _row(self, layer: Layer, found: Sensitivity, along: Error, computed_in: str, why: str) -> LayerReport:
        kind: Any = layer.product.checked_type
        if computed_in == INTEGERS:
            scheme = self.schemes[layer.name]
            scales = "a scale per channel" if self.per_channel else "one scale"
            why = f"{scheme.data.dtype} data, int8 weights, {scales}"
        return LayerReport(
            layer.name,
            layer.operator,
            [int(extent) for extent in kind.shape],
            layer.multiplications,
            found.layer.decibels,
            found.output.relative,
            along.relative,
            computed_in,
            why,
        )


def _outputs(body: RelayExpr) -> list[RelayExpr]:
    return list(body.fields) if isinstance(body, Tuple) else [body]


def _quality(
    program: Observed, floats: Observed, samples: Iterable[Sample], labels: Sequence[int] | None
) -> Quality:
    """How far a program is from the floats, and how often its first output is largest where the labels say."""
    error, right, count = Error(), 0, 0
    for sample in samples:
        found = program.run(sample)
        wanted = found if program is floats else floats.run(sample)
        for exact, made in zip(wanted, found, strict=True):
            error.add(exact, made)
        if labels is not None:
            classes = _classes(found[0])
            if count + len(classes) > len(labels):
                raise ModelError(f"there are {len(labels)} labels and more results to compare them with")
            right += int((classes == np.asarray(labels[count : count + len(classes)])).sum())
            count += len(classes)
    if labels is not None and count != len(labels):
        raise ModelError(f"there are {len(labels)} labels for {count} results")
    return Quality(error.relative, None if labels is None else right / max(count, 1))


def _classes(output: Array) -> Array:
    """The class of each row."""
    rows = output.reshape(output.shape[0], -1) if output.ndim > 1 else output.reshape(1, -1)
    return np.asarray(rows.argmax(axis=1))
