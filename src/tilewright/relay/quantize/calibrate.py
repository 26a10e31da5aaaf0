"""QuantizeCalibrate: gives ``simulated_quantize`` its scales and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.expr import Call, Constant, Var, const
from tilewright.relay.expr_functor import ExprMutator, bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.quantize.configuration import QAnnotateKind, current_qconfig
from tilewright.relay.quantize.observe import Array, Observed, Sample
from tilewright.relay.quantize.rules import operator
from tilewright.relay.quantize.simulated import NAME
from tilewright.relay.quantize.statistics import Statistics, divergence, percentile, power_of_two
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import ModelError
from tilewright.target import Target

THRESHOLDS: dict[str, Callable[[Statistics], float]] = {
    "kl_divergence": divergence,
    "percentile": percentile,
}


def simulations(func: Function) -> list[Call]:
    """The calls of ``simulated_quantize`` in a function."""
    return [one for one in post_order(func.body) if isinstance(one, Call) and operator(one) == NAME]


class _Real(ExprMutator):
    """The program without simulated rounding."""

    def visit_call(self, call: Call) -> Any:
        if operator(call) == NAME:
            return self.visit(call.args[0])
        return super().visit_call(call)


def _is_data(call: Call) -> bool:
    attrs: Any = call.attrs
    return bool(attrs.kind != QAnnotateKind.WEIGHT)


def _chunks(mod: IRModule, chunk_by: int) -> Iterator[tuple[list[Call], Observed]]:
    """The tensors that are quantised, so many at a time, and the program that computes them."""
    main = mod["main"]
    calls = [one for one in simulations(main) if _is_data(one)]
    size = len(calls) if chunk_by <= 0 else chunk_by
    real = _Real()
    for start in range(0, len(calls), max(size, 1)):
        chunk = calls[start : start + size]
        observed = [real.visit(one.args[0]) for one in chunk]
        yield chunk, Observed(main.params, observed, Target.current(allow_none=True))


def collect_stats(mod: IRModule, dataset: Iterable[Sample], chunk_by: int = -1) -> Iterator[list[Array]]:
    """What each tensor that is to be quantised holds over a dataset, one flat array a tensor; ``chunk_by`` tensors are
    collected at a time, which takes less memory."""
    samples = list(dataset)
    for chunk, program in _chunks(mod, chunk_by):
        runs = list(program.runs(samples))
        yield [np.concatenate([run[place].reshape(-1) for run in runs]) for place in range(len(chunk))]


def _measured(mod: IRModule, dataset: Iterable[Sample], chunk_by: int) -> dict[Call, Statistics]:
    found: dict[Call, Statistics] = {}
    for chunk, program in _chunks(mod, chunk_by):
        each = [Statistics() for _ in chunk]
        for values in program.runs(dataset):
            for statistics, value in zip(each, values, strict=True):
                statistics.add(value)
        found.update(zip(chunk, each, strict=True))
    return found


@dataclass
class QuantizeCalibrate(FunctionPass):
    """Bind scales and limits, measured on a dataset where the configuration's ``calibrate_mode`` asks for one."""

    dataset: Any = None

    name = "QuantizeCalibrate"
    opt_level = 1

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Measure first, then bind."""
        mod = infer_module(mod)
        mode = current_qconfig().calibrate_mode
        self._measured: dict[Call, Statistics] = {}
        if mode != "global_scale":
            if self.dataset is None:
                raise ModelError(
                    f"calibrate_mode {mode!r} measures tensors: give quantize() a dataset, inputs by name"
                )
            samples = self.dataset if hasattr(self.dataset, "__len__") else list(self.dataset)
            self._measured = _measured(mod, samples, current_qconfig().calibrate_chunk_by)
        return super().transform_module(mod, ctx)

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        configuration = current_qconfig()
        values: dict[Var, RelayExpr] = {}
        for call in simulations(func):
            attrs: Any = call.attrs
            levels = float(2 ** (configuration.get_nbit_by_kind(attrs.kind) - int(attrs.sign)))
            _, scale, least, most = call.args
            assert isinstance(scale, Var) and isinstance(least, Var) and isinstance(most, Var)
            values[scale] = const(np.float32(self._threshold(call) / levels))
            values[least] = const(np.float32(1 - levels))
            values[most] = const(np.float32(levels - 1))
        params = [one for one in func.params if one not in values]
        body = bind(func.body, values)
        assert isinstance(body, RelayExpr)
        return func.replace(params=tuple(params), body=body)

    def _threshold(self, call: Call) -> float:
        configuration = current_qconfig()
        if not _is_data(call):
            assert isinstance(call.args[0], Constant)
            largest = float(np.abs(call.args[0].data.numpy()).max(initial=0.0))
            return power_of_two(largest) if configuration.weight_scale == "power2" else largest or 1.0
        if call not in self._measured:
            return configuration.global_scale
        return THRESHOLDS[configuration.calibrate_mode](self._measured[call]) or configuration.global_scale


def calibrate(dataset: Iterable[Sample] | None = None) -> Pass:
    """The pass that gives simulated quantisation its scales."""
    return QuantizeCalibrate(dataset)
