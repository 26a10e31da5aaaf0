"""What kernels of blocks of threads share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Var
from tilewright.target.target import Target
from tilewright.te.operation import thread_axis
from tilewright.tir.ir_builder import IRBuilder


def most_threads(wanted: int) -> int:
    """A power of two of threads: at most ``wanted``, and at most the current target's block size."""
    target = Target.current()
    limit = None if target is None else target.attrs.get("max_num_threads")
    return 1 << (max(min(wanted, int(limit or 256)), 1).bit_length() - 1)


@contextmanager
def kernel(builder: IRBuilder, blocks: Any, threads: int) -> Iterator[tuple[Var, Var]]:
    """A kernel: what is written inside runs in every thread. Yields the numbers of the block and of the thread."""
    with builder.new_scope():
        block, thread = thread_axis("blockIdx.x"), thread_axis("threadIdx.x")
        builder.scope_attr(block, "thread_extent", operators.cast("int32", blocks))
        builder.scope_attr(thread, "thread_extent", threads)
        yield block.var, thread.var


@contextmanager
def each(builder: IRBuilder, count: PrimExpr, threads: int) -> Iterator[PrimExpr]:
    """A kernel with a thread for each of ``count`` items; yields the number of the item."""
    blocks = operators.floordiv(operators.add(count, threads - 1), threads)
    with kernel(builder, blocks, threads) as (block, thread):
        number = builder.let("number", operators.add(operators.multiply(block, threads), thread))
        with builder.if_scope(operators.less(number, count)):
            yield number


def barrier(builder: IRBuilder) -> None:
    """A barrier for the threads of the block."""
    builder.emit(operators.call("tvm_storage_sync", "int32", ["shared"]))
