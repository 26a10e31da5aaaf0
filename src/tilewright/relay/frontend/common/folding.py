"""Computing at import what does not depend on inputs or parameters: the arithmetic of shapes, mostly."""

from __future__ import annotations

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.frontend.common.shapes import check_size, tensor_bytes
from tilewright.relay.infer import type_of
from tilewright.relay.interpreter import Interpreter

FOLD_LIMIT = 1 << 20
"""Bytes: larger results are left for the compiler, which folds what pays."""


class Folder:
    """Remembers which expressions depend on more than constants."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._variable: set[RelayExpr] = set()

    def settled(self, expr: RelayExpr) -> RelayExpr:
        """The expression with its type found; a constant if it consists of small constants."""
        if isinstance(expr, (Var, Constant)):
            return expr
        kind = type_of(expr, self.module)
        if not isinstance(kind, TensorType):
            return expr
        check_size("a result", kind)
        if tensor_bytes(kind) > FOLD_LIMIT or not self._is_constant(expr):
            self._variable.add(expr)
            return expr
        value = Interpreter(self.module).run(expr)
        return Constant(np.ascontiguousarray(value).reshape(np.shape(value)))

    def _is_constant(self, expr: RelayExpr) -> bool:
        pending, seen = [expr], set()
        while pending:
            current = pending.pop()
            if current in seen or isinstance(current, Constant):
                continue
            seen.add(current)
            if current in self._variable:
                return False
            if (
                isinstance(current, Call)
                and isinstance(current.op, Op)
                and not current.op.get_attr("TOpIsStateful")
                and tensor_bytes(type_of(current, self.module)) <= FOLD_LIMIT
            ):
                pending += current.args
            elif isinstance(current, Tuple):
                pending += current.fields
            elif isinstance(current, TupleGetItem):
                pending.append(current.tuple_value)
            else:
                self._variable.add(current)
                return False
        return True
