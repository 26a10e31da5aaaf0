"""Where a model in a lower precision leaves its original: the error at each layer, and the first where it jumps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.relay.analysis.work import span_name
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.expr import Call
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.dialect import without_rounding
from tilewright.relay.quantize.layers import is_quantised
from tilewright.relay.quantize.observe import Observed, Sample
from tilewright.relay.quantize.rules import operator
from tilewright.relay.quantize.sensitivity import Error, first_jump

LAYERS = (
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv2d_transpose",
    "nn.dense",
    "nn.matmul",
    "nn.batch_matmul",
)


@dataclass(frozen=True)
class LayerError:
    """The relative error that has built up at a layer."""

    layer: str
    operator: str
    relative: float

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return dict(vars(self))


@dataclass(frozen=True)
class ErrorByLayer:
    """The errors in the order in which layers run, and the first that jumps."""

    layers: list[LayerError]
    jump: LayerError | None

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "layers": [one.as_json() for one in self.layers],
            "first_jump": None if self.jump is None else self.jump.as_json(),
        }

    def sentence(self) -> str:
        """What is worth saying about it."""
        if not self.layers:
            return ""
        worst = max(self.layers, key=lambda one: one.relative)
        if self.jump is None:
            return (
                f"Beside the float32 model, the error grows slowly: it is at most {worst.relative:.1%}, "
                f"at {worst.layer} ({worst.operator})."
            )
        return (
            f"Beside the float32 model, the error jumps first at {self.jump.layer} ({self.jump.operator}): "
            f"{self.jump.relative:.1%} of the layer's result. The largest is {worst.relative:.1%}, at {worst.layer}."
        )


def layers_by_name(mod: IRModule) -> dict[str, Call]:
    """The layers of a program by the model's names of them; those without one, or with a name of several, by number."""
    found: dict[str, Call] = {}
    for expr in post_order(mod["main"].body):
        if isinstance(expr, Call) and operator(expr) in LAYERS:
            name = span_name(expr) or operator(expr)
            number, key = 1, name
            while key in found:
                number += 1
                key = f"{name} ({number})"
            found[key] = expr
    return found


def error_by_layer(original: IRModule, converted: IRModule, samples: Iterable[Sample]) -> ErrorByLayer:
    """Compare the layers of two forms of one model that have the same names."""
    before, after = (layers_by_name(infer_module(one)) for one in (original, converted))
    names = [name for name in before if name in after and _shape(before[name]) == _shape(after[name])]
    if not names:
        return ErrorByLayer([], None)
    programs = [
        Observed(one["main"].params, [_as_float(layers[name]) for name in names])
        for one, layers in ((infer_module(original), before), (infer_module(converted), after))
    ]
    errors = [Error() for _ in names]
    for sample in samples:
        for error, exact, made in zip(errors, *(program.run(sample) for program in programs), strict=True):
            error.add(exact, made)
    found = [
        LayerError(name, operator(before[name]).removeprefix("nn."), error.relative)
        for name, error in zip(names, errors, strict=True)
    ]
    place = first_jump([one.relative for one in found])
    return ErrorByLayer(found, None if place is None else found[place])


def error_of_rounding(
    mod: IRModule, params: Mapping[str, Any], samples: Iterable[Sample]
) -> ErrorByLayer | None:
    """What rounding its tensors does to a model that is quantised with explicit conversions; None for others."""
    bound = infer_module(with_main(mod, bind_params_by_name(mod["main"], params)))
    return error_by_layer(without_rounding(bound), bound, samples) if is_quantised(bound) else None


def _shape(expr: Call) -> str:
    kind: Any = expr.checked_type
    return str(getattr(kind, "shape", ""))


def _as_float(expr: Call) -> RelayExpr:
    kind: Any = expr.checked_type
    return expr if str(kind.dtype) == "float32" else call("cast", expr, dtype="float32")
