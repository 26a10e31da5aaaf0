"""FoldOutputCast: lets a product give the narrow type that its result is cast to.

Products of 16-bit floats are summed in float32 whatever type they give, so the cast is part of storing the result. With
it gone, the passes that look for what follows a product find it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, tensor_of, uses_of
from tilewright.support.dtype import DataType

PRODUCTS: Final = (
    "nn.dense",
    "nn.matmul",
    "nn.batch_matmul",
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv2d_transpose",
)


class _Fold(OperatorRewriter):
    def __init__(self, body: RelayExpr) -> None:
        super().__init__({"cast": self._cast})
        self.uses = uses_of(body)

    def _cast(self, old: Call, new: Call) -> RelayExpr | None:
        product, made = old.args[0], new.args[0]
        if not isinstance(made, Call) or not is_call(product, *PRODUCTS) or self.uses.get(product) != 1:
            return None
        attrs: Any = made.attrs
        narrow = str(tensor_of(old).dtype)
        factors = {str(tensor_of(argument).dtype) for argument in product.args}  # type: ignore[attr-defined]
        if attrs.out_dtype != "float32" or factors != {narrow} or DataType(narrow).bits != 16:
            return None
        return Call(made.op, made.args, attrs.replace(out_dtype=narrow))


@dataclass
class FoldOutputCast(FunctionPass):
    """Fold casts from float32 back to the type of a product's factors into the product."""

    name = "FoldOutputCast"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(_Fold(func.body), func)
