"""Device-specific graph rewrites: one folder per kind of device, and one table by target key.

Passes look up the rewrites of the current target here. What users register comes first: an attribute of an operator
(``relay.op.register_alter_op_layout``, ``register_legalize``), then an entry of ``topi``'s generic functions under a
key of the target (``@topi.nn.conv2d_alter_layout.register("my_device")``), then the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.ir.op import Op
from tilewright.relay.target import cpu, gpu
from tilewright.relay.target.rewrites import AlterLayout, GraphRewrites, LayoutPlan, LegalForm
from tilewright.support.errors import TargetError
from tilewright.target import Target
from tilewright.target.generic_func import DispatchedFunction

_REWRITES: dict[str, GraphRewrites] = {"cpu": cpu.REWRITES, "gpu": gpu.REWRITES}
_NONE = GraphRewrites()

ALTER_LAYOUT: dict[str, DispatchedFunction] = {
    "nn.conv2d": topi.nn.conv2d_alter_layout,
    "nn.conv2d_transpose": topi.nn.conv2d_transpose_alter_layout,
    "nn.conv3d": topi.nn.conv3d_alter_layout,
    "nn.dense": topi.nn.dense_alter_layout,
    "nn.sparse_dense": topi.nn.sparse_dense_alter_layout,
}
LEGALIZE: dict[str, DispatchedFunction] = {
    "nn.conv2d": topi.nn.conv2d_legalize,
    "nn.conv1d_transpose": topi.nn.conv1d_transpose_legalize,
    "nn.conv2d_transpose": topi.nn.conv2d_transpose_legalize,
    "nn.conv3d_transpose": topi.nn.conv3d_transpose_legalize,
    "nn.dense": topi.nn.dense_legalize,
    "nn.matmul": topi.nn.matmul_legalize,
    "nn.batch_matmul": topi.nn.batch_matmul_legalize,
    "nn.bitserial_conv2d": topi.nn.bitserial_conv2d_legalize,
}
"""The generic functions under which users register rules for a key."""


def register_rewrites(key: str, rewrites: GraphRewrites, override: bool = False) -> None:
    """Use these rewrites for targets with this key."""
    if key in _REWRITES and not override:
        raise TargetError(
            f"graph rewrites for {key!r} are already registered; pass override=True to replace them"
        )
    _REWRITES[key] = rewrites


def rewrites_for(target: Target | None) -> GraphRewrites:
    """The rewrites of the first of the target's keys that has some; none without a target."""
    keys = () if target is None else target.keys
    return next((_REWRITES[key] for key in keys if key in _REWRITES), _NONE)


def alter_layout_rule(op: Op) -> AlterLayout | None:
    """The rule that changes a call of an operator to a layout that the current target prefers."""
    target = Target.current()
    attribute: AlterLayout | None = op.get_attr("FTVMAlterOpLayout")
    return (
        attribute
        or _registered(ALTER_LAYOUT.get(op.name), target)
        or rewrites_for(target).alter_layout.get(op.name)
    )


def legalize_rule(op: Op, attribute_name: str = "FTVMLegalize") -> LegalForm | None:
    """The rule that replaces a call of an operator that the current target does not support directly."""
    attribute: LegalForm | None = op.get_attr(attribute_name)
    if attribute is not None or attribute_name != "FTVMLegalize":
        return attribute
    target = Target.current()
    return _registered(LEGALIZE.get(op.name), target) or rewrites_for(target).legalize.get(op.name)


def _registered(function: DispatchedFunction | None, target: Target | None) -> Callable[..., Any] | None:
    """What was registered with a generic function under a key of the target."""
    if function is None or target is None:
        return None
    return next((function.dispatch_dict[key] for key in target.keys if key in function.dispatch_dict), None)
