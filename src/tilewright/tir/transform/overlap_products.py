"""Overlaps products on the matrix unit with what is done with the results of the ones before.

The unit multiplies while vector instructions run, but a core looks only a few hundred instructions ahead: a tile's
product and its epilogue, which waits for it, would take turns. So the product of the next tile is put before the
epilogue of this one, into the other half of a double buffer (``double_buffer_scope``, see InjectDoubleBuffer).

That needs loops whose iterations are a tile each. A parallel loop of tiles is split into a parallel loop of chunks and
a loop over the tiles of a chunk; enough chunks are left for the cores of any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, Load, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_SCOPE: Final = "double_buffer_scope"
_PRODUCT: Final = "tir.matrix_multiply_add"
FEWEST_CHUNKS: Final = 32
"""Chunks that a parallel loop is split into at least: two for each of sixteen cores."""
LONGEST_CHUNK: Final = 16
"""Tiles of a chunk, after which there is little left to gain."""


class _Overlap(StmtMutator):
    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        overlapped = _overlapped(made.body)
        if overlapped is None or not isinstance(made.extent, IntImm):
            return made
        if made.kind == ForKind.SERIAL and made.extent.value > 1:
            return made.replace(body=overlapped)
        return _in_chunks(made, overlapped) if made.kind == ForKind.PARALLEL else made


def _overlapped(body: Stmt) -> Stmt | None:
    """A tile with its product marked to be computed an iteration ahead; None if it is something else."""
    if not isinstance(body, Allocate) or not isinstance(body.body, SeqStmt):
        return None
    product, *epilogue = body.body.seq
    is_filled = isinstance(product, IfThenElse) and _sum_of(product.then_case) is body.buffer_var
    if not is_filled or any(_sum_of(part) is not None for part in epilogue):
        return None
    marked = AttrStmt(body.buffer_var, _SCOPE, 1, product)
    return body.replace(body=SeqStmt([marked, *epilogue]))


def _sum_of(stmt: Stmt) -> Var | None:
    """The buffer that a product of the unit is written to."""
    for part in post_order(stmt):
        if isinstance(part, Call) and part.op.name == _PRODUCT:
            address = part.args[1]
            assert isinstance(address, Call) and isinstance(address.args[0], Load)
            return address.args[0].buffer_var
    return None


def _in_chunks(node: For, body: Stmt) -> For:
    """A parallel loop over chunks of tiles; the loop itself where there are too few."""
    assert isinstance(node.extent, IntImm)
    count, start = node.extent.value, node.min
    sizes = [
        size for size in range(2, LONGEST_CHUNK + 1) if count % size == 0 and count // size >= FEWEST_CHUNKS
    ]
    if not sizes:
        return node
    size, dtype = max(sizes), node.loop_var.dtype
    chunk, tile = Var(f"{node.loop_var.name}.chunk", dtype), Var(f"{node.loop_var.name}.tile", dtype)
    place = operators.add(start, operators.add(operators.multiply(chunk, size), tile))
    inner = For(
        tile,
        operators.const(0, dtype),
        operators.const(size, dtype),
        ForKind.SERIAL,
        substitute(body, {node.loop_var: place}),
    )
    return node.replace(
        loop_var=chunk,
        min=operators.const(0, dtype),
        extent=operators.const(count // size, dtype),
        body=inner,
    )


@dataclass(frozen=True)
class OverlapProducts(PrimFuncPass):
    """Overlaps products on the matrix unit with what is done with the results of the ones before."""

    name = "tir.OverlapProducts"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Overlap().visit(function.body))
