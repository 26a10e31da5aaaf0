"""Checks of statements: loops, conditions, stores, allocations, blocks."""

from __future__ import annotations

from tilewright.ir.expr import IntImm, IterVar, PrimExpr
from tilewright.tir import stmt as nodes
from tilewright.tir.verify.expression_checks import access_lanes, indices_problem, predicate_problem
from tilewright.tir.verify.registry import check


def _condition_problem(condition: PrimExpr, what: str) -> str | None:
    """A condition of control is one bool."""
    if not condition.dtype.is_bool or condition.dtype.lanes != 1:
        return f"the condition of {what} has type {condition.dtype}, it must be bool"
    return None


def _is_scalar_integer(value: PrimExpr) -> bool:
    return value.dtype.is_integral and value.dtype.lanes == 1


@check("for")
def loop_runs_over_integers(node: nodes.For) -> str | None:
    """Variable, start and extent are scalars of one integer type."""
    variable = node.loop_var
    if not _is_scalar_integer(variable):
        return f"loop variable {variable.name} has type {variable.dtype}, it must be a scalar integer"
    if node.min.dtype is not variable.dtype or node.extent.dtype is not variable.dtype:
        return f"loop {variable.name} of {variable.dtype} runs from {node.min.dtype} for {node.extent.dtype}"
    return None


@check("for")
def thread_loops_name_their_thread(node: nodes.For) -> str | None:
    """A loop is bound to a thread if and only if its kind says so."""
    if (node.kind == nodes.ForKind.THREAD_BINDING) != (node.thread_binding is not None):
        bound = "has no thread" if node.thread_binding is None else "has a thread"
        return f"loop {node.loop_var.name} of kind {nodes.ForKind(node.kind).name} {bound}"
    return None


@check("while")
def while_condition_is_bool(node: nodes.While) -> str | None:
    """A while loop asks one bool."""
    return _condition_problem(node.condition, "while")


@check("if_then_else")
def if_condition_is_bool(node: nodes.IfThenElse) -> str | None:
    """A condition is one bool."""
    return _condition_problem(node.condition, "if")


@check("assert_stmt")
def assertion_is_bool(node: nodes.AssertStmt) -> str | None:
    """An assertion is one bool."""
    return _condition_problem(node.condition, "assert")


@check("let_stmt")
def let_has_the_type_of_its_value(node: nodes.LetStmt) -> str | None:
    """The variable has its value's type."""
    if node.var.dtype is not node.value.dtype:
        return f"{node.var.name} has type {node.var.dtype}, its value {node.value.dtype}"
    return None


@check("store")
def store_has_matching_lanes(node: nodes.Store) -> str | None:
    """Memory is written through a handle at integers; as many predicates as indices."""
    if not node.buffer_var.dtype.is_handle:
        return f"{node.buffer_var.name} has type {node.buffer_var.dtype}, a store needs a handle"
    if not node.index.dtype.is_integral:
        return f"the index of a store to {node.buffer_var.name} has type {node.index.dtype}"
    if node.value.dtype.lanes % node.index.dtype.lanes:
        return f"a store of {node.value.dtype} to {node.buffer_var.name} has an index of {node.index.dtype}"
    return predicate_problem(node.predicate, node.index.dtype.lanes, f"a store to {node.buffer_var.name}")


@check("buffer_store")
def buffer_store_fits_its_buffer(node: nodes.BufferStore) -> str | None:
    """As many integer indices as dimensions, and a value of the buffer's type with a lane for each index."""
    buffer, value = node.buffer, node.value
    found = indices_problem(buffer.name, len(buffer.shape), node.indices)
    if found is None and value.dtype.element is not buffer.dtype.element:
        return f"{buffer.name} holds {buffer.dtype}, a value of {value.dtype} is stored"
    if found is None and value.dtype.lanes != buffer.dtype.lanes * access_lanes(node.indices):
        return f"a value of {value.dtype} is stored to {access_lanes(node.indices)} elements of {buffer.name}"
    return found


@check("producer_store")
def producer_store_fits_its_tensor(node: nodes.ProducerStore) -> str | None:
    """As many integer indices as dimensions."""
    return indices_problem(node.producer.name_hint, len(node.producer.shape), node.indices)


@check("buffer_realize")
def realized_box_fits_its_buffer(node: nodes.BufferRealize) -> str | None:
    """One range of integers for each dimension, and a bool condition."""
    if len(node.bounds) != len(node.buffer.shape):
        return f"{node.buffer.name} has {len(node.buffer.shape)} dimensions and {len(node.bounds)} ranges"
    for bounds in node.bounds:
        if not _is_scalar_integer(bounds.min) or not _is_scalar_integer(bounds.extent):
            return f"a range of {node.buffer.name} has types {bounds.min.dtype} and {bounds.extent.dtype}"
    return _condition_problem(node.condition, f"realize of {node.buffer.name}")


@check("allocate")
def allocation_has_an_integer_size(node: nodes.Allocate) -> str | None:
    """Extents are integers, none a negative constant; the variable is a handle."""
    name = node.buffer_var.name
    if not node.buffer_var.dtype.is_handle:
        return f"allocation {name} defines a variable of {node.buffer_var.dtype}, it must be a handle"
    for extent in node.extents:
        if not _is_scalar_integer(extent):
            return f"allocation {name} has an extent of {extent.dtype}"
        if isinstance(extent, IntImm) and extent.value < 0:
            return f"allocation {name} has the extent {extent.value}"
    return _condition_problem(node.condition, f"allocation {name}")


@check("attr_stmt")
def thread_extent_names_a_thread(node: nodes.AttrStmt) -> str | None:
    """thread_extent and virtual_thread give an axis an integer extent."""
    if node.attr_key not in ("thread_extent", "virtual_thread"):
        return None
    if not isinstance(node.node, IterVar):
        return f"{node.attr_key} is about a {type(node.node).__name__}, it must be an axis"
    if not _is_scalar_integer(node.value):
        return f"{node.attr_key} of {node.node.var.name} has type {node.value.dtype}"
    return None


@check("block_realize")
def block_has_a_value_for_each_axis(node: nodes.BlockRealize) -> str | None:
    """As many integer values as axes, of the axes' types, and a bool predicate."""
    axes = node.block.iter_vars
    if len(axes) != len(node.iter_values):
        return f"block {node.block.name_hint} has {len(axes)} axes and {len(node.iter_values)} values"
    for axis, value in zip(axes, node.iter_values, strict=True):
        if axis.var.dtype is not value.dtype:
            return f"axis {axis.var.name} of {axis.var.dtype} has a value of {value.dtype}"
    return _condition_problem(node.predicate, f"block {node.block.name_hint}")


@check("block")
def block_axes_have_ranges(node: nodes.Block) -> str | None:
    """Each axis says what it runs over."""
    for axis in node.iter_vars:
        if axis.dom is None:
            return f"axis {axis.var.name} of block {node.name_hint} has no range"
    return None


@check("block")
def block_regions_fit_their_buffers(node: nodes.Block) -> str | None:
    """Regions have one range for each dimension of their buffer."""
    for region in (*node.reads, *node.writes, *[match.source for match in node.match_buffers]):
        if len(region.region) != len(region.buffer.shape):
            return (
                f"block {node.name_hint} names a region of {len(region.region)} ranges "
                f"of {region.buffer.name}, which has {len(region.buffer.shape)} dimensions"
            )
    return None
