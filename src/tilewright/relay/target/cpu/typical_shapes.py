"""The shapes that the tensors of a function of open sizes have for an input of typical size.

Costs depend on sizes: a Winograd convolution is worth its transforms for an image of 56 rows, and not for one of 7.
Where the height and width of the input are open, the sizes of all layers follow from one assumption about it. They only
decide how something is computed, never what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import substitute
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.target.cpu.shapes import constant_shape, typical_image
from tilewright.support.errors import TilewrightError

TYPICAL_INPUT: Final = 224
"""The height and width that an open image is assumed to have where it enters the function."""

Image = tuple[int, int, int, int]

_SHAPES: ContextVar[Mapping[RelayExpr, Image] | None] = ContextVar("typical_shapes", default=None)
_RESULT: ContextVar[Image | None] = ContextVar("typical_result", default=None)


def typical_shapes(function: Function) -> dict[RelayExpr, Image]:
    """The shapes of images of open size for a typical input; empty if they do not follow from it."""
    params = [_typical_param(param) for param in function.params]
    if all(new is old for new, old in zip(params, function.params, strict=True)):
        return {}
    body = substitute(function.body, dict(zip(function.params, params, strict=True)))
    try:
        made = infer_function(Function(params, body)).body
    except TilewrightError:
        # Another size may be the only one that the function accepts.
        return {}
    before, after = list(post_order(function.body)), list(post_order(made))
    if len(before) != len(after):
        return {}
    found: dict[RelayExpr, Image] = {}
    for old, new in zip(before, after, strict=True):
        kind = getattr(new, "_checked_type_", None)
        shape = constant_shape(kind.shape) if isinstance(kind, TensorType) else None
        if isinstance(old, RelayExpr) and shape is not None and len(shape) == 4 and min(shape) > 0:
            found[old] = (shape[0], shape[1], shape[2], shape[3])
    return found


def _typical_param(param: Var) -> Var:
    kind = param.checked_type
    if not isinstance(kind, TensorType) or len(kind.shape) != 4 or not is_dynamic(kind):
        return param
    typical = (1, kind.shape[1], TYPICAL_INPUT, TYPICAL_INPUT)
    shape = [
        extent if constant_shape([extent]) is not None else assumed
        for extent, assumed in zip(kind.shape, typical, strict=True)
    ]
    return Var(param.name_hint, TensorType(shape, kind.dtype))


@contextmanager
def assuming(shapes: Mapping[RelayExpr, Image]) -> Iterator[None]:
    """Have ``typical_shape_of`` look shapes up here."""
    token = _SHAPES.set(shapes)
    try:
        yield
    finally:
        _SHAPES.reset(token)


def typical_shape_of(expr: RelayExpr) -> Image | None:
    """The shape of an image, as assumed where its height and width are open."""
    found = (_SHAPES.get() or {}).get(expr)
    if found is not None:
        return found
    kind = getattr(expr, "_checked_type_", None)
    return typical_image(kind.shape) if isinstance(kind, TensorType) else None


@contextmanager
def assuming_result(shape: Image | None) -> Iterator[None]:
    """Have ``typical_result`` give this shape for the call that is looked at inside."""
    token = _RESULT.set(shape)
    try:
        yield
    finally:
        _RESULT.reset(token)


def typical_result(out_type: Any) -> Image | None:
    """The shape of the result of the call that is looked at, as assumed where its height and width are open."""
    return _RESULT.get() or typical_image(out_type.shape)
