"""The layout rules that operators share: what they ask for, and that the numbers are the same in the new layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.expr import Any as Unknown
from tilewright.relay.op import layout_rules as rules
from tilewright.relay.op.algorithm import ArgsortAttrs
from tilewright.relay.op.reduction_rules import ArgReduceAttrs, ReduceAttrs
from tilewright.relay.ty import TensorType
from tilewright.tir.data_layout import Layout


def _layouts(*names: str | None) -> list[Layout | None]:
    return [None if name is None else Layout(name) for name in names]


def _names(layouts: Any) -> tuple[str | None, ...]:
    return tuple(None if one is None else one.name for one in layouts)


def _placed(data: np.ndarray[Any, Any], own: Layout | None, wanted: Layout | None) -> np.ndarray[Any, Any]:
    """What a pass makes of an argument: axes of size one in front where names are missing, then the new order."""
    if own is None or wanted is None or own == wanted:
        return data
    missing = [axis for axis in wanted.primal_axes() if axis not in own]
    data = data.reshape((1,) * len(missing) + data.shape)
    names = [*missing, *own.primal_axes()]
    split_names: list[str] = []
    shape: list[int] = []
    for name, extent in zip(names, data.shape, strict=True):
        factor = wanted.factor_of(name)
        split_names += [name] if factor < 0 else [name, name.lower()]
        shape += [extent] if factor < 0 else [extent // factor, factor]
    order = [split_names.index(wanted[place]) for place in range(len(wanted))]
    return data.reshape(shape).transpose(order)


BROADCASTS = [
    # shapes of the operands, the layout offered for the first, the layouts asked for
    (((2, 32, 3, 3), (2, 32, 3, 3)), "NCHW16c", ("NCHW16c", "NCHW16c")),
    (((2, 32, 3, 3), ()), "NCHW16c", ("NCHW16c", None)),
    (((2, 32, 3, 3), (32, 1, 1)), "NCHW16c", ("NCHW16c", "NCHW16c")),
    (((2, 32, 3, 3), (1, 32, 1, 1)), "NCHW16c", ("NCHW16c", "NCHW16c")),
    (((2, 32, 3, 5), (1, 1, 3, 5)), "NCHW16c", ("NCHW16c", "NCHW1c")),
    (((2, 32, 3, 5), (5,)), "NCHW16c", ("NCHW16c", "NCHW1c")),
    (((2, 32, 3, 5), (3, 1)), "NHWC", ("NHWC", "NHWC")),
    (((2, 32, 3, 5), (32, 1, 1)), "NHWC", ("NHWC", "NHWC")),
    (((2, 32, 3, 5), (5,)), "NHWC", ("NHWC", "NHWC")),
    # Twelve channels are not blocks of eight: the program's layouts.
    (((2, 12, 3, 5), (2, 12, 3, 5)), "NCHW8c", ("NCHW", "NCHW")),
]


@pytest.mark.parametrize(("shapes", "offered", "wanted"), BROADCASTS)
def test_broadcast_aligns_every_operand(shapes: Any, offered: str, wanted: Any) -> None:
    """Operands in the layouts that the rule asks for give the sum in the layout that it promises."""
    types = [TensorType(shape) for shape in shapes]
    made = rules.broadcast(None, _layouts(offered, None), _layouts("NCHW", None), types)
    assert _names(made.inputs) == wanted
    plain = rules.broadcast(None, [], _layouts("NCHW", None), types)
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(size=shape) for shape in shapes]
    total = _placed(arrays[0], plain.inputs[0], made.inputs[0]) + _placed(
        arrays[1], plain.inputs[1], made.inputs[1]
    )
    expected = _placed(arrays[0] + arrays[1], plain.outputs[0], made.outputs[0])
    np.testing.assert_array_equal(total, expected)


def test_broadcast_without_offer_names_the_operands() -> None:
    """The layout of the operand of the highest rank tells those of the others and of the result."""
    types = [TensorType((3, 1)), TensorType((2, 4, 3, 5)), TensorType(())]
    made = rules.broadcast(None, [], _layouts(None, "NCHW", None), types)
    assert (_names(made.inputs), _names(made.outputs)) == (("HW", "NCHW", None), ("NCHW",))


def test_broadcast_prefers_the_new_layout() -> None:
    """Of one operand in the program's layout and one in a new one, the first is converted."""
    types = [TensorType((2, 32, 3, 3)), TensorType((2, 32, 3, 3))]
    made = rules.broadcast(None, _layouts("NCHW", "NCHW8c"), _layouts("NCHW", "NCHW"), types)
    assert _names(made.inputs) == ("NCHW8c", "NCHW8c")


def test_broadcast_of_different_layouts_is_left_alone() -> None:
    """Two operands that name their axes differently are added as they are."""
    types = [TensorType((4, 4, 4, 4)), TensorType((4, 4, 4, 4))]
    made = rules.broadcast(None, _layouts("NCHW4c", None), _layouts("NCHW", "NHWC"), types)
    assert _names(made.inputs) == ("NCHW", "NHWC")


def test_broadcast_does_not_split_an_unknown_dimension() -> None:
    """Whether an unknown number of channels is made of blocks is not known either."""
    types = [TensorType((2, 32, 3, 3)), TensorType((1, Unknown(), 3, 3))]
    made = rules.broadcast(None, _layouts("NCHW16c", None), _layouts("NCHW", None), types)
    assert _names(made.inputs) == ("NCHW", "NCHW")


