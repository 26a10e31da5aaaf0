"""Checks of expressions: operands and results have the types that their node requires."""

from __future__ import annotations

from tilewright.ir import expr as nodes
from tilewright.ir.op import Op
from tilewright.support.dtype import BOOL
from tilewright.tir.verify.registry import check


@check("add", "sub", "mul", "div", "mod", "floor_div", "floor_mod", "min", "max")
def operands_have_the_type_of_the_result(node: nodes.BinaryOpExpr) -> str | None:
    """Arithmetic stays within one type of numbers."""
    if node.a.dtype is not node.dtype or node.b.dtype is not node.dtype:
        return f"{type(node).__name__} of {node.dtype} has operands of {node.a.dtype} and {node.b.dtype}"
    if node.dtype.is_handle:
        return f"{type(node).__name__} computes with handles"
    return None


@check("floor_div", "floor_mod", "mod")
def integer_division_is_of_integers(node: nodes.BinaryOpExpr) -> str | None:
    """Rounding quotients and remainders belong to integers."""
    if not node.dtype.is_integral and node.dtype.type_code < 128:
        return f"{type(node).__name__} is for integers, not for {node.dtype}"
    return None


@check("eq", "ne", "lt", "le", "gt", "ge")
def comparison_is_of_one_type(node: nodes.CmpExpr) -> str | None:
    """Both sides have one type, the result is bool with as many lanes."""
    if node.a.dtype is not node.b.dtype:
        return f"{type(node).__name__} compares {node.a.dtype} with {node.b.dtype}"
    if node.dtype is not BOOL.with_lanes(node.a.dtype.lanes):
        return f"{type(node).__name__} of {node.a.dtype} has the type {node.dtype}"
    return None


@check("and", "or")
def logic_is_of_bool(node: nodes.And | nodes.Or) -> str | None:
    """Logical operators take and give bool."""
    if not (node.dtype.is_bool and node.a.dtype is node.dtype and node.b.dtype is node.dtype):
        return f"{type(node).__name__} of {node.a.dtype} and {node.b.dtype} has the type {node.dtype}"
    return None


@check("not")
def negation_is_of_bool(node: nodes.Not) -> str | None:
    """Not takes and gives bool."""
    if not node.dtype.is_bool or node.a.dtype is not node.dtype:
        return f"Not of {node.a.dtype} has the type {node.dtype}"
    return None


@check("select")
def select_is_of_one_type(node: nodes.Select) -> str | None:
    """Both values have the result's type; the condition is one bool, or one for each lane."""
    if node.true_value.dtype is not node.dtype or node.false_value.dtype is not node.dtype:
        return f"Select of {node.dtype} has values of {node.true_value.dtype} and {node.false_value.dtype}"
    if not node.condition.dtype.is_bool or node.condition.dtype.lanes not in (1, node.dtype.lanes):
        return f"Select of {node.dtype} has a condition of {node.condition.dtype}"
    return None


@check("cast")
def cast_keeps_lanes(node: nodes.Cast) -> str | None:
    """A cast changes the type of the elements, not their number, and no handles."""
    if node.dtype.lanes != node.value.dtype.lanes:
        return f"a cast from {node.value.dtype} to {node.dtype} changes the number of lanes"
    if node.dtype.is_handle != node.value.dtype.is_handle:
        return f"a cast from {node.value.dtype} to {node.dtype}; use reinterpret"
    return None


@check("ramp")
def ramp_is_of_integers(node: nodes.Ramp) -> str | None:
    """Start and step are integers of the element type."""
    element = node.dtype.element
    if node.base.dtype is not element or node.stride.dtype is not element or node.dtype.lanes != node.lanes:
        return f"a ramp of {node.dtype} starts at {node.base.dtype} in steps of {node.stride.dtype}"
    return None


@check("broadcast")
def broadcast_is_of_a_scalar(node: nodes.Broadcast) -> str | None:
    """The value is a scalar of the element type."""
    if node.value.dtype is not node.dtype.element or node.dtype.lanes != node.lanes:
        return f"a broadcast of {node.value.dtype} to {node.lanes} lanes has the type {node.dtype}"
    return None


@check("shuffle")
def shuffle_picks_existing_lanes(node: nodes.Shuffle) -> str | None:
    """The vectors have one element type, and the indices are lanes of them."""
    if any(vector.dtype.element is not node.dtype.element for vector in node.vectors):
        return (
            f"a shuffle to {node.dtype} has vectors of {', '.join(vector.dtype for vector in node.vectors)}"
        )
    total = sum(vector.dtype.lanes for vector in node.vectors)
    for index in node.indices:
        if isinstance(index, nodes.IntImm) and not 0 <= index.value < total:
            return f"a shuffle of {total} lanes picks lane {index.value}"
    return None


