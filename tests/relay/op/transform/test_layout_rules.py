"""Layout rules: on data of another layout, with the attributes that the rule gives, an operator is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.op import Op
from tilewright.relay.op.layout_rules import Layouts
from tilewright.relay.op.transform.joining import ConcatenateAttrs, SplitAttrs
from tilewright.relay.op.transform.permuting import LayoutTransformAttrs, ReverseAttrs, TransposeAttrs
from tilewright.relay.op.transform.reshaping import ReshapeAttrs, SqueezeAttrs
from tilewright.relay.op.transform.scanning import ScanopAttrs
from tilewright.relay.op.transform.slicing import StridedSliceAttrs
from tilewright.relay.ty import TensorType
from tilewright.tir.data_layout import Layout


def _in_layout(array: Any, source: Layout | None, destination: Layout | None) -> Any:
    if source == destination or source is None or destination is None:
        return array
    attrs = LayoutTransformAttrs(source.name, destination.name)
    return Op.get("layout_transform").get_attr("FReference")(attrs, array)


def _ask(name: str, attrs: Any, shapes: Any, original: str, offered: str | None) -> Layouts:
    types = [TensorType(shape, "float32") for shape in shapes]
    news = [Layout(offered)] * len(shapes) if offered is not None else []
    rule = Op.get(name).get_attr("FInferCorrectLayout")
    return rule(attrs, news, [Layout(original)] * len(shapes), types)  # type: ignore[no-any-return]


ACCEPTED = [
    ("transpose", TransposeAttrs((0, 2, 3, 1)), "NCHW", "NHWC", "NHWC"),
    ("transpose", TransposeAttrs(), "NCHW", "HWCN", "WHCN"),
    ("squeeze", SqueezeAttrs((2, -1)), "NCHW", "NHWC", "NC"),
    ("squeeze", SqueezeAttrs((2, 3)), "NCHW", "NCHW2c", "NC2c"),
    ("split", SplitAttrs(2, 1), "NCHW", "NHWC", "NHWC"),
    ("split", SplitAttrs(2, 1), "NCHW", "NCHW2c", "NCHW2c"),
    ("split", SplitAttrs((2, 6), 1), "NCHW", "NCHW2c", "NCHW2c"),
    ("strided_slice", StridedSliceAttrs((0, 2), (2, 8)), "NCHW", "NHWC", "NHWC"),
    ("strided_slice", StridedSliceAttrs((0, 2), (2, 8)), "NCHW", "NCHW2c", "NCHW2c"),
    ("strided_slice", StridedSliceAttrs((-1,), (None,), (-1,), axes=(1,)), "NCHW", "NHWC", "NHWC"),
    ("strided_slice", StridedSliceAttrs((4,), (2,), slice_mode="size", axes=(1,)), "NCHW", "NCHW2c", "NCHW2c"),
    ("reverse", ReverseAttrs(1), "NCHW", "NHWC", "NHWC"),
    ("cumsum", ScanopAttrs(2), "NCHW", "NCHW2c", "NCHW2c"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "original", "offered", "result"), ACCEPTED)
def test_the_operator_is_the_same_in_the_new_layout(
    name: str, attrs: Any, original: str, offered: str, result: str
) -> None:
    """Running in the new layout and changing the result's layout back gives what the program had."""
    shape = (2, 8, 1, 1) if name == "squeeze" else (2, 8, 3, 4)
    data = np.random.default_rng(0).normal(size=shape).astype("float32")
    made = _ask(name, attrs, [shape], original, offered)
    plain = _ask(name, attrs, [shape], original, None)
    assert made.inputs == (Layout(offered),)
    assert all(layout == Layout(result) for layout in made.outputs)
    reference = Op.get(name).get_attr("FReference")
    before = reference(attrs, data)
    after = reference(made.attrs, _in_layout(data, Layout(original), made.inputs[0]))
    fields = zip(*[one if isinstance(one, tuple) else (one,) for one in (before, after)], strict=True)
    for old, new in fields:
        np.testing.assert_array_equal(_in_layout(new, made.outputs[0], plain.outputs[0]), old)


@pytest.mark.parametrize(
    ("name", "attrs", "shape", "offered"),
    [
        ("transpose", TransposeAttrs((0, 2, 3, 1)), (2, 8, 3, 4), "NCHW4c"),
        ("squeeze", SqueezeAttrs((1,)), (2, 1, 3, 4), "NCHW1c"),
        ("split", SplitAttrs(2, 1), (2, 8, 3, 4), "NCHW8c"),
        ("split", SplitAttrs((3,), 1), (2, 8, 3, 4), "NCHW2c"),
        ("strided_slice", StridedSliceAttrs((1,), (8,), axes=(1,)), (2, 8, 3, 4), "NCHW2c"),
        ("strided_slice", StridedSliceAttrs((0,), (8,), (2,), axes=(1,)), (2, 8, 3, 4), "NCHW2c"),
        ("reshape", ReshapeAttrs((2, -1)), (2, 8, 3, 4), "NHWC"),
        ("cumsum", ScanopAttrs(1), (2, 8, 3, 4), "NCHW2c"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    name: str, attrs: Any, shape: tuple[int, ...], offered: str
) -> None:
    """Where parts of an axis stand in the way, the argument keeps the program's layout and the attributes stay."""
    made = _ask(name, attrs, [shape], "NCHW", offered)
    assert made.inputs == (Layout("NCHW"),)
    assert made.attrs == attrs


def test_fields_are_joined_in_one_layout() -> None:
    """concatenate takes blocks of channels if every field is made of whole blocks."""
    made = _ask("concatenate", ConcatenateAttrs(1), [(1, 4, 2, 2), (1, 8, 2, 2)], "NCHW", "NCHW4c")
    assert made.inputs == (Layout("NCHW4c"),) * 2
    assert made.attrs.axis == 1
    refused = _ask("concatenate", ConcatenateAttrs(1), [(1, 4, 2, 2), (1, 6, 2, 2)], "NCHW", "NCHW4c")
    assert refused.inputs == (Layout("NCHW"),) * 2


def test_the_tensor_whose_type_is_taken_keeps_its_layout() -> None:
    """cast_like follows its first argument alone."""
    rule = Op.get("cast_like").get_attr("FInferCorrectLayout")
    types = [TensorType((1, 4, 2, 2), "float32"), TensorType((3,), "int32")]
    made = rule(None, [Layout("NHWC"), None], [Layout("NCHW"), None], types)
    assert made.inputs == (Layout("NHWC"), None)
    assert made.outputs == (Layout("NHWC"),)
