"""A function of 8-bit integers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import te
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.shapes import tensor
from tilewright.tir.byte_table import ENTRIES, lookup_byte
from tilewright.topi.tag import ELEMWISE


@attributes
class ByteLookupAttrs(OpAttrs):
    """The results for 0 to 255, in hexadecimal."""

    table: str = ""


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if str(data.dtype) != "uint8":
        raise RelationError(f"the data are uint8, not {data.dtype}")
    if len(attrs.table) != 2 * ENTRIES:
        raise RelationError(f"the table has {ENTRIES} entries of two digits, not {len(attrs.table)} digits")
    return TensorType(data.shape, "uint8")


def _compute(attrs: Any, inputs: Any, out_type: Any) -> list[te.Tensor]:
    data = inputs[0]
    return [
        te.compute(
            data.shape,
            lambda *place: lookup_byte(data(*place), attrs.table),
            name="byte_lookup",
            tag=ELEMWISE,
        )
    ]


define(
    "nn.contrib_byte_lookup",
    arguments=("data",),
    attrs=ByteLookupAttrs,
    relation=_relation,
    compute=_compute,
    reference=lambda attrs, data: np.frombuffer(bytes.fromhex(attrs.table), np.uint8)[data],
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    level=10,
    description="The entry of a table of 256 bytes for each uint8 element.",
)
