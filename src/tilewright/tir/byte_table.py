"""Tables of bytes: any function of an 8-bit integer, as the 256 results of it."""

from __future__ import annotations

from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, StringImm
from tilewright.support.errors import ExpressionError

ENTRIES: Final = 256


def lookup_byte(index: PrimExpr, table: str) -> PrimExpr:
    """The entry of a table for a uint8 number; the table is 256 bytes, in hexadecimal."""
    if str(index.dtype) != "uint8":
        raise ExpressionError(f"the index into a table of bytes is uint8, not {index.dtype}")
    if len(bytes.fromhex(table)) != ENTRIES:
        raise ExpressionError(f"a table of bytes has {ENTRIES} entries, not {len(table) // 2}")
    return operators.call("lookup_byte", "uint8", [index, StringImm(table)])
