"""Converting weights to sparse matrices, for the passes that introduce them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Var
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, Rule, rewritten, tensor_of, uses_of
from tilewright.support.errors import TilewrightError


def block_sparse(matrix: Any, block_rows: int, block_columns: int) -> tuple[Any, Any, Any]:
    """The blocks of a matrix that are not all zeros, their columns, and where each row of blocks starts."""
    rows, columns = matrix.shape
    if rows % block_rows or columns % block_columns:
        raise TilewrightError(
            f"a matrix of {rows} x {columns} does not fall into blocks of {block_rows} x {block_columns}"
        )
    blocks = matrix.reshape(rows // block_rows, block_rows, columns // block_columns, block_columns)
    blocks = blocks.transpose(0, 2, 1, 3)
    filled = (blocks != 0).any(axis=(2, 3))
    starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))]).astype("int32")
    return np.ascontiguousarray(blocks[filled]), np.nonzero(filled)[1].astype("int32"), starts


@dataclass
class SparseVariables:
    """Variables for the parts of sparse weights, in place of variables for whole ones.

    The shape of each weight is given as the dimensions of its values, then the number of columns that are stored, then
    that of row starts.
    """

    shapes: Mapping[str, Sequence[int]]
    made: dict[Var, tuple[Var, Var, Var]] = field(default_factory=dict)

    @staticmethod
    def of(names: Sequence[str], shapes: Sequence[Sequence[int]]) -> SparseVariables:
        """From names, and shapes in the same order."""
        if len(names) != len(shapes):
            raise TilewrightError(f"{len(names)} weights are named, and {len(shapes)} shapes are given")
        return SparseVariables({str(name): tuple(shape) for name, shape in zip(names, shapes, strict=True)})

    def parts(self, weight: Any) -> tuple[Var, Var, Var] | None:
        """The values, columns and row starts of a weight; None if it is not one that becomes sparse."""
        if not isinstance(weight, Var) or weight.name_hint not in self.shapes:
            return None
        found = self.made.get(weight)
        if found is None:
            name = weight.name_hint
            *values, columns, starts = self.shapes[name]
            found = self.made[weight] = (
                Var(f"{name}.data", TensorType(tuple(values), tensor_of(weight).dtype)),
                Var(f"{name}.indices", TensorType((columns,), "int32")),
                Var(f"{name}.indptr", TensorType((starts,), "int32")),
            )
        return found

    def rewrite(self, func: Function, rules: Mapping[str, Rule]) -> Function:
        """The function after the rules, which request converted parts, with its current variables as parameters."""
        done = rewritten(OperatorRewriter(rules), func)
        if done is func:
            return func
        used = uses_of(done.body)
        params = [parameter for parameter in func.params if parameter not in self.made or parameter in used]
        return done.replace(params=(*params, *(part for parts in self.made.values() for part in parts)))