def test_elementwise_passes_the_layout_on() -> None:
    """What is offered goes in and comes out."""
    made = rules.elementwise(None, _layouts("NHWC"), _layouts("NCHW"), [TensorType((1, 2, 3, 4))])
    assert (_names(made.inputs), _names(made.outputs)) == (("NHWC",), ("NHWC",))


def test_along_axis_moves_the_axis() -> None:
    """The axis is the same one, in another place."""
    types = [TensorType((1, 2, 3, 4))]
    made = rules.along_axis(ArgsortAttrs(1), _layouts("NHWC"), _layouts("NCHW"), types)
    assert _names(made.outputs) == ("NHWC",)
    assert made.attrs == ArgsortAttrs(3)
    back = rules.along_axis(ArgsortAttrs(-1), _layouts("NHWC"), _layouts("NCHW"), types)
    assert back.attrs == ArgsortAttrs(2)


def test_along_axis_stays_whole() -> None:
    """An operator along the channels does not take blocks of channels, one along the rows does."""
    types = [TensorType((1, 16, 3, 4))]
    made = rules.along_axis(ArgsortAttrs(1), _layouts("NCHW8c"), _layouts("NCHW"), types)
    assert (_names(made.inputs), made.attrs) == (("NCHW",), ArgsortAttrs(1))
    made = rules.along_axis(ArgsortAttrs(-1), _layouts("NCHW8c"), _layouts("NCHW"), types)
    assert (_names(made.inputs), made.attrs) == (("NCHW8c",), ArgsortAttrs(3))


REDUCTIONS = [
    # axis, keepdims, exclude, the layout offered, the layouts of argument and result
    ((2, 3), False, False, "NHWC", ("NHWC", "NC")),
    ((2, 3), True, False, "NHWC", ("NHWC", "NHWC")),
    ((1,), False, False, "NCHW8c", ("NCHW8c", "NHW")),
    ((-1,), False, False, "NCHW8c", ("NCHW8c", "NCH8c")),
    ((2, 3), True, False, "NCHW8c", ("NCHW8c", "NCHW8c")),
    ((1,), True, False, "NCHW8c", ("NCHW8c", "NCHW1c")),
    ((1,), False, True, "NCHW8c", ("NCHW8c", "C8c")),
    (None, False, False, "NCHW8c", ("NCHW8c", None)),
    ((0, 1, 2, 3), False, True, "NHWC", ("NHWC", "NHWC")),
]


@pytest.mark.parametrize(("axis", "keepdims", "exclude", "offered", "wanted"), REDUCTIONS)
def test_reduction_is_over_the_same_axes(
    axis: Any, keepdims: bool, exclude: bool, offered: str, wanted: Any
) -> None:
    """The sum over the axes that the rule gives is the sum of the program in the layout that it promises."""
    attrs = ReduceAttrs(axis, keepdims, exclude)
    data = np.random.default_rng(0).integers(0, 9, (2, 16, 3, 5))
    types = [TensorType(data.shape)]
    plain = rules.reduction(attrs, [], _layouts("NCHW"), types)
    made = rules.reduction(attrs, _layouts(offered), _layouts("NCHW"), types)
    assert (*_names(made.inputs), *_names(made.outputs)) == wanted
    new = _placed(data, plain.inputs[0], made.inputs[0])
    total = _sum(made.attrs, new)
    np.testing.assert_array_equal(total, _placed(_sum(attrs, data), plain.outputs[0], made.outputs[0]))


def _sum(attrs: ReduceAttrs, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    axes = rules.reduced_axes(attrs.axis, data.ndim, attrs.exclude)
    return np.asarray(np.sum(data, axis=axes, keepdims=attrs.keepdims))


def test_positions_need_one_whole_axis() -> None:
    """The position along two axes, or along one that is split, would be another number in the new layout."""
    types = [TensorType((2, 16, 3, 5))]
    for axis, offered, wanted in (((1, 2), "NHWC", "NCHW"), ((1,), "NCHW8c", "NCHW"), ((1,), "NHWC", "NHWC")):
        attrs = ArgReduceAttrs(axis)
        made = rules.position_along_axis(attrs, _layouts(offered), _layouts("NCHW"), types)
        assert _names(made.inputs) == (wanted,)


def test_joined_blocks() -> None:
    """Blocks of channels are put together where each argument is made of whole blocks."""
    whole = [TensorType((1, 16, 3, 3)), TensorType((1, 8, 3, 3))]
    made = rules.joined(ArgsortAttrs(1), _layouts("NCHW8c", None), _layouts("NCHW", None), whole)
    assert (_names(made.inputs), _names(made.outputs), made.attrs.axis) == (("NCHW8c",) * 2, ("NCHW8c",), 1)
    parts = [TensorType((1, 16, 3, 3)), TensorType((1, 12, 3, 3))]
    made = rules.joined(ArgsortAttrs(1), _layouts("NCHW8c", None), _layouts("NCHW", None), parts)
    assert _names(made.inputs) == ("NCHW", "NCHW")
    made = rules.joined(ArgsortAttrs(-1), _layouts(None, "NHWC"), _layouts("NCHW", "NCHW"), whole)
    assert (_names(made.inputs), made.attrs.axis) == (("NHWC", "NHWC"), 2)


def test_as_it_is_keeps_the_layout() -> None:
    """The shape of a tensor is that of the program."""
    made = rules.as_it_is(None, _layouts("NHWC"), _layouts("NCHW"), [TensorType((1, 2, 3, 4))])
    assert (_names(made.inputs), _names(made.outputs)) == (("NCHW",), (None,))
