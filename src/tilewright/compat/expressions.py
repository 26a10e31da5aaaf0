"""Names of TVM's ``tir.expr`` beside the classes of expressions."""

from __future__ import annotations

from enum import IntEnum

from tilewright.compat.ffi import ObjectGeneric
from tilewright.ir.expr import IntImm


def div_ambiguity_error() -> RuntimeError:
    """The error of ``a / b`` for integers, which may be rounded in two ways."""
    return RuntimeError(
        "TVM supports multiple types of integer divisions, please call div, indexdiv/indexmod, floordiv/floormod "
        "or truncdiv/truncmod directly to avoid ambiguity in the code."
    )


class IntImmEnum(ObjectGeneric):
    """A member of an enumeration that becomes an integer where a program takes it."""

    def __init__(self, value: int | IntEnum) -> None:
        self.value = int(value)

    def asobject(self) -> IntImm:
        """The integer."""
        return IntImm("int32", self.value)
