"""If, Loop and Scan: chosen and written out where all is known, programs otherwise."""

import numpy as np
import onnx
import pytest

from tilewright import relay
from tilewright.relay.frontend import from_onnx
from tilewright.relay.frontend.common.needs import ValueNeeded
from tilewright.relay.frontend.onnx import backend
from tilewright.support.errors import ModelError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'

BRANCHES = (
    HEAD
    + """
agraph (bool c, float[4] x) => (float[n] y) {
    y = If(c) <
        then_branch = yes () => (float[m] t) { t = Add(x, x) },
        else_branch = no () => (float[m] e) {
            first = Constant<value_ints = [1]>()
            last = Constant<value_ints = [3]>()
            e = Slice(x, first, last)
        }
    >
}
"""
)

# Sums of powers: the state is multiplied, every turn shows its value.
POWERS = (
    HEAD
    + """
agraph (int64 n, float[2] x) => (float[2] last, float[m, 2] every) {
    go = Constant<value = bool {1}>()
    twice = Add(x, x)
    last, every = Loop(n, go, x) <
        body = turn (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] s) {
            d = Identity(c)
            w = Mul(v, twice)
            s = Identity(w)
        }
    >
}
"""
)

GROWING = (
    HEAD
    + """
agraph (int64 n, float[1] x) => (float[m] y) {
    go = Constant<value = bool {1}>()
    y = Loop(n, go, x) <
        body = turn (int64 i, bool c, float[k] v) => (bool d, float[l] w) {
            d = Identity(c)
            w = Concat<axis = 0>(v, x)
        }
    >
}
"""
)

WHILE = (
    HEAD
    + """
agraph (float limit, float x) => (float y) {
    none = Identity(x)
    start = Less(x, limit)
    y = Loop("", start, x) <
        body = turn (int64 i, bool c, float v) => (bool d, float w) {
            w = Add(v, v)
            d = Less(w, limit)
        }
    >
}
"""
)

SCAN = (
    HEAD
    + """
agraph (float[2] start, float[2, STEPS] x) => (float[2] last, float[2, STEPS] every) {
    last, every = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [1], scan_output_directions = [1],
        body = turn (float[2] state, float[2] now) => (float[2] next, float[2] shown) {
            next = Add(state, now)
            shown = Identity(next)
        }
    > (start, x)
}
"""
)


def _scan(steps):
    return onnx.parser.parse_model(SCAN.replace("STEPS", str(steps)))


def _has(module, kind):
    """True if a module has an expression of a kind."""
    found = []
    relay.analysis.post_order_visit(module["main"], lambda one: found.append(isinstance(one, kind)))
    return any(found)


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_branches_of_different_lengths(executor):
    """The dimension in which the branches differ is open."""
    prepared = backend.prepare(onnx.parser.parse_model(BRANCHES), executor=executor)
    data = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(prepared.run([np.asarray(True), data])[0], data * 2)
    np.testing.assert_array_equal(prepared.run([np.asarray(False), data])[0], data[1:3])


def test_known_conditions_choose_their_branch():
    """Nothing of the If is left."""
    model = onnx.parser.parse_model(BRANCHES)
    module, _ = from_onnx(model, convert_config={"values": {"c": np.asarray(False)}})
    assert not _has(module, relay.If)
    assert [int(extent) for extent in module["main"].checked_type.ret_type.shape] == [2]


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_loop_with_results(turns):
    """A number of turns that is an input; what the turns show is stacked."""
    prepared = backend.prepare(onnx.parser.parse_model(POWERS), executor="debug")
    data = np.asarray([1.0, 0.5], "float32")
    last, every = prepared.run([np.asarray(turns), data])
    expected = [data * (2 * data) ** (turn + 1) for turn in range(turns)]
    np.testing.assert_allclose(every, np.asarray(expected).reshape(turns, 2))
    np.testing.assert_allclose(last, expected[-1] if expected else data)


