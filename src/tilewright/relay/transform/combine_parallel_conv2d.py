"""CombineParallelConv2D: combines convolutions of one tensor into one with all their filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.transform.lib.combine_parallel import AlongAxis, combine_parallel, constant_extent
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import shape_of, tensor_of
from tilewright.relay.transform.lib.scale_axis import output_layout
from tilewright.tir.data_layout import Layout


class _Convolutions(AlongAxis):
    operator = "nn.conv2d"

    def axis(self, heavy: Call) -> int:
        """The channels'."""
        return Layout(output_layout(heavy.attrs)).index_of("C")

    def supports(self, heavy: Call) -> bool:
        """Whole axes, no groups, and extents that are known."""
        attrs: Any = heavy.attrs
        layouts = (Layout(output_layout(attrs)), Layout(attrs.kernel_layout))
        whole = all(len(each) == len(each.primal_axes()) for each in layouts)
        return attrs.groups == 1 and whole and known(*shape_of(heavy)) and known(*shape_of(heavy.args[1]))

    def compatible(self, first: Call, second: Call) -> bool:
        """All attributes but the number of filters, and the kernels' extents, are the same."""
        attrs: Any = first.attrs
        others: Any = second.attrs
        if attrs.replace(channels=None, kernel_size=None) != others.replace(channels=None, kernel_size=None):
            return False
        filters = Layout(attrs.kernel_layout).index_of("O")
        weights = [tensor_of(each.args[1]) for each in (first, second)]
        shapes = [[*dims(each)[:filters], *dims(each)[filters + 1 :]] for each in weights]
        return shapes[0] == shapes[1] and weights[0].dtype == weights[1].dtype

    def combine(self, heavies: Sequence[Call], arguments: Sequence[Sequence[RelayExpr]]) -> RelayExpr:
        """The filters one after another."""
        attrs: Any = heavies[0].attrs
        filters = Layout(attrs.kernel_layout).index_of("O")
        channels = sum(constant_extent(heavy.args[1], filters) for heavy in heavies)
        weight = call("concatenate", Tuple([each[1] for each in arguments]), axis=filters)
        return Call(heavies[0].op, (arguments[0][0], weight), attrs.replace(channels=channels))


@dataclass
class CombineParallelConv2D(FunctionPass):
    """Combine at least so many convolutions of one tensor, and the elementwise operators that follow them."""

    min_num_branches: int = 3

    name = "CombineParallelConv2d"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Combine within one function."""
        return combine_parallel(func, _Convolutions(), self.min_num_branches)
