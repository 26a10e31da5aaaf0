"""Models in 16-bit floats where that pays, with the inputs and outputs that they had."""

from __future__ import annotations

from typing import Any

from tilewright.driver.tvmc.model import TVMCModel
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.expr import Tuple, TupleGetItem
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call
from tilewright.relay.target import rewrites_for
from tilewright.relay.target.cpu.half_precision import MOST_ROWS, WidenHalf
from tilewright.relay.transform import ToMixedPrecision
from tilewright.target import Target

_QUIET = 2


def note_on_precision(dtype: str | None, target: Target, opt_level: int) -> str | None:
    """What a user should know who asked for 16-bit floats and gets others."""
    widens = WidenHalf in rewrites_for(target).early_passes and opt_level >= WidenHalf.opt_level
    if dtype != "float16" or not widens:
        return None
    return (
        f"On CPUs float16 computes in float32; only weights of products of at most {MOST_ROWS} rows stay in 16 bits. "
        "bfloat16 is computed as such."
    )


def in_mixed_precision(model: TVMCModel, dtype: str) -> TVMCModel:
    """The model, heavy operators in ``dtype``; its outputs have the types that they had."""
    bound = infer_module(with_main(model.mod, bind_params_by_name(model.mod["main"], model.params)))
    wanted = bound["main"].body.checked_type
    made = infer_module(ToMixedPrecision(dtype, _QUIET)(bound))
    main: Any = made["main"]
    body = _as_type(main.body, wanted)
    if body is not main.body:
        main = main.replace(body=body, ret_type=None)
    return TVMCModel(infer_module(with_main(made, main)), {})


def _as_type(expr: RelayExpr, wanted: Type) -> RelayExpr:
    found = expr.checked_type
    if isinstance(wanted, TupleType) and isinstance(found, TupleType):
        parts = expr.fields if isinstance(expr, Tuple) else None
        fields = []
        for place, one in enumerate(wanted.fields):
            part = TupleGetItem(expr, place) if parts is None else parts[place]
            if parts is None:
                object.__setattr__(part, "_checked_type_", found.fields[place])
            fields.append(_as_type(part, one))
        return Tuple(fields)
    if isinstance(wanted, TensorType) and isinstance(found, TensorType) and wanted.dtype != found.dtype:
        return call("cast", expr, dtype=str(wanted.dtype))
    return expr
