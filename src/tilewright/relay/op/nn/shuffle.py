"""Channel shuffle, for plain and blocked layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.layout_conversion import converted_array, spatial_layouts, whole_extents
from tilewright.relay.op.shapes import dims, require_multiple, tensor
from tilewright.support.errors import OpAttributeInvalid


@attributes
class ChannelShuffleAttrs(OpAttrs):
    """The number of groups, and the layout: NCHW, with the channels in blocks or not."""

    groups: int = 1
    layout: str = "NCHW"

    def check(self) -> None:
        """There is a group at least."""
        if self.groups < 1:
            raise OpAttributeInvalid(f"channels are shuffled between one group or more, not {self.groups}")


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _, channels, _, _ = whole_extents(dims(data), attrs.layout, "NCHW", "the data")
    if not isinstance(channels, int):
        raise RelationError("the number of channels that are shuffled must be known")
    require_multiple(channels, attrs.groups, f"{channels} channels do not fall into {attrs.groups} groups")
    return data


def blocks_of_channels(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Channels may come in blocks of any size."""
    chosen = spatial_layouts(attrs, offered, original, types)
    layout = chosen.inputs[0]
    if layout is None or not layout.name.startswith("NCHW"):
        return spatial_layouts(attrs, (), original, types)
    return chosen


def _reference(attrs: Any, data: Any) -> Any:
    plain = converted_array(data, attrs.layout, "NCHW")
    n, c, h, w = plain.shape
    dealt = plain.reshape(n, attrs.groups, c // attrs.groups, h, w).swapaxes(1, 2).reshape(n, c, h, w)
    return converted_array(dealt, "NCHW", attrs.layout)


def _gradient(primal: Any, grad: Any) -> list[Any]:
    """Dealt out between as many groups as one had channels, everything is where it was."""
    attrs = primal.attrs
    _, channels, _, _ = whole_extents(dims(primal.checked_type), attrs.layout, "NCHW", "the data")
    if not isinstance(channels, int):
        raise RelationError("the number of channels that are shuffled must be known")
    groups = channels // attrs.groups
    return [call("nn.contrib_channel_shuffle", grad, groups=groups, layout=attrs.layout)]


CHANNEL_SHUFFLE = define(
    "nn.contrib_channel_shuffle",
    arguments=("data",),
    attrs=ChannelShuffleAttrs,
    relation=_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.channel_shuffle(inputs[0], attrs.groups, attrs.layout)],
    reference=_reference,
    gradient=_gradient,
    layout=blocks_of_channels,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Channels of several groups dealt out in turn.",
)


def contrib_channel_shuffle(data: RelayExpr, groups: int, layout: str = "NCHW") -> Call:
    """Channel ``c`` of the result is channel ``c // groups`` of group ``c % groups``."""
    return Call(CHANNEL_SHUFFLE, (data,), ChannelShuffleAttrs(groups, layout))