@check("let")
def let_has_the_type_of_its_body(node: nodes.Let) -> str | None:
    """The variable has its value's type, the let its body's."""
    if node.var.dtype is not node.value.dtype:
        return f"{node.var.name} has type {node.var.dtype}, its value {node.value.dtype}"
    return None if node.dtype is node.body.dtype else f"a let of {node.body.dtype} has the type {node.dtype}"


@check("load")
def load_has_matching_lanes(node: nodes.Load) -> str | None:
    """Memory is read through a handle at integers; as many predicates as indices."""
    if not node.buffer_var.dtype.is_handle:
        return f"{node.buffer_var.name} has type {node.buffer_var.dtype}, a load needs a handle"
    if not node.index.dtype.is_integral:
        return f"the index of a load from {node.buffer_var.name} has type {node.index.dtype}"
    if node.dtype.lanes % node.index.dtype.lanes:
        return f"a load of {node.dtype} from {node.buffer_var.name} has an index of {node.index.dtype}"
    return predicate_problem(node.predicate, node.index.dtype.lanes, f"a load from {node.buffer_var.name}")


def predicate_problem(predicate: nodes.PrimExpr, lanes: int, what: str) -> str | None:
    """The error in the predicate of an access with this many indices."""
    if not predicate.dtype.is_bool or predicate.dtype.lanes != lanes:
        return f"{what} at {lanes} indices has a predicate of {predicate.dtype}"
    return None


def indices_problem(buffer_name: str, rank: int, indices: tuple[nodes.PrimExpr, ...]) -> str | None:
    """The error in the indices of an access to a buffer or tensor."""
    if len(indices) != rank:
        return f"{buffer_name} has {rank} dimensions and is accessed with {len(indices)} indices"
    for index in indices:
        if not index.dtype.is_integral:
            return f"an index of {buffer_name} has type {index.dtype}"
    return None


def access_lanes(indices: tuple[nodes.PrimExpr, ...]) -> int:
    """How many elements the indices of an access name."""
    lanes = 1
    for index in indices:
        lanes = max(lanes, index.dtype.lanes)
    return lanes


@check("buffer_load")
def buffer_load_fits_its_buffer(node: nodes.BufferLoad) -> str | None:
    """As many integer indices as dimensions, and the buffer's element type."""
    found = indices_problem(node.buffer.name, len(node.buffer.shape), node.indices)
    if found is None and node.dtype.element is not node.buffer.dtype.element:
        return f"{node.buffer.name} holds {node.buffer.dtype}, a load from it has type {node.dtype}"
    if found is None and node.dtype.lanes != node.buffer.dtype.lanes * access_lanes(node.indices):
        return f"a load of {node.dtype} from {node.buffer.name} has {access_lanes(node.indices)} indices"
    return found


@check("producer_load")
def producer_load_fits_its_tensor(node: nodes.ProducerLoad) -> str | None:
    """As many integer indices as dimensions."""
    return indices_problem(node.producer.name_hint, len(node.producer.shape), node.indices)


@check("call")
def call_has_the_right_number_of_arguments(node: nodes.Call) -> str | None:
    """Operators with a fixed number of arguments get that many."""
    if isinstance(node.op, Op) and node.op.num_inputs >= 0 and len(node.args) != node.op.num_inputs:
        return f"{node.op.name} takes {node.op.num_inputs} arguments, {len(node.args)} are given"
    return None


@check("call")
def branches_have_the_type_of_the_result(node: nodes.Call) -> str | None:
    """if_then_else: a bool, and two values of the result's type."""
    if not isinstance(node.op, Op) or node.op.name != "tir.if_then_else" or len(node.args) != 3:
        return None
    condition, yes, no = node.args
    if not condition.dtype.is_bool:
        return f"the condition of if_then_else has type {condition.dtype}"
    if yes.dtype is not node.dtype or no.dtype is not node.dtype:
        return f"if_then_else of {node.dtype} has values of {yes.dtype} and {no.dtype}"
    return None


@check("reduce")
def reduction_fits_its_combiner(node: nodes.Reduce) -> str | None:
    """As many sources as the combiner takes; a bool condition; one type for source and identity."""
    combiner = node.combiner
    if not len(node.source) == len(combiner.lhs) == len(combiner.rhs) == len(combiner.identity_element):
        return f"a combiner of {len(combiner.lhs)} values reduces {len(node.source)} sources"
    if not node.condition.dtype.is_bool:
        return f"the condition of a reduction has type {node.condition.dtype}"
    for source, identity in zip(node.source, combiner.identity_element, strict=True):
        if source.dtype is not identity.dtype:
            return f"a reduction of {source.dtype} has an identity of {identity.dtype}"
    return None
