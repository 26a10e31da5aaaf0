"""``relay.op.annotation.simulated_quantize``: floats that have been quantised and dequantised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import dims, tensor

NAME = "relay.op.annotation.simulated_quantize"


@attributes
class SimulatedQuantizeAttrs(OpAttrs):
    """What the tensor is (``QAnnotateKind``), whether its integers are signed, and what becomes of halves."""

    kind: int
    sign: bool = True
    rounding: str = "round"


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    for kind, what in zip(types[1:], ("the scale", "the lower limit", "the upper limit"), strict=True):
        given = tensor(kind, what)
        if given is not None and dims(given) != ():
            raise RelationError(f"{what} is a scalar, not {given}")
    return data


def _compute(attrs: Any, inputs: Any, out_type: Any) -> Any:
    data, scale, least, most = inputs
    scaled = topi.round(topi.divide(data, scale))
    return [topi.multiply(topi.minimum(topi.maximum(scaled, least), most), scale)]


def _reference(attrs: Any, data: Any, scale: Any, least: Any, most: Any) -> Any:
    scaled = data / scale
    rounded = np.sign(scaled) * np.floor(np.abs(scaled) + data.dtype.type(0.5))
    return (np.clip(rounded, least, most) * scale).astype(data.dtype)


_SIMULATED = define(
    NAME,
    arguments=("data", "dom_scale", "clip_min", "clip_max"),
    attrs=SimulatedQuantizeAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    kind=OpPattern.ELEMWISE,
    level=11,
    description="clip(round(data / dom_scale), clip_min, clip_max) * dom_scale.",
)


def simulated_quantize(
    data: RelayExpr, scale: RelayExpr, least: RelayExpr, most: RelayExpr, kind: int, sign: bool = True
) -> Call:
    """``data`` as its integers stand for it: ``clip(round(data / scale), least, most) * scale``."""
    return Call(_SIMULATED, (data, scale, least, most), SimulatedQuantizeAttrs(kind=int(kind), sign=sign))
