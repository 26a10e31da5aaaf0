"""Sequences and optionals of a model."""

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model

from tilewright.relay.frontend import from_onnx
from tilewright.relay.frontend.common.needs import ShapeNeeded
from tilewright.relay.frontend.onnx import backend
from tilewright.runtime.container import ADT
from tilewright.support.errors import ModelError

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
PARTS = (
    HEAD
    + """
agraph (float[5, 2] x, int64 at) => (float[n, 2] one, int64 count, float[m, 2] all) {
    two = Constant<value = int64 {2}>()
    parts = SplitToSequence<axis = 0>(x, two)
    last = Constant<value = int64 {-1}>()
    shorter = SequenceErase(parts, last)
    more = SequenceInsert(shorter, x, last)
    one = SequenceAt(more, at)
    count = SequenceLength(more)
    all = ConcatFromSequence<axis = 0>(more)
}
"""
)
EQUAL = (
    HEAD
    + """
agraph (float[6, 2] x, int64 at) => (float[2, 2] one, float[3, 2, 2] all) {
    two = Constant<value = int64 {2}>()
    parts = SplitToSequence<axis = 0>(x, two)
    one = SequenceAt(parts, at)
    all = ConcatFromSequence<axis = 0, new_axis = 1>(parts)
}
"""
)
DATA = np.arange(12, dtype="float32").reshape(6, 2)


def test_parts_of_a_tensor():
    """Split, erased from, inserted to, joined again; the position is an input that the program is compiled for."""
    data = DATA[:5]
    prepared = backend.prepare(onnx.parser.parse_model(PARTS), executor="debug")
    # Parts of two rows without the last, and the whole before the last of those that are left.
    items = [data[:2], data, data[2:4]]
    for place in (0, 1, -1):
        one, count, whole = prepared.run([data, np.asarray(place)])
        np.testing.assert_array_equal(one, items[place])
        assert count == 3
        np.testing.assert_array_equal(whole, np.concatenate(items))


def test_a_computed_position_among_equal_shapes():
    """It is part of one program."""
    module, _ = from_onnx(onnx.parser.parse_model(EQUAL))
    assert [parameter.name_hint for parameter in module["main"].params] == ["x", "at"]
    one, whole = backend.prepare(onnx.parser.parse_model(EQUAL)).run([DATA, np.asarray(-2)])
    np.testing.assert_array_equal(one, DATA[2:4])
    np.testing.assert_array_equal(whole, DATA.reshape(3, 2, 2))


def _sequence_model():
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        "body",
        [helper.make_tensor_value_info(name, float32, None) for name in "ab"],
        [helper.make_tensor_value_info("c", float32, None)],
    )
    node = helper.make_node("SequenceMap", ["s", "t"], ["r"], body=body)
    graph = helper.make_graph(
        [node],
        "map",
        [
            helper.make_tensor_sequence_value_info("s", float32, None),
            helper.make_tensor_value_info("t", float32, [2]),
        ],
        [helper.make_tensor_sequence_value_info("r", float32, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_sequences_as_inputs_and_outputs():
    """One parameter for each element; a list comes back."""
    model = _sequence_model()
    with pytest.raises(ShapeNeeded, match="is a sequence: give shape"):
        from_onnx(model)
    module, _ = from_onnx(model, {"s": [(2,), (3, 2)]})
    assert [parameter.name_hint for parameter in module["main"].params] == ["s.0", "s.1", "t"]
    prepared = backend.prepare(model)
    added = np.asarray([1, 2], "float32")
    for items in ([DATA[0], DATA], [DATA]):
        (found,) = prepared.run([items, added])
        assert isinstance(found, (list, ADT)) and len(found) == len(items)
        for value, item in zip(found, items, strict=True):
            np.testing.assert_array_equal(value, item + added)


def test_optionals():
    """Empty ones have no element; what they hold is taken out."""
    text = (
        HEAD
        + """
    agraph (float[2] x) => (bool full, bool empty, float[2] y) {
        held = Optional(x)
        nothing = Optional()
        full = OptionalHasElement(held)
        empty = OptionalHasElement(nothing)
        y = OptionalGetElement(held)
    }
    """
    )
    full, empty, value = backend.prepare(onnx.parser.parse_model(text), executor="debug").run([DATA[0]])
    assert full and not empty
    np.testing.assert_array_equal(value, DATA[0])


def test_errors():
    """Positions that are not there, tensors that are not sequences."""
    text = EQUAL.replace("(float[6, 2] x, int64 at)", "(float[6, 2] x)").replace(
        "one = SequenceAt", "at = Constant<value = int64 {3}>() one = SequenceAt"
    )
    with pytest.raises(ModelError, match="position 3 is out of range for 3 elements"):
        from_onnx(onnx.parser.parse_model(text))
    with pytest.raises(ModelError, match="not a sequence"):
        from_onnx(node_model("SequenceLength", {"x": DATA}))
