"""Operators on shapes: what is known of sizes folds away, what is not is computed."""

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model, run

from tilewright import relay
from tilewright.relay.frontend import from_onnx
from tilewright.relay.frontend.common.needs import ShapeNeeded, ValueNeeded
from tilewright.support.errors import ModelError

FLATTEN_BY_SHAPE = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[batch, 4, 6] x) => (float[batch, 24] y) {
    shape = Shape(x)
    zero = Constant<value_ints = [0]>()
    first = Gather(shape, zero)
    rest = Constant<value_ints = [24]>()
    wanted = Concat<axis = 0>(first, rest)
    y = Reshape(x, wanted)
}
"""


def _operators(module):
    """The names of the operators that a module calls."""
    found = set()
    relay.analysis.post_order_visit(
        module["main"],
        lambda one: (
            found.add(one.op.name) if isinstance(one, relay.Call) and hasattr(one.op, "name") else None
        ),
    )
    return found


def test_shape_arithmetic_folds_where_one_size_is_unknown():
    """The shape that exporters compute for an unknown batch becomes a plain reshape."""
    module, _ = from_onnx(onnx.parser.parse_model(FLATTEN_BY_SHAPE))
    assert _operators(module) == {"reshape"}
    result = module["main"].checked_type.ret_type
    assert isinstance(result.shape[0], relay.Any) and result.shape[1] == 24


def test_shape_arithmetic_folds_where_sizes_are_given():
    """With ``shape`` nothing is left of it."""
    module, _ = from_onnx(onnx.parser.parse_model(FLATTEN_BY_SHAPE), {"x": (3, 4, 6)})
    assert [int(extent) for extent in module["main"].checked_type.ret_type.shape] == [3, 24]


def test_shape_of_a_part():
    """``start`` and ``end`` cut the shape."""
    data = np.zeros((2, 3, 4), "float32")
    (found,) = run(node_model("Shape", {"x": data}, start=-2, end=3), {"x": data})
    assert found.tolist() == [3, 4] and found.dtype == np.int64
    (found,) = run(node_model("Shape", {"x": data}, unknown=True, start=1), {"x": data})
    assert found.tolist() == [3, 4]


@pytest.mark.parametrize("known", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    ("wanted", "allowzero", "expected"),
    [([0, -1], 0, (2, 12)), ([4, 6], 0, (4, 6)), ([-1], 0, (24,)), ([3, -1, 2], 0, (3, 4, 2))],
)
def test_reshape(wanted, allowzero, expected, known):
    """Zero keeps a dimension and -1 is what is left, in a constant shape and in a computed one."""
    data = np.arange(24, dtype="float32").reshape(2, 3, 4)
    shape = np.asarray(wanted, "int64")
    inputs = {"x": data, "shape": shape}
    model = node_model(
        "Reshape",
        inputs,
        constants={"shape": shape} if known else None,
        allowzero=allowzero,
        unknown=not known,
    )
    (found,) = run(model, inputs)
    np.testing.assert_array_equal(found, data.reshape(expected))


def test_reshape_allows_zero():
    """With ``allowzero`` zero is a size."""
    data, shape = np.zeros((0, 3), "float32"), np.asarray([3, 0], "int64")
    (found,) = run(node_model("Reshape", {"x": data, "s": shape}, allowzero=1), {"x": data, "s": shape})
    assert found.shape == (3, 0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, 3])
@pytest.mark.parametrize("unknown", [False, True])
def test_flatten(axis, unknown):
    """A matrix, whatever is known of the sizes."""
    data = np.arange(24, dtype="float32").reshape(2, 3, 4)
    (found,) = run(node_model("Flatten", {"x": data}, unknown=unknown, axis=axis), {"x": data})
    rows = int(np.prod(data.shape[:axis])) if axis else 1
    np.testing.assert_array_equal(found, data.reshape(rows, -1))


@pytest.mark.parametrize("unknown", [False, True])
def test_expand(unknown):
    """Both sides may be repeated; a shape of ones keeps the tensor's dimensions."""
    data, shape = np.asarray([[1.0], [2.0]], "float32"), np.asarray([3, 1, 4], "int64")
    inputs = {"x": data, "s": shape}
    (found,) = run(node_model("Expand", inputs, unknown=unknown), inputs)
    np.testing.assert_array_equal(found, np.broadcast_to(data, (3, 2, 4)))


