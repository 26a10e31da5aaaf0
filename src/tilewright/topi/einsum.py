"""Sums of products in Einstein's notation."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import broadcast_index, broadcast_shapes, shape_text
from tilewright.te.operation import reduce_axis
from tilewright.te.tensor import Tensor
from tilewright.tir.reducer import sum as sum_reducer
from tilewright.topi.arguments import accumulator_type
from tilewright.topi.computed import computed
from tilewright.topi.linalg import result_type
from tilewright.topi.math import cast
from tilewright.topi.tag import EINSUM, INJECTIVE

Labels = tuple[str, ...]


def einsum(subscripts: str, *operand: Tensor | Sequence[Tensor]) -> Tensor:
    """The sum of products that ``subscripts`` names, as in ``ij,jk->ik``.

    A letter on both sides of the arrow is an axis of the result, one only on the left is summed over; ``...`` stands
    for axes that are broadcast. Several operands are multiplied from left to right, each axis being summed as soon as
    no later operand has it.
    """
    given = operand[0] if len(operand) == 1 and not isinstance(operand[0], Tensor) else operand
    operands = [tensor for tensor in given if isinstance(tensor, Tensor)]
    if not operands or len(operands) != len(given):
        raise ExpressionError("einsum takes a formula and one tensor or more")
    inputs, output = _parse(subscripts, operands)
    kind = result_type("einsum", *operands)
    wide = accumulator_type(kind)
    extents = _extents(inputs, operands)
    current, labels = operands[0], inputs[0]
    if len(operands) == 1:
        current = _product([(current, labels)], output, extents, wide)
    for position in range(1, len(operands)):
        last = position == len(operands) - 1
        later = {label for rest in inputs[position + 1 :] for label in rest} | set(output)
        together = dict.fromkeys(labels + inputs[position])
        kept = output if last else tuple(label for label in together if label in later)
        current = _product([(current, labels), (operands[position], inputs[position])], kept, extents, wide)
        labels = kept
    return current if wide == kind else cast(current, kind)


def _parse(subscripts: str, operands: Sequence[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of the axes of every operand and of the result; the axes of ``...`` are labelled by their number,
    counted from the right."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ExpressionError(
            f"einsum: {subscripts!r} names {len(terms)} operands, {len(operands)} were given"
        )
    widest = 0
    inputs = []
    for term, tensor in zip(terms, operands, strict=True):
        extra = len(tensor.shape) - len(term.replace("...", "", 1))
        if extra < 0 or (extra > 0 and "..." not in term):
            raise ExpressionError(f"einsum: {term!r} does not name the axes of {shape_text(tensor.shape)}")
        widest = max(widest, extra if "..." in term else 0)
        inputs.append(_labels(subscripts, term, extra))
    found = [label for labels in inputs for label in labels]
    broadcast = tuple(str(number) for number in range(widest - 1, -1, -1))
    if not arrow:
        once = sorted(label for label in set(found) if label.isalpha() and found.count(label) == 1)
        return inputs, (*broadcast, *once)
    output = _labels(subscripts, right, widest)
    missing = [label for label in output if label not in found and label not in broadcast]
    if missing or len(set(output)) != len(output):
        raise ExpressionError(
            f"einsum: {right!r} in {subscripts!r} must name axes of the operands, each once"
        )
    return inputs, output


def _labels(subscripts: str, term: str, extra: int) -> Labels:
    before, dots, after = term.partition("...")
    letters = before + after
    if letters and not (letters.isalpha() and letters.isascii()):
        raise ExpressionError(f"einsum: {term!r} in {subscripts!r} is not made of letters and '...'")
    middle = [str(number) for number in range(extra - 1, -1, -1)] if dots else []
    return (*before, *middle, *after)


def _extents(inputs: Sequence[Labels], operands: Sequence[Tensor]) -> dict[str, PrimExpr]:
    """The size of every axis; sizes of 1 are broadcast."""
    extents: dict[str, PrimExpr] = {}
    for labels, tensor in zip(inputs, operands, strict=True):
        for label, extent in zip(labels, tensor.shape, strict=True):
            if label in extents:
                (extents[label],) = broadcast_shapes(f"einsum axis {label}", [extents[label]], [extent])
            else:
                extents[label] = extent
    return extents


def _product(
    factors: Sequence[tuple[Tensor, Labels]], kept: Labels, extents: dict[str, PrimExpr], wide: str
) -> Tensor:
    """The product of tensors, summed over the labels that are not kept."""
    present = dict.fromkeys(label for _, labels in factors for label in labels)
    reduced: dict[str, IterVar] = {
        label: reduce_axis((0, extents[label]), name=f"k_{label}") for label in present if label not in kept
    }

    def element(*i: PrimExpr) -> PrimExpr:
        place = dict(zip(kept, i, strict=True)) | {label: axis.var for label, axis in reduced.items()}
        value = operators.const(1, wide)
        for tensor, labels in factors:
            factor = operators.cast(wide, tensor(*_read(tensor, labels, place, extents)))
            value = value * factor
        total: PrimExpr = sum_reducer(value, axis=list(reduced.values())) if reduced else value
        return total

    shape = [extents[label] if label in present else operators.const(1) for label in kept]
    return computed(shape, element, name="T_einsum", tag=EINSUM if reduced else INJECTIVE)


def _read(
    tensor: Tensor, labels: Labels, place: dict[str, PrimExpr], extents: dict[str, PrimExpr]
) -> list[PrimExpr]:
    """The index of a factor; an axis of 1 that is broadcast stays at 0."""
    return broadcast_index(
        [place[label] for label in labels], tensor.shape, [extents[label] for label in labels]
    )
