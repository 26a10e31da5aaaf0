"""A part of a model as a row of oneDNN's primitives, with their memory.

Tensors inside a part stay in the layout that the primitives chose; reorders stand where two disagree and where a
tensor leaves. Weights are reordered once, when the program is made. Intermediate tensors share blocks of memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.runtime.external.onednn.library import (
    ANY_TAG,
    FLOAT32,
    PLAIN_TAGS,
    QUERY_ARGUMENT,
    RESULT,
    SOURCE,
    OneDNN,
)

Dims = Sequence[int]


class Argument(ctypes.Structure):
    """An argument of a primitive: which one, and its memory."""

    _fields_ = [("which", ctypes.c_int), ("memory", c_void_p)]


@dataclass(eq=False)
class Tensor:
    """A tensor in some layout."""

    dims: tuple[int, ...]
    layout: c_void_p
    memory: c_void_p
    block: int | None = None
    """Which shared block of memory it is in, if it is in one."""
    is_constant: bool = False


def as_dims(values: Dims) -> Any:
    """A row of extents for C."""
    return (c_int64 * 12)(*values)


class Program:
    """Primitives in order; ``run`` executes them."""

    def __init__(self, dnnl: OneDNN) -> None:
        self.dnnl = dnnl
        self.stream = dnnl.make("stream_create", dnnl.engine, 1)
        self.steps: list[tuple[c_void_p, int, Any]] = []
        self._owned: list[tuple[str, c_void_p]] = []
        self._blocks: list[Any] = []
        self._free: list[int] = []
        self._kept: list[Any] = []
        self._temporary: list[Tensor] = []

    # ---- layouts and memory ----

    def own(self, kind: str, handle: c_void_p) -> c_void_p:
        """Keep an object until the program ends."""
        self._owned.append((kind, handle))
        return handle

    def plain(self, dims: Dims) -> c_void_p:
        """Row-major order."""
        tag = PLAIN_TAGS[len(dims)]
        return self._described("memory_desc_create_with_tag", dims, tag)

    def any(self, dims: Dims) -> c_void_p:
        """The layout that a primitive likes best."""
        return self._described("memory_desc_create_with_tag", dims, ANY_TAG)

    def strided(self, dims: Dims, strides: Dims) -> c_void_p:
        """A layout by its strides, in elements."""
        return self._described("memory_desc_create_with_strides", dims, as_dims(strides))

    def _described(self, how: str, dims: Dims, layout: Any) -> c_void_p:
        return self.own("memory_desc", self.dnnl.make(how, len(dims), as_dims(dims), FLOAT32, layout))

    def given(self, dims: Dims, layout: c_void_p, address: int = 0) -> Tensor:
        """A tensor in memory of the caller's, at an address that may be said later."""
        memory = self.dnnl.make("memory_create", layout, self.dnnl.engine, c_void_p(address))
        return Tensor(tuple(dims), layout, self.own("memory", memory))

    def constant(self, values: np.ndarray[Any, Any], layout: c_void_p | None = None) -> Tensor:
        """A tensor that never changes."""
        compact = np.ascontiguousarray(values)
        self._kept.append(compact)
        dims = compact.shape or (1,)
        made = self.given(dims, layout if layout is not None else self.plain(dims), compact.ctypes.data)
        made.is_constant = True
        return made

    def allocated(self, dims: Dims, layout: c_void_p, is_constant: bool = False) -> Tensor:
        """A tensor in memory of the program's own, in a block that is free."""
        size = self.dnnl.byte_size(layout)
        fitting = [] if is_constant else [one for one in self._free if self._blocks[one].nbytes >= size + 64]
        if fitting:
            block = min(fitting, key=lambda one: self._blocks[one].nbytes)
            self._free.remove(block)
        else:
            block = len(self._blocks)
            self._blocks.append(np.empty(size + 64, np.uint8))
        address = -(-self._blocks[block].ctypes.data // 64) * 64
        made = self.given(dims, layout, address)
        made.block, made.is_constant = None if is_constant else block, is_constant
        return made

    def release(self, tensor: Tensor) -> None:
        """The memory of a tensor that nobody reads any more may be used again."""
        if tensor.block is not None:
            self._free.append(tensor.block)
            tensor.block = None

    # ---- steps ----

    def add(self, description: c_void_p, arguments: dict[int, Tensor], at_once: bool = False) -> None:
        """A primitive with its arguments, for each run, or executed now."""
        self.own("primitive_desc", description)
        primitive = self.own("primitive", self.dnnl.make("primitive_create", description))
        row = (Argument * len(arguments))(
            *[Argument(which, tensor.memory) for which, tensor in arguments.items()]
        )
        if at_once:
            self.dnnl.call("primitive_execute", primitive, self.stream, len(row), row)
            self.dnnl.call("stream_wait", self.stream)
        else:
            self.steps.append((primitive, len(row), row))

    def in_layout(self, tensor: Tensor, layout: c_void_p) -> Tensor:
        """The tensor in another layout; a constant is reordered now."""
        if self.dnnl.same_layout(tensor.layout, layout):
            return tensor
        made = self.allocated(tensor.dims, layout, tensor.is_constant)
        self.reorder(tensor, made, tensor.is_constant)
        self._temporary.append(made)
        return made

    def end_node(self, result: Tensor) -> None:
        """Free what was reordered for one node, unless its result is a view of that."""
        for tensor in self._temporary:
            if tensor.memory.value == result.memory.value:
                result.block = tensor.block
            else:
                self.release(tensor)
        self._temporary.clear()

    def reorder(self, source: Tensor, result: Tensor, at_once: bool = False) -> None:
        """Copy a tensor from one layout to another."""
        engine = self.dnnl.engine
        made = self.dnnl.make(
            "reorder_primitive_desc_create", source.layout, engine, result.layout, engine, None
        )
        self.add(made, {SOURCE: source, RESULT: result}, at_once)

    def chosen(self, description: c_void_p, what: int, index: int = 0) -> c_void_p:
        """The layout that a primitive chose for an argument."""
        return self.own("memory_desc", self.dnnl.query(description, what, index))

    def argument_layout(self, description: c_void_p, which: int) -> c_void_p:
        """The layout of any argument by its number."""
        return self.chosen(description, QUERY_ARGUMENT, which)

    def run(self) -> None:
        """Execute everything, and wait."""
        execute, stream = self.dnnl.execute, self.stream
        for primitive, count, row in self.steps:
            if execute(primitive, stream, count, row):
                self.dnnl.call("primitive_execute", primitive, stream, count, row)
        self.dnnl.call("stream_wait", stream)

    def __del__(self) -> None:
        for kind, handle in reversed(getattr(self, "_owned", [])):
            self.dnnl.destroy(kind, handle)
