"""Temporarily replacing an attribute of an operator."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tilewright.ir.op import Op


class TempOpAttr:
    """Within a ``with`` block, attribute ``attr_key`` of the operator is ``attr_value``; what it was before comes back
    at the end."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self.op = Op.get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value

    def __enter__(self) -> TempOpAttr:
        self.older_attr = self.op.get_attr(self.attr_key)
        self.op.reset_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.op.reset_attr(self.attr_key)
        if self.older_attr is not None:
            self.op.set_attr(self.attr_key, self.older_attr)