def test_loop_compiled():
    """The same on the virtual machine, with as many turns as one likes."""
    prepared = backend.prepare(onnx.parser.parse_model(POWERS))
    assert prepared.chosen == "vm"
    data = np.asarray([0.5, 0.5], "float32")
    for turns in (3, 300):
        last, every = prepared.run([np.asarray(turns), data])
        np.testing.assert_array_equal(last, data)
        assert every.shape == (turns, 2)


def test_loops_are_written_out():
    """A known number of turns leaves no loop; what the loop uses of the outside is shared, not repeated."""
    model = onnx.parser.parse_model(POWERS)
    module, _ = from_onnx(model, convert_config={"values": {"n": np.asarray(3)}})
    assert not _has(module, relay.Function) or len(module.functions) == 1
    assert not _has(module, relay.Let)
    found = []
    relay.analysis.post_order_visit(
        module["main"], lambda one: found.append(isinstance(one, relay.Call) and one.op.name == "add")
    )
    assert sum(found) == 1


def test_loop_invariants_are_computed_once():
    """What a loop uses of the outside is bound before the loop."""
    module, _ = from_onnx(onnx.parser.parse_model(POWERS))
    text = module.astext()
    assert text.index("add(%x, %x)") < text.index("fn (%turn")


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_values_that_grow(executor):
    """A state whose size changes from turn to turn."""
    prepared = backend.prepare(onnx.parser.parse_model(GROWING), executor=executor)
    (found,) = prepared.run([np.asarray(5), np.asarray([3.0], "float32")])
    np.testing.assert_array_equal(found, [3.0] * 6)


def test_while():
    """A condition alone."""
    prepared = backend.prepare(onnx.parser.parse_model(WHILE), executor="debug")
    assert prepared.run([np.asarray(20, "float32"), np.asarray(3, "float32")])[0] == 24
    assert prepared.run([np.asarray(2, "float32"), np.asarray(3, "float32")])[0] == 3


@pytest.mark.parametrize("steps", [5, 40])
def test_scan_backwards_along_another_axis(steps):
    """Inputs and outputs turned around, along the second axis; written out and as a loop."""
    data = np.arange(2 * steps, dtype="float32").reshape(2, steps)
    start = np.asarray([1.0, 2.0], "float32")
    last, every = backend.prepare(_scan(steps), executor="debug").run([start, data])
    sums = start[:, None] + np.cumsum(data[:, ::-1], 1)
    np.testing.assert_array_equal(every, sums[:, ::-1])
    np.testing.assert_array_equal(last, sums[:, -1])


def test_long_scans_compile():
    """A loop whose number of turns is known gives a result of known size."""
    module, _ = from_onnx(_scan(40))
    assert [int(extent) for extent in module["main"].checked_type.ret_type.fields[1].shape] == [2, 40]
    data, start = np.ones((2, 40), "float32"), np.zeros(2, "float32")
    last, _ = backend.prepare(_scan(40)).run([start, data])
    np.testing.assert_array_equal(last, [40, 40])


def test_branches_of_different_ranks_need_the_condition():
    """No type has both; the backend compiles for the condition that it is given."""
    text = BRANCHES.replace(
        "e = Slice(x, first, last)", "z = Constant<value_ints = [0]>() e = Unsqueeze(x, z)"
    )
    model = onnx.parser.parse_model(text)
    with pytest.raises(ValueNeeded, match="the condition of branches"):
        from_onnx(model)
    prepared = backend.prepare(model, executor="debug")
    assert prepared.run([np.asarray(True), np.zeros(4, "float32")])[0].shape == (4,)
    assert prepared.run([np.asarray(False), np.zeros(4, "float32")])[0].shape == (1, 4)


def test_a_loop_keeps_its_types():
    """A state can not change its element type."""
    text = GROWING.replace("w = Concat<axis = 0>(v, x)", "w = Cast<to = 7>(v)").replace(
        "float[l] w", "int64[l] w"
    )
    with pytest.raises(ModelError, match="before a turn and"):
        from_onnx(onnx.parser.parse_model(text))