def test_tile_and_its_zero():
    """Repetitions that are computed, and none at all."""
    data = np.asarray([[1, 2]], "int32")
    for times in ([2, 3], [1, 0]):
        inputs = {"x": data, "n": np.asarray(times, "int64")}
        constants = {"n": inputs["n"]} if 0 in times else None
        (found,) = run(node_model("Tile", inputs, constants=constants), inputs)
        np.testing.assert_array_equal(found, np.tile(data, times))


def test_errors_name_what_is_needed():
    """An axis that is an input, and dimensions that are not known, have to be given."""
    data, axis = np.zeros((1, 3), "float32"), np.asarray(0, "int64")
    with pytest.raises(ValueNeeded, match="the axis has to be a constant; it is computed from a") as found:
        from_onnx(node_model("CumSum", {"x": data, "a": axis}))
    assert found.value.inputs == ("a",)
    with pytest.raises(ShapeNeeded, match="fix it with shape"):
        from_onnx(node_model("Squeeze", {"x": data}, unknown=True))
    with pytest.raises(ModelError, match="axis 5 is out of range"):
        from_onnx(node_model("Unsqueeze", {"x": data}, opset=11, axes=[5]))
    with pytest.raises(ModelError, match="contain one twice"):
        from_onnx(node_model("Unsqueeze", {"x": data}, opset=11, axes=[1, -3]))


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_constants_of_several_dimensions_keep_their_shape(kind):
    """What is known of integers is known of matrices too, and stays a matrix."""
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : 17]>
    agraph (float[4] x) => (float[2, 2] y, {kind}[2, 2] z) {{
        places = Constant<value = {kind}[1, 2, 2] {{3, 1, 0, 2}}>()
        first = Constant<value_ints = [0]>()
        z = Squeeze(places, first)
        y = Gather(x, z)
    }}
    """)
    data = np.array([5, 6, 7, 8], "float32")
    values, places = run(model, {"x": data})
    np.testing.assert_array_equal(places, [[3, 1], [0, 2]])
    np.testing.assert_array_equal(values, [[8, 6], [5, 7]])


@pytest.mark.parametrize("axes", [[0, 2], [-1], [2, -4], [0, 1, 3]])
def test_squeeze_of_axes_that_are_inputs(axes: list[int]):
    """The rank of the result is known, its extents are not."""
    inputs = {"x": np.ones((1, 1, 1, 1) if len(axes) > 2 else (1, 3, 1, 1), "float32")}
    inputs["a"] = np.asarray(axes, "int64")
    model = node_model("Squeeze", inputs)
    kind = from_onnx(model)[0]["main"].checked_type.ret_type
    assert len(kind.shape) == 4 - len(axes) and all(isinstance(one, relay.Any) for one in kind.shape)
    (found,) = run(model, inputs)
    np.testing.assert_array_equal(found, np.squeeze(inputs["x"], tuple(axes)))


def test_squeeze_of_every_axis_as_an_input():
    """A scalar is left."""
    inputs = {"x": np.full((1, 1), 3, "float32"), "a": np.asarray([1, 0], "int64")}
    (found,) = run(node_model("Squeeze", inputs), inputs)
    assert found.shape == () and found == 3


@pytest.mark.parametrize("axes", [[0], [-1], [2, 0], [1, -1]])
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_unsqueeze_of_axes_that_are_inputs(axes: list[int], shape: tuple[int, ...]):
    """Places count in the result."""
    if max(axes) >= len(shape) + len(axes) or (not shape and axes == [1, -1]):
        axes = list(range(len(axes)))
    data = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    inputs = {"x": data, "a": np.asarray(axes, "int64")}
    (found,) = run(node_model("Unsqueeze", inputs), inputs)
    np.testing.assert_array_equal(found, np.expand_dims(data, tuple(axes)))
