"""Validating a compiled model: its outputs are compared with those of the reference executor and of ONNX Runtime.

The reference executor runs the imported model with the NumPy reference of every operator. If they differ, the first
operator that differs is found by compiling ever smaller parts of the model (``first_difference``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.executors import Runnable, Values
from tilewright.driver.tvmc.first_difference import Difference, first_difference
from tilewright.driver.tvmc.measure import Deviation, deviation
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.onnxruntime_peer import is_installed, run_onnxruntime
from tilewright.driver.tvmc.runner import complete_inputs
from tilewright.driver.tvmc.tensors import module_inputs, output_name
from tilewright.relay.build_module import create_executor
from tilewright.runtime.ndarray import NDArray

REFERENCE = "reference executor"
ONNX_RUNTIME = "ONNX Runtime"


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

    @property
    def agrees(self) -> bool:
        """True if every output agrees with every peer."""
        return all(one.deviation.agrees for one in self.comparisons)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "agrees": self.agrees,
            "inputs": self.runs,
            "outputs": [one.as_json() for one in self.comparisons],
            "first_difference": None if self.first is None else asdict(self.first),
            "notes": self.notes,
        }


def reference_function(model: TVMCModel) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """The model in the reference executor: a function of its inputs by name."""
    function = create_executor("debug", model.mod, params=model.params).evaluate()
    return lambda **values: flat(function(**values))


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result, flattened."""
    if isinstance(value, NDArray):
        return [value.numpy()]
    return [part for field in value for part in flat(field)]


def validate(
    model: TVMCModel,
    runnable: Runnable,
    settings: Settings,
    given: Sequence[Values] = (),
    random_inputs: int = 2,
    tolerance: float | None = None,
    onnx_path: str | None = None,
) -> Validation:
    """Compare a compiled model with its peers, on the given inputs and on random ones.

    ``tolerance`` is the largest error, relative to the largest value of a tensor, that counts as agreement; without it,
    the element type decides. ``onnx_path`` is the model's file, for ONNX Runtime.
    """
    infos = module_inputs(model.mod, model.params)
    generator = np.random.default_rng(0)
    inputs = [complete_inputs(infos, values) for values in given]
    inputs += [complete_inputs(infos, {}, "random", generator) for _ in range(random_inputs)]
    worst: dict[tuple[str, str], Deviation] = {}
    notes: list[str] = []
    wrong: Values | None = None
    peers = _peer_outputs(onnx_path, inputs, notes)
    reference = reference_function(model)
    for number, values in enumerate(inputs):
        runnable.set_inputs(values)
        found = runnable.run()
        beside = {REFERENCE: reference(**values)}
        if peers is not None:
            beside[ONNX_RUNTIME] = peers[number]
        for peer, expected in beside.items():
            for place, (actual, wanted) in enumerate(zip(found, expected, strict=True)):
                made = deviation(actual, wanted, tolerance)
                key = (output_name(place), peer)
                worst[key] = made if key not in worst else worst[key].worse(made)
                if not made.agrees and peer == REFERENCE and wrong is None:
                    wrong = values
    comparisons = [Comparison(output, peer, one) for (output, peer), one in worst.items()]
    first = None if wrong is None else first_difference(model, settings, wrong, tolerance)
    if wrong is not None and first is None:
        notes.append(
            "compiled separately, every operator agrees with the reference: the package differs from its parts"
        )
    return Validation(comparisons, len(inputs), first, notes)


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
