"""Finding the first operator at which the compiled model and the reference differ.

The reference executor records the value of every operator, and how large its rounding error may be. Parts of the model,
each ending in one operator, are compiled and compared with those values; bisection chooses the next part. Operators can
hide errors of those before them (a maximum, a comparison), so from the operator that bisection finds, the search
continues upwards as long as one of its arguments is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.executors import (
    FunctionRunnable,
    GraphRunnable,
    MachineRunnable,
    Runnable,
    Values,
)
from tilewright.driver.tvmc.export import Compiled, CompiledProgram
from tilewright.driver.tvmc.measure import Deviation, deviation
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.rounding import (
    SAMPLES,
    ExactInterpreter,
    PerturbedInterpreter,
    allowed_error,
    narrowed,
    widened,
)
from tilewright.driver.tvmc.tensors import graph_tensors
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.analysis import free_vars
from tilewright.relay.backend.aot import AOTModule
from tilewright.relay.backend.executor_factory import AOTExecutorFactoryModule
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.target import Target


@dataclass(frozen=True)
class Difference:
    """An operator whose result is wrong while its arguments are right: which, where in the model, and by how much."""

    operator: str
    place: str
    shape: list[int]
    absolute: float
    relative: float


class _Recorder:
    """Keeps what every operator gave."""

    def __init__(self) -> None:
        self.values: dict[Call, np.ndarray[Any, Any]] = {}

    def keep(self, node: Call, value: Any) -> Any:
        """Note a value, of an operator in a loop the first one."""
        if isinstance(node.op, Op) and isinstance(value, np.ndarray):
            self.values.setdefault(node, value)
        return value


class _Exact(ExactInterpreter, _Recorder):
    def __init__(self, module: IRModule) -> None:
        ExactInterpreter.__init__(self, module)
        _Recorder.__init__(self)

    def visit_call(self, node: Call) -> Any:
        return self.keep(node, super().visit_call(node))


class _Perturbed(PerturbedInterpreter, _Recorder):
    def __init__(self, module: IRModule, seed: int) -> None:
        PerturbedInterpreter.__init__(self, module, seed)
        _Recorder.__init__(self)

    def visit_call(self, node: Call) -> Any:
        return self.keep(node, super().visit_call(node))


def runnable_of(compiled: Compiled) -> Runnable:
    """A compiled model in this process, without writing it to a file."""
    if isinstance(compiled, CompiledProgram):
        return MachineRunnable(compiled.executable, compiled.target)
    if isinstance(compiled, AOTExecutorFactoryModule):
        model: AOTModule = compiled.lib
        inputs, outputs = graph_tensors(model.graph_json, list(compiled.params))
        return FunctionRunnable(model.lib[model.name], inputs, outputs, model.memory.workspace)
    return GraphRunnable(compiled.get_graph_json(), compiled.lib, compiled.params)


class _Search:
    """The operators of one model in the order in which the reference ran them, and the deviation of each once known."""

    def __init__(self, model: TVMCModel, settings: Settings, values: Values, tolerance: float | None) -> None:
        bound = bind_params_by_name(model.mod["main"], model.params)
        self.module = infer_module(with_main(model.mod, bound))
        self.main: Function = self.module["main"]
        # C source does not run in this process; its loops do.
        runs_here = settings.target.kind.name == "llvm"
        self.settings = Settings(
            settings.target if runs_here else Target("llvm"),
            settings.executor if runs_here else "graph",
            settings.opt_level,
            settings.disabled_pass,
            settings.config,
            settings.desired_layout,
        )
        self.inputs = values
        self.tolerance = tolerance
        arguments = [widened(values[parameter.name_hint]) for parameter in self.main.params]
        exact = _Exact(self.module)
        exact.run(self.main, arguments)
        samples = [_Perturbed(self.module, seed) for seed in range(SAMPLES)]
        for sample in samples:
            sample.run(self.main, arguments)
        parameters = set(self.main.params)
        self.values: dict[Call, np.ndarray[Any, Any]] = {}
        self.allowed: dict[Call, float] = {}
        for call, value in exact.values.items():
            if all(variable in parameters for variable in free_vars(call)):
                others = [one.values[call] for one in samples if call in one.values]
                self.allowed[call] = allowed_error(value, others, call.checked_type.dtype)
                self.values[call] = narrowed(value, call.checked_type)
        self.operators = list(self.values)
        self._known: dict[Call, Deviation] = {}

    def at(self, call: Call) -> Deviation:
        """How far the compiled piece that ends here is from the reference."""
        if call not in self._known:
            needed = [parameter for parameter in self.main.params if parameter in set(free_vars(call))]
            piece = infer_module(with_main(self.module, Function(needed, call)))
            runnable = runnable_of(self.settings.compile(piece, {}))
            inputs: Mapping[str, Any] = {one.name_hint: self.inputs[one.name_hint] for one in needed}
            runnable.set_inputs(inputs)
            self._known[call] = deviation(
                runnable.run()[0], self.values[call], self.allowed[call], self.tolerance
            )
        return self._known[call]

    def wrong_argument(self, call: Call) -> Call | None:
        """An argument that is wrong already: what a call reads, through tuples and what gives them."""
        pending: list[RelayExpr] = list(call.args)
        while pending:
            expr = pending.pop()
            if isinstance(expr, Call) and expr in self.values:
                if not self.at(expr).agrees:
                    return expr
            elif isinstance(expr, Call):
                pending += expr.args
            elif isinstance(expr, Tuple):
                pending += expr.fields
            elif isinstance(expr, TupleGetItem):
                pending.append(expr.tuple_value)
        return None


def first_difference(
    model: TVMCModel, settings: Settings, values: Values, tolerance: float | None = None
) -> Difference | None:
    """The first operator that is wrong on these inputs; None if none is."""
    search = _Search(model, settings, values, tolerance)
    low, high = 0, len(search.operators) - 1
    while low < high:
        middle = (low + high) // 2
        if search.at(search.operators[middle]).agrees:
            low = middle + 1
        else:
            high = middle
    if high < 0 or search.at(search.operators[high]).agrees:
        return None
    found = search.operators[high]
    while (earlier := search.wrong_argument(found)) is not None:
        found = earlier
    made = search.at(found)
    assert isinstance(found.op, Op)
    place = found.span.source_name.name if found.span is not None else ""
    shape = [int(size) for size in search.values[found].shape]
    return Difference(found.op.name, place, shape, made.absolute, made.relative)
