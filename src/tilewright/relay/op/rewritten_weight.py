"""Operators whose weight is in the layout that a search of schedules chose.

The attribute ``auto_scheduler_rewritten_layout`` says the layout. It is there only after the weight, a constant, was
rewritten, which is the last change of a graph. Types, computations and references of the operator are those of the
weight in its own layout: what is here leads from one to the other for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from string import ascii_lowercase
from typing import Any, Final

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.support.errors import OpAttributeInvalid, ScheduleError
from tilewright.te.rewritten_layout import RewrittenLayout, known_shape, parse_layout
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout

ATTRIBUTE: Final = "auto_scheduler_rewritten_layout"

WEIGHT: Final = 1
"""The place of the weight among the arguments."""

_OF_CONVOLUTION: Final = {"D": "rd", "H": "ry", "W": "rx", "I": "rc", "O": "ff"}


def may_be_rewritten(attrs: Any) -> bool:
    """True for an operator's attributes, or their class, that can say the layout of a rewritten weight."""
    try:
        return any(field.name == ATTRIBUTE for field in fields(attrs))
    except TypeError:
        return False


def weight_axes(operator: str, attrs: Any, rank: int) -> list[str]:
    """The names that the dimensions of an operator's weight have in layouts."""
    if operator in ("nn.conv2d", "nn.conv3d") and attrs.kernel_layout:
        layout = Layout(attrs.kernel_layout)
        axes = [layout[place] for place in range(len(layout))]
        if len(axes) == rank and all(axis.upper() in _OF_CONVOLUTION for axis in axes):
            inner = ["" if axis.isupper() else "_inner" for axis in axes]
            return [_OF_CONVOLUTION[axis.upper()] + end for axis, end in zip(axes, inner, strict=True)]
    if operator in ("nn.dense", "nn.matmul", "nn.batch_matmul"):
        product = ["j", "k"] if attrs.get("transpose_b", True) else ["k", "j"]
        return product if operator != "nn.batch_matmul" else ["b", *product]
    return list(ascii_lowercase[:rank])


def layout_of(operator: str, attrs: Any) -> RewrittenLayout | None:
    """The layout that an operator's weight was rewritten to; None for a weight in its own."""
    text = getattr(attrs, ATTRIBUTE, "")
    if not text:
        return None
    try:
        rank = len({axis for _, axis in parse_layout(text)})
        return RewrittenLayout.from_text(text, weight_axes(operator, attrs, rank))
    except ScheduleError as error:
        raise OpAttributeInvalid(f"{operator}: {error.message}") from error


def original_types(operator: str, attrs: Any, types: Sequence[Type]) -> Sequence[Type]:
    """The types of an operator's arguments, with the weight's in its own layout."""
    layout = layout_of(operator, attrs)
    weight = types[WEIGHT] if len(types) > WEIGHT else None
    if layout is None or not isinstance(weight, TensorType):
        return types
    if known_shape(weight.shape) != layout.shape:
        raise OpAttributeInvalid(
            f"{operator}: a weight {weight} does not have the layout {getattr(attrs, ATTRIBUTE)}"
        )
    return [*types[:WEIGHT], TensorType(layout.original_shape, weight.dtype), *types[WEIGHT + 1 :]]


def computed(
    operator: str,
    attrs: Any,
    inputs: Sequence[Tensor],
    compute: Callable[[Any, Sequence[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """The results of an operator, which is computed as with the weight in its own layout."""
    layout = layout_of(operator, attrs)
    if layout is None:
        return list(compute(attrs, inputs))
    plain = attrs.replace(**{ATTRIBUTE: ""})
    return layout.compute(
        inputs[WEIGHT], lambda weight: compute(plain, [*inputs[:WEIGHT], weight, *inputs[WEIGHT + 1 :]])
    )


def understanding(operator: str, relation: Callable[..., Any]) -> Callable[..., Any]:
    """A type relation that knows rewritten weights."""

    def relate(types: Sequence[Type], attrs: Any) -> Any:
        return relation(original_types(operator, attrs, types), attrs)

    relate.__name__ = getattr(relation, "__name__", operator)
    return relate


def restoring(operator: str, reference: Callable[..., Any]) -> Callable[..., Any]:
    """An operator's reference that knows rewritten weights."""

    def refer(attrs: Any, *arguments: Any) -> Any:
        layout = layout_of(operator, attrs)
        if layout is None:
            return reference(attrs, *arguments)
        weight = layout.restore(arguments[WEIGHT])
        return reference(
            attrs.replace(**{ATTRIBUTE: ""}), *arguments[:WEIGHT], weight, *arguments[WEIGHT + 1 :]
        )

    return refer
