"""FlattenImages: convolutions of single pixels compute the pixels of an open image in one row.

A kernel is tiled along one open axis. The columns of a small image leave much of a tile empty, and every row of pixels
loads the weights again; if each result depends on one pixel, the rows of the image can as well be one long row. So a
primitive function of a blocked 1x1 convolution gets images of height * width rows and one column. The shapes change
around its call, where that is a view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.symbolic_types import SAME_SHAPES, VIEW
from tilewright.relay.expr import Call, Var
from tilewright.relay.expr_functor import ExprMutator, substitute
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.target.cpu.shapes import constant_shape
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import keep_type

CONVOLUTION = "nn.contrib_conv2d_NCHWc"
RANK = 5
HEIGHT, WIDTH = 2, 3


def _is_open_image(kind: Any) -> bool:
    """True for blocked images whose height and width are open."""
    return (
        isinstance(kind, TensorType)
        and len(kind.shape) == RANK
        and all(constant_shape([kind.shape[axis]]) is None for axis in (HEIGHT, WIDTH))
        and constant_shape([kind.shape[RANK - 1]]) is not None
    )


def _is_same_for_all_pixels(kind: Any) -> bool:
    """True for an operand that has one value for each channel, or a single one."""
    shape = constant_shape(kind.shape) if isinstance(kind, TensorType) else None
    if shape is None or len(shape) > RANK:
        return False
    whole = (1,) * (RANK - len(shape)) + shape
    return whole[HEIGHT] == whole[WIDTH] == 1


def _reads_one_pixel(attrs: Any) -> bool:
    ones = tuple(attrs.kernel_size) == tuple(attrs.strides) == (1, 1)
    return ones and not any(attrs.padding) and attrs.groups == 1


def _is_elementwise(expr: Call) -> bool:
    pattern = expr.op.get_attr("TOpPattern")  # type: ignore[attr-defined]
    named = any(hasattr(expr.attrs, name) for name in ("axis", "shape", "newshape"))
    return pattern in (OpPattern.ELEMWISE, OpPattern.BROADCAST) and not named


def images_of(function: Function) -> list[Var] | None:
    """The parameters that are images, the convolved one first; None if rows and columns mean something there."""
    convolution: Call | None = None
    for expr in post_order(function.body):
        if isinstance(expr, (Var, Op)):
            continue
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        if expr.op.name == CONVOLUTION:
            if convolution is not None or not _reads_one_pixel(expr.attrs):
                return None
            convolution = expr
        elif not _is_elementwise(expr):
            return None
        if not _is_open_image(expr.checked_type):
            return None
    if convolution is None:
        return None
    data, weight = convolution.args
    if not isinstance(data, Var):
        return None
    images: list[Var] = [data]
    for param in function.params:
        if param is data or param is weight:
            continue
        if _is_open_image(param.checked_type):
            images.append(param)
        elif not _is_same_for_all_pixels(param.checked_type):
            return None
    if len(images) > 1 and not function.attrs.get(SAME_SHAPES):
        return None  # an image of one row may be broadcast
    return images if all(_is_open_image(image.checked_type) for image in images) else None


def _view(name: str, *arguments: RelayExpr, **attributes: Any) -> Call:
    """A call of a primitive function of one operator."""
    params = [Var(f"p{number}", argument.checked_type) for number, argument in enumerate(arguments)]
    made = infer_function(
        Function(params, call(name, *params, **attributes), attrs={"Primitive": 1, VIEW: 1})
    )
    return _typed(Call(made, arguments), made.body.checked_type)


def _typed(made: Call, kind: Any) -> Call:
    object.__setattr__(made, "_checked_type_", kind)
    return made


class _Flatten(ExprMutator):
    """Rewrites calls of primitive functions."""

    def __init__(self) -> None:
        super().__init__()
        self.flattened: dict[Function, tuple[Function, list[Var]] | None] = {}

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions change where they are called."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_call(self, expr: Call) -> RelayExpr:
        """A call of a primitive function that reads single pixels."""
        made: Call = expr.map_children(self.visit)
        function = expr.op
        if not isinstance(function, Function) or not function.is_primitive or function.attrs.get("Compiler"):
            return made
        if function not in self.flattened:
            self.flattened[function] = _flattened(function)
        found = self.flattened[function]
        if found is None:
            return made
        flat, images = found
        arguments = list(made.args)
        for place, param in enumerate(function.params):
            if any(param is image for image in images):
                argument = arguments[place]
                keep_type(param, argument)
                (block,) = constant_shape(param.checked_type.shape[RANK - 1 :]) or (0,)
                arguments[place] = _view("reshape", argument, newshape=(0, 0, -3, 1, block))
        convolved = next(place for place, param in enumerate(function.params) if param is images[0])
        image = made.args[convolved]
        keep_type(images[0], image)
        result = _typed(Call(flat, tuple(arguments), span=expr.span), flat.body.checked_type)
        return _view(
            "reshape_like",
            result,
            image,
            lhs_begin=HEIGHT,
            lhs_end=WIDTH + 1,
            rhs_begin=HEIGHT,
            rhs_end=WIDTH + 1,
        )


def _flattened(function: Function) -> tuple[Function, list[Var]] | None:
    """The function on images of one column, and the parameters that are images."""
    images = images_of(function)
    if images is None:
        return None
    params: list[Var] = []
    for param in function.params:
        if any(param is image for image in images):
            kind = param.checked_type
            assert isinstance(kind, TensorType)
            shape = (*kind.shape[:WIDTH], 1, *kind.shape[WIDTH + 1 :])
            params.append(Var(param.name_hint, TensorType(shape, kind.dtype)))
        else:
            params.append(Var(param.name_hint, param.checked_type))
    body = substitute(function.body, dict(zip(function.params, params, strict=True)))
    return infer_function(Function(params, body, attrs=dict(function.attrs))), images


@dataclass
class FlattenImages(FunctionPass):
    """Blocked 1x1 convolutions of images of open size compute all pixels of an image as one column."""

    name = "FlattenImages"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        if func.is_primitive or not any(
            _is_open_image(getattr(one, "_checked_type_", None)) for one in post_order(func.body)
        ):
            return func
        body = _Flatten().visit(func.body)
        return func if body is func.body else func.replace(body=body)
