"""Validating a compiled model: its outputs are compared with those of the reference executor and of ONNX Runtime.

The reference executor runs the imported model with the NumPy reference of every operator, in float64, and an analysis
of rounding errors says how far a right program may be from that (``rounding``). If they differ by more, the first
operator that differs is found by compiling ever smaller parts of the model (``first_difference``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.quantization.by_layer import ErrorByLayer, error_by_layer, error_of_rounding
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.executors import Runnable, Values
from tilewright.driver.tvmc.first_difference import Difference, first_difference
from tilewright.driver.tvmc.measure import Deviation, deviation
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.onnxruntime_peer import is_installed, run_onnxruntime
from tilewright.driver.tvmc.open_inputs import OpenInputs
from tilewright.driver.tvmc.rounding import (
    ELEMENT_ERROR,
    Analysis,
    ExactInterpreter,
    unit_roundoff,
    widened,
)
from tilewright.driver.tvmc.runner import complete_inputs
from tilewright.driver.tvmc.tensors import TensorInfo, module_inputs, module_outputs
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.transform import PassContext
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.build_module import create_executor
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.transform.check_indices import CheckIndices
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import TilewrightError

REFERENCE = "reference executor"
ONNX_RUNTIME = "ONNX Runtime"

REFERENCE_IS_OFF = (
    "the package agrees with ONNX Runtime, and the reference does not: the reference is wrong, which is worth "
    "a report"
)
IMPORT_IS_OFF = (
    "the package agrees with the reference, and not with ONNX Runtime: an operator is imported as something else, "
    "which is worth a report, or ONNX Runtime approximates it"
)


@dataclass(frozen=True)
class Comparison:
    """The largest difference of one output over all inputs, compared with one peer."""

    output: str
    peer: str
    deviation: Deviation

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "output": self.output,
            "peer": self.peer,
            **asdict(self.deviation),
            "agrees": self.deviation.agrees,
        }


@dataclass(frozen=True)
class Validation:
    """Every comparison, how many inputs there were, and where the model goes wrong if it does."""

    comparisons: list[Comparison]
    runs: int
    first: Difference | None
    notes: list[str]
    agrees: bool
    """True if the outputs agree with those of ONNX Runtime, or of the reference where ONNX Runtime does not run."""
    by_layer: ErrorByLayer | None = None
    """How far a model in lower precision is from the one in float32, layer by layer."""

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "agrees": self.agrees,
            "inputs": self.runs,
            "outputs": [one.as_json() for one in self.comparisons],
            "first_difference": None if self.first is None else asdict(self.first),
            "notes": self.notes,
            "error_by_layer": None if self.by_layer is None else self.by_layer.as_json(),
        }


def reference_function(model: TVMCModel) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """The model in the reference executor, in the model's own types: a function of its inputs by name."""
    function = create_executor("debug", model.mod, params=model.params).evaluate()
    return lambda **values: flat(function(**values))


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result, flattened."""
    if isinstance(value, NDArray):
        return [value.numpy()]
    return [part for field in value for part in flat(field)]


class _Reference:
    """The model in the reference executor."""

    def __init__(self, model: TVMCModel) -> None:
        bound = bind_params_by_name(model.mod["main"], model.params)
        self.module = infer_module(with_main(model.mod, bound))
        self.main: Function = self.module["main"]
        self.operators: set[str] = set()
        post_order_visit(self.main, self._look)

    def _look(self, expr: Any) -> None:
        if isinstance(expr, Op):
            self.operators.add(expr.name)

    def floor(self, dtype: Any) -> float:
        """The error that ONNX Runtime may have beside its rounding: its logistic function and others like it are exact
        relative to one, the largest value that they have, and not to small ones."""
        names = self.operators & {"sigmoid", "tanh", "erf", "exp", "nn.softmax", "nn.log_softmax"}
        return ELEMENT_ERROR * unit_roundoff(dtype) if names else 0.0

    def check_indices(self, values: Values) -> None:
        """An error that names the node where an index is out of range for these inputs: compiled code would read an
        element inside instead, and so would the reference."""
        with PassContext(config={"relay.check_indices": True}):
            checked = infer_module(CheckIndices()(self.module))
        if not structural_equal(checked["main"], self.main):
            arguments = [widened(values[one.name_hint]) for one in self.main.params]
            ExactInterpreter(checked).run(checked["main"], arguments)

    def analysis(self, values: Values) -> Analysis:
        """The exact outputs for these inputs, and the error that rounding may make."""
        return Analysis(self.module, self.main, [values[one.name_hint] for one in self.main.params])


class _Comparisons:
    """The outputs of a compiled model beside those of its peers, over several inputs."""

    def __init__(
        self, reference: _Reference, outputs: Sequence[str], tolerance: float | None, notes: list[str]
    ) -> None:
        self.reference = reference
        self.outputs = outputs
        self.tolerance = tolerance
        self.notes = notes
        self.agrees = True
        self.worst: dict[tuple[str, str], Deviation] = {}
        """By output and peer."""
        self.wrong: Values | None = None
        """The first inputs for which the package is wrong, and not the import."""

    def add(
        self,
        values: Values,
        found: Sequence[np.ndarray[Any, Any]],
        analysis: Analysis,
        of_onnx_runtime: Sequence[np.ndarray[Any, Any]] | None,
    ) -> None:
        """Compare the outputs for one input. ONNX Runtime decides where it has run, else the reference."""
        made = {REFERENCE: self._deviations(found, analysis.exact, analysis, REFERENCE)}
        if of_onnx_runtime is not None:
            made[ONNX_RUNTIME] = self._deviations(found, of_onnx_runtime, analysis, ONNX_RUNTIME)
        agreeing = {peer: all(one.agrees for one in each) for peer, each in made.items()}
        is_right = agreeing.get(ONNX_RUNTIME, agreeing[REFERENCE])
        if is_right and not agreeing[REFERENCE]:
            self.notes.append(REFERENCE_IS_OFF)
        elif not is_right:
            self.agrees = False
            if agreeing[REFERENCE]:
                self.notes.append(IMPORT_IS_OFF)
            else:
                self.wrong = self.wrong or values
        for peer, each in made.items():
            for output, one in zip(self.outputs, each, strict=True):
                before = self.worst.get((output, peer))
                self.worst[output, peer] = one if before is None else before.worse(one)

    def _deviations(
        self,
        found: Sequence[np.ndarray[Any, Any]],
        expected: Sequence[np.ndarray[Any, Any]],
        analysis: Analysis,
        peer: str,
    ) -> list[Deviation]:
        return [
            deviation(
                actual,
                wanted,
                2 * allowed + self.reference.floor(wanted.dtype) if peer == ONNX_RUNTIME else allowed,
                self.tolerance,
            )
            for actual, wanted, allowed in zip(found, expected, analysis.allowed, strict=True)
        ]


def validate(
    model: TVMCModel,
    runnable: Runnable,
    settings: Settings,
    given: Sequence[Values] = (),
    random_inputs: int = 2,
    tolerance: float | None = None,
    onnx_path: str | None = None,
    choices: OpenInputs | None = None,
    original: TVMCModel | None = None,
) -> Validation:
    """Compare a compiled model with its peers, on the given inputs and on random ones.

    ``tolerance`` is the largest error, relative to the largest value of a tensor, that counts as agreement; without it,
    an analysis of rounding errors decides (``rounding``). ``onnx_path`` is the model's file, for ONNX Runtime, which
    decides where the package and the reference differ. ``choices`` says what sizes open dimensions get. ``original`` is
    the model in float32 where the one that was compiled is in a lower precision.
    """
    infos = module_inputs(model.mod, model.params)
    chosen = choices or OpenInputs({}, {})
    generator = np.random.default_rng(0)
    reference = _Reference(model)
    inputs: list[Values] = [complete_inputs(infos, values) for values in given]
    for values in inputs:
        reference.check_indices(values)
    analyses = [reference.analysis(values) for values in inputs]
    notes: list[str] = []

    def attempt(values: Values) -> Analysis:
        found = reference.analysis(values)
        try:
            runnable.set_inputs(values)
            runnable.run()
        except TilewrightError as error:
            shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in values.items())
            refused.append(f"the package refuses inputs that the reference takes: {shapes} ({error})")
            raise
        return found

    refused: list[str] = []
    for number in range(random_inputs):
        values, analysis = chosen.tried(infos, generator, attempt, batch=number + 1)
        inputs.append(values)
        analyses.append(analysis)
    notes += [*chosen.notes(infos, inputs[len(given) :]), *refused[:1]]
    names = [one.name for one in module_outputs(model.mod)]
    peers = _peer_outputs(onnx_path, [{**values, **chosen.fixed} for values in inputs], notes)
    compared = _Comparisons(reference, names, tolerance, notes)
    for number, (values, analysis) in enumerate(zip(inputs, analyses, strict=True)):
        runnable.set_inputs(values)
        compared.add(values, runnable.run(), analysis, None if peers is None else peers[number])
    wrong = compared.wrong
    first = None if wrong is None else first_difference(model, settings, wrong, tolerance)
    if wrong is not None and first is None:
        notes.append(
            "compiled separately, every operator agrees with the reference: the package differs from its parts"
        )
    comparisons = [Comparison(output, peer, one) for (output, peer), one in compared.worst.items()]
    by_layer = _by_layer(model, original, infos, inputs)
    return Validation(comparisons, len(inputs), first, list(dict.fromkeys(notes)), compared.agrees, by_layer)


def _by_layer(
    model: TVMCModel, original: TVMCModel | None, infos: Sequence[TensorInfo], inputs: Sequence[Values]
) -> ErrorByLayer | None:
    """Where the error of a model in lower precision builds up; None for others, and where sizes are open."""
    if not all(one.is_static for one in infos):
        return None
    if original is None:
        return error_of_rounding(model.mod, model.params, inputs)
    before, after = (
        infer_module(with_main(one.mod, bind_params_by_name(one.mod["main"], one.params)))
        for one in (original, model)
    )
    return error_by_layer(before, after, inputs)


def _peer_outputs(
    onnx_path: str | None, inputs: Sequence[Values], notes: list[str]
) -> list[list[np.ndarray[Any, Any]]] | None:
    if onnx_path is None or Path(onnx_path).suffix.lower() != ".onnx":
        return None
    if not is_installed():
        notes.append("ONNX Runtime is not installed: pip install onnxruntime to compare with it too")
        return None
    outcome = run_onnxruntime(onnx_path, inputs)
    if outcome.failure:
        notes.append(f"ONNX Runtime cannot run this model: {outcome.failure}")
        return None
    return outcome.outputs
