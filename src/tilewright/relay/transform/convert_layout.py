"""ConvertLayout: converts operators to the layouts that the user requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.layout_rewrite import rewrite_layouts
from tilewright.support.errors import TilewrightError


class LayoutConfig:
    """In a ``with`` block: the calls, counted from zero, that ConvertLayout leaves as they are."""

    current: ClassVar[LayoutConfig | None] = None

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_counter = 0
        self.skip_layers = list(skip_layers or ())

    def check_skip(self) -> bool:
        """True if the next call is to be left; counts it."""
        skip = self.skip_counter in self.skip_layers
        self.skip_counter += 1
        return skip

    def reset(self) -> None:
        """Count from zero again."""
        self.skip_counter = 0
        self.skip_layers = []

    def __enter__(self) -> LayoutConfig:
        self._outer = LayoutConfig.current
        LayoutConfig.current = self
        return self

    def __exit__(self, *_: object) -> None:
        LayoutConfig.current = self._outer


@dataclass
class ConvertLayout(FunctionPass):
    """Bring operators to the layouts that ``desired_layouts`` names: {"nn.conv2d": ["NHWC", "default"], ...}, with one
    layout for the data and one for the weight. Operators in between follow."""

    desired_layouts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    name = "ConvertLayout"
    opt_level = 3
    # Within a sequence: a bias is then a sum, which follows every layout.
    required = ("InferType", "CanonicalizeOps")

    def __post_init__(self) -> None:
        for operator, layouts in self.desired_layouts.items():
            if not isinstance(layouts, (list, tuple)) or not layouts:
                raise TilewrightError(
                    f"the desired layouts of {operator} are a list of names, not {layouts!r}"
                )
            if Op.get(operator).get_attr("FTVMConvertOpLayout") is None:
                raise TilewrightError(f"operator {operator} does not say how its layout is converted")

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewrite_layouts(func, self._converted)

    def _converted(self, call: Call, arguments: list[RelayExpr], types: list[Any]) -> RelayExpr | None:
        assert isinstance(call.op, Op)
        wanted = self.desired_layouts.get(call.op.name)
        if wanted is None:
            return None
        if LayoutConfig.current is not None and LayoutConfig.current.check_skip():
            return None
        convert = call.op.get_attr("FTVMConvertOpLayout")
        made: RelayExpr | None = convert(call.attrs, arguments, types, list(wanted))
        return made
